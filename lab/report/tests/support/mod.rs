//! The made-up run of lab/analysis, for the tests of reports here.

#[path = "../../../analysis/tests/support/mod.rs"]
mod made;

pub(crate) use made::*;
