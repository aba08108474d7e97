//! A record of the simple lookup service: flat JSON, each value a list of texts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::id::first_16;
use crate::lease;
use crate::limits::{KEY_BYTES, KEYS, VALUE_BYTES, VALUES};
use crate::{LookupError, Reason};

/// The keys that the service itself sets in a record; a client's values for them are ignored.
const OWN_KEYS: [&str; 3] = ["uri", "state", "expires"];
const TTL: &str = "ttl";
const TYPE: &str = "type";
const TYPE_BYTES: usize = 64;

/// The values of a record by key, without those that the service sets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    pub(crate) fields: BTreeMap<String, Vec<String>>,
}

/// A record to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    pub(crate) record: Record,
    pub(crate) asked_ttl_s: Option<i64>,
}

impl Record {
    /// Returns the values of a key.
    pub fn values(&self, key: &str) -> &[String] {
        self.fields.get(key).map_or(&[], Vec::as_slice)
    }

    /// The type of the described thing; part of its URI.
    pub fn kind(&self) -> &str {
        self.values(TYPE).first().map_or("", String::as_str)
    }

    /// Identifies a record: equal for records with the same keys and values.
    pub(crate) fn fingerprint(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        let number = |number: usize, hasher: &mut blake3::Hasher| {
            hasher.update(&(number as u64).to_le_bytes());
        };
        for (key, values) in &self.fields {
            number(values.len(), &mut hasher);
            for text in std::iter::once(key).chain(values) {
                number(text.len(), &mut hasher);
                hasher.update(text.as_bytes());
            }
        }
        first_16(hasher.finalize().as_bytes())
    }

    pub(crate) fn check(&self) -> Result<(), LookupError> {
        if self.fields.len() > KEYS {
            return Err(too_large(format!("A record has at most {KEYS} keys.")));
        }
        if self.fields.values().map(Vec::len).sum::<usize>() > VALUES {
            return Err(too_large(format!("A record has at most {VALUES} values.")));
        }
        for (key, values) in &self.fields {
            if key.is_empty() || key.len() > KEY_BYTES {
                return Err(LookupError::bad(format!(
                    "A key has 1 to {KEY_BYTES} bytes."
                )));
            }
            if values.iter().any(|value| value.len() > VALUE_BYTES) {
                return Err(too_large(format!(
                    "A value has at most {VALUE_BYTES} bytes."
                )));
            }
        }
        let kind = self.kind();
        let fits = |letter: u8| letter.is_ascii_alphanumeric() || b"-_.".contains(&letter);
        match self.values(TYPE) {
            [_] if !kind.is_empty() && kind.len() <= TYPE_BYTES && kind.bytes().all(fits) => Ok(()),
            [] => Err(LookupError::bad(
                "Invalid request. Please check the key-value pairs: type is missing.",
            )),
            _ => Err(LookupError::bad(
                "Invalid request. Please check the key-value pairs: type is one word of letters, \
                 digits, '-', '_', and '.'.",
            )),
        }
    }
}

fn too_large(message: String) -> LookupError {
    LookupError::refused(Reason::TooLarge, message)
}

impl NewRecord {
    /// Parses the body of a registration.
    ///
    /// # Errors
    /// If it isn't a flat object of texts and lists of texts, has no `type`, exceeds a limit, or
    /// requests an invalid lease.
    pub fn parse(body: &[u8]) -> Result<Self, LookupError> {
        let fields = serde_json::from_slice(body).map_err(|error| not_json(&error))?;
        Self::from_fields(fields)
    }

    /// Parses the body of a bulk registration: a list of records, each checked separately.
    ///
    /// # Errors
    /// If it isn't a list of flat objects.
    pub fn parse_bulk(body: &[u8]) -> Result<Vec<Result<Self, LookupError>>, LookupError> {
        let all: Vec<Fields> = serde_json::from_slice(body).map_err(|error| not_json(&error))?;
        if all.is_empty() || all.len() > crate::limits::BULK {
            let most = crate::limits::BULK;
            return Err(LookupError::bad(format!(
                "A bulk registration is a list of 1 to {most} records."
            )));
        }
        Ok(all.into_iter().map(Self::from_fields).collect())
    }

    fn from_fields(Fields(mut fields): Fields) -> Result<Self, LookupError> {
        for key in OWN_KEYS {
            fields.remove(key);
        }
        let asked_ttl_s = match fields.remove(TTL).as_deref() {
            None | Some([]) => None,
            Some([ttl]) => lease::asked_s(ttl)?,
            Some(_) => return Err(LookupError::bad("A record has one ttl.")),
        };
        let record = Record { fields };
        record.check()?;
        Ok(Self {
            record,
            asked_ttl_s,
        })
    }

    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }
}

pub(crate) fn not_json(error: &serde_json::Error) -> LookupError {
    let (line, column) = (error.line(), error.column());
    let what: Cow<'static, str> = match error.classify() {
        serde_json::error::Category::Data => error.to_string().into(),
        _ => format!("not JSON, at line {line} column {column}").into(),
    };
    LookupError::bad(format!("Error parsing Json elements: {what}."))
}

/// An object of values and lists of values; deeper nesting is rejected.
struct Fields(BTreeMap<String, Vec<String>>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of values and lists of values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            if fields.len() > KEYS + OWN_KEYS.len() {
                return Err(A::Error::custom("too many keys"));
            }
            let Values(values) = map.next_value()?;
            if fields.insert(key, values).is_some() {
                return Err(A::Error::custom("a key comes twice"));
            }
        }
        Ok(Fields(fields))
    }
}

