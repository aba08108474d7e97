//! Parses a message of the XML protocol: its metadata, and the data that trigger an operation.

use crate::limits::{BLOCKS, TRIGGERS};
use crate::names::{NMWG, PERFSONAR, SOAP, XQUERY};
use crate::reader::{Element, Raw, Walk, XmlError};

/// The operation that a message requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Registers a service, replaces it, or adds to it.
    Register,
    /// Removes a service, or some of its data.
    Deregister,
    /// Renews the lease of a service.
    Keepalive,
    /// Returns the key of a service.
    Key,
    /// Returns services that match a query.
    Query,
    /// Checks that the service is up, which perfSONAR's clients do first.
    Echo,
}

/// A parsed message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The requested operation.
    pub kind: Kind,
    /// Its id, which the answer repeats.
    pub id: Option<String>,
    /// The requested lease, in seconds.
    pub asked_ttl_s: Option<i64>,
    /// The subjects of its triggers.
    pub metadata: Vec<Metadata>,
    /// Its triggers.
    pub data: Vec<Data>,
}

/// The subject of a trigger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// The id by which triggers refer to it.
    pub id: String,
    /// The key of a service.
    pub key: Option<String>,
    /// The description of a service.
    pub subject: Option<Raw>,
    /// The text of a query.
    pub query: Option<String>,
    /// The requested event type.
    pub event_type: Option<String>,
    /// Whether results are requested as XML, rather than as text.
    pub is_native: bool,
}

/// A trigger: applies the operation to its metadata, or to these blocks of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Data {
    /// The id of its metadata.
    pub id_ref: String,
    /// Its blocks.
    pub blocks: Vec<Raw>,
}

impl Kind {
    /// The name in messages and event types.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Register => "Register",
            Self::Deregister => "Deregister",
            Self::Keepalive => "Keepalive",
            Self::Key => "Key",
            Self::Query => "Query",
            Self::Echo => "Echo",
        }
    }

    /// The prefix of the name in messages.
    pub(crate) fn prefix(self) -> &'static str {
        match self {
            Self::Echo => "",
            _ => "LS",
        }
    }

    /// Parses `LSRegisterRequest` or `EchoRequest`, or the URI of it with a version.
    fn parse(name: &str) -> Option<Self> {
        let uri = name.strip_prefix("http://schemas.perfsonar.net/messages/");
        let name = uri.and_then(|rest| rest.split('/').next()).unwrap_or(name);
        let name = name.strip_suffix("Request")?;
        let all = [
            Self::Register,
            Self::Deregister,
            Self::Keepalive,
            Self::Key,
            Self::Query,
            Self::Echo,
        ];
        let is_it = |kind: &Self| name.strip_prefix(kind.prefix()) == Some(kind.name());
        all.into_iter().find(is_it)
    }
}

impl Message {
    /// Parses a body: a message alone, or in a SOAP 1.1 envelope.
    ///
    /// # Errors
    /// When it is no message, or contains untrusted constructs: a document type, entities of its
    /// own, elements nested too deeply.
    pub fn parse(body: &[u8]) -> Result<Self, XmlError> {
        parse(body)
    }

    /// Returns true if it may change data.
    pub fn is_change(&self) -> bool {
        matches!(
            self.kind,
            Kind::Register | Kind::Deregister | Kind::Keepalive
        )
    }
}

fn parse(body: &[u8]) -> Result<Message, XmlError> {
    let mut walk = Walk::new(body)?;
    let root = walk.root()?;
    let message = if root.is(SOAP, "Envelope") {
        let message = envelope(&mut walk)?;
        while walk.child()?.is_some() {
            walk.skip()?;
        }
        message
    } else {
        self::message(&mut walk, &root)?
    };
    walk.finish()?;
    Ok(message)
}

fn envelope(walk: &mut Walk<'_>) -> Result<Message, XmlError> {
    while let Some(part) = walk.child()? {
        if !part.is(SOAP, "Body") {
            walk.skip()?;
            continue;
        }
        let mut message = None;
        while let Some(element) = walk.child()? {
            match message {
                None => message = Some(self::message(walk, &element)?),
                Some(_) => walk.skip()?,
            }
        }
        return message.ok_or(XmlError::Message("the SOAP body is empty".into()));
    }
    Err(XmlError::Message("the SOAP envelope has no body".into()))
}

fn message(walk: &mut Walk<'_>, element: &Element<'_>) -> Result<Message, XmlError> {
    if !element.is(NMWG, "message") {
        let what = "the body holds no message of the namespace http://ggf.org/ns/nmwg/base/2.0/";
        return Err(XmlError::Message(what.into()));
    }
    let kind = element.kind.as_deref().and_then(Kind::parse);
    let mut message = Message {
        kind: kind.ok_or(XmlError::Message("Unrecognized message type".into()))?,
        id: element.id.clone(),
        asked_ttl_s: None,
        metadata: Vec::new(),
        data: Vec::new(),
    };
    let mut blocks = 0;
    while let Some(part) = walk.child()? {
        if message.metadata.len() + message.data.len() >= 2 * TRIGGERS {
            return Err(XmlError::Message(
                format!("a message has at most {TRIGGERS} triggers").into(),
            ));
        }
        if part.is(NMWG, "metadata") {
            message.metadata.push(metadata(walk, &part)?);
        } else if part.is(NMWG, "data") {
            message.data.push(data(walk, &part, &mut blocks)?);
        } else if part.is(NMWG, "parameters") {
            if let Some(ttl) = parameter(walk, "lsTTL")? {
                // A value that isn't a number of seconds requests no particular lease.
                message.asked_ttl_s = ttl.trim().parse().ok();
            }
        } else {
            walk.skip()?;
        }
    }
    Ok(message)
}

