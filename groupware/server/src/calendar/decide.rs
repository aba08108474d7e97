//! The calendar's decisions on the way to the store.

use groupware_calendar::{CalendarError, Context, Decision, Entry, Ids};
use groupware_store::Snapshot;

use super::reply::Failure;
use crate::change::{self, ChangeError};
use crate::{AppState, Owner};

/// Reads from one snapshot.
pub(crate) fn read<T>(
    state: &AppState,
    read: impl FnOnce(&dyn Snapshot) -> Result<T, CalendarError>,
) -> Result<T, Failure> {
    state.store().read(read).map_err(Failure::from)
}

/// Decides on a fresh snapshot and commits, until nobody else was faster.
///
/// # Errors
/// The decision's; [`Failure::Contended`] if others always were; the store's.
pub(crate) async fn change(
    state: &AppState,
    owner: &Owner,
    decide: impl Fn(&Context<'_>) -> Result<Decision, CalendarError>,
) -> Result<Option<Entry>, Failure> {
    let now = state.now_s();
    let ids = Ids::from_random(state.random_bits());
    let changed = change::change(state, |snapshot| {
        let decision = decide(&Context {
            snapshot,
            directory: state,
            mailbox: owner.mailbox(),
            now,
            ids,
        })?;
        Ok((decision.batch, decision.entry))
    });
    changed.await.map_err(|error| match error {
        ChangeError::Decided(error) => Failure::Calendar(error),
        ChangeError::Contended => Failure::Contended,
        ChangeError::Commit(error) => Failure::from(error),
    })
}
