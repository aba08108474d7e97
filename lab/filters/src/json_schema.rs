//! A JSON Schema that responses are validated against: compiled once, shared by all users.

use std::fmt;
use std::sync::Arc;

use jsonschema::{Retrieve, Uri, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::hash::sha256;

/// Maximum bytes of a schema's text.
pub const MAX_SCHEMA_BYTES: usize = 4 << 20;
/// Maximum length of an error's description.
const SHOWN: usize = 200;

/// A JSON Schema of the draft that it declares; by default 2020-12.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Text", into = "Text")]
pub struct JsonSchema {
    text: Text,
    validator: Arc<Validator>,
}

/// The serialised form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Text {
    name: Arc<str>,
    schema: Arc<str>,
}

/// Why a text is no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JsonSchemaError {
    /// The text exceeds the size limit.
    #[error("it has more than {} MiB", MAX_SCHEMA_BYTES >> 20)]
    TooLarge,
    /// The text is no JSON.
    #[error("it is no JSON: {0}")]
    Json(String),
    /// A part is no schema, or refers to an absent one.
    #[error("at `{at}`: {cause}")]
    Schema {
        /// Place as a JSON pointer; `#` for the whole.
        at: String,
        /// What is wrong.
        cause: String,
    },
}

/// A resolver that finds no external schema.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, _: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err("nothing is read from elsewhere".into())
    }
}

impl JsonSchema {
    /// Compiles the schema in a file with this name. No other file is read: all references must be inside it.
    ///
    /// # Errors
    /// A text that is no schema.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self, JsonSchemaError> {
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(JsonSchemaError::TooLarge);
        }
        let schema: Value = serde_json::from_slice(text)
            .map_err(|error| JsonSchemaError::Json(error.to_string()))?;
        let options = jsonschema::options().with_retriever(Nowhere);
        let validator = options
            .build(&schema)
            .map_err(|error| JsonSchemaError::Schema {
                at: format!("#{}", error.instance_path().as_str()),
                cause: shown(&error.masked().to_string()),
            })?;
        Ok(Self {
            text: Text {
                name: name.into(),
                schema: String::from_utf8_lossy(text).into(),
            },
            validator: Arc::new(validator),
        })
    }

    /// Returns the name of its file, as in the workload.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.text.name
    }

    /// Returns the SHA-256 of its text, in hex.
    #[must_use]
    pub fn sha256(&self) -> String {
        sha256(self.text.schema.as_bytes())
    }

    /// Validates a document.
    ///
    /// # Errors
    /// Describes the fault, its place in the document, and the violated part of the schema.
    pub fn judge(&self, document: &Value) -> Result<(), String> {
        if self.validator.is_valid(document) {
            return Ok(());
        }
        let Err(error) = self.validator.validate(document) else {
            return Ok(());
        };
        let at = match error.instance_path().as_str() {
            "" => "the body".to_owned(),
            path => format!("`{path}`"),
        };
        let rule = error.schema_path().as_str();
        let name = self.name();
        // The value itself may be the whole body.
        let cause = shown(&error.masked_with("it").to_string());
        Err(format!("{at} is not as {name} has it at `{rule}`: {cause}"))
    }
}

/// Shortens a text to the limit.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    format!("{start}{more}")
}

impl TryFrom<Text> for JsonSchema {
    type Error = JsonSchemaError;

    fn try_from(text: Text) -> Result<Self, JsonSchemaError> {
        Self::parse(&text.name, text.schema.as_bytes())
    }
}

impl From<JsonSchema> for Text {
    fn from(schema: JsonSchema) -> Self {
        schema.text
    }
}

impl fmt::Debug for JsonSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn order() -> JsonSchema {
        let schema = json!({
            "type": "object",
            "required": ["items"],
            "properties": {
                "items": { "type": "array", "items": { "$ref": "#/$defs/item" } },
            },
            "$defs": { "item": { "type": "object", "properties": { "price": { "minimum": 0 } } } },
        });
        JsonSchema::parse("order.schema.json", schema.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn what_is_wrong_is_told_with_both_places() {
        let judge = |document| order().judge(&document);
        assert_eq!(judge(json!({ "items": [{ "price": 3 }] })), Ok(()));
        let told = judge(json!({ "items": [{ "price": 3 }, { "price": -1 }] })).unwrap_err();
        insta::assert_snapshot!(told);
        let told = judge(json!({ "order": 1 })).unwrap_err();
        insta::assert_snapshot!(told);
    }

    #[test]
    fn what_is_no_schema_is_told() {
        let parse = |text: &str| JsonSchema::parse("s", text.as_bytes()).unwrap_err();
        insta::assert_snapshot!(parse("{"));
        insta::assert_snapshot!(parse(r#"{ "type": "objekt" }"#));
        insta::assert_snapshot!(parse(r##"{ "$ref": "#/$defs/none" }"##));
        // External schemas are not read.
        insta::assert_snapshot!(parse(r#"{ "$ref": "https://example.org/a.json" }"#));
        insta::assert_snapshot!(parse(r#"{ "$ref": "file:///etc/passwd" }"#));
    }

    #[test]
    fn it_travels_as_it_was_written() {
        let text = serde_json::to_string(&order()).unwrap();
        let there: JsonSchema = serde_json::from_str(&text).unwrap();
        assert_eq!(there.text, order().text);
        assert!(there.judge(&json!([])).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_text_is_a_schema_or_told(text in "[\\[\\]{}:,\"$a-z0-9]{0,40}") {
            if let Err(told) = JsonSchema::parse("s", text.as_bytes()) {
                prop_assert!(told.to_string().chars().count() < 500);
            }
        }
    }
}
