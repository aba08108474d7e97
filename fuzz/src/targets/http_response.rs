//! Any bytes as an answer, whole and split in two: the split does not change the result.

use lab_client::http::{ResponseReader, StoredBody, Terms};

const TERMS: Terms = Terms {
    head_request: false,
    max_header_bytes: 4096,
    max_body_bytes: 65536,
};

/// Returns status, kept body, and bytes of the body; `None` if the answer is incomplete.
fn read(pieces: &[&[u8]]) -> Result<Option<(u16, Vec<u8>, u64)>, ()> {
    let mut reader = ResponseReader::new(TERMS);
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        let fed = reader.feed(piece, |_| usize::MAX, &mut |_, _| {});
        if let Some(whole) = fed.map_err(drop)? {
            let body = match whole.body {
                StoredBody::Input(range) => piece[range].to_vec(),
                StoredBody::Kept => reader.kept().to_vec(),
            };
            return Ok(Some((whole.status, body, whole.body_bytes)));
        }
    }
    Ok(None)
}

pub(crate) fn run(data: &[u8]) {
    let Some((at, bytes)) = data.split_first() else {
        return;
    };
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    let (whole, cut) = (read(&[bytes]), read(&[first, second]));
    assert_eq!(whole, cut);
}
