//! The fields of a document: names and JSON values, stored as they were sent.
//!
//! Values stay text. They are never parsed into a tree, so that deep nesting can't exhaust the
//! stack, and numbers keep all their digits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{DocumentError, Reason, limits};

/// The fields of a document by name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fields(BTreeMap<String, Box<RawValue>>);

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        let pairs = |fields: &Self| -> Vec<(String, String)> {
            let pairs = fields.0.iter();
            pairs
                .map(|(name, value)| (name.clone(), value.get().to_owned()))
                .collect()
        };
        pairs(self) == pairs(other)
    }
}

impl Fields {
    /// Parses a JSON object. Names that begin with `@` belong to the server: clients send them back
    /// as they read them, and they are ignored.
    ///
    /// # Errors
    /// 400 if it is invalid or exceeds a bound; 413 for a body that is too large.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        if body.len() > limits::BODY_BYTES {
            return Err(DocumentError::refused(
                Reason::TooLarge,
                "The document is too large.",
            ));
        }
        if body.iter().all(u8::is_ascii_whitespace) {
            return Err(DocumentError::bad_request("Empty request body."));
        }
        check_levels(body)?;
        let mut fields: BTreeMap<String, Box<RawValue>> =
            serde_json::from_slice(body).map_err(|error| {
                DocumentError::bad_request(format!("The body is not a JSON object: {error}."))
            })?;
        fields.retain(|name, _| !name.starts_with('@'));
        for name in fields.keys() {
            check_name(name)?;
        }
        let fields = Self(fields);
        fields.check_count()?;
        Ok(fields)
    }

    /// Applies the fields of `changes`; `null` removes one.
    ///
    /// # Errors
    /// 400 if there are too many fields then; 413 if they are too large.
    pub fn merge(&mut self, changes: Self) -> Result<(), DocumentError> {
        for (name, value) in changes.0 {
            match value.get() {
                "null" => self.0.remove(&name),
                _ => self.0.insert(name, value),
            };
        }
        self.check_count()?;
        if self.bytes() > limits::BODY_BYTES as u64 {
            return Err(DocumentError::refused(
                Reason::TooLarge,
                "The document is too large.",
            ));
        }
        Ok(())
    }

    /// Sets the form for displaying the document.
    ///
    /// # Errors
    /// 400 if its name is too long.
    pub fn set_form(&mut self, form: &str) -> Result<(), DocumentError> {
        if form.len() > limits::FIELD_NAME_BYTES {
            return Err(DocumentError::bad_request("The form's name is too long."));
        }
        let value = serde_json::value::to_raw_value(form).expect("a text serialises");
        self.0.insert(FORM.to_owned(), value);
        Ok(())
    }

    /// The form for displaying the document, as JSON text.
    pub(crate) fn form(&self) -> Option<&RawValue> {
        let form = self.0.get(FORM)?;
        form.get().starts_with('"').then_some(&**form)
    }

    /// Names and values, as JSON text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        let fields = self.0.iter();
        fields.map(|(name, value)| (name.as_str(), &**value))
    }

    /// Their size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let fields = self.0.iter();
        fields
            .map(|(name, value)| (name.len() + value.get().len()) as u64)
            .sum()
    }

    fn check_count(&self) -> Result<(), DocumentError> {
        if self.0.len() > limits::FIELDS {
            return Err(DocumentError::bad_request(format!(
                "A document has at most {} fields.",
                limits::FIELDS
            )));
        }
        Ok(())
    }
}

const FORM: &str = "Form";

fn check_name(name: &str) -> Result<(), DocumentError> {
    if !(1..=limits::FIELD_NAME_BYTES).contains(&name.len()) || name.contains(char::is_control) {
        return Err(DocumentError::bad_request(format!(
            "A field's name has 1 to {} bytes and no control characters.",
            limits::FIELD_NAME_BYTES
        )));
    }
    Ok(())
}

/// Counts brackets outside of strings, before parsing.
fn check_levels(body: &[u8]) -> Result<(), DocumentError> {
    let (mut level, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => level += 1,
            b']' | b'}' if !in_string => level = level.saturating_sub(1),
            _ => {}
        }
        // The body itself is a level.
        if level > limits::VALUE_LEVELS + 1 {
            return Err(DocumentError::bad_request(format!(
                "A field nests deeper than {} levels.",
                limits::VALUE_LEVELS
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn status(body: &str) -> u16 {
        Fields::parse(body.as_bytes()).map_or_else(|error| error.status(), |_| 200)
    }

    #[test]
    fn bodies_that_are_no_document_are_refused() {
        let nested = |levels| format!("{{\"a\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!((status(&nested(16)), status(&nested(17))), (200, 400));
        assert_eq!(status(&"[".repeat(200_000)), 400);
        assert_eq!(status(&format!("{{\"{}\":1}}", "k".repeat(129))), 400);
        assert_eq!(status(&format!("{{\"{}\":1}}", "k".repeat(10 << 20))), 413);
        assert_eq!(status(r#"{"a\u0000b":1}"#), 400);
        for bad in [
            "",
            " ",
            "null",
            "[]",
            "1",
            "{",
            "{\"a\":}",
            "{\"a\":1}x",
            "{\"\":1}",
        ] {
            assert_eq!(status(bad), 400, "{bad}");
        }
        let many = |count: u32| {
            let fields: Vec<_> = (0..count).map(|n| format!("\"f{n}\":{n}")).collect();
            format!("{{{}}}", fields.join(","))
        };
        assert_eq!((status(&many(1000)), status(&many(1001))), (200, 400));
    }

    #[test]
    fn the_mark_of_raw_text_is_a_name_like_others() {
        let body = br#"{"$serde_json::private::RawValue":"[[[[[[[[[[[[[[[[[[[[[[[","b":1.10}"#;
        let fields = Fields::parse(body).unwrap();
        let text = serde_json::to_string(&fields).unwrap();
        assert_eq!(text.as_bytes(), body);
        let again: Fields = serde_json::from_str(&text).unwrap();
        assert_eq!(again, fields);
    }

    #[test]
    fn merging_sets_and_removes() {
        let mut fields = Fields::parse(br#"{"a":1,"b":[2],"@unid":"x"}"#).unwrap();
        let changes = Fields::parse(br#"{"a":null,"c":"3","d":null}"#).unwrap();
        fields.merge(changes).unwrap();
        assert_eq!(
            serde_json::to_string(&fields).unwrap(),
            r#"{"b":[2],"c":"3"}"#
        );
        let large = format!("{{\"x\":\"{}\"}}", "x".repeat(limits::BODY_BYTES - 20));
        fields
            .merge(Fields::parse(large.as_bytes()).unwrap())
            .unwrap();
        let more = Fields::parse(br#"{"y":"123456789012345678901234567890"}"#).unwrap();
        assert_eq!(fields.merge(more).unwrap_err().status(), 413);
    }

    proptest! {
        #[test]
        fn no_body_panics(body: Vec<u8>) {
            let _ = Fields::parse(&body);
        }

        #[test]
        fn what_is_taken_can_be_stored_and_read(text in r#"\{("[a-z@\\]{0,3}":[\[\]{}0-9"a,:]{0,8},?){0,4}\}"#) {
            if let Ok(fields) = Fields::parse(text.as_bytes()) {
                let stored = serde_json::to_vec(&fields).unwrap();
                let read: Fields = serde_json::from_slice(&stored).unwrap();
                prop_assert_eq!(read, fields);
            }
        }
    }
}
