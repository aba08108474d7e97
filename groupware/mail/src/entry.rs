//! The entry: what an account records of a message besides its content; its stored form.

use groupware_proto_mime::{Head, cut, date, people};
use jiff::Timestamp;
use mail_parser::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};

use crate::numbers::{self, Numbers};
use crate::{MailError, Person, Unid, limits};

/// The version of the stored form. A reader rejects unknown versions.
const FORMAT: u8 = 1;

const READ: u8 = 1;
const ATTACHMENTS: u8 = 2;
const SHARED: u8 = 4;
const ANSWERED: u8 = 8;
const FLAGGED: u8 = 16;
const FORWARDED: u8 = 32;

/// Bytes before the summary: format, flags, size, time of the `Date` field, shared body.
const FIXED_BYTES: usize = 1 + 1 + 8 + 8 + 16;

/// The header fields that lists show, in the form in which they show them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The subject, shortened to what a list shows.
    pub subject: String,
    /// The time of the `Date` field, or else of arrival, as `2026-01-05T09:00:00Z`.
    pub date: String,
    /// The author.
    pub from: Person,
    /// The first recipients.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<Person>,
}

/// The flags that a mail program has set on a message, besides the one for read messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// The owner has answered it.
    pub answered: bool,
    /// It is marked as important.
    pub flagged: bool,
    /// The owner has forwarded it.
    pub forwarded: bool,
}

impl Marks {
    fn bits(self) -> u8 {
        let marks = [
            (ANSWERED, self.answered),
            (FLAGGED, self.flagged),
            (FORWARDED, self.forwarded),
        ];
        marks
            .iter()
            .filter(|(_, is_set)| *is_set)
            .map(|(bit, _)| bit)
            .sum()
    }

    fn from_bits(bits: u8) -> Self {
        Self {
            answered: bits & ANSWERED != 0,
            flagged: bits & FLAGGED != 0,
            forwarded: bits & FORWARDED != 0,
        }
    }
}

/// One message of an account without its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The owner has read it.
    pub read: bool,
    /// The other flags that a mail program has set.
    pub marks: Marks,
    /// It seems to have attachments.
    pub attachments: bool,
    /// Bytes of the message.
    pub size: u64,
    /// The time of the `Date` field, or else of arrival, seconds since 1970.
    pub date_s: i64,
    /// The shared body, if the account has no copy of its own.
    pub shared: Option<Unid>,
    /// Its UID and MODSEQ; `None` if it isn't stored yet, or was written by a version without them.
    pub numbers: Option<Numbers>,
    /// What lists show.
    pub summary: Summary,
}

impl Entry {
    /// Returns the entry of a message that arrived at this time.
    pub fn of(message: &[u8], now_us: i64) -> Self {
        let head = Head::of(message);
        let parsed = head.parse();
        let parsed = parsed.as_ref();
        let date = parsed.and_then(|it| it.header_raw(HeaderName::Date));
        let date_s = date.and_then(date::seconds).unwrap_or(now_us / 1_000_000);
        let author = people(parsed.and_then(|it| it.from()), 1).pop();
        let sender = || people(parsed.and_then(|it| it.sender()), 1).pop();
        let attachments = parsed
            .and_then(|it| it.header(HeaderName::ContentType))
            .and_then(HeaderValue::as_content_type)
            .is_some_and(|kind| {
                kind.ctype() == "multipart"
                    && matches!(kind.subtype(), Some("mixed" | "report" | "signed"))
            });
        Self {
            read: false,
            marks: Marks::default(),
            attachments,
            size: message.len() as u64,
            date_s,
            shared: None,
            numbers: None,
            summary: Summary {
                subject: cut(
                    parsed.and_then(|it| it.subject()).unwrap_or_default(),
                    limits::SUBJECT_BYTES,
                )
                .into_owned(),
                date: date_text(date_s),
                from: author.or_else(sender).unwrap_or_default(),
                to: people(parsed.and_then(|it| it.to()), limits::LISTED_RECIPIENTS),
            },
        }
    }

