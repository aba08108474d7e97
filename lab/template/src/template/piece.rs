//! The compiled form of a template: literal text, plain expressions, and minijinja's.

use std::fmt::Write as _;
use std::sync::Arc;

use lab_filters::{Draw, Drawn, Escape, Filter};

use super::function::{self, Call, Outcome, Weights};
use super::jinja::{Jinja, Output};
use super::profile::Profile;
use crate::inputs::InputName;
use crate::render_error::RenderError;
use crate::scope::{Slot, UserScope};
use crate::slot::Use;

/// One stretch of a template.
#[derive(Clone)]
pub(super) enum Piece {
    Literal(Box<str>),
    Plain {
        source: Box<str>,
        expression: Plain,
        escape: Escape,
    },
    Jinja {
        expression: Arc<Jinja>,
        escape: Escape,
    },
}

/// An expression that renders without minijinja.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plain {
    Variable(Slot),
    Index,
    Users,
    Round,
    Cycle,
    Number(i64),
    Text(Box<str>),
    Take(Slot),
    Pick(Slot),
    Numbers(Call, Box<[Plain]>),
    Profile(Arc<Profile>),
    Weighted(Arc<Weights>),
    Draw(Draw),
    Given {
        name: Box<str>,
        secret: bool,
    },
    Time {
        format: Box<str>,
        offset: Option<Box<str>>,
    },
    /// The next number of this counter.
    Next(Box<str>),
    Key(Box<str>),
    /// Concatenated values; none gives bytes.
    Joined(Box<[Plain]>),
    Filtered(Box<Filtered>),
}

/// A value with filters, each with its key if it takes one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Filtered {
    pub(super) of: Plain,
    pub(super) filters: Box<[(Filter, Option<Plain>)]>,
}

impl Piece {
    pub(super) fn write(&self, scope: &mut UserScope, out: &mut String) -> Result<(), RenderError> {
        match self {
            Self::Literal(text) => out.push_str(text),
            Self::Plain {
                source,
                expression,
                escape,
            } => {
                let start = out.len();
                match expression.write(source, scope, out)? {
                    Outcome::Number(number) => {
                        // Digits need no escape, and writing to a string can't fail.
                        let _ = write!(out, "{number}");
                    }
                    Outcome::Json if *escape == Escape::JsonValue => {}
                    Outcome::Text | Outcome::Json => escape.apply(out, start),
                }
            }
            Self::Jinja { expression, escape } => {
                let start = out.len();
                match (expression.render(scope, out)?, *escape) {
                    (Output::Json, Escape::JsonValue) => {}
                    _ => escape.apply(out, start),
                }
            }
        }
        Ok(())
    }
}

impl Plain {
    /// Adds the environment variables that it uses.
    pub(super) fn inputs(&self, asked: &mut Vec<InputName>) {
        match self {
            Self::Given { name, secret } => asked.push(InputName {
                name: name.to_string(),
                secret: *secret,
            }),
            _ => self.parts().for_each(|one| one.inputs(asked)),
        }
    }

    /// Adds the counters that it uses.
    pub(super) fn counters(&self, counters: &mut Vec<String>) {
        match self {
            Self::Next(name) => counters.push(name.to_string()),
            _ => self.parts().for_each(|one| one.counters(counters)),
        }
    }

    /// Returns its parts.
    pub(super) fn parts(&self) -> impl Iterator<Item = &Self> {
        let (parts, filtered) = match self {
            Self::Numbers(_, parts) | Self::Joined(parts) => (&parts[..], None),
            Self::Filtered(filtered) => (&[][..], Some(filtered)),
            _ => (&[][..], None),
        };
        let filtered = filtered.into_iter().flat_map(|filtered| {
            let keys = filtered.filters.iter().filter_map(|(_, key)| key.as_ref());
            std::iter::once(&filtered.of).chain(keys)
        });
        parts.iter().chain(filtered)
    }

    /// Returns true if its value is a text or a number, and never bytes.
    pub(super) fn gives_text(&self) -> bool {
        match self {
            Self::Filtered(filtered) => {
                let last = filtered.filters.last();
                last.is_none_or(|(filter, _)| filter.gives_text())
            }
            Self::Key(_) => false,
            _ => true,
        }
    }

