//! Virtual users: send times, protocol clients, recorder. It judges nothing.
//!
//! [`Driver::start`] takes an [`Assignment`] and reports [`DriverEvent`]s. The engine owns *when*: it knows users, waits,
//! pace, and windows, and no protocol. A client owns *how*: see [`lab_client`]. Each worker is one thread with a
//! single-threaded runtime, its slice of the users, and its own histograms, so that no request takes a lock or touches
//! a shared counter.

mod alarm;
mod assignment;
mod background;
mod client;
mod clock;
mod control;
mod crew;
mod driver;
mod error;
mod load;
mod merger;
mod mix;
mod outline;
mod parallel;
mod parallel_sessions;
mod population;
pub mod remote;
mod renewal;
mod script;
mod scripted;
mod session;
mod sharing;
#[cfg(test)]
mod simulation;
mod taking;
mod tasks;
mod timers;
mod tokens;
mod user;
mod worker;

pub use assignment::{Assignment, Limits};
pub use background::{Background, lower_priority_for_good};
pub use clock::Clock;
pub use crew::WorkerThread;
pub use driver::Driver;
pub use error::DriverError;
pub use lab_client::{BaseUrl, BaseUrlError, ErrorClass, Offer, Phase, Protocol, TlsOptions};
pub use lab_recorder::ScriptNote;
pub use lab_recorder::event::{
    DriverEvent, DriverSummary, MAX_ERROR_EXAMPLES, MAX_RECORDED, Window,
};
pub use lab_workload::part::{MAX_RESIDUES, Part};
pub use mix::Mix;
pub use scripted::{Calls, set_up, summarize, tear_down};
pub use worker::rehearsal::{Witness, rehearse};
