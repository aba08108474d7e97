//! Decodes transfer encodings (RFC 2045): invalid characters are skipped or kept, and everything
//! else is decoded.

use std::borrow::Cow;

use mail_parser::decoders::base64::base64_decode;

use crate::uuencode;

/// The transfer encoding of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Base64,
    QuotedPrintable,
    Uuencode,
}

impl Encoding {
    /// Parses the name of an encoding, in the spellings that programs use: `base64 (a comment)`, `"base64"`, `base64;`.
    pub(crate) fn of(name: &str) -> Self {
        let name = name.trim().trim_matches(['"', '\'']);
        let end = name.find(|sign: char| sign.is_whitespace() || ";(,\"'".contains(sign));
        let letters: String = name[..end.unwrap_or(name.len())]
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|letter| letter.to_ascii_lowercase())
            .collect();
        match letters.as_str() {
            "base64" | "xbase64" | "b64" => Self::Base64,
            "quotedprintable" | "xquotedprintable" | "qp" => Self::QuotedPrintable,
            "xuuencode" | "uuencode" | "xuue" | "uue" | "uu" => Self::Uuencode,
            _ => Self::Plain,
        }
    }

    /// Decodes content, and returns the unencoded text behind it, such as the footer of a list.
    pub(crate) fn decode(self, content: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
        let decoded = match self {
            Self::Plain => None,
            Self::Base64 => return base64(content),
            Self::QuotedPrintable => Some(quoted_printable(content)),
            Self::Uuencode => uuencode::decode(content),
        };
        (decoded.map_or(Cow::Borrowed(content), Cow::Owned), b"")
    }
}

/// Decodes quoted-printable. A `=` before invalid characters stays as it is (RFC 2045, 6.7).
pub(crate) fn quoted_printable(content: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(content.len());
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii_end();
        let end_at = line.len()
            - line
                .iter()
                .rev()
                .take_while(|b| matches!(b, b'\r' | b'\n'))
                .count();
        let is_soft = text.ends_with(b"=") && hex_at(text, text.len() - 1).is_none();
        let text = text.strip_suffix(b"=").filter(|_| is_soft).unwrap_or(text);
        let mut at = 0;
        while let Some(byte) = text.get(at) {
            match hex_at(text, at) {
                Some(byte) => {
                    decoded.push(byte);
                    at += 3;
                }
                None => {
                    decoded.push(*byte);
                    at += 1;
                }
            }
        }
        if !is_soft {
            decoded.extend_from_slice(&line[end_at..]);
        }
    }
    decoded
}

/// The byte that `=XX` at this offset encodes.
pub(crate) fn hex_at(text: &[u8], at: usize) -> Option<u8> {
    match text.get(at..at + 3)? {
        [b'=', high, low] => hex(*high, *low),
        _ => None,
    }
}

pub(crate) fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|it| u8::try_from(it).ok())
    };
    Some(digit(high)? << 4 | digit(low)?)
}

