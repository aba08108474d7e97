//! Samples real processes.

mod sampled;
mod subject;
mod waits;
