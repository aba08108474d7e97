//! Reports on invalid trials: why they are invalid, what was counted in them, what their CPU demand shows, and hints
//! for further study. No threshold, gate, or average reads any of it.

mod demand;
mod exploratory;
mod reasons;
mod seen;

pub(crate) use demand::demand;
pub(crate) use exploratory::exploratory;
pub(crate) use reasons::{cause, reasons, why};
pub(crate) use seen::seen;
