//! A message as it lies in a file, and what is known of it besides.

use groupware_text::keywords;

/// What mail programs mark messages with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// The owner has read it.
    pub read: bool,
    /// The owner has answered it.
    pub answered: bool,
    /// It is marked as important.
    pub flagged: bool,
    /// The owner has passed it on.
    pub forwarded: bool,
    /// It is not sent yet.
    pub draft: bool,
    /// It was deleted, and is to go.
    pub trashed: bool,
}

impl Flags {
    /// The flags that these letters stand for, as Maildir has them.
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

    /// Notes the keywords that stand for a flag (RFC 5788), and returns the others.
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

    /// The letters in the order of the alphabet, as Maildir asks for.
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

/// A message and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// When it came, microseconds since 1970; `None` where that isn't told.
    pub received_us: Option<i64>,
    /// What it is marked with.
    pub flags: Flags,
    /// What its owner has marked it with besides, such as `$Junk` or `work`.
    pub keywords: Vec<String>,
}

/// What was found at a place where a message may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Read {
    /// A message.
    Message(Message),
    /// One that is larger than the caller takes, by the place where it lies.
    TooLarge(String),
}
