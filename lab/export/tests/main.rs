//! The data that receivers and dashboards get. One program, since each would be linked separately.

mod dashboard;
mod frames;
