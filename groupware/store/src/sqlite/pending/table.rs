//! A memtable: recent changes by partition and key, each with the group that made it.
//!
//! One thread writes, and many read. A reader sees the changes of all groups up to its own; changes of later groups may
//! already be present.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::ops::{Bound, Deref};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytes::Bytes;

/// The number of shards; concurrent readers rarely need the same one.
const SHARDS: usize = 64;
/// The approximate memory of a change besides its key and value.
pub(super) const CHANGE_BYTES: usize = 144;
/// The approximate memory of a partition besides: a node of its key tree has room for eleven keys.
const PART_BYTES: usize = 1400;

/// The number of a group of batches that were committed together.
pub(in crate::sqlite) type GroupNumber = u64;

/// The current state of a key's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::sqlite) enum Now {
    /// It has this value.
    Value(Bytes),
    /// There is none.
    Gone,
    /// Its value is in the tree.
    InTree,
}

impl Now {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Value(value) => value.len(),
            Self::Gone | Self::InTree => 0,
        }
    }
}

/// A change of one record.
#[derive(Debug, Clone)]
pub(in crate::sqlite) struct Change {
    pub(in crate::sqlite) group: GroupNumber,
    pub(in crate::sqlite) revision: u64,
    pub(in crate::sqlite) now: Now,
}

/// A key and its change.
pub(in crate::sqlite) type Keyed = (Box<[u8]>, Change);

/// The changes of one record, in order.
#[derive(Debug)]
struct Changes {
    last: Change,
    before: Vec<Change>,
}

impl Changes {
    /// The last change that a reader at this group sees.
    fn at(&self, group: GroupNumber) -> Option<&Change> {
        if self.last.group <= group {
            return Some(&self.last);
        }
        self.before.iter().rfind(|change| change.group <= group)
    }
}

/// A key; a short key, as most are, is stored inline. A lookup compares about ten keys, which would otherwise be
/// scattered in memory.
#[derive(Debug, Clone)]
enum Key {
    Short(u8, [u8; SHORT_BYTES]),
    Long(Box<[u8]>),
}

const SHORT_BYTES: usize = 54;

impl Key {
    fn new(key: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES];
        match (short.get_mut(..key.len()), u8::try_from(key.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(key);
                Self::Short(length, short)
            }
            _ => Self::Long(key.into()),
        }
    }
}

impl Deref for Key {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Short(length, key) => &key[..usize::from(*length)],
            Self::Long(key) => key,
        }
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(other)
    }
}

#[derive(Debug, Default)]
struct Part {
    keys: BTreeMap<Key, Changes>,
    /// The number of keys whose records are removed.
    gone: usize,
}

type Shard = HashMap<Arc<str>, Part>;

#[derive(Debug)]
pub(in crate::sqlite) struct Memtable {
    shards: Box<[RwLock<Shard>]>,
    hasher: RandomState,
    bytes: AtomicUsize,
    /// The maximum number of such keys in one partition.
    most_gone: AtomicUsize,
}

impl Default for Memtable {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            hasher: RandomState::new(),
            bytes: AtomicUsize::new(0),
            most_gone: AtomicUsize::new(0),
        }
    }
}

impl Memtable {
    /// The approximate memory use.
    pub(in crate::sqlite) fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    /// The maximum number of removed keys that a reader of one partition skips.
    pub(in crate::sqlite) fn most_gone(&self) -> usize {
        self.most_gone.load(Relaxed)
    }

    /// Adds a change; the groups of successive changes never decrease.
    pub(in crate::sqlite) fn put(&self, partition: &Arc<str>, key: &[u8], change: Change) {
        let mut bytes = change.now.bytes() + CHANGE_BYTES;
        let mut shard = self.write(partition);
        if !shard.contains_key(partition) {
            shard.insert(Arc::clone(partition), Part::default());
            bytes += PART_BYTES;
        }
        let Some(part) = shard.get_mut(partition) else {
            return;
        };
        let is_gone = change.now == Now::Gone;
        let was_gone = match part.keys.get_mut(key) {
            Some(changes) => {
                let was_gone = changes.last.now == Now::Gone;
                let before = std::mem::replace(&mut changes.last, change);
                if before.group == changes.last.group {
                    bytes = bytes.wrapping_sub(before.now.bytes() + CHANGE_BYTES);
                } else {
                    changes.before.push(before);
                }
                was_gone
            }
            None => {
                bytes += key.len();
                let changes = Changes {
                    last: change,
                    before: Vec::new(),
                };
                part.keys.insert(Key::new(key), changes);
                false
            }
        };
        // Wrapping arithmetic subtracts.
        part.gone = part.gone + usize::from(is_gone) - usize::from(was_gone);
        self.most_gone.fetch_max(part.gone, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Undoes the change of a record by a group that was not committed.
    pub(in crate::sqlite) fn take_back(&self, partition: &str, key: &[u8], group: GroupNumber) {
        let mut shard = self.write(partition);
        let Some(part) = shard.get_mut(partition) else {
            return;
        };
        let Some(changes) = part.keys.get_mut(key).filter(|it| it.last.group == group) else {
            return;
        };
        let was_gone = changes.last.now == Now::Gone;
        let mut bytes = changes.last.now.bytes() + CHANGE_BYTES;
        let is_gone = match changes.before.pop() {
            Some(before) => {
                let is_gone = before.now == Now::Gone;
                changes.last = before;
                is_gone
            }
            None => {
                bytes += key.len();
                part.keys.remove(key);
                false
            }
        };
        part.gone = part.gone + usize::from(is_gone) - usize::from(was_gone);
        self.bytes.fetch_sub(bytes, Relaxed);
    }

    /// The change of a record that a reader at this group sees.
    pub(in crate::sqlite) fn get(
        &self,
        partition: &str,
        key: &[u8],
        at: GroupNumber,
    ) -> Option<Change> {
        let shard = self.read(partition);
        let changes = shard.get(partition)?.keys.get(key)?;
        changes.at(at).cloned()
    }

    /// The first changes of `from <= key < to`, at most `most`, that a reader at this group sees; and whether there may
    /// be more.
    pub(in crate::sqlite) fn range(
        &self,
        (partition, from, to): (&str, Bound<&[u8]>, Option<&[u8]>),
        at: GroupNumber,
        most: usize,
    ) -> (Vec<Keyed>, bool) {
        let shard = self.read(partition);
        let Some(part) = shard.get(partition) else {
            return (Vec::new(), false);
        };
        let end = to.map_or(Bound::Unbounded, Bound::Excluded);
        if is_empty(from, to) {
            return (Vec::new(), false);
        }
        let seen = part.keys.range::<[u8], _>((from, end));
        let seen = seen.filter_map(|(key, changes)| Some((key, changes.at(at)?)));
        let found: Vec<_> = seen
            .take(most)
            .map(|(key, change)| ((**key).into(), change.clone()))
            .collect();
        let is_more = found.len() == most;
        (found, is_more)
    }

    /// The partitions with changes, in order.
    pub(in crate::sqlite) fn partitions(&self) -> Vec<Arc<str>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            all.extend(shard.keys().map(Arc::clone));
        }
        all.sort_unstable();
        all
    }

