//! The made-up run of lab/trial, analysed as a whole.
#![allow(dead_code, reason = "each test program uses a part of it")]

#[path = "../../../trial/tests/support/mod.rs"]
mod written;

use lab_analysis::{Analysis, analyse};

pub(crate) use written::*;

impl Made {
    pub(crate) fn analysis(&self) -> Analysis {
        analyse(&self.run()).unwrap()
    }
}
