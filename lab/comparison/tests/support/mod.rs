//! The synthetic run of lab/analysis, which the tests here compare.

#[path = "../../../analysis/tests/support/mod.rs"]
mod made;

pub(crate) use made::*;
