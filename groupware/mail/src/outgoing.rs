//! A message from a client: checked, and built into MIME.

use std::borrow::Cow;

use groupware_proto_mime::check_text;
use mail_builder::MessageBuilder;
use mail_builder::headers::address::Address;
use mail_builder::headers::content_type::ContentType;
use mail_builder::headers::date::Date;
use mail_builder::headers::message_id::MessageId;
use mail_builder::headers::text::Text;
use mail_builder::mime::{BodyPart, MimePart};

use crate::{Context, MailError, Person, Unid, limits};

/// A message as its author describes it.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    /// The subject.
    pub subject: String,
    /// The recipients.
    pub to: Vec<Person>,
    /// The recipients of copies.
    pub cc: Vec<Person>,
    /// The recipients of blind copies.
    pub bcc: Vec<Person>,
    /// The `Message-ID` of the message that this one answers.
    pub in_reply_to: Option<String>,
    /// The `Message-ID`s of the earlier messages of the thread.
    pub references: Vec<String>,
    /// The text without markup, shown inline.
    pub text: Option<String>,
    /// The same as HTML.
    pub html: Option<String>,
    /// The attachments.
    pub attachments: Vec<Attached>,
}

/// An attachment.
#[derive(Debug, Clone)]
pub struct Attached {
    /// The file's name.
    pub name: String,
    /// Its media type.
    pub kind: String,
    /// The id by which the HTML shows it inline, if it does.
    pub id: Option<String>,
    /// Its content.
    pub data: Vec<u8>,
}

impl Outgoing {
    /// All recipients.
    pub fn recipients(&self) -> impl Iterator<Item = &Person> {
        self.to.iter().chain(&self.cc).chain(&self.bcc)
    }

    /// Rejects values that can't stand in a header: a line break must not inject a field.
    fn check(&self) -> Result<(), MailError> {
        const SUBJECT_BYTES: usize = 4096;
        check_text("A subject", &self.subject, SUBJECT_BYTES)?;
        if self.recipients().count() > limits::RECIPIENTS {
            let message = format!("A message has at most {} recipients.", limits::RECIPIENTS);
            return Err(MailError::bad_request(message));
        }
        self.recipients().try_for_each(Person::check)?;
        for id in self.in_reply_to.iter().chain(&self.references) {
            check_id(id)?;
        }
        if self.references.len() > limits::PAGE_ENTRIES
            || self.attachments.len() > limits::PARTS / 2
        {
            return Err(MailError::bad_request(
                "A message has fewer parts than that.",
            ));
        }
        self.attachments.iter().try_for_each(Attached::check)
    }

    /// Builds the message in MIME, from the owner of the account, with `Bcc`, and its recipients.
    ///
    /// # Errors
    /// A refusal of values that can't stand in a header, or are too long.
    pub fn build(&self, context: &Context<'_>) -> Result<Vec<u8>, MailError> {
        self.check()?;
        let mut ids = context.ids;
        let name = Unid::new(context.now_us, ids.take());
        let from = context.directory.email(context.mailbox);
        let mut builder = MessageBuilder::new()
            .date(Date::new(context.now_us / 1_000_000))
            .from(Address::new_address(None::<&str>, from))
            .message_id(MessageId::new(format!(
                "{name}@{}",
                context.directory.domain()
            )))
            .subject(Text::new(self.subject.as_str()));
        for (field, people) in [("To", &self.to), ("Cc", &self.cc), ("Bcc", &self.bcc)] {
            if !people.is_empty() {
                builder = builder.header(field, addresses(context, people)?);
            }
        }
        if let Some(id) = &self.in_reply_to {
            builder = builder.in_reply_to(MessageId::new(bare_id(id)));
        }
        if !self.references.is_empty() {
            let ids = self.references.iter().map(|id| bare_id(id));
            builder = builder.references(MessageId::new_list(ids));
        }
        let mut message = Vec::with_capacity(self.bytes());
        builder
            .body(self.body(&name.to_string()))
            .serialize(&mut message);
        groupware_proto_mime::check(&message)?;
        Ok(message)
    }

