//! Values that the seed doesn't determine: the time of day, signatures with a random part, numbers of counters, and
//! variables with any of them.

use std::collections::BTreeSet;
use std::ops::Range;

use super::function::{self, Kind};
use super::token::{Token, TokenKind, mark, words};
use crate::slot::Slot;

/// The variables with values that the seed doesn't determine.
pub struct Unseeded<'a> {
    variables: &'a [String],
    held: BTreeSet<Slot>,
}

impl<'a> Unseeded<'a> {
    /// Creates an empty set.
    pub fn new(variables: &'a [String]) -> Self {
        Self {
            variables,
            held: BTreeSet::new(),
        }
    }

    /// Adds a variable.
    pub fn hold(&mut self, slot: Slot) {
        self.held.insert(slot);
    }

    /// Returns true if an expression, or a text with statements, has any.
    pub(super) fn is_in(&self, source: &str, is_text: bool) -> bool {
        let tokens = words(source, is_text);
        (0..tokens.len()).any(|at| self.is_at(&tokens, at))
    }

    fn is_at(&self, tokens: &[Token], at: usize) -> bool {
        let token = &tokens[at];
        if token.kind != TokenKind::Name {
            return false;
        }
        if !mark(tokens, at + 1, "(") {
            let place = self.variables.iter().position(|name| name == token.text);
            let slot = place.and_then(|place| Slot::try_from(place).ok());
            return slot.is_some_and(|slot| self.held.contains(&slot));
        }
        moment(tokens, at).is_some()
    }
}

/// Returns the value of the call at this place that the seed doesn't determine: its place, the error if all must be
/// repeatable, and the alternative.
pub(super) fn moment(tokens: &[Token], at: usize) -> Option<(Range<usize>, String, &'static str)> {
    let token = &tokens[at];
    if token.kind != TokenKind::Name || !mark(tokens, at + 1, "(") {
        return None;
    }
    let place = token.at..token.at + token.text.len();
    let name = token.text;
    if function::find(name).is_some_and(function::Function::is_of_the_clock) {
        let message = format!("`{name}` gives the time of day, which the seed doesn't repeat");
        let help = "send a constant, or leave out `repeatable`";
        return Some((place, message, help));
    }
    if function::find(name).is_some_and(|one| one.kind == Kind::Counter) {
        let message =
            format!("`{name}` gives whatever number is next, which the seed doesn't repeat");
        let help = "`index + cycle * users` is repeatable; or leave out `repeatable`";
        return Some((place, message, help));
    }
    let is_random = name == "jwt" && is_signed_at_random(&tokens[at..]);
    is_random.then(|| {
        let message = "this signature has a random part, which the seed doesn't repeat".to_owned();
        let help = "`EdDSA`, `RS256`, and `HS256` have none; or leave out `repeatable`";
        (place, message, help)
    })
}

/// Returns true if a call of `jwt` names an algorithm with a random part.
fn is_signed_at_random(call: &[Token]) -> bool {
    let quoted = |token: &&Token| token.kind == TokenKind::Text;
    let mut texts = call
        .iter()
        .filter(quoted)
        .map(|token| token.text.trim_matches(['\'', '"']));
    texts.any(lab_filters::is_random)
}
