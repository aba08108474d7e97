//! The problem of one text of a file, and its place in that text.

use std::ops::Range;

use lab_template::template::{Help, TemplateError};

use crate::nearest::{nearest, one_of};

/// An error in a hand-written text: a duration, a threshold, a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TextError {
    /// The problem.
    pub message: String,
    /// The place, in bytes of the text.
    pub at: Range<usize>,
    /// The fix.
    pub help: Option<String>,
}

impl TextError {
    /// An error at a place.
    pub fn new(message: impl Into<String>, at: Range<usize>) -> Self {
        Self {
            message: message.into(),
            at,
            help: None,
        }
    }

    /// Adds a fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<TemplateError> for TextError {
    fn from(error: TemplateError) -> Self {
        let help = error.help.map(|help| match help {
            Help::Text(help) => help,
            Help::Names { wrong, right, lead } => {
                let right: Vec<&str> = right.iter().map(String::as_str).collect();
                match nearest(&wrong, &right) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("{lead} {}", one_of(&right)),
                }
            }
        });
        Self {
            message: error.message,
            at: error.at,
            help,
        }
    }
}
