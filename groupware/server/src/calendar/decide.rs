//! From a decision to a durable change: read a snapshot, decide, commit; on a conflict again.

use groupware_calendar::{CalendarError, Context, Decision, Entry, Ids};
use groupware_store::{CommitError, Snapshot};

use super::reply::Failure;
use crate::{AppState, Owner};

/// How often a change is decided before it is given up. Each lost round means that another
/// request on the same entry was carried out.
const ROUNDS: u32 = 16;

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
/// The decision's; [`Failure::Contended`] after [`ROUNDS`] lost rounds; the store's.
pub(crate) async fn change(
    state: &AppState,
    owner: &Owner,
    decide: impl Fn(&Context<'_>) -> Result<Decision, CalendarError>,
) -> Result<Option<Entry>, Failure> {
    let now = state.now_s();
    let ids = Ids::from_random(state.random_bits());
    for _ in 0..ROUNDS {
        let decision = read(state, |snapshot| {
            decide(&Context {
                snapshot,
                directory: state,
                mailbox: owner.mailbox(),
                now,
                ids,
            })
        })?;
        if decision.batch.is_empty() {
            return Ok(decision.entry);
        }
        match state.store().commit(decision.batch).await {
            Ok(_) => return Ok(decision.entry),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::Contended)
}
