//! The tail of an upload's file: how much of it is durable, and the proof.
//!
//! An upload's offset must be durable together with the bytes before it, and one sync per chunk is
//! all that the disk should have to do. A record of the offset elsewhere would take a second one.
//! The file's own length would not do: after a crash it can count bytes that never reached the disk,
//! or bytes of a chunk whose checksum was yet to be looked at.
//!
//! So the offset is written behind the content, into the same file, and synced with the chunk. The
//! disk may write the two in either order: a slot therefore holds the hash of all content up to its
//! offset, and one that got to the disk before its chunk did is found out, since the hash doesn't
//! fit. There are two slots, written in turn, each in a page of its own: a slot that was torn or ran
//! ahead leaves the one before it, whose chunk was synced before the next was begun. The proof costs
//! nothing: content is hashed as it comes in, and who resumes must hash what is there anyway.

use crate::ContentHash;

/// Bytes of a slot that are written.
const SLOT_BYTES: usize = 88;
/// Slots lie this far apart: a disk writes no more than this at once, or all of it.
const PAGE_BYTES: u64 = 4096;
/// Both pages without a slot.
pub(crate) const BLANK: [u8; 2 * PAGE_BYTES as usize] = [0; 2 * PAGE_BYTES as usize];
/// Says what it is, and of which version.
const MARK: &[u8; 8] = b"PLUPLD01";

/// Bytes of a file that has content of this length, and a tail.
pub(crate) fn with_tail(length: u64) -> u64 {
    start(length).saturating_add(2 * PAGE_BYTES)
}

/// Where the slot with this number goes.
pub(crate) fn slot_at(length: u64, sequence: u64) -> u64 {
    start(length) + sequence % 2 * PAGE_BYTES
}

fn start(length: u64) -> u64 {
    length.div_ceil(PAGE_BYTES).saturating_mul(PAGE_BYTES)
}

/// What a slot says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Slots are numbered in the order in which they are written.
    pub sequence: u64,
    /// So many bytes from the beginning on are durable.
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

/// Reads a slot; `None` where none was written, or not as a whole.
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

/// Bytes to read to decode a slot.
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
