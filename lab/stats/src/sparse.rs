//! The non-zero counts of a histogram, read from its V2 form without the zeros.
//!
//! A histogram of three digits has about twenty thousand counts up to a minute in µs, and that of one step in one
//! window has a few dozen. Merging many of them must not expand each: a read takes time proportional to the bytes. Sums
//! and all figures equal those of the library's histogram to the last bit; property tests compare them.
//!
//! No byte is trusted: the input is from files and from other processes.

use hdrhistogram::Histogram;

/// The first bytes of an uncompressed V2 form.
const COOKIE: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];

/// Cookie, payload length, offset, digits, low, high, ratio.
pub(crate) const V2_HEADER_BYTES: usize = 40;
/// Offset of the high in the header: the highest value within the histogram's capacity.
pub(crate) const V2_HIGH: usize = 24;
/// Above the count of any valid histogram.
const MAX_COUNTS: u64 = 1 << 24;

/// Bytes that are no histogram in V2 form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// Fewer bytes than the header has, or than the last count needs.
    #[error("the histogram is cut off")]
    CutOff,
    /// The payload is longer or shorter than the header says.
    #[error("the histogram's length is wrong")]
    Length,
    /// The bytes are no V2 form, or describe an impossible histogram.
    #[error("the histogram's header is wrong")]
    Header,
    /// More counts than any histogram has.
    #[error("the histogram has too many counts")]
    TooManyCounts,
    /// A count of a value beyond the highest in its header.
    #[error("the histogram has counts beyond its range")]
    BeyondItsRange,
    /// An error of the library's encoder.
    #[error("{0}")]
    Library(String),
}

/// Why histograms could not be merged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// A value is beyond this platform's index range.
    #[error("a recorded value is too large to merge")]
    TooLarge,
}

/// Non-zero counts in order of their values. Its memory can be reused.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sparse {
    counts: Vec<Counted>,
    len: u64,
}

/// The count of values that are equal within the histogram's precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    /// The smallest of these values.
    pub least: u64,
    /// The number of values from this to the next.
    pub width: u64,
    /// The count; never 0.
    pub count: u64,
}

impl Counted {
    /// Returns the middle value, rounded up, which represents all of them in sums.
    #[must_use]
    pub fn median(&self) -> u64 {
        self.least.saturating_add(self.width / 2)
    }

    /// Returns the largest value. The library returns one less for those up to 2^64 - 1: its sum saturates before it
    /// subtracts one.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.least.saturating_add(self.width - 1)
    }
}

impl Sparse {
    /// Reads the counts of a V2 form.
    ///
    /// # Errors
    /// Any fault of the bytes.
    pub fn of(encoded: &[u8]) -> Result<Self, EncodingError> {
        let mut sparse = Self::default();
        sparse.read(encoded)?;
        Ok(sparse)
    }

    /// Replaces the counts by those of a V2 form.
    ///
    /// # Errors
    /// Any fault of the bytes; then it is empty.
    pub fn read(&mut self, encoded: &[u8]) -> Result<(), EncodingError> {
        self.clear();
        let read = self.read_counts(encoded);
        if read.is_err() {
            self.clear();
        }
        read
    }

    fn clear(&mut self) {
        self.counts.clear();
        self.len = 0;
    }

    fn read_counts(&mut self, encoded: &[u8]) -> Result<(), EncodingError> {
        let (layout, mut rest) = Layout::of(encoded)?;
        let mut index = 0u64;
        while !rest.is_empty() {
            let (value, used) = varint(rest).ok_or(EncodingError::CutOff)?;
            rest = &rest[used..];
            // Zigzag: odd numbers are negative, a run of zeros.
            if value & 1 == 1 {
                index += (value >> 1).saturating_add(1).min(MAX_COUNTS + 1);
            } else {
                if value != 0 {
                    self.push(&layout, index, value >> 1)?;
                }
                index += 1;
            }
            if index > MAX_COUNTS {
                return Err(EncodingError::TooManyCounts);
            }
        }
        Ok(())
    }

    fn push(&mut self, layout: &Layout, index: u64, count: u64) -> Result<(), EncodingError> {
        if index >= layout.counts {
            return Err(EncodingError::BeyondItsRange);
        }
        let (least, width) = layout.value(index);
        self.len = self.len.saturating_add(count);
        self.counts.push(Counted {
            least,
            width,
            count,
        });
        Ok(())
    }

    /// Iterates over the counts, in order of their values.
    pub fn iter(&self) -> impl Iterator<Item = Counted> {
        self.counts.iter().copied()
    }

    /// Returns the number of recorded values.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the sum of all values, within the histogram's precision, like `histogram::sum`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "as the library adds them up")]
    pub fn sum(&self) -> f64 {
        let len = self.len as f64;
        let parts = self.counts.iter();
        let mean = parts.fold(0.0, |mean, one| {
            mean + one.median() as f64 * one.count as f64 / len
        });
        mean * len
    }

