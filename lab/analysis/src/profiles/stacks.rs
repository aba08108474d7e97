//! Stacks of trials as a comparison takes them: names once, stacks by the positions of their functions.

use std::collections::HashMap;

use lab_profile::{Key, Profile};

/// Functions by their keys, which are the same in all builds.
#[derive(Debug, Default)]
pub(super) struct Names {
    keys: Vec<Key>,
    positions: HashMap<Key, usize>,
}

impl Names {
    /// The position of a function.
    pub(super) fn position(&mut self, key: Key) -> usize {
        *self.positions.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            self.keys.len() - 1
        })
    }

    /// Whether a position stands for something that is no function, and can't differ as one.
    pub(super) fn is_placeholder(&self, position: usize) -> bool {
        [Profile::BROKEN, Profile::OTHER, "[unknown]"].contains(&self.name(position))
    }

    /// The name of the function at a position.
    pub(super) fn name(&self, position: usize) -> &str {
        self.keys.get(position).map_or("", |key| &key.name)
    }
}

/// The profile of one trial, of the time that its figures are of.
#[derive(Debug, Clone, Default)]
pub(super) struct Sampled {
    /// Stacks, outermost function first, and their CPU time in nanoseconds. No stack is empty.
    pub(super) stacks: Vec<(Vec<usize>, u64)>,
    /// Samples.
    pub(super) samples: u64,
    /// CPU time of the system per transaction, which all stacks together stand for.
    pub(super) us_per_transaction: f64,
    /// CPU time of stacks whose innermost function has no name that other builds share, in nanoseconds.
    pub(super) unnamed_ns: u64,
}

impl Sampled {
    /// CPU time of all stacks, in nanoseconds.
    pub(super) fn whole_ns(&self) -> u64 {
        self.stacks.iter().map(|(_, ns)| ns).sum()
    }

    /// Whether there is something to compare.
    pub(super) fn is_usable(&self) -> bool {
        let us = self.us_per_transaction;
        self.samples > 0 && self.whole_ns() > 0 && us.is_finite() && us > 0.0
    }
}

/// Two cells, and what was sampled in both of them by block; `None` where one has no valid, profiled trial.
pub(super) struct Sides<'a> {
    pub(super) a: &'a str,
    pub(super) b: &'a str,
    pub(super) blocks: Vec<Option<(&'a Sampled, &'a Sampled)>>,
}
