//! The times at which users act: the random streams of `lab-template`, arrivals of sessions, and changes of a load.

mod arrival;
mod profile;

pub use arrival::{Arrival, ArrivalStream};
pub use lab_template::timing::*;
pub use profile::Profile;
