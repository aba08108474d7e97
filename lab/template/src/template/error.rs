//! Why a text is no template, and where in it.

use std::ops::Range;

/// What is wrong with the text of a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the text.
    pub at: Range<usize>,
    /// How to put it right.
    pub help: Option<Help>,
}

/// How a template may be put right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Help {
    /// As a sentence.
    Text(String),
    /// By another name: which is meant is for whoever shows the error to guess.
    Names {
        /// The name that there is not.
        wrong: String,
        /// Those that there are.
        right: Vec<String>,
        /// What comes before a list of them, such as `the filters are`.
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
