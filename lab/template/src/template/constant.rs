//! Detects expressions that fail for every user, when a file is read and not during a trial.

use super::function::{self, Call, FUNCTIONS, Kind};
use super::jinja::{GLOBALS, Jinja};
use super::piece::Plain;
use crate::level::Parameters;
use crate::render_error::RenderError;
use crate::scope::UserScope;

/// Maximum size that is parsed for a hint.
const MAX_SIZE: u64 = 1 << 40;

/// Why an expression fails each time.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) cause: String,
    pub(super) help: Option<String>,
}

/// Returns why a call with constant values fails each time, such as `int_in(5, 1)` or `text_of_size('2 KB')`.
pub(super) fn plain(expression: &Plain) -> Option<Fault> {
    let Plain::Numbers(call, arguments) = expression else {
        return None;
    };
    if let Some(fault) = arguments.iter().find_map(plain) {
        return Some(fault);
    }
    let mut numbers = Some(Vec::with_capacity(arguments.len()));
    for argument in arguments {
        let number = match argument {
            Plain::Number(number) => Some(*number),
            Plain::Text(text) => match function::whole_number(text) {
                Ok(number) => Some(number),
                Err(cause) => return Some(no_number(*call, text, cause)),
            },
            _ => None,
        };
        numbers = numbers.zip(number).map(|(mut numbers, number)| {
            numbers.push(number);
            numbers
        });
    }
    let mut scope = UserScope::default();
    let called = function::call_numbers(*call, &numbers?, &mut scope, &mut String::new());
    called.err().map(|cause| Fault { cause, help: None })
}

/// Returns true if an expression has the same value for every user.
pub(super) fn is_constant(expression: &Plain) -> bool {
    let same = |call: &Call| {
        FUNCTIONS
            .iter()
            .any(|one| one.call == *call && gives_the_same(one))
    };
    match expression {
        Plain::Number(_) | Plain::Text(_) => true,
        Plain::Numbers(call, _) if !same(call) => false,
        Plain::Numbers(..) | Plain::Joined(_) | Plain::Filtered(_) => {
            expression.parts().all(is_constant)
        }
        _ => false,
    }
}

/// Returns the fault of a text that is no number where one is needed; often a size with its unit.
fn no_number(call: Call, text: &str, cause: String) -> Fault {
    let size = lab_filters::size(text, MAX_SIZE).ok();
    let help = size
        .filter(|_| call == Call::TextOfSize)
        .map(|bytes| format!("a size is a number of bytes here: `text_of_size({bytes})`"));
    Fault { cause, help }
}

/// Returns why an expression without user data fails each time.
pub(super) fn jinja(compiled: &Jinja, parameters: &Parameters) -> Option<Fault> {
    let is_constant = |name: &String| {
        GLOBALS.contains(&name.as_str())
            || parameters.contains_key(name)
            || function::find(name).is_some_and(gives_the_same)
    };
    if !compiled.undeclared().iter().all(is_constant) {
        return None;
    }
    match compiled.render(&mut UserScope::default(), &mut String::new()) {
        Err(RenderError::Failed { cause, .. }) => Some(Fault { cause, help: None }),
        _ => None,
    }
}

/// Returns true if a function works for every user, or for none.
fn gives_the_same(function: &function::Function) -> bool {
    let varies = function.draws() || function.is_of_the_clock() || function.call == Call::Neighbour;
    matches!(function.kind, Kind::Numbers(_)) && !varies
}
