//! Templates: text with `{{ … }}`, compiled once, rendered into the caller's buffer.
//!
//! The language is minijinja's. What requests are mostly made of (literal text, a variable, a call
//! of a function below with plain arguments) is compiled to pieces that render without an
//! allocation; every other expression, and any text with `{% … %}`, goes to minijinja itself.
//! It knows nothing of files (positions are offsets into the text) and nothing of HTTP.

mod escape;
mod function;
mod jinja;
mod parse;
mod piece;
mod profile;

use std::fmt;
use std::sync::Arc;

pub use escape::Escape;
pub use function::FUNCTIONS;
pub use jinja::FILTERS;

use crate::model::Cell;
use crate::scope::{Slot, UserScope};
use crate::text_error::TextError;
use piece::Piece;

/// The longest text that one template may render: a request body's limit.
pub const MAX_RENDERED_BYTES: usize = 64 * 1024 * 1024;

/// A compiled template. Cheap to clone.
#[derive(Clone)]
pub struct Template {
    source: Arc<str>,
    pieces: Arc<[Piece]>,
    /// Variables set before the text is rendered.
    sets: Arc<[(Slot, Template)]>,
}

impl Template {
    /// Compiles `text`; a variable outside `variables` (by slot) and `index`, `users` is an error.
    ///
    /// # Errors
    /// A [`TextError`] with the place in `text`.
    pub fn parse(text: &str, variables: &[String]) -> Result<Self, TextError> {
        Self::parse_escaped(text, variables, Escape::None)
    }

    /// As [`Template::parse`], with the way in which substituted values are escaped.
    ///
    /// # Errors
    /// As there.
    pub fn parse_escaped(
        text: &str,
        variables: &[String],
        escape: Escape,
    ) -> Result<Self, TextError> {
        let names = Names {
            variables,
            parameters: &Cell::new(),
        };
        Self::parse_named(text, names, escape)
    }

    /// As [`Template::parse_escaped`], knowing parameters, too.
    pub(crate) fn parse_named(
        text: &str,
        names: Names<'_>,
        escape: Escape,
    ) -> Result<Self, TextError> {
        Ok(Self::from_pieces(text, parse::pieces(text, names, escape)?))
    }

    /// Compiles a setting of a study, whose variables are the factors of its matrix.
    ///
    /// # Errors
    /// As there; functions of users are unknown here.
    pub(crate) fn parse_setting(text: &str, factors: &[String]) -> Result<Self, TextError> {
        Ok(Self::from_pieces(text, parse::setting(text, factors)?))
    }

    /// The text of a setting in a cell, or of one of a workload with its parameters.
    pub(crate) fn render_setting(&self, cell: &Cell) -> Result<String, RenderError> {
        let mut out = String::new();
        for piece in self.pieces.iter() {
            match piece {
                Piece::Jinja { expression, .. } => {
                    expression.render_with(jinja::values(cell), &mut out)?
                }
                Piece::Literal(text) => out.push_str(text),
                Piece::Plain { source, .. } => out.push_str(source),
            }
        }
        Ok(out)
    }

    /// A template that is `text` itself, whatever braces it holds.
    #[must_use]
    pub fn literal(text: &str) -> Self {
        Self::from_pieces(text, vec![Piece::Literal(text.into())])
    }

    fn from_pieces(source: &str, pieces: Vec<Piece>) -> Self {
        Self {
            source: source.into(),
            pieces: piece::merge_literals(pieces).into(),
            sets: Arc::from([]),
        }
    }

    /// One template after another, as one.
    pub(crate) fn concatenate(source: &str, parts: Vec<Template>) -> Self {
        let pieces = parts
            .iter()
            .flat_map(|part| part.pieces.iter().cloned())
            .collect();
        Self::from_pieces(source, pieces)
    }

    /// This template, after these variables are set.
    pub(crate) fn setting(mut self, sets: Vec<(Slot, Template)>) -> Self {
        self.sets = sets.into();
        self
    }

    /// True when every rendering gives the same text.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.as_literal().is_some()
    }

    /// The text, where every rendering gives the same.
    #[must_use]
    pub fn as_literal(&self) -> Option<&str> {
        match &*self.pieces {
            _ if !self.sets.is_empty() => None,
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// As written in the file.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Appends the rendered text to `out`. On an error `out` keeps what was written so far.
    ///
    /// # Errors
    /// [`RenderError::EmptyList`] when a list has no entry left: the step is to be skipped.
    pub fn render(&self, scope: &mut UserScope, out: &mut String) -> Result<(), RenderError> {
        for (slot, template) in self.sets.iter() {
            let mut value = String::new();
            template.render(scope, &mut value)?;
            scope.set_text(*slot, &value);
        }
        let start = out.len();
        for piece in self.pieces.iter() {
            piece.write(scope, out)?;
            if out.len() - start > MAX_RENDERED_BYTES {
                return Err(RenderError::TooLong {
                    template: self.source.to_string(),
                });
            }
        }
        Ok(())
    }
}

/// What a template of a request may name beside what is always there.
#[derive(Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The workload's variables, by slot.
    pub(crate) variables: &'a [String],
    /// The workload's parameters: constants of its templates.
    pub(crate) parameters: &'a Cell,
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.source).finish()
    }
}

impl PartialEq for Template {
    /// Equal when written alike.
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.sets == other.sets
    }
}

/// A template that can't be rendered for a user.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum RenderError {
    /// A list or captured value has no entry (left). The driver skips the step and counts it so.
    #[error("`{variable}` has no entry left")]
    EmptyList {
        /// The list's name.
        variable: String,
    },
    /// A value that another part of the program was to give is not there.
    #[error("there is no variable `{variable}`")]
    Unknown {
        /// Its name.
        variable: String,
    },
    /// A function or an operator can't work with its values.
    #[error("`{template}` can't be rendered: {cause}")]
    Failed {
        /// The expression, as written.
        template: String,
        /// Why.
        cause: String,
    },
    /// The text outgrows [`MAX_RENDERED_BYTES`].
    #[error("`{template}` renders to more than 64 MiB")]
    TooLong {
        /// The template, as written.
        template: String,
    },
}
