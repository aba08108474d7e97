//! From a decision to a durable change: read a snapshot, decide, commit; on a conflict again.

use groupware_mail::{Context, Decision, Ids, MailError, Unid};
use groupware_store::{CommitError, Snapshot, StoreError};
use http::StatusCode;

use crate::AppState;
use crate::error::ApiError;
use crate::lane::{InLane, Lane};

/// How often a change is decided before it is given up.
const ROUNDS: u32 = 16;
/// How many batches one request may take to its end; each removes or moves some thousand messages.
const BATCHES: u32 = 1000;

/// Why a change did not happen.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was refused, or the mailbox can't be read.
    Mail(MailError),
    /// The store did not take it.
    Commit(CommitError),
}

impl From<MailError> for Failure {
    fn from(error: MailError) -> Self {
        Self::Mail(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Mail(error.into())
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Mail(error) => error.into(),
            Failure::Commit(error) => error.into(),
        }
    }
}

impl From<MailError> for ApiError {
    fn from(error: MailError) -> Self {
        match error {
            MailError::Refused { reason, message } => {
                let status = StatusCode::from_u16(reason.status());
                Self::new(status.unwrap_or(StatusCode::BAD_REQUEST), message)
            }
            // Names of records are for the administrator only.
            MailError::Unreadable(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The mailbox can't be read.",
            ),
        }
    }
}

/// Reads from one snapshot.
pub(crate) fn read<T>(
    state: &AppState,
    read: impl FnOnce(&dyn Snapshot) -> Result<T, MailError>,
) -> Result<T, MailError> {
    state.store().read(read)
}

/// Decides on a fresh snapshot and commits, until nobody else was faster and there is no more to
/// do. Gives the message that came of it.
///
/// Whoever was too slow goes in the lane of the record that was changed meanwhile, and whoever
/// finds a record's lane taken waits for it at once, as for the calendar.
///
/// # Errors
/// The decision's; a conflict after too many lost rounds; the store's.
pub(crate) async fn change(
    state: &AppState,
    mailbox: &str,
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<Option<Unid>, Failure> {
    let now_us = state.now_us();
    for _ in 0..BATCHES {
        let ids = Ids::from_random(state.random_bits());
        let (made, more) = change_once(state, (mailbox, now_us, ids), &decide).await?;
        if !more {
            return Ok(made);
        }
        // A commit need not have waited: whoever came to this thread meanwhile has a turn.
        tokio::task::yield_now().await;
    }
    Ok(None)
}

async fn change_once(
    state: &AppState,
    (mailbox, now_us, ids): (&str, i64, Ids),
    decide: &impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<(Option<Unid>, bool), Failure> {
    let mut going: Option<InLane> = None;
    for _ in 0..ROUNDS {
        let decision = read(state, |snapshot| {
            decide(&Context {
                snapshot,
                directory: state,
                mailbox,
                now_us,
                ids,
                quota_bytes: state.settings.mail_quota_bytes,
            })
        })?;
        let done = (decision.made, decision.more);
        if decision.batch.is_empty() {
            return Ok(done);
        }
        let lanes = Lane::of_all(&decision.batch);
        let busy = lanes.iter().find(|lane| lane.is_taken());
        if let (None, Some(lane)) = (&going, busy) {
            // Nobody waits with a batch in hand.
            drop(decision.batch);
            going = Some(lane.enter().await);
            continue;
        }
        match state.commit(decision.batch).await {
            Ok(_) => return Ok(done),
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
            Err(error) => return Err(Failure::Commit(error)),
        }
    }
    Err(Failure::Commit(CommitError::Conflict { index: 0 }))
}
