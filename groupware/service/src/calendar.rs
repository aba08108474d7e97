//! The calendar's decisions on the way to the store.

use groupware_calendar::{CalendarError, Context, Decision, Entry, Ids};
use groupware_store::Snapshot;

use crate::change::{self, ChangeError};
use crate::service::Service;
use crate::user::User;

/// Reads from one snapshot.
///
/// # Errors
/// What `read` returns.
pub fn read<T>(
    service: &Service,
    read: impl FnOnce(&dyn Snapshot) -> Result<T, CalendarError>,
) -> Result<T, CalendarError> {
    service.store().read(read)
}

/// Decides on a fresh snapshot and commits, until nobody else was faster.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change(
    service: &Service,
    owner: &User,
    decide: impl Fn(&Context<'_>) -> Result<Decision, CalendarError>,
) -> Result<Option<Entry>, ChangeError<CalendarError>> {
    let now = service.now_s();
    let ids = Ids::from_random(service.random_bits());
    let changed = change::change(service, owner.caller(), |snapshot| {
        let decision = decide(&Context {
            snapshot,
            directory: service.directory(),
            mailbox: owner.mailbox(),
            now,
            ids,
        })?;
        Ok((decision.batch, decision.entry))
    });
    changed.await
}
