//! The format of a group's changes in the table of pending changes: one row per group.
//!
//! ```text
//! row = form u8 · changes            form 0: as they are, 1: compressed (Snappy)
//! change = kind u8 · partition · fields
//! partition = length u16 · bytes     length 0xFFFF, and no bytes: that of the change before
//! value: key · revision u64 · length u32 · bytes
//! gone, in tree: key · revision u64
//! range: from · u8 · to              u8 0: there is no end, and no `to`
//! key, from, to = length u16 · bytes
//! ```
//! Numbers are little-endian. Keys and partitions are within the limits of batches, so their lengths fit.

use std::sync::Arc;

use bytes::Bytes;

use super::table::Now;

const AS_IT_IS: u8 = 0;
const COMPRESSED: u8 = 1;
/// The minimum length for compression.
const COMPRESS_BYTES: usize = 256;
/// The maximum length of a row, so that a damaged one requests no more memory; batches have a lower limit.
const MOST_BYTES: usize = 256 << 20;

const VALUE: u8 = 1;
const GONE: u8 = 2;
const IN_TREE: u8 = 3;
const RANGE: u8 = 4;

const SAME_PARTITION: u16 = u16::MAX;

/// A change read from a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingChange {
    Record {
        partition: Arc<str>,
        key: Vec<u8>,
        revision: u64,
        now: Now,
    },
    /// All records with `from <= key`, and `key < to` if there is a `to`, are removed.
    Range {
        partition: Arc<str>,
        from: Vec<u8>,
        to: Option<Vec<u8>>,
    },
}

/// A row under construction.
#[derive(Debug, Default)]
pub(in crate::sqlite) struct Row {
    bytes: Vec<u8>,
    partition: Option<Arc<str>>,
}

impl Row {
    pub(in crate::sqlite) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub(super) fn record(&mut self, partition: &Arc<str>, key: &[u8], revision: u64, now: &Now) {
        let kind = match now {
            Now::Value(_) => VALUE,
            Now::Gone => GONE,
            Now::InTree => IN_TREE,
        };
        self.begin(kind, partition);
        self.short(key);
        self.bytes.extend(revision.to_le_bytes());
        if let Now::Value(value) = now {
            let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
            self.bytes.extend(length.to_le_bytes());
            self.bytes.extend(value);
        }
    }

    pub(super) fn range(&mut self, partition: &Arc<str>, from: &[u8], to: Option<&[u8]>) {
        self.begin(RANGE, partition);
        self.short(from);
        self.bytes.push(u8::from(to.is_some()));
        if let Some(to) = to {
            self.short(to);
        }
    }

    fn begin(&mut self, kind: u8, partition: &Arc<str>) {
        self.bytes.push(kind);
        if self.partition.as_ref() == Some(partition) {
            self.bytes.extend(SAME_PARTITION.to_le_bytes());
        } else {
            self.short(partition.as_bytes());
            self.partition = Some(Arc::clone(partition));
        }
    }

    fn short(&mut self, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.bytes.extend(length.to_le_bytes());
        self.bytes.extend(bytes);
    }

    /// The row as it is stored.
    pub(in crate::sqlite) fn stored(&self) -> Vec<u8> {
        if self.bytes.len() >= COMPRESS_BYTES {
            let mut stored = vec![0; 1 + snap::raw::max_compress_len(self.bytes.len())];
            stored[0] = COMPRESSED;
            if let Ok(length) = snap::raw::Encoder::new().compress(&self.bytes, &mut stored[1..]) {
                stored.truncate(1 + length);
                return stored;
            }
        }
        [&[AS_IT_IS], &self.bytes[..]].concat()
    }

    /// The changes of the row.
    pub(super) fn changes(&self) -> Vec<PendingChange> {
        parse(&self.bytes).unwrap_or_default()
    }
}

/// Decodes a stored row; `None` if it is damaged.
pub(super) fn read(stored: &[u8]) -> Option<Vec<PendingChange>> {
    let (form, bytes) = stored.split_first()?;
    match *form {
        AS_IT_IS => parse(bytes),
        COMPRESSED => {
            let length = snap::raw::decompress_len(bytes).ok()?;
            if length > MOST_BYTES {
                return None;
            }
            parse(&snap::raw::Decoder::new().decompress_vec(bytes).ok()?)
        }
        _ => None,
    }
}

