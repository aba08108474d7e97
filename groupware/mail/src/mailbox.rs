//! Reading entries, and the one place that writes them.
//!
//! A change of an entry asserts its revision, and adds its difference to the folder's counters. So
//! the counters are exact, and two changes of different messages, such as deliveries, never
//! conflict. Numbers are assigned the same way, and each change is logged under its own.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use groupware_store::{Batch, Op, PrefetchSet, Snapshot, StoreError, counters};

use crate::numbers::{self, Event, MessageOutcome};
use crate::{Entry, Folder, MailError, Unid, keys, keywords, own_folders};

/// A message as stored in its account.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its object id.
    pub unid: Unid,
    /// The folder that it lies in.
    pub folder: Folder,
    /// Its entry.
    pub entry: Entry,
    /// The revision of its entry.
    pub revision: u64,
}

/// The index of the bytes among a folder's counters, after messages and unread messages.
const BYTES: usize = 2;

/// The counters of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages.
    pub messages: u64,
    /// Unread messages.
    pub unread: u64,
    /// Bytes of the messages.
    pub bytes: u64,
}

/// Returns the counters of a folder.
///
/// # Errors
/// Errors of the store.
pub fn counts(snapshot: &dyn Snapshot, mailbox: &str, folder: Folder) -> Result<Counts, MailError> {
    let record = snapshot.get(mailbox, &keys::counts(folder))?;
    Ok(record.map_or_else(Counts::default, |record| Counts::decode(&record.value)))
}

/// Returns the bytes of all messages of an account.
///
/// # Errors
/// Errors of the store.
pub fn used_bytes(snapshot: &dyn Snapshot, mailbox: &str) -> Result<u64, MailError> {
    Ok(stored_bytes(snapshot, mailbox)?)
}

/// Fetches the counters of several accounts in one request, where that pays.
///
/// # Errors
/// Errors of the store.
pub(crate) fn prefetch_used<'a>(
    snapshot: &dyn Snapshot,
    mailboxes: impl Iterator<Item = &'a str>,
) -> Result<(), StoreError> {
    if !snapshot.is_remote() {
        return Ok(());
    }
    let (mut soon, (from, to)) = (PrefetchSet::default(), keys::COUNTS);
    for mailbox in mailboxes {
        soon.range(mailbox, from, to);
    }
    snapshot.prefetch(&soon)
}