    /// The stored form without its numbers: fixed fields, then the summary as JSON.
    pub(crate) fn encode(&self) -> (Vec<u8>, Vec<u8>) {
        let mut flags = self.marks.bits();
        for (flag, is_set) in [
            (READ, self.read),
            (ATTACHMENTS, self.attachments),
            (SHARED, self.shared.is_some()),
        ] {
            flags |= if is_set { flag } else { 0 };
        }
        let mut bytes = Vec::with_capacity(FIXED_BYTES + 300);
        bytes.extend_from_slice(&[FORMAT, flags]);
        bytes.extend_from_slice(&self.size.to_be_bytes());
        bytes.extend_from_slice(&self.date_s.to_be_bytes());
        bytes.extend_from_slice(&self.shared.map_or(0, Unid::bits).to_be_bytes());
        let summary = serde_json::to_vec(&self.summary).expect("texts serialise to memory");
        (bytes, summary)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`MailError::Unreadable`] if it has another version or is damaged.
    pub(crate) fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, MailError> {
        let line = Line::decode(key, bytes)?;
        let summary =
            serde_json::from_slice(line.summary).map_err(|error| MailError::corrupt(key, error))?;
        Ok(Self {
            read: line.read,
            marks: line.marks,
            attachments: line.attachments,
            size: line.size,
            date_s: line.date_s,
            shared: line.shared,
            numbers: line.numbers(),
            summary,
        })
    }
}

/// A stored entry whose summary is not parsed: enough for a list.
pub(crate) struct Line<'a> {
    pub(crate) read: bool,
    pub(crate) marks: Marks,
    pub(crate) attachments: bool,
    pub(crate) size: u64,
    pub(crate) date_s: i64,
    pub(crate) shared: Option<Unid>,
    /// A JSON object.
    pub(crate) summary: &'a [u8],
}

impl<'a> Line<'a> {
    /// Its UID and MODSEQ, if it has any.
    pub(crate) fn numbers(&self) -> Option<Numbers> {
        numbers::of_summary(self.summary)
    }

    pub(crate) fn decode(key: &[u8], bytes: &'a [u8]) -> Result<Self, MailError> {
        let Some((fixed, summary)) = bytes.split_first_chunk::<FIXED_BYTES>() else {
            return Err(MailError::corrupt(key, "too short"));
        };
        let [format, flags, numbers @ ..] = fixed;
        if *format != FORMAT {
            let cause = format!("format {format}, expected {FORMAT}");
            return Err(MailError::corrupt(key, cause));
        }
        let number = |at: usize| {
            let bytes = numbers[at..at + 8].try_into().expect("eight of eight");
            u64::from_be_bytes(bytes)
        };
        let shared = u128::from(number(16)) << 64 | u128::from(number(24));
        Ok(Self {
            read: flags & READ != 0,
            marks: Marks::from_bits(*flags),
            attachments: flags & ATTACHMENTS != 0,
            size: number(0),
            date_s: number(8).cast_signed(),
            shared: (flags & SHARED != 0).then(|| Unid::from_bits(shared)),
            summary,
        })
    }
}

/// Formats a time for clients.
pub(crate) fn date_text(seconds: i64) -> String {
    Timestamp::from_second(seconds)
        .unwrap_or_default()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_US: i64 = 1_767_225_600_000_000;

    #[test]
    fn entries_come_back() {
        let message = "From: Ada L <ada@x>\r\nTo: b@x, C <c@x>\r\nSubject: =?utf-8?q?H=C3=A9?=\r\n\
                       Date: Mon, 05 Jan 2026 10:00:00 +0100\r\n\
                       Content-Type: multipart/mixed; boundary=b\r\n\r\nbody";
        let mut entry = Entry::of(message.as_bytes(), NOW_US);
        assert_eq!(entry.summary.subject, "Hé");
        assert_eq!(entry.summary.date, "2026-01-05T09:00:00Z");
        assert_eq!(entry.summary.from.name, "Ada L");
        assert_eq!(entry.summary.to.len(), 2);
        assert!(entry.attachments && !entry.read);
        for shared in [None, Some(Unid::new(7, 8))] {
            entry.read = shared.is_some();
            entry.shared = shared;
            entry.marks.answered = shared.is_some();
            entry.marks.forwarded = shared.is_none();
            let (fixed, summary) = entry.encode();
            let stored = [fixed, summary].concat();
            assert_eq!(Entry::decode(b"k", &stored).unwrap(), entry);
        }
        assert!(Entry::decode(b"k", &[2; 60]).is_err());
        assert!(Entry::decode(b"k", b"").is_err());
    }

    #[test]
    fn a_message_without_a_usable_head_came_when_it_came() {
        for message in [
            "",
            "no head",
            "Date: yesterday\n\n",
            "Date: 99 Xyz 99999\n\n",
        ] {
            let entry = Entry::of(message.as_bytes(), NOW_US);
            assert_eq!(entry.summary.date, "2026-01-01T00:00:00Z", "{message}");
        }
    }
}
