//! Stretches of a template as text, each with its escaping.

use lab_filters::Escape;
use serde::{Deserialize, Serialize};

/// A stretch of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) text: Box<str>,
    /// How substituted values are escaped; `None` if the text is literal, including its braces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) escape: Option<Escape>,
}

impl Part {
    pub(super) fn code(text: &str, escape: Escape) -> Self {
        Self {
            text: text.into(),
            escape: Some(escape),
        }
    }

    pub(super) fn literal(text: &str) -> Self {
        Self {
            text: text.into(),
            escape: None,
        }
    }
}

/// Joins neighbouring literals, of which a JSON body mostly consists.
pub(super) fn merge_literals(parts: impl Iterator<Item = Part>) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::new();
    for part in parts {
        match merged.last_mut() {
            Some(last) if last.escape.is_none() && part.escape.is_none() => {
                last.text = format!("{}{}", last.text, part.text).into();
            }
            _ => merged.push(part),
        }
    }
    merged
}