    /// The approximate size of the message in bytes, so that it is allocated once.
    fn bytes(&self) -> usize {
        const HEAD_BYTES: usize = 4 << 10;
        const PART_BYTES: usize = 1 << 10;
        let texts = [&self.text, &self.html].into_iter().flatten();
        let texts: usize = texts.map(String::len).sum();
        // Base64 in lines.
        let file = |file: &Attached| PART_BYTES + file.data.len() / 3 * 4 / 76 * 78;
        HEAD_BYTES + texts + self.attachments.iter().map(file).sum::<usize>()
    }

    /// The body: text and HTML as alternatives, files beside them.
    fn body(&self, seed: &str) -> MimePart<'_> {
        let text = |text| MimePart::new("text/plain", BodyPart::Text(Cow::Borrowed(text)));
        let html = |html| MimePart::new("text/html", BodyPart::Text(Cow::Borrowed(html)));
        let read = match (&self.text, &self.html) {
            (Some(plain), Some(markup)) => {
                multipart("alternative", seed, vec![text(plain), html(markup)])
            }
            (None, Some(markup)) => html(markup),
            (plain, None) => text(plain.as_deref().unwrap_or_default()),
        };
        let (shown, beside): (Vec<_>, Vec<_>) = self
            .attachments
            .iter()
            .partition(|file| file.id.is_some() && self.html.is_some());
        let read = match shown.is_empty() {
            true => read,
            false => {
                let parts = std::iter::once(read).chain(shown.into_iter().map(Attached::part));
                multipart("related", seed, parts.collect())
            }
        };
        match beside.is_empty() {
            true => read,
            false => {
                let parts = std::iter::once(read).chain(beside.into_iter().map(Attached::part));
                multipart("mixed", seed, parts.collect())
            }
        }
    }
}

/// Boundaries derive from the message's id: its random bits rule out a collision with a text, and a
/// repeated decision builds the same message.
fn multipart<'x>(kind: &str, seed: &str, parts: Vec<MimePart<'x>>) -> MimePart<'x> {
    let content_type = ContentType::new(format!("multipart/{kind}"))
        .attribute("boundary", format!("{kind}_{seed}"));
    MimePart::new(content_type, parts)
}

fn addresses<'a>(context: &Context<'_>, people: &'a [Person]) -> Result<Address<'a>, MailError> {
    let mut list = Vec::with_capacity(people.len());
    for person in people {
        let name = (!person.name.is_empty()).then_some(person.name.as_str());
        let email = match context.directory.user(&person.email)? {
            Some(user) => context.directory.email(&user),
            None => person.email.clone(),
        };
        list.push(Address::new_address(name, email));
    }
    Ok(Address::new_list(list))
}

impl Attached {
    fn check(&self) -> Result<(), MailError> {
        check_text("A file's name", &self.name, limits::FILE_NAME_BYTES)?;
        check_text("A media type", &self.kind, limits::NAME_BYTES)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        let is_type = self.kind.split_once('/').is_some_and(|(a, b)| {
            [a, b]
                .iter()
                .all(|half| !half.is_empty() && half.bytes().all(plain))
        });
        if !is_type || self.kind.starts_with("multipart/") {
            return Err(MailError::bad_request(
                "A file's media type is like image/png.",
            ));
        }
        self.id.as_deref().map_or(Ok(()), check_id)
    }

    fn part(&self) -> MimePart<'_> {
        let data = BodyPart::Binary(Cow::Borrowed(&self.data));
        let part = MimePart::new(self.kind.as_str(), data);
        match &self.id {
            Some(id) => part.inline().cid(bare_id(id)),
            None => part.attachment(self.name.as_str()),
        }
    }
}

fn bare_id(id: &str) -> &str {
    id.trim().trim_start_matches('<').trim_end_matches('>')
}

fn check_id(id: &str) -> Result<(), MailError> {
    let id = bare_id(id);
    let plain = |byte: u8| byte.is_ascii_graphic() && !b"<>".contains(&byte);
    match (1..=250).contains(&id.len()) && id.bytes().all(plain) {
        true => Ok(()),
        false => Err(MailError::bad_request(
            "A message's or part's identifier is printable ASCII, at most 250 bytes.",
        )),
    }
}