/// A value, or a list of values. Numbers and booleans, which perfSONAR's own clients send, are kept
/// in their JSON form; `null`, an undefined value of theirs, is omitted.
pub(crate) struct Values(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValuesVisitor)
    }
}

struct ValuesVisitor;

impl<'de> Visitor<'de> for ValuesVisitor {
    type Value = Values;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or a list of values")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Values, E> {
        ValueVisitor.visit_str(text).map(one)
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<Values, E> {
        ValueVisitor.visit_string(text).map(one)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Values, E> {
        ValueVisitor.visit_bool(value).map(one)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Values, E> {
        ValueVisitor.visit_i64(number).map(one)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Values, E> {
        ValueVisitor.visit_u64(number).map(one)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Values, E> {
        ValueVisitor.visit_f64(number).map(one)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Values, E> {
        ValueVisitor.visit_unit().map(one)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Values, A::Error> {
        let mut values = Vec::new();
        while values.len() < VALUES {
            match list.next_element()? {
                Some(Value(value)) => values.extend(value),
                None => return Ok(Values(values)),
            }
        }
        match list.next_element::<IgnoredAny>()? {
            None => Ok(Values(values)),
            Some(_) => Err(A::Error::custom("too many values")),
        }
    }
}

fn one(Value(value): Value) -> Values {
    Values(value.into_iter().collect())
}

/// One value of a key; `None` for `null`.
struct Value(Option<String>);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl Visitor<'_> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, or a truth value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value(Some(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value(Some(text)))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value(Some(value.to_string())))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value(Some(number.to_string())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value(Some(number.to_string())))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        let number = serde_json::Number::from_f64(number);
        Ok(Value(number.map(|number| number.to_string())))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_truth_values_count_as_they_are_written() {
        let body = r#"{"type":["host"],"host-hardware-memory":[4],"a":-7,"b":[true,"x",1.5,null],
            "c":false,"d":null,"e":1e300}"#;
        let new = NewRecord::parse(body.as_bytes()).unwrap();
        for (key, values) in [
            ("host-hardware-memory", &["4"][..]),
            ("a", &["-7"]),
            ("b", &["true", "x", "1.5"]),
            ("c", &["false"]),
            ("d", &[]),
            ("e", &["1e+300"]),
        ] {
            assert_eq!(new.record.values(key), values, "{key}");
        }
    }

    #[track_caller]
    fn refused(body: &str, status: u16) {
        let error = NewRecord::parse(body.as_bytes()).expect_err(body);
        assert_eq!(error.status(), status, "{error}");
    }

    #[test]
    fn records_are_flat_lists_of_texts() {
        let body = r#"{"type":"service","a":["x","y"],"ttl":["PT1H"],"uri":"mine","state":"no"}"#;
        let new = NewRecord::parse(body.as_bytes()).unwrap();
        assert_eq!(new.asked_ttl_s, Some(3600));
        assert_eq!(new.record.kind(), "service");
        assert_eq!(new.record.values("a"), ["x", "y"]);
        assert!(new.record.values("uri").is_empty());
        for body in [
            "",
            "[]",
            "7",
            "{}",
            r#"{"type":{"a":"b"}}"#,
            r#"{"type":[["service"]]}"#,
            r#"{"type":null}"#,
            r#"{"type":["a","b"]}"#,
            r#"{"type":"a/b"}"#,
            r#"{"type":""}"#,
            r#"{"type":"a","type":"a"}"#,
            r#"{"type":"a","k":{"a":"b"}}"#,
            r#"{"type":"a","ttl":["PT1H","PT2H"]}"#,
            r#"{"type":"a","":"b"}"#,
            r#"{"type":"a""#,
        ] {
            refused(body, 400);
        }
        refused(r#"{"type":"a","ttl":"forever"}"#, 403);
        // A number is no period: its unit is unknown.
        refused(r#"{"type":"a","ttl":3600}"#, 403);
    }

    #[test]
    fn sizes_are_bounded() {
        refused(
            &format!(r#"{{"type":"a","{}":"b"}}"#, "k".repeat(10 << 20)),
            400,
        );
        refused(
            &format!(r#"{{"type":"a","k":"{}"}}"#, "v".repeat(5000)),
            413,
        );
        let keys: String = (0..400).map(|key| format!(r#","{key}":"v""#)).collect();
        refused(&format!(r#"{{"type":"a"{keys}}}"#), 400);
        let values = r#""v","#.repeat(VALUES + 1);
        refused(&format!(r#"{{"type":"a","k":[{values}"v"]}}"#), 400);
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        refused(&format!(r#"{{"type":"a","k":{deep}}}"#), 400);
    }

    #[test]
    fn only_equal_records_have_equal_fingerprints() {
        let print = |body: &str| {
            NewRecord::parse(body.as_bytes())
                .unwrap()
                .record
                .fingerprint()
        };
        let one = print(r#"{"type":"a","k":["x","y"],"l":"z"}"#);
        assert_eq!(
            one,
            print(r#"{"l":["z"],"k":["x","y"],"type":["a"],"ttl":"PT1H"}"#)
        );
        assert_ne!(one, print(r#"{"type":"a","k":["y","x"],"l":"z"}"#));
        assert_ne!(one, print(r#"{"type":"a","k":["x"],"l":["y","z"]}"#));
        assert_ne!(one, print(r#"{"type":"a","k":["x","y","l","z"]}"#));
    }
}
