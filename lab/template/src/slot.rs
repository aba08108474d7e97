//! Where a variable lies, and what a template does with it.

/// A variable's place in the variables of a workload.
pub type Slot = u16;

/// A variable that a template can't be rendered without, and whether an entry of it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// Which variable.
    pub slot: Slot,
    /// True if the template takes an entry of its list.
    pub takes: bool,
}