/// The same, for callers that query several services.
///
/// # Errors
/// Errors of the store.
pub fn stored_bytes(snapshot: &dyn Snapshot, mailbox: &str) -> Result<u64, StoreError> {
    let (from, to) = keys::COUNTS;
    let mut bytes = 0;
    snapshot.scan(mailbox, from, Some(to), usize::MAX, &mut |_, record| {
        bytes += Counts::decode(&record.value).bytes;
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}

/// The amount by which one operation of a batch changes [`stored_bytes`].
pub fn added_bytes(op: &Op) -> i64 {
    let (from, to) = keys::COUNTS;
    match op {
        Op::Add { key, by, .. } if (from..to).contains(&&key[..]) => {
            by.get(BYTES).copied().unwrap_or_default()
        }
        _ => 0,
    }
}

impl Counts {
    pub(crate) fn decode(value: &[u8]) -> Self {
        let mut numbers = counters(value).map(|number| u64::try_from(number).unwrap_or_default());
        let mut next = || numbers.next().unwrap_or_default();
        Self {
            messages: next(),
            unread: next(),
            bytes: next(),
        }
    }
}

/// Finds a message in any folder.
///
/// # Errors
/// Errors of the store.
pub fn find(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    unid: Unid,
) -> Result<Option<Stored>, MailError> {
    let built_in = Folder::BUILT_IN.into_iter();
    prefetch(
        snapshot,
        mailbox,
        built_in.map(|it| keys::entry(it, unid)),
        true,
    )?;
    for folder in Folder::BUILT_IN {
        if let Some(held) = find_in(snapshot, mailbox, folder, unid)? {
            return Ok(Some(held));
        }
    }
    let own = own_folders::own(snapshot, mailbox)?;
    let entries = own
        .iter()
        .map(|own| keys::entry(Folder::Own(own.unid), unid));
    prefetch(snapshot, mailbox, entries, false)?;
    for own in own {
        if let Some(held) = find_in(snapshot, mailbox, Folder::Own(own.unid), unid)? {
            return Ok(Some(held));
        }
    }
    Ok(None)
}

/// Fetches records of an account in one request, where that pays; and the list of its own folders, if it is read, too.
///
/// # Errors
/// Errors of the store.
pub(crate) fn prefetch(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    keys_of_records: impl Iterator<Item = Vec<u8>>,
    with_folders: bool,
) -> Result<(), StoreError> {
    if !snapshot.is_remote() {
        return Ok(());
    }
    let (mut soon, mailbox) = (PrefetchSet::default(), Arc::<str>::from(mailbox));
    for key in keys_of_records {
        soon.key(Arc::clone(&mailbox), key);
    }
    if with_folders {
        let (from, to) = keys::FOLDERS;
        soon.range(mailbox, from, to);
    }
    match soon == PrefetchSet::default() {
        true => Ok(()),
        false => snapshot.prefetch(&soon),
    }
}

pub(crate) fn find_in(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    unid: Unid,
) -> Result<Option<Stored>, MailError> {
    let key = keys::entry(folder, unid);
    let Some(record) = snapshot.get(mailbox, &key)? else {
        return Ok(None);
    };
    Ok(Some(Stored {
        unid,
        folder,
        entry: Entry::decode(&key, &record.value)?,
        revision: record.revision,
    }))
}

/// Finds a message that must exist.
///
/// # Errors
/// [`Reason::NotFound`](crate::Reason::NotFound) if it isn't; errors of the store.
pub fn require(snapshot: &dyn Snapshot, mailbox: &str, unid: Unid) -> Result<Stored, MailError> {
    find(snapshot, mailbox, unid)?.ok_or_else(|| MailError::not_found("Message", &unid.to_string()))
}

/// Returns the bytes of a message.
///
/// # Errors
/// A refusal if the message was removed since it was found; errors of the store;
/// [`MailError::Unreadable`] if only the bytes are missing.
pub fn bytes(snapshot: &dyn Snapshot, mailbox: &str, held: &Stored) -> Result<Bytes, MailError> {
    let (partition, key) = match held.entry.shared {
        Some(body) => (keys::SHARED, keys::shared_body(body)),
        None => (mailbox, keys::body(held.unid)),
    };
    if let Some(record) = snapshot.get(partition, &key)? {
        return Ok(record.value);
    }
    let there = require(snapshot, mailbox, held.unid)?;
    match there.entry.shared == held.entry.shared {
        true => Err(MailError::corrupt(&key, "a message without its bytes")),
        // The bytes have moved.
        false => bytes(snapshot, mailbox, &there),
    }
}

/// Visits a folder's entries in a range of keys, the newest first, until the visitor breaks.
pub(crate) fn scan(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    after: Option<Unid>,
    limit: usize,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, MailError>,
) -> Result<(), MailError> {
    let (mut from, to) = keys::entries(folder);
    if let Some(after) = after {
        from = keys::entry(folder, after);
        from.push(0);
    }
    let mut failure = None;
    snapshot.browse(mailbox, &from, Some(&to), limit, &mut |key, value| {
        visit(key, value).unwrap_or_else(|error| {
            failure = Some(error);
            ControlFlow::Break(())
        })
    })?;
    failure.map_or(Ok(()), Err)
}

/// Returns the newest messages of a folder, newest first, at most `limit`.
pub(crate) fn newest(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    limit: usize,
) -> Result<Vec<Stored>, MailError> {
    page(snapshot, mailbox, (folder, None), limit)
}

/// Returns the messages of a folder after the given one or from the first on, newest first, at most `limit`.
///
/// # Errors
/// Errors of the store.
pub fn page(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    (folder, after): (Folder, Option<Unid>),
    limit: usize,
) -> Result<Vec<Stored>, MailError> {
    let (mut from, to) = keys::entries(folder);
    if let Some(after) = after {
        from = keys::entry(folder, after);
        // The first key after it.
        from.push(0);
    }
    let mut found = Vec::new();
    let mut failure = None;
    snapshot.scan(mailbox, &from, Some(&to), limit, &mut |key, record| {
        let held = Entry::decode(key, &record.value).and_then(|entry| {
            let unid = keys::unid_of(key).ok_or_else(|| MailError::corrupt(key, "no name"))?;
            Ok(Stored {
                unid,
                folder,
                entry,
                revision: record.revision,
            })
        });
        match held {
            Ok(held) => {
                found.push(held);
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failure.map_or(Ok(found), Err)
}

/// Additions to a folder's counters: messages, unread messages, bytes, UIDs, messages with a UID.
type Added = [i64; 5];

/// A batch under construction.
pub(crate) struct Changes<'a> {
    snapshot: &'a dyn Snapshot,
    now_us: i64,
    batch: Batch,
    /// Additions to the counters of each account's folders.
    added: BTreeMap<(Arc<str>, Folder), Added>,
    /// The changes of each account's messages, in order.
    events: BTreeMap<Arc<str>, Vec<Event>>,
    /// The number of messages that release each shared body.
    released: BTreeMap<Unid, i64>,
    /// The keys of the keywords of removed messages.
    unmarked: Vec<(Arc<str>, Vec<u8>)>,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(snapshot: &'a dyn Snapshot, now_us: i64) -> Self {
        Self {
            snapshot,
            now_us,
            batch: Batch::new(),
            added: BTreeMap::new(),
            events: BTreeMap::new(),
            released: BTreeMap::new(),
            unmarked: Vec::new(),
        }
    }

    /// The batch, for records that are neither messages nor counters.
    pub(crate) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Puts a new message into a folder. Its id is new, so that no assert is needed.
    pub(crate) fn insert(
        &mut self,
        mailbox: &Arc<str>,
        folder: Folder,
        unid: Unid,
        entry: &Entry,
        body: &Bytes,
    ) {
        match entry.shared {
            None => {
                let key = keys::body(unid);
                self.batch.put(Arc::clone(mailbox), key, body.clone());
            }
            Some(body) => {
                let key = keys::mark(unid);
                self.batch
                    .put(Arc::clone(mailbox), key, body.to_string().into_bytes());
            }
        }
        self.put((mailbox, folder, unid), entry, None);
        self.count(mailbox, folder, entry, 1);
    }

    /// Stores a shared body for this many messages of the same batch.
    pub(crate) fn share(&mut self, body: Unid, bytes: Bytes, holders: usize) {
        let holders = i64::try_from(holders).unwrap_or(i64::MAX);
        self.batch
            .put(keys::SHARED, keys::shared_body(body), bytes)
            .add(keys::SHARED, keys::holders(body), [holders]);
    }

    /// Replaces a message's entry and folder; its bytes stay.
    pub(crate) fn replace(
        &mut self,
        mailbox: &Arc<str>,
        held: &Stored,
        folder: Folder,
        entry: &Entry,
    ) {
        self.assert(mailbox, held);
        let mut uid = held.entry.numbers.map(|numbers| numbers.uid);
        if folder != held.folder {
            let key = keys::entry(held.folder, held.unid);
            self.batch.delete(Arc::clone(mailbox), key);
            self.take_away(mailbox, held);
            uid = None;
        }
        self.put((mailbox, folder, held.unid), entry, uid);
        self.count(mailbox, held.folder, &held.entry, -1);
        self.count(mailbox, folder, entry, 1);
    }

    /// Replaces a message's bytes, and so its UID: the content of a UID never changes, only its flags.
    pub(crate) fn rewrite(
        &mut self,
        mailbox: &Arc<str>,
        held: &Stored,
        entry: &Entry,
        body: &Bytes,
    ) {
        self.assert(mailbox, held);
        let key = keys::body(held.unid);
        self.batch.put(Arc::clone(mailbox), key, body.clone());
        self.take_away(mailbox, held);
        self.put((mailbox, held.folder, held.unid), entry, None);
        self.count(mailbox, held.folder, &held.entry, -1);
        self.count(mailbox, held.folder, entry, 1);
    }

    /// Replaces a message's keywords; returns whether they differ. The caller must write the entry, too.
    pub(crate) fn set_keywords(
        &mut self,
        mailbox: &Arc<str>,
        unid: Unid,
        words: &[String],
    ) -> Result<bool, MailError> {
        keywords::replace(self.snapshot, (&mut self.batch, mailbox), unid, words)
    }

    /// Deletes a message for good.
    pub(crate) fn remove(&mut self, mailbox: &Arc<str>, held: &Stored) {
        self.assert(mailbox, held);
        let marked = keys::keywords(held.unid);
        self.unmarked.push((Arc::clone(mailbox), marked));
        let key = keys::entry(held.folder, held.unid);
        self.batch.delete(Arc::clone(mailbox), key);
        match held.entry.shared {
            None => {
                self.batch
                    .delete(Arc::clone(mailbox), keys::body(held.unid));
            }
            Some(body) => {
                self.batch
                    .delete(Arc::clone(mailbox), keys::mark(held.unid));
                *self.released.entry(body).or_default() += 1;
            }
        }
        self.take_away(mailbox, held);
        self.count(mailbox, held.folder, &held.entry, -1);
    }

    fn assert(&mut self, mailbox: &Arc<str>, held: &Stored) {
        let key = keys::entry(held.folder, held.unid);
        self.batch
            .assert_revision(Arc::clone(mailbox), key, held.revision);
    }

    /// Writes an entry with this UID, or with the next one.
    fn put(
        &mut self,
        (mailbox, folder, unid): (&Arc<str>, Folder, Unid),
        entry: &Entry,
        uid: Option<u64>,
    ) {
        let (fixed, summary) = entry.encode();
        if uid.is_none() {
            let added = self.added_to(mailbox, folder);
            added[3] += 1;
            added[4] += 1;
        }
        let became = MessageOutcome::There {
            fixed,
            summary,
            uid,
        };
        self.note(mailbox, (folder, unid), became);
    }

    /// Removes a message from its folder, and with it its UID.
    fn take_away(&mut self, mailbox: &Arc<str>, held: &Stored) {
        let uid = held.entry.numbers.map(|numbers| numbers.uid);
        if uid.is_some() {
            self.added_to(mailbox, held.folder)[4] -= 1;
        }
        self.note(
            mailbox,
            (held.folder, held.unid),
            MessageOutcome::Gone { uid },
        );
    }

    fn note(&mut self, mailbox: &Arc<str>, (folder, unid): (Folder, Unid), became: MessageOutcome) {
        let event = Event {
            folder,
            unid,
            became,
        };
        match self.events.get_mut(mailbox) {
            Some(events) => events.push(event),
            None => _ = self.events.insert(Arc::clone(mailbox), vec![event]),
        }
    }

    fn added_to(&mut self, mailbox: &Arc<str>, folder: Folder) -> &mut Added {
        self.added.entry((Arc::clone(mailbox), folder)).or_default()
    }

    fn count(&mut self, mailbox: &Arc<str>, folder: Folder, entry: &Entry, by: i64) {
        let added = self.added_to(mailbox, folder);
        added[0] += by;
        added[1] += by * i64::from(!entry.read);
        added[BYTES] += by * i64::try_from(entry.size).unwrap_or(i64::MAX);
    }

    /// Removes the keywords of removed messages. Few have any, and a lookup costs less than a needless removal.
    fn unmark(&mut self) -> Result<(), MailError> {
        let unmarked = std::mem::take(&mut self.unmarked);
        if unmarked.is_empty() {
            return Ok(());
        }
        let places = unmarked.iter();
        let places: Vec<(&str, &[u8])> = places.map(|(of, key)| (&**of, &key[..])).collect();
        let found = self.snapshot.get_many(&places)?;
        for ((mailbox, key), record) in unmarked.into_iter().zip(found) {
            if record.is_some() {
                self.batch.delete(mailbox, key);
            }
        }
        Ok(())
    }

    /// The finished batch.
    ///
    /// # Errors
    /// Errors of the store.
    pub(crate) fn into_batch(mut self) -> Result<Batch, MailError> {
        self.unmark()?;
        let mut new: BTreeMap<Arc<str>, BTreeMap<Folder, u32>> = BTreeMap::new();
        for ((mailbox, folder), by) in self.added {
            let uids = u32::try_from(by[3]).unwrap_or_default();
            if uids > 0 {
                let of = new.entry(Arc::clone(&mailbox)).or_default();
                of.insert(folder, uids);
            }
            if by != Added::default() {
                self.batch.add(mailbox, keys::counts(folder), by);
            }
        }
        for (mailbox, events) in self.events {
            let new = new.remove(&mailbox).unwrap_or_default();
            numbers::write(&mut self.batch, &mailbox, self.now_us, new, events);
        }
        for (body, messages) in self.released {
            let key = keys::holders(body);
            let Some(record) = self.snapshot.get(keys::SHARED, &key)? else {
                continue;
            };
            // A concurrent release forces a new decision: exactly one release is the last.
            let left = counters(&record.value).next().unwrap_or_default() - messages;
            self.batch
                .assert_revision(keys::SHARED, key.clone(), record.revision);
            if left > 0 {
                self.batch.add(keys::SHARED, key, [-messages]);
            } else {
                self.batch
                    .delete(keys::SHARED, key)
                    .delete(keys::SHARED, keys::shared_body(body));
            }
        }
        Ok(self.batch)
    }
}

/// A batch releases bodies of this many bytes, and the one that exceeds it: other writers wait while
/// they are removed.
const RELEASED_BYTES: u64 = 1 << 20;

/// Makes the batch release an account's shared bodies, at most `limit`; returns whether there are
/// more. For an account that is about to be emptied.
///
/// # Errors
/// Errors of the store.
pub fn release_shared(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    limit: usize,
) -> Result<(Batch, bool), MailError> {
    let (from, to) = keys::MARKS;
    let mut marks = Vec::new();
    snapshot.scan(mailbox, from, Some(to), limit, &mut |key, record| {
        marks.push((key.to_vec(), keys::unid_of(&record.value)));
        ControlFlow::Continue(())
    })?;
    let mut more = marks.len() == limit;
    // No message changes here.
    let mut changes = Changes::new(snapshot, 0);
    let mailbox: Arc<str> = mailbox.into();
    let mut bytes = 0;
    for (key, body) in marks {
        if bytes >= RELEASED_BYTES {
            more = true;
            break;
        }
        if let Some(body) = body {
            bytes += shared_bytes(snapshot, body)?;
            *changes.released.entry(body).or_default() += 1;
        }
        changes.batch().delete(Arc::clone(&mailbox), key);
    }
    Ok((changes.into_batch()?, more))
}

/// One batch removes at most this many bodies, with this many bytes.
const REMOVED_BYTES: u64 = 16 << 20;
const REMOVED_AT_ONCE: usize = 1_000;

/// Returns batches that remove all shared bodies of a snapshot. A body is shared at delivery and never later.
/// So these batches can run once the accounts of the snapshot are empty: newer bodies stay.
///
/// # Errors
/// Errors of the store.
pub fn remove_shared(snapshot: &dyn Snapshot) -> Result<Vec<Batch>, StoreError> {
    let (from, to) = keys::SHARED_BODIES;
    let (mut batches, mut bytes, mut count) = (Vec::new(), 0, 0);
    let mut batch = Batch::new();
    snapshot.measure(
        keys::SHARED,
        from,
        Some(to),
        usize::MAX,
        &mut |key, size| {
            batch.delete(keys::SHARED, key);
            if let Some(body) = keys::unid_of(key) {
                batch.delete(keys::SHARED, keys::holders(body));
            }
            (bytes, count) = (bytes + size, count + 1);
            if bytes >= REMOVED_BYTES || count == REMOVED_AT_ONCE {
                batches.push(std::mem::take(&mut batch));
                (bytes, count) = (0, 0);
            }
            ControlFlow::Continue(())
        },
    )?;
    if count > 0 {
        batches.push(batch);
    }
    Ok(batches)
}

/// The size of a shared body.
fn shared_bytes(snapshot: &dyn Snapshot, body: Unid) -> Result<u64, StoreError> {
    let (key, mut bytes) = (keys::shared_body(body), 0);
    let after = [&key[..], &[0]].concat();
    snapshot.measure(keys::SHARED, &key, Some(&after), 1, &mut |_, size| {
        bytes = size;
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}
