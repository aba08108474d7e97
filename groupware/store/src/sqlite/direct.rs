//! Batches whose changes go into the tree at once, while nothing waits for it.

use super::tree::{Held, Tree};
use crate::counters::raised;
use crate::{Assert, Numbered, Op};

/// A partition and a key.
type Target<'a> = (&'a str, &'a [u8]);

/// What a batch has found out of keys, until something changes it.
#[derive(Default)]
pub(super) struct Looked<'a> {
    /// By its asserts: how the records lie.
    held: Vec<(Target<'a>, Held)>,
    /// By its additions: what the records of counters are.
    sums: Vec<(Target<'a>, Vec<u8>)>,
}

impl<'a> Looked<'a> {
    /// Most keys of which something is kept: each change looks through them.
    const MOST: usize = 64;

    fn note(&mut self, target: Target<'a>, held: Held) {
        if self.held.len() < Self::MOST {
            self.held.push((target, held));
        }
    }

    fn note_sum(&mut self, target: Target<'a>, sum: Vec<u8>) {
        if self.sums.len() < Self::MOST {
            self.sums.push((target, sum));
        }
    }

    /// What counters were added up to.
    fn sum(&self, partition: &str, key: &[u8]) -> Option<&[u8]> {
        let mut sums = self.sums.iter();
        let found = sums.find(|((its, at), _)| *at == key && *its == partition);
        found.map(|(_, sum)| &sum[..])
    }

    /// What was found of a key that is now changed.
    fn take(&mut self, partition: &str, key: &[u8]) -> Option<Held> {
        self.sums
            .retain(|((its, at), _)| *at != key || *its != partition);
        let is_it = |((its, at), _): &(Target<'_>, Held)| *at == key && *its == partition;
        let mut found = None;
        // It may have been looked at twice.
        while let Some(at) = self.held.iter().position(is_it) {
            found = Some(self.held.swap_remove(at).1);
        }
        found
    }

    fn forget_all(&mut self) {
        self.held.clear();
        self.sums.clear();
    }
}

/// The first assert that doesn't hold.
pub(super) fn first_failed<'a>(
    tree: &Tree,
    asserts: &'a [Assert],
    looked: &mut Looked<'a>,
) -> rusqlite::Result<Option<usize>> {
    for (index, assert) in asserts.iter().enumerate() {
        let found = tree.look(assert.target())?;
        if !assert.holds(found.map(|(revision, _)| revision)) {
            return Ok(Some(index));
        }
        let held = found.map_or(Held::NotLarge, |(_, held)| held);
        looked.note(assert.target(), held);
    }
    Ok(None)
}

/// Applies a change.
pub(super) fn change<'a>(
    tree: &mut Tree,
    op: &'a Op,
    revision: u64,
    looked: &mut Looked<'a>,
) -> rusqlite::Result<()> {
    match op {
        Op::Put {
            partition,
            key,
            value,
        } => {
            let held = looked.take(partition, key);
            tree.put((partition, key), revision, value, held)
        }
        Op::PutNumbered {
            partition,
            key,
            value,
        } => {
            let key = filled(tree, partition, key, looked)?;
            let value = filled(tree, partition, value, looked)?;
            let held = looked.take(partition, &key);
            tree.put((partition, &key), revision, &value, held)
        }
        Op::Add {
            partition,
            key,
            by,
            start,
        } => {
            let old = match looked.sum(partition, key) {
                Some(sum) => Some(sum.to_vec()),
                None => tree.value(partition, key)?,
            };
            let sum = raised(old.as_deref(), start, by);
            let held = looked.take(partition, key);
            tree.put((partition, key), revision, &sum, held)?;
            looked.note_sum((partition, key), sum);
            Ok(())
        }
        Op::Delete { partition, key } => {
            let held = looked.take(partition, key);
            tree.delete(partition, key, held)
        }
        Op::DeleteRange {
            partition,
            from,
            to,
        } => {
            looked.forget_all();
            tree.delete_range(partition, from, to)
        }
        Op::DeletePartition { partition } => {
            looked.forget_all();
            tree.delete_partition(partition)
        }
    }
}

/// A key or value with the numbers that its gaps get.
fn filled(
    tree: &Tree,
    partition: &str,
    numbered: &Numbered,
    looked: &Looked<'_>,
) -> rusqlite::Result<Vec<u8>> {
    let mut numbers = Vec::with_capacity(numbered.gaps().len());
    for gap in numbered.gaps() {
        numbers.push(match looked.sum(partition, &gap.counter) {
            Some(sum) => gap.number(sum),
            None => {
                let record = tree.value(partition, &gap.counter)?;
                gap.number(&record.unwrap_or_default())
            }
        });
    }
    Ok(numbered.filled(&numbers))
}
