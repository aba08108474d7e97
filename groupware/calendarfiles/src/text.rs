//! Converts files with other encodings and line ends to UTF-8.

use std::borrow::Cow;

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};
use groupware_proto_ical::Lines;

/// A file in UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Text<'a> {
    /// The bytes; every line end has a line feed.
    pub(crate) bytes: Cow<'a, [u8]>,
    /// The encoding of the file, if not UTF-8.
    pub(crate) encoding: Option<&'static str>,
}

/// Reads a file. UTF-16 is detected by its byte order mark, or by the zeros beside its first letters. In any other
/// file, lines that are not UTF-8 are read as Windows-1252, which includes Latin-1.
pub(crate) fn read(file: &[u8]) -> Text<'_> {
    let wide = match *file {
        [0xFF, 0xFE, ..] | [b'B', 0, b'E', 0, ..] => Some(UTF_16LE),
        [0xFE, 0xFF, ..] | [0, b'B', 0, b'E', ..] => Some(UTF_16BE),
        _ => None,
    };
    if let Some(wide) = wide {
        let text = wide.decode_with_bom_removal(file).0.into_owned();
        return Text {
            bytes: with_line_feeds(Cow::Owned(text.into_bytes())),
            encoding: Some("UTF-16"),
        };
    }
    let bytes = with_line_feeds(Cow::Borrowed(file));
    match std::str::from_utf8(&bytes) {
        Ok(_) => Text {
            bytes,
            encoding: None,
        },
        Err(_) => Text {
            bytes: Cow::Owned(western(&bytes)),
            encoding: Some("Windows-1252"),
        },
    }
}

/// Converts the lines of a file that are in Windows-1252. A line is checked unfolded, because a fold may be within a
/// character.
fn western(file: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(file.len() + 64);
    for line in Lines::new(file) {
        match std::str::from_utf8(&line.unfolded()) {
            Ok(_) => text.extend_from_slice(line.bytes),
            Err(_) => {
                let (line, _) = WINDOWS_1252.decode_without_bom_handling(line.bytes);
                text.extend_from_slice(line.as_bytes());
            }
        }
    }
    text
}

/// Replaces carriage returns by line feeds in a file without line feeds.
fn with_line_feeds(file: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    if file.contains(&b'\n') || !file.contains(&b'\r') {
        return file;
    }
    let mut file = file.into_owned();
    for byte in &mut file {
        if *byte == b'\r' {
            *byte = b'\n';
        }
    }
    Cow::Owned(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "BEGIN:VCALENDAR\r\nSUMMARY:Übung – 5 €\r\nEND:VCALENDAR\r\n";

    fn wide(to_bytes: impl Fn(u16) -> [u8; 2], mark: bool) -> Vec<u8> {
        let mark = mark.then_some(0xFEFF_u16);
        let units = mark.into_iter().chain(FILE.encode_utf16());
        units.flat_map(to_bytes).collect()
    }

    #[test]
    fn reads_every_encoding_that_calendars_have() {
        let western = FILE.replace('Ü', "U").into_bytes();
        let western: Vec<u8> =
            [&western[..], b"X-A:\xfc \x96\r\n", "X-B:ü\r\n".as_bytes()].concat();
        let read_western = format!("{}X-A:ü –\r\nX-B:ü\r\n", FILE.replace('Ü', "U"));
        for (file, expected, encoding) in [
            (FILE.as_bytes().to_vec(), FILE, None),
            (
                FILE.replace("\r\n", "\r").into_bytes(),
                &*FILE.replace("\r\n", "\n"),
                None,
            ),
            (wide(u16::to_le_bytes, true), FILE, Some("UTF-16")),
            (wide(u16::to_be_bytes, true), FILE, Some("UTF-16")),
            (wide(u16::to_le_bytes, false), FILE, Some("UTF-16")),
            (wide(u16::to_be_bytes, false), FILE, Some("UTF-16")),
            (western, &*read_western, Some("Windows-1252")),
        ] {
            let text = read(&file);
            assert_eq!(std::str::from_utf8(&text.bytes), Ok(expected));
            assert_eq!(text.encoding, encoding);
        }
    }

    #[test]
    fn keeps_a_letter_that_a_fold_cuts() {
        let file = b"BEGIN:VCALENDAR\r\nSUMMARY:\xc3\r\n \xbc\r\nEND:VCALENDAR\r\n";
        assert_eq!(&*read(file).bytes, file);
    }
}
