//! What an answer must have besides its status. It knows no protocol and reads no answer.

use std::cmp::Ordering;
use std::time::Duration;

use lab_filters::{JsonPath, JsonSchema, is_json_number};
use serde::{Deserialize, Serialize};

use crate::template::Template;

/// What an answer must have besides its status.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation<T = Template> {
    /// One of the values that a JSON path finds in the body, as text, is this.
    Json {
        /// Where it stands.
        path: Box<JsonPath>,
        /// What it is: of a text the text itself, of all else its JSON.
        value: T,
    },
    /// One of the values that a JSON path finds in the body is a number, and on this side of another one.
    Number {
        /// Where it stands.
        path: Box<JsonPath>,
        /// How it compares to the other number.
        comparison: Comparison,
        /// The other number.
        value: T,
    },
    /// What a JSON path finds in the body, whatever its value is.
    Found {
        /// Where it stands.
        path: Box<JsonPath>,
        /// What is found there.
        state: JsonState,
    },
    /// The body is an answer of GraphQL without errors.
    Graphql,
    /// The body is a JSON document as this schema has it.
    Schema(JsonSchema),
    /// The body holds this text.
    Contains(T),
    /// The body doesn't hold this text.
    NotContains(T),
    /// The body, decoded, has at least and at most so many bytes.
    Size {
        /// Fewest.
        low: u64,
        /// Most.
        high: u64,
    },
    /// The last byte of the answer comes sooner than this after the request was sent.
    Time {
        /// The first time that is too long.
        below: Duration,
    },
    /// A header of this lower-case name is there, and holds this text.
    Header {
        /// Its name.
        name: String,
        /// What it holds; empty where being there is enough.
        text: T,
    },
}

/// How a number compares to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Comparison {
    /// A text such as `> 10` or `<= {{ most }}`, as how it compares and to what. Any other text that begins so, such
    /// as a page, is none.
    #[must_use]
    pub fn split(text: &str) -> Option<(Self, &str)> {
        let all = [Self::AtMost, Self::AtLeast, Self::Below, Self::Above];
        let mut all = all.into_iter();
        let (comparison, other) =
            all.find_map(|one| Some((one, text.strip_prefix(one.sign())?.trim())))?;
        let is_template = other.starts_with("{{") && other.find("}}") == Some(other.len() - 2);
        (is_template || is_json_number(other)).then_some((comparison, other))
    }

    /// As files write it.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Returns true if a number that compares so to the other one is accepted.
    #[must_use]
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            Self::Below => ordering.is_lt(),
            Self::AtMost => ordering.is_le(),
            Self::Above => ordering.is_gt(),
            Self::AtLeast => ordering.is_ge(),
        }
    }
}

/// What a JSON path finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonState {
    /// Nothing, not even `null`.
    Absent,
    /// `null`.
    Null,
    /// A value other than `null`.
    Present,
}

impl<T> Expectation<T> {
    /// Returns true if the body is read for it.
    #[must_use]
    pub fn reads_body(&self) -> bool {
        match self {
            Self::Size { .. } | Self::Time { .. } | Self::Header { .. } => false,
            Self::Json { .. }
            | Self::Number { .. }
            | Self::Found { .. }
            | Self::Graphql
            | Self::Schema(_)
            | Self::Contains(_)
            | Self::NotContains(_) => true,
        }
    }

    /// The same with another form of templates.
    pub(crate) fn try_map<U, E>(
        &self,
        map: &mut impl FnMut(&T) -> Result<U, E>,
    ) -> Result<Expectation<U>, E> {
        Ok(match self {
            Self::Json { path, value } => Expectation::Json {
                path: path.clone(),
                value: map(value)?,
            },
            Self::Number {
                path,
                comparison,
                value,
            } => Expectation::Number {
                path: path.clone(),
                comparison: *comparison,
                value: map(value)?,
            },
            Self::Found { path, state } => Expectation::Found {
                path: path.clone(),
                state: *state,
            },
            Self::Graphql => Expectation::Graphql,
            Self::Schema(schema) => Expectation::Schema(schema.clone()),
            Self::Contains(text) => Expectation::Contains(map(text)?),
            Self::NotContains(text) => Expectation::NotContains(map(text)?),
            Self::Size { low, high } => Expectation::Size {
                low: *low,
                high: *high,
            },
            Self::Time { below } => Expectation::Time { below: *below },
            Self::Header { name, text } => Expectation::Header {
                name: name.clone(),
                text: map(text)?,
            },
        })
    }
}
