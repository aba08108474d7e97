//! The format of one group of batches in the change log.
//!
//! ```text
//! length u32 · hash 16 bytes · group
//! group = number u64 · time i64 · batches u32 · batch…
//! batch = revision u64 · operations u32 · operation…
//! operation = kind u8 · partition · fields
//! ```
//! Numbers are little-endian; texts and bytes are length-prefixed with a u32. The hash is a prefix of the group's
//! BLAKE3 hash and detects incomplete writes.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;

use crate::{
    Form, Gap, MAX_BATCH_BYTES, MAX_BATCH_OPS, MAX_GAPS, MAX_KEY_BYTES, MAX_PARTITION_BYTES,
    Numbered, Op,
};

/// The maximum length of a group: the batches of one transaction, at their maximum size in progress.
pub(crate) const MAX_GROUP_BYTES: usize = 1 << 30;
const HASH_BYTES: usize = 16;
/// The length of the header of each group.
pub(crate) const HEAD_BYTES: usize = 4 + HASH_BYTES;

/// The changes of one committed batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The revision of its records.
    pub revision: u64,
    /// The operations, in order.
    pub ops: Vec<Op>,
}

/// Batches that were committed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The previous group's number plus one.
    pub number: u64,
    /// The time of the commit, in microseconds since 1970; later than the previous group's.
    pub time_us: i64,
    /// The changes of its batches.
    pub changes: Vec<Change>,
}

/// The next item of a log.
#[derive(Debug)]
pub(crate) enum Next {
    Group {
        group: Group,
        /// Its length in the log.
        bytes: u64,
    },
    /// The end of the log.
    End,
    /// An incomplete or damaged group.
    Torn,
}

/// Encodes a group. `changes` are revisions with their operations.
pub(crate) fn encode(number: u64, time_us: i64, changes: &[(u64, &[Op])]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD_BYTES];
    bytes.extend(number.to_le_bytes());
    bytes.extend(time_us.to_le_bytes());
    put_length(&mut bytes, changes.len());
    for (revision, ops) in changes {
        bytes.extend(revision.to_le_bytes());
        put_length(&mut bytes, ops.len());
        ops.iter().for_each(|op| put_op(&mut bytes, op));
    }
    let (length, hash) = (bytes.len() - HEAD_BYTES, hash(&bytes[HEAD_BYTES..]));
    bytes[..4].copy_from_slice(&as_u32(length).to_le_bytes());
    bytes[4..HEAD_BYTES].copy_from_slice(&hash);
    bytes
}

/// Reads the next group of a log.
///
/// # Errors
/// I/O errors of the disk.
pub(crate) fn next(log: &mut impl Read) -> io::Result<Next> {
    let mut head = [0; HEAD_BYTES];
    match read_full(log, &mut head)? {
        0 => return Ok(Next::End),
        HEAD_BYTES => {}
        _ => return Ok(Next::Torn),
    }
    let (length, expected) = head.split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    if length > MAX_GROUP_BYTES {
        return Ok(Next::Torn);
    }
    // Read incrementally: no memory is allocated because of a length alone.
    let mut bytes = Vec::new();
    log.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length || hash(&bytes) != expected {
        return Ok(Next::Torn);
    }
    Ok(match decode(&bytes) {
        Some(group) => Next::Group {
            group,
            bytes: (HEAD_BYTES + length) as u64,
        },
        None => Next::Torn,
    })
}

/// Reads the next group of a log, if it is complete.
///
/// # Errors
/// I/O errors of the disk.
pub fn read_group(log: &mut impl Read) -> io::Result<Option<Group>> {
    Ok(match next(log)? {
        Next::Group { group, .. } => Some(group),
        Next::End | Next::Torn => None,
    })
}

