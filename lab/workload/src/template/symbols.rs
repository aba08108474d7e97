//! The names that a template may use beside those that are always there.

use crate::level::Parameters;
use crate::scope::Slot;

/// What a template of a request may name.
#[derive(Debug, Clone, Copy)]
pub struct Symbols<'a> {
    /// The workload's variables, by slot.
    pub variables: &'a [String],
    /// The workload's parameters: constants of its templates.
    pub parameters: &'a Parameters,
}

impl Symbols<'_> {
    /// The slot of a variable.
    pub(super) fn slot(&self, name: &str) -> Option<Slot> {
        let at = self.variables.iter().position(|v| v == name)?;
        Slot::try_from(at).ok()
    }
}