    /// Adds all counts to a histogram.
    ///
    /// # Errors
    /// [`MergeError::TooLarge`] if the largest value is beyond the capacity that it has or may allocate; then nothing
    /// was added.
    pub fn add_to(&self, sum: &mut Histogram<u64>) -> Result<(), MergeError> {
        // The largest first: either all of them fit, or none is added.
        for one in self.counts.iter().rev() {
            let recorded = sum.record_n(one.least, one.count);
            recorded.map_err(|_| MergeError::TooLarge)?;
        }
        Ok(())
    }
}

/// The arrangement of values in a histogram.
pub(crate) struct Layout {
    /// Significant digits of each value.
    pub(crate) digits: u8,
    /// The smallest value distinguished from 0.
    pub(crate) low: u64,
    /// The minimum capacity.
    pub(crate) high: u64,
    /// Bits below the precision of the smallest values.
    unit: u32,
    /// Half of the counts of the first bucket is two to this power; each further bucket has as many.
    half: u32,
    /// Number of counts.
    counts: u64,
}

impl Layout {
    /// Reads the header, and returns the payload. Validates by HdrHistogram's rules.
    pub(crate) fn of(encoded: &[u8]) -> Result<(Self, &[u8]), EncodingError> {
        let (head, payload) = encoded
            .split_at_checked(V2_HEADER_BYTES)
            .ok_or(EncodingError::CutOff)?;
        let number = |at: usize, bytes: usize| {
            let bytes = head[at..at + bytes].iter();
            bytes.fold(0u64, |n, byte| n << 8 | u64::from(*byte))
        };
        if number(4, 4) != payload.len() as u64 {
            return Err(EncodingError::Length);
        }
        let (offset, digits, ratio) = (number(8, 4), number(12, 4), number(32, 8));
        if head[..4] != COOKIE || offset != 0 || f64::from_bits(ratio) != 1.0 {
            return Err(EncodingError::Header);
        }
        let layout = Self::new(digits, number(16, 8), number(V2_HIGH, 8));
        Ok((layout.ok_or(EncodingError::Header)?, payload))
    }

    fn new(digits: u64, low: u64, high: u64) -> Option<Self> {
        let digits = u8::try_from(digits).ok().filter(|digits| *digits <= 5)?;
        let unit = low.checked_ilog2()?;
        if high < low.checked_mul(2)? {
            return None;
        }
        // The smallest power of two with single units up to here has the digits everywhere.
        let bits = (2 * 10u64.pow(u32::from(digits)))
            .next_power_of_two()
            .ilog2();
        if unit + bits > 63 {
            return None;
        }
        // One bucket up to 2^(unit + bits), and one more for each bit that the high has above.
        let buckets = (high.ilog2() + 1).max(unit + bits) - (unit + bits) + 1;
        let half = bits - 1;
        Some(Self {
            digits,
            low,
            high,
            unit,
            half,
            counts: u64::from(buckets + 1) << half,
        })
    }

    /// Returns the smallest value of a count, and how many values it covers.
    fn value(&self, index: u64) -> (u64, u64) {
        let within = index & ((1 << self.half) - 1);
        match (index >> self.half).checked_sub(1) {
            // The lower half of the first bucket.
            None => (within << self.unit, 1 << self.unit),
            Some(bucket) => {
                let shift = u64::from(self.unit) + bucket;
                ((within + (1 << self.half)) << shift, 1 << shift)
            }
        }
    }
}

