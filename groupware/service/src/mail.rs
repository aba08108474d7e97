//! Mail's decisions on the way to the store.

use groupware_mail::{Context, Decision, Ids, MailError, Reason, Unid};
use groupware_store::Snapshot;

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
    let (now_us, uptime) = (service.now_us(), service.uptime());
    for _ in 0..BATCHES {
        let ids = Ids::from_random(service.random_bits());
        let look = Look::new(&service.quotas, (caller, mailbox), uptime);
        let changed = change::change(service, caller, |snapshot| {
            let decision = decide(&Context {
                snapshot,
                directory: service.directory(),
                mailbox,
                now_us,
                ids,
                quota_bytes: service.settings().mail_quota_bytes,
            })?;
            look.at(snapshot, &decision.batch)?
                .map_err(|full| refusal(&full, mailbox))?;
            Ok((decision.batch, (decision.made, decision.more)))
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

fn refusal(full: &NoRoom, mailbox: &str) -> MailError {
    let reason = match full {
        NoRoom::Full(_) => Reason::OverQuota,
        NoRoom::TooMuch(_) => Reason::TooOften,
    };
    MailError::refused(reason, full.message(mailbox))
}
