//! Batches: assertions and changes that take effect together or not at all.

use std::sync::Arc;

use bytes::Bytes;

use crate::counters::COUNTER_BYTES;
use crate::numbered::{MAX_GAPS, Numbered};

/// The maximum number of operations and asserts, together, in one batch.
pub const MAX_BATCH_OPS: usize = 100_000;
/// The maximum number of bytes of partitions, keys, and values in one batch.
pub const MAX_BATCH_BYTES: usize = 128 << 20;
/// The maximum length of a partition's name, in bytes.
pub const MAX_PARTITION_BYTES: usize = 256;
/// The maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 1024;

/// A condition on the stored records, checked when the writer reaches the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Assert {
    /// No record has this key.
    Absent {
        /// The partition to check.
        partition: Arc<str>,
        /// The key that must be free.
        key: Vec<u8>,
    },
    /// A record has this key, whatever its revision.
    Exists {
        /// The partition to check.
        partition: Arc<str>,
        /// The key that must exist.
        key: Vec<u8>,
    },
    /// A record has this key and was last written by this revision.
    Revision {
        /// The partition to check.
        partition: Arc<str>,
        /// The record's key.
        key: Vec<u8>,
        /// The revision that was read with the record.
        revision: u64,
    },
}

impl Assert {
    /// Returns the partition and key of the assert.
    pub fn target(&self) -> (&str, &[u8]) {
        match self {
            Self::Absent { partition, key }
            | Self::Exists { partition, key }
            | Self::Revision { partition, key, .. } => (partition, key),
        }
    }

    /// Returns true if the assert holds for a record with the revision `found`.
    pub fn holds(&self, found: Option<u64>) -> bool {
        match self {
            Self::Absent { .. } => found.is_none(),
            Self::Exists { .. } => found.is_some(),
            Self::Revision { revision, .. } => found == Some(*revision),
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Writes a record, new or existing.
    Put {
        /// The record's partition; its first record creates it.
        partition: Arc<str>,
        /// The record's key.
        key: Vec<u8>,
        /// The record's new content.
        value: Bytes,
    },
    /// Writes a record, new or existing, whose key and value contain gaps for numbers. The writer takes each number
    /// from a counter record in the same partition when it applies the change, after earlier additions of the same
    /// batch. So each number is assigned once, in the order of commits, and the batches never conflict.
    PutNumbered {
        /// The record's partition; its first record creates it.
        partition: Arc<str>,
        /// The record's key.
        key: Numbered,
        /// The record's new content.
        value: Numbered,
    },
    /// Adds to a counter record, see [`counters`](crate::counters()). A missing record starts with `start`.
    ///
    /// Additions commute: batches that add to the same record need no assert on it and never conflict.
    Add {
        /// The record's partition.
        partition: Arc<str>,
        /// The record's key.
        key: Vec<u8>,
        /// The values added to the first counter, the second, …
        by: Vec<i64>,
        /// The initial counters of a missing record; missing entries are zero.
        start: Vec<i64>,
    },
    /// Removes a record if it exists.
    Delete {
        /// The record's partition.
        partition: Arc<str>,
        /// The record's key.
        key: Vec<u8>,
    },
    /// Removes every record with `from <= key < to`.
    DeleteRange {
        /// The partition of the range.
        partition: Arc<str>,
        /// The first key of the range.
        from: Vec<u8>,
        /// The first key after the range.
        to: Vec<u8>,
    },
    /// Removes every record of a partition.
    DeletePartition {
        /// The partition to empty.
        partition: Arc<str>,
    },
}

/// Asserts and changes that take effect together. The writer checks every assert first and then applies the changes in
/// order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The asserts, in the order of the checks.
    pub asserts: Vec<Assert>,
    /// The changes, in the order of application.
    pub ops: Vec<Op>,
}

/// The reply to a batch that was applied and is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The revision of every record that the batch wrote. Later batches get higher revisions, also after a restart;
    /// revisions may have gaps.
    pub revision: u64,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requires that no record has this key.
    pub fn assert_absent(
        &mut self,
        partition: impl Into<Arc<str>>,
        key: impl Into<Vec<u8>>,
    ) -> &mut Self {
        self.asserts.push(Assert::Absent {
            partition: partition.into(),
            key: key.into(),
        });
        self
    }

