//! Any bytes as replies of Redis, whole and split in two: the split does not change the result.

use lab_dialogues::ReplyReader;

/// Returns all replies: whether each is an error, and its text.
fn read(pieces: &[&[u8]]) -> Result<Vec<(bool, Vec<u8>)>, String> {
    let (mut reader, mut body, mut kept) = (ReplyReader::default(), Vec::new(), Vec::new());
    let mut replies = Vec::new();
    for piece in pieces {
        kept.extend_from_slice(piece);
        let mut heard = &kept[..];
        while let Some(refused) = reader.read(&mut heard, &mut body)? {
            replies.push((refused, body.clone()));
        }
        let taken = kept.len() - heard.len();
        kept.drain(..taken);
    }
    Ok(replies)
}

pub(crate) fn run(data: &[u8]) {
    let Some((at, bytes)) = data.split_first() else {
        return;
    };
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    assert_eq!(read(&[bytes]), read(&[first, second]));
}
