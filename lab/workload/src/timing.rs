//! When users act: the random streams of `lab-template`, when sessions arrive, and how a load changes.

mod arrival;
mod profile;

pub use arrival::{Arrival, ArrivalStream};
pub use lab_template::timing::*;
pub use profile::Profile;
