//! The place of a variable, and its use in a template.

/// A variable's index in the variables of a workload.
pub type Slot = u16;

/// A variable that a template needs, and whether the template takes an entry of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// The variable.
    pub slot: Slot,
    /// True if the template takes an entry of its list.
    pub takes: bool,
}