    /// Requires that a record has this key.
    pub fn assert_exists(
        &mut self,
        partition: impl Into<Arc<str>>,
        key: impl Into<Vec<u8>>,
    ) -> &mut Self {
        self.asserts.push(Assert::Exists {
            partition: partition.into(),
            key: key.into(),
        });
        self
    }

    /// Requires that the record still has this revision.
    pub fn assert_revision(
        &mut self,
        partition: impl Into<Arc<str>>,
        key: impl Into<Vec<u8>>,
        revision: u64,
    ) -> &mut Self {
        let (partition, key) = (partition.into(), key.into());
        self.asserts.push(Assert::Revision {
            partition,
            key,
            revision,
        });
        self
    }

    /// Writes a record.
    pub fn put(
        &mut self,
        partition: impl Into<Arc<str>>,
        key: impl Into<Vec<u8>>,
        value: impl Into<Bytes>,
    ) -> &mut Self {
        self.ops.push(Op::Put {
            partition: partition.into(),
            key: key.into(),
            value: value.into(),
        });
        self
    }

    /// Adds to a counter record.
    pub fn add(
        &mut self,
        partition: impl Into<Arc<str>>,
        key: impl Into<Vec<u8>>,
        by: impl Into<Vec<i64>>,
    ) -> &mut Self {
        self.ops.push(Op::Add {
            partition: partition.into(),
            key: key.into(),
            by: by.into(),
            start: Vec::new(),
        });
        self
    }

    /// Adds to a counter record; a missing record starts with `start`.
    pub fn add_from(
        &mut self,
        partition: impl Into<Arc<str>>,
        key: impl Into<Vec<u8>>,
        start: impl Into<Vec<i64>>,
        by: impl Into<Vec<i64>>,
    ) -> &mut Self {
        self.ops.push(Op::Add {
            partition: partition.into(),
            key: key.into(),
            by: by.into(),
            start: start.into(),
        });
        self
    }

    /// Writes a record with numbers in its key and value.
    pub fn put_numbered(
        &mut self,
        partition: impl Into<Arc<str>>,
        key: Numbered,
        value: Numbered,
    ) -> &mut Self {
        self.ops.push(Op::PutNumbered {
            partition: partition.into(),
            key,
            value,
        });
        self
    }

    /// Removes a record if it exists.
    pub fn delete(&mut self, partition: impl Into<Arc<str>>, key: impl Into<Vec<u8>>) -> &mut Self {
        self.ops.push(Op::Delete {
            partition: partition.into(),
            key: key.into(),
        });
        self
    }

    /// Removes every record with `from <= key < to`.
    pub fn delete_range(
        &mut self,
        partition: impl Into<Arc<str>>,
        from: impl Into<Vec<u8>>,
        to: impl Into<Vec<u8>>,
    ) -> &mut Self {
        self.ops.push(Op::DeleteRange {
            partition: partition.into(),
            from: from.into(),
            to: to.into(),
        });
        self
    }

    /// Removes every record of a partition.
    pub fn delete_partition(&mut self, partition: impl Into<Arc<str>>) -> &mut Self {
        self.ops.push(Op::DeletePartition {
            partition: partition.into(),
        });
        self
    }

    /// Returns true if the batch has no asserts and no changes.
    pub fn is_empty(&self) -> bool {
        self.asserts.is_empty() && self.ops.is_empty()
    }

    /// The number of bytes of partitions, keys, and values in the batch.
    pub fn bytes(&self) -> usize {
        self.asserts.iter().map(assert_bytes).sum::<usize>()
            + self.ops.iter().map(Op::bytes).sum::<usize>()
    }

