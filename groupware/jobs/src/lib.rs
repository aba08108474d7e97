//! Background jobs, run repeatedly by one runner: sweeps of unreferenced data, and synchronisation of several servers
//! over one store.
//!
//! It knows no protocol; the code that starts a sweep supplies the observer of its events.

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
