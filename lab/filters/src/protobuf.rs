//! Protocol Buffers descriptors of services: their methods, and messages converted from and to JSON. It knows no files,
//! and not how calls are made.
//!
//! JSON follows the Protocol Buffers mapping, with field names as in the descriptors: a response has all of its fields,
//! also those that are zero, and 64-bit numbers as numbers.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::prost::Message;
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, SerializeOptions,
};
use serde::{Deserialize, Serialize};

/// Maximum bytes of a descriptor set.
pub const MAX_DESCRIPTOR_BYTES: usize = 4 << 20;
/// Maximum bytes of a message to decode.
pub const MAX_READ_BYTES: usize = 4 << 20;

const ANSWERS: SerializeOptions = SerializeOptions::new()
    .skip_default_fields(false)
    .stringify_64_bit_integers(false)
    .use_proto_field_name(true);

/// A compiled descriptor set, as `protoc --descriptor_set_out` writes it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct Descriptors {
    bytes: Arc<[u8]>,
    pool: DescriptorPool,
}

/// The serialised form.
#[derive(Serialize, Deserialize)]
struct Text(String);

/// Why bytes are no descriptor set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorsError {
    /// The set exceeds the size limit.
    #[error("it has more than {} MiB", MAX_DESCRIPTOR_BYTES >> 20)]
    TooLarge,
    /// The bytes are invalid, or refer to absent definitions.
    #[error("{0}")]
    Wrong(String),
}

/// A method of a service.
#[derive(Debug, Clone)]
pub struct Method {
    /// Its path in calls: `/package.Service/Method`.
    pub path: String,
    /// The request message.
    pub says: MessageKind,
    /// The response message.
    pub hears: MessageKind,
    /// Whether requests are a stream of messages.
    pub says_many: bool,
    /// Whether responses are a stream of messages.
    pub hears_many: bool,
}

/// A message type.
#[derive(Debug, Clone)]
pub struct MessageKind(MessageDescriptor);

/// The content of a field, or of each entry of its list.
#[derive(Debug, Clone)]
pub enum Field {
    /// A message.
    Message(MessageKind),
    /// A map with values of this kind.
    Map(Box<Self>),
    /// A text.
    Text,
    /// Any other type.
    Plain,
}

impl Descriptors {
    /// Parses a descriptor set.
    ///
    /// # Errors
    /// Invalid bytes, or references to absent definitions.
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

    /// Returns the SHA-256, in hex.
    #[must_use]
    pub fn sha256(&self) -> String {
        crate::sha256(&self.bytes)
    }

    /// Returns a method by its name, `package.Service/Method`, with or without a leading slash.
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

    /// Returns the names of all methods.
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
    /// Returns its name, with its package.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.full_name()
    }

    /// Returns the content of a field, by either of its names; `None` if there is no such field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<Field> {
        let by_name = self.0.get_field_by_name(name);
        let field = by_name.or_else(|| self.0.get_field_by_json_name(name))?;
        Some(inside(&field))
    }

    /// Returns the content of a field of this message type. Messages with a JSON form of their own, such as times, are
    /// plain.
    #[must_use]
    pub fn as_field(&self) -> Field {
        let name = self.name();
        match name.starts_with("google.protobuf.") && name != "google.protobuf.Empty" {
            true => Field::Plain,
            false => Field::Message(self.clone()),
        }
    }

    /// Returns the names of its fields.
    #[must_use]
    pub fn fields(&self) -> Vec<String> {
        let names = self.0.fields().map(|field| field.name().to_owned());
        names.collect()
    }

    /// Appends the message encoded from a JSON text.
    ///
    /// # Errors
    /// Describes the part that is no such message.
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
    /// Describes invalid bytes, or more than the limit.
    pub fn decode(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        self.write(bytes, &ANSWERS, out)
    }

    /// Returns the JSON of a message encoded here, with only the fields that are set.
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

/// Returns the content of a field.
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