    /// Frees a part of the memtable; returns whether something is left.
    pub(super) fn shrink(&mut self) -> bool {
        let mut shards = std::mem::take(&mut self.shards).into_vec();
        shards.pop();
        self.shards = shards.into();
        !self.shards.is_empty()
    }

    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    fn read(&self, partition: &str) -> RwLockReadGuard<'_, Shard> {
        let shard = self.shards[self.shard(partition)].read();
        shard.unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, partition: &str) -> RwLockWriteGuard<'_, Shard> {
        let shard = self.shards[self.shard(partition)].write();
        shard.unwrap_or_else(PoisonError::into_inner)
    }

    fn shard(&self, partition: &str) -> usize {
        let hash = self.hasher.hash_one(partition);
        usize::try_from(hash).unwrap_or_default() % SHARDS
    }
}

/// Returns true if the range is empty; the standard library panics on some empty ranges.
fn is_empty(from: Bound<&[u8]>, to: Option<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from) | Bound::Excluded(from), Some(to)) => to <= from,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(table: &Memtable, key: &str, group: GroupNumber, now: Now) {
        let change = Change {
            group,
            revision: group,
            now,
        };
        table.put(&"p".into(), key.as_bytes(), change);
    }

    fn value(text: &'static str) -> Now {
        Now::Value(text.into())
    }

    fn seen(table: &Memtable, at: GroupNumber) -> String {
        let all = ("p", Bound::Unbounded, None);
        let (found, _) = table.range(all, at, 100);
        let line = |(key, change): &Keyed| {
            let key = String::from_utf8_lossy(key);
            match &change.now {
                Now::Value(value) => format!("{key}={}", String::from_utf8_lossy(value)),
                Now::Gone => format!("{key} gone"),
                Now::InTree => format!("{key} in tree"),
            }
        };
        found.iter().map(line).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_reader_sees_changes_up_to_its_group_and_none_that_were_taken_back() {
        let table = Memtable::default();
        put(&table, "a", 1, value("one"));
        put(&table, "b", 2, value("two"));
        put(&table, "a", 2, Now::Gone);
        put(&table, "a", 2, value("again"));
        put(&table, "b", 4, Now::InTree);
        assert_eq!(seen(&table, 0), "");
        assert_eq!(seen(&table, 1), "a=one");
        assert_eq!(seen(&table, 3), "a=again, b=two");
        assert_eq!(seen(&table, 4), "a=again, b in tree");
        let bytes = table.bytes();
        put(&table, "a", 5, Now::Gone);
        put(&table, "c", 5, value("new"));
        table.take_back("p", b"a", 5);
        table.take_back("p", b"c", 5);
        table.take_back("p", b"b", 5);
        assert_eq!(seen(&table, 9), "a=again, b in tree");
        assert_eq!(table.bytes(), bytes);
        assert_eq!(table.most_gone(), 1);
        assert_eq!(table.partitions(), ["p".into()]);
        assert!(bytes > PART_BYTES && bytes < PART_BYTES + 5 * (CHANGE_BYTES + 8));
    }

    #[test]
    fn a_range_that_is_cut_says_that_there_may_be_more() {
        let table = Memtable::default();
        for key in ["a", "b", "c"] {
            put(&table, key, 1, value("x"));
        }
        let from = |from: &'static [u8]| ("p", Bound::Excluded(from), Some(&b"c"[..]));
        let (found, is_more) = table.range(from(b"a"), 1, 1);
        assert_eq!((&*found[0].0, is_more), (&b"b"[..], true));
        let (found, is_more) = table.range(from(b"b"), 1, 1);
        assert!(found.is_empty() && !is_more);
        let (found, _) = table.range(from(b"x"), 1, 1);
        assert!(found.is_empty());
    }
}
