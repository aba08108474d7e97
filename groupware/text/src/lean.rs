//! Short forms of JSON texts that are stored often and are similar: lines of lists, and events.
//!
//! A byte that no JSON text contains represents a recurring text. Records share leaves of the store's tree, and a leaf
//! is written whole: at half the length, half as many leaves are written. A text without such a byte, as in old
//! records, represents itself.

/// Represents the caller's own text, such as the path that a record's key names.
pub const OWN: u8 = 1;
/// Represents the last literal bytes: a name and the address made of it.
const AGAIN: u8 = 2;
/// Represents the first of the texts; the bytes after it represent the following ones.
const FIRST: u8 = 3;
/// The first literal byte: JSON writes the bytes below as `\u0000`.
const PLAIN: u8 = 0x20;
/// The minimum length of repeated literal bytes.
const AGAIN_BYTES: usize = 3;
/// The maximum length of a restored text: more than any stored text.
const MOST_BYTES: usize = 4 << 20;

/// The maximum number of texts.
const MOST_TEXTS: usize = (PLAIN - FIRST) as usize;

/// The number of hash values of the texts' beginnings.
const KINDS: usize = 64;
/// The number of bytes of a beginning.
const START_BYTES: usize = 4;

/// The texts that bytes represent. Stored records contain these bytes: texts are appended to the list, and never
/// changed or moved.
#[derive(Debug)]
pub struct Lean {
    texts: &'static [&'static str],
    /// For each hash value, a bit for each text that may begin so. Most look-ups find no text.
    likely: [u32; KINDS],
}

/// Returns the hash value of a beginning.
const fn kind(start: [u8; START_BYTES]) -> usize {
    // The bits of the golden ratio: the upper bits of the product depend on all bits of the factor.
    (u32::from_le_bytes(start).wrapping_mul(0x9E37_79B1) >> 26) as usize
}

/// The bytes are no short form, or one of a later version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no short form of a text")]
pub struct NoShortForm;

impl Lean {
    /// Creates a list of texts. Of two texts with equal beginnings, the longer one must be first.
    pub const fn new(texts: &'static [&'static str]) -> Self {
        assert!(texts.len() <= MOST_TEXTS);
        let (mut likely, mut at) = ([0; KINDS], 0);
        while at < texts.len() {
            if let Some(start) = texts[at].as_bytes().first_chunk() {
                likely[kind(*start)] |= 1 << at;
            } else {
                let mut any = 0;
                while any < KINDS {
                    likely[any] |= 1 << at;
                    any += 1;
                }
            }
            at += 1;
        }
        Self { texts, likely }
    }

    /// Appends the short form of a JSON text.
    pub fn shorten(&self, to: &mut Vec<u8>, whole: &[u8], own: &[u8]) {
        let (mut last, mut plain, mut at) = (&whole[..0], 0, 0);
        while at < whole.len() {
            let again = if plain < at { &whole[plain..at] } else { last };
            if let Some((byte, length)) = self.found(&whole[at..], own, again) {
                to.extend_from_slice(&whole[plain..at]);
                to.push(byte);
                at += length;
                (last, plain) = (again, at);
                continue;
            }
            // Texts begin at a border, or after another text.
            let is_border = |byte: &u8| matches!(byte, b'"' | b'}' | b',');
            let rest = &whole[at + 1..];
            at += 1 + rest.iter().position(is_border).unwrap_or(rest.len());
        }
        to.extend_from_slice(&whole[plain..]);
    }

    /// Returns the byte that represents the beginning of a text, and the length of that beginning.
    fn found(&self, text: &[u8], own: &[u8], again: &[u8]) -> Option<(u8, usize)> {
        let begins = |with: &[u8]| text.first() == with.first() && text.starts_with(with);
        if !own.is_empty() && begins(own) {
            return Some((OWN, own.len()));
        }
        if again.len() >= AGAIN_BYTES && begins(again) {
            return Some((AGAIN, again.len()));
        }
        let start = text.first_chunk();
        let mut likely = start.map_or(u32::MAX, |start| self.likely[kind(*start)]);
        while likely != 0 {
            let at = likely.trailing_zeros();
            let it = self.texts.get(at as usize)?;
            if begins(it.as_bytes()) {
                let byte = u8::try_from(at).ok()?.checked_add(FIRST)?;
                return Some((byte, it.len()));
            }
            likely &= likely - 1;
        }
        None
    }

    /// Appends the text with this short form.
    ///
    /// # Errors
    /// When it is no valid short form. Stored short forms are always valid.
    pub fn restore(
        &self,
        to: &mut Vec<u8>,
        short: &[u8],
        own: &dyn Fn(&mut Vec<u8>),
    ) -> Result<(), NoShortForm> {
        let (mut rest, mut last) = (short, &short[..0]);
        let most = to.len().saturating_add(MOST_BYTES);
        while let Some(at) = first_short(rest) {
            let (plain, after) = (&rest[..at], &rest[at + 1..]);
            to.extend_from_slice(plain);
            if !plain.is_empty() {
                last = plain;
            }
            match rest[at] {
                OWN => own(to),
                AGAIN => to.extend_from_slice(last),
                byte => to.extend_from_slice(self.text(byte).ok_or(NoShortForm)?.as_bytes()),
            }
            if to.len() > most {
                return Err(NoShortForm);
            }
            rest = after;
        }
        to.extend_from_slice(rest);
        Ok(())
    }

    fn text(&self, byte: u8) -> Option<&'static str> {
        let at = byte.checked_sub(FIRST)?;
        self.texts.get(usize::from(at)).copied()
    }
}

