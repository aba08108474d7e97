//! Settings of a study as templates, each with its place.

use lab_language::{Problems, Setting, Span};
use lab_workload::Template;

use crate::file::{At, Scalar};

/// Makes settings of texts that may name `known`.
pub(super) struct Settings<'a> {
    pub(super) known: &'a [String],
    pub(super) problems: &'a mut Problems,
}

impl Settings<'_> {
    /// The setting; `None` when a problem was noted.
    pub(super) fn required(&mut self, field: &str, at: &At<Scalar>) -> Option<Setting> {
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
    pub(super) fn optional(
        &mut self,
        field: &str,
        at: Option<&At<Scalar>>,
    ) -> Option<Option<Setting>> {
        match at {
            Some(at) => self.required(field, at).map(Some),
            None => Some(None),
        }
    }
}

/// Reports a problem at a place, with the remedy.
pub(super) fn note<T>(
    span: &Span,
    message: &str,
    help: &str,
    settings: &mut Settings<'_>,
) -> Option<T> {
    note_problem(span, message, help, settings.problems)
}

/// The same for a value that is not a setting.
pub(super) fn note_problem<T>(
    span: &Span,
    message: &str,
    help: &str,
    problems: &mut Problems,
) -> Option<T> {
    problems.push(span.first_line().problem(message, "here").help(help));
    None
}
