//! Requirements for a response besides its status. It knows no protocol and parses no response.

use std::cmp::Ordering;
use std::time::Duration;

use lab_filters::{JsonPath, JsonSchema, is_json_number};
use serde::{Deserialize, Serialize};

use crate::template::Template;

/// A requirement for a response besides its status.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation<T = Template> {
    /// One of the values at a JSON path of the body equals this text.
    Json {
        /// The path.
        path: Box<JsonPath>,
        /// The value: a text itself, or the JSON of any other value.
        value: T,
    },
    /// One of the values at a JSON path of the body is a number that satisfies the comparison.
    Number {
        /// The path.
        path: Box<JsonPath>,
        /// The comparison with the operand.
        comparison: Comparison,
        /// The operand.
        value: T,
    },
    /// A JSON path of the body has this state, whatever its value.
    Found {
        /// The path.
        path: Box<JsonPath>,
        /// The state.
        state: JsonState,
    },
    /// The body is a GraphQL response without errors.
    Graphql,
    /// The body is a JSON document that satisfies this schema.
    Schema(JsonSchema),
    /// The body contains this text.
    Contains(T),
    /// The body doesn't contain this text.
    NotContains(T),
    /// The size of the decoded body is within these bounds, in bytes.
    Size {
        /// Minimum.
        low: u64,
        /// Maximum.
        high: u64,
    },
    /// The last byte of the response arrives within this time after the send.
    Time {
        /// The first excessive time.
        below: Duration,
    },
    /// A header of this lower-case name exists, and contains this text.
    Header {
        /// Its name.
        name: String,
        /// The contained text; empty accepts any value.
        text: T,
    },
}

/// A comparison of two numbers.
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
    /// Parses a text such as `> 10` or `<= {{ most }}` into comparison and operand. Other texts with such a start, such
    /// as a page, give `None`.
    #[must_use]
    pub fn split(text: &str) -> Option<(Self, &str)> {
        let all = [Self::AtMost, Self::AtLeast, Self::Below, Self::Above];
        let mut all = all.into_iter();
        let (comparison, other) =
            all.find_map(|one| Some((one, text.strip_prefix(one.sign())?.trim())))?;
        let is_template = other.starts_with("{{") && other.find("}}") == Some(other.len() - 2);
        (is_template || is_json_number(other)).then_some((comparison, other))
    }

    /// The sign in files.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
        }
    }

    /// Returns true if a number with this ordering to the operand is accepted.
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

/// The result of a JSON path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonState {
    /// No match, not even `null`.
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

    /// Maps its templates.
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
