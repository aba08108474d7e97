//! What a trial does to the machine of its system: folders for its data, programs started, watched, and
//! ended, their output within bounds. Whoever conducts has a [`Machine`], wherever that is. It knows no load.
//!
//! # Invariants
//! - What is started never outlives the process that started it, however that ends.
//! - Each trial has a fresh folder, removed with the trial; what a killed run left is removed by the next one.
//! - An agent starts, writes, and sets only what the file of its owner allows, whatever it is told. Its system
//!   ends, and its machine is as it was, when whoever conducts is not heard any more.
//! - A system that fails is told in words, with its last lines; only what keeps all trials from going on is
//!   an error.

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
