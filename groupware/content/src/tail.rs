//! The tail of an upload's file: the durable offset, and its proof.
//!
//! An upload's offset must become durable together with the bytes before it, with one sync per
//! chunk. A record of the offset elsewhere would need a second one. The file's length is no
//! substitute: after a crash it can include bytes that never reached the disk, or bytes of a chunk
//! whose checksum was not yet checked.
//!
//! So the offset is written after the content, into the same file, and synced with the chunk. The
//! disk may write the two in either order: so a slot holds the hash of all content up to its
//! offset, and a slot that reached the disk before its chunk is detected by the wrong hash. Two
//! slots are written in turn, each in a page of its own: if one is torn or ahead of its chunk, the
//! other one is valid, since its chunk was synced before the next one began. The proof costs
//! nothing: content is hashed on arrival, and resuming must hash it anyway.

use crate::ContentHash;

/// The written bytes of a slot.
const SLOT_BYTES: usize = 88;
/// The distance of the slots: a disk writes at most this much at once, or all of it.
const PAGE_BYTES: u64 = 4096;
/// Both pages without a slot.
pub(crate) const BLANK: [u8; 2 * PAGE_BYTES as usize] = [0; 2 * PAGE_BYTES as usize];
/// The magic number with the version.
const MARK: &[u8; 8] = b"PLUPLD01";

/// Returns the size of a file with content of this length and a tail.
pub(crate) fn with_tail(length: u64) -> u64 {
    start(length).saturating_add(2 * PAGE_BYTES)
}

/// Returns the position of the slot with this number.
pub(crate) fn slot_at(length: u64, sequence: u64) -> u64 {
    start(length) + sequence % 2 * PAGE_BYTES
}

fn start(length: u64) -> u64 {
    length.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES)
}

/// The content of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The sequence number; slots are numbered in the order of writing.
    pub sequence: u64,
    /// The number of durable bytes from the beginning.
    pub offset: u64,
    /// The hash of these bytes.
    pub hash: ContentHash,
}

impl Slot {
    pub(crate) fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(MARK);
        bytes[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_le_bytes());
        bytes[24..56].copy_from_slice(self.hash.as_bytes());
        let check = blake3::hash(&bytes[..56]);
        bytes[56..].copy_from_slice(check.as_bytes());
        bytes
    }
}

/// Decodes a slot; `None` if it was not written, or incompletely.
pub fn decode_slot(bytes: &[u8]) -> Option<Slot> {
    let bytes = bytes.get(..SLOT_BYTES)?;
    let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    if bytes[..8] != MARK[..] || blake3::hash(&bytes[..56]).as_bytes()[..] != bytes[56..] {
        return None;
    }
    Some(Slot {
        sequence: number(8)?,
        offset: number(16)?,
        hash: ContentHash::from_bytes(bytes[24..56].try_into().ok()?),
    })
}

/// The bytes needed to decode a slot.
pub(crate) const READ_BYTES: usize = SLOT_BYTES;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slots_come_back(sequence: u64, offset: u64, hash: [u8; 32]) {
            let slot = Slot { sequence, offset, hash: ContentHash::from_bytes(hash) };
            prop_assert_eq!(decode_slot(&slot.encode()), Some(slot));
        }

        #[test]
        fn torn_slots_are_none(sequence: u64, other: u64, cut in 9_usize..SLOT_BYTES) {
            prop_assume!(sequence != other);
            let slot = |sequence| Slot { sequence, offset: 5, hash: ContentHash::of(b"x") }.encode();
            let (new, old) = (slot(sequence), slot(other));
            let torn = [&new[..cut], &old[cut..]].concat();
            let whole = torn == new || torn == old;
            prop_assert_eq!(decode_slot(&torn).is_some(), whole);
        }

        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = decode_slot(&bytes);
        }
    }

    #[test]
    fn slots_share_no_page_with_content_nor_with_each_other() {
        for length in [0, 1, 4095, 4096, 4097, 2 << 20] {
            let (even, odd) = (slot_at(length, 0), slot_at(length, 1));
            assert!(even >= length && even % PAGE_BYTES == 0);
            assert_eq!(odd, even + PAGE_BYTES);
            assert_eq!(with_tail(length), odd + PAGE_BYTES);
        }
    }
}