    /// Adds the variables that it needs.
    pub(super) fn uses(&self, uses: &mut Vec<Use>) {
        let mut noted = |slot: &Slot, takes| uses.push(Use { slot: *slot, takes });
        match self {
            Self::Variable(slot) | Self::Pick(slot) => noted(slot, false),
            Self::Take(slot) => noted(slot, true),
            _ => self.parts().for_each(|one| one.uses(uses)),
        }
    }

    /// Returns its value as input of filters.
    fn bytes(&self, source: &str, scope: &mut UserScope) -> Result<Vec<u8>, RenderError> {
        if let Self::Filtered(filtered) = self {
            return filtered.bytes(source, scope);
        }
        if let Self::Key(name) = self {
            return scope.key(name).map_err(|cause| RenderError::Failed {
                template: source.to_owned(),
                cause,
            });
        }
        let mut text = String::new();
        self.write_text(source, scope, &mut text)?;
        Ok(text.into_bytes())
    }

    fn write_text(
        &self,
        source: &str,
        scope: &mut UserScope,
        out: &mut String,
    ) -> Result<(), RenderError> {
        if let Outcome::Number(number) = self.write(source, scope, out)? {
            // Writing to a string can't fail.
            let _ = write!(out, "{number}");
        }
        Ok(())
    }

    fn write(
        &self,
        source: &str,
        scope: &mut UserScope,
        out: &mut String,
    ) -> Result<Outcome, RenderError> {
        let failed = |cause| RenderError::Failed {
            template: source.to_owned(),
            cause,
        };
        let found = match self {
            Self::Index => return Ok(Outcome::Number(i64::from(scope.index()))),
            Self::Users => return Ok(Outcome::Number(i64::from(scope.users()))),
            Self::Round => return Ok(Outcome::Number(i64::from(scope.round()))),
            Self::Cycle => return Ok(Outcome::Number(scope.cycle() as i64)),
            Self::Profile(profile) => return Ok(Outcome::Number(profile.draw(scope) as i64)),
            Self::Weighted(weights) => {
                out.push_str(function::weighted(weights, scope));
                return Ok(Outcome::Text);
            }
            Self::Draw(draw) => return Ok(write_drawn(function::draw(draw, scope), out)),
            Self::Number(number) => return Ok(Outcome::Number(*number)),
            Self::Numbers(call, arguments) => {
                return call_plain(*call, arguments, source, scope, out);
            }
            Self::Text(text) => {
                out.push_str(text);
                return Ok(Outcome::Text);
            }
            Self::Given { name, secret } => {
                let given = scope.write_given(name, *secret, out);
                return given.map(|()| Outcome::Text).map_err(failed);
            }
            Self::Time { format, offset } => {
                let text = function::now_text(scope.now_us(), format, offset.as_deref());
                out.push_str(&text.map_err(|cause| failed(invalid(&cause)))?);
                return Ok(Outcome::Text);
            }
            Self::Next(counter) => {
                let number = scope.next_number(counter);
                return number.map(Outcome::Number).map_err(failed);
            }
            // The parser only accepts keys in filters.
            Self::Key(name) => return Err(failed(format!("the key `{name}` is no text"))),
            Self::Joined(parts) => {
                join(parts, source, scope, out)?;
                return Ok(Outcome::Text);
            }
            Self::Filtered(filtered) => {
                let bytes = filtered.bytes(source, scope)?;
                let text = String::from_utf8(bytes);
                // The last filter gives a text; otherwise minijinja evaluates the expression.
                out.push_str(&text.map_err(|error| failed(error.to_string()))?);
                return Ok(Outcome::Text);
            }
            Self::Variable(slot) => (slot, scope.write(*slot, out)),
            Self::Take(slot) => (slot, scope.take(*slot, out)),
            Self::Pick(slot) => (slot, scope.pick(*slot, out)),
        };
        let (slot, kind) = found;
        kind.map(Outcome::from).ok_or_else(|| scope.missing(*slot))
    }
}

/// Writes a number in minijinja's format.
fn write_drawn(drawn: Drawn, out: &mut String) -> Outcome {
    match drawn {
        Drawn::Whole(number) => Outcome::Number(number),
        Drawn::Real(number) => {
            // Writing to a string can't fail.
            let _ = write!(out, "{}", minijinja::Value::from(number));
            Outcome::Json
        }
    }
}

