//! Decodes text: character sets by their labels, as mail programs write them, and a guess if the
//! label is missing, unknown, or wrong.
//!
//! The tables are those of `encoding_rs`, and of `mail-parser` for what the web doesn't use (UTF-7, code page 850);
//! the guess is `chardetng`'s. Added here are labels that neither knows, and two 7-bit encodings that browsers reject.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{EUC_KR, Encoding, GBK, ISO_2022_JP, REPLACEMENT, UTF_8};
use mail_parser::decoders::charsets::{DecoderFnc, map::charset_decoder};

/// Bytes used for a guess.
const GUESS_BYTES: usize = 64 << 10;
/// Bytes of HTML that are searched for a `<meta>`; the HTML standard requires 1024.
const META_BYTES: usize = 4 << 10;

/// The meaning of a label.
enum Charset {
    /// A table of the web.
    Web(&'static Encoding),
    /// ISO-2022-KR (RFC 1557).
    Korean,
    /// HZ (RFC 1843).
    Chinese,
    /// Another table.
    Other(DecoderFnc),
}

/// Decodes bytes with this label. Characters that the character set can't decode are replaced by U+FFFD.
pub(crate) fn decode(bytes: &[u8], label: Option<&str>) -> String {
    match label.and_then(by_label) {
        None => guess(bytes),
        Some(Charset::Web(charset)) if charset == UTF_8 => guess(bytes),
        Some(Charset::Web(charset)) => charset.decode(bytes).0.into_owned(),
        Some(Charset::Korean) => korean(bytes),
        Some(Charset::Chinese) => chinese(bytes),
        Some(Charset::Other(decode)) => decode(bytes),
    }
}

/// Decodes HTML, which may name its own character set.
pub(crate) fn decode_html(bytes: &[u8], label: Option<&str>) -> String {
    let is_known = label.is_some_and(|label| match by_label(label) {
        Some(Charset::Web(charset)) if charset == UTF_8 => std::str::from_utf8(bytes).is_ok(),
        found => found.is_some(),
    });
    match is_known || std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\u{1b}')) {
        true => decode(bytes, label),
        false => decode(bytes, meta_label(bytes).as_deref().or(label)),
    }
}

/// Returns the character set of a label; `None` if unknown, and for ASCII, which can't hold a text's other letters.
fn by_label(label: &str) -> Option<Charset> {
    let label = label.trim().trim_matches(['"', '\'']);
    let squeezed: String = label
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    let known = match squeezed.as_str() {
        "usascii" | "ascii" | "ansix341968" | "iso646us" => return None,
        "iso2022kr" | "csiso2022kr" => return Some(Charset::Korean),
        "hzgb2312" | "hz" => return Some(Charset::Chinese),
        "cp932" | "mskanji" | "win31j" | "xmscp932" => "shift_jis",
        "cp936" | "ms936" | "windows936" => "gbk",
        "cp949" | "ms949" | "windows949" | "uhc" | "ksc56011987" | "ksc5601" => "euc-kr",
        "cp950" | "ms950" | "windows950" | "big5eten" => "big5",
        "cp65001" | "utf8mb4" | "utf8mb3" | "xutf8" => "utf-8",
        "eucjp" | "ujis" | "eucjpms" | "cp51932" | "eucjpwin" => "euc-jp",
        "cp50220" | "cp50221" | "iso2022jpms" | "iso2022jp1" | "iso2022jp2" | "jis" => {
            "iso-2022-jp"
        }
        "koi8ru" => "koi8-u",
        "xgbk" | "xgb2312" | "gb23121980" => "gbk",
        _ => label,
    };
    let web = Encoding::for_label(known.as_bytes())
        .or_else(|| Encoding::for_label(&windows_label(&squeezed)?))
        .filter(|charset| *charset != REPLACEMENT);
    match web {
        Some(charset) => Some(Charset::Web(charset)),
        None => charset_decoder(known.to_ascii_lowercase().as_bytes()).map(Charset::Other),
    }
}

/// Returns `windows-1252` for `cp1252`, `win-1252`, `ms1252`, and the like.
fn windows_label(squeezed: &str) -> Option<Vec<u8>> {
    let digits = squeezed.trim_start_matches(|letter: char| !letter.is_ascii_digit());
    let family = &squeezed[..squeezed.len() - digits.len()];
    let is_one = matches!(
        family,
        "cp" | "win" | "windows" | "ms" | "ansi" | "xcp" | "ibm"
    );
    is_one.then(|| format!("windows-{digits}").into_bytes())
}

