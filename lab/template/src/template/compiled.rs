//! A compiled template: its pieces, and its source.

use std::fmt;
use std::sync::Arc;

use lab_filters::Escape;

use super::error::TemplateError;
use super::part::{self, Part};
use super::piece::{self, Piece};
use super::symbols::Symbols;
use super::unseeded::Unseeded;
use super::{parse, token, value};
use crate::inputs::InputName;
use crate::level::Parameters;
use crate::render_error::{MAX_RENDERED_BYTES, RenderError};
use crate::scope::{Slot, UserScope};
use crate::slot::Use;

/// A compiled template. Cheap to clone.
#[derive(Clone)]
pub struct Template {
    /// The text for errors.
    text: Arc<str>,
    pieces: Arc<[Piece]>,
    /// Variables set before the text is rendered.
    sets: Arc<[(Slot, Template)]>,
    /// The source of the compilation.
    parts: Arc<[Part]>,
}

impl Template {
    /// Compiles `text`; a variable other than `variables` (by slot), `index`, and `users` is an error.
    ///
    /// # Errors
    /// A [`TemplateError`] with the place in `text`.
    pub fn parse(text: &str, variables: &[String]) -> Result<Self, TemplateError> {
        Self::parse_escaped(text, variables, Escape::None)
    }

    /// As [`Template::parse`], with the escaping of substituted values.
    ///
    /// # Errors
    /// As there.
    pub fn parse_escaped(
        text: &str,
        variables: &[String],
        escape: Escape,
    ) -> Result<Self, TemplateError> {
        let symbols = Symbols::new(variables);
        Self::parse_with(text, symbols, escape)
    }

    /// As [`Template::parse_escaped`], with parameters.
    ///
    /// # Errors
    /// As there.
    pub fn parse_with(
        text: &str,
        symbols: Symbols<'_>,
        escape: Escape,
    ) -> Result<Self, TemplateError> {
        let pieces = parse::pieces(text, symbols, escape)?;
        Ok(Self::new(text, pieces, vec![Part::code(text, escape)]))
    }

    /// Compiles a condition: one expression, in which values are numbers, booleans, texts, or lists, as they read. See
    /// [`Template::holds`].
    ///
    /// # Errors
    /// As there.
    pub fn condition(text: &str, symbols: Symbols<'_>) -> Result<Self, TemplateError> {
        Self::parse_with(text, symbols, Escape::Condition)
    }

    /// Returns true if a condition holds. A condition that needs a missing value doesn't hold.
    ///
    /// # Errors
    /// As for [`Template::render`].
    pub fn holds(&self, scope: &mut UserScope) -> Result<bool, RenderError> {
        let mut text = String::new();
        self.render(scope, &mut text)?;
        Ok(text == "true")
    }

    /// Compiles a setting of a study, whose variables are the factors of its matrix.
    ///
    /// # Errors
    /// As there; functions of users are unknown here.
    pub fn parse_setting(text: &str, factors: &[String]) -> Result<Self, TemplateError> {
        let pieces = parse::setting(text, factors)?;
        Ok(Self::new(text, pieces, Vec::new()))
    }

    /// Returns the text of a setting with these levels of its factors, or of a workload's setting with its parameters.
    ///
    /// # Errors
    /// An expression that rejects these values.
    pub fn render_setting(&self, levels: &Parameters) -> Result<String, RenderError> {
        let mut out = String::new();
        for piece in self.pieces.iter() {
            match piece {
                Piece::Jinja { expression, .. } => {
                    expression.render_with(value::values(levels), &mut out)?
                }
                Piece::Literal(text) => out.push_str(text),
                Piece::Plain { source, .. } => out.push_str(source),
            }
        }
        Ok(out)
    }

    /// Creates a template of exactly `text`, including any braces.
    #[must_use]
    pub fn literal(text: &str) -> Self {
        let pieces = vec![Piece::Literal(text.into())];
        Self::new(text, pieces, vec![Part::literal(text)])
    }

