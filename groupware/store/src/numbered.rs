//! Keys and values with gaps, for numbers that nobody knows before a batch's turn comes: the writer takes them from
//! records of counters, as they are then.

use bytes::Bytes;

use crate::counters::counters;

/// Most gaps of one key or value.
pub const MAX_GAPS: usize = 16;

/// How a number is written into its gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// In eight bytes, the greatest first: keys with greater numbers come later.
    Bytes,
    /// In decimal digits.
    Decimal,
    /// What is left when it is divided by this, in two bytes, the greater first: a ring of so many keys, of which the
    /// next one always takes the place of the oldest. One in place of none.
    Ring(u16),
}

impl Form {
    /// The most bytes that a number takes so.
    fn most_bytes(self) -> usize {
        match self {
            Self::Bytes => size_of::<u64>(),
            Self::Decimal => "9223372036854775807".len(),
            Self::Ring(_) => size_of::<u16>(),
        }
    }

    /// Writes a number, or none in place of one below.
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

/// A gap, and whose number comes into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// How many of the bytes stand before it.
    pub at: usize,
    /// The record of counters, in the same partition.
    pub counter: Bytes,
    /// Which of its numbers, from 0; one that isn't there is 0.
    pub index: u32,
    /// How far behind that number: several that a batch has added at once are handed out one by one.
    pub behind: u32,
    /// How it is written.
    pub form: Form,
}

impl Gap {
    /// The number that comes into the gap where the record of counters is this.
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
    /// Begins with these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let (bytes, gaps) = (bytes.into(), Vec::new());
        Self { bytes, gaps }
    }

    /// Goes on with these bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Goes on with a number: of this record of counters in the same partition the one with this index, less `behind`.
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

    /// What was written, if the gaps lie in it in their order, and aren't too many.
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

    /// The bytes with numbers in the gaps: one for each.
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

    /// The most bytes that there are with numbers in the gaps.
    pub fn most_bytes(&self) -> usize {
        let gaps = self.gaps.iter();
        self.bytes.len() + gaps.map(|gap| gap.form.most_bytes()).sum::<usize>()
    }

    /// Bytes of the names of counters, too, of which each gap has one.
    pub(crate) fn batch_bytes(&self) -> usize {
        let gaps = self.gaps.iter();
        self.most_bytes() + gaps.map(|gap| gap.counter.len()).sum::<usize>()
    }

    /// Whether all keys that may come of it begin so, or some may.
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
