//! Sums of counters whose owners start and end, and rates of counters that only grow.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

/// Adds up a counter of many owners (processes, threads), so that the sum never falls when an
/// owner ends and takes its counter along.
#[derive(Debug)]
pub(crate) struct Ledger<K> {
    last: HashMap<K, u64>,
    total: u64,
}

impl<K> Default for Ledger<K> {
    fn default() -> Self {
        Self {
            last: HashMap::new(),
            total: 0,
        }
    }
}

impl<K: Eq + Hash> Ledger<K> {
    /// Updates the owners' counters and returns the sum since they began.
    pub(crate) fn update(&mut self, now: impl IntoIterator<Item = (K, u64)>) -> u64 {
        let mut next = HashMap::with_capacity(self.last.len());
        for (owner, count) in now {
            let before = self.last.get(&owner).copied().unwrap_or(0);
            self.total += count.saturating_sub(before);
            next.insert(owner, count);
        }
        self.last = next;
        self.total
    }
}

/// Growth per second. A gap without both ends or without time between them; a counter that fell
/// (it was reset) is one too.
pub(crate) fn rate(before: Option<u64>, now: Option<u64>, passed: Option<Duration>) -> Option<f64> {
    let growth = now?.checked_sub(before?)?;
    Some(growth as f64 / passed?.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_keeps_what_ended_owners_counted() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.update([(1, 10), (2, 5)]), 15);
        assert_eq!(ledger.update([(1, 12)]), 17, "2 ended");
        assert_eq!(ledger.update([(1, 12), (3, 4)]), 21, "3 began");
    }

    #[test]
    fn rates_need_both_ends_and_time() {
        let second = Some(Duration::from_secs(2));
        assert_eq!(rate(Some(10), Some(16), second), Some(3.0));
        for (before, now, passed) in [
            (None, Some(1), second),
            (Some(1), None, second),
            (Some(1), Some(2), None),
            (Some(2), Some(1), second),
        ] {
            assert_eq!(rate(before, now, passed), None);
        }
    }
}
