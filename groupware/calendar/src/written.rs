//! Writes the same JSON as `serde_json`, for callers that know the structure: members one by one, and texts copied
//! where nothing needs an escape. Knows no event.

use serde::Serialize;

/// An object under construction, at the end of a text.
pub(crate) struct Object<'a> {
    to: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Starts an object.
    pub(crate) fn begin(to: &'a mut Vec<u8>) -> Self {
        to.push(b'{');
        Self { to, is_empty: true }
    }

    /// Starts a member; the caller appends its value. The name includes its quotation marks and colon: `"id":`.
    #[inline]
    pub(crate) fn member(&mut self, name: &'static str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.to.push(b',');
        }
        self.to.extend_from_slice(name.as_bytes());
        self.to
    }

    /// Appends a text member.
    #[inline]
    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        push_text(self.member(name), value);
    }

    /// Appends a text member, if there is a value.
    #[inline]
    pub(crate) fn any_text(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// Appends a word that needs no escape.
    #[inline]
    pub(crate) fn word(&mut self, name: &'static str, word: &[u8]) {
        let to = self.member(name);
        to.push(b'"');
        to.extend_from_slice(word);
        to.push(b'"');
    }

    /// Appends a member of any other type.
    pub(crate) fn value(&mut self, name: &'static str, value: &impl Serialize) {
        push_value(self.member(name), value);
    }

    /// Appends a member with a dynamic name.
    pub(crate) fn named(&mut self, name: &str, value: &impl Serialize) {
        push_text(self.member(""), name);
        self.to.push(b':');
        push_value(self.to, value);
    }

    /// Ends the object.
    pub(crate) fn end(self) {
        self.to.push(b'}');
    }
}

/// Appends values between brackets.
pub(crate) fn push_all<T>(
    to: &mut Vec<u8>,
    values: impl IntoIterator<Item = T>,
    mut push: impl FnMut(&mut Vec<u8>, T),
) {
    to.push(b'[');
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            to.push(b',');
        }
        push(to, value);
    }
    to.push(b']');
}

/// Appends any value.
pub(crate) fn push_value(to: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(to, value).expect("what is written here always serialises to memory");
}

/// Appends a quoted text.
pub(crate) fn push_text(to: &mut Vec<u8>, text: &str) {
    if plain(text.as_bytes()) < text.len() {
        return push_value(to, &text);
    }
    to.reserve(text.len() + 2);
    to.push(b'"');
    to.extend_from_slice(text.as_bytes());
    to.push(b'"');
}

/// The number of bytes before the first quotation mark, backslash, or control character.
pub(crate) fn plain(bytes: &[u8]) -> usize {
    const EACH: u64 = u64::MAX / 255;
    const HIGH: u64 = EACH << 7;
    let (eights, rest) = bytes.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        let eight = u64::from_le_bytes(*eight);
        // The highest bit of each byte below a bound. A borrow affects only the following bytes.
        let below = |bytes: u64, bound: u64| bytes.wrapping_sub(EACH * bound) & !bytes & HIGH;
        let is = |byte: u8| below(eight ^ (EACH * u64::from(byte)), 1);
        let found = below(eight, 0x20) | is(b'"') | is(b'\\');
        if found != 0 {
            return 8 * number + found.trailing_zeros() as usize / 8;
        }
    }
    let is_special = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\');
    let at = rest.iter().position(is_special).unwrap_or(rest.len());
    8 * eights.len() + at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut to = b"x".to_vec();
        push_text(&mut to, text);
        String::from_utf8(to).unwrap()
    }

    proptest! {
        #[test]
        fn texts_are_escaped_as_ever(text in "\\PC{0,20}[\\x00-\\x7f]{0,3}[a-z\u{e9}\u{7f}\u{10ffff}]{0,20}") {
            let expected = format!("x{}", serde_json::to_string(&text).unwrap());
            prop_assert_eq!(written(&text), expected);
        }

        #[test]
        fn the_first_special_byte_is_found(text in "[a-z\u{e9}\u{a2}\u{dc}]{0,30}", special in prop::sample::select(vec!['"', '\\', '\n', '\0', '\u{1f}', ' ', '!', '#', '[', ']', '\u{7f}'])) {
            let is_special = |letter: char| letter < ' ' || matches!(letter, '"' | '\\');
            let places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            for at in places {
                let text = [&text[..at], &special.to_string(), &text[at..], "\""].concat();
                prop_assert_eq!(Some(plain(text.as_bytes())), text.find(is_special));
            }
        }
    }

    #[test]
    fn objects_and_lists_have_their_commas() {
        let mut to = Vec::new();
        let mut object = Object::begin(&mut to);
        object.any_text("\"a\":", None);
        object.text("\"b\":", "c\"");
        object.word("\"d\":", b"e");
        object.value("\"f\":", &7);
        object.named("\n", &true);
        push_all(object.member("\"g\":"), ["h", "i"], push_text);
        push_all(object.member("\"j\":"), [""; 0], push_text);
        object.end();
        Object::begin(&mut to).end();
        let written = String::from_utf8(to).unwrap();
        assert_eq!(
            written,
            r#"{"b":"c\"","d":"e","f":7,"\n":true,"g":["h","i"],"j":[]}{}"#
        );
    }
}
