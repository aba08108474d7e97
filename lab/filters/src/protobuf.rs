//! Services as Protocol Buffers describe them: which methods there are, and their messages, written and read
//! as JSON. It knows no files and nothing of how a call is made.
//!
//! JSON is as Protocol Buffers map it, with fields by the names that the description gives them: an answer has
//! all of its fields, also those that are zero, and 64-bit numbers as numbers.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, SerializeOptions,
};
use serde::{Deserialize, Serialize};

/// Most bytes of a set of descriptors.
pub const MAX_DESCRIPTOR_BYTES: usize = 4 << 20;
/// Most bytes of a message that is read.
pub const MAX_READ_BYTES: usize = 4 << 20;

const ANSWERS: SerializeOptions = SerializeOptions::new()
    .skip_default_fields(false)
    .stringify_64_bit_integers(false)
    .use_proto_field_name(true);

/// What describes services: a compiled set of descriptors, as `protoc --descriptor_set_out` writes it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct Descriptors {
    bytes: Arc<[u8]>,
    pool: DescriptorPool,
}

/// As they travel.
#[derive(Serialize, Deserialize)]
struct Text(String);

/// Why bytes are no descriptors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorsError {
    /// They are larger than any may be.
    #[error("it has more than {} MiB", MAX_DESCRIPTOR_BYTES >> 20)]
    TooLarge,
    /// They are something else, or name what isn't in them.
    #[error("{0}")]
    Wrong(String),
}

/// A method of a service.
#[derive(Debug, Clone)]
pub struct Method {
    /// As a call names it: `/package.Service/Method`.
    pub path: String,
    /// What it is called with.
    pub says: MessageKind,
    /// What it answers with.
    pub hears: MessageKind,
    /// Whether it is called with a stream of messages.
    pub says_many: bool,
    /// Whether it answers with a stream of messages.
    pub hears_many: bool,
}

/// A kind of message.
#[derive(Debug, Clone)]
pub struct MessageKind(MessageDescriptor);

/// What a field has in it, or each of its list.
#[derive(Debug, Clone)]
pub enum Field {
    /// A message.
    Message(MessageKind),
    /// By key such.
    Map(Box<Self>),
    /// A text.
    Text,
    /// Whatever else there is.
    Plain,
}

impl Descriptors {
    /// The services that a set of descriptors describes.
    ///
    /// # Errors
    /// Bytes that are none, or that name what isn't in them.
    pub fn parse(bytes: &[u8]) -> Result<Self, DescriptorsError> {
        if bytes.len() > MAX_DESCRIPTOR_BYTES {
            return Err(DescriptorsError::TooLarge);
        }
        let pool = DescriptorPool::decode(bytes)
            .map_err(|error| DescriptorsError::Wrong(error.to_string()))?;
        Ok(Self {
            bytes: bytes.into(),
            pool,
        })
    }

    /// SHA-256, in hex.
    #[must_use]
    pub fn sha256(&self) -> String {
        crate::sha256(&self.bytes)
    }

    /// A method by its name, `package.Service/Method`, with a slash before it or without.
    #[must_use]
    pub fn method(&self, name: &str) -> Option<Method> {
        let name = name.trim().trim_start_matches('/');
        let (service, method) = name.rsplit_once('/')?;
        let service = self.pool.get_service_by_name(service)?;
        let method = service.methods().find(|one| one.name() == method)?;
        Some(Method {
            path: format!("/{}/{}", service.full_name(), method.name()),
            says: MessageKind(method.input()),
            hears: MessageKind(method.output()),
            says_many: method.is_client_streaming(),
            hears_many: method.is_server_streaming(),
        })
    }

    /// The names of all methods.
    #[must_use]
    pub fn methods(&self) -> Vec<String> {
        let services = self.pool.services();
        let names = services.flat_map(|service| {
            let of = service.full_name().to_owned();
            let methods: Vec<String> = service
                .methods()
                .map(|method| format!("{of}/{}", method.name()))
                .collect();
            methods
        });
        names.collect()
    }
}

impl MessageKind {
    /// Its name, with its package.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.full_name()
    }

    /// What the field of this name has in it, by either of its names; `None` where there is no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        let by_name = self.0.get_field_by_name(name);
        let field = by_name.or_else(|| self.0.get_field_by_json_name(name))?;
        Some(inside(&field))
    }

    /// What a message of this kind has in it, as a field of another one. Messages that JSON has forms of their own
    /// for, such as times, are plain.
    #[must_use]
    pub fn as_field(&self) -> Field {
        let name = self.name();
        match name.starts_with("google.protobuf.") && name != "google.protobuf.Empty" {
            true => Field::Plain,
            false => Field::Message(self.clone()),
        }
    }

    /// The names of its fields.
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        let names = self.0.fields().map(|field| field.name().to_owned());
        names.collect()
    }

    /// Appends the message that a JSON text is.
    ///
    /// # Errors
    /// In words: what in it is no such message.
    pub fn encode(&self, json: &str, out: &mut Vec<u8>) -> Result<(), String> {
        let mut text = serde_json::Deserializer::from_str(json);
        let message = DynamicMessage::deserialize(self.0.clone(), &mut text);
        let message = message.and_then(|message| text.end().map(|()| message));
        let message = message.map_err(|error| format!("no {}: {error}", self.name()))?;
        out.reserve(message.encoded_len());
        message
            .encode(out)
            .map_err(|error| format!("no {}: {error}", self.name()))
    }

    /// Appends the JSON of a message, with all of its fields.
    ///
    /// # Errors
    /// In words: bytes that are no such message, or larger than what is read.
    pub fn decode(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        self.write(bytes, &ANSWERS, out)
    }

    /// The JSON of a message that was made here, with what was said in it and no more.
    #[must_use]
    pub fn shown(&self, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        match self.write(bytes, &ANSWERS.clone().skip_default_fields(true), &mut out) {
            Ok(()) => String::from_utf8_lossy(&out).into_owned(),
            Err(why) => why,
        }
    }

    fn write(
        &self,
        bytes: &[u8],
        options: &SerializeOptions,
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        if bytes.len() > MAX_READ_BYTES {
            let most = MAX_READ_BYTES >> 20;
            return Err(format!(
                "the message is too large to be read: over {most} MiB"
            ));
        }
        let message = DynamicMessage::decode(self.0.clone(), bytes)
            .map_err(|error| format!("what came is no {}: {error}", self.name()))?;
        let mut json = serde_json::Serializer::new(out);
        message
            .serialize_with_options(&mut json, options)
            .map_err(|error| format!("the {} has no JSON: {error}", self.name()))
    }
}

/// What a field has in it.
fn inside(field: &FieldDescriptor) -> Field {
    match field.kind() {
        Kind::String => Field::Text,
        Kind::Message(entry) if field.is_map() => {
            Field::Map(Box::new(inside(&entry.map_entry_value_field())))
        }
        Kind::Message(kind) => MessageKind(kind).as_field(),
        _ => Field::Plain,
    }
}

impl TryFrom<Text> for Descriptors {
    type Error = DescriptorsError;

    fn try_from(text: Text) -> Result<Self, DescriptorsError> {
        let bytes = STANDARD.decode(text.0);
        let bytes = bytes.map_err(|error| DescriptorsError::Wrong(error.to_string()))?;
        Self::parse(&bytes)
    }
}

impl From<Descriptors> for Text {
    fn from(descriptors: Descriptors) -> Self {
        Self(STANDARD.encode(&descriptors.bytes))
    }
}

impl fmt::Debug for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.methods()).finish()
    }
}

#[cfg(test)]
mod tests;
