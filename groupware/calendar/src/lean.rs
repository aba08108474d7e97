//! Short forms of JSON texts that are stored often, and much alike: lines of lists, and events.
//!
//! A byte that no JSON text has stands for what recurs. Records lie in leaves of the store's tree with others,
//! and a leaf is written whole: half as long, half as many leaves are written. A text that has no such byte, as
//! they were stored once, stands for itself.

/// Stands for what the caller says of itself, such as the path that a record's key names.
const OWN: u8 = 1;
/// Stands for the last bytes that stood for themselves: a name and the address made of it.
const AGAIN: u8 = 2;
/// Stands for the first of the texts; the bytes after it, for those after that.
const FIRST: u8 = 3;
/// The first byte that stands for itself: JSON writes those before it as `\u0000`.
const PLAIN: u8 = 0x20;
/// Shorter ones are not looked for again.
const AGAIN_BYTES: usize = 3;
/// The most that a short form can be of: more than anything that is stored.
const MOST_BYTES: usize = 4 << 20;

/// What bytes stand for. Stored records have these bytes: texts are added at the end of the list, and never
/// changed or moved.
#[derive(Debug)]
pub(crate) struct Lean(&'static [&'static str]);

/// It isn't a short form, or one of a later version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no short form of a text")]
pub(crate) struct NoShortForm;

impl Lean {
    /// With these texts. Of two that begin alike, the longer one comes first.
    pub(crate) const fn new(texts: &'static [&'static str]) -> Self {
        assert!(texts.len() <= (PLAIN - FIRST) as usize);
        Self(texts)
    }

    /// Adds the short form of a JSON text.
    pub(crate) fn shorten(&self, to: &mut Vec<u8>, whole: &[u8], own: &str) {
        let (mut last, mut plain, mut at) = (&whole[..0], 0, 0);
        let mut is_after_text = true;
        while let Some(byte) = whole.get(at) {
            // Texts begin at a border, or where another one ends.
            let may_begin = is_after_text || matches!(byte, b'"' | b'}' | b',');
            let again = if plain < at { &whole[plain..at] } else { last };
            let found = may_begin.then(|| self.found(&whole[at..], own, again));
            let Some((byte, length)) = found.flatten() else {
                is_after_text = false;
                at += 1;
                continue;
            };
            to.extend_from_slice(&whole[plain..at]);
            to.push(byte);
            at += length;
            (last, plain, is_after_text) = (again, at, true);
        }
        to.extend_from_slice(&whole[plain..]);
    }

    /// The byte that stands for what a text begins with, and how long that is.
    fn found(&self, text: &[u8], own: &str, again: &[u8]) -> Option<(u8, usize)> {
        let begins = |with: &[u8]| !with.is_empty() && text.starts_with(with);
        if begins(own.as_bytes()) {
            return Some((OWN, own.len()));
        }
        if again.len() >= AGAIN_BYTES && begins(again) {
            return Some((AGAIN, again.len()));
        }
        let mut all = (FIRST..).zip(self.0);
        let found = all.find(|(_, it)| begins(it.as_bytes()));
        found.map(|(byte, it)| (byte, it.len()))
    }

    /// Adds the text that has this short form.
    ///
    /// # Errors
    /// When it is no short form, which nothing is that was stored as one.
    pub(crate) fn restore(
        &self,
        to: &mut Vec<u8>,
        short: &[u8],
        own: &dyn Fn(&mut Vec<u8>),
    ) -> Result<(), NoShortForm> {
        let (mut rest, mut last) = (short, &short[..0]);
        let most = to.len().saturating_add(MOST_BYTES);
        while let Some(at) = rest.iter().position(|byte| *byte < PLAIN) {
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
        self.0.get(usize::from(at)).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOME: Lean = Lean::new(&["\",\"name\":\"", "{\"user\":\"", "\"}", "ab"]);

    fn short(whole: &str, own: &str) -> Vec<u8> {
        let mut short = Vec::new();
        SOME.shorten(&mut short, whole.as_bytes(), own);
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
        // With nothing of its own, and a name that is too short to be looked for.
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
