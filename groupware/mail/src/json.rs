//! Messages in Domino's JSON: parsed from clients, and written for them.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use groupware_text::shortened;
use mail_parser::decoders::quoted_printable::quoted_printable_decode;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{Attached, MailError, Outgoing, Part, Person, Stored, View, keys, limits};

/// Clients wrap lines and omit the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A message from a client. Members of a received message that mean nothing for a new one, such as
/// `href` or `date`, are ignored.
///
/// Large values borrow from the body: memory holds an attachment as it was received and decoded,
/// but no third copy.
#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(default)]
    subject: String,
    #[serde(default, deserialize_with = "one_or_more")]
    to: Vec<Person>,
    #[serde(default, deserialize_with = "one_or_more")]
    cc: Vec<Person>,
    #[serde(default, deserialize_with = "one_or_more")]
    bcc: Vec<Person>,
    #[serde(rename = "inReplyTo")]
    in_reply_to: Option<String>,
    #[serde(default)]
    references: Vec<String>,
    #[serde(borrow, default)]
    content: Vec<RawPart<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPart<'a> {
    #[serde(default)]
    content_type: String,
    #[serde(default)]
    content_disposition: String,
    #[serde(rename = "contentID", default)]
    content_id: String,
    #[serde(default)]
    content_transfer_encoding: String,
    #[serde(borrow, default)]
    data: Cow<'a, str>,
}

/// An address, or a person with name and address.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawPerson {
    Address(String),
    Person(Person),
}

impl From<RawPerson> for Person {
    fn from(raw: RawPerson) -> Self {
        match raw {
            RawPerson::Address(email) => Self::at(email),
            RawPerson::Person(person) => person,
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    More(Vec<RawPerson>),
    One(RawPerson),
}

fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Person>, D::Error> {
    Ok(match OneOrMore::deserialize(deserializer)? {
        OneOrMore::More(people) => people.into_iter().map(Person::from).collect(),
        OneOrMore::One(person) => vec![person.into()],
    })
}

/// Parses a message from a client.
///
/// # Errors
/// A refusal if it can't be parsed or its encoding is unknown.
pub fn parse_outgoing(body: &[u8]) -> Result<Outgoing, MailError> {
    let raw: RawMessage<'_> = serde_json::from_slice(body)
        .map_err(|error| MailError::bad_request(format!("The message can't be read: {error}.")))?;
    let mut message = Outgoing {
        subject: raw.subject,
        to: raw.to,
        cc: raw.cc,
        bcc: raw.bcc,
        in_reply_to: raw.in_reply_to.filter(|id| !id.is_empty()),
        references: raw.references,
        ..Outgoing::default()
    };
    if raw.content.len() > limits::PARTS {
        return Err(MailError::bad_request(
            "A message has fewer parts than that.",
        ));
    }
    for (number, part) in raw.content.into_iter().enumerate() {
        add(&mut message, number, part)?;
    }
    Ok(message)
}

/// Adds a part to a message: the first text and the first HTML are shown inline, the rest are
/// files. Multiparts add nothing to their parts.
fn add(message: &mut Outgoing, number: usize, raw: RawPart<'_>) -> Result<(), MailError> {
    let (kind, name_in_type) = with_parameter(&raw.content_type, "name");
    let (disposition, file_name) = with_parameter(&raw.content_disposition, "filename");
    let kind = match kind.is_empty() {
        true => "text/plain".to_owned(),
        false => kind.to_ascii_lowercase(),
    };
    if kind.starts_with("multipart/") {
        return Ok(());
    }
    let data = decoded(&raw.content_transfer_encoding, raw.data)?;
    let is_file = disposition.eq_ignore_ascii_case("attachment") || !raw.content_id.is_empty();
    let place = match kind.as_str() {
        "text/plain" if !is_file => Some(&mut message.text),
        "text/html" if !is_file => Some(&mut message.html),
        _ => None,
    };
    if let Some(place @ None) = place {
        let text = String::from_utf8(data.into_owned())
            .map_err(|_| MailError::bad_request("The text of a part is not UTF-8."))?;
        *place = Some(text);
        return Ok(());
    }
    let name = file_name.or(name_in_type);
    message.attachments.push(Attached {
        name: name.unwrap_or_else(|| format!("part-{number}")),
        kind,
        id: Some(raw.content_id).filter(|id| !id.is_empty()),
        data: data.into_owned(),
    });
    Ok(())
}

fn decoded<'a>(encoding: &str, data: Cow<'a, str>) -> Result<Cow<'a, [u8]>, MailError> {
    let encoding = encoding.trim().to_ascii_lowercase();
    match encoding.as_str() {
        "" | "7bit" | "8bit" | "binary" => Ok(match data {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        }),
        "base64" => BASE64
            .decode(without_whitespace(data))
            .map(Cow::Owned)
            .map_err(|_| MailError::bad_request("The data of a part is not base64.")),
        "quoted-printable" => quoted_printable_decode(data.as_bytes())
            .map(Cow::Owned)
            .ok_or_else(|| MailError::bad_request("The data of a part is not quoted-printable.")),
        other => {
            let other = shortened(other).escape_debug().to_string();
            let message = format!("The encoding {other} is not known.");
            Err(MailError::bad_request(message))
        }
    }
}

fn without_whitespace(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) if !text.bytes().any(|byte| byte.is_ascii_whitespace()) => {
            Cow::Borrowed(text.as_bytes())
        }
        text => {
            let mut bytes = text.into_owned().into_bytes();
            bytes.retain(|byte| !byte.is_ascii_whitespace());
            Cow::Owned(bytes)
        }
    }
}