/// Returns the position of the first byte that is not literal.
fn first_short(bytes: &[u8]) -> Option<usize> {
    const EACH: u64 = u64::MAX / 255;
    let (eights, rest) = bytes.as_chunks::<8>();
    for (number, eight) in eights.iter().enumerate() {
        let eight = u64::from_le_bytes(*eight);
        // The highest bit of each byte that is too small. A borrow affects only the bytes after it.
        let short = eight.wrapping_sub(EACH * PLAIN as u64) & !eight & (EACH << 7);
        if short != 0 {
            return Some(8 * number + short.trailing_zeros() as usize / 8);
        }
    }
    let at = rest.iter().position(|byte| *byte < PLAIN)?;
    Some(8 * eights.len() + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOME: Lean = Lean::new(&["\",\"name\":\"", "{\"user\":\"", "\"}", "ab"]);

    fn short(whole: &str, own: &str) -> Vec<u8> {
        let mut short = Vec::new();
        SOME.shorten(&mut short, whole.as_bytes(), own.as_bytes());
        short
    }

    fn restored(short: &[u8], own: &str) -> Result<String, NoShortForm> {
        let mut whole = b"before".to_vec();
        SOME.restore(&mut whole, short, &|to| {
            to.extend_from_slice(own.as_bytes())
        })?;
        Ok(String::from_utf8(whole).unwrap()[6..].to_owned())
    }

    #[test]
    fn what_recurs_takes_a_byte() {
        let whole = r#"{"user":"ann","name":"ann@here"}"#;
        assert_eq!(short(whole, "@here"), b"\x04ann\x03\x02\x01\x05");
        assert_eq!(
            restored(b"\x04ann\x03\x02\x01\x05", "@here").unwrap(),
            whole
        );
        // Without an own text, and with a name below the minimum length.
        assert_eq!(
            short(r#"{"user":"al","name":"al"}"#, ""),
            b"\x04al\x03al\x05"
        );
    }

    #[test]
    fn what_has_no_such_byte_stands_for_itself() {
        let whole = r#"{"href":"/mail","id":"é"}"#;
        assert_eq!(restored(whole.as_bytes(), "own").unwrap(), whole);
    }

    #[test]
    fn other_bytes_and_more_than_there_can_be_are_refused() {
        for byte in [0, 7, 0x1F] {
            assert_eq!(restored(&[b'a', byte], "own"), Err(NoShortForm));
        }
        let mut short = vec![b'a'; 64 << 10];
        short.extend([AGAIN; 100]);
        assert_eq!(restored(&short, ""), Err(NoShortForm));
    }

    proptest! {
        #[test]
        fn the_first_short_byte_is_found(bytes in prop::collection::vec(any::<u8>(), 0..40), all in 0..4_u8) {
            // Mostly bytes as in texts, and arbitrary ones.
            let bytes: Vec<_> = bytes.iter().map(|byte| if all > 0 { byte | PLAIN } else { *byte }).collect();
            let mut changed = bytes.clone();
            for at in 0..bytes.len() {
                changed[at] = all;
                prop_assert_eq!(first_short(&changed), changed.iter().position(|byte| *byte < PLAIN));
                changed[at] = bytes[at];
            }
        }

        #[test]
        fn the_text_comes_back(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "\",\"name\":\"", "{\"user\":\"", "\"}", "ab", "a", "abc", "own", "ow", "\"", "}", ",", "é", " ",
                ]),
                0..40,
            ),
            own in prop::sample::select(vec!["", "own", "ab", "}"]),
        ) {
            let whole = parts.concat();
            let short = short(&whole, own);
            prop_assert!(short.len() <= whole.len());
            prop_assert_eq!(restored(&short, own).unwrap(), whole);
        }
    }
}
