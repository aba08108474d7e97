//! Reading entries, and the one place that writes them.
//!
//! An entry is changed under an assert on its revision, and each change adds to its folder's
//! counters what it changes of them: so the counters are exact, and two changes of different
//! messages, such as deliveries, never get in each other's way. Numbers are handed out the same way, and each change
//! is noted under its own.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use groupware_store::{Batch, Op, Snapshot, Soon, StoreError, counters};

use crate::numbers::{self, Became, Event};
use crate::{Entry, Folder, MailError, Unid, keys, keywords, own_folders};

/// A message as it lies in its mailbox.
#[derive(Debug, Clone)]
pub struct Stored {
    /// Its name.
    pub unid: Unid,
    /// The folder that it lies in.
    pub folder: Folder,
    /// What is known of it.
    pub entry: Entry,
    /// Tells its versions apart.
    pub revision: u64,
}

/// Where the bytes stand among a folder's counters, behind messages and unread ones.
const BYTES: usize = 2;

/// What is counted of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages.
    pub messages: u64,
    /// Those of them that are not read.
    pub unread: u64,
    /// Bytes of the messages.
    pub bytes: u64,
}

/// The counters of a folder.
///
/// # Errors
/// The store's.
pub fn counts(snapshot: &dyn Snapshot, mailbox: &str, folder: Folder) -> Result<Counts, MailError> {
    let record = snapshot.get(mailbox, &keys::counts(folder))?;
    Ok(record.map_or_else(Counts::default, |record| Counts::decode(&record.value)))
}

/// The bytes of all messages of a mailbox.
///
/// # Errors
/// The store's.
pub fn used_bytes(snapshot: &dyn Snapshot, mailbox: &str) -> Result<u64, MailError> {
    Ok(stored_bytes(snapshot, mailbox)?)
}

/// Has the counters of several mailboxes fetched at once, where that pays.
///
/// # Errors
/// The store's.
pub(crate) fn prefetch_used<'a>(
    snapshot: &dyn Snapshot,
    mailboxes: impl Iterator<Item = &'a str>,
) -> Result<(), StoreError> {
    if !snapshot.is_far() {
        return Ok(());
    }
    let (mut soon, (from, to)) = (Soon::default(), keys::COUNTS);
    for mailbox in mailboxes {
        soon.range(mailbox, from, to);
    }
    snapshot.prefetch(&soon)
}

