//! Background work, done again and again by one runner: sweeps of what nothing refers to any more.
//!
//! It knows no protocol; whoever starts it says who is told of what a sweep did.

mod changes;
mod content;
mod departures;
mod lookup;
mod runner;

pub use changes::{ChangeRetention, Retention};
pub use content::{ContentSweep, SweepObserver};
pub use departures::Departures;
pub use lookup::LookupSweep;
pub use runner::{Job, Jobs, Stop};
