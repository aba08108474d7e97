//! From an [`Analysis`] to what people and programs read.
//!
//! [`sections`] says what people read of it, as one [`document`], which [`render`] lays out for each
//! medium; [`mod@write`] does both, and writes the figures for programs. All is pure: the same analysis
//! gives the same report, on any machine, at any time. Nothing here judges, runs, measures, or opens a
//! file.

pub mod bench;
pub mod render;
pub mod sections;
pub mod write;

pub use lab_document::{self as document, chart};

use lab_analysis::{Analysis, format, model};
use lab_profile::flame;
