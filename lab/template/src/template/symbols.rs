//! The names that a template may use beside those that are always there.

use crate::key::Key;
use crate::level::Parameters;
use crate::scope::Slot;

/// What a template of a request may name.
#[derive(Debug, Clone, Copy)]
pub struct Symbols<'a> {
    /// The workload's variables, by slot.
    pub variables: &'a [String],
    /// The workload's parameters: constants of its templates.
    pub parameters: &'a Parameters,
    /// The workload's keys.
    pub keys: &'a [Key],
    /// Whether the seed is to fix all that there is, so that the time of day is an error.
    pub is_repeatable: bool,
}

impl<'a> Symbols<'a> {
    /// These variables, and nothing else.
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

    /// The slot of a variable.
    pub(super) fn slot(&self, name: &str) -> Option<Slot> {
        let at = self.variables.iter().position(|v| v == name)?;
        Slot::try_from(at).ok()
    }
}
