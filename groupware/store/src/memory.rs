//! The engine without a disk: for tests, and for measuring the cost of the disk.
//!
//! A snapshot is a reference to the whole state. The writer copies the partitions that it changes only while a snapshot
//! exists.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::counters::raised;
use crate::engine::{Engine, Outcome, Writer};
use crate::numbered::Numbered;
use crate::{Batch, CommitError, Committed, Op, Record, Snapshot, StoreError, StoreOptions, Walk};

type Partition = BTreeMap<Vec<u8>, Record>;

#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    partitions: BTreeMap<Arc<str>, Arc<Partition>>,
    bytes: u64,
}

/// The state for the next snapshot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared(Arc<Mutex<Arc<State>>>);

impl Shared {
    /// Locks the state. A writer that panicked half-way would leave uncommitted state, but nothing in `apply` panics.
    /// So a poisoned lock only means that a reader was killed.
    fn lock(&self) -> MutexGuard<'_, Arc<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine for Shared {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, StoreError> {
        Ok(Box::new(Arc::clone(&self.lock())))
    }

    fn data_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.lock().bytes)
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

pub(crate) fn open(options: &StoreOptions) -> (Shared, MemoryWriter) {
    let shared = Shared::default();
    let quota_bytes = options.quota_bytes.unwrap_or(u64::MAX);
    let writer = MemoryWriter {
        shared: shared.clone(),
        revision: 0,
        quota_bytes,
    };
    (shared, writer)
}

pub(crate) struct MemoryWriter {
    shared: Shared,
    revision: u64,
    quota_bytes: u64,
}

impl Writer for MemoryWriter {
    fn commit(&mut self, group: &[&Batch], outcomes: &mut Vec<Outcome>) {
        let mut slot = self.shared.lock();
        let state = Arc::make_mut(&mut slot);
        for batch in group {
            let revision = self.revision + 1;
            let outcome = state.apply(batch, revision, self.quota_bytes);
            if outcome.is_ok() {
                self.revision = revision;
            }
            outcomes.push(outcome);
        }
    }
}

impl State {
    fn apply(&mut self, batch: &Batch, revision: u64, quota_bytes: u64) -> Outcome {
        let failed = batch.asserts.iter().position(|assert| {
            let (partition, key) = assert.target();
            !assert.holds(self.record(partition, key).map(|record| record.revision))
        });
        if let Some(index) = failed {
            return Err(CommitError::Conflict { index });
        }
        let written: u64 = batch.ops.iter().map(Op::written_bytes).sum();
        if written > 0 && self.bytes + written > quota_bytes {
            return Err(CommitError::Full);
        }
        for op in &batch.ops {
            self.change(op, revision);
        }
        Ok(Committed { revision })
    }

    fn record(&self, partition: &str, key: &[u8]) -> Option<&Record> {
        self.partitions.get(partition)?.get(key)
    }

    fn change(&mut self, op: &Op, revision: u64) {
        match op {
            Op::Put {
                partition,
                key,
                value,
            } => self.put(partition, key, value.clone(), revision),
            Op::PutNumbered {
                partition,
                key,
                value,
            } => {
                let key = self.filled(partition, key);
                let value = self.filled(partition, value).into();
                self.put(partition, &key, value, revision);
            }
            Op::Add {
                partition,
                key,
                by,
                start,
            } => {
                let old = self.record(partition, key).map(|old| &old.value[..]);
                let sums = raised(old, start, by);
                self.put(partition, key, sums.into(), revision);
            }
            Op::Delete { partition, key } => self.remove(partition, |records| {
                records.remove_entry(key.as_slice()).into_iter().collect()
            }),
            Op::DeleteRange {
                partition,
                from,
                to,
            } if from < to => {
                self.remove(partition, |records| {
                    let mut gone = records.split_off(from.as_slice());
                    records.append(&mut gone.split_off(to.as_slice()));
                    gone
                });
            }
            Op::DeleteRange { .. } => {}
            Op::DeletePartition { partition } => self.remove(partition, std::mem::take),
        }
    }

    fn filled(&self, partition: &str, numbered: &Numbered) -> Vec<u8> {
        let number = |gap: &crate::Gap| {
            let record = self.record(partition, &gap.counter);
            gap.number(record.map_or(&[], |record| &record.value))
        };
        let numbers: Vec<i64> = numbered.gaps().iter().map(number).collect();
        numbered.filled(&numbers)
    }

    fn put(&mut self, partition: &Arc<str>, key: &[u8], value: Bytes, revision: u64) {
        let records = self.partitions.entry(Arc::clone(partition)).or_default();
        let record = Record { value, revision };
        self.bytes += record_bytes(key, &record);
        if let Some(old) = Arc::make_mut(records).insert(key.to_vec(), record) {
            self.bytes -= record_bytes(key, &old);
        }
    }

    fn remove(&mut self, partition: &str, take: impl FnOnce(&mut Partition) -> Partition) {
        let Some(records) = self.partitions.get_mut(partition) else {
            return;
        };
        let records = Arc::make_mut(records);
        let gone = take(records);
        self.bytes -= gone
            .iter()
            .map(|(key, record)| record_bytes(key, record))
            .sum::<u64>();
        if records.is_empty() {
            self.partitions.remove(partition);
        }
    }
}

fn record_bytes(key: &[u8], record: &Record) -> u64 {
    (key.len() + record.value.len()) as u64
}

impl Snapshot for Arc<State> {
    fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError> {
        Ok(self.record(partition, key).cloned())
    }

    fn scan(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(records) = self.partitions.get(partition) else {
            return Ok(());
        };
        if to.is_some_and(|to| to <= from) {
            return Ok(());
        }
        let end = to.map_or(Bound::Unbounded, Bound::Excluded);
        for (key, record) in records
            .range::<[u8], _>((Bound::Included(from), end))
            .take(limit)
        {
            if visit(key, record.clone()).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn walk(
        &self,
        after: Option<(&str, &[u8])>,
        limit: usize,
        visit: Walk<'_>,
    ) -> Result<(), StoreError> {
        let first = after.map_or("", |(partition, _)| partition);
        let records = self
            .partitions
            .range::<str, _>((Bound::Included(first), Bound::Unbounded))
            .flat_map(|(partition, records)| {
                records
                    .iter()
                    .map(move |(key, record)| (partition, key, record))
            })
            .filter(|(partition, key, _)| {
                after.is_none_or(|after| (&***partition, &***key) > after)
            })
            .take(limit);
        for (partition, key, record) in records {
            if visit(partition, key, record.clone()).is_break() {
                break;
            }
        }
        Ok(())
    }
}
