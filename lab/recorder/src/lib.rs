//! What the workers of a driver record and report: attempts in windows of time, examples of errors, and the events of a
//! trial. Time is an argument.

pub mod event;
mod examples;
pub mod recorder;
pub mod report;
mod script;

pub use examples::Examples;
pub use script::ScriptNote;
