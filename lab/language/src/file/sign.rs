//! The raw form of request signatures, and of obtained credentials.

use std::borrow::Cow;

use lab_workload::auth::Auth;
use lab_workload::sign::Sign;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::error::Problems;
use crate::node::{Node, Value};
use lab_units::decode::{Container, Decode, unexpected};
use lab_units::nearest::{nearest, one_of};
use lab_units::parts::{At, Scalar};

/// The signature of a request, or `none`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum SignFile {
    /// No signature, by the word `none`.
    None(At<Scalar>),
    /// This signature.
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
        let (read, texts) = read::<Sign<String>>(node, ("sign", "this signature"), problems)?;
        let placed = read.try_map(&mut |text| place(&texts, text));
        Some(Self::By(Box::new(placed.ok()?)))
    }
}

/// How the workload's users obtain their credentials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct AuthFile(pub(crate) Box<Auth<At<Scalar>>>);

impl Container for AuthFile {}

impl Decode for AuthFile {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            return unexpected(node, "`oauth2: { … }` or `digest: { … }`", problems);
        };
        const KINDS: [&str; 2] = ["oauth2", "digest"];
        for (key, _) in entries {
            let name = key.text.to_ascii_lowercase();
            let why = match name.as_str() {
                _ if KINDS.contains(&key.text.as_str()) => continue,
                "ntlm" => {
                    "NTLM is not supported: it signs in a connection, by hashes that are broken"
                }
                "kerberos" | "negotiate" | "spnego" | "gssapi" => {
                    "Kerberos is not supported: its tickets come from another server than the one that is tested"
                }
                _ => "",
            };
            let message = match why {
                "" => format!("there is no `auth` of the kind `{}`", key.text),
                why => why.to_owned(),
            };
            let help = match nearest(&name, &KINDS) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("write {}", one_of(&KINDS)),
            };
            problems.push(key.span.problem(message, "this key").help(help));
            return None;
        }
        let (read, texts) = read::<Auth<String>>(node, ("auth", "these credentials"), problems)?;
        let placed = read.try_map(&mut |text| place(&texts, text));
        placed.ok().map(|auth| Self(Box::new(auth)))
    }
}

/// Reads the value of a mapping, and the places of its texts.
fn read<T: DeserializeOwned>(
    node: &Node,
    (key, label): (&str, &str),
    problems: &mut Problems,
) -> Option<(T, Vec<At<Scalar>>)> {
    let mut texts = Vec::new();
    let json = json(node, &mut texts, problems)?;
    let read = serde_json::from_value(json);
    let noted = read.map_err(|error| {
        let place = node.span.first_line();
        problems.push(place.problem(format!("{key}: {error}"), label));
    });
    Some((noted.ok()?, texts))
}

/// Returns a text with its place.
fn place(texts: &[At<Scalar>], text: &str) -> Result<At<Scalar>, ()> {
    let found = texts.iter().find(|at| at.written() == text);
    found.cloned().ok_or(())
}

/// Converts a value to JSON, with every scalar as a text; and returns the places of the texts.
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