fn parse(bytes: &[u8]) -> Option<Vec<PendingChange>> {
    let mut rest = Rest(bytes);
    let mut told = Vec::new();
    let mut last: Option<Arc<str>> = None;
    while !rest.0.is_empty() {
        let kind = rest.number::<1>()?[0];
        let partition = match u16::from_le_bytes(rest.number()?) {
            SAME_PARTITION => last.take()?,
            length => std::str::from_utf8(rest.take(length.into())?).ok()?.into(),
        };
        last = Some(Arc::clone(&partition));
        let key = rest.short()?.to_vec();
        told.push(match kind {
            RANGE => {
                let to = match rest.number::<1>()?[0] {
                    0 => None,
                    _ => Some(rest.short()?.to_vec()),
                };
                let from = key;
                PendingChange::Range {
                    partition,
                    from,
                    to,
                }
            }
            kind => {
                let revision = u64::from_le_bytes(rest.number()?);
                let now = rest.now(kind)?;
                PendingChange::Record {
                    partition,
                    key,
                    revision,
                    now,
                }
            }
        });
    }
    Some(told)
}

/// The bytes still to decode.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(self.number()?);
        self.take(length.into())
    }

    fn now(&mut self, kind: u8) -> Option<Now> {
        match kind {
            VALUE => {
                let length = u32::from_le_bytes(self.number()?);
                let value = self.take(usize::try_from(length).ok()?)?;
                Some(Now::Value(Bytes::copy_from_slice(value)))
            }
            GONE => Some(Now::Gone),
            IN_TREE => Some(Now::InTree),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn told() -> impl Strategy<Value = PendingChange> {
        let partition = || "[ab]{0,3}".prop_map(|name| Arc::<str>::from(&*name));
        let key = || vec(any::<u8>(), 0..6);
        let value = prop_oneof![vec(any::<u8>(), 0..20), vec(Just(7), 0..2000)];
        let now = prop_oneof![
            value.prop_map(|value| Now::Value(value.into())),
            Just(Now::Gone),
            Just(Now::InTree),
        ];
        prop_oneof![
            4 => (partition(), key(), any::<u64>(), now).prop_map(|(partition, key, revision, now)| {
                PendingChange::Record { partition, key, revision, now }
            }),
            1 => (partition(), key(), proptest::option::of(key())).prop_map(|(partition, from, to)| {
                PendingChange::Range { partition, from, to }
            }),
        ]
    }

    fn row(all: &[PendingChange]) -> Row {
        let mut row = Row::default();
        for told in all {
            match told {
                PendingChange::Record {
                    partition,
                    key,
                    revision,
                    now,
                } => row.record(partition, key, *revision, now),
                PendingChange::Range {
                    partition,
                    from,
                    to,
                } => row.range(partition, from, to.as_deref()),
            }
        }
        row
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(all in vec(told(), 0..12)) {
            let row = row(&all);
            prop_assert_eq!(row.changes(), all.clone());
            prop_assert_eq!(read(&row.stored()), Some(all));
        }

        #[test]
        fn whatever_is_there_is_read_or_refused(
            all in vec(told(), 1..6), at in any::<usize>(), byte in any::<u8>(), cut in any::<usize>(),
        ) {
            let mut stored = row(&all).stored();
            let at = at % stored.len();
            stored[at] = byte;
            let _ = read(&stored);
            stored.truncate(cut % stored.len());
            let _ = read(&stored);
        }
    }

    #[test]
    fn what_repeats_itself_takes_little_room() {
        let mut row = Row::default();
        let body = Bytes::from((0..900_u32).map(|n| (n * n % 97) as u8).collect::<Vec<_>>());
        for user in 0..6 {
            let partition = format!("user{user}").into();
            row.record(&partition, b"c/e/1", 1, &Now::Value(body.clone()));
        }
        assert!(row.stored().len() < 1400, "{}", row.stored().len());
    }
}