fn read_full(log: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match log.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

fn hash(bytes: &[u8]) -> [u8; HASH_BYTES] {
    let hash = blake3::hash(bytes);
    let (beginning, _) = hash
        .as_bytes()
        .split_first_chunk()
        .expect("a hash is longer");
    *beginning
}

fn as_u32(length: usize) -> u32 {
    u32::try_from(length).expect("batches are bounded by MAX_BATCH_BYTES, groups by the queue")
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    bytes.extend(as_u32(length).to_le_bytes());
}

fn put_bytes(bytes: &mut Vec<u8>, field: &[u8]) {
    put_length(bytes, field.len());
    bytes.extend(field);
}

const PUT: u8 = 1;
const ADD: u8 = 2;
const DELETE: u8 = 3;
const DELETE_RANGE: u8 = 4;
const DELETE_PARTITION: u8 = 5;
const PUT_NUMBERED: u8 = 6;
/// An addition to a record whose initial counters aren't zeros.
const ADD_FROM: u8 = 7;

const IN_BYTES: u8 = 1;
const IN_DIGITS: u8 = 2;
const IN_A_RING: u8 = 3;

fn put_op(bytes: &mut Vec<u8>, op: &Op) {
    let (kind, partition) = match op {
        Op::Put { partition, .. } => (PUT, partition),
        Op::PutNumbered { partition, .. } => (PUT_NUMBERED, partition),
        Op::Add {
            partition, start, ..
        } => match start.is_empty() {
            true => (ADD, partition),
            false => (ADD_FROM, partition),
        },
        Op::Delete { partition, .. } => (DELETE, partition),
        Op::DeleteRange { partition, .. } => (DELETE_RANGE, partition),
        Op::DeletePartition { partition } => (DELETE_PARTITION, partition),
    };
    bytes.push(kind);
    put_bytes(bytes, partition.as_bytes());
    match op {
        Op::Put { key, value, .. } => {
            put_bytes(bytes, key);
            put_bytes(bytes, value);
        }
        Op::PutNumbered { key, value, .. } => {
            put_numbered(bytes, key);
            put_numbered(bytes, value);
        }
        Op::Add { key, by, start, .. } => {
            put_bytes(bytes, key);
            put_numbers(bytes, by);
            if !start.is_empty() {
                put_numbers(bytes, start);
            }
        }
        Op::Delete { key, .. } => put_bytes(bytes, key),
        Op::DeleteRange { from, to, .. } => {
            put_bytes(bytes, from);
            put_bytes(bytes, to);
        }
        Op::DeletePartition { .. } => {}
    }
}

fn put_numbers(bytes: &mut Vec<u8>, numbers: &[i64]) {
    put_length(bytes, numbers.len());
    let numbers = numbers.iter();
    numbers.for_each(|number| bytes.extend(number.to_le_bytes()));
}

fn put_numbered(bytes: &mut Vec<u8>, numbered: &Numbered) {
    put_bytes(bytes, numbered.around());
    put_length(bytes, numbered.gaps().len());
    for gap in numbered.gaps() {
        put_length(bytes, gap.at);
        put_bytes(bytes, &gap.counter);
        bytes.extend(gap.index.to_le_bytes());
        bytes.extend(gap.behind.to_le_bytes());
        let (form, ring) = match gap.form {
            Form::Bytes => (IN_BYTES, 0),
            Form::Decimal => (IN_DIGITS, 0),
            Form::Ring(length) => (IN_A_RING, length),
        };
        bytes.push(form);
        bytes.extend(ring.to_le_bytes());
    }
}

fn decode(bytes: &[u8]) -> Option<Group> {
    let mut rest = Rest(bytes);
    let (number, time_us) = (rest.u64()?, rest.u64()?.cast_signed());
    let count = rest.length(usize::MAX)?;
    let mut changes = Vec::new();
    for _ in 0..count {
        let revision = rest.u64()?;
        let count = rest.length(MAX_BATCH_OPS)?;
        let mut ops = Vec::new();
        for _ in 0..count {
            ops.push(rest.op()?);
        }
        changes.push(Change { revision, ops });
    }
    rest.0.is_empty().then_some(Group {
        number,
        time_us,
        changes,
    })
}

/// The bytes still to decode.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn length(&mut self, most: usize) -> Option<usize> {
        let length = self.u32()? as usize;
        (length <= most).then_some(length)
    }

    fn field(&mut self, most: usize) -> Option<&'a [u8]> {
        let length = self.length(most)?;
        self.take(length)
    }

    fn key(&mut self) -> Option<Vec<u8>> {
        Some(self.field(MAX_KEY_BYTES)?.to_vec())
    }

    fn op(&mut self) -> Option<Op> {
        let kind = *self.take(1)?.first()?;
        let partition = std::str::from_utf8(self.field(MAX_PARTITION_BYTES)?).ok()?;
        let partition: Arc<str> = partition.into();
        Some(match kind {
            PUT => Op::Put {
                partition,
                key: self.key()?,
                value: Bytes::copy_from_slice(self.field(MAX_BATCH_BYTES)?),
            },
            ADD => Op::Add {
                partition,
                key: self.key()?,
                by: self.numbers()?,
                start: Vec::new(),
            },
            ADD_FROM => Op::Add {
                partition,
                key: self.key()?,
                by: self.numbers()?,
                start: self.numbers()?,
            },
            PUT_NUMBERED => Op::PutNumbered {
                partition,
                key: self.numbered(MAX_KEY_BYTES)?,
                value: self.numbered(MAX_BATCH_BYTES)?,
            },
            DELETE => Op::Delete {
                partition,
                key: self.key()?,
            },
            DELETE_RANGE => Op::DeleteRange {
                partition,
                from: self.key()?,
                to: self.key()?,
            },
            DELETE_PARTITION => Op::DeletePartition { partition },
            _ => return None,
        })
    }

    fn numbered(&mut self, most: usize) -> Option<Numbered> {
        let bytes = self.field(most)?.to_vec();
        let count = self.length(MAX_GAPS)?;
        let mut gaps = Vec::new();
        for _ in 0..count {
            gaps.push(Gap {
                at: self.length(bytes.len())?,
                counter: Bytes::copy_from_slice(self.field(MAX_KEY_BYTES)?),
                index: self.u32()?,
                behind: self.u32()?,
                form: self.form()?,
            });
        }
        Numbered::of(bytes, gaps)
    }

    fn form(&mut self) -> Option<Form> {
        let form = *self.take(1)?.first()?;
        let ring = u16::from_le_bytes(self.take(2)?.try_into().ok()?);
        match (form, ring) {
            (IN_BYTES, 0) => Some(Form::Bytes),
            (IN_DIGITS, 0) => Some(Form::Decimal),
            (IN_A_RING, ring) => Some(Form::Ring(ring)),
            _ => None,
        }
    }

    fn numbers(&mut self) -> Option<Vec<i64>> {
        let count = self.length(MAX_BATCH_BYTES / 8)?;
        let (numbers, _) = self.take(count * 8)?.as_chunks::<8>();
        Some(
            numbers
                .iter()
                .map(|bytes| i64::from_le_bytes(*bytes))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn ops() -> impl Strategy<Value = Vec<Op>> {
        let key = || vec(any::<u8>(), 0..20);
        let partition = "[a-z$ä]{1,9}".prop_map(|text| Arc::<str>::from(text.as_str()));
        let by = (vec(any::<i64>(), 0..4), vec(any::<i64>(), 0..3));
        let op = (partition, key(), key(), by, 0..6_u8);
        let op = op.prop_map(|(partition, key, other, (by, start), kind)| match kind {
            0 => Op::Put {
                partition,
                key,
                value: other.into(),
            },
            1 => Op::Add {
                partition,
                key,
                by,
                start,
            },
            4 => Op::PutNumbered {
                partition,
                key: numbered(&key, &by),
                value: numbered(&other, &start),
            },
            2 => Op::Delete { partition, key },
            3 => Op::DeleteRange {
                partition,
                from: key,
                to: other,
            },
            _ => Op::DeletePartition { partition },
        });
        vec(op, 0..6)
    }

    /// These bytes, followed by each number as a gap of some kind.
    fn numbered(bytes: &[u8], of: &[i64]) -> Numbered {
        let mut numbered = Numbered::new(bytes);
        for number in of {
            let number = number.cast_unsigned();
            let form = match number % 3 {
                0 => Form::Bytes,
                1 => Form::Decimal,
                _ => Form::Ring(u16::try_from(number >> 48).unwrap()),
            };
            let low = u32::try_from(number & 0xffff).unwrap();
            let counter = Bytes::copy_from_slice(bytes);
            numbered = numbered.number((counter, low), low / 2, form).bytes(bytes);
        }
        numbered
    }

    proptest! {
        #[test]
        fn a_group_is_read_as_it_was_written(
            number: u64,
            time_us: i64,
            changes in vec((any::<u64>(), ops()), 0..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let borrowed: Vec<_> = changes.iter().map(|(at, ops)| (*at, &ops[..])).collect();
            let bytes = encode(number, time_us, &borrowed);
            let expected = changes.into_iter().map(|(revision, ops)| Change { revision, ops });
            let expected = Group { number, time_us, changes: expected.collect() };
            let mut log = &bytes[..];
            match next(&mut log).unwrap() {
                Next::Group { group, bytes: length } => {
                    prop_assert_eq!(group, expected);
                    prop_assert_eq!(length, bytes.len() as u64);
                }
                other => prop_assert!(false, "{other:?}"),
            }
            prop_assert!(matches!(next(&mut log).unwrap(), Next::End));
            let cut = cut.index(bytes.len());
            let is_as_expected = match next(&mut &bytes[..cut]).unwrap() {
                Next::End => cut == 0,
                Next::Torn => cut > 0,
                Next::Group { .. } => false,
            };
            prop_assert!(is_as_expected);
            let mut damaged = bytes.clone();
            damaged[cut] ^= 1;
            let is_group = matches!(next(&mut &damaged[..]).unwrap(), Next::Group { .. });
            prop_assert!(!is_group);
        }

        #[test]
        fn whatever_stands_there_is_read_without_harm(bytes in vec(any::<u8>(), 0..200)) {
            let _ = next(&mut &bytes[..]);
            let _ = decode(&bytes);
        }
    }
}
