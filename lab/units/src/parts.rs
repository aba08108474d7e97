//! The building blocks of file types: values with their place, scalars, ordered tables.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::node::Decimal;
use crate::source::Span;

/// A value and its place; equal if the values are.
#[derive(Debug, Clone)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub span: Span,
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: Serialize> Serialize for At<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A text, number, or boolean.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// Any other number.
    Float(Decimal),
    /// Text.
    Text(String),
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(number) => number.value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl Serialize for Scalar {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(number) => serializer.serialize_f64(number.value),
            Self::Text(value) => serializer.serialize_str(value),
        }
    }
}

impl JsonSchema for Scalar {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Scalar".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl At<Scalar> {
    /// The value as text.
    #[must_use]
    pub fn text(&self) -> String {
        self.value.to_string()
    }

    /// The value as text, a number with the digits of the file.
    #[must_use]
    pub fn written(&self) -> String {
        match &self.value {
            Scalar::Float(number) => number.written(),
            other => other.to_string(),
        }
    }
}

/// A mapping with free keys, in file order.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<T>(
    /// Its entries.
    pub Vec<(At<String>, T)>,
);

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Table<T> {
    /// Returns true if it has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Its entries, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, (At<String>, T)> {
        self.0.iter()
    }
}

impl<T: Serialize> Serialize for Table<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(&key.value, value)?;
        }
        map.end()
    }
}

impl<T: JsonSchema> JsonSchema for Table<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Table_of_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let value = generator.subschema_for::<T>();
        json_schema!({ "type": "object", "additionalProperties": value })
    }
}

/// A value, or a list of them.
#[derive(Debug, Clone, PartialEq, serde::Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(At<Scalar>),
    /// A list.
    Many(Vec<At<Scalar>>),
}

impl OneOrMany {
    /// All values.
    #[must_use]
    pub fn as_slice(&self) -> &[At<Scalar>] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// Any JSON document; its strings are templates.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// A text, number, or boolean.
    Scalar(At<Scalar>),
    /// An array.
    List(Vec<Json>),
    /// An object.
    Table(Table<Json>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Scalar(scalar) => scalar.serialize(serializer),
            Self::List(list) => list.serialize(serializer),
            Self::Table(table) => table.serialize(serializer),
        }
    }
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

/// The levels of a factor, with the place of their list.
pub type Levels = At<Vec<At<Scalar>>>;
