//! Keys and values with gaps for numbers that are unknown until the batch is applied. The writer then takes the numbers
//! from counter records.

use bytes::Bytes;

use crate::counters::counters;

/// The maximum number of gaps in one key or value.
pub const MAX_GAPS: usize = 16;

/// The encoding of a number in its gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Eight bytes, big-endian: keys sort by number.
    Bytes,
    /// Decimal digits.
    Decimal,
    /// The number modulo this value, in two bytes, big-endian: a ring of that many keys, in which the next record
    /// replaces the oldest. 0 means 1.
    Ring(u16),
}

impl Form {
    /// The maximum number of bytes of an encoded number.
    fn most_bytes(self) -> usize {
        match self {
            Self::Bytes => size_of::<u64>(),
            Self::Decimal => "9223372036854775807".len(),
            Self::Ring(_) => size_of::<u16>(),
        }
    }

    /// Writes a number; a negative number is written as 0.
    fn push(self, number: i64, to: &mut Vec<u8>) {
        let number = u64::try_from(number).unwrap_or_default();
        match self {
            Self::Bytes => to.extend(number.to_be_bytes()),
            Self::Decimal => to.extend(number.to_string().into_bytes()),
            Self::Ring(length) => {
                let place = number % u64::from(length.max(1));
                to.extend(u16::try_from(place).unwrap_or_default().to_be_bytes());
            }
        }
    }
}

/// A gap, and the counter that fills it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// The number of bytes before the gap.
    pub at: usize,
    /// The key of the counter record, in the same partition.
    pub counter: Bytes,
    /// The index of the counter in the record, from 0; a missing counter counts as 0.
    pub index: u32,
    /// The value to subtract from the counter: a batch that adds several numbers at once assigns them one by one.
    pub behind: u32,
    /// The encoding of the number.
    pub form: Form,
}

impl Gap {
    /// The number for the gap, given the content of its counter record.
    pub fn number(&self, record: &[u8]) -> i64 {
        let number = counters(record).nth(self.index as usize);
        number
            .unwrap_or_default()
            .saturating_sub(i64::from(self.behind))
    }
}

/// Bytes with gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbered {
    bytes: Vec<u8>,
    gaps: Vec<Gap>,
}

impl Numbered {
    /// Starts with these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let (bytes, gaps) = (bytes.into(), Vec::new());
        Self { bytes, gaps }
    }

    /// Appends these bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Appends a number: the counter with this index in this record of the same partition, minus `behind`.
    pub fn number(self, (counter, index): (Bytes, u32), behind: u32, form: Form) -> Self {
        let at = self.bytes.len();
        self.gap(Gap {
            at,
            counter,
            index,
            behind,
            form,
        })
    }

    fn gap(mut self, gap: Gap) -> Self {
        self.gaps.push(gap);
        self
    }

    /// Builds the value if its gaps are sorted, within the bytes, and not too many.
    pub(crate) fn of(bytes: Vec<u8>, gaps: Vec<Gap>) -> Option<Self> {
        let is_whole = gaps.len() <= MAX_GAPS
            && gaps.is_sorted_by_key(|gap| gap.at)
            && gaps.last().is_none_or(|gap| gap.at <= bytes.len());
        is_whole.then_some(Self { bytes, gaps })
    }

    /// The bytes around the gaps.
    pub fn around(&self) -> &[u8] {
        &self.bytes
    }

    /// The gaps in their order.
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// The bytes with the gaps filled, one number for each.
    pub fn filled(&self, numbers: &[i64]) -> Vec<u8> {
        let mut filled = Vec::with_capacity(self.most_bytes());
        let mut done = 0;
        for (gap, number) in self.gaps.iter().zip(numbers) {
            filled.extend_from_slice(&self.bytes[done..gap.at]);
            gap.form.push(*number, &mut filled);
            done = gap.at;
        }
        filled.extend_from_slice(&self.bytes[done..]);
        filled
    }

    /// The maximum number of bytes with the gaps filled.
    pub fn most_bytes(&self) -> usize {
        let gaps = self.gaps.iter();
        self.bytes.len() + gaps.map(|gap| gap.form.most_bytes()).sum::<usize>()
    }

    /// As [`Self::most_bytes`], plus the bytes of the counter's key of each gap.
    pub(crate) fn batch_bytes(&self) -> usize {
        let gaps = self.gaps.iter();
        self.most_bytes() + gaps.map(|gap| gap.counter.len()).sum::<usize>()
    }

    /// Returns true if all keys that may result begin so, or some may.
    pub(crate) fn may_begin_with(&self, prefix: &[u8]) -> bool {
        let known = self.gaps.first().map_or(self.bytes.len(), |gap| gap.at);
        let common = known.min(prefix.len());
        let is_undecided = common < prefix.len() && !self.gaps.is_empty();
        self.bytes[..common] == prefix[..common] && (common == prefix.len() || is_undecided)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter() -> (Bytes, u32) {
        (Bytes::from_static(b"n"), 1)
    }

    #[test]
    fn numbers_come_into_their_gaps() {
        let numbered = Numbered::new("a")
            .number(counter(), 0, Form::Decimal)
            .bytes(b"b")
            .number(counter(), 2, Form::Ring(10))
            .number(counter(), 0, Form::Bytes);
        let record: Vec<u8> = [7_i64, 4711].iter().flat_map(|n| n.to_le_bytes()).collect();
        let numbers: Vec<i64> = numbered
            .gaps()
            .iter()
            .map(|gap| gap.number(&record))
            .collect();
        assert_eq!(numbers, [4711, 4709, 4711]);
        let filled = numbered.filled(&numbers);
        assert_eq!(filled, b"a4711b\0\x09\0\0\0\0\0\0\x12\x67");
        assert!(filled.len() <= numbered.most_bytes());
        assert_eq!(numbered.gaps()[0].number(b""), 0);
        let widest = numbered.filled(&[i64::MAX, i64::MAX, i64::MAX]);
        assert_eq!(widest.len(), numbered.most_bytes());
        assert_eq!(&numbered.filled(&[-5, 0, 0])[..3], b"a0b");
    }

    #[test]
    fn what_a_key_may_begin_with_is_told() {
        let plain = Numbered::new("c/1");
        assert!(plain.may_begin_with(b"c/") && !plain.may_begin_with(b"m/"));
        assert!(!Numbered::new("c").may_begin_with(b"c/"));
        let later = Numbered::new("c/x").number(counter(), 0, Form::Bytes);
        assert!(later.may_begin_with(b"c/") && !later.may_begin_with(b"m/"));
        let early = Numbered::new("c").number(counter(), 0, Form::Bytes);
        assert!(early.may_begin_with(b"c/") && !early.may_begin_with(b"m/"));
    }

    #[test]
    fn gaps_lie_within_their_bytes() {
        let gap = |at| Gap {
            at,
            counter: Bytes::new(),
            index: 0,
            behind: 0,
            form: Form::Bytes,
        };
        assert!(Numbered::of(b"ab".to_vec(), vec![gap(0), gap(2)]).is_some());
        assert!(Numbered::of(b"ab".to_vec(), vec![gap(3)]).is_none());
        assert!(Numbered::of(b"ab".to_vec(), vec![gap(2), gap(0)]).is_none());
        assert!(Numbered::of(Vec::new(), vec![gap(0); MAX_GAPS + 1]).is_none());
    }
}
