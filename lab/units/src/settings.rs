//! Settings as templates, each with its place.

use crate::error::Problems;
use crate::parts::{At, Scalar};
use crate::source::Span;
use lab_template::template::Template;

use crate::setting::Setting;

/// Makes settings of texts that may name `known`.
#[derive(Debug)]
pub struct Settings<'a> {
    /// The names that they may refer to.
    pub known: &'a [String],
    /// What was found to be wrong.
    pub problems: &'a mut Problems,
}

impl Settings<'_> {
    /// The setting; `None` when a problem was noted.
    pub fn required(&mut self, field: &str, at: &At<Scalar>) -> Option<Setting> {
        let text = at.text();
        match Template::parse_setting(&text, self.known) {
            Ok(template) => Some(Setting {
                field: field.to_owned(),
                template,
                at: at.clone(),
            }),
            Err(error) => {
                self.problems
                    .push(at.span.text_problem(field, &text, &error.into()));
                None
            }
        }
    }

    /// As `required`, for optional settings.
    pub fn optional(&mut self, field: &str, at: Option<&At<Scalar>>) -> Option<Option<Setting>> {
        match at {
            Some(at) => self.required(field, at).map(Some),
            None => Some(None),
        }
    }
}

/// Reports a problem at a place, with the remedy.
pub fn note<T>(span: &Span, message: &str, help: &str, settings: &mut Settings<'_>) -> Option<T> {
    note_problem(span, message, help, settings.problems)
}

/// The same for a value that is not a setting.
pub fn note_problem<T>(
    span: &Span,
    message: &str,
    help: &str,
    problems: &mut Problems,
) -> Option<T> {
    problems.push(span.first_line().problem(message, "here").help(help));
    None
}
