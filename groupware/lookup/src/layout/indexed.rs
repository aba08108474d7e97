//! A small head and a body per registration, and an index: the cost of a change or a query depends
//! on its registrations, not on the number of all.
//!
//! Keys of the partition, each a letter and then:
//!
//! - `h` id → head, including the body's version; a renewal writes only this
//! - `b` version → content
//! - `a` field, stem, 0, version → id, and the last bytes of the values that consist of the stem
//!   and one more byte: the addresses of a router are adjacent, and share a row by tens
//! - `d` fingerprint → id
//! - `x` end of the lease, id; most new ones sort last
//! - `y`, and `y` user → the sums: registrations, bytes
//! - `z` version → the registration of an unreferenced body, and how far it has been cleared
//!
//! The rows that nearly every change writes (the last of `x`, `y`, and `z`) are adjacent: a change
//! writes each touched page to the log.
//!
//! Removing a registration of any size writes three rows: all but its head stays until sweeps have
//! cleared it in small batches. Entries of the index, of fingerprints, and of ends are valid only
//! while their head exists.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use groupware_store::{Batch, Snapshot, StoreError};

use super::Amount;
use super::keep::{Budget, Change, Keep, Visit};
use super::tally::{Sums, Tally};
use crate::limits::INDEX_ROWS;
use crate::query::{LookupQuery, Path};
use crate::record::Record;
use crate::registration::{Content, Head, Registration};
use crate::{Id, LookupError, Reason};

const PARTITION: &str = "$lookup/indexed";
/// An earlier layout had a row for each value. Leases end, and services register again: its data is
/// dropped.
const BEFORE: &str = "$lookup";
const SUMS: Sums = Sums {
    partition: PARTITION,
    key: b"y",
};
/// The keys that are found without a scan: those that identify one thing or a few. Their indexes
/// are stored: append new ones at the end.
const FIELDS: [&str; 14] = [
    "interface-addresses",
    "host-name",
    "host-net-interfaces",
    "service-locator",
    "service-name",
    "service-host",
    "person-name",
    "person-emails",
    "psmetadata-src-address",
    "psmetadata-dst-address",
    "psmetadata-measurement-agent",
    "psmetadata-uri",
    "interface-mac",
    "client-uuid",
];
/// Longer values are indexed by this prefix; the record itself is then compared.
const INDEXED_BYTES: usize = 200;
/// The number of index entries per read.
const CHUNK: usize = 256;
/// The maximum number of rows that one sweep deletes: about a millisecond of the writer's time.
const SWEPT_ROWS: usize = 256;
/// The maximum number of expired registrations that one sweep removes.
const SWEPT: usize = 32;

pub(super) struct Indexed;

impl Keep for Indexed {
    fn held(&self, snapshot: &dyn Snapshot, owner: Option<&str>) -> Result<Amount, LookupError> {
        SUMS.of(snapshot, owner)
    }

