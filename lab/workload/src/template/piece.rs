//! The compiled form of a template: literal text, plain expressions, and minijinja's.

use std::fmt::Write as _;
use std::sync::Arc;

use super::escape::Escape;
use super::function::{self, Call, Outcome};
use super::jinja::{Jinja, Output};
use super::profile::Profile;
use crate::given::Asked;
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
    Given { name: Box<str>, secret: bool },
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
                    Outcome::Text => escape.apply(out, start),
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
    /// Notes what it asks of the environment.
    pub(super) fn asked(&self, asked: &mut Vec<Asked>) {
        match self {
            Self::Given { name, secret } => asked.push(Asked {
                name: name.to_string(),
                secret: *secret,
            }),
            Self::Numbers(_, arguments) => arguments.iter().for_each(|one| one.asked(asked)),
            _ => {}
        }
    }

    /// Notes which variables it can't do without.
    pub(super) fn uses(&self, uses: &mut Vec<Use>) {
        let mut noted = |slot: &Slot, takes| uses.push(Use { slot: *slot, takes });
        match self {
            Self::Variable(slot) | Self::Pick(slot) => noted(slot, false),
            Self::Take(slot) => noted(slot, true),
            Self::Numbers(_, arguments) => arguments.iter().for_each(|one| one.uses(uses)),
            _ => {}
        }
    }

    fn write(
        &self,
        source: &str,
        scope: &mut UserScope,
        out: &mut String,
    ) -> Result<Outcome, RenderError> {
        let found = match self {
            Self::Index => return Ok(Outcome::Number(i64::from(scope.index()))),
            Self::Users => return Ok(Outcome::Number(i64::from(scope.users()))),
            Self::Round => return Ok(Outcome::Number(i64::from(scope.round()))),
            Self::Cycle => return Ok(Outcome::Number(scope.cycle() as i64)),
            Self::Profile(profile) => return Ok(Outcome::Number(profile.draw(scope) as i64)),
            Self::Number(number) => return Ok(Outcome::Number(*number)),
            Self::Numbers(call, arguments) => {
                return call_plain(*call, arguments, source, scope, out);
            }
            Self::Text(text) => {
                out.push_str(text);
                true
            }
            Self::Given { name, secret } => {
                let given = scope.write_given(name, *secret, out);
                return given
                    .map(|()| Outcome::Text)
                    .map_err(|cause| RenderError::Failed {
                        template: source.to_owned(),
                        cause,
                    });
            }
            Self::Variable(slot) => scope.write(*slot, out),
            Self::Take(slot) => scope.take(*slot, out),
            Self::Pick(slot) => scope.pick(*slot, out),
        };
        match self {
            Self::Variable(slot) | Self::Take(slot) | Self::Pick(slot) if !found => {
                Err(scope.missing(*slot))
            }
            _ => Ok(Outcome::Text),
        }
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

/// The arguments as whole numbers, or why one isn't.
///
/// As in minijinja, all are evaluated before any is judged, and a call within that fails ends it all.
/// A variable without a value matters more than another that is no number: the step is skipped.
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
            Ok(Outcome::Text) => match function::whole_number(&text) {
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