/// The same, for whoever asks about several services.
///
/// # Errors
/// The store's.
pub fn stored_bytes(snapshot: &dyn Snapshot, mailbox: &str) -> Result<u64, StoreError> {
    let (from, to) = keys::COUNTS;
    let mut bytes = 0;
    snapshot.scan(mailbox, from, Some(to), usize::MAX, &mut |_, record| {
        bytes += Counts::decode(&record.value).bytes;
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}

/// By how much one operation of a batch changes what [`stored_bytes`] counts.
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

/// Finds a message, whichever folder it lies in.
///
/// # Errors
/// The store's.
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

/// Has records of a mailbox fetched at once, where that pays; with the list of its own folders, if that is read, too.
///
/// # Errors
/// The store's.
pub(crate) fn prefetch(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    keys_of_records: impl Iterator<Item = Vec<u8>>,
    with_folders: bool,
) -> Result<(), StoreError> {
    if !snapshot.is_far() {
        return Ok(());
    }
    let (mut soon, mailbox) = (Soon::default(), Arc::<str>::from(mailbox));
    for key in keys_of_records {
        soon.key(Arc::clone(&mailbox), key);
    }
    if with_folders {
        let (from, to) = keys::FOLDERS;
        soon.range(mailbox, from, to);
    }
    match soon == Soon::default() {
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

/// Finds a message that must be there.
///
/// # Errors
/// [`Reason::NotFound`](crate::Reason::NotFound) if it isn't; the store's.
pub fn require(snapshot: &dyn Snapshot, mailbox: &str, unid: Unid) -> Result<Stored, MailError> {
    find(snapshot, mailbox, unid)?.ok_or_else(|| MailError::not_found("Message", &unid.to_string()))
}

/// The bytes of a message.
///
/// # Errors
/// A refusal if the message was removed since it was found; the store's; [`MailError::Unreadable`] if the bytes alone are
/// gone.
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
        // Its bytes lie elsewhere now.
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

/// The messages of a folder, the newest first, at most so many.
pub(crate) fn newest(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    limit: usize,
) -> Result<Vec<Stored>, MailError> {
    page(snapshot, mailbox, (folder, None), limit)
}

/// The messages of a folder, the newest first, behind this one or from the first on, at most so many.
///
/// # Errors
/// The store's.
pub fn page(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    (folder, after): (Folder, Option<Unid>),
    limit: usize,
) -> Result<Vec<Stored>, MailError> {
    let (mut from, to) = keys::entries(folder);
    if let Some(after) = after {
        from = keys::entry(folder, after);
        // The first key behind it.
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

/// What is added to a folder's counters: messages, unread ones, bytes, UIDs, messages that have one.
type Added = [i64; 5];

/// A batch under construction.
pub(crate) struct Changes<'a> {
    snapshot: &'a dyn Snapshot,
    now_us: i64,
    batch: Batch,
    /// What is added to the counters of each mailbox's folders.
    added: BTreeMap<(Arc<str>, Folder), Added>,
    /// What becomes of the messages of each mailbox, in order.
    events: BTreeMap<Arc<str>, Vec<Event>>,
    /// How many messages let go of each shared body.
    released: BTreeMap<Unid, i64>,
    /// Where the keywords of messages lie that are removed, if they have any.
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

    /// The batch, for what is neither a message nor counted.
    pub(crate) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Puts a new message into a folder. Its name is new, so that nothing needs to be asserted.
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

    /// Puts bytes where so many messages of the same batch find them.
    pub(crate) fn share(&mut self, body: Unid, bytes: Bytes, holders: usize) {
        let holders = i64::try_from(holders).unwrap_or(i64::MAX);
        self.batch
            .put(keys::SHARED, keys::shared_body(body), bytes)
            .add(keys::SHARED, keys::holders(body), [holders]);
    }

    /// Gives a message another entry and folder; its bytes stay.
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

    /// Gives a message other bytes, and so another UID: what has one never changes but for its marks.
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

    /// Gives a message other keywords; whether they are others. Its entry is to be written, too.
    pub(crate) fn set_keywords(
        &mut self,
        mailbox: &Arc<str>,
        unid: Unid,
        words: &[String],
    ) -> Result<bool, MailError> {
        keywords::replace(self.snapshot, (&mut self.batch, mailbox), unid, words)
    }

    /// Removes a message for good.
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

    /// Writes an entry, with this UID or the next one.
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
        let became = Became::There {
            fixed,
            summary,
            uid,
        };
        self.note(mailbox, (folder, unid), became);
    }

    /// A message loses its place in its folder, and with it its UID.
    fn take_away(&mut self, mailbox: &Arc<str>, held: &Stored) {
        let uid = held.entry.numbers.map(|numbers| numbers.uid);
        if uid.is_some() {
            self.added_to(mailbox, held.folder)[4] -= 1;
        }
        self.note(mailbox, (held.folder, held.unid), Became::Gone { uid });
    }

    fn note(&mut self, mailbox: &Arc<str>, (folder, unid): (Folder, Unid), became: Became) {
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

    /// Keywords go with their messages. Few have any, and to look costs less than to remove nothing.
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
    /// The store's.
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
            // Whoever lets go at the same moment decides again: one of them is the last.
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

/// Bodies of so many bytes are let go at once, and the one that makes them more: who writes meanwhile waits
/// while they are removed.
const RELEASED_BYTES: u64 = 1 << 20;

/// Has the batch let go of the shared bodies that a mailbox holds, at most so many; gives whether
/// there are more. For a mailbox that is about to be emptied as a whole.
///
/// # Errors
/// The store's.
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
    // Nothing becomes of a message here.
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

/// Bodies of so many bytes, and so many of them, are removed in one batch.
const REMOVED_BYTES: u64 = 16 << 20;
const REMOVED_AT_ONCE: usize = 1_000;

/// Batches that remove all shared bodies of a snapshot. A body is shared when it is delivered and never again, so these
/// batches are for later, when the mailboxes that there were at the snapshot are empty: bodies that came meanwhile stay.
///
/// # Errors
/// The store's.
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

/// How large a shared body is.
fn shared_bytes(snapshot: &dyn Snapshot, body: Unid) -> Result<u64, StoreError> {
    let (key, mut bytes) = (keys::shared_body(body), 0);
    let after = [&key[..], &[0]].concat();
    snapshot.measure(keys::SHARED, &key, Some(&after), 1, &mut |_, size| {
        bytes = size;
        ControlFlow::Continue(())
    })?;
    Ok(bytes)
}
