//! Segments: the bytes of an upload under way that lie in an object store, where several servers reach them.
//!
//! The upload's record lists its segments in their order, so its offset is the sum of their lengths. A server puts a
//! segment into the object store first, and then changes the record, under an assert on the revision that it read before.
//! Of two servers that take a chunk at once, one changes the record, and the other one's segment belongs to nothing.
//!
//! The name of a segment holds that revision. A segment that no record lists is removed once the record has another
//! revision, or is gone: the change that would refer to it can't succeed any more. No clock decides that.

use serde::{Deserialize, Serialize};

use crate::UploadId;

/// Most bytes of a segment, but for some that would be left over.
pub const SEGMENT_BYTES: u64 = 8 << 20;
/// So many bytes more make no segment of their own.
const MORE_BYTES: u64 = 1 << 20;
/// As many small segments at the end are put together, however small they are.
const SMALL_SEGMENTS: usize = 64;

/// A segment of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// How many bytes it has.
    #[serde(rename = "b")]
    pub bytes: u64,
    /// The name of its object.
    #[serde(rename = "o")]
    pub name: String,
}

/// The name of a segment that is put after the upload was read at this revision.
pub fn segment_name(id: &UploadId, revision: u64, bits: u128) -> String {
    format!("{id}-{revision:016x}-{bits:032x}")
}

/// Of which upload a segment is, and the revision in its name; `None` if this names no segment.
pub fn segment_of(name: &str) -> Option<(UploadId, u64)> {
    let mut parts = name.split('-');
    let (id, revision, bits) = (parts.next()?, parts.next()?, parts.next()?);
    let is_all = parts.next().is_none() && revision.len() == 16 && bits.len() == 32;
    let revision = u64::from_str_radix(revision, 16).ok()?;
    let id = UploadId::parse(id).ok().filter(|_| is_all)?;
    // One name for each: a sign, or an upper case letter, is nobody's.
    let bits = u128::from_str_radix(bits, 16).ok()?;
    (segment_name(&id, revision, bits) == name).then_some((id, revision))
}

/// How many segments from the first on stay as they are when so many bytes come behind them. Those that don't are put
/// again together with the new ones: an upload in small chunks doesn't come to more and more objects.
pub fn segments_to_keep(segments: &[Segment], more: u64) -> usize {
    let small = segments.iter().rev();
    let small = small.take_while(|segment| segment.bytes < SEGMENT_BYTES);
    let (count, bytes) = small.fold((0, more), |(count, bytes), segment| {
        (count + 1, bytes + segment.bytes)
    });
    match count >= SMALL_SEGMENTS || bytes >= SEGMENT_BYTES {
        true => segments.len() - count,
        false => segments.len(),
    }
}

/// The lengths of segments that so many bytes are put in.
pub fn segment_lengths(mut bytes: u64) -> Vec<u64> {
    let mut lengths = Vec::new();
    while bytes > 0 {
        let next = match bytes <= SEGMENT_BYTES + MORE_BYTES {
            true => bytes,
            false => SEGMENT_BYTES,
        };
        lengths.push(next);
        bytes -= next;
    }
    lengths
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(lengths: &[u64]) -> Vec<Segment> {
        let segment = |bytes: &u64| Segment {
            bytes: *bytes,
            name: String::new(),
        };
        lengths.iter().map(segment).collect()
    }

    #[test]
    fn small_segments_are_put_together_once_they_are_many_or_make_a_large_one() {
        let large = SEGMENT_BYTES;
        assert_eq!(segments_to_keep(&of(&[]), 1), 0);
        assert_eq!(segments_to_keep(&of(&[large, 5]), 7), 2);
        assert_eq!(segments_to_keep(&of(&[large, large - 5]), 5), 1);
        assert_eq!(segments_to_keep(&of(&[large, 5, large, 5, 5]), large), 3);
        assert_eq!(segments_to_keep(&of(&[1; 63]), 1), 63);
        assert_eq!(segments_to_keep(&of(&[1; 64]), 1), 0);
    }

    proptest! {
        #[test]
        fn few_segments_hold_any_upload(chunks in proptest::collection::vec(1..SEGMENT_BYTES * 3, 1..200)) {
            let mut segments = Vec::new();
            let mut total = 0;
            for more in chunks {
                let kept = segments_to_keep(&segments, more);
                let again: u64 = segments[kept..].iter().map(|it| it.bytes).sum();
                segments.truncate(kept);
                segments.extend(of(&segment_lengths(again + more)));
                total += more;
                let sum: u64 = segments.iter().map(|it| it.bytes).sum();
                prop_assert_eq!(sum, total);
                prop_assert!(segments.iter().all(|it| it.bytes <= SEGMENT_BYTES + MORE_BYTES));
                let most = total / SEGMENT_BYTES + SMALL_SEGMENTS as u64 + 1;
                prop_assert!(segments.len() as u64 <= most);
            }
        }

        #[test]
        fn names_come_back(id: u128, revision: u64, bits: u128) {
            let id = UploadId::from_bits(id);
            let name = segment_name(&id, revision, bits);
            prop_assert_eq!(segment_of(&name), Some((id, revision)));
            for other in [&name[1..], &name.to_uppercase(), &format!("{name}-0"), &name.replacen('-', "-+", 1)] {
                let is_same = other == name;
                prop_assert!(is_same || segment_of(other).is_none());
            }
        }

        #[test]
        fn no_name_panics(name: String) {
            let _ = segment_of(&name);
        }
    }
}
