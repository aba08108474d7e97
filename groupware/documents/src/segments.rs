//! Segments: the bytes of a pending upload in an object store, accessible to all servers.
//!
//! The upload's record lists its segments in order; the sum of their lengths is its offset. A server puts a segment
//! into the object store first, and then changes the record, under an assert on the revision that it read before. If
//! two servers receive a chunk at once, one changes the record, and the segment of the other is orphaned.
//!
//! The name of a segment includes that revision. An unlisted segment is removed once the record has another
//! revision, or is gone: the change that would refer to it can't succeed any more. No clock is involved.

use serde::{Deserialize, Serialize};

use crate::UploadId;

/// The maximum bytes of a segment, except for a small rest.
pub const SEGMENT_BYTES: u64 = 8 << 20;
/// A rest of up to this many bytes gets no segment of its own.
const MORE_BYTES: u64 = 1 << 20;
/// This many small segments at the end are merged, however small they are.
const SMALL_SEGMENTS: usize = 64;

/// A segment of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its size in bytes.
    #[serde(rename = "b")]
    pub bytes: u64,
    /// The name of its object.
    #[serde(rename = "o")]
    pub name: String,
}

/// Returns the name of a segment put after the upload was read at this revision.
pub fn segment_name(id: &UploadId, revision: u64, bits: u128) -> String {
    format!("{id}-{revision:016x}-{bits:032x}")
}

/// Parses the upload and the revision in a segment's name; `None` if it is no such name.
pub fn segment_of(name: &str) -> Option<(UploadId, u64)> {
    let mut parts = name.split('-');
    let (id, revision, bits) = (parts.next()?, parts.next()?, parts.next()?);
    let is_all = parts.next().is_none() && revision.len() == 16 && bits.len() == 32;
    let revision = u64::from_str_radix(revision, 16).ok()?;
    let id = UploadId::parse(id).ok().filter(|_| is_all)?;
    // Names are unique: a sign, or an upper-case letter, is invalid.
    let bits = u128::from_str_radix(bits, 16).ok()?;
    (segment_name(&id, revision, bits) == name).then_some((id, revision))
}

/// Returns the number of segments that stay when this many bytes are appended. The rest is put
/// again together with the new bytes, so that an upload in small chunks doesn't accumulate objects.
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

/// Returns the lengths of the segments for this many bytes.
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
