//! Which bindings of the files are shared by all users.

use std::collections::{HashMap, HashSet};

use crate::facts::Symbol;

/// Which bindings at module level are shared, and the places of those that aren't.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// Bindings that are assigned.
    pub(crate) assigned: HashSet<(usize, Symbol)>,
    /// Bindings that are assigned or visibly changed.
    pub(crate) changed: HashSet<(usize, Symbol)>,
    /// The place of each user's own binding in its array.
    pub(crate) own: HashMap<(usize, Symbol), usize>,
}

impl Shares {
    pub(crate) fn is_shared(&self, file: usize, symbol: Symbol) -> bool {
        !self.own.contains_key(&(file, symbol))
    }

    pub(crate) fn place(&self, file: usize, symbol: Symbol) -> Option<usize> {
        self.own.get(&(file, symbol)).copied()
    }

    /// Gives each user its own binding.
    pub(crate) fn keep(&mut self, file: usize, symbol: Symbol) {
        let next = self.own.len();
        self.own.entry((file, symbol)).or_insert(next);
    }
}
