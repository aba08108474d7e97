//! HdrHistogram's V2 form with strict validation: for bytes from a file or from another process.
//!
//! The library's decoder trusts lengths, so that damaged bytes could make it allocate 4 GiB or overflow. Here
//! [`crate::sparse`] reads the bytes, and checks everything that it relies on.

use hdrhistogram::serialization::{Serializer, V2Serializer};
use hdrhistogram::{Counter, Histogram};

pub use crate::sparse::EncodingError;
use crate::sparse::{Layout, Sparse, V2_HIGH};

/// Appends the V2 form, uncompressed. Its bytes depend on the values alone, and not on whether the histogram recorded
/// or merged them.
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
    // Its capacity depends on how it grew; its content does not.
    let high = histogram.max().max(histogram.low().saturating_mul(2));
    into[at + V2_HIGH..][..8].copy_from_slice(&high.to_be_bytes());
    Ok(())
}

/// Reads the V2 form. Later additions resize the histogram if necessary. To merge many histograms, read a [`Sparse`]
/// instead.
///
/// # Errors
/// Any fault of the bytes.
pub fn decode_v2(encoded: &[u8]) -> Result<Histogram<u64>, EncodingError> {
    let (layout, _) = Layout::of(encoded)?;
    let mut histogram = Histogram::new_with_bounds(layout.low, layout.high, layout.digits)
        .map_err(|_| EncodingError::Header)?;
    Sparse::of(encoded)?
        .add_to(&mut histogram)
        .map_err(|_| EncodingError::BeyondItsRange)?;
    histogram.auto(true);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sparse::V2_HEADER_BYTES;

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
        let mut encoded = Vec::new();
        encode_v2(&Histogram::<u64>::new(3).unwrap(), &mut encoded).unwrap();
        encoded.truncate(V2_HEADER_BYTES);
        encoded[4..8].copy_from_slice(&9u32.to_be_bytes());
        encoded.extend([0xff; 9]);
        assert_eq!(decode_v2(&encoded), Err(EncodingError::TooManyCounts));
    }
}
