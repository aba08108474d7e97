//! Encodes folder names as directory names: Maildir++ with the modified UTF-7 of IMAP (RFC 3501, 5.1.3), as Dovecot
//! writes them.
//!
//! A `.` separates a folder from its parent. Dots within names, which other programs don't allow, are encoded; so is a
//! leading `/`, because `..` is another directory.

/// Encodes a folder's name, with `/` between its parts, as the name of a Maildir++ folder without its first dot.
pub fn encode_folder(name: &str) -> String {
    let mut text = String::new();
    let mut waiting: Vec<u16> = Vec::new();
    for (at, letter) in name.char_indices() {
        let parts_nothing = letter == '/' && at == 0;
        let is_plain = matches!(letter, ' '..='~') && letter != '.' && !parts_nothing;
        if !is_plain {
            waiting.extend_from_slice(letter.encode_utf16(&mut [0; 2]));
            continue;
        }
        flush(&mut text, &mut waiting);
        match letter {
            '/' => text.push('.'),
            '&' => text.push_str("&-"),
            _ => text.push(letter),
        }
    }
    flush(&mut text, &mut waiting);
    text
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+,";

/// Writes the pending characters as base64 of UTF-16, without padding.
fn flush(text: &mut String, waiting: &mut Vec<u16>) {
    if waiting.is_empty() {
        return;
    }
    text.push('&');
    let bytes: Vec<u8> = waiting.drain(..).flat_map(u16::to_be_bytes).collect();
    for three in bytes.chunks(3) {
        let bits = three
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        let bits = bits << (8 * (3 - three.len()));
        for digit in 0..=three.len() {
            let at = bits >> (18 - 6 * digit) & 63;
            text.push(char::from(DIGITS[at as usize]));
        }
    }
    text.push('-');
}

/// Decodes the name of a Maildir++ folder; invalid encodings are kept as they are.
pub fn decode_folder(text: &str) -> String {
    decode(text, '/')
}

/// Decodes the name of a nested folder on disk, where a dot is no separator.
pub(crate) fn decode_part(text: &str) -> String {
    decode(text, '.')
}

fn decode(text: &str, dot: char) -> String {
    let mut name = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        match letter {
            '.' => name.push(dot),
            '&' => match rest
                .split_once('-')
                .and_then(|(digits, after)| decoded(digits).map(|letters| (letters, after)))
            {
                Some((letters, after)) => {
                    name.push_str(&letters);
                    rest = after;
                }
                None => name.push('&'),
            },
            _ => name.push(letter),
        }
    }
    name
}

fn decoded(digits: &str) -> Option<String> {
    if digits.is_empty() {
        return Some("&".to_owned());
    }
    let (mut bits, mut count, mut units) = (0_u32, 0, Vec::new());
    for digit in digits.bytes() {
        let value = DIGITS.iter().position(|known| *known == digit)?;
        bits = bits << 6 | u32::try_from(value).ok()?;
        count += 6;
        if count >= 16 {
            count -= 16;
            units.push(u16::try_from(bits >> count & 0xFFFF).ok()?);
        }
    }
    String::from_utf16(&units).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_written_as_dovecot_writes_them() {
        for (name, text) in [
            ("Work", "Work"),
            ("Archive/2020", "Archive.2020"),
            ("Entwürfe", "Entw&APw-rfe"),
            ("台北/日本語", "&U,BTFw-.&ZeVnLIqe-"),
            ("R&D", "R&-D"),
            ("v1.2", "v1&AC4-2"),
            ("😀", "&2D3eAA-"),
            ("/", "&AC8-"),
        ] {
            assert_eq!(encode_folder(name), text);
            assert_eq!(decode_folder(text), name);
        }
        // Invalid encodings.
        for odd in ["a&b", "&!-", "&", "&2D0-"] {
            assert_eq!(decode_folder(odd), odd);
        }
    }

    proptest! {
        #[test]
        fn names_come_back(name: String) {
            let text = encode_folder(&name);
            prop_assert!(!text.starts_with('.') && !text.contains('/'));
            prop_assert_eq!(decode_folder(&text), name);
        }

        #[test]
        fn no_name_panics(text: String) {
            let _ = decode_folder(&text);
        }
    }
}