    fn head(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Head>, LookupError> {
        let found = snapshot.get(PARTITION, &key(b'h', &id.to_bytes()))?;
        found
            .map(|found| Head::decode(&mut &found.value[..]))
            .transpose()
    }

    fn size(&self, snapshot: &dyn Snapshot, id: Id) -> Result<u64, LookupError> {
        let head = self.head(snapshot, id)?;
        Ok(head.map_or(0, |head| head.bytes.into()))
    }

    fn get(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Registration>, LookupError> {
        let Some(head) = self.head(snapshot, id)? else {
            return Ok(None);
        };
        let (content, _) = content(snapshot, &head)?;
        Ok(Some(Registration { id, head, content }))
    }

    fn same(
        &self,
        snapshot: &dyn Snapshot,
        fingerprint: [u8; 16],
    ) -> Result<Option<(Id, Head)>, LookupError> {
        let Some(found) = snapshot.get(PARTITION, &key(b'd', &fingerprint))? else {
            return Ok(None);
        };
        let id = name(&found.value)?;
        let head = self.head(snapshot, id)?;
        let is_its = |head: &Head| head.fingerprint == Some(fingerprint);
        Ok(head.filter(is_its).map(|head| (id, head)))
    }

    fn candidates(
        &self,
        snapshot: &dyn Snapshot,
        query: &LookupQuery,
        visit: &mut Visit<'_>,
    ) -> Result<(), LookupError> {
        let mut search = Search {
            snapshot,
            budget: Budget::of(query),
            seen: HashSet::new(),
            visit,
        };
        let Some(paths) = query.paths(|key| field(key).is_some()) else {
            return search.range(b"h", b"i", Entry::of_head).map(drop);
        };
        for path in paths {
            let found = match path {
                Path::Name(id) => search.visit(id, None)?,
                Path::Value { key, value } => search.value(key, value)?,
                Path::Prefix { key, prefix } => search.prefix(key, prefix)?,
            };
            if found.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn change(&self, snapshot: &dyn Snapshot, changes: &[Change]) -> Result<Batch, LookupError> {
        let mut writing = Writing {
            snapshot,
            batch: Batch::new(),
            tally: Tally::default(),
            rows: 0,
        };
        for change in changes {
            writing.change(change)?;
        }
        let Writing {
            tally, mut batch, ..
        } = writing;
        tally.write(SUMS, &mut batch);
        Ok(batch)
    }

    fn sweep(&self, snapshot: &dyn Snapshot, now: i64) -> Result<Option<Batch>, LookupError> {
        let mut ended = Vec::new();
        let end = now.saturating_sub(crate::limits::RENEWABLE_S);
        let to = key(b'x', &end.max(0).unsigned_abs().to_be_bytes());
        let read: Result<(), StoreError> =
            snapshot.scan(PARTITION, b"x", Some(&to), SWEPT, &mut |key, _| {
                let id = key.get(9..25).and_then(|id| <[u8; 16]>::try_from(id).ok());
                ended.extend(id.map(|id| Change::Remove(Id::from_bytes(id))));
                ControlFlow::Continue(())
            });
        read?;
        let batch = self.change(snapshot, &ended)?;
        // The entries of removed registrations are cleared with their bodies.
        if !batch.ops.is_empty() {
            return Ok(Some(batch));
        }
        match clear(snapshot)? {
            Some(batch) => Ok(Some(batch)),
            None => clear_before(snapshot),
        }
    }
}

/// Drops the data of an earlier layout.
fn clear_before(snapshot: &dyn Snapshot) -> Result<Option<Batch>, LookupError> {
    let mut dropped = None;
    let read: Result<(), StoreError> = snapshot.scan(BEFORE, b"", None, 1, &mut |_, _| {
        let mut batch = Batch::new();
        batch.delete_partition(BEFORE);
        dropped = Some(batch);
        ControlFlow::Break(())
    });
    read?;
    Ok(dropped)
}

/// The state of an unreferenced body.
struct Left {
    id: Id,
    /// The end of its lease.
    expires: i64,
    /// The number of its index rows that have been cleared.
    done: usize,
}

impl Left {
    fn to_bytes(&self) -> Vec<u8> {
        let done = self.done as u64;
        [
            &self.id.to_bytes()[..],
            &self.expires.to_be_bytes(),
            &done.to_be_bytes(),
        ]
        .concat()
    }

    fn decode(value: &[u8]) -> Option<Self> {
        let (id, rest) = value.split_first_chunk()?;
        let (expires, done) = rest.split_first_chunk()?;
        let done = u64::from_be_bytes(done.try_into().ok()?);
        Some(Self {
            id: Id::from_bytes(*id),
            expires: i64::from_be_bytes(*expires),
            done: usize::try_from(done).ok()?,
        })
    }
}

/// Clears a part of one unreferenced body and of its index.
fn clear(snapshot: &dyn Snapshot) -> Result<Option<Batch>, LookupError> {
    let mut first = None;
    let read: Result<(), StoreError> =
        snapshot.scan(PARTITION, b"z", None, 1, &mut |key, record| {
            first = Some((key.to_vec(), record));
            ControlFlow::Break(())
        });
    read?;
    let Some((marker, record)) = first else {
        return Ok(None);
    };
    let version = marker.get(1..9).and_then(|version| version.try_into().ok());
    let version = u64::from_be_bytes(version.ok_or(LookupError::Corrupt)?);
    let mut left = Left::decode(&record.value).ok_or(LookupError::Corrupt)?;
    let body = key(b'b', &version.to_be_bytes());
    let found = snapshot.get(PARTITION, &body)?;
    let content = found
        .map(|found| Content::decode_record(&mut &found.value[..]))
        .transpose()?
        .unwrap_or_default();
    let rows = index_rows(&content, version);
    let mut batch = Batch::new();
    batch.assert_revision(PARTITION, marker.clone(), record.revision);
    for key in rows.keys().skip(left.done).take(SWEPT_ROWS) {
        batch.delete(PARTITION, key.clone());
    }
    left.done += SWEPT_ROWS;
    if left.done < rows.len() {
        batch.put(PARTITION, marker, left.to_bytes());
    } else {
        clear_entries(snapshot, &left, content.fingerprint(), &mut batch)?;
        batch.delete(PARTITION, body);
        batch.delete(PARTITION, marker);
    }
    Ok(Some(batch))
}

/// Clears the end and fingerprint entries of a removed registration, unless a new one with its id
/// has the same.
fn clear_entries(
    snapshot: &dyn Snapshot,
    left: &Left,
    fingerprint: [u8; 16],
    batch: &mut Batch,
) -> Result<(), LookupError> {
    let head_key = key(b'h', &left.id.to_bytes());
    let found = snapshot.get(PARTITION, &head_key)?;
    match &found {
        Some(found) => batch.assert_revision(PARTITION, head_key, found.revision),
        None => batch.assert_absent(PARTITION, head_key),
    };
    let head = found
        .map(|found| Head::decode(&mut &found.value[..]))
        .transpose()?;
    if head.as_ref().map(|head| head.lease.expires) != Some(left.expires) {
        batch.delete(PARTITION, end_key(left.expires, left.id));
    }
    let same = key(b'd', &fingerprint);
    let entry = snapshot.get(PARTITION, &same)?;
    let is_its = |entry: &groupware_store::Record| entry.value[..] == left.id.to_bytes();
    if let Some(entry) = entry.filter(is_its)
        && head.and_then(|head| head.fingerprint) != Some(fingerprint)
    {
        batch.assert_revision(PARTITION, same.clone(), entry.revision);
        batch.delete(PARTITION, same);
    }
    Ok(())
}

/// A batch under construction.
struct Writing<'a> {
    snapshot: &'a dyn Snapshot,
    batch: Batch,
    /// The changes of the sums.
    tally: Tally,
    /// The number of index rows so far.
    rows: usize,
}

impl Writing<'_> {
    fn change(&mut self, change: &Change) -> Result<(), LookupError> {
        let id = change.id();
        let head_key = key(b'h', &id.to_bytes());
        let found = self.snapshot.get(PARTITION, &head_key)?;
        match &found {
            Some(found) => self
                .batch
                .assert_revision(PARTITION, head_key.clone(), found.revision),
            None => self.batch.assert_absent(PARTITION, head_key.clone()),
        };
        let old = found
            .map(|found| Head::decode(&mut &found.value[..]))
            .transpose()?;
        match (change, old) {
            (Change::Put(new), old) => {
                self.tally.comes(&new.head);
                if let Some(old) = old {
                    self.tally.goes(&old);
                    self.forget_entries(id, &old)?;
                    self.leave(id, &old);
                }
                self.batch.put(PARTITION, head_key, new.head.to_bytes());
                self.keep(new)?;
            }
            (Change::Renew(_, head), Some(old)) => {
                self.batch.delete(PARTITION, end_key(old.lease.expires, id));
                self.batch
                    .put(PARTITION, end_key(head.lease.expires, id), "");
                self.batch.put(PARTITION, head_key, head.to_bytes());
            }
            (Change::Remove(_), Some(old)) => {
                self.tally.goes(&old);
                self.leave(id, &old);
                self.batch.delete(PARTITION, head_key);
            }
            (Change::Renew(..) | Change::Remove(_), None) => {
                // Already swept; the rest of its end entries is cleared, too.
            }
        }
        Ok(())
    }

    /// Writes the rows of a new head.
    fn keep(&mut self, new: &Registration) -> Result<(), LookupError> {
        let version = new.head.version;
        let batch = &mut self.batch;
        let body = key(b'b', &version.to_be_bytes());
        batch.assert_absent(PARTITION, body.clone());
        batch.put(PARTITION, body, new.content.to_bytes());
        batch.put(PARTITION, end_key(new.head.lease.expires, new.id), "");
        if let Some(fingerprint) = new.head.fingerprint {
            let same = key(b'd', &fingerprint);
            // The existing entry belongs to an expired registration.
            match self.snapshot.get(PARTITION, &same)? {
                Some(found) => self
                    .batch
                    .assert_revision(PARTITION, same.clone(), found.revision),
                None => self.batch.assert_absent(PARTITION, same.clone()),
            };
            self.batch.put(PARTITION, same, new.id.to_bytes().to_vec());
        }
        let partition: std::sync::Arc<str> = PARTITION.into();
        let rows = index_rows(&new.content.record, version);
        self.rows += rows.len();
        if self.rows > INDEX_ROWS {
            let message =
                "There are too many addresses and names to find it by: register it in parts.";
            return Err(LookupError::refused(Reason::TooLarge, message));
        }
        for (key, last_bytes) in rows {
            let entry = [&new.id.to_bytes()[..], &last_bytes].concat();
            self.batch
                .put(std::sync::Arc::clone(&partition), key, entry);
        }
        Ok(())
    }

    /// Removes the entries of an old head whose id gets a new one, possibly with the same entries.
    fn forget_entries(&mut self, id: Id, old: &Head) -> Result<(), LookupError> {
        self.batch.delete(PARTITION, end_key(old.lease.expires, id));
        if let Some(fingerprint) = old.fingerprint {
            let same = key(b'd', &fingerprint);
            let found = self.snapshot.get(PARTITION, &same)?;
            // Another registration may have taken it over since this one ended.
            if found.is_some_and(|found| found.value[..] == id.to_bytes()) {
                self.batch.delete(PARTITION, same);
            }
        }
        Ok(())
    }

    /// Queues the rows of an old head for clearing.
    fn leave(&mut self, id: Id, old: &Head) {
        let left = Left {
            id,
            expires: old.lease.expires,
            done: 0,
        };
        let marker = key(b'z', &old.version.to_be_bytes());
        self.batch.put(PARTITION, marker, left.to_bytes());
    }
}

/// An index entry that leads to a registration.
struct Entry {
    id: Id,
    /// The version of the entry, if the entry could be outdated.
    version: Option<u64>,
}

impl Entry {
    fn of_head(key: &[u8], _: &[u8]) -> Option<Self> {
        let id = Id::from_bytes(key.get(1..)?.try_into().ok()?);
        Some(Self { id, version: None })
    }

    fn of_index(key: &[u8], value: &[u8]) -> Option<Self> {
        let version = u64::from_be_bytes(*key.last_chunk()?);
        let id = Id::from_bytes(*value.first_chunk()?);
        Some(Self {
            id,
            version: Some(version),
        })
    }

    /// The last bytes of its values.
    fn last_bytes(value: &[u8]) -> &[u8] {
        value.get(16..).unwrap_or_default()
    }
}

/// A search in progress.
struct Search<'a, 'v> {
    snapshot: &'a dyn Snapshot,
    budget: Budget,
    seen: HashSet<Id>,
    visit: &'a mut Visit<'v>,
}

impl Search<'_, '_> {
    /// Visits registrations with this value.
    fn value(&mut self, key: &str, value: &str) -> Result<ControlFlow<()>, LookupError> {
        let (stem, last) = stem(value);
        let mut from = index_prefix(key, stem);
        from.push(0);
        let to = after(&from);
        self.range(&from, &to, |key, entry| match last {
            Some(last) if !Entry::last_bytes(entry).contains(&last) => None,
            _ => Entry::of_index(key, entry),
        })
    }

    /// Visits registrations with a value of this prefix: first those with the prefix itself as value,
    /// whose row has the prefix's own stem.
    fn prefix(&mut self, key: &str, prefix: &str) -> Result<ControlFlow<()>, LookupError> {
        if self.value(key, prefix)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let from = index_prefix(key, indexed(prefix));
        let to = after(&from);
        self.range(&from, &to, Entry::of_index)
    }

    /// Visits the registrations of a range of entries.
    fn range(
        &mut self,
        from: &[u8],
        to: &[u8],
        entry: impl Fn(&[u8], &[u8]) -> Option<Entry>,
    ) -> Result<ControlFlow<()>, LookupError> {
        let mut from = from.to_vec();
        loop {
            let (mut entries, mut count) = (Vec::with_capacity(CHUNK), 0);
            let mut last = Vec::new();
            let read: Result<(), StoreError> =
                self.snapshot
                    .scan(PARTITION, &from, Some(to), CHUNK, &mut |key, record| {
                        count += 1;
                        last.clear();
                        last.extend_from_slice(key);
                        entries.extend(entry(key, &record.value));
                        ControlFlow::Continue(())
                    });
            read?;
            self.budget.spend(count, 0)?;
            for entry in entries {
                if self.visit(entry.id, entry.version)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if count < CHUNK {
                return Ok(ControlFlow::Continue(()));
            }
            last.push(0);
            from = last;
        }
    }

    fn visit(&mut self, id: Id, version: Option<u64>) -> Result<ControlFlow<()>, LookupError> {
        if self.seen.contains(&id) {
            return Ok(ControlFlow::Continue(()));
        }
        let Some(head) = Indexed.head(self.snapshot, id)? else {
            return Ok(ControlFlow::Continue(()));
        };
        if version.is_some_and(|version| version != head.version) {
            return Ok(ControlFlow::Continue(()));
        }
        // Before the read; heads of an earlier version have no size.
        let told = head.bytes as usize;
        self.budget.spend(1, told)?;
        let (content, bytes) = content(self.snapshot, &head)?;
        self.budget.spend(0, bytes.saturating_sub(told))?;
        self.seen.insert(id);
        Ok((self.visit)(Registration { id, head, content }))
    }
}

fn content(snapshot: &dyn Snapshot, head: &Head) -> Result<(Content, usize), LookupError> {
    let body = snapshot.get(PARTITION, &key(b'b', &head.version.to_be_bytes()))?;
    let body = body.ok_or(LookupError::Corrupt)?;
    Ok((Content::decode(&mut &body.value[..])?, body.value.len()))
}

fn key(kind: u8, rest: &[u8]) -> Vec<u8> {
    [&[kind][..], rest].concat()
}

fn end_key(expires: i64, id: Id) -> Vec<u8> {
    let end = expires.max(0).unsigned_abs();
    [&[b'x'][..], &end.to_be_bytes(), &id.to_bytes()].concat()
}

fn name(value: &[u8]) -> Result<Id, LookupError> {
    let bytes = value.try_into().map_err(|_| LookupError::Corrupt)?;
    Ok(Id::from_bytes(bytes))
}

fn field(key: &str) -> Option<u8> {
    let place = FIELDS.iter().position(|field| *field == key)?;
    u8::try_from(place).ok()
}

/// Returns the indexed part of a value.
fn indexed(value: &str) -> &[u8] {
    &value.as_bytes()[..value.len().min(INDEXED_BYTES)]
}

/// Splits a value into the part in its row's key and the part in the row.
fn stem(value: &str) -> (&[u8], Option<u8>) {
    match indexed(value).split_last() {
        Some((last, stem)) => (stem, Some(*last)),
        None => (&[], None),
    }
}

/// Returns the prefix of the keys of rows whose stems have this prefix.
fn index_prefix(key: &str, stem: &[u8]) -> Vec<u8> {
    let mut prefix = Vec::with_capacity(stem.len() + 12);
    prefix.extend([b'a', field(key).unwrap_or(u8::MAX)]);
    prefix.extend(stem);
    prefix
}

/// Returns the first key after all with this prefix, whose last byte is never 255: it is 0 or part
/// of UTF-8.
fn after(prefix: &[u8]) -> Vec<u8> {
    let mut after = prefix.to_vec();
    if let Some(last) = after.last_mut() {
        *last += 1;
    }
    after
}

/// Returns the rows of a record: keys, and the last bytes of their values.
fn index_rows(record: &Record, version: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    for (field, values) in &record.fields {
        if self::field(field).is_none() {
            continue;
        }
        for value in values {
            let value = value.to_ascii_lowercase();
            let (stem, last) = stem(&value);
            let mut key = index_prefix(field, stem);
            key.push(0);
            key.extend(version.to_be_bytes());
            let last_bytes = rows.entry(key).or_default();
            if let Some(last) = last.filter(|last| !last_bytes.contains(last)) {
                last_bytes.push(last);
            }
        }
    }
    rows
}
