//! Decodes the tree to the file types, and records the place of every problem.

use crate::error::Problems;
use crate::nearest::{nearest, one_of};
use crate::node::{Key, Node, Value};
use crate::parts::{At, Json, OneOrMany, Scalar, Table};
use crate::source::Span;

/// A type that a value of the file is decoded to.
pub trait Decode: Sized {
    /// The value; `None` when a problem was recorded.
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self>;
}

/// Records that `node` is not of the expected kind.
pub fn unexpected<T>(node: &Node, expected: &str, problems: &mut Problems) -> Option<T> {
    let message = format!("expected {expected}, found {}", node.kind());
    problems.push(
        node.span
            .first_line()
            .problem(message, format!("this is {}", node.kind())),
    );
    None
}

impl Decode for At<Scalar> {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let value = match &node.value {
            Value::Bool(value) => Scalar::Bool(*value),
            Value::Int(value) => Scalar::Int(*value),
            Value::Float(value) => Scalar::Float(value.clone()),
            Value::Text(value) => Scalar::Text(value.clone()),
            Value::Null | Value::List(_) | Value::Map(_) => {
                return unexpected(node, "text or a number", problems);
            }
        };
        Some(At {
            value,
            span: node.span.clone(),
        })
    }
}

impl<T: Decode> Decode for Vec<T> {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::List(items) => Some(
                items
                    .iter()
                    .filter_map(|item| T::decode(item, problems))
                    .collect(),
            ),
            _ => unexpected(node, "a list", problems),
        }
    }
}

impl<T: Decode> Decode for At<T>
where
    T: Container,
{
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        T::decode(node, problems).map(|value| At {
            value,
            span: node.span.clone(),
        })
    }
}

/// A type of several values: its place is that of the whole.
pub trait Container {}
impl<T> Container for Vec<T> {}
impl<T> Container for Table<T> {}
impl Container for Json {}

impl<T: Decode> Decode for Table<T> {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            return unexpected(node, "a mapping", problems);
        };
        let entry = |(key, value): &(Key, Node)| {
            let value = T::decode(value, problems)?;
            Some((
                At {
                    value: key.text.clone(),
                    span: key.span.clone(),
                },
                value,
            ))
        };
        Some(Table(entries.iter().filter_map(entry).collect()))
    }
}

impl Decode for OneOrMany {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        match node.value {
            Value::List(_) => Vec::decode(node, problems).map(Self::Many),
            _ => At::decode(node, problems).map(Self::One),
        }
    }
}

impl Decode for Option<At<Scalar>> {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        match node.value {
            Value::Null => Some(None),
            Value::List(_) | Value::Map(_) => unexpected(node, "text, a number, or null", problems),
            _ => At::decode(node, problems).map(Some),
        }
    }
}

impl Decode for Json {
    fn decode(node: &Node, problems: &mut Problems) -> Option<Self> {
        match node.value {
            Value::Null => Some(Self::Null),
            Value::List(_) => Vec::decode(node, problems).map(Self::List),
            Value::Map(_) => Table::decode(node, problems).map(Self::Table),
            _ => At::decode(node, problems).map(Self::Scalar),
        }
    }
}

/// The entries of a mapping with fixed keys, taken one by one.
pub struct Fields<'n> {
    node: &'n Node,
    what: &'static str,
    entries: &'n [(Key, Node)],
    asked: Vec<&'static str>,
    missing: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// `what` names the mapping in errors: "a study", "a step".
    pub fn of(node: &'n Node, what: &'static str, problems: &mut Problems) -> Option<Self> {
        match &node.value {
            Value::Map(entries) => Some(Self {
                node,
                what,
                entries,
                asked: Vec::new(),
                missing: Vec::new(),
            }),
            _ => unexpected(node, &format!("{what}, which is a mapping"), problems),
        }
    }

    /// The value of `key`; a key without a value counts as absent.
    pub fn optional<T: Decode>(&mut self, key: &'static str, problems: &mut Problems) -> Option<T> {
        self.asked.push(key);
        let (_, node) = self.entries.iter().find(|(k, _)| k.text == key)?;
        if matches!(node.value, Value::Null) {
            None
        } else {
            T::decode(node, problems)
        }
    }

    /// The value of `key`, which is required.
    pub fn required<T: Decode>(&mut self, key: &'static str, problems: &mut Problems) -> Option<T> {
        self.asked.push(key);
        match self.entries.iter().find(|(k, _)| k.text == key) {
            Some((_, node)) if !matches!(node.value, Value::Null) => T::decode(node, problems),
            Some((found, _)) => {
                let message = format!("`{key}` has no value");
                problems.push(found.span.problem(message, "a value is needed here"));
                None
            }
            None => {
                self.missing.push(key);
                None
            }
        }
    }

    /// The places of these keys, if they have a value, in the order of the file.
    pub fn named(&self, keys: &[&str]) -> Vec<Span> {
        let given = |(key, node): &&(Key, Node)| {
            keys.contains(&key.text.as_str()) && !matches!(node.value, Value::Null)
        };
        let entries = self.entries.iter().filter(given);
        entries.map(|(key, _)| key.span.clone()).collect()
    }

    /// Records the missing keys and every unknown key.
    pub fn finish(self, problems: &mut Problems) {
        self.note_missing(problems);
        // A key that exists already is less likely to be the intended one.
        let absent = |name: &&&str| !self.entries.iter().any(|(k, _)| k.text == ***name);
        let free: Vec<&str> = self.asked.iter().filter(absent).copied().collect();
        for (key, _) in self.entries {
            let text = key.text.as_str();
            if self.asked.contains(&text) {
                continue;
            }
            let mut problem = key.span.problem(
                format!("{} has no key `{}`", self.what, key.text),
                "unknown key",
            );
            let near = nearest(&key.text, &free).or_else(|| nearest(&key.text, &self.asked));
            problem.help = Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the keys here are {}", one_of(&self.asked)),
            });
            problems.push(problem);
        }
    }

    fn note_missing(&self, problems: &mut Problems) {
        if self.missing.is_empty() {
            return;
        }
        let place = match self.entries.first() {
            Some((first, _)) => first.span.clone(),
            None => self.node.span.first_line(),
        };
        let keys = if self.missing.len() == 1 {
            "key"
        } else {
            "keys"
        };
        let names = one_of(&self.missing);
        let message = format!("{} needs the {keys} {names}", self.what);
        problems.push(place.problem(message, format!("{} begins here", self.what)));
    }
}
