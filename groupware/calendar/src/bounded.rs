//! JSON values that the calendar stores without interpreting them: parsed to a bounded depth, without special names.
//!
//! A plain [`Value`] would be unsafe. A serde_json with raw-value support treats one name as embedded JSON and parses
//! that with a fresh depth limit: a short body could exhaust the stack.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Value};

use crate::limits;

/// The prefix of serde_json's own names.
const RESERVED: &str = "$serde_json::";

/// A value whose depth is at most [`limits::VALUE_LEVELS`].
#[derive(Debug)]
pub(crate) struct Bounded(pub(crate) Value);

impl<'de> Deserialize<'de> for Bounded {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Levels(limits::VALUE_LEVELS)
            .deserialize(deserializer)
            .map(Self)
    }
}

/// Parses a value with at most this many levels of arrays and objects.
#[derive(Clone, Copy)]
struct Levels(usize);

impl Levels {
    fn below<E: Error>(self) -> Result<Self, E> {
        match self.0.checked_sub(1) {
            Some(left) => Ok(Self(left)),
            None => Err(E::custom(format_args!(
                "a value nests deeper than {} levels",
                limits::VALUE_LEVELS
            ))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Levels {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Levels {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(below)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let below = self.below()?;
        let mut map = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if name.starts_with(RESERVED) {
                return Err(A::Error::custom(format_args!(
                    "no member may be called {RESERVED}…"
                )));
            }
            map.insert(name, members.next_value_seed(below)?);
        }
        Ok(Value::Object(map))
    }
}
