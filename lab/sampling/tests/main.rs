//! Samples real processes.

mod sampled;
mod subject;
