//! Decisions about documents on the way to the store.

use groupware_documents::{Context, Decision, DocumentError, Who};

use crate::caller::Caller;
use crate::change::{self, ChangeError};
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
    let now = service.now_s();
    let changed = change::change(service, caller, |snapshot| {
        let decision = decide(&Context {
            snapshot,
            who,
            now,
            bits,
            quota_bytes: service.settings().quota_bytes,
        })?;
        Ok((decision.batch, decision.outcome))
    });
    changed.await
}
