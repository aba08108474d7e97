//! The histogram that recorders, wires, and analyses share.

use std::ops::Deref;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hdrhistogram::errors::AdditionError;
use hdrhistogram::{Histogram, RecordError};
use lab_stats::encoding::{decode_v2, encode_v2};
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A histogram of `DIGITS` significant digits that grows as needed and takes memory from its first value on.
///
/// 16 KiB while all values are below 2 ms, 180 KiB at most for an hour in µs. In serialized form a string: the V2 form in base64,
/// empty without values.
#[derive(Debug, Clone, Default)]
pub struct Hist<const DIGITS: u8 = 3>(Option<Box<Histogram<u64>>>);

static EMPTY: LazyLock<Histogram<u64>> =
    LazyLock::new(|| Histogram::new_with_bounds(1, 2, 0).expect("the smallest valid bounds"));

impl<const DIGITS: u8> Hist<DIGITS> {
    /// Records a value.
    ///
    /// # Errors
    /// None in practice: the histogram grows to any value.
    pub fn record(&mut self, value: u64) -> Result<(), RecordError> {
        self.allocated().record(value)
    }

    /// Records a value `count` times.
    ///
    /// # Errors
    /// None in practice: the histogram grows to any value.
    pub fn record_n(&mut self, value: u64, count: u64) -> Result<(), RecordError> {
        self.allocated().record_n(value, count)
    }

    /// Adds another histogram's values.
    ///
    /// # Errors
    /// None in practice: the histogram grows to any value.
    pub fn add(&mut self, other: &Histogram<u64>) -> Result<(), AdditionError> {
        match other.is_empty() {
            true => Ok(()),
            false => self.allocated().add(other),
        }
    }

    /// Removes all values and keeps the memory.
    pub fn reset(&mut self) {
        // Most histograms of a window are empty; clearing those would cost more than filling the others.
        if let Some(histogram) = self.0.as_mut().filter(|histogram| !histogram.is_empty()) {
            histogram.reset();
        }
    }

    fn allocated(&mut self) -> &mut Histogram<u64> {
        self.0.get_or_insert_with(|| {
            Box::new(Histogram::new(DIGITS).expect("digits are within 0..=5"))
        })
    }
}

impl<const DIGITS: u8> Deref for Hist<DIGITS> {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Histogram<u64> {
        self.0.as_deref().unwrap_or(&EMPTY)
    }
}

impl<const DIGITS: u8> From<Histogram<u64>> for Hist<DIGITS> {
    /// Keeps the histogram as it is, and lets it grow.
    fn from(mut histogram: Histogram<u64>) -> Self {
        histogram.auto(true);
        Self(Some(Box::new(histogram)))
    }
}

/// Two histograms are equal if they hold the same values.
impl<const DIGITS: u8> PartialEq for Hist<DIGITS> {
    fn eq(&self, other: &Self) -> bool {
        (self.is_empty() && other.is_empty()) || **self == **other
    }
}

impl<const DIGITS: u8> Serialize for Hist<DIGITS> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_empty() {
            return serializer.serialize_str("");
        }
        let mut bytes = Vec::new();
        encode_v2(self, &mut bytes).map_err(S::Error::custom)?;
        serializer.serialize_str(&BASE64.encode(bytes))
    }
}

impl<'de, const DIGITS: u8> Deserialize<'de> for Hist<DIGITS> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        if text.is_empty() {
            return Ok(Self::default());
        }
        let bytes = BASE64.decode(&*text).map_err(D::Error::custom)?;
        let read = decode_v2(&bytes).map_err(D::Error::custom)?;
        if (read.low(), read.sigfig()) == (1, DIGITS) {
            return Ok(Self(Some(Box::new(read))));
        }
        let mut hist = Self::default();
        hist.add(&read)
            .map_err(|e| D::Error::custom(format!("its values can't be held: {e}")))?;
        Ok(hist)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn reads_back_what_it_wrote(values in proptest::collection::vec(1_u64..3_600_000_000, 0..100)) {
            let mut hist = Hist::<3>::default();
            for value in &values {
                hist.record(*value).unwrap();
            }
            let json = serde_json::to_string(&hist).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Hist<3>>(&json).unwrap(), &hist);
            // A reader of fewer digits rounds and loses no value.
            prop_assert_eq!(serde_json::from_str::<Hist<2>>(&json).unwrap().len(), hist.len());
        }
    }

    #[test]
    fn rejects_what_is_no_histogram() {
        for text in ["\"!\"", "\"AAAA\"", "3", "\"HISTFAAA\""] {
            assert!(serde_json::from_str::<Hist<3>>(text).is_err(), "{text}");
        }
        assert!(Hist::<3>::default().is_empty());
        assert_eq!(
            serde_json::to_string(&Hist::<3>::default()).unwrap(),
            "\"\""
        );
    }
}
