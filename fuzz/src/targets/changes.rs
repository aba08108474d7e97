//! A group of the log of changes: any damage is rejected, and the memory is at most its length.

use groupware_store::read_group;

pub(crate) fn run(bytes: &[u8]) {
    // Framed like by the log's writer: otherwise nothing passes the hash.
    let length = u32::try_from(bytes.len()).expect("inputs are small");
    let hash = blake3::hash(bytes);
    let framed = [&length.to_le_bytes()[..], &hash.as_bytes()[..16], bytes].concat();
    if let Ok(Some(group)) = read_group(&mut &framed[..]) {
        let ops: usize = group.changes.iter().map(|change| change.ops.len()).sum();
        assert!(group.changes.len() * 12 + ops <= bytes.len());
    }
    let _ = read_group(&mut &bytes[..]);
}
