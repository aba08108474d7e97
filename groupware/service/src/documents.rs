//! Decisions about documents on the way to the store.

use groupware_documents::{self as documents, Context, Decision, DocumentError, Reason, Who};

use groupware_net::Source;
use groupware_runtime::Caller;

use crate::change::{self, ChangeError};
use crate::quotas::{Look, NoRoom};
use crate::service::Service;

/// Decides on a fresh snapshot and commits, until nobody else was faster. Identifiers are made from
/// these random bits.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change<T>(
    service: &Service,
    caller: &Caller,
    (who, bits): (Who<'_>, u128),
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, ChangeError<DocumentError>> {
    let (now, uptime) = (service.now_s(), service.uptime());
    let look = Look::new(uptime);
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

/// As it is for mail and meetings.
fn refusal(full: &NoRoom, mailbox: &str) -> DocumentError {
    let reason = match full {
        NoRoom::Full(_) => Reason::OverQuota,
        NoRoom::TooMuch(_) => Reason::TooOften,
        NoRoom::Disk => Reason::DiskFull,
    };
    DocumentError::refused(reason, full.message(mailbox))
}

/// The bytes that a user may still store, of one share for all services.
///
/// # Errors
/// The store's.
pub fn room(service: &Service, caller: &Caller, mailbox: &str) -> Result<u64, DocumentError> {
    let store = service.store();
    match caller.source() {
        Source::Trusted => {
            let quota_bytes = service.quota_bytes();
            store.read(|snapshot| documents::room(snapshot, mailbox, quota_bytes))
        }
        _ => {
            let now = service.uptime();
            store.read(|snapshot| Ok(service.quotas.room(snapshot, mailbox, now)?))
        }
    }
}
