//! Applies logged changes to the tree while there are no pending changes.

use super::tree::Tree;
use crate::counters::raised;
use crate::{Numbered, Op};

/// Applies a change again.
pub(super) fn redo(tree: &mut Tree, op: &Op, revision: u64) -> rusqlite::Result<()> {
    match op {
        Op::Put {
            partition,
            key,
            value,
        } => tree.put((partition, key), revision, value),
        Op::PutNumbered {
            partition,
            key,
            value,
        } => {
            let key = filled(tree, partition, key)?;
            let value = filled(tree, partition, value)?;
            tree.put((partition, &key), revision, &value)
        }
        Op::Add {
            partition,
            key,
            by,
            start,
        } => {
            let old = tree.value(partition, key)?;
            let sum = raised(old.as_deref(), start, by);
            tree.put((partition, key), revision, &sum)
        }
        Op::Delete { partition, key } => tree.delete(partition, key),
        Op::DeleteRange {
            partition,
            from,
            to,
        } => tree.delete_range(partition, from, to),
        Op::DeletePartition { partition } => tree.delete_partition(partition),
    }
}

/// A key or value with its gaps filled.
fn filled(tree: &Tree, partition: &str, numbered: &Numbered) -> rusqlite::Result<Vec<u8>> {
    let mut numbers = Vec::with_capacity(numbered.gaps().len());
    for gap in numbered.gaps() {
        let record = tree.value(partition, &gap.counter)?;
        numbers.push(gap.number(&record.unwrap_or_default()));
    }
    Ok(numbered.filled(&numbers))
}
