//! HdrHistogram's V2 form, read with care: for bytes from a file or from another process.
//!
//! The library's decoder trusts lengths, so that damaged bytes could make it ask for 4 GiB or
//! overflow. Here everything that it relies on is checked first.

use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use hdrhistogram::{Counter, Histogram};

/// Cookie, payload length, offset, digits, low, high, ratio.
const V2_HEADER_BYTES: usize = 40;
/// Where in the header the high is: the highest value that the histogram has room for.
const V2_HIGH: usize = 24;
/// More counts than any histogram has.
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
    /// More counts than any histogram has.
    #[error("the histogram has too many counts")]
    TooManyCounts,
    /// What the library's decoder or encoder says.
    #[error("{0}")]
    Library(String),
}

/// Appends the V2 form, uncompressed. Its bytes depend on the values alone, and not on how the
/// histogram came to hold them: one that recorded them and one that was added up are the same.
///
/// # Errors
/// [`EncodingError::Library`] for a histogram of more than 2^31 bytes.
pub fn encode_v2<T: Counter>(
    histogram: &Histogram<T>,
    into: &mut Vec<u8>,
) -> Result<(), EncodingError> {
    let at = into.len();
    let written = V2Serializer::new().serialize(histogram, into);
    written.map_err(|e| EncodingError::Library(e.to_string()))?;
    // What it could hold depends on how it grew; what it holds does not.
    let high = histogram.max().max(histogram.low().saturating_mul(2));
    into[at + V2_HIGH..][..8].copy_from_slice(&high.to_be_bytes());
    Ok(())
}

/// Reads the V2 form. What is added to the histogram later widens it where it must.
///
/// # Errors
/// Whatever is wrong with the bytes.
pub fn decode_v2(encoded: &[u8]) -> Result<Histogram<u64>, EncodingError> {
    check(encoded)?;
    let mut histogram = Deserializer::new()
        .deserialize(&mut &encoded[..])
        .map_err(|e| EncodingError::Library(e.to_string()))?;
    histogram.auto(true);
    Ok(histogram)
}

/// Refuses what the library's decoder would take on trust.
fn check(encoded: &[u8]) -> Result<(), EncodingError> {
    let (head, payload) = encoded
        .split_at_checked(V2_HEADER_BYTES)
        .ok_or(EncodingError::CutOff)?;
    let length = head[4..8].iter().fold(0, |n, b| n << 8 | usize::from(*b));
    if length != payload.len() {
        return Err(EncodingError::Length);
    }
    let mut counts = 0u64;
    let mut rest = payload;
    while !rest.is_empty() {
        let (value, used) = varint(rest).ok_or(EncodingError::CutOff)?;
        rest = &rest[used..];
        // Zigzag: odd numbers are negative, a run of zeros.
        counts += if value & 1 == 1 {
            (value >> 1).saturating_add(1).min(MAX_COUNTS + 1)
        } else {
            1
        };
        if counts > MAX_COUNTS {
            return Err(EncodingError::TooManyCounts);
        }
    }
    Ok(())
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn histograms_read_back(values in proptest::collection::vec(0u64..70_000_000, 0..200)) {
            let mut histogram = Histogram::<u64>::new(3).unwrap();
            values.iter().for_each(|value| histogram.record(*value).unwrap());
            let mut bytes = Vec::new();
            encode_v2(&histogram, &mut bytes).unwrap();
            prop_assert_eq!(decode_v2(&bytes).unwrap(), histogram);
            for length in 0..bytes.len() {
                prop_assert!(decode_v2(&bytes[..length]).is_err(), "{}", length);
            }
        }

        #[test]
        fn the_form_depends_on_the_values_alone(
            values in proptest::collection::vec(1u64..3_600_000_000, 1..200),
            parts in 1usize..5,
        ) {
            let new = || Histogram::<u64>::new(3).unwrap();
            let mut one = new();
            let mut of_parts = vec![new(); parts];
            for (at, value) in values.iter().enumerate() {
                one.record(*value).unwrap();
                of_parts[at % parts].record(*value).unwrap();
            }
            let mut sum = new();
            let (mut recorded, mut added) = (Vec::new(), vec![7]);
            for part in &of_parts {
                // As parts travel: what is read widens, too.
                let mut bytes = Vec::new();
                encode_v2(part, &mut bytes).unwrap();
                let mut read = decode_v2(&bytes).unwrap();
                read.add(&sum).unwrap();
                sum = read;
            }
            encode_v2(&one, &mut recorded).unwrap();
            encode_v2(&sum, &mut added).unwrap();
            prop_assert_eq!(&added[1..], &recorded);
        }

        #[test]
        fn any_payload_is_checked_before_it_is_decoded(
            digits in 0u32..7, low in prop_oneof![0u64..3, any::<u64>()], high in any::<u64>(),
            payload in proptest::collection::vec(any::<u8>(), 0..64), lie in 0u32..3,
        ) {
            let mut encoded = vec![0x1c, 0x84, 0x93, 0x13];
            encoded.extend((payload.len() as u32 + lie / 2).to_be_bytes());
            encoded.extend(0u32.to_be_bytes());
            encoded.extend(digits.to_be_bytes());
            encoded.extend(low.to_be_bytes());
            encoded.extend(high.to_be_bytes());
            encoded.extend(1f64.to_be_bytes());
            encoded.extend(payload);
            let _ = decode_v2(&encoded);
        }
    }

    #[test]
    fn an_overlong_run_of_zeros_is_refused() {
        let mut encoded = vec![0; V2_HEADER_BYTES];
        encoded[4..8].copy_from_slice(&9u32.to_be_bytes());
        encoded.extend([0xff; 9]);
        assert_eq!(decode_v2(&encoded), Err(EncodingError::TooManyCounts));
    }
}
