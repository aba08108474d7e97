//! What is wrong with one text of a file, and where in that text.

use std::ops::Range;

use lab_template::template::{Help, TemplateError};

use crate::nearest::{nearest, one_of};

/// An error in a text that a person wrote: a duration, a threshold, a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TextError {
    /// What is wrong.
    pub message: String,
    /// Where, in bytes of the text.
    pub at: Range<usize>,
    /// How to put it right.
    pub help: Option<String>,
}

impl TextError {
    /// What is wrong, and where.
    pub fn new(message: impl Into<String>, at: Range<usize>) -> Self {
        Self {
            message: message.into(),
            at,
            help: None,
        }
    }

    /// With how to put it right.
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
