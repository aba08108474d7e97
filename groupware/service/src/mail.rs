//! Mail's decisions on the way to the store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use groupware_mail::numbering::{self, Unnumbered};
use groupware_mail::{
    Context, Decision, Ids, MailError, Reason, Unid, limits, mark, restored, stored_bytes,
};
use groupware_runtime::Caller;
use groupware_store::{Batch, CommitError, Snapshot, StoreError};

use crate::change::{self, ChangeError, patiently};
use crate::quotas::{Look, NoRoom};
use crate::service::Service;
use crate::user::User;

/// How many batches one request may take to its end; each removes or moves a hundred messages at most.
const BATCHES: u32 = 100_000;
/// Others may change the same mailbox at the same moment; so often in a row they may be faster.
const ROUNDS: u32 = 1000;

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

/// Decides on a fresh snapshot and commits, until nobody else was faster. Gives the message that came of it.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change_in(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    let (made, _) = change_once(service, (caller, mailbox), &decide).await?;
    Ok(made)
}

/// What comes of a change, and whether there is more to do.
async fn change_once(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<(Option<Unid>, bool), ChangeError<MailError>> {
    let round = Round::new(service, service.now_us(), service.uptime());
    let decide =
        |snapshot: &dyn Snapshot| round.decide(service, (caller, mailbox), snapshot, &decide);
    change::change(service, caller, decide).await
}

/// Decides about a user's own mailbox and commits until there is no more to do: what one batch doesn't do is done
/// apart from whoever else is served, in batches behind all that others write. What is begun is done to its
/// end, whether somebody waits or not.
///
/// # Errors
/// See [`ChangeError`]; then some may be done.
pub async fn change_in_slices(
    service: &Service,
    owner: &User,
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError> + Send + Sync + 'static,
) -> Result<(), ChangeError<MailError>> {
    let at = (owner.caller(), owner.mailbox());
    let (_, more) = change_once(service, at, &decide).await?;
    if !more {
        return Ok(());
    }
    let (there, caller, mailbox) = (service.clone(), at.0.clone(), at.1.to_owned());
    let slices = move || all_slices(&there, (&caller, &mailbox), decide);
    service.clear(at.0, slices).await
}

fn all_slices(
    service: &Service,
    at: (&Caller, &str),
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<(), ChangeError<MailError>> {
    let mut lost = 0;
    for _ in 0..BATCHES {
        let round = Round::new(service, service.now_us(), service.uptime());
        let read = |snapshot: &dyn Snapshot| round.decide(service, at, snapshot, &decide);
        let decided = service.store().read(read).map_err(ChangeError::Decided)?;
        let (batch, (_, more)) = decided;
        if batch.is_empty() {
            return Ok(());
        }
        match service.store().commit_patiently(batch) {
            Ok(_) if !more => return Ok(()),
            Ok(_) => lost = 0,
            Err(CommitError::Conflict { .. }) if lost < ROUNDS => lost += 1,
            Err(CommitError::Conflict { .. }) => return Err(ChangeError::Contended),
            Err(error) => return Err(ChangeError::Commit(error)),
        }
    }
    Ok(())
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

/// Notes that a message was read. Where there is no room for the note, it is read all the same.
///
/// # Errors
/// See [`ChangeError`].
pub async fn note_read(
    service: &Service,
    owner: &User,
    unid: Unid,
) -> Result<(), ChangeError<MailError>> {
    let marked = change(service, owner, |context| mark(context, &[unid], true));
    match marked.await {
        Ok(_) | Err(ChangeError::Commit(CommitError::Full)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a message of so many bytes has room in a mailbox, as far as that is known before it is there.
///
/// # Errors
/// The store's.
pub fn has_room(service: &Service, (mailbox, bytes): (&Arc<str>, u64)) -> Result<bool, StoreError> {
    let now = service.uptime();
    service.store().read(|snapshot| {
        if let Some(most) = service.mail_quota_bytes()
            && stored_bytes(snapshot, mailbox)?.saturating_add(bytes) > most
        {
            return Ok(false);
        }
        let message = (mailbox, bytes);
        service.quotas.may_take(snapshot, message, now)
    })
}

/// Gives numbers to the messages of a mailbox that have none, in batches behind all that others write, until there are
/// none or it is told to stop; how many there were. Where all have some, that is found out by one look.
///
/// # Errors
/// As [`change_in_slices`]; then some may have theirs.
pub fn number_all(
    service: &Service,
    (mailbox, thorough): (&str, bool),
    is_stopped: impl Fn() -> bool,
) -> Result<usize, ChangeError<MailError>> {
    let found = service
        .store()
        .read(|snapshot| numbering::unnumbered(snapshot, mailbox, thorough));
    let mut count = 0;
    for Unnumbered { folder, messages } in found.map_err(ChangeError::Decided)? {
        for some in messages.chunks(limits::SWEPT_AT_ONCE) {
            if is_stopped() {
                return Ok(count);
            }
            let now_us = service.now_us();
            patiently(service, |snapshot| {
                let batch = numbering::number(snapshot, (mailbox, folder), some, now_us)?;
                Ok::<_, MailError>((batch, ()))
            })?;
            count += some.len();
        }
        patiently(service, |snapshot| {
            let batch = numbering::settle(snapshot, mailbox, folder)?;
            Ok::<_, MailError>((batch, ()))
        })?;
    }
    Ok(count)
}

/// Has all mailboxes count from new numbers where the data are those of an earlier moment, before anybody is served;
/// whether they were. Another server that begins at the same time does some of it, and neither ends before all is done.
///
/// # Errors
/// See [`ChangeError`]; then whoever begins next goes on with it.
pub fn after_restore(service: &Service) -> Result<bool, ChangeError<MailError>> {
    let store = service.store();
    let is_noted = store.read(restored::is_noted);
    if !is_noted.map_err(|error| ChangeError::Decided(error.into()))? {
        return Ok(false);
    }
    let mut mailboxes: Vec<_> = service.auth.directory().keys();
    mailboxes.sort();
    let now_s = service.now_us() / 1_000_000;
    loop {
        let slice = store.read(|snapshot| restored::next_slice(snapshot, &mailboxes, now_s));
        let Some(batch) = slice.map_err(ChangeError::Decided)? else {
            return Ok(true);
        };
        match store.commit_blocking(batch) {
            // Another server has done this slice.
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(ChangeError::Commit(error)),
        }
    }
}

/// One batch, however often it is decided.
struct Round {
    now_us: i64,
    ids: Ids,
    look: Look,
    /// Others whose shares have no room for what is decided.
    full: Mutex<BTreeSet<Arc<str>>>,
}

impl Round {
    fn new(service: &Service, now_us: i64, uptime: Duration) -> Self {
        Self {
            now_us,
            ids: Ids::from_random(service.random_bits()),
            look: Look::new(uptime),
            full: Mutex::default(),
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
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let decision = decide(&Context {
                snapshot,
                directory: service.auth.people(),
                mailbox,
                now_us: self.now_us,
                ids: self.ids,
                quota_bytes: service.mail_quota_bytes(),
                full: &full,
            })?;
            let of = (caller, mailbox);
            let checked = self
                .look
                .at(&service.quotas, of, snapshot, &decision.batch)?;
            match checked {
                Ok(()) => return Ok((decision.batch, (decision.made, decision.more))),
                // Those who are known already were not left out: the decision is not of a kind that does.
                Err(NoRoom::Full(others))
                    if !others.contains(mailbox) && !others.is_subset(&full) =>
                {
                    full.extend(others);
                }
                Err(reason) => return Err(refusal(&reason, mailbox)),
            }
        }
    }
}

fn refusal(full: &NoRoom, mailbox: &str) -> MailError {
    let reason = match full {
        NoRoom::Full(_) => Reason::OverQuota,
        NoRoom::TooMuch(_) => Reason::TooOften,
        NoRoom::Disk => Reason::DiskFull,
    };
    MailError::refused(reason, full.message(mailbox))
}
