//! Recently read or written records in memory: reading them again needs no engine.
//!
//! A cached read sees exactly what the engine would return: one state of all records, with everything acknowledged
//! before. Commits are numbered by groups. Before the engine commits a group, the cache marks the changed partitions
//! with the group's number. When the group is durable, the cache updates its records and then publishes the number. A
//! reader is at the last group published when it began. Cached data of a partition is valid for the reader as long as
//! it shows no later group. On a miss, the engine's snapshot, which may be later, serves all further reads. Earlier
//! reads must not have changed since; otherwise the reader starts again, on the engine alone ([`Remembered::is_torn`]).
//! The engine's results are cached, unless their partition was marked since.

mod part;
mod remembered;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use self::part::Part;
pub(crate) use self::remembered::Remembered;
use crate::engine::Outcome;
use crate::{Batch, CommitError, Op, Record};

/// The number of shards; concurrent readers rarely need the same one.
const SHARDS: usize = 64;
/// The number of marks. Partitions that share a mark cause a few unnecessary reads of the engine.
const MARKS: usize = 1 << 14;
/// The maximum length of a cached value.
const LONGEST_BYTES: usize = 16 << 10;

/// The number of a group of changes.
type GroupNumber = u64;

/// The cache.
pub(crate) struct Cache {
    /// The key prefix of cached records.
    prefix: &'static [u8],
    bytes_per_shard: usize,
    published: AtomicU64,
    /// The last group that changed a partition or is about to, by the hash of the partition's name.
    marks: Box<[AtomicU64]>,
    shards: Box<[Mutex<Shard>]>,
    hasher: RandomState,
    looks: AtomicU64,
    looks_remembered: AtomicU64,
}

#[derive(Default)]
struct Shard {
    parts: HashMap<Arc<str>, Part>,
    /// All partitions of the shard; the one last checked for use is at the end.
    turns: VecDeque<Arc<str>>,
    bytes: usize,
}

/// The shard and mark of a partition.
#[derive(Debug, Clone, Copy)]
struct Home {
    shard: usize,
    mark: usize,
}

/// The result of a lookup.
enum Found<T> {
    Known(T),
    Unknown,
    /// The partition has changed since the reader's group.
    Later,
}