/// Decodes bytes with no label, or with the label UTF-8.
fn guess(bytes: &[u8]) -> String {
    if let Some((charset, _)) = Encoding::for_bom(bytes) {
        return charset.decode(bytes).0.into_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains("\u{1b}$") => return text.to_owned(),
        Ok(text) if text.contains("\u{1b}$)C") => return korean(bytes),
        Ok(_) => {
            let (text, _, is_broken) = ISO_2022_JP.decode(bytes);
            if !is_broken {
                return text.into_owned();
            }
        }
        Err(_) => {}
    }
    let lossy = String::from_utf8_lossy(bytes);
    if is_nearly_utf8(&lossy) {
        return lossy.into_owned();
    }
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[..bytes.len().min(GUESS_BYTES)], true);
    let charset = detector.guess(None, Utf8Detection::Deny);
    charset.decode_without_bom_handling(bytes).0.into_owned()
}

/// Returns true if nearly all letters beyond ASCII could be decoded: the text is truncated UTF-8, not another encoding.
fn is_nearly_utf8(lossy: &str) -> bool {
    let (mut read, mut replaced) = (0_usize, 0_usize);
    for letter in lossy.chars().filter(|letter| !letter.is_ascii()) {
        match letter {
            char::REPLACEMENT_CHARACTER => replaced += 1,
            _ => read += 1,
        }
    }
    read > 3 * replaced
}

/// ISO-2022-KR: between SO and SI, two bytes of seven bits are a letter of KS X 1001.
fn korean(bytes: &[u8]) -> String {
    let mut is_shifted = false;
    let mut eight_bit = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            0x1b if after.starts_with(b"$)C") => rest = &after[3..],
            0x0e => is_shifted = true,
            0x0f => is_shifted = false,
            b'\n' => {
                is_shifted = false;
                eight_bit.push(b'\n');
            }
            0x21..=0x7e if is_shifted => eight_bit.push(byte | 0x80),
            _ => eight_bit.push(*byte),
        }
    }
    EUC_KR
        .decode_without_bom_handling(&eight_bit)
        .0
        .into_owned()
}

/// HZ: between `~{` and `~}`, two bytes of seven bits are a letter of GB 2312.
fn chinese(bytes: &[u8]) -> String {
    let mut is_shifted = false;
    let mut eight_bit = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(byte) = rest.first() {
        let (step, kept) = match rest {
            [b'~', b'{', ..] => {
                is_shifted = true;
                (2, None)
            }
            [b'~', b'}', ..] => {
                is_shifted = false;
                (2, None)
            }
            [b'~', b'~', ..] if !is_shifted => (2, Some(b'~')),
            [b'~', b'\n', ..] => (2, None),
            [0x21..=0x7e, ..] if is_shifted => (1, Some(byte | 0x80)),
            _ => (1, Some(*byte)),
        };
        eight_bit.extend(kept);
        rest = &rest[step..];
    }
    GBK.decode_without_bom_handling(&eight_bit).0.into_owned()
}

/// Returns the character set in a `<meta>` at the beginning of HTML.
fn meta_label(html: &[u8]) -> Option<String> {
    let begin = html[..html.len().min(META_BYTES)].to_ascii_lowercase();
    let begin = String::from_utf8_lossy(&begin);
    let mut metas = begin.split("<meta").skip(1);
    metas.find_map(|meta| {
        let meta = &meta[..meta.find('>').unwrap_or(meta.len())];
        let (_, value) = meta.split_once("charset")?;
        let value = value.trim_start().strip_prefix('=')?.trim_start();
        let value = value.trim_start_matches(['"', '\'']);
        let end = value.find(|sign: char| sign.is_whitespace() || "\"';/>".contains(sign));
        let label = &value[..end.unwrap_or(value.len())];
        // A text that is readable this far is no UTF-16, whatever its label.
        (!label.is_empty() && !label.starts_with("utf-16")).then(|| label.to_owned())
    })
}

