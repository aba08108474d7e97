//! The recorded waits of a hold, still without names.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_profile::waits::Patterns;

use super::switches::{Number, Switches};
use super::usage::Times;
use super::wchan::Found;
use crate::stacks::{Interner, Stacks};

/// Some seconds of the hold, all of them sampled or none.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    pub(crate) is_on: bool,
    pub(crate) groups: BTreeMap<String, Times>,
    pub(crate) found: Found,
}

/// The records of the whole hold.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) level: u8,
    /// Slices of time in which switches were recorded, where not all were.
    pub(crate) slices: u64,
    pub(crate) patterns: Patterns,
    pub(crate) rows: Vec<Row>,
    pub(crate) switches: Switches,
    pub(crate) stacks: Stacks,
    pub(crate) groups: Interner<String>,
    /// Kernel functions of [`crate::stacks::Frame::Sleeps`].
    pub(crate) sleeps: Interner<String>,
    /// Code that wakes threads: the group of its thread, and its stack.
    pub(crate) wakers: Interner<(Number, Number)>,
}

impl Collected {
    pub(crate) fn on_rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.is_on)
    }
}
