//! Text functions shared by the groupware's services: encoding names as path segments, quoting input in errors, and
//! shortening stored texts. This crate knows no service.

pub mod lean;

use std::borrow::Cow;

/// The number of characters of input that an error quotes.
const QUOTED: usize = 80;

/// Percent-encodes all but RFC 3986's unreserved characters (2.3) and those of `kept`, and appends the result to a
/// path, a query, or a header. `kept` is ASCII.
pub fn push_encoded(to: &mut String, text: &str, kept: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    let stays =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || kept.contains(&byte);
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if stays(byte) {
            continue;
        }
        if plain < at {
            to.push_str(&text[plain..at]);
        }
        plain = at + 1;
        to.push('%');
        to.push(char::from(HEX[usize::from(byte >> 4)]));
        to.push(char::from(HEX[usize::from(byte & 15)]));
    }
    if plain < text.len() {
        to.push_str(&text[plain..]);
    }
}

/// Formats an error with its causes, separated by colons; `transparent` errors have the message of their cause.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut last = error;
    while let Some(cause) = last.source() {
        let text = cause.to_string();
        if !words.ends_with(&text) {
            words = format!("{words}: {text}");
        }
        last = cause;
    }
    words
}

/// Percent-encodes all but unreserved characters of a text.
pub fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    push_encoded(&mut encoded, text, b"");
    encoded
}

/// Returns true for the controls that reorder the text around them: embeddings, overrides, and isolates. No language needs
/// them, since letters carry their own direction.
pub fn is_bidi_override(letter: char) -> bool {
    matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns true for characters by which one name passes for another: they reorder its letters or take no room at all.
/// Joiners between letters are none of these, since scripts and emoji need them, nor are the tags of flags.
pub fn is_deceptive(letter: char) -> bool {
    is_bidi_override(letter)
        || matches!(
            letter,
            '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180e}'
                | '\u{200b}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2060}'..='\u{2065}'
                | '\u{206a}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e001f}'
        )
}

/// Shortens input to at most 80 characters, so that an error is never longer than its cause.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// The maximum number of keywords of a message.
pub const KEYWORDS: usize = 32;
/// The maximum length of a keyword in bytes, as in Dovecot.
pub const KEYWORD_BYTES: usize = 50;

/// Returns true if a text is valid as a keyword of a message: an atom, as in IMAP (RFC 9051, 9: `flag-keyword`).
pub fn is_keyword(text: &str) -> bool {
    let is_of_atom = |byte: u8| byte.is_ascii_graphic() && !b"(){%*\"\\]".contains(&byte);
    (1..=KEYWORD_BYTES).contains(&text.len()) && text.bytes().all(is_of_atom)
}

/// Returns the keywords among words, without duplicates in any case, in alphabetical order; at most as many as a
/// message may have.
pub fn keywords<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in words.into_iter().filter(|word| is_keyword(word)) {
        let is_known = found.iter().any(|known| known.eq_ignore_ascii_case(word));
        if !is_known && found.len() < KEYWORDS {
            found.push(word.to_owned());
        }
    }
    found.sort_by_key(|word| word.to_ascii_lowercase());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_one_segment() {
        assert_eq!(encoded("a/b c%é~"), "a%2Fb%20c%25%C3%A9~");
        let mut path = "/mail/".to_owned();
        push_encoded(&mut path, "ann@x", b"@");
        assert_eq!(path, "/mail/ann@x");
    }

    #[test]
    fn controls_of_the_order_are_known() {
        let overrides = "\u{202a}\u{202e}\u{2066}\u{2069}";
        assert!(overrides.chars().all(is_bidi_override));
        assert!(overrides.chars().all(is_deceptive));
        let others = "\u{61c}\u{200b}\u{200e}\u{200f}\u{2060}\u{feff}";
        assert!(!others.chars().any(is_bidi_override));
        assert!(others.chars().all(is_deceptive));
        // Hangul fillers, unwritten vowels, ruby marks, and deprecated characters.
        let unseen = [
            "\u{34f}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{17b4}\u{17b5}\u{180e}\u{2065}",
            "\u{206a}\u{206f}\u{fff9}\u{fffb}\u{e0000}\u{e001f}",
        ]
        .concat();
        assert!(unseen.chars().all(is_deceptive));
        // Joiners, a soft hyphen, a right-to-left letter, a Hangul syllable, a tag as in flags.
        assert!(
            !"\u{200c}\u{200d}\u{ad}ש한\u{e0067}"
                .chars()
                .any(is_deceptive)
        );
    }

    #[test]
    fn long_identifiers_are_cut_at_a_character() {
        assert_eq!(shortened(&"é".repeat(100)).chars().count(), 81);
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn keywords_are_atoms_and_there_once() {
        let words = [
            "$Junk", "work", "(", "a b", "", "\\Seen", "WORK", "x]", "\u{fc}", "NonJunk",
        ];
        assert_eq!(keywords(words), ["$Junk", "NonJunk", "work"]);
        assert!(is_keyword(&"x".repeat(KEYWORD_BYTES)));
        assert!(!is_keyword(&"x".repeat(KEYWORD_BYTES + 1)));
        let many: Vec<String> = (0..100).map(|number| format!("k{number}")).collect();
        assert_eq!(keywords(many.iter().map(String::as_str)).len(), KEYWORDS);
    }
}
