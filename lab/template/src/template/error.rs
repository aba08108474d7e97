//! Why a text is no valid template, and the place of the error.

use std::ops::Range;

/// An error in the text of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong.
    pub message: String,
    /// The place, in bytes of the text.
    pub at: Range<usize>,
    /// How to fix it.
    pub help: Option<Help>,
}

/// How to fix a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Help {
    /// As a sentence.
    Text(String),
    /// By another name: the code that shows the error guesses which.
    Names {
        /// The unknown name.
        wrong: String,
        /// The known names.
        right: Vec<String>,
        /// The text before a list of them, such as `the filters are`.
        lead: String,
    },
}

impl Help {
    pub(super) fn names(wrong: &str, right: &[&str], lead: &str) -> Self {
        Self::Names {
            wrong: wrong.to_owned(),
            right: right.iter().map(|&name| name.to_owned()).collect(),
            lead: lead.to_owned(),
        }
    }
}