/// LEB128 with at most nine bytes, the ninth whole.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(9) {
        if i == 8 {
            return Some((value | u64::from(*byte) << 56, 9));
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
    use proptest::prelude::*;

    use super::*;
    use crate::exponential::Exponential;
    use crate::histogram;

    /// Decodes with the library, which trusts lengths: only for bytes that were read here.
    fn dense(encoded: &[u8]) -> Option<Histogram<u64>> {
        Deserializer::new().deserialize(&mut &encoded[..]).ok()
    }

    fn encoded(digits: u8, low: u64, high: u64, values: &[(u64, u64)]) -> Vec<u8> {
        let mut histogram = Histogram::<u64>::new_with_bounds(low, high, digits).unwrap();
        for (value, count) in values {
            histogram.saturating_record_n(*value, *count);
        }
        let mut bytes = Vec::new();
        V2Serializer::new()
            .serialize(&histogram, &mut bytes)
            .unwrap();
        bytes
    }

    /// Returns the largest value with the same count as this one.
    fn largest(dense: &Histogram<u64>, value: u64) -> u64 {
        match dense.next_non_equivalent(value) {
            u64::MAX => u64::MAX,
            next => next - 1,
        }
    }

    /// Values of all magnitudes, not only large ones.
    fn values() -> impl Strategy<Value = Vec<(u64, u64)>> {
        let value = (any::<u64>(), 0u32..64).prop_map(|(bits, less)| bits >> less);
        proptest::collection::vec((value, 1u64..1_000_000), 0..40)
    }

    fn layouts() -> impl Strategy<Value = (u8, u64, u64)> {
        let high = (any::<u64>(), 0u32..62).prop_map(|(bits, less)| bits >> less);
        let low = prop_oneof![4 => Just(1u64), 1 => 1u64..100_000];
        // The library allocates thirty million counts for many digits and a high far above.
        (0u8..=3, low, high).prop_map(|(digits, low, high)| (digits, low, high.max(2 * low)))
    }

    proptest! {
        #[test]
        fn counts_are_those_of_the_library(layout in layouts(), values in values()) {
            let (digits, low, high) = layout;
            let bytes = encoded(digits, low, high, &values);
            let (sparse, dense) = (Sparse::of(&bytes).unwrap(), dense(&bytes).unwrap());
            prop_assert_eq!(sparse.len(), dense.len());
            prop_assert_eq!(sparse.sum().to_bits(), histogram::sum(&dense).to_bits());
            let ours: Vec<_> = sparse.iter().map(|one| (one.median(), one.largest(), one.count)).collect();
            let theirs: Vec<_> = dense
                .iter_recorded()
                .map(|one| {
                    let value = one.value_iterated_to();
                    (dense.median_equivalent(value), largest(&dense, value), one.count_at_value())
                })
                .collect();
            prop_assert_eq!(ours, theirs);
        }

        #[test]
        fn sums_of_them_are_those_of_the_library(all in proptest::collection::vec(values(), 1..5)) {
            let new = || Histogram::<u64>::new(3).unwrap();
            let (mut sparsely, mut densely) = (new(), new());
            let (mut times, mut all_times) = (Exponential::default(), Exponential::default());
            let mut sparse = Sparse::default();
            for values in &all {
                let bytes = encoded(3, 1, 3_600_000_000, values);
                sparse.read(&bytes).unwrap();
                sparse.add_to(&mut sparsely).unwrap();
                times.add_us(&sparse);
                let dense = dense(&bytes).unwrap();
                densely.add(&dense).unwrap();
                all_times.add_us(&dense);
            }
            prop_assert_eq!(&sparsely, &densely);
            prop_assert_eq!(&densely, &sparsely);
            prop_assert_eq!(sparsely.mean().to_bits(), densely.mean().to_bits());
            for p in [0.0, 0.01, 0.5, 0.95, 0.999, 1.0] {
                prop_assert_eq!(sparsely.value_at_quantile(p), densely.value_at_quantile(p));
            }
            prop_assert_eq!((sparsely.min(), sparsely.max()), (densely.min(), densely.max()));
            prop_assert_eq!(times, all_times);
        }

        #[test]
        fn bytes_are_taken_as_the_library_takes_them(
            layout in layouts(), digits in 0u32..7, offset in 0u32..2, ratio in 0u32..4, low in 0u64..4,
            payload in proptest::collection::vec(
                prop_oneof![3 => 0u8..16, 1 => any::<u8>()], 0..40,
            ),
        ) {
            let mut bytes = COOKIE.to_vec();
            bytes.extend((payload.len() as u32).to_be_bytes());
            bytes.extend((offset / 2).to_be_bytes());
            bytes.extend(digits.min(u32::from(layout.0) + 3).to_be_bytes());
            bytes.extend((low.saturating_sub(1).max(layout.1 / 2)).to_be_bytes());
            bytes.extend((layout.2 >> 20).to_be_bytes());
            bytes.extend((if ratio == 0 { 2.0_f64 } else { 1.0 }).to_be_bytes());
            bytes.extend(&payload);
            match Sparse::of(&bytes) {
                Ok(sparse) => {
                    let dense = dense(&bytes).expect("what is read here is read by the library");
                    prop_assert_eq!(sparse.len(), dense.len());
                }
                // Beyond the library's capacity, or a length that it would trust.
                Err(EncodingError::TooManyCounts | EncodingError::CutOff) => {}
                Err(_) => prop_assert!(dense(&bytes).is_none()),
            }
        }
    }

    #[test]
    fn the_last_value_is_the_largest_of_the_last_count() {
        let sparse = Sparse::of(&encoded(0, 1, u64::MAX, &[(1 << 63, 1), (1 << 62, 1)])).unwrap();
        let largest: Vec<_> = sparse.iter().map(|one| one.largest()).collect();
        assert_eq!(largest, [(1 << 63) - 1, u64::MAX]);
    }

    #[test]
    fn what_has_no_room_adds_nothing() {
        let sparse = Sparse::of(&encoded(3, 1, 60_000_000, &[(5, 1), (50_000_000, 2)])).unwrap();
        let mut narrow = Histogram::<u64>::new_with_bounds(1, 10_000, 3).unwrap();
        assert_eq!(sparse.add_to(&mut narrow), Err(MergeError::TooLarge));
        assert!(narrow.is_empty());
    }

    #[test]
    fn another_read_takes_the_place_of_the_one_before() {
        let mut sparse = Sparse::of(&encoded(3, 1, 1000, &[(5, 1), (500, 2)])).unwrap();
        sparse.read(&encoded(3, 1, 1000, &[(7, 3)])).unwrap();
        assert_eq!(sparse.len(), 3);
        assert_eq!(sparse.read(&[0; 40]), Err(EncodingError::Header));
        assert!(sparse.is_empty() && sparse.iter().next().is_none());
    }
}