fn is_letter(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Decodes base64, and returns the text behind it. Characters outside the alphabet are skipped (RFC
/// 2045, 6.8). If nothing is base64, the content is returned as it is.
fn base64(content: &[u8]) -> (Cow<'_, [u8]>, &[u8]) {
    if let Some(decoded) = base64_decode(content) {
        return (Cow::Owned(decoded), b"");
    }
    let (letters, end) = base64_letters(content);
    match base64_decode(&letters) {
        Some(decoded) if !decoded.is_empty() => (Cow::Owned(decoded), &content[end..]),
        _ => (Cow::Borrowed(content), b""),
    }
}

/// Returns the characters of the base64 lines, and the end of these lines.
fn base64_letters(content: &[u8]) -> (Vec<u8>, usize) {
    let lines = || content.split_inclusive(|byte| *byte == b'\n');
    let count = |line: &[u8]| line.iter().filter(|byte| is_letter(byte)).count();
    let full = lines().map(count).find(|letters| *letters > 0).unwrap_or(0);
    let is_full = |line: &[u8]| count(line) >= full && line.trim_ascii().iter().all(is_letter);
    // Text lines before the base64 lines are skipped; a text line behind them ends the content.
    let mut at = 0;
    let mut last_full = 0;
    for line in lines() {
        at += line.len();
        if is_full(line) {
            last_full = at;
        }
    }
    let (mut letters, mut at, mut end, mut is_over) = (Vec::new(), 0, 0, false);
    for line in lines() {
        let is_data = match is_over {
            true => is_full(line),
            false => is_base64(line),
        };
        let is_blank = line.trim_ascii().is_empty();
        at += line.len();
        if is_data {
            letters.extend(line.iter().copied().filter(is_letter));
            end = at;
            is_over = line.contains(&b'=') || count(line) < full;
        } else if is_blank {
            is_over |= !letters.is_empty();
        } else if at > last_full {
            break;
        }
    }
    (letters, end)
}

/// Returns true if a line is base64 but for a few characters.
fn is_base64(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let letters = line.iter().filter(|byte| is_letter(byte)).count();
    let strays = line.len() - letters;
    let is_text = line.iter().any(u8::is_ascii_whitespace) && letters < 40;
    let is_short = letters < 40 && letters % 4 != 0;
    letters > 0 && strays * 8 <= letters && !is_text && !is_short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoding: &str, content: &str) -> (String, String) {
        let (data, rest) = Encoding::of(encoding).decode(content.as_bytes());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&data), text(rest))
    }

    #[test]
    fn reads_encodings_in_many_spellings() {
        for name in [
            "base64",
            "BASE64",
            " base64 ",
            "base64 (x)",
            "base64;",
            "\"base64\"",
            "base64; x=y",
            "Base-64",
            "x-base64",
            "'base64'",
            "base64, 7bit",
        ] {
            assert_eq!(Encoding::of(name), Encoding::Base64, "{name}");
        }
        for name in [
            "quoted-printable",
            "Quoted-Printable (q)",
            "quoted_printable",
            "quotedprintable",
        ] {
            assert_eq!(Encoding::of(name), Encoding::QuotedPrintable, "{name}");
        }
        for name in ["x-uuencode", "uuencode", "x-uue"] {
            assert_eq!(Encoding::of(name), Encoding::Uuencode, "{name}");
        }
        for name in [
            "", "7bit", "8bit", "binary", "base65", "x-token", "(base64)",
        ] {
            assert_eq!(Encoding::of(name), Encoding::Plain, "{name}");
        }
    }

    const LINE: &str =
        "VGhlIGhhcmJvdXIgbWFzdGVyIHdyaXRlczogdGhlIHBpZXIgaXMgY2xvc2VkIHVudGlsIG5vb24u";
    const TEXT: &str = "The harbour master writes: the pier is closed until noon.";

    #[test]
    fn base64_is_decoded_whatever_stands_in_it() {
        for (content, text, rest) in [
            (format!("{LINE}\r\nSGk=\r\n"), format!("{TEXT}Hi"), ""),
            (
                format!("{}*!{}\r\n{LINE}\r\n", &LINE[..20], &LINE[20..]),
                format!("{TEXT}{TEXT}"),
                "",
            ),
            (
                format!("{LINE}\r\n\r\n____\r\nPier list\r\nlist\r\n"),
                TEXT.into(),
                "\r\n____\r\nPier list\r\nlist\r\n",
            ),
            (
                format!("{LINE}\r\nSGk=\r\nlist\r\n!\r\n"),
                format!("{TEXT}Hi"),
                "list\r\n!\r\n",
            ),
            (
                format!("{LINE}\r\n-- x --\r\n{LINE}\r\n"),
                format!("{TEXT}{TEXT}"),
                "",
            ),
            (
                format!("{LINE}\r\nSGk=\r\n{LINE}\r\n!\r\n"),
                format!("{TEXT}Hi{TEXT}"),
                "!\r\n",
            ),
            ("SGk-\r\n".into(), "SGk-\r\n".into(), ""),
            (
                "This is no base64 at all.\r\n".into(),
                "This is no base64 at all.\r\n".into(),
                "",
            ),
            ("!!".into(), "!!".into(), ""),
            (String::new(), String::new(), ""),
            ("\u{feff}".to_owned() + LINE, TEXT.into(), ""),
            (format!("{LINE}\0"), TEXT.into(), ""),
        ] {
            assert_eq!(
                decoded("base64", &content),
                (text, rest.to_owned()),
                "{content:?}"
            );
        }
    }

    #[test]
    fn quoted_printable_is_decoded_whatever_stands_in_it() {
        for (content, text) in [
            ("Gr=C3=BC=C3=9Fe", "Grüße"),
            ("lower =c3=bc", "lower ü"),
            ("soft=\r\n end=", "soft end"),
            ("soft= \t\nend", "softend"),
            (
                "100 =% sure, =Z9, = , sch=C3=B6n",
                "100 =% sure, =Z9, = , schön",
            ),
            ("a==C3=BC", "a=ü"),
            ("trailing  \r\nnext\t\nlast ", "trailing\r\nnext\nlast"),
            ("=3D=", "="),
            ("cut =C", "cut =C"),
            ("=\r\n=\r\n", ""),
            ("\r\n\r\n", "\r\n\r\n"),
            ("bare\rreturn", "bare\rreturn"),
            ("raw ü", "raw ü"),
        ] {
            assert_eq!(decoded("quoted-printable", content).0, text, "{content:?}");
        }
    }
}
