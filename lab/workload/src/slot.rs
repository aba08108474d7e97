//! Where a variable lies.

/// A variable's place in [`crate::Workload::variables`].
pub type Slot = u16;
