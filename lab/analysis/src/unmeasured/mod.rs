//! What is said of trials that are no measurements: why they are none, what was seen in them, what
//! their CPU demand shows, and where to look next. No threshold, gate, or average reads any of it.

mod demand;
mod exploratory;
mod reasons;
mod seen;

pub(crate) use demand::demand;
pub(crate) use exploratory::exploratory;
pub(crate) use reasons::{cause, reasons, why};
pub(crate) use seen::seen;
