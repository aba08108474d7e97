//! mbox and names of Maildir folders: nothing panics, no message exceeds its bound, and messages are the same after
//! writing and reading.

use std::io::Cursor;

use groupware_mailfiles::{Mbox, Read, decode_folder, encode_folder, write_mbox};

const MOST: usize = 4096;

pub(crate) fn run(data: &[u8]) {
    for read in Mbox::new(Cursor::new(data), MOST) {
        let Ok(Read::Message(mut message)) = read else {
            continue;
        };
        assert!(message.bytes.len() <= MOST);
        let mut file = Vec::new();
        write_mbox(&mut file, &message).unwrap();
        let words: usize = message.keywords.iter().map(|word| word.len() + 1).sum();
        assert!(file.len() <= 2 * message.bytes.len() + words + 250);
        message.received_us = Some(message.received_us.unwrap_or_default());
        let again: Vec<Read> = Mbox::new(Cursor::new(file), MOST)
            .map(Result::unwrap)
            .collect();
        assert_eq!(again, [Read::Message(message)]);
    }
    if let Ok(text) = std::str::from_utf8(data) {
        let name = decode_folder(text);
        assert_eq!(decode_folder(&encode_folder(&name)), name);
    }
}
