//! Decodes texts of pages and recorders: base64, HTML entities, script escapes, percent-encoding.

use std::borrow::Cow;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode_str;
use regex::{Captures, Regex};

const FORGIVING: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const PLAIN: GeneralPurpose = GeneralPurpose::new(&STANDARD, FORGIVING);
const OF_URLS: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, FORGIVING);

static ESCAPE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([/\\'\x22]))").expect("a pattern")
});

/// Decodes base64, with or without padding, in lines or in one, in either alphabet.
pub(super) fn base64(text: &str) -> Option<Vec<u8>> {
    let dense: String = text.split_ascii_whitespace().collect();
    let decoded = PLAIN.decode(&dense).or_else(|_| OF_URLS.decode(&dense));
    decoded.ok()
}

/// Text with the escapes of scripts and JSON decoded.
fn without_escapes(text: &str) -> Cow<'_, str> {
    ESCAPE.replace_all(text, |found: &Captures<'_>| {
        let code = found.get(1).or(found.get(2));
        let code = code.and_then(|hex| u32::from_str_radix(hex.as_str(), 16).ok());
        match (code.and_then(char::from_u32), found.get(3)) {
            (Some(character), _) => character.to_string(),
            (None, Some(character)) => character.as_str().to_owned(),
            (None, None) => found[0].to_owned(),
        }
    })
}

/// The text in each encoding that a page may use for a value, without those that change nothing.
pub(super) fn decoded(text: &str) -> Vec<String> {
    let mut views = Vec::new();
    if text.contains('&') {
        views.push(html_escape::decode_html_entities(text).into_owned());
    }
    if text.contains('\\') {
        views.push(without_escapes(text).into_owned());
    }
    if text.contains('%') {
        views.push(percent_decode_str(text).decode_utf8_lossy().into_owned());
    }
    views.retain(|view| view != text);
    views
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_in_all_its_forms() {
        for text in [
            "cGxpbXNvbGw/IQ==",
            "cGxpbXNvbGw/IQ",
            "cGxp\r\nbXNv\r\nbGw/IQ==",
            "cGxpbXNvbGw_IQ",
        ] {
            assert_eq!(base64(text).as_deref(), Some(&b"plimsoll?!"[..]), "{text}");
        }
        assert_eq!(base64("no base64!"), None);
    }

    #[test]
    fn values_are_decoded_in_each_way() {
        assert_eq!(decoded("a&#43;b&#x3D;c&amp;d"), ["a+b=c&d"]);
        assert_eq!(decoded(r"k\u002Bm\/n\x3d"), ["k+m/n="]);
        assert_eq!(decoded("k%2Bm"), ["k+m"]);
        assert!(decoded("plain").is_empty());
    }
}
