//! From an [`Analysis`](lab_analysis::Analysis) to what people and programs read.
//!
//! The writers in [`mod@write`] turn it into text. They are pure: the same analysis gives the same
//! report, on any machine, at any time. Nothing here judges, runs, measures, or opens a file.

pub mod write;

use lab_analysis::{Analysis, format, model};