    fn new(text: &str, pieces: Vec<Piece>, parts: Vec<Part>) -> Self {
        Self {
            text: text.into(),
            pieces: piece::merge_literals(pieces).into(),
            sets: Arc::from([]),
            parts: parts.into(),
        }
    }

    /// Concatenates templates to one.
    #[must_use]
    pub fn concatenate(templates: &[Self]) -> Self {
        let text: String = templates.iter().map(Self::source).collect();
        let pieces = templates.iter().flat_map(|t| t.pieces.iter().cloned());
        let parts = templates.iter().flat_map(|t| t.parts.iter().cloned());
        Self::new(&text, pieces.collect(), part::merge_literals(parts))
    }

    /// Returns this template, after these variables are set.
    #[must_use]
    pub fn setting(mut self, sets: Vec<(Slot, Self)>) -> Self {
        self.sets = sets.into();
        self
    }

    /// Returns true if every rendering gives the same text.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.as_literal().is_some()
    }

    /// Returns the text, if every rendering gives the same.
    #[must_use]
    pub fn as_literal(&self) -> Option<&str> {
        match &*self.pieces {
            _ if !self.sets.is_empty() => None,
            [] => Some(""),
            [Piece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the text as written in the file.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.text
    }

    /// Returns true if its code has this word: `body_sha256` isn't `body`, and quoted text is no code.
    #[must_use]
    pub fn names(&self, word: &str) -> bool {
        let words = token::words(&self.text, true);
        words.iter().any(|one| one.text == word)
    }

    /// Adds the environment variables that it uses.
    pub fn inputs(&self, asked: &mut Vec<InputName>) {
        for piece in self.pieces.iter() {
            match piece {
                Piece::Literal(_) => {}
                Piece::Plain { expression, .. } => expression.inputs(asked),
                Piece::Jinja { expression, .. } => parse::inputs(expression, asked),
            }
        }
        self.sets
            .iter()
            .for_each(|(_, template)| template.inputs(asked));
    }

    /// Adds the counters that it uses.
    pub fn counters(&self, counters: &mut Vec<String>) {
        for piece in self.pieces.iter() {
            match piece {
                Piece::Literal(_) => {}
                Piece::Plain { expression, .. } => expression.counters(counters),
                Piece::Jinja { expression, .. } => parse::counters(expression, counters),
            }
        }
        self.sets
            .iter()
            .for_each(|(_, template)| template.counters(counters));
    }

    /// Returns true if the seed doesn't determine its value. Adds variables that it sets to such a value.
    pub fn is_unseeded(&self, unseeded: &mut Unseeded<'_>) -> bool {
        for (slot, template) in self.sets.iter() {
            if template.is_unseeded(unseeded) {
                unseeded.hold(*slot);
            }
        }
        self.pieces.iter().any(|piece| match piece {
            Piece::Literal(_) => false,
            Piece::Plain { source, .. } => unseeded.is_in(source, false),
            Piece::Jinja { expression, .. } => {
                unseeded.is_in(expression.source(), expression.is_text())
            }
        })
    }

    /// Adds the variables that it needs, in the order of their use; none for expressions of minijinja, which may work
    /// without them.
    pub fn uses(&self, uses: &mut Vec<Use>) {
        self.sets
            .iter()
            .for_each(|(_, template)| template.uses(uses));
        for piece in self.pieces.iter() {
            if let Piece::Plain { expression, .. } = piece {
                expression.uses(uses);
            }
        }
    }

    /// Returns the parts that it was compiled from.
    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the variables set before the text is rendered.
    pub fn sets(&self) -> &[(Slot, Self)] {
        &self.sets
    }

    /// Appends the rendered text to `out`. On an error `out` keeps the text written so far.
    ///
    /// # Errors
    /// [`RenderError::EmptyList`] when a list has no entry left: the caller skips the step.
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
                    template: self.text.to_string(),
                });
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.text).finish()
    }
}

impl PartialEq for Template {
    /// Templates are equal if their sources are.
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts && self.text == other.text && self.sets == other.sets
    }
}
