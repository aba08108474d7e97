//! How requests are signed, as written.

use std::borrow::Cow;

use lab_workload::sign::Sign;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value as Json;

use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, unexpected};
use lab_units::parts::{At, Scalar};

/// What signs a request; or `none`, where nothing does.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum SignFile {
    /// Nothing, by the word for it.
    None(At<Scalar>),
    /// This.
    By(Box<Sign<At<Scalar>>>),
}

impl JsonSchema for SignFile {
    fn schema_name() -> Cow<'static, str> {
        "SignFile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let by = generator.subschema_for::<Sign<At<Scalar>>>();
        schemars::json_schema!({ "anyOf": [{ "const": "none" }, by] })
    }
}

impl Container for SignFile {}

impl Decode for SignFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(_) = node.value else {
            return At::decode(node, problems).map(Self::None);
        };
        let mut texts = Vec::new();
        let json = json(node, &mut texts, problems)?;
        let read = serde_json::from_value::<Sign<String>>(json);
        let noted = read.map_err(|error| {
            let place = node.span.first_line();
            problems.push(place.problem(format!("sign: {error}"), "this signature"));
        });
        let place = |text: &String| texts.iter().find(|at: &&At<Scalar>| at.written() == *text);
        let placed = noted
            .ok()?
            .try_map(&mut |text| place(text).cloned().ok_or(()));
        Some(Self::By(Box::new(placed.ok()?)))
    }
}

/// A value as JSON, all that is no mapping or list as a text; and the places of the texts.
fn json(node: &Node, texts: &mut Vec<At<Scalar>>, problems: &mut Problems) -> Option<Json> {
    Some(match &node.value {
        Value::Map(entries) => {
            let mut all = serde_json::Map::new();
            for (key, value) in entries {
                all.insert(key.text.clone(), json(value, texts, problems)?);
            }
            all.into()
        }
        Value::List(items) => {
            let items = items.iter().map(|item| json(item, texts, problems));
            items.collect::<Option<Vec<Json>>>()?.into()
        }
        Value::Null => return unexpected(node, "a value", problems),
        _ => {
            let at: At<Scalar> = Decode::decode(node, problems)?;
            texts.push(at.clone());
            at.written().into()
        }
    })
}
