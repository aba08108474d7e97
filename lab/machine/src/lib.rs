//! What a trial does to the machine of its system: folders for its data, programs started, watched, and stopped, their
//! output within bounds. The conductor uses a [`Machine`], local or remote. It knows no load.
//!
//! # Invariants
//! - A started process never outlives its parent, however the parent ends.
//! - Each trial has a fresh folder, removed with the trial; the next run removes the remains of a killed run.
//! - An agent starts, writes, and sets only what the file of its owner allows, whatever it receives. When the
//!   conductor's connection is lost, the agent stops its system and restores its machine.
//! - A failed system is reported in words, with its last lines; only what prevents all trials is an error.

mod allow;
mod asking;
mod attached;
mod child;
mod command;
mod environment;
mod error;
mod host_session;
pub mod http;
mod local;
mod machine;
mod message;
pub mod output;
mod preparing;
pub mod programs;
pub mod raw;
mod readiness;
mod remote;
mod runner;
mod schedule;
pub mod scratch;
mod slots;
mod start;
mod state;
mod supervisor;
mod together;
mod workspace;

pub use allow::Allowed;
pub use asking::{Asker, Asking};
pub use attached::AttachedProcess;
pub use environment::{HostReadings, ProgramSnapshot, used};
pub use error::{Failed, MachineError};
pub use host_session::restore_host;
pub use local::Local;
pub use machine::{Counted, Counts, Machine, Row, Started};
pub use message::{Setup, Unreadable, check};
pub use preparing::command;
pub use remote::RemoteMachine;
pub use runner::{PREPARES, Runner};
pub use schedule::next_due;
pub use slots::{CoreSharing, Slot, both};
pub use start::{Setting, Start, local};
pub use state::starting_state;
pub use supervisor::Supervisor;
pub use together::together;
