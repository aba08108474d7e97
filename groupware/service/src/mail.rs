//! Commits mail's decisions.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use groupware_mail::numbering::{self, Unnumbered};
use groupware_mail::{
    Context, Decision, Ids, MailError, Reason, Unid, limits, mark, restored, stored_bytes,
};
use groupware_runtime::Caller;
use groupware_store::{Batch, CommitError, Snapshot, StoreError};

use crate::change::{self, ChangeError, patiently};
use crate::deliveries::{self, Delivery, Fingerprint, LOOK_AGAIN, Looks, Recorded, Shown};
use crate::quotas::{NoRoom, QuotaCheck};
use crate::service::Service;
use crate::user::User;

/// The maximum number of batches per request; each removes or moves a hundred messages at most.
const BATCHES: u32 = 100_000;
/// The maximum number of consecutive conflicts with other changes of the same account.
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

/// Decides about a user's own account as [`change_in`] does.
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

/// Decides on a fresh snapshot and commits; repeats on a conflict. Returns the message that was created.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change_in(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    let round = Round::new(service);
    let outcome = change_once(service, (caller, mailbox), &round, &decide).await?;
    Ok(outcome.made)
}

async fn change_once(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    round: &Round,
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
) -> Result<Outcome, ChangeError<MailError>> {
    let decide =
        |snapshot: &dyn Snapshot| round.decide(service, (caller, mailbox), snapshot, &decide);
    change::change(service, caller, decide).await
}

