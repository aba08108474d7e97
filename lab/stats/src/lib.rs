//! Statistics for measurements: numbers in, numbers out.
//!
//! Every rule names its source. This crate knows no units, no trials, and no files: a caller passes samples or
//! histograms and receives the figures that they support. A figure that its sample can't support is `None`, never a
//! number.

pub mod between;
pub mod change;
pub mod common_factor;
pub mod delay;
pub mod describe;
pub mod duet;
pub mod encoding;
pub mod exchange;
pub mod exponential;
pub mod family;
pub mod histogram;
pub mod interference;
pub mod interval;
pub mod isotonic;
pub mod little;
pub mod moderated;
pub mod mser;
mod number;
pub mod paired;
pub mod power;
pub mod safe;
pub mod search;
pub mod sign_test;
pub mod signs;
pub mod sparse;
pub mod student;
pub mod support;
pub mod trend;
pub mod unpaired;
pub mod usl;
pub mod verdict;

pub use describe::{WeightedMean, ratio, relative_difference};
pub use histogram::{Merger, quantile};
pub use interval::{Interval, mean_interval};
pub use isotonic::LoadLine;
pub use mser::{Steady, mser, mser5};
pub use sign_test::sign_test_p;
pub use sparse::Sparse;
pub use support::{needed_sample, supports};
pub use verdict::Verdict;
