//! What a decision is given besides the request, and what it gives back.

use groupware_store::{Batch, Snapshot, StoreError};

use crate::Entry;

/// Who the local users are.
pub trait Directory {
    /// The local user behind an address (`ann@localhost`) or a bare name (`ann`), in the spelling
    /// that names the mailbox; `None` for everybody else.
    ///
    /// # Errors
    /// The store's, if the directory lies in one.
    fn user(&self, address: &str) -> Result<Option<String>, StoreError>;

    /// The address that is shown for a local user.
    fn email(&self, user: &str) -> String;
}

/// What a decision reads: one consistent state of the store, the users, the moment, and the
/// identifiers that it may give away.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The state of the store.
    pub snapshot: &'a dyn Snapshot,
    /// The local users.
    pub directory: &'a dyn Directory,
    /// Whose calendar the request is about: its owner's name and the partition's.
    pub mailbox: &'a str,
    /// The moment of the request, seconds since 1970.
    pub now: i64,
    /// New identifiers. Deciding again may start from the same.
    pub ids: Ids,
}

/// A source of identifiers that starts from 128 random bits of the caller's.
#[derive(Debug, Clone, Copy)]
pub struct Ids(u128);

impl Ids {
    /// Odd, so that all 2^128 steps differ; 2^128 divided by the golden ratio, so that
    /// neighbours share no visible prefix.
    const STEP: u128 = 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;

    /// Identifiers from these bits on.
    pub fn from_random(bits: u128) -> Self {
        Self(bits)
    }

    /// The next one: 32 upper-case hexadecimal digits, as Domino's look.
    pub(crate) fn take(&mut self) -> String {
        let id = format!("{:032X}", self.0);
        self.0 = self.0.wrapping_add(Self::STEP);
        id
    }
}

/// What is to be committed, and what the owner's calendar then holds.
#[derive(Debug)]
pub struct Decision {
    /// To be committed as a whole.
    pub batch: Batch,
    /// The owner's entry after the commit, if there is one.
    pub entry: Option<Entry>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_new_and_repeatable() {
        let mut a = Ids::from_random(7);
        let mut b = a;
        let first: Vec<_> = (0..100).map(|_| a.take()).collect();
        assert!(first.iter().all(|id| id.len() == 32));
        assert_eq!(first, (0..100).map(|_| b.take()).collect::<Vec<_>>());
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(distinct.len(), 100);
    }
}
