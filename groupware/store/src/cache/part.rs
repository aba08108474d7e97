//! The cached records of one partition, and the keys for which it is known whether they have a record.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use crate::Record;
use crate::counters::raised;

/// The approximate overhead of a record besides its key and value, and of a span besides its ends.
const AROUND_BYTES: usize = 160;
/// The maximum number of spans, and of absent keys outside them; a partition with more is evicted.
const MOST_PIECES: usize = 1024;

/// A half-open range of keys.
type Span = (Bytes, Bytes);

/// Records of one partition.
#[derive(Debug, Default)]
pub(super) struct Part {
    /// The last group whose changes are included.
    pub(super) group: u64,
    /// True if a reader has used it since the last check.
    pub(super) is_in_use: bool,
    /// The known content of a key: a record, or none.
    records: BTreeMap<Bytes, Option<Record>>,
    /// The number of keys known to have no record.
    absent: usize,
    /// The spans that are cached completely, in order. Keys between two spans are unknown unless `records` has them.
    known: Vec<Span>,
    bytes: usize,
}

impl Part {
    pub(super) fn new(group: u64) -> Self {
        Self {
            group,
            ..Self::default()
        }
    }

    /// The approximate memory use.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if it has too many pieces to be useful.
    pub(super) fn is_in_pieces(&self) -> bool {
        self.known.len().max(self.absent) > MOST_PIECES
    }

    /// The record of a key, if there is one; `None` if unknown.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Record>> {
        match self.records.get(key) {
            Some(found) => Some(found.clone()),
            None => self.span_of(key).map(|_| None),
        }
    }

    /// The first records of a span with their keys, up to a limit; `None` if the span isn't fully known.
    pub(super) fn range(
        &self,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Option<Vec<(Bytes, Record)>> {
        let (_, end) = self.span_of(from)?;
        if **end < *to {
            return None;
        }
        if from >= to {
            return Some(Vec::new());
        }
        let range = (Bound::Included(from), Bound::Excluded(to));
        let all = self.records.range::<[u8], _>(range);
        let found = all.filter_map(|(key, it)| Some((key.clone(), it.clone()?)));
        Some(found.take(limit).collect())
    }

    /// Adds a span with all its records.
    pub(super) fn learn(&mut self, from: &[u8], to: &[u8], records: Vec<(Bytes, Record)>) {
        if from >= to {
            return;
        }
        let is_of_one = to.strip_prefix(from) == Some(&[0][..]);
        if !is_of_one {
            self.join(from, to);
        } else if records.is_empty() {
            self.remove(from);
        }
        for (key, record) in records {
            self.insert(key, Some(record));
        }
    }

    /// Applies the write of a record.
    pub(super) fn put(&mut self, key: &[u8], record: Record) {
        self.insert(Bytes::copy_from_slice(key), Some(record));
    }

    /// Applies an addition to a counter record.
    pub(super) fn add(&mut self, key: &[u8], (start, by): (&[i64], &[i64]), revision: u64) {
        if let Some(found) = self.get(key) {
            let old = found.as_ref().map(|it| &it.value[..]);
            let value = raised(old, start, by).into();
            let record = Record { value, revision };
            self.insert(Bytes::copy_from_slice(key), Some(record));
        }
    }

    /// Applies the removal of a record.
    pub(super) fn remove(&mut self, key: &[u8]) {
        match self.span_of(key).is_some() {
            true => self.drop_record(key),
            false => self.insert(Bytes::copy_from_slice(key), None),
        }
    }

    /// Makes the content of a key unknown.
    pub(super) fn forget(&mut self, key: &[u8]) {
        self.drop_record(key);
        let Some((from, to)) = self.span_of(key).cloned() else {
            return;
        };
        let at = self.known.partition_point(|(begin, _)| *begin < from);
        self.known.remove(at);
        self.bytes -= span_size(&from, &to);
        for (from, to) in [(from, Bytes::copy_from_slice(key)), (behind(key), to)] {
            if from < to {
                self.join(&from, &to);
            }
        }
    }

    /// The span that contains a key.
    fn span_of(&self, key: &[u8]) -> Option<&Span> {
        let behind = self.known.partition_point(|(begin, _)| **begin <= *key);
        let span = self.known.get(behind.checked_sub(1)?)?;
        (*span.1 > *key).then_some(span)
    }

    /// Merges this span with all spans that it overlaps or touches.
    fn join(&mut self, from: &[u8], to: &[u8]) {
        let first = self.known.partition_point(|(_, end)| **end < *from);
        let behind = self.known.partition_point(|(begin, _)| **begin <= *to);
        let joined = &self.known[first..behind];
        let begin = joined.first().map(|(begin, _)| begin);
        let begin = begin.filter(|begin| ***begin < *from).cloned();
        let end = joined.last().map(|(_, end)| end);
        let end = end.filter(|end| ***end > *to).cloned();
        self.bytes -= joined
            .iter()
            .map(|(from, to)| span_size(from, to))
            .sum::<usize>();
        let span = (
            begin.unwrap_or_else(|| Bytes::copy_from_slice(from)),
            end.unwrap_or_else(|| Bytes::copy_from_slice(to)),
        );
        self.bytes += span_size(&span.0, &span.1);
        self.known.splice(first..behind, [span]);
    }

    fn insert(&mut self, key: Bytes, record: Option<Record>) {
        let length = key.len();
        self.count(length, record.as_ref());
        if let Some(old) = self.records.insert(key, record) {
            self.discount(length, old.as_ref());
        }
    }

    fn drop_record(&mut self, key: &[u8]) {
        if let Some(old) = self.records.remove(key) {
            self.discount(key.len(), old.as_ref());
        }
    }

    fn count(&mut self, key: usize, record: Option<&Record>) {
        self.bytes += size(key, record);
        self.absent += usize::from(record.is_none());
    }

    fn discount(&mut self, key: usize, record: Option<&Record>) {
        self.bytes -= size(key, record);
        self.absent -= usize::from(record.is_none());
    }
}