/// Returns bytes of a head as text, borrowed if they are plain.
pub(crate) fn text_of_head(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\u{1b}') => Cow::Borrowed(text),
        _ => Cow::Owned(guess(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_28_charsets_by_their_labels() {
        for (label, bytes, text) in [
            ("utf-8", &b"Gr\xc3\xbc\xc3\x9fe"[..], "Grüße"),
            ("UTF8", b"Gr\xc3\xbc\xc3\x9fe", "Grüße"),
            ("utf8mb4", b"\xf0\x9f\x9a\xa2", "🚢"),
            ("iso-8859-1", b"Gr\xfc\xdfe", "Grüße"),
            ("\"latin1\"", b"Gr\xfc\xdfe", "Grüße"),
            ("iso-8859-2", b"\xbb\xfb", "ťű"),
            ("iso-8859-5", b"\xbf\xd8\xe0", "Пир"),
            ("iso-8859-7", b"\xeb\xe9\xec", "λιμ"),
            ("iso-8859-8-i", b"\xf9\xec", "של"),
            ("iso-8859-9", b"\xfe\xf0", "şğ"),
            ("iso-8859-15", b"5 \xa4", "5 €"),
            ("windows-1250", b"\x9e\x9a", "žš"),
            ("cp1251", b"\xcf\xe8\xf0", "Пир"),
            ("win-1252", b"5 \x80", "5 €"),
            ("x-cp1253", b"\xeb", "λ"),
            ("koi8-r", b"\xf0\xc9\xd2", "Пир"),
            ("KOI8-RU", b"\xf0\xc9\xd2", "Пир"),
            ("cp932", b"\x8d\x60\x82\xcc\x95\xd4\x8e\x96", "港の返事"),
            ("Windows-31J", b"\x8d\x60", "港"),
            ("x-sjis", b"\x8d\x60", "港"),
            ("euc-jp", b"\xb9\xc1", "港"),
            ("iso-2022-jp", b"\x1b$B9A\x1b(B", "港"),
            ("gb2312", b"\xb8\xdb", "港"),
            ("cp936", b"\xb8\xdb", "港"),
            ("hz-gb-2312", b"a ~{8[~} b ~~", "a 港 b ~"),
            ("big5", b"\xb4\xe4", "港"),
            ("ks_c_5601-1987", b"\xc7\xd7", "항"),
            ("iso-2022-kr", b"\x1b$)C\x0eGW\x0f b", "항 b"),
            ("tis-620", b"\xb7\xe8\xd2", "ท่า"),
            ("utf-7", b"Gr+APwA3w-e", "Grüße"),
            ("utf-16le", b"P\x00i\x00", "Pi"),
            ("cp850", b"Gr\x81\xe1e", "Grüße"),
            ("macintosh", b"Gr\x9f\xa7e", "Grüße"),
        ] {
            assert_eq!(decode(bytes, Some(label)), text, "{label}");
        }
    }

    #[test]
    fn guesses_without_a_label_or_with_a_wrong_one() {
        let labels = [
            None,
            Some("us-ascii"),
            Some("ISO-8859"),
            Some("X-UNKNOWN"),
            Some("unknown-8bit"),
            Some("utf-8"),
            Some(""),
        ];
        let (latin, latin_text) = (
            &b"Sch\xf6ne Gr\xfc\xdfe aus dem S\xfcden"[..],
            "Schöne Grüße aus dem Süden",
        );
        for label in labels {
            assert_eq!(decode(latin, label), latin_text, "{label:?}");
            assert_eq!(
                decode(latin_text.as_bytes(), label),
                latin_text,
                "{label:?}"
            );
            assert_eq!(decode(b"plain", label), "plain", "{label:?}");
        }
        let russian = "Встреча у причала в девять часов утра";
        let koi = encoding_rs::KOI8_R.encode(russian).0;
        assert_eq!(decode(&koi, None), russian);
        let japanese = "明日の会議は九時からです。";
        for charset in [encoding_rs::SHIFT_JIS, encoding_rs::EUC_JP, ISO_2022_JP] {
            let bytes = charset.encode(japanese).0;
            assert_eq!(decode(&bytes, None), japanese, "{}", charset.name());
        }
        assert_eq!(decode(b"\x1b$)C\x0eGW\x0f", None), "항");
        assert_eq!(decode(b"\xef\xbb\xbfmarked", None), "marked");
        assert_eq!(decode(b"\xff\xfeP\x00", None), "P");
    }

    #[test]
    fn text_that_was_cut_within_a_letter_stays_utf_8() {
        let text = "Grüße, schöne Wünsche";
        let cut = [text.as_bytes(), b"\xc3"].concat();
        assert_eq!(decode(&cut, Some("utf-8")), format!("{text}\u{fffd}"));
    }

    #[test]
    fn html_says_its_charset_itself() {
        let body = b"\xcf\xf0\xe8\xe2\xe5\xf2</p>";
        for (meta, label, expected) in [
            ("<meta charset=windows-1251>", None, "Привет"),
            (
                "<META CHARSET = 'windows-1251' />",
                Some("us-ascii"),
                "Привет",
            ),
            (
                "<meta http-equiv=Content-Type content=\"text/html; charset=windows-1251\">",
                Some("utf-8"),
                "Привет",
            ),
            (
                "<meta name=a content=b><meta charset=\"koi8-r\">",
                None,
                "оПХБЕР",
            ),
            ("<meta charset=windows-1251>", Some("koi8-r"), "оПХБЕР"),
        ] {
            let html = [meta.as_bytes(), b"<p>", body].concat();
            let found = decode_html(&html, label);
            let expected = format!("{meta}<p>{expected}</p>");
            assert_eq!(found, expected);
        }
        // Valid UTF-8 is decoded as such, whatever a <meta> says, unless the mail agrees with it.
        let html = "<meta charset=iso-8859-1>ü";
        assert_eq!(decode_html(html.as_bytes(), None), html);
    }
}
