//! Compact lists of texts for a million users: the common prefix of all entries is stored once.

use std::borrow::Cow;

/// A value that a JSON path found.
#[derive(Debug, Clone)]
pub struct JsonValue<'a> {
    /// A text itself, any other value as JSON.
    pub text: Cow<'a, str>,
    /// Whether it is a text in JSON.
    pub is_text: bool,
}

impl AsRef<str> for JsonValue<'_> {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// The kind of a value in a JSON body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonKind {
    /// A text, which is quoted there.
    Text,
    /// Any other value, which is written unquoted.
    Json,
}

/// Marks the end of an entry that is no text in JSON. No list has 2 GiB of text.
pub const NO_TEXT: u32 = 1 << 31;

/// A list of texts in two allocations: the common prefix, then the rest of each. Links of one server share half their
/// length.
#[derive(Debug, Clone)]
pub struct TextList {
    /// The common prefix, and the rest of each.
    pub text: Box<str>,
    /// Where each entry ends, with [`NO_TEXT`] for one that is no text in JSON.
    pub ends: Box<[u32]>,
    prefix: u32,
    /// The index of the first remaining entry.
    pub next: u32,
    /// It has at most one entry by its nature, and so is no list to a condition.
    pub single: bool,
}

impl TextList {
    /// Creates a list of these entries.
    #[must_use]
    pub fn new<T: AsRef<str>>(entries: &[T]) -> Self {
        let prefix = shared_prefix(entries);
        let total = prefix
            + entries
                .iter()
                .map(|e| e.as_ref().len() - prefix)
                .sum::<usize>();
        let mut text = String::with_capacity(total);
        let mut ends = Vec::with_capacity(entries.len());
        text.push_str(entries.first().map_or("", |e| &e.as_ref()[..prefix]));
        for entry in entries {
            text.push_str(&entry.as_ref()[prefix..]);
            ends.push(u32::try_from(text.len()).unwrap_or(u32::MAX).min(!NO_TEXT));
        }
        Self {
            text: text.into(),
            ends: ends.into(),
            prefix: prefix as u32,
            next: 0,
            single: false,
        }
    }

    /// Returns the number of remaining entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len() - self.next as usize
    }

    /// Appends the entry `at` places after the first remaining one.
    pub fn write(&self, at: usize, out: &mut String) -> Option<JsonKind> {
        let place = self.next as usize + at;
        let end = self.ends.get(place)? & !NO_TEXT;
        let start = match place {
            0 => self.prefix,
            _ => self.ends[place - 1] & !NO_TEXT,
        };
        let head = self.text.get(..self.prefix as usize)?;
        let tail = self.text.get(start as usize..end as usize)?;
        out.push_str(head);
        out.push_str(tail);
        Some(self.kind(place))
    }

    /// Returns the kind of the entry with this index in the whole list.
    #[must_use]
    pub fn kind(&self, place: usize) -> JsonKind {
        match self.ends.get(place) {
            Some(end) if end & NO_TEXT != 0 => JsonKind::Json,
            _ => JsonKind::Text,
        }
    }

    /// Returns true if no entry remains.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the first remaining entry, and removes it.
    pub fn take(&mut self, out: &mut String) -> Option<JsonKind> {
        let found = self.write(0, out);
        self.next += u32::from(found.is_some());
        found
    }

    /// Returns the remaining entries.
    #[must_use]
    pub fn to_vec(&self) -> Vec<String> {
        let entry = |at| {
            let mut text = String::new();
            self.write(at, &mut text);
            text
        };
        (0..self.len()).map(entry).collect()
    }
}

/// Returns the length of the longest common prefix, on a character border.
fn shared_prefix<T: AsRef<str>>(entries: &[T]) -> usize {
    let Some(first) = entries.first().map(AsRef::as_ref) else {
        return 0;
    };
    let common = |other: &str| {
        first
            .bytes()
            .zip(other.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let mut length = entries
        .iter()
        .map(|e| common(e.as_ref()))
        .min()
        .unwrap_or(0);
    while !first.is_char_boundary(length) {
        length -= 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_back_what_it_was_given() {
        let check = |entries: &[&str]| {
            let list = TextList::new(entries);
            assert_eq!(list.to_vec(), entries);
        };
        check(&[]);
        check(&["one"]);
        check(&["/mail/a/1", "/mail/a/2", "/mail/b"]);
        check(&["ä1", "á2"]);
        check(&["", "x"]);
        check(&["same", "same"]);
    }

    #[test]
    fn taking_empties_a_list_from_the_front() {
        let mut list = TextList::new(&["/a/1", "/a/2"]);
        let mut out = String::new();
        let taken = [0; 3].map(|_| list.take(&mut out));
        assert_eq!(taken, [Some(JsonKind::Text), Some(JsonKind::Text), None]);
        assert_eq!(out, "/a/1/a/2");
        assert_eq!(list.len(), 0);
    }
}