/// The first key after another.
pub(super) fn behind(key: &[u8]) -> Bytes {
    let mut behind = Vec::with_capacity(key.len() + 1);
    behind.extend_from_slice(key);
    behind.push(0);
    behind.into()
}

fn size(key: usize, record: Option<&Record>) -> usize {
    key + record.map_or(0, |record| record.value.len()) + AROUND_BYTES
}

fn span_size(from: &[u8], to: &[u8]) -> usize {
    from.len() + to.len() + AROUND_BYTES
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Learn(u8, u8),
        LearnOne(u8),
        Put(u8),
        Remove(u8),
        Forget(u8),
    }

    fn step() -> impl Strategy<Value = Step> {
        let key = 0..12_u8;
        prop_oneof![
            (key.clone(), key.clone()).prop_map(|(from, to)| Step::Learn(from, to)),
            key.clone().prop_map(Step::LearnOne),
            key.clone().prop_map(Step::Put),
            key.clone().prop_map(Step::Remove),
            key.prop_map(Step::Forget),
        ]
    }

    fn record(revision: u64) -> Record {
        Record {
            value: vec![7; usize::try_from(revision).unwrap() % 50].into(),
            revision,
        }
    }

    proptest! {
        /// Compared with a model: all records, and the set of known keys.
        #[test]
        fn what_it_says_is_so_and_it_says_what_it_was_told(steps in prop::collection::vec(step(), 0..60)) {
            let (mut part, mut truth) = (Part::default(), BTreeMap::<u8, Record>::new());
            let mut known = BTreeSet::new();
            for (revision, step) in (1..).zip(steps) {
                match step {
                    Step::Learn(from, to) => {
                        let inside = truth.iter().filter(|(key, _)| (from..to).contains(*key));
                        let records = inside.map(|(key, it)| (vec![*key].into(), it.clone()));
                        part.learn(&[from], &[to], records.collect());
                        known.extend(from..to);
                    }
                    Step::LearnOne(key) => {
                        let record = truth.get(&key).cloned();
                        let records = record.into_iter().map(|it| (vec![key].into(), it));
                        part.learn(&[key], &[key, 0], records.collect());
                        known.insert(key);
                    }
                    Step::Put(key) => {
                        truth.insert(key, record(revision));
                        part.put(&[key], record(revision));
                        known.insert(key);
                    }
                    Step::Remove(key) => {
                        truth.remove(&key);
                        part.remove(&[key]);
                        known.insert(key);
                    }
                    Step::Forget(key) => {
                        part.forget(&[key]);
                        known.remove(&key);
                    }
                }
                for key in 0..13 {
                    let expected = known.contains(&key).then(|| truth.get(&key).cloned());
                    prop_assert_eq!(part.get(&[key]), expected, "{} of {:?}", key, part);
                }
                let sizes = part.records.iter().map(|(key, it)| size(key.len(), it.as_ref()));
                let bytes: usize = sizes.sum();
                let absent = part.records.values().filter(|it| it.is_none()).count();
                prop_assert_eq!(part.absent, absent);
                let spans: usize = part.known.iter().map(|(from, to)| span_size(from, to)).sum();
                prop_assert_eq!(part.bytes, bytes + spans);
                for (from, to) in [(0, 12), (2, 6), (3, 4), (5, 5)] {
                    // Keys in between, such as those of two bytes, are known if a whole span was added.
                    if let Some(range) = part.range(&[from], &[to], usize::MAX) {
                        let found: Vec<_> = range.into_iter().map(|(key, it)| (key[0], it)).collect();
                        let inside = truth.iter().filter(|(key, _)| (from..to).contains(*key));
                        let expected: Vec<_> = inside.map(|(key, it)| (*key, it.clone())).collect();
                        prop_assert_eq!(found, expected);
                    }
                }
            }
        }
    }
}
