//! From a decision to a durable change: read a snapshot, decide, commit; on a conflict again.

use groupware_store::{Batch, CommitError, Snapshot, StoreError};

use crate::AppState;
use crate::lane::{InLane, Lane};

/// How often a change is decided before it is given up. Since those who lose a round stand in
/// line for the record that it was lost on, this takes a change of many records, each of which
/// is changed by others.
const ROUNDS: u32 = 16;

/// Why a change did not come about.
#[derive(Debug)]
pub(crate) enum ChangeError<E> {
    /// It was decided that it may not.
    Decided(E),
    /// Others kept changing the same records.
    Contended,
    /// The store did not take it.
    Commit(CommitError),
}

/// Decides on a fresh snapshot and commits, until nobody else was faster.
///
/// Whoever was too slow goes in the lane of the record that was changed meanwhile, and whoever
/// finds a record's lane taken waits for it at once. So two hundred answers to one meeting are
/// two hundred commits, one after the other, rather than two hundred at a time of which one
/// counts.
///
/// # Errors
/// The decision's; [`ChangeError::Contended`] after [`ROUNDS`] lost rounds; the store's.
pub(crate) async fn change<T, E: From<StoreError>>(
    state: &AppState,
    decide: impl Fn(&dyn Snapshot) -> Result<(Batch, T), E>,
) -> Result<T, ChangeError<E>> {
    let mut going: Option<InLane> = None;
    for _ in 0..ROUNDS {
        let decided = state.store().read(&decide);
        let (batch, outcome) = decided.map_err(ChangeError::Decided)?;
        if batch.is_empty() {
            return Ok(outcome);
        }
        let lanes = Lane::of_all(&batch);
        let busy = lanes.iter().find(|lane| lane.is_taken());
        if let (None, Some(lane)) = (&going, busy) {
            going = Some(lane.enter().await);
            continue;
        }
        match state.store().commit(batch).await {
            Ok(_) => return Ok(outcome),
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
            Err(error) => return Err(ChangeError::Commit(error)),
        }
    }
    Err(ChangeError::Contended)
}
