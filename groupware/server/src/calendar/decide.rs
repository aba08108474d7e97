//! From a decision to a durable change: read a snapshot, decide, commit; on a conflict again.

use groupware_calendar::{CalendarError, Context, Decision, Entry, Ids};
use groupware_store::{CommitError, Snapshot};

use super::{
    lane::{InLane, Lane},
    reply::Failure,
};
use crate::{AppState, Owner};

/// How often a change is decided before it is given up. Since those who lose a round stand in
/// line for the record that it was lost on, this takes a change of many records, each of which
/// is changed by others.
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
/// Whoever was too slow goes in the lane of the record that was changed meanwhile, and whoever
/// finds a record's lane taken waits for it at once. So two hundred answers to one meeting are
/// two hundred commits, one after the other, rather than two hundred at a time of which one
/// counts.
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
    let mut going: Option<InLane> = None;
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
        let lanes = Lane::of_all(&decision.batch);
        let busy = lanes.iter().find(|lane| lane.is_taken());
        if let (None, Some(lane)) = (&going, busy) {
            going = Some(lane.enter().await);
            continue;
        }
        match state.store().commit(decision.batch).await {
            Ok(_) => return Ok(decision.entry),
            Err(CommitError::Conflict { index }) => {
                let Some(lane) = lanes.get(index) else {
                    continue;
                };
                if !going.as_ref().is_some_and(|going| going.is(*lane)) {
                    // Nobody holds one lane and waits for another.
                    drop(going.take());
                    going = Some(lane.enter().await);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failure::Contended)
}
