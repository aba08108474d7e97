//! Any bytes as packets of an MQTT broker, whole and split in two: the split does not change the messages.

use lab_dialogues::mqtt_messages;

/// All messages, and the bytes after them.
type Split = (Vec<(String, Vec<u8>)>, Vec<u8>);

/// Returns all messages, and the bytes after them.
fn read(pieces: &[&[u8]], is_five: bool) -> Result<Split, String> {
    let (mut messages, mut kept) = (Vec::new(), Vec::new());
    for piece in pieces {
        kept.extend_from_slice(piece);
        let mut heard = &kept[..];
        messages.extend(mqtt_messages(&mut heard, is_five)?);
        let taken = kept.len() - heard.len();
        kept.drain(..taken);
    }
    Ok((messages, kept))
}

pub(crate) fn run(data: &[u8]) {
    let [version, at, bytes @ ..] = data else {
        return;
    };
    let is_five = version & 1 > 0;
    let cut = bytes.len() * usize::from(*at) / 256;
    let (first, second) = bytes.split_at(cut);
    assert_eq!(read(&[bytes], is_five), read(&[first, second], is_five));
}
