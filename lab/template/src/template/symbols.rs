//! Names that a template may use besides the built-in ones.

use crate::key::Key;
use crate::level::Parameters;
use crate::scope::Slot;

/// The names available in a request's template.
#[derive(Debug, Clone, Copy)]
pub struct Symbols<'a> {
    /// The workload's variables, by slot.
    pub variables: &'a [String],
    /// The workload's parameters: constants of its templates.
    pub parameters: &'a Parameters,
    /// The workload's keys.
    pub keys: &'a [Key],
    /// Whether the seed must determine all values, so that the time of day is an error.
    pub is_repeatable: bool,
}

impl<'a> Symbols<'a> {
    /// Creates symbols with these variables only.
    #[must_use]
    pub const fn new(variables: &'a [String]) -> Self {
        static NONE: Parameters = Parameters::new();
        Self {
            variables,
            parameters: &NONE,
            keys: &[],
            is_repeatable: false,
        }
    }

    /// Returns the slot of a variable.
    pub(super) fn slot(&self, name: &str) -> Option<Slot> {
        let at = self.variables.iter().position(|v| v == name)?;
        Slot::try_from(at).ok()
    }
}
