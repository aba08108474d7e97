//! A setting in raw form, and its value in one cell.

use lab_template::level::Parameters as Cell;
use lab_template::template::Template;

use crate::parts::{At, Scalar};
use crate::text_error::TextError;

/// A setting as written: its key, its text, and its place.
#[derive(Debug, Clone)]
pub struct Setting {
    /// The key in the file.
    pub field: String,
    /// The text, compiled.
    pub template: Template,
    /// The raw text, with its place.
    pub at: At<Scalar>,
}

/// A setting that is invalid in a cell.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("`{field}` is `{text}`: {cause}")]
pub struct CellError {
    /// The key in the file.
    pub field: String,
    /// Its text in the cell.
    pub text: String,
    /// What is wrong with it.
    pub cause: TextError,
    /// The raw text, with its place.
    pub at: Box<At<Scalar>>,
}

impl Setting {
    /// Returns the value in `cell`.
    ///
    /// # Errors
    /// A text that can't be rendered in the cell, or that `parse` rejects.
    pub fn value<T>(
        &self,
        cell: &Cell,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<T, CellError> {
        let error = |text: &str, cause: TextError| CellError {
            field: self.field.clone(),
            text: text.to_owned(),
            cause,
            at: Box::new(self.at.clone()),
        };
        let source = self.template.source();
        let text = self
            .template
            .render_setting(cell)
            .map_err(|cause| error(source, TextError::new(cause.to_string(), 0..source.len())))?;
        parse(&text).map_err(|cause| error(&text, cause))
    }
}

/// A setting that may be absent.
pub trait Optional {
    /// Returns the value in `cell`, if the setting is present.
    ///
    /// # Errors
    /// As [`Setting::value`].
    fn value<T>(
        &self,
        cell: &Cell,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<Option<T>, CellError>;
}

impl Optional for Option<Setting> {
    fn value<T>(
        &self,
        cell: &Cell,
        parse: impl FnOnce(&str) -> Result<T, TextError>,
    ) -> Result<Option<T>, CellError> {
        self.as_ref().map(|s| s.value(cell, parse)).transpose()
    }
}
