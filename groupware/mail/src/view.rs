//! A message for display: people, date, subject; text, HTML, and files.

use groupware_proto_mime::{Head, cut, people};
use mail_parser::{HeaderName, HeaderValue, Message};

use crate::entry::Entry;
use crate::reading::Reading;
use crate::{Part, Person, limits, parts};

/// The longest `Message-ID`, or list of them, that is returned, in bytes.
const ID_BYTES: usize = 4096;

/// A parsed message.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The whole subject, without characters that a header may not hold.
    pub subject: String,
    /// The time of the `Date` field, or else of arrival, as `2026-01-05T09:00:00Z`.
    pub date: String,
    /// The author.
    pub from: Person,
    /// The recipients.
    pub to: Vec<Person>,
    /// The recipients of copies.
    pub cc: Vec<Person>,
    /// The recipients of blind copies; only the author's copy has them.
    pub bcc: Vec<Person>,
    /// The recipients of a reply, if not the author.
    pub reply_to: Vec<Person>,
    /// The person who requests a read receipt.
    pub receipt_to: Option<Person>,
    /// The `Message-ID` without its brackets.
    pub message_id: String,
    /// The `Message-ID` of the message that this one answers, without its brackets.
    pub in_reply_to: String,
    /// The `Message-ID`s of the earlier messages of the thread.
    pub references: Vec<String>,
    /// All parts in their order.
    pub parts: Vec<Part<'a>>,
}

impl<'a> View<'a> {
    /// Parses a message. Any bytes give something to show.
    pub fn of(message: &'a [u8], entry: &Entry) -> Self {
        const SUBJECT_BYTES: usize = 16 << 10;
        let head = Head::of(message);
        let parsed = head.parse();
        let parsed = parsed.as_ref();
        let field = |name: HeaderName<'static>| {
            let address = parsed
                .and_then(|it| it.header(name))
                .and_then(HeaderValue::as_address);
            people(address, limits::RECIPIENTS)
        };
        let receipt = parsed
            .and_then(|it| it.header_raw(HeaderName::DispositionNotificationTo))
            .map(|text| text.trim().trim_matches(['<', '>']))
            .filter(|text| crate::is_address(text));
        Self {
            subject: cut(
                parsed.and_then(Message::subject).unwrap_or_default(),
                SUBJECT_BYTES,
            )
            .into_owned(),
            date: entry.summary.date.clone(),
            from: entry.summary.from.clone(),
            to: field(HeaderName::To),
            cc: field(HeaderName::Cc),
            bcc: field(HeaderName::Bcc),
            reply_to: field(HeaderName::ReplyTo),
            receipt_to: receipt.map(Person::at),
            message_id: ids(parsed, HeaderName::MessageId).pop().unwrap_or_default(),
            in_reply_to: ids(parsed, HeaderName::InReplyTo).pop().unwrap_or_default(),
            references: ids(parsed, HeaderName::References),
            parts: parts(message),
        }
    }

    /// Classifies its parts into inline ones and files.
    pub fn reading(&self) -> Reading<'_, 'a> {
        Reading::of(&self.parts)
    }
}

fn ids(parsed: Option<&Message<'_>>, name: HeaderName<'static>) -> Vec<String> {
    let value = parsed.and_then(|it| it.header(name));
    let texts = match value {
        Some(HeaderValue::Text(text)) => vec![text.as_ref()],
        Some(HeaderValue::TextList(list)) => list.iter().map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    };
    let texts = texts.into_iter().take(limits::PAGE_ENTRIES);
    texts.map(|text| cut(text, ID_BYTES).into_owned()).collect()
}