impl Cache {
    /// Creates a cache of about this many bytes for records with this key prefix.
    pub(crate) fn new(prefix: &'static [u8], bytes: usize) -> Self {
        Self {
            prefix,
            bytes_per_shard: bytes / SHARDS,
            published: AtomicU64::new(0),
            marks: (0..MARKS).map(|_| AtomicU64::new(0)).collect(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            looks: AtomicU64::new(0),
            looks_remembered: AtomicU64::new(0),
        }
    }

    /// Returns the number of reads, and of those that needed no engine.
    pub(crate) fn looks(&self) -> (u64, u64) {
        (
            self.looks.load(Relaxed),
            self.looks_remembered.load(Relaxed),
        )
    }

    fn count(&self, is_remembered: bool) {
        self.looks.fetch_add(1, Relaxed);
        if is_remembered {
            self.looks_remembered.fetch_add(1, Relaxed);
        }
    }

    /// Marks the changed partitions, before the engine commits a group.
    pub(crate) fn begin(&self, group: &[&Batch]) -> GroupNumber {
        let number = self.published.load(SeqCst) + 1;
        for op in group.iter().flat_map(|batch| &batch.ops) {
            if let Some(partition) = self.concerned(op) {
                self.marks[self.home(partition).mark].store(number, SeqCst);
            }
        }
        number
    }

    /// Updates the cache when the group is durable, before the callers get their replies.
    pub(crate) fn publish(&self, number: GroupNumber, group: &[&Batch], outcomes: &[Outcome]) {
        for (batch, outcome) in group.iter().zip(outcomes) {
            match outcome {
                Ok(committed) => {
                    for op in &batch.ops {
                        self.change(op, committed.revision, number);
                    }
                }
                Err(CommitError::Conflict { .. }) => {}
                // The outcome may be unknown; only the engine has the current records.
                Err(_) => {
                    let concerned = batch.ops.iter().filter_map(|op| self.concerned(op));
                    concerned.for_each(|partition| self.forget(partition));
                }
            }
        }
        self.published.store(number, SeqCst);
    }

    /// The partition in which an operation may change a cached record.
    fn concerned<'a>(&self, op: &'a Op) -> Option<&'a Arc<str>> {
        match op {
            Op::Put { partition, key, .. }
            | Op::Add { partition, key, .. }
            | Op::Delete { partition, key } => key.starts_with(self.prefix).then_some(partition),
            Op::PutNumbered { partition, key, .. } => {
                key.may_begin_with(self.prefix).then_some(partition)
            }
            Op::DeleteRange { partition, .. } | Op::DeletePartition { partition } => {
                Some(partition)
            }
        }
    }

    fn change(&self, op: &Op, revision: u64, number: GroupNumber) {
        let Some(partition) = self.concerned(op) else {
            return;
        };
        // The numbers in the gaps are not known here.
        if let Op::DeleteRange { .. } | Op::DeletePartition { .. } | Op::PutNumbered { .. } = op {
            return self.forget(partition);
        }
        let mut shard = self.shard(self.home(partition));
        // The user of a written record is likely to read it soon. If not, it is evicted first.
        let is_kept = matches!(op, Op::Put { value, .. } if value.len() <= LONGEST_BYTES);
        if !is_kept && !shard.parts.contains_key(partition) {
            return;
        }
        let part = shard.part(partition, number);
        let before = part.bytes();
        part.group = number;
        match op {
            Op::Put { key, value, .. } if value.len() <= LONGEST_BYTES => {
                // Copied, because the value may be a slice of a larger buffer.
                let value = Bytes::copy_from_slice(value);
                part.put(key, Record { value, revision });
            }
            Op::Put { key, .. } => part.forget(key),
            Op::Add { key, by, start, .. } => part.add(key, (start, by), revision),
            Op::Delete { key, .. } => part.remove(key),
            Op::PutNumbered { .. } | Op::DeleteRange { .. } | Op::DeletePartition { .. } => {}
        }
        let (after, is_in_pieces) = (part.bytes(), part.is_in_pieces());
        shard.bytes = shard.bytes - before + after;
        if is_in_pieces {
            shard.forget(partition);
        }
        shard.evict(self.bytes_per_shard);
    }

    fn forget(&self, partition: &Arc<str>) {
        self.shard(self.home(partition)).forget(partition);
    }

    fn published(&self) -> GroupNumber {
        self.published.load(SeqCst)
    }

    /// Returns true if a partition was changed after a group, or is about to be.
    fn is_marked_since(&self, home: Home, number: GroupNumber) -> bool {
        self.marks[home.mark].load(SeqCst) > number
    }

    /// Looks up cached data of a partition, for a reader at this group.
    fn look<T>(
        &self,
        partition: &str,
        at: GroupNumber,
        read: impl FnOnce(&Part) -> Option<T>,
    ) -> Found<T> {
        let mut shard = self.shard(self.home(partition));
        let Some(part) = shard.parts.get_mut(partition) else {
            return Found::Unknown;
        };
        match read(part) {
            None => Found::Unknown,
            Some(_) if part.group > at => Found::Later,
            Some(found) => {
                part.is_in_use = true;
                Found::Known(found)
            }
        }
    }

    /// Caches what a snapshot of the engine has in a span of keys. The snapshot began when this group was published, or
    /// later.
    fn fill(
        &self,
        partition: &str,
        began: GroupNumber,
        (from, to): (&[u8], &[u8]),
        records: Vec<(Bytes, Record)>,
    ) {
        let home = self.home(partition);
        let mut shard = self.shard(home);
        // A writer that marks it later also updates it later, because the shard is locked here.
        let marked = self.marks[home.mark].load(SeqCst);
        if marked > began {
            return;
        }
        let part = shard.part(partition, marked);
        let before = part.bytes();
        part.is_in_use = true;
        part.learn(from, to, records);
        let (after, is_in_pieces) = (part.bytes(), part.is_in_pieces());
        shard.bytes = shard.bytes - before + after;
        if is_in_pieces {
            shard.forget(partition);
        }
        shard.evict(self.bytes_per_shard);
    }

    fn home(&self, partition: &str) -> Home {
        let hash = self.hasher.hash_one(partition);
        let place = |hash: u64, count: usize| usize::try_from(hash).unwrap_or_default() % count;
        Home {
            shard: place(hash >> 32, SHARDS),
            mark: place(hash & u64::from(u32::MAX), MARKS),
        }
    }

    fn shard(&self, home: Home) -> MutexGuard<'_, Shard> {
        let shard = self.shards[home.shard].lock();
        shard.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shard {
    fn part(&mut self, partition: &str, group: GroupNumber) -> &mut Part {
        if !self.parts.contains_key(partition) {
            let name: Arc<str> = partition.into();
            self.turns.push_back(Arc::clone(&name));
            self.parts.insert(name, Part::new(group));
        }
        self.parts
            .get_mut(partition)
            .expect("it was there, or was put there")
    }

    fn forget(&mut self, partition: &str) {
        if let Some(part) = self.parts.remove(partition) {
            self.bytes -= part.bytes();
            self.turns.retain(|name| **name != *partition);
        }
    }

    /// Evicts partitions until the rest fits: those not read since their last turn, and then the next in turn.
    fn evict(&mut self, most_bytes: usize) {
        let mut spared = self.turns.len();
        while self.bytes > most_bytes {
            let Some(name) = self.turns.pop_front() else {
                return;
            };
            let Some(part) = self.parts.get_mut(&name) else {
                continue;
            };
            if part.is_in_use && spared > 0 {
                spared -= 1;
                part.is_in_use = false;
                self.turns.push_back(name);
                continue;
            }
            self.bytes -= part.bytes();
            self.parts.remove(&name);
        }
    }
}
