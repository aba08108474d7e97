//! A message in a file, and its attributes.

use groupware_text::keywords;

/// The flags of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// The owner has read it.
    pub read: bool,
    /// The owner has answered it.
    pub answered: bool,
    /// It is marked as important.
    pub flagged: bool,
    /// The owner has forwarded it.
    pub forwarded: bool,
    /// It is not sent yet.
    pub draft: bool,
    /// It was deleted, and is to be removed.
    pub trashed: bool,
}

impl Flags {
    /// Parses the letters of flags, as in Maildir.
    pub fn of_letters(letters: &str) -> Self {
        let has = |letter| letters.contains(letter);
        Self {
            read: has('S'),
            answered: has('R'),
            flagged: has('F'),
            forwarded: has('P'),
            draft: has('D'),
            trashed: has('T'),
        }
    }

    /// Sets the flags that some keywords denote (RFC 5788), and returns the other keywords.
    pub(crate) fn without_flags<'a>(
        &mut self,
        words: impl IntoIterator<Item = &'a str>,
    ) -> Vec<String> {
        let mut others = Vec::new();
        for word in words {
            match word.eq_ignore_ascii_case("$forwarded") {
                true => self.forwarded = true,
                false => others.push(word),
            }
        }
        keywords(others)
    }

    /// Returns the letters in alphabetical order, as Maildir requires.
    pub fn letters(self) -> String {
        let letters = [
            (self.draft, 'D'),
            (self.flagged, 'F'),
            (self.forwarded, 'P'),
            (self.answered, 'R'),
            (self.read, 'S'),
            (self.trashed, 'T'),
        ];
        letters
            .iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, letter)| *letter)
            .collect()
    }
}

/// A message and its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The time of receipt in microseconds since 1970; `None` if it is unknown.
    pub received_us: Option<i64>,
    /// The flags.
    pub flags: Flags,
    /// The keywords, such as `$Junk` or `work`.
    pub keywords: Vec<String>,
}

/// The result of reading a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// A message.
    Message(Message),
    /// The position of a message above the caller's size limit.
    TooLarge(String),
}