    /// The batch's size if it is within every limit, `None` otherwise.
    pub(crate) fn checked_bytes(&self) -> Option<usize> {
        let bytes = self.bytes();
        let within = self.asserts.len() + self.ops.len() <= MAX_BATCH_OPS
            && bytes <= MAX_BATCH_BYTES
            && self.asserts.iter().all(|assert| {
                let (partition, key) = assert.target();
                name_fits(partition) && key.len() <= MAX_KEY_BYTES
            })
            && self.ops.iter().all(op_fits);
        within.then_some(bytes)
    }
}

fn assert_bytes(assert: &Assert) -> usize {
    let (partition, key) = assert.target();
    partition.len() + key.len()
}

impl Op {
    /// The number of bytes of the operation's partition, keys, and values.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Put {
                partition,
                key,
                value,
            } => partition.len() + key.len() + value.len(),
            Self::PutNumbered {
                partition,
                key,
                value,
            } => partition.len() + key.batch_bytes() + value.batch_bytes(),
            Self::Add {
                partition,
                key,
                by,
                start,
            } => partition.len() + key.len() + COUNTER_BYTES * (by.len() + start.len()),
            Self::Delete { partition, key } => partition.len() + key.len(),
            Self::DeleteRange {
                partition,
                from,
                to,
            } => partition.len() + from.len() + to.len(),
            Self::DeletePartition { partition } => partition.len(),
        }
    }

    /// An estimate of the bytes that the operation adds to the stored records.
    pub(crate) fn written_bytes(&self) -> u64 {
        match self {
            Self::Put { key, value, .. } => (key.len() + value.len()) as u64,
            Self::PutNumbered { key, value, .. } => (key.most_bytes() + value.most_bytes()) as u64,
            Self::Add { key, by, .. } => (key.len() + size_of_val(by.as_slice())) as u64,
            _ => 0,
        }
    }
}

fn name_fits(partition: &str) -> bool {
    (1..=MAX_PARTITION_BYTES).contains(&partition.len())
}

fn op_fits(op: &Op) -> bool {
    match op {
        Op::Put { partition, key, .. }
        | Op::Add { partition, key, .. }
        | Op::Delete { partition, key } => name_fits(partition) && key.len() <= MAX_KEY_BYTES,
        Op::PutNumbered {
            partition,
            key,
            value,
        } => {
            let fits = |it: &Numbered| {
                let fits = |name: &Bytes| name.len() <= MAX_KEY_BYTES;
                it.gaps().len() <= MAX_GAPS && it.gaps().iter().all(|gap| fits(&gap.counter))
            };
            let is_short = key.most_bytes() <= MAX_KEY_BYTES;
            name_fits(partition) && is_short && fits(key) && fits(value)
        }
        Op::DeleteRange {
            partition,
            from,
            to,
        } => name_fits(partition) && from.len() <= MAX_KEY_BYTES && to.len() <= MAX_KEY_BYTES,
        Op::DeletePartition { partition } => name_fits(partition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_checked_at_their_edges() {
        let fits = |batch: &Batch| batch.checked_bytes().is_some();
        let mut batch = Batch::new();
        batch.put("p", vec![0; MAX_KEY_BYTES], "");
        assert!(fits(&batch));
        batch.delete("p", vec![0; MAX_KEY_BYTES + 1]);
        assert!(!fits(&batch));

        let mut batch = Batch::new();
        batch.put("p", "k", vec![0; MAX_BATCH_BYTES - 2]);
        assert!(fits(&batch));
        batch.assert_absent("p", "");
        assert!(!fits(&batch));

        let mut batch = Batch::new();
        batch.delete_partition("p".repeat(MAX_PARTITION_BYTES));
        assert!(fits(&batch));
        batch.delete_partition("");
        assert!(!fits(&batch));

        let mut batch = Batch::new();
        batch.ops = vec![
            Op::DeletePartition {
                partition: "p".into()
            };
            MAX_BATCH_OPS
        ];
        assert!(fits(&batch));
        batch.assert_exists("p", "k");
        assert!(!fits(&batch));
    }
}
