//! A group of batches, judged in order against the stored records: pure, without the database.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;
use groupware_store::{Batch, CommitError, Committed, Numbered, Op, Outcome, raised};

/// The number of locks for all partitions, however many a group touches: the server's lock table is
/// bounded.
const LOCKS: u64 = 1024;

/// The records that a group's batches assert or add to, and the partitions to lock for them.
#[derive(Debug, Default)]
pub(crate) struct Wanted<'a> {
    /// The locks in order, and whether each is exclusive.
    pub(crate) locks: Vec<i32>,
    pub(crate) are_exclusive: Vec<bool>,
    pub(crate) partitions: Vec<&'a [u8]>,
    pub(crate) keys: Vec<&'a [u8]>,
    /// Whether the value is needed besides the revision.
    pub(crate) with_values: Vec<bool>,
}

/// A record that was found: its index among the wanted ones, its revision, and its value if requested.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) at: usize,
    pub(crate) revision: u64,
    pub(crate) value: Option<Bytes>,
}

/// A partition and a key, which may contain assigned numbers.
type RowKey<'a> = (&'a [u8], Cow<'a, [u8]>);

/// The resulting writes: ranges first, then single records.
#[derive(Debug, Default)]
pub(crate) struct Writes<'a> {
    pub(crate) emptied: Vec<&'a [u8]>,
    pub(crate) ranges: Vec<(&'a [u8], &'a [u8], &'a [u8])>,
    pub(crate) deletes: Vec<RowKey<'a>>,
    pub(crate) puts: Vec<(RowKey<'a>, u64, Bytes)>,
}

impl Writes<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.emptied.is_empty()
            && self.ranges.is_empty()
            && self.deletes.is_empty()
            && self.puts.is_empty()
    }

    /// The approximate bytes of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        let puts = self.puts.iter();
        puts.map(|((partition, key), _, value)| partition.len() + key.len() + value.len())
            .sum()
    }
}

impl<'a> Wanted<'a> {
    pub(crate) fn of(group: &[&'a Batch]) -> Self {
        let mut locks: BTreeMap<i32, bool> = BTreeMap::new();
        let mut records: BTreeMap<(&'a [u8], &'a [u8]), bool> = BTreeMap::new();
        for batch in group {
            for assert in &batch.asserts {
                let (partition, key) = assert.target();
                locks.entry(lock(partition)).or_default();
                records.entry((partition.as_bytes(), key)).or_default();
            }
            for op in &batch.ops {
                *locks.entry(lock(partition_of(op))).or_default() = true;
                match op {
                    Op::Add { partition, key, .. } => {
                        *records.entry((partition.as_bytes(), key)).or_default() = true;
                    }
                    Op::PutNumbered {
                        partition,
                        key,
                        value,
                    } => {
                        for gap in key.gaps().iter().chain(value.gaps()) {
                            let at = (partition.as_bytes(), &gap.counter[..]);
                            *records.entry(at).or_default() = true;
                        }
                    }
                    _ => {}
                }
            }
        }
        let mut wanted = Self::default();
        (wanted.locks, wanted.are_exclusive) = locks.into_iter().unzip();
        for ((partition, key), with_value) in records {
            wanted.partitions.push(partition);
            wanted.keys.push(key);
            wanted.with_values.push(with_value);
        }
        wanted
    }

    /// Judges the batches in order; the batch at `i` gets the revision `first + i`.
    pub(crate) fn judge(
        &self,
        found: Vec<Found>,
        group: &[&'a Batch],
        first: u64,
    ) -> (Vec<Outcome>, Writes<'a>) {
        let mut overlay = Overlay::over(self, found);
        let mut outcomes = Vec::with_capacity(group.len());
        for (revision, batch) in (first..).zip(group) {
            let failed = batch.asserts.iter().position(|assert| {
                let (partition, key) = assert.target();
                !assert.holds(overlay.revision((partition.as_bytes(), key)))
            });
            outcomes.push(match failed {
                Some(index) => Err(CommitError::Conflict { index }),
                None => {
                    for op in &batch.ops {
                        overlay.change(op, revision);
                    }
                    Ok(Committed { revision })
                }
            });
        }
        (outcomes, overlay.writes())
    }
}

/// Returns the lock number of a partition.
fn lock(partition: &str) -> i32 {
    i32::try_from(hash(partition.as_bytes()) % LOCKS).unwrap_or_default()
}

/// FNV-1a: the same in every version of this program, since several may use one database.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn partition_of(op: &Op) -> &str {
    match op {
        Op::Put { partition, .. }
        | Op::PutNumbered { partition, .. }
        | Op::Add { partition, .. }
        | Op::Delete { partition, .. }
        | Op::DeleteRange { partition, .. }
        | Op::DeletePartition { partition } => partition,
    }
}

/// A record as the next batch of the group sees it.
#[derive(Debug)]
struct Entry {
    /// Revision and value; the value is empty if it isn't needed.
    record: Option<(u64, Bytes)>,
    is_changed: bool,
}

/// The stored records that batches look up, and the group's changes.
#[derive(Debug, Default)]
struct Overlay<'a> {
    entries: BTreeMap<RowKey<'a>, Entry>,
    emptied: Vec<&'a [u8]>,
    ranges: Vec<(&'a [u8], &'a [u8], &'a [u8])>,
}

impl<'a> Overlay<'a> {
    fn over(wanted: &Wanted<'a>, found: Vec<Found>) -> Self {
        let mut overlay = Self::default();
        for record in found {
            let (Some(partition), Some(key)) =
                (wanted.partitions.get(record.at), wanted.keys.get(record.at))
            else {
                continue;
            };
            let entry = Entry {
                record: Some((record.revision, record.value.unwrap_or_default())),
                is_changed: false,
            };
            overlay
                .entries
                .insert((partition, Cow::Borrowed(key)), entry);
        }
        overlay
    }

