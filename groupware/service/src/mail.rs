//! Mail's decisions on the way to the store.

use std::time::Duration;

use groupware_mail::{Context, Decision, Ids, MailError, Reason, Unid, limits};
use groupware_store::{Batch, Snapshot};

use crate::caller::Caller;
use crate::change::{self, ChangeError};
use crate::quotas::{Look, NoRoom};
use crate::service::Service;
use crate::user::User;

/// How many batches one request may take to its end; each removes or moves some thousand messages.
const BATCHES: u32 = 1000;

/// Reads from one snapshot.
///
/// # Errors
/// What `read` returns.
pub fn read<T>(
    service: &Service,
    read: impl FnOnce(&dyn Snapshot) -> Result<T, MailError>,
) -> Result<T, MailError> {
    service.store().read(read)
}

/// Decides about a user's own mailbox as [`change_in`] does.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change(
    service: &Service,
    owner: &User,
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    change_in(service, (owner.caller(), owner.mailbox()), decide).await
}

/// Decides on a fresh snapshot and commits, until nobody else was faster and there is no more to
/// do. Gives the message that came of it.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change_in(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    let at = (caller, mailbox);
    let (now_us, uptime) = (service.now_us(), service.uptime());
    for _ in 0..BATCHES {
        let round = Round::new(service, now_us, uptime);
        let changed = change::change(service, caller, |snapshot| {
            round.decide(service, at, snapshot, &decide)
        });
        let (made, more) = changed.await?;
        if !more {
            return Ok(made);
        }
        // A commit need not have waited: whoever came to this thread meanwhile has a turn.
        tokio::task::yield_now().await;
    }
    Ok(None)
}

/// Decides as [`change_in`] does about a message of so many bytes, and where these are many apart from whoever
/// else is served. There is one batch.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change_with_message(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    bytes: usize,
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError> + Send + Sync + 'static,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    if bytes as u64 <= limits::LARGE_BYTES {
        return change_in(service, (caller, mailbox), decide).await;
    }
    let round = Round::new(service, service.now_us(), service.uptime());
    let (there, of) = (service.clone(), (caller.clone(), mailbox.to_owned()));
    let changed = change::change_aside(service, caller, move |snapshot| {
        round.decide(&there, (&of.0, &of.1), snapshot, &decide)
    });
    let (made, _) = changed.await?;
    Ok(made)
}

/// One batch, however often it is decided.
struct Round {
    now_us: i64,
    ids: Ids,
    look: Look,
}

impl Round {
    fn new(service: &Service, now_us: i64, uptime: Duration) -> Self {
        Self {
            now_us,
            ids: Ids::from_random(service.random_bits()),
            look: Look::new(uptime),
        }
    }

    /// The batch, the message that comes of it, and whether there is more to do.
    fn decide(
        &self,
        service: &Service,
        (caller, mailbox): (&Caller, &str),
        snapshot: &dyn Snapshot,
        decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
    ) -> Result<(Batch, (Option<Unid>, bool)), MailError> {
        let decision = decide(&Context {
            snapshot,
            directory: service.people(),
            mailbox,
            now_us: self.now_us,
            ids: self.ids,
            quota_bytes: service.settings().mail_quota_bytes,
        })?;
        let of = (caller, mailbox);
        self.look
            .at(&service.quotas, of, snapshot, &decision.batch)?
            .map_err(|full| refusal(&full, mailbox))?;
        Ok((decision.batch, (decision.made, decision.more)))
    }
}

fn refusal(full: &NoRoom, mailbox: &str) -> MailError {
    let reason = match full {
        NoRoom::Full(_) => Reason::OverQuota,
        NoRoom::TooMuch(_) => Reason::TooOften,
    };
    MailError::refused(reason, full.message(mailbox))
}
