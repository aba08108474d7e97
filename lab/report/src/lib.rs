//! Renders an [`Analysis`] for people and programs.
//!
//! [`sections`] builds a [`document`] for people, and [`render`] lays it out for each medium; [`mod@write`] does both,
//! and writes the figures for programs. All is pure: the same analysis gives the same report, on any machine, at any
//! time. This crate judges, runs, measures, and opens nothing.

pub mod bench;
pub mod render;
pub mod sections;
pub mod write;

pub use lab_document::{self as document, chart};

use lab_analysis::{Analysis, format, model};
use lab_profile::flame;