/// Decides about a user's own account and commits until nothing is left to do: all batches after
/// the first run in the background at low priority. Once started, it finishes even if the caller is
/// dropped.
///
/// # Errors
/// See [`ChangeError`]; a part may be committed then.
pub async fn change_in_slices(
    service: &Service,
    owner: &User,
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError> + Send + Sync + 'static,
) -> Result<(), ChangeError<MailError>> {
    let at = (owner.caller(), owner.mailbox());
    let round = Round::new(service);
    if !change_once(service, at, &round, &decide).await?.more {
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
        let round = Round::new(service);
        let read = |snapshot: &dyn Snapshot| round.decide(service, at, snapshot, &decide);
        let decided = service.store().read(read).map_err(ChangeError::Decided)?;
        let (batch, Outcome { more, .. }) = decided;
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

/// Decides as [`change_in`] does about a message of this size; a large one runs in the background
/// pool. There is one batch.
///
/// # Errors
/// See [`ChangeError`].
pub async fn change_with_message(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    bytes: usize,
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError> + Send + Sync + 'static,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    let round = Arc::new(Round::new(service));
    let is_large = bytes as u64 > limits::LARGE_BYTES;
    let outcome = change_by_size(service, (caller, mailbox), (&round, is_large), decide).await?;
    Ok(outcome.made)
}

/// Decides and commits, for a large message in the background pool.
async fn change_by_size(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    (round, is_large): (&Arc<Round>, bool),
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError> + Send + Sync + 'static,
) -> Result<Outcome, ChangeError<MailError>> {
    if !is_large {
        return change_once(service, (caller, mailbox), round, decide).await;
    }
    let (there, of) = (service.clone(), (caller.clone(), mailbox.to_owned()));
    let round = Arc::clone(round);
    change::change_aside(service, caller, move |snapshot| {
        round.decide(&there, (&of.0, &of.1), snapshot, &decide)
    })
    .await
}

/// Decides as [`change_with_message`] does about a message from a client. A retry of a delivery
/// with an unknown outcome is stored once: `sent` identifies it. If it can't be determined whether
/// it is a retry, its outcome is unknown.
///
/// # Errors
/// See [`ChangeError`].
pub async fn deliver(
    service: &Service,
    (caller, mailbox): (&Caller, &str),
    (bytes, sent): (usize, impl FnOnce() -> Fingerprint + Send + 'static),
    decide: impl Fn(&Context<'_>) -> Result<Decision, MailError> + Send + Sync + 'static,
) -> Result<Option<Unid>, ChangeError<MailError>> {
    let is_large = bytes as u64 > limits::LARGE_BYTES;
    let sent = service.work(caller, is_large, sent).await;
    let delivery = Delivery::new(mailbox, sent, service.random_bits());
    let mut round = Round::new(service);
    round.delivery = Some(delivery);
    let round = Arc::new(round);
    let under_way = service.deliveries.begin(delivery);
    let decide = Arc::new(decide);
    let mut looks = Looks::default();
    loop {
        let decide = Arc::clone(&decide);
        let decide = move |context: &Context<'_>| decide(context);
        let at = (caller, mailbox);
        let outcome = change_by_size(service, at, (&round, is_large), decide).await?;
        let Some(recorded) = outcome.repeated else {
            under_way.answer();
            return Ok(outcome.made);
        };
        // It may be completed just now: then the record is about to be removed.
        match looks.at(&recorded, service.is_shared(), service.now_s()) {
            Shown::LookAgain => caller.yield_until(tokio::time::sleep(LOOK_AGAIN)).await,
            Shown::Repeated => {
                under_way.answer_for(&recorded);
                return Ok(outcome.made);
            }
            Shown::Unclear => return Err(ChangeError::Commit(deliveries::unclear())),
        }
    }
}

/// Marks a message as read. Without room for that, the message can still be read.
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

/// Returns true if a message of this size has room in an account, as far as that is known before it arrives.
///
/// # Errors
/// Errors of the store.
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

/// Assigns numbers to the messages of an account without any, in batches at low priority, until
/// there are none or it is stopped; returns their number. If all have numbers, one read is enough.
///
/// # Errors
/// As [`change_in_slices`]; some may have numbers then.
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

/// Gives all accounts new numbers if the data were restored to an earlier state, before the first request;
/// returns whether they were. Concurrent servers share the work, and none returns before all is done.
///
/// # Errors
/// See [`ChangeError`]; the next server to start continues.
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

/// The inputs of one batch, the same for each repeated decision.
struct Round {
    now_us: i64,
    ids: Ids,
    look: QuotaCheck,
    /// Other users without room for the delivery.
    full: Mutex<BTreeSet<Arc<str>>>,
    /// The delivery to record with it.
    delivery: Option<Delivery>,
    /// Whether a batch has failed that asserts the delivery's record absent: only then is the record looked up.
    has_tried: AtomicBool,
}

/// The outcome of a decision.
struct Outcome {
    /// The created message.
    made: Option<Unid>,
    /// Whether there is more to do.
    more: bool,
    /// The record of the delivery that this one repeats: nothing is stored then.
    repeated: Option<Recorded>,
}

impl Round {
    fn new(service: &Service) -> Self {
        Self {
            now_us: service.now_us(),
            ids: Ids::from_random(service.random_bits()),
            look: QuotaCheck::new(service.uptime()),
            full: Mutex::default(),
            delivery: None,
            has_tried: AtomicBool::new(false),
        }
    }

    fn now_s(&self) -> i64 {
        self.now_us / 1_000_000
    }

    /// Returns the record of an equal delivery, if there is one.
    fn recorded(&self, snapshot: &dyn Snapshot) -> Result<Option<Recorded>, MailError> {
        match &self.delivery {
            Some(delivery) if self.has_tried.swap(true, Relaxed) => {
                Ok(delivery.recorded(snapshot)?)
            }
            _ => Ok(None),
        }
    }

    /// Returns the batch and its outcome.
    fn decide(
        &self,
        service: &Service,
        (caller, mailbox): (&Caller, &str),
        snapshot: &dyn Snapshot,
        decide: impl Fn(&Context<'_>) -> Result<Decision, MailError>,
    ) -> Result<(Batch, Outcome), MailError> {
        let recorded = self.recorded(snapshot)?;
        let is_repeated = |it: &Recorded| !it.is_old(self.now_s()) && !service.deliveries.has(it);
        if let Some(repeated) = recorded.filter(is_repeated) {
            let outcome = Outcome {
                made: repeated.made,
                more: false,
                repeated: Some(repeated),
            };
            return Ok((Batch::new(), outcome));
        }
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let mut decision = decide(&Context {
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
                Ok(()) => {
                    if let Some(delivery) = self.delivery
                        && !decision.batch.is_empty()
                    {
                        let made = (decision.made, self.now_s());
                        delivery.record(&mut decision.batch, recorded, made);
                    }
                    let outcome = Outcome {
                        made: decision.made,
                        more: decision.more,
                        repeated: None,
                    };
                    return Ok((decision.batch, outcome));
                }
                // If those were excluded already, the decision is of a kind that can't exclude recipients.
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

#[cfg(test)]
mod tests {
    use groupware_store::{self as store, Engine, Record, Store, StoreOptions, Writer};
    use std::ops::ControlFlow;

    use super::*;
    use crate::fingerprint;
    use crate::service::Settings;

    /// A store in memory that doesn't report the outcome of a batch.
    #[derive(Clone)]
    struct Silent {
        store: Store,
        /// Whether batches are committed nevertheless.
        takes: Arc<AtomicBool>,
        is_silent: Arc<AtomicBool>,
    }

    impl Engine for Silent {
        fn name(&self) -> &'static str {
            "silent"
        }

        fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
            Ok(Box::new(self.clone()))
        }

        fn data_bytes(&self) -> Result<u64, StoreError> {
            Ok(0)
        }

        fn check(&self) -> Result<Vec<String>, StoreError> {
            Ok(Vec::new())
        }
    }

    impl Snapshot for Silent {
        fn walk(
            &self,
            after: Option<(&str, &[u8])>,
            limit: usize,
            visit: &mut dyn FnMut(&str, &[u8], Record) -> ControlFlow<()>,
        ) -> Result<(), StoreError> {
            self.store
                .read(|snapshot| snapshot.walk(after, limit, visit))
        }

        fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError> {
            self.store.read(|snapshot| snapshot.get(partition, key))
        }

        fn scan(
            &self,
            partition: &str,
            from: &[u8],
            to: Option<&[u8]>,
            limit: usize,
            visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
        ) -> Result<(), StoreError> {
            self.store
                .read(|snapshot| snapshot.scan(partition, from, to, limit, visit))
        }
    }

    impl Writer for Silent {
        fn commit(&mut self, group: &[&Batch], outcomes: &mut Vec<store::Outcome>) {
            for batch in group {
                let is_silent = self.is_silent.load(Relaxed);
                let done = match !is_silent || self.takes.load(Relaxed) {
                    true => self.store.commit_blocking((*batch).clone()),
                    false => Err(CommitError::Closed),
                };
                outcomes.push(match (is_silent, done) {
                    (true, done) if !matches!(done, Err(CommitError::Conflict { .. })) => Err(
                        CommitError::Unknown(StoreError::Away(Arc::new(std::fmt::Error))),
                    ),
                    (_, done) => done,
                });
            }
        }
    }

    impl Silent {
        /// Such a store, and a server over it.
        fn start(takes: bool) -> (Self, Service) {
            let silent = Self {
                store: Store::memory(StoreOptions::default()).unwrap(),
                takes: Arc::new(AtomicBool::new(takes)),
                is_silent: Arc::new(AtomicBool::new(true)),
            };
            let service = silent.server(Settings::default());
            (silent, service)
        }

        /// Another server over it.
        fn server(&self, settings: Settings) -> Service {
            let options = StoreOptions::default();
            let store = Store::over(self.clone(), self.clone(), &options).unwrap();
            Service::start(store, settings).unwrap()
        }

        /// The messages in an inbox.
        fn inbox(&self, mailbox: &str) -> Vec<Unid> {
            let inbox = (groupware_mail::Folder::Inbox, None);
            let read = |snapshot: &dyn Snapshot| groupware_mail::page(snapshot, mailbox, inbox, 9);
            let stored = self.store.read(read).unwrap();
            stored.iter().map(|stored| stored.unid).collect()
        }

        /// All records.
        fn records(&self) -> Vec<(String, Vec<u8>, Record)> {
            let mut all = Vec::new();
            let walk = |snapshot: &dyn Snapshot| {
                snapshot.walk(None, usize::MAX, &mut |partition, key, record| {
                    all.push((partition.to_owned(), key.to_vec(), record));
                    ControlFlow::Continue(())
                })
            };
            self.store.read(walk).unwrap();
            all
        }
    }

    /// Sends a message from a remote server to Ada and Ben.
    async fn send(service: &Service, text: &str) -> Result<Option<Unid>, ChangeError<MailError>> {
        let to: BTreeSet<String> = ["ada", "ben"].map(str::to_owned).into();
        let (caller, message) = (Caller::internal(), text.to_owned());
        let again = message.clone();
        let sent = move || fingerprint([again.as_bytes()]);
        deliver(service, (&caller, ""), (text.len(), sent), move |context| {
            groupware_mail::receive(context, &to, "", message.as_bytes())
        })
        .await
    }

    /// Runs a server's job on a thread that may block on the store.
    fn remove_answered(service: &Service) {
        std::thread::scope(|scope| scope.spawn(|| service.remove_answered()).join()).unwrap();
    }

    fn is_unknown(done: &Result<Option<Unid>, ChangeError<MailError>>) -> bool {
        matches!(done, Err(ChangeError::Commit(CommitError::Unknown(_))))
    }

    #[tokio::test]
    async fn a_message_is_stored_once_whatever_became_of_it() {
        for takes in [false, true] {
            let (silent, service) = Silent::start(takes);
            for _ in 0..2 {
                let unknown = send(&service, "Subject: Pier\r\n\r\n").await;
                // Once the record is found, it counts as delivered.
                assert!(is_unknown(&unknown) || (takes && unknown.unwrap().is_some()));
                assert_eq!(silent.inbox("ada").len(), usize::from(takes));
            }
            silent.is_silent.store(false, Relaxed);
            assert!(takes || send(&service, "Subject: Pier\r\n\r\n").await.is_ok());
            assert_eq!(silent.inbox("ada").len(), 1);
            // Later ones are other messages, and so is one with another text.
            for text in ["Quay", "Pier", "Pier"] {
                let text = format!("Subject: {text}\r\n\r\n");
                send(&service, &text).await.unwrap();
            }
            assert_eq!(silent.inbox("ada").len(), 4);
        }
    }

    #[tokio::test]
    async fn a_message_is_stored_once_at_whichever_server_it_is_repeated() {
        const TEXT: &str = "Subject: Pier\r\n\r\n";
        for takes in [false, true] {
            let (silent, first) = Silent::start(takes);
            assert!(is_unknown(&send(&first, TEXT).await));
            drop(first);
            silent.is_silent.store(false, Relaxed);
            let second = silent.server(Settings::default());
            assert!(send(&second, TEXT).await.unwrap().is_some());
            assert_eq!(silent.inbox("ada").len(), 1, "{takes}");
            // It was completed: the same again is another message, on any server.
            send(&second, TEXT).await.unwrap();
            assert_eq!(silent.inbox("ada").len(), 2);
            remove_answered(&second);
            let third = silent.server(Settings::default());
            send(&third, TEXT).await.unwrap();
            assert_eq!(silent.inbox("ada").len(), 3);
        }
    }

    #[tokio::test]
    async fn a_server_waits_for_what_another_one_has_answered_just_now() {
        const TEXT: &str = "Subject: Pier\r\n\r\n";
        let (silent, first) = Silent::start(true);
        silent.is_silent.store(false, Relaxed);
        send(&first, TEXT).await.unwrap();
        let mut settings = Settings::default();
        settings.auth.is_shared = true;
        let second = silent.server(settings);
        let (sent, ()) = tokio::join!(send(&second, TEXT), async { remove_answered(&first) });
        sent.unwrap();
        assert_eq!(silent.inbox("ada").len(), 2);
    }

    #[tokio::test]
    async fn a_server_acknowledges_no_message_whose_repeat_another_one_may_have_answered() {
        let (silent, first) = Silent::start(true);
        silent.is_silent.store(false, Relaxed);
        let mut settings = Settings::default();
        settings.auth.is_shared = true;
        let second = silent.server(settings);
        // One is in doubt; the other was just stored, and the first server may yet remove its record.
        let (old, young) = ("Subject: Pier\r\n\r\n", "Subject: Quay\r\n\r\n");
        let made = Unid::parse("0123456789ABCDEF0123456789ABCDEF");
        let mut batch = Batch::new();
        Delivery::new("", fingerprint([old.as_bytes()]), 1).record(
            &mut batch,
            None,
            (made, second.now_s() - 60),
        );
        silent.store.commit(batch).await.unwrap();
        send(&first, young).await.unwrap();
        let (old, young) = tokio::join!(send(&second, old), send(&second, young));
        assert_eq!(old.unwrap(), made);
        assert!(is_unknown(&young));
        assert_eq!(silent.inbox("ada").len(), 1);
    }

    #[tokio::test]
    async fn what_one_recipient_has_removed_is_not_stored_again() {
        let small = "Subject: Pier\r\n\r\n".to_owned();
        let shared = small.clone() + &"x".repeat(groupware_mail::limits::SHARED_BYTES);
        for (text, removes) in [(&small, "ada"), (&shared, "ada"), (&shared, "ben")] {
            let (silent, service) = Silent::start(true);
            assert!(is_unknown(&send(&service, text).await));
            silent.is_silent.store(false, Relaxed);
            let unids = silent.inbox(removes);
            assert_eq!(unids.len(), 1);
            change_in(&service, (&Caller::internal(), removes), |context| {
                groupware_mail::delete(context, &unids, true)
            })
            .await
            .unwrap();
            let before = silent.records();
            assert!(send(&service, text).await.unwrap().is_some());
            assert_eq!(silent.records(), before);
            let look = |snapshot: &dyn Snapshot| {
                let mut found = groupware_mail::Found::default();
                found.look(snapshot, "ada")?;
                found.look(snapshot, "ben")?;
                found.look_at_shared(snapshot)?;
                Ok::<_, MailError>(found)
            };
            let found = silent.store.read(look).unwrap();
            assert_eq!((found.messages, found.wrong), (1, Vec::new()));
        }
    }
}
