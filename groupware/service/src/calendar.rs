//! Commits the calendar's decisions.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub use groupware_calendar::PREFIX;
use groupware_calendar::{CalendarError, Context, Decision, Entry, Ids, Reason};
use groupware_runtime::Caller;
use groupware_store::Snapshot;

use crate::change::{self, ChangeError};
use crate::quotas::{NoRoom, QuotaCheck};
use crate::service::Service;
use crate::user::User;

/// Reads one state, which may be cached.
///
/// # Errors
/// What `read` returns.
pub fn read<T>(
    service: &Service,
    read: impl Fn(&dyn Snapshot) -> Result<T, CalendarError>,
) -> Result<T, CalendarError> {
    service.store().look(read)
}

/// Decides on a fresh snapshot and commits; repeats on a conflict.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change(
    service: &Service,
    owner: &User,
    decide: impl Fn(&Context<'_>) -> Result<Decision, CalendarError>,
) -> Result<Option<Entry>, ChangeError<CalendarError>> {
    let (now, uptime) = (service.now_s(), service.uptime());
    let ids = Ids::from_random(service.random_bits());
    let (caller, mailbox) = (owner.caller(), owner.mailbox());
    let look = QuotaCheck::new(uptime);
    let is_first = AtomicBool::new(true);
    let changed = change::change(service, caller, |snapshot| {
        let decision = decide(&Context {
            snapshot,
            directory: service.auth.people(),
            mailbox,
            now,
            ids,
            presumes_absent: is_first.swap(false, Relaxed),
        })?;
        look.at(
            &service.quotas,
            (caller, mailbox),
            snapshot,
            &decision.batch,
        )?
        .map_err(|full| refusal(&full, mailbox))?;
        Ok((decision.batch, decision.entry))
    });
    changed.await
}

/// Decides on a fresh snapshot and commits, as [`change`] does, but decides in the background pool:
/// for decisions that take long. Returns the outcome.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change_aside<T: Send + 'static>(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    decide: impl Fn(&Context<'_>) -> Result<(Decision, T), CalendarError> + Send + Sync + 'static,
) -> Result<T, ChangeError<CalendarError>> {
    let (now, look) = (service.now_s(), QuotaCheck::new(service.uptime()));
    let ids = Ids::from_random(service.random_bits());
    let (there, of, to) = (service.clone(), caller.clone(), mailbox.to_owned());
    let changed = change::change_aside(service, caller, move |snapshot| {
        let (decision, outcome) = decide(&Context {
            snapshot,
            directory: there.auth.people(),
            mailbox: &to,
            now,
            ids,
            presumes_absent: false,
        })?;
        let of = (&of, &*to);
        look.at(&there.quotas, of, snapshot, &decision.batch)?
            .map_err(|full| refusal(&full, &to))?;
        Ok((decision.batch, outcome))
    });
    changed.await
}

/// Extends the expanded lists of imported series of a calendar where they need it; returns their number.
///
/// # Errors
/// See [`ChangeError`]; earlier extensions stay committed.
pub fn extend_all(
    service: &Service,
    mailbox: &str,
    is_stopped: impl Fn() -> bool,
) -> Result<usize, ChangeError<CalendarError>> {
    let (mut after, mut count): (Option<String>, _) = (None, 0);
    while !is_stopped() {
        let extended = change::patiently(service, |snapshot| {
            let now = service.now_s();
            let extension = groupware_calendar::extend(snapshot, mailbox, after.as_deref(), now)?;
            Ok((extension.batch, (extension.count, extension.last)))
        });
        let (some, last) = extended?;
        count += some;
        match last {
            Some(last) => after = Some(last),
            None => break,
        }
    }
    Ok(count)
}

fn refusal(full: &NoRoom, mailbox: &str) -> CalendarError {
    let reason = match full {
        NoRoom::Full(_) => Reason::OverQuota,
        NoRoom::TooMuch(_) => Reason::TooOften,
        NoRoom::Disk => Reason::DiskFull,
    };
    CalendarError::refused(reason, full.message(mailbox))
}