    fn revision(&self, place: (&[u8], &[u8])) -> Option<u64> {
        let (partition, key) = place;
        self.record(partition, key).map(|(revision, _)| *revision)
    }

    fn record<'s>(&'s self, partition: &'s [u8], key: &'s [u8]) -> Option<&'s (u64, Bytes)> {
        let entry = self.entries.get(&(partition, Cow::Borrowed(key)))?;
        entry.record.as_ref()
    }

    /// Returns a key or value with its gaps filled with numbers.
    fn filled(&self, partition: &[u8], numbered: &Numbered) -> Vec<u8> {
        let number = |gap: &groupware_store::Gap| {
            let record = self.record(partition, &gap.counter);
            gap.number(record.map_or(&[], |(_, value)| value))
        };
        let numbers: Vec<i64> = numbered.gaps().iter().map(number).collect();
        numbered.filled(&numbers)
    }

    fn change(&mut self, op: &'a Op, revision: u64) {
        match op {
            Op::Put {
                partition,
                key,
                value,
            } => {
                let place = (partition.as_bytes(), Cow::Borrowed(&key[..]));
                self.set(place, Some((revision, value.clone())));
            }
            Op::PutNumbered {
                partition,
                key,
                value,
            } => {
                let partition = partition.as_bytes();
                let (key, value) = (self.filled(partition, key), self.filled(partition, value));
                self.set((partition, Cow::Owned(key)), Some((revision, value.into())));
            }
            Op::Add {
                partition,
                key,
                by,
                start,
            } => {
                let old = self.record(partition.as_bytes(), key);
                let sums = raised(old.map(|(_, value)| &value[..]), start, by);
                let place = (partition.as_bytes(), Cow::Borrowed(&key[..]));
                self.set(place, Some((revision, sums.into())));
            }
            Op::Delete { partition, key } => {
                self.set((partition.as_bytes(), Cow::Borrowed(key)), None);
            }
            Op::DeleteRange {
                partition,
                from,
                to,
            } if from < to => {
                let partition = partition.as_bytes();
                let to_go =
                    (partition, Cow::Borrowed(&from[..]))..(partition, Cow::Borrowed(&to[..]));
                for (_, entry) in self.entries.range_mut(to_go) {
                    entry.record = None;
                    entry.is_changed = true;
                }
                self.ranges.push((partition, from, to));
            }
            Op::DeleteRange { .. } => {}
            Op::DeletePartition { partition } => {
                let partition = partition.as_bytes();
                let first: RowKey<'a> = (partition, Cow::Borrowed(&[]));
                let entries = self
                    .entries
                    .range_mut((Bound::Included(first), Bound::Unbounded));
                for (_, entry) in entries.take_while(|((of, _), _)| *of == partition) {
                    entry.record = None;
                    entry.is_changed = true;
                }
                self.emptied.push(partition);
            }
        }
    }

    fn set(&mut self, place: RowKey<'a>, record: Option<(u64, Bytes)>) {
        let is_changed = true;
        self.entries.insert(place, Entry { record, is_changed });
    }

    /// Only the last write of each record counts. A write of a range always precedes the last write
    /// of any record in it.
    fn writes(self) -> Writes<'a> {
        let mut writes = Writes {
            emptied: self.emptied,
            ranges: self.ranges,
            ..Writes::default()
        };
        for (place, entry) in self.entries {
            match entry.record {
                _ if !entry.is_changed => {}
                Some((revision, value)) => writes.puts.push((place, revision, value)),
                None => writes.deletes.push(place),
            }
        }
        writes
    }
}

