//! What a trial does to the machine of its system: folders for its data, programs started, watched, and stopped, their
//! output within bounds. The conductor uses a [`Machine`], local or remote. It knows no load.
//!
//! # Invariants
//! - A started process never outlives its parent, however the parent ends.
//! - Each trial has a fresh folder, removed with the trial; the next run removes the remains of a killed run.
//! - An agent starts, writes, and sets only what the file of its owner allows, whatever it receives. When the
//!   conductor's connection is lost, the agent stops its system and restores its machine.
//! - A failed system is reported in words, with its last lines; only what prevents all trials is an error.

mod afar;
mod allow;
mod asking;
mod child;
mod command;
mod error;
mod ground;
mod hands;
pub mod http;
mod local;
mod machine;
mod message;
pub mod output;
mod preparing;
pub mod programs;
mod readiness;
mod runner;
mod schedule;
pub mod scratch;
mod site;
mod start;
mod state;
mod station;
mod surroundings;
mod together;
mod watched;

pub use afar::Afar;
pub use allow::Allowed;
pub use asking::{Asker, Asking};
pub use error::{Failed, MachineError};
pub use hands::{Beside, Hand, both};
pub use local::Local;
pub use machine::{Counted, Counts, Machine, Row, Started};
pub use message::{Setup, Unreadable, check};
pub use preparing::command;
pub use runner::{PREPARES, Runner};
pub use schedule::next_due;
pub use site::put_back;
pub use start::{Setting, Start, local};
pub use state::starting_state;
pub use station::Station;
pub use surroundings::{Look, Surroundings, used};
pub use together::together;
pub use watched::Watched;