/// Returns minijinja's message for a failed function or filter of this crate.
fn invalid(cause: &str) -> String {
    format!("invalid operation: {cause}")
}

/// Writes values in sequence. As in minijinja, the first two are evaluated before a missing one is reported.
fn join(
    parts: &[Plain],
    source: &str,
    scope: &mut UserScope,
    out: &mut String,
) -> Result<(), RenderError> {
    let mut missing = None;
    for (i, part) in parts.iter().enumerate() {
        match part.write_text(source, scope, out) {
            Ok(()) => {}
            Err(error) if i == 0 && matches!(part, Plain::Variable(_)) => missing = Some(error),
            Err(error) if matches!(part, Plain::Variable(_)) => {
                return Err(missing.unwrap_or(error));
            }
            Err(error) => return Err(error),
        }
        if i > 0
            && let Some(error) = missing.take()
        {
            return Err(error);
        }
    }
    Ok(())
}

impl Filtered {
    /// Returns the filtered value. As in minijinja, a key is evaluated before its filter reports a missing value.
    fn bytes(&self, source: &str, scope: &mut UserScope) -> Result<Vec<u8>, RenderError> {
        let mut value = self.of.bytes(source, scope);
        for (filter, key) in &self.filters {
            let is_missing = matches!(self.of, Plain::Variable(_));
            if let (Err(_), false) = (&value, is_missing) {
                return value;
            }
            let key = match key {
                None => Ok(Vec::new()),
                Some(key) => match key.bytes(source, scope) {
                    Err(error) if !matches!(key, Plain::Variable(_)) => return Err(error),
                    key => key,
                },
            };
            let input = value?;
            let mut out = Vec::new();
            let applied = filter.apply(&input, &key?, &mut out);
            applied.map_err(|cause| RenderError::Failed {
                template: source.to_owned(),
                cause: invalid(&cause),
            })?;
            value = Ok(out);
        }
        value
    }
}

fn call_plain(
    call: Call,
    arguments: &[Plain],
    source: &str,
    scope: &mut UserScope,
    out: &mut String,
) -> Result<Outcome, RenderError> {
    let failed = |cause| RenderError::Failed {
        template: source.to_owned(),
        cause,
    };
    let numbers = match evaluate(arguments, source, scope)? {
        Ok(numbers) => numbers,
        Err(cause) => return Err(failed(cause)),
    };
    function::call_numbers(call, &numbers, scope, out).map_err(failed)
}

/// Returns the arguments as whole numbers, or why one isn't.
///
/// As in minijinja, all are evaluated before any is checked, and a failed call within them ends the evaluation. A
/// variable without a value takes precedence over an invalid number: the step is skipped.
fn evaluate(
    arguments: &[Plain],
    source: &str,
    scope: &mut UserScope,
) -> Result<Result<[i64; 2], String>, RenderError> {
    let mut numbers = [0i64; 2];
    let (mut missing, mut unfit) = (None, None);
    for (number, argument) in numbers.iter_mut().zip(arguments) {
        let mut text = String::new();
        match argument.write(source, scope, &mut text) {
            Ok(Outcome::Number(value)) => *number = value,
            Ok(Outcome::Text | Outcome::Json) => match function::whole_number(&text) {
                Ok(value) => *number = value,
                Err(cause) => unfit = unfit.or(Some(cause)),
            },
            Err(error) if matches!(argument, Plain::Variable(_)) => {
                missing = missing.or(Some(error));
            }
            Err(error) => return Err(error),
        }
    }
    match (missing, unfit) {
        (Some(error), _) => Err(error),
        (None, Some(cause)) => Ok(Err(cause)),
        (None, None) => Ok(Ok(numbers)),
    }
}

/// Joins neighbouring literals and drops empty ones.
pub(super) fn merge_literals(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut merged = Vec::with_capacity(pieces.len());
    let mut literal = String::new();
    for piece in pieces {
        if let Piece::Literal(text) = piece {
            literal.push_str(&text);
            continue;
        }
        if !literal.is_empty() {
            merged.push(Piece::Literal(std::mem::take(&mut literal).into()));
        }
        merged.push(piece);
    }
    if !literal.is_empty() {
        merged.push(Piece::Literal(literal.into()));
    }
    merged
}