/// Splits a value into its main part and one of its parameters.
fn with_parameter(value: &str, wanted: &str) -> (String, Option<String>) {
    let mut pieces = value.split(';');
    let first = pieces.next().unwrap_or_default().trim().to_owned();
    let found = pieces.find_map(|piece| {
        let (name, text) = piece.split_once('=')?;
        let text = text.trim().trim_matches('"');
        (name.trim().eq_ignore_ascii_case(wanted) && !text.is_empty()).then(|| text.to_owned())
    });
    (first, found)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonMessage<'a> {
    href: String,
    subject: &'a str,
    date: &'a str,
    from: &'a Person,
    #[serde(skip_serializing_if = "<[Person]>::is_empty")]
    to: &'a [Person],
    #[serde(skip_serializing_if = "<[Person]>::is_empty")]
    cc: &'a [Person],
    #[serde(skip_serializing_if = "<[Person]>::is_empty")]
    bcc: &'a [Person],
    /// Domino's spelling.
    #[serde(skip_serializing_if = "Option::is_none")]
    reciept_to: Option<&'a Person>,
    #[serde(skip_serializing_if = "str::is_empty")]
    message_id: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    in_reply_to: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    references: &'a [String],
    read: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    answered: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    flagged: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    forwarded: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    keywords: &'a [String],
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modseq: Option<u64>,
    folder: String,
    content: Vec<JsonPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonPart<'a> {
    content_type: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    content_disposition: &'a str,
    #[serde(rename = "contentID", skip_serializing_if = "Option::is_none")]
    content_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_transfer_encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    boundary: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_location: Option<String>,
}

/// Returns a message with its keywords in Domino's JSON. With `links`, files have their path instead of their
/// data. Text is decoded, whatever its encoding in the message; other data is base64.
pub fn message_json(
    mailbox: &str,
    (held, keywords): (&Stored, &[String]),
    message: &[u8],
    links: bool,
) -> Vec<u8> {
    let view = View::of(message, &held.entry);
    let parts = view
        .parts
        .iter()
        .map(|part| json_part(mailbox, held, part, links));
    let json = JsonMessage {
        href: keys::message_path(mailbox, held.unid),
        subject: &view.subject,
        date: &view.date,
        from: &view.from,
        to: &view.to,
        cc: &view.cc,
        bcc: &view.bcc,
        reciept_to: view.receipt_to.as_ref(),
        message_id: &view.message_id,
        in_reply_to: &view.in_reply_to,
        references: &view.references,
        read: held.entry.read,
        answered: held.entry.marks.answered,
        flagged: held.entry.marks.flagged,
        forwarded: held.entry.marks.forwarded,
        keywords,
        size: held.entry.size,
        uid: held.entry.numbers.map(|numbers| numbers.uid),
        modseq: held.entry.numbers.map(|numbers| numbers.modseq),
        folder: held.folder.to_string(),
        content: parts.collect(),
    };
    serde_json::to_vec(&json).expect("texts and numbers serialise to memory")
}

fn json_part<'a>(mailbox: &str, held: &Stored, part: &'a Part<'_>, links: bool) -> JsonPart<'a> {
    let mut json = JsonPart {
        content_type: Cow::Borrowed(&part.content_type),
        content_disposition: &part.disposition,
        content_id: part.id.as_deref(),
        content_transfer_encoding: None,
        boundary: part.boundary.as_deref(),
        data: None,
        content_location: None,
    };
    if part.is_multipart() {
        return json;
    }
    if part.is_text() {
        json.content_type = format!("{}; charset=UTF-8", part.kind).into();
        json.data = Some(part.text());
    } else if links {
        json.content_location = Some(keys::attachment_path(mailbox, held.unid, &part.name));
    } else {
        json.content_transfer_encoding = Some("base64");
        json.data = Some(BASE64.encode(part.data()));
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_clients_send_is_read() {
        let message = parse_outgoing(
            br#"{"subject":"S","to":["a@x",{"displayName":"B","email":"b@x"}],"cc":"c@x",
            "href":"/x","content":[{"contentType":"multipart/mixed","boundary":"b"},
            {"contentType":"text/plain; charset=UTF-8","data":"hi"},
            {"contentType":"text/html","contentTransferEncoding":"base64","data":"PGI+\naGk8L2I+"},
            {"contentType":"image/png; name=\"a.png\"","contentID":"<i>",
             "contentTransferEncoding":"base64","data":"aGk"},
            {"contentType":"text/plain","contentDisposition":"attachment; filename=\"t.txt\"",
             "data":"t"}]}"#,
        )
        .unwrap();
        assert_eq!(message.to[1].name, "B");
        assert_eq!(message.cc[0].email, "c@x");
        assert_eq!(message.text.as_deref(), Some("hi"));
        assert_eq!(message.html.as_deref(), Some("<b>hi</b>"));
        assert_eq!(message.attachments[0].name, "a.png");
        assert_eq!(message.attachments[0].data, b"hi");
        assert_eq!(message.attachments[1].name, "t.txt");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for bad in [
            "",
            "[]",
            r#"{"to":[5]}"#,
            r#"{"content":[{"contentTransferEncoding":"base64","data":"!"}]}"#,
            r#"{"content":[{"contentTransferEncoding":"rot13","data":"!"}]}"#,
            &"[".repeat(100_000),
            &format!(r#"{{"x":{}"#, "[".repeat(100_000)),
        ] {
            assert!(parse_outgoing(bad.as_bytes()).is_err());
        }
    }
}
