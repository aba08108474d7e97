//! Counts and times of one transaction: steps that belong together, from the first request to the last response.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::{Hist, StepCounts};

/// Counts and times of one transaction in one window.
///
/// A transaction counts when it ends. Of [`StepCounts`] it has `ok`, `errors` (class of its first failure), `skipped`
/// (a request had no value), `turned_away` (of sessions), and `unanswered` (in progress when the user or drive ended).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionWindow {
    /// Its counts.
    pub counts: StepCounts,
    /// Times of the completed ones, think times within them excluded, µs.
    pub time: Hist,
    /// Times of the same ones, think times included, µs.
    pub elapsed: Hist,
    /// The values of `time` so far for those in progress when their user stopped or the drive ended, µs.
    pub unfinished_time: Hist,
    /// The same for `elapsed`, µs.
    pub unfinished_elapsed: Hist,
}

impl TransactionWindow {
    /// Removes all counts and values, and keeps the memory.
    pub fn reset(&mut self) {
        let Self {
            counts,
            time,
            elapsed,
            unfinished_time,
            unfinished_elapsed,
        } = self;
        *counts = StepCounts::default();
        for hist in [time, elapsed, unfinished_time, unfinished_elapsed] {
            hist.reset();
        }
    }
}

impl AddAssign<&TransactionWindow> for TransactionWindow {
    fn add_assign(&mut self, other: &Self) {
        let Self {
            counts,
            time,
            elapsed,
            unfinished_time,
            unfinished_elapsed,
        } = other;
        self.counts += counts;
        for (sum, one) in [
            (&mut self.time, time),
            (&mut self.elapsed, elapsed),
            (&mut self.unfinished_time, unfinished_time),
            (&mut self.unfinished_elapsed, unfinished_elapsed),
        ] {
            sum.add(one).expect("growing histograms hold any value");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_add_up_and_are_reset() {
        let mut one = TransactionWindow::default();
        one.counts.ok = 1;
        one.time.record(2).unwrap();
        one.elapsed.record(3).unwrap();
        one.unfinished_time.record(4).unwrap();
        one.unfinished_elapsed.record(5).unwrap();
        let mut sum = one.clone();
        sum += &one;
        let lengths = [
            &sum.time,
            &sum.elapsed,
            &sum.unfinished_time,
            &sum.unfinished_elapsed,
        ];
        assert_eq!(lengths.map(|hist| hist.len()), [2; 4]);
        assert_eq!(sum.counts.ok, 2);
        let json = serde_json::to_string(&sum).unwrap();
        assert_eq!(
            serde_json::from_str::<TransactionWindow>(&json).unwrap(),
            sum
        );
        sum.reset();
        assert_eq!(sum, TransactionWindow::default());
    }
}