#[cfg(test)]
mod tests {
    use groupware_store::Form;

    use super::*;

    fn at((partition, key): &RowKey<'_>) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}/{}", text(partition), text(key))
    }

    /// Each batch of a group gets numbers of its own, and another batch can look up what it wrote.
    #[test]
    fn numbers_are_handed_out_in_the_order_of_the_group() {
        let made = |batch: &mut Batch| {
            let counter = || (Bytes::from_static(b"n"), 0);
            let key = Numbered::new("k").number(counter(), 0, Form::Decimal);
            let value = Numbered::new("v").number(counter(), 0, Form::Decimal);
            batch
                .add_from("p", "n", [6], [1])
                .put_numbered("p", key, value);
        };
        let (mut first, mut second) = (Batch::new(), Batch::new());
        made(&mut first);
        second.assert_exists("p", "k7").assert_absent("p", "k8");
        made(&mut second);
        let group = [&first, &second];
        let wanted = Wanted::of(&group);
        assert_eq!(wanted.keys, [&b"k7"[..], b"k8", b"n"]);
        assert_eq!(wanted.with_values, [false, false, true]);
        let (outcomes, writes) = wanted.judge(Vec::new(), &group, 7);
        assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
        let puts = writes.puts.iter();
        let puts: Vec<_> = puts
            .map(|(place, revision, value)| (at(place), *revision, value.clone()))
            .collect();
        assert_eq!(
            puts[..2],
            [
                ("p/k7".to_owned(), 7, "v7".into()),
                ("p/k8".to_owned(), 8, "v8".into())
            ]
        );
    }

    #[test]
    fn a_partition_is_locked_once_for_all_that_is_done_in_it() {
        let mut batch = Batch::new();
        batch.assert_absent("a", "1").put("a", "1", "");
        batch.assert_exists("b", "2").assert_exists("b", "3");
        batch.add("c", "4", [1]);
        let wanted = Wanted::of(&[&batch, &batch]);
        let mut locks = [("a", true), ("b", false), ("c", true)].map(|(p, it)| (lock(p), it));
        locks.sort_unstable();
        let found: Vec<_> = wanted.locks.into_iter().zip(wanted.are_exclusive).collect();
        assert_eq!(found, locks);
        assert_eq!(wanted.keys, [b"1", b"2", b"3", b"4"]);
        assert_eq!(wanted.with_values, [false, false, false, true]);
    }

    #[test]
    fn the_last_word_on_a_record_counts() {
        let mut first = Batch::new();
        first
            .put("p", "a", "1")
            .put("p", "b", "1")
            .put("q", "a", "1");
        let mut second = Batch::new();
        second.assert_revision("p", "a", 7);
        second.delete_range("p", "a", "b").put("p", "b", "2");
        second.delete_partition("q").put("q", "z", "");
        let mut third = Batch::new();
        third.assert_absent("p", "a").assert_absent("q", "z");
        let group = [&first, &second, &third];
        let wanted = Wanted::of(&group);
        let (outcomes, writes) = wanted.judge(Vec::new(), &group, 7);
        let told = outcomes.iter().map(|outcome| match outcome {
            Ok(committed) => committed.revision,
            Err(CommitError::Conflict { index }) => 100 + *index as u64,
            Err(_) => 0,
        });
        let told: Vec<_> = told.collect();
        assert_eq!(told, [7, 8, 101]);
        let puts: Vec<_> = writes
            .puts
            .iter()
            .map(|(place, revision, _)| (at(place), *revision))
            .collect();
        assert_eq!(puts, [("p/b".to_owned(), 8), ("q/z".to_owned(), 8)]);
        let deletes: Vec<_> = writes.deletes.iter().map(at).collect();
        assert_eq!(deletes, ["p/a", "q/a"]);
        assert_eq!(writes.ranges, [(&b"p"[..], &b"a"[..], &b"b"[..])]);
        assert_eq!(writes.emptied, [b"q"]);
    }
}