fn metadata(walk: &mut Walk<'_>, element: &Element<'_>) -> Result<Metadata, XmlError> {
    let mut metadata = Metadata {
        id: element.id.clone().unwrap_or_default(),
        ..Metadata::default()
    };
    while let Some(part) = walk.child()? {
        if part.is(NMWG, "key") {
            metadata.key = key(walk)?;
        } else if part.is(PERFSONAR, "subject") {
            metadata.subject = Some(walk.raw(&part)?);
        } else if part.is(XQUERY, "subject") {
            metadata.query = Some(walk.text()?);
        } else if part.is(NMWG, "eventType") {
            metadata.event_type = Some(walk.text()?.trim().to_owned());
        } else if part.local == "parameters" {
            metadata.is_native |= parameter(walk, "lsOutput")?.as_deref() == Some("native");
        } else {
            walk.skip()?;
        }
    }
    Ok(metadata)
}

fn key(walk: &mut Walk<'_>) -> Result<Option<String>, XmlError> {
    let mut key = None;
    while let Some(part) = walk.child()? {
        match part.is(NMWG, "parameters") {
            true => key = parameter(walk, "lsKey")?.or(key),
            false => walk.skip()?,
        }
    }
    Ok(key
        .map(|key| key.trim().to_owned())
        .filter(|key| !key.is_empty()))
}

/// Returns the parameter of this name: its text, or its attribute `value`.
fn parameter(walk: &mut Walk<'_>, name: &str) -> Result<Option<String>, XmlError> {
    let mut found = None;
    while let Some(part) = walk.child()? {
        let text = walk.text()?;
        if part.local == "parameter" && part.name.as_deref() == Some(name) {
            found = Some(part.value.unwrap_or(text));
        }
    }
    Ok(found)
}

fn data(walk: &mut Walk<'_>, element: &Element<'_>, blocks: &mut usize) -> Result<Data, XmlError> {
    let mut data = Data {
        id_ref: element.id_ref.clone().unwrap_or_default(),
        blocks: Vec::new(),
    };
    while let Some(part) = walk.child()? {
        *blocks += 1;
        if *blocks > BLOCKS {
            return Err(XmlError::Message(
                format!("a message has at most {BLOCKS} blocks of metadata").into(),
            ));
        }
        data.blocks.push(walk.raw(&part)?);
    }
    Ok(data)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::COPIES_BYTES;

    /// The bytes of all texts of a message.
    fn bytes(message: &Message) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let raw = |raw: &Raw| {
            let texts = raw.texts.iter().map(|(name, text)| name.len() + text.len());
            raw.xml.len() + texts.sum::<usize>()
        };
        let metadata = message.metadata.iter().map(|it| {
            let subject = it.subject.as_ref().map_or(0, raw);
            it.id.len() + text(&it.key) + text(&it.query) + text(&it.event_type) + subject
        });
        let data = message.data.iter().map(|it| {
            let blocks = it.blocks.iter().map(raw);
            it.id_ref.len() + blocks.sum::<usize>()
        });
        text(&message.id) + metadata.sum::<usize>() + data.sum::<usize>()
    }

    /// A message whose blocks share a namespace of so many bytes.
    fn shared(namespace: &str, blocks: usize) -> String {
        let block = "<x:a/>".repeat(blocks);
        format!(
            "<message xmlns='{NMWG}' xmlns:x='{namespace}' type='LSRegisterRequest'>\
             <data metadataIdRef='m'>{block}</data></message>"
        )
    }

    #[test]
    fn a_long_namespace_does_not_come_back_with_each_block() {
        let message = shared(&"n".repeat(1 << 20), BLOCKS);
        assert_eq!(parse(message.as_bytes()), Err(XmlError::Copies));
        let message = shared(&"\"".repeat(1 << 16), 6);
        assert_eq!(parse(message.as_bytes()), Err(XmlError::Copies));
        // A realistic namespace is within the bound.
        let message = shared("http://ggf.org/ns/nmwg/topology/2.0/", 10_000);
        let read = parse(message.as_bytes()).unwrap();
        assert_eq!(read.data[0].blocks.len(), 10_000);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn a_message_holds_little_more_than_its_body(
            namespace in "[n\"]{0,3000}",
            blocks in 0_usize..2000,
        ) {
            let body = shared(&namespace, blocks);
            if let Ok(message) = parse(body.as_bytes()) {
                let most = 3 * body.len() + COPIES_BYTES;
                prop_assert!(bytes(&message) <= most, "{} of {}", bytes(&message), body.len());
            }
        }
    }
}
