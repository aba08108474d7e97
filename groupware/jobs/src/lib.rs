//! Background work, done again and again by one runner: sweeps of what nothing refers to any more, and what keeps
//! several servers over one store in step.
//!
//! It knows no protocol; whoever starts it says who is told of what a sweep did.

mod changes;
mod content;
mod departures;
mod failed;
mod lease;
mod lookup;
mod numbers;
mod objects;
mod people;
mod runner;
mod series;

pub use changes::{ChangeRetention, Retention};
pub use content::{ContentSweep, Part, SweepObserver};
pub use departures::Departures;
pub use lease::Leased;
pub use lookup::LookupSweep;
pub use numbers::MailNumbers;
pub use people::{AnsweredSweep, KeepUp, SessionSweep};
pub use runner::{Job, Jobs, Stop};
pub use series::SeriesLists;
