//! JSON texts as `serde_json` writes them, by those who know what comes next: the members of an object one by one,
//! texts copied as they are where nothing in them has to be escaped. Knows no event.

use serde::Serialize;

/// An object under construction, at the end of a text.
pub(crate) struct Object<'a> {
    to: &'a mut Vec<u8>,
    is_empty: bool,
}

impl<'a> Object<'a> {
    /// Begins one.
    pub(crate) fn begin(to: &'a mut Vec<u8>) -> Self {
        to.push(b'{');
        Self { to, is_empty: true }
    }

    /// Begins a member, of which the caller adds the value. The name has its quotation marks and its colon: `"id":`.
    #[inline]
    pub(crate) fn member(&mut self, name: &'static str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.to.push(b',');
        }
        self.to.extend_from_slice(name.as_bytes());
        self.to
    }

    /// A member that is a text.
    #[inline]
    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        push_text(self.member(name), value);
    }

    /// The same, if there is one.
    #[inline]
    pub(crate) fn any_text(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    /// A member that is a word in which nothing has to be escaped.
    #[inline]
    pub(crate) fn word(&mut self, name: &'static str, word: &[u8]) {
        let to = self.member(name);
        to.push(b'"');
        to.extend_from_slice(word);
        to.push(b'"');
    }

    /// A member of any other kind.
    pub(crate) fn value(&mut self, name: &'static str, value: &impl Serialize) {
        push_value(self.member(name), value);
    }

    /// The same under a name that somebody else has chosen.
    pub(crate) fn named(&mut self, name: &str, value: &impl Serialize) {
        push_text(self.member(""), name);
        self.to.push(b':');
        push_value(self.to, value);
    }

    /// Ends it.
    pub(crate) fn end(self) {
        self.to.push(b'}');
    }
}

/// Adds values between brackets.
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

/// Adds any value.
pub(crate) fn push_value(to: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(to, value).expect("what is written here always serialises to memory");
}

/// Adds a text between quotation marks.
pub(crate) fn push_text(to: &mut Vec<u8>, text: &str) {
    if plain(text.as_bytes()) < text.len() {
        return push_value(to, &text);
    }
    to.reserve(text.len() + 2);
    to.push(b'"');
    to.extend_from_slice(text.as_bytes());
    to.push(b'"');
}

/// How many bytes there are before the first quotation mark, backslash, or control character.
pub(crate) fn plain(bytes: &[u8]) -> usize {
    const EACH: u64 = u64::MAX / 255;
    const HIGH: u64 = EACH << 7;
    let (eights, rest) = bytes.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        let eight = u64::from_le_bytes(*eight);
        // The highest bit of each byte below a bound. What is borrowed for one spoils those behind it only.
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
