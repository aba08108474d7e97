//! Any bytes as frames of a WebSocket, whole and split in two: the split does not change the result.

use lab_dialogues::WebSocketMessages;

fn read(pieces: &[&[u8]]) -> (Result<Option<u32>, String>, Vec<u8>) {
    let mut messages = WebSocketMessages::default();
    let mut last = Ok(Some(0));
    for piece in pieces {
        last = messages.read(piece);
        if !matches!(last, Ok(Some(_))) {
            break;
        }
    }
    (last, messages.text().to_vec())
}

pub(crate) fn run(data: &[u8]) {
    let Some((at, bytes)) = data.split_first() else {
        return;
    };
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    assert_eq!(read(&[bytes]), read(&[first, second]));
}
