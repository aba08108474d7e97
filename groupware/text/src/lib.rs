//! What the groupware's services do alike with texts: names become segments of paths, what a client sent is quoted in a
//! refusal, and what is stored often is shortened. It knows no service.

pub mod lean;

use std::borrow::Cow;

/// Characters of what a client sent that a refusal quotes.
const QUOTED: usize = 80;

/// Percent-encodes all but RFC 3986's unreserved characters (2.3) and those of `kept`, and adds it
/// to a path, a query, or a header. What is kept is ASCII.
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

/// An error with its causes, with colons between them; `transparent` errors say what their cause says.
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

/// A text of which all but unreserved characters are encoded.
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

/// At most 80 characters of what a client sent, so that an error is never longer than its cause.
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED) {
        Some((at, _)) => Cow::Owned(format!("{}…", &text[..at])),
        None => Cow::Borrowed(text),
    }
}

/// Most keywords of a message.
pub const KEYWORDS: usize = 32;
/// Longest keyword, in bytes; Dovecot's bound, too.
pub const KEYWORD_BYTES: usize = 50;

/// Whether a text can be a keyword of a message: an atom, as IMAP has it (RFC 9051, 9: `flag-keyword`).
pub fn is_keyword(text: &str) -> bool {
    let is_of_atom = |byte: u8| byte.is_ascii_graphic() && !b"(){%*\"\\]".contains(&byte);
    (1..=KEYWORD_BYTES).contains(&text.len()) && text.bytes().all(is_of_atom)
}

/// The keywords among words, each once, whatever its letters' case, in the order of the alphabet; no more than a message
/// may have.
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
        // Fillers of Hangul, vowels that are not written, marks of ruby, and what no longer has a meaning.
        let unseen = [
            "\u{34f}\u{115f}\u{1160}\u{3164}\u{ffa0}\u{17b4}\u{17b5}\u{180e}\u{2065}",
            "\u{206a}\u{206f}\u{fff9}\u{fffb}\u{e0000}\u{e001f}",
        ]
        .concat();
        assert!(unseen.chars().all(is_deceptive));
        // Joiners, a soft hyphen, a letter read from the right, a syllable of Hangul, a tag as flags have it.
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
