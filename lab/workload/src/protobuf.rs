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
        crate::attached::sha256(&self.bytes)
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

/// What a field has in it. Messages that JSON has forms of their own for, such as times, are plain.
fn inside(field: &FieldDescriptor) -> Field {
    match field.kind() {
        Kind::String => Field::Text,
        Kind::Message(entry) if field.is_map() => {
            Field::Map(Box::new(inside(&entry.map_entry_value_field())))
        }
        Kind::Message(kind) if !kind.full_name().starts_with("google.protobuf.") => {
            Field::Message(MessageKind(kind))
        }
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
mod tests {
    use proptest::prelude::*;
    use protox::Compiler;
    use protox::file::{File, FileResolver, GoogleFileResolver};
    use serde_json::{Value, json};

    use super::*;

    const NOTES: &str = r#"
        syntax = "proto3";
        package notes;
        import "google/protobuf/timestamp.proto";
        message Note {
            string text = 1;
            int64 long_number = 2;
            repeated Note notes = 3;
            map<string, Note> by_name = 4;
            bytes raw = 5;
            google.protobuf.Timestamp at = 6;
            uint64 large = 7;
        }
        service Notes {
            rpc Say(Note) returns (Note);
            rpc Talk(stream Note) returns (stream Note);
        }
    "#;

    struct Sources;

    impl FileResolver for Sources {
        fn open_file(&self, name: &str) -> Result<File, protox::Error> {
            match name {
                "notes.proto" => File::from_source(name, NOTES),
                other => GoogleFileResolver::new().open_file(other),
            }
        }
    }

    fn notes() -> Descriptors {
        let mut compiler = Compiler::with_file_resolver(Sources);
        compiler.include_imports(true);
        compiler.open_file("notes.proto").unwrap();
        Descriptors::parse(&compiler.encode_file_descriptor_set()).unwrap()
    }

    fn note() -> MessageKind {
        notes().method("notes.Notes/Say").unwrap().says
    }

    /// Said and heard again.
    fn there_and_back(json: &Value) -> Result<Value, String> {
        let (mut bytes, mut text) = (Vec::new(), Vec::new());
        note().encode(&json.to_string(), &mut bytes)?;
        note().decode(&bytes, &mut text)?;
        Ok(serde_json::from_slice(&text).unwrap())
    }

    #[test]
    fn methods_are_found_by_their_names() {
        let notes = notes();
        assert_eq!(notes.methods(), ["notes.Notes/Say", "notes.Notes/Talk"]);
        let talk = notes.method("/notes.Notes/Talk").unwrap();
        assert_eq!(talk.path, "/notes.Notes/Talk");
        assert!(talk.says_many && talk.hears_many);
        for none in ["Notes/Say", "notes.Notes/Sing", "notes.Notes", ""] {
            assert!(notes.method(none).is_none(), "{none}");
        }
    }

    #[test]
    fn an_answer_has_all_its_fields_by_their_own_names() {
        let said = json!({ "longNumber": "-7", "by_name": { "a": { "text": "b" } }, "at": "2026-11-23T10:00:00Z" });
        let heard = there_and_back(&said).unwrap();
        assert_eq!(heard["long_number"], json!(-7));
        assert_eq!(heard["text"], json!(""));
        assert_eq!(heard["notes"], json!([]));
        assert_eq!(heard["by_name"]["a"]["text"], json!("b"));
        assert_eq!(heard["at"], said["at"]);
    }

    #[test]
    fn unsigned_numbers_keep_their_digits() {
        let mut bytes = Vec::new();
        note()
            .encode("{\"large\": 18446744073709551557}", &mut bytes)
            .unwrap();
        let mut text = Vec::new();
        note().decode(&bytes, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("18446744073709551557"), "{text}");
    }

    #[test]
    fn what_is_no_message_is_told() {
        for wrong in [
            json!({ "txt": 1 }),
            json!({ "long_number": "x" }),
            json!([]),
        ] {
            let told = there_and_back(&wrong).unwrap_err();
            assert!(told.starts_with("no notes.Note: "), "{told}");
        }
        assert!(note().decode(b"\xff", &mut Vec::new()).is_err());
        assert!(note().encode("{} {}", &mut Vec::new()).is_err());
        assert!(Descriptors::parse(b"\xff\xff").is_err());
        let large = vec![0; MAX_DESCRIPTOR_BYTES + 1];
        assert_eq!(
            Descriptors::parse(&large).unwrap_err(),
            DescriptorsError::TooLarge
        );
    }

    #[test]
    fn what_a_field_has_in_it_is_known() {
        let kinds = |name: &str| note().field(name);
        assert!(matches!(kinds("text"), Some(Field::Text)));
        assert!(matches!(kinds("notes"), Some(Field::Message(_))));
        let Some(Field::Map(inner)) = kinds("byName") else {
            panic!("a map");
        };
        assert!(matches!(*inner, Field::Message(_)));
        // JSON has forms of their own for these.
        assert!(matches!(kinds("at"), Some(Field::Plain)));
        assert!(matches!(kinds("raw"), Some(Field::Plain)));
        assert!(kinds("txt").is_none());
    }

    #[test]
    fn they_travel_as_they_were_written() {
        let text = serde_json::to_string(&notes()).unwrap();
        let there: Descriptors = serde_json::from_str(&text).unwrap();
        assert_eq!(there.sha256(), notes().sha256());
        assert_eq!(there.methods(), notes().methods());
        assert!(serde_json::from_str::<Descriptors>("\"_\"").is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_said_is_heard(text in any::<String>(), number in any::<i64>(), deep in 0_usize..20) {
            let mut said = json!({ "text": text, "long_number": number });
            for _ in 0..deep {
                said = json!({ "notes": [said] });
            }
            let mut heard = there_and_back(&said).unwrap();
            for _ in 0..deep {
                heard = heard["notes"][0].take();
            }
            prop_assert_eq!(&heard["text"], &json!(text));
            prop_assert_eq!(&heard["long_number"], &json!(number));
        }

        #[test]
        fn any_bytes_are_a_message_or_told(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut text = Vec::new();
            if note().decode(&bytes, &mut text).is_ok() {
                prop_assert!(serde_json::from_slice::<Value>(&text).is_ok());
            }
        }
    }
}
