//! What a user has of connections that all share. It knows no protocol.

use crate::streams::HeldConnection;

/// A user's place among shared connections.
pub(super) struct Seat<L> {
    /// Which of them is its own.
    pub(super) place: u32,
    /// The hold on it, once it was used.
    pub(super) held: Option<HeldConnection>,
    /// What the protocol keeps of the user.
    pub(super) line: L,
}

impl<L: Default> Seat<L> {
    /// On the connection of this place.
    pub(super) fn at(place: u32) -> Self {
        Self {
            place,
            held: None,
            line: L::default(),
        }
    }
}
