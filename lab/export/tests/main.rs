//! What receivers and dashboards get. One program, since each would be linked by itself.

mod dashboard;
mod frames;
