//! Requests of plain TCP and UDP: the bytes to send, and the end of the answer. It knows no sockets.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::template::Template;

/// Largest compiled pattern.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A request of plain TCP or UDP.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RawRequest<T = Template> {
    /// The bytes to send; `None` only reads.
    pub send: Option<RawBytes<T>>,
    /// The end of the answer.
    pub until: AnswerEnd,
}

/// Bytes to send.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RawBytes<T = Template> {
    /// A text, as UTF-8.
    Text(T),
    /// Hexadecimal digits; spaces between them don't count.
    Hex(T),
    /// The content of the file with this index in the workload's files.
    File(usize),
}

/// The end of an answer. The answer includes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerEnd {
    /// There is no answer.
    Nothing,
    /// A line feed.
    Line,
    /// This number of bytes.
    Bytes(u64),
    /// A number in the answer's head.
    Length(LengthField),
    /// The first match of a regular expression.
    Pattern(String),
    /// The end of the connection.
    Close,
    /// No further bytes for this time.
    Silence(Duration),
    /// One datagram.
    Datagram,
}

/// The number in an answer's head from which its length follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LengthField {
    /// The bytes before the number.
    pub at: u32,
    /// The size of the number, bytes: 1 to 8.
    pub width: u8,
    /// True if its first byte is the lowest.
    pub little: bool,
    /// The difference between the bytes after the number and its value.
    pub plus: i32,
}

impl AnswerEnd {
    /// Returns the end at the first match of a regular expression.
    ///
    /// # Errors
    /// Describes why it is invalid or too large.
    pub fn pattern(pattern: &str) -> Result<Self, String> {
        match Self::compiled(pattern) {
            Ok(_) => Ok(Self::Pattern(pattern.to_owned())),
            Err(error) => {
                let cause = error.to_string();
                let last = cause.lines().last().unwrap_or_default();
                Err(last.trim_start_matches("error: ").to_owned())
            }
        }
    }

    /// Compiles a pattern of bytes, of bounded size: `\xff` is one byte, and classes such as `\w` are ASCII.
    ///
    /// # Errors
    /// An invalid or too large pattern.
    pub fn compiled(pattern: &str) -> Result<regex::bytes::Regex, regex::Error> {
        let mut builder = regex::bytes::RegexBuilder::new(pattern);
        builder.unicode(false).size_limit(MAX_PATTERN_BYTES).build()
    }
}

impl LengthField {
    /// The bytes up to the end of the number.
    #[must_use]
    pub fn head(&self) -> usize {
        self.at as usize + usize::from(self.width)
    }

    /// Returns the length of the whole answer; `None` if its head gives none.
    #[must_use]
    pub fn whole(&self, head: &[u8]) -> Option<u64> {
        let digits = head.get(self.at as usize..self.head())?;
        let mut value: u64 = 0;
        let mut add = |digit: &u8| value = value << 8 | u64::from(*digit);
        match self.little {
            true => digits.iter().rev().for_each(&mut add),
            false => digits.iter().for_each(&mut add),
        }
        let after = value.checked_add_signed(i64::from(self.plus))?;
        after.checked_add(self.head() as u64)
    }
}

impl<T> RawBytes<T> {
    /// The template of the bytes, if they are not a file's.
    pub(crate) fn template(&self) -> Option<&T> {
        match self {
            Self::Text(text) | Self::Hex(text) => Some(text),
            Self::File(_) => None,
        }
    }

    /// The index of the file with the bytes.
    pub(crate) fn file(&self) -> Option<usize> {
        match self {
            Self::File(place) => Some(*place),
            Self::Text(_) | Self::Hex(_) => None,
        }
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<RawBytes<U>, E> {
        Ok(match self {
            Self::Text(text) => RawBytes::Text(map(text)?),
            Self::Hex(text) => RawBytes::Hex(map(text)?),
            Self::File(place) => RawBytes::File(*place),
        })
    }
}

impl<T> RawRequest<T> {
    /// The template of what is sent.
    pub(crate) fn template(&self) -> Option<&T> {
        self.send.as_ref()?.template()
    }

    /// The index of the file that is sent.
    pub(crate) fn file(&self) -> Option<usize> {
        self.send.as_ref()?.file()
    }

    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<RawRequest<U>, E> {
        let send = self.send.as_ref().map(|send| send.try_map(map));
        Ok(RawRequest {
            send: send.transpose()?,
            until: self.until.clone(),
        })
    }
}

impl RawRequest {
    /// A readable line: the text on one line, without its last line break.
    pub(crate) fn line(&self) -> String {
        match &self.send {
            None => "read".to_owned(),
            Some(RawBytes::Text(text)) => text.source().trim_end().escape_debug().to_string(),
            Some(RawBytes::Hex(text)) => format!("hex {}", text.source().trim()),
            Some(RawBytes::File(_)) => "the content of a file".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_length_follows_from_its_head() {
        let field = |at, width, little, plus| LengthField {
            at,
            width,
            little,
            plus,
        };
        for (field, head, whole) in [
            (field(0, 4, false, 0), &[0, 0, 1, 2][..], Some(4 + 258)),
            (field(0, 2, true, 0), &[1, 2], Some(2 + 513)),
            (field(0, 1, false, 0), &[0], Some(1)),
            // The length of a PostgreSQL message includes its own four bytes.
            (field(1, 4, false, -4), b"R\0\0\0\x08", Some(9)),
            (field(1, 4, false, -4), b"R\0\0\0\x03", None),
            (field(0, 8, false, 0), &[255; 8], None),
            (field(0, 4, false, 0), &[0, 0, 0], None),
        ] {
            assert_eq!(field.whole(head), whole, "{field:?} {head:?}");
        }
    }
}
