//! Commits decisions about documents.

use groupware_documents::{Context, Decision, DocumentError, Principal, Reason};
use groupware_runtime::Caller;
use groupware_store::Snapshot;

use crate::change::{self, ChangeError};
use crate::quotas::{NoRoom, QuotaCheck};
use crate::service::Service;

/// Decides on a fresh snapshot and commits; repeats on a conflict. New identifiers derive from the
/// random bits.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change<T>(
    service: &Service,
    caller: &Caller,
    (who, bits): (Principal<'_>, u128),
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, ChangeError<DocumentError>> {
    let (now, uptime) = (service.now_s(), service.uptime());
    let look = QuotaCheck::new(uptime);
    let changed = change::change(service, caller, |snapshot| {
        let decision = decide(&Context {
            snapshot,
            who,
            now,
            bits,
            quota_bytes: service.quota_bytes(),
        })?;
        look.at(
            &service.quotas,
            (caller, who.mailbox),
            snapshot,
            &decision.batch,
        )?
        .map_err(|full| refusal(&full, who.mailbox))?;
        Ok((decision.batch, decision.outcome))
    });
    changed.await
}

/// As for mail and meetings.
fn refusal(full: &NoRoom, mailbox: &str) -> DocumentError {
    let reason = match full {
        NoRoom::Full(_) => Reason::OverQuota,
        NoRoom::TooMuch(_) => Reason::TooOften,
        NoRoom::Disk => Reason::DiskFull,
    };
    DocumentError::refused(reason, full.message(mailbox))
}

/// Returns the bytes that a user may still store, of one quota for all services.
///
/// # Errors
/// Errors of the store.
pub fn room(service: &Service, mailbox: &str) -> Result<u64, DocumentError> {
    let now = service.uptime();
    let room = |snapshot: &dyn Snapshot| service.quotas.room(snapshot, mailbox, now);
    Ok(service.store().read(room)?)
}
