//! Selects the failed requests to report with details: the first ones, and after them the first of each kind.

use lab_client::ErrorClass;

use crate::event::MAX_ERROR_EXAMPLES;

/// Further examples, each the first of its step and class, so that an error that begins late is still reported.
const MOST_LATE: usize = 10;

/// The remaining number of examples.
#[derive(Debug)]
pub struct Examples {
    left: usize,
    late: usize,
    /// The reported classes by step of the session, a bit each.
    came: Vec<u8>,
}

impl Examples {
    /// Returns the selection for this number of session steps; more make it grow.
    pub fn new(steps: usize) -> Self {
        Self {
            left: MAX_ERROR_EXAMPLES,
            late: MOST_LATE,
            came: vec![0; steps],
        }
    }

    /// Returns true if an example from setup is reported. Half of them are left for the trial.
    pub fn take_of_setup(&mut self) -> bool {
        let takes = self.left > MAX_ERROR_EXAMPLES / 2;
        self.left -= usize::from(takes);
        takes
    }

    /// Returns true if an example of the session is reported.
    pub fn take(&mut self, step: usize, class: ErrorClass) -> bool {
        if self.came.len() <= step {
            self.came.resize(step + 1, 0);
        }
        let bit = 1 << class.index();
        let is_first = self.came[step] & bit == 0;
        self.came[step] |= bit;
        if self.left > 0 {
            self.left -= 1;
            return true;
        }
        let takes = is_first && self.late > 0;
        self.late -= usize::from(takes);
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_begins_late_is_told() {
        let mut examples = Examples::new(1);
        let mut take = |step, class| (0..100).filter(|_| examples.take(step, class)).count();
        assert_eq!(take(0, ErrorClass::Status), MAX_ERROR_EXAMPLES);
        assert_eq!(take(0, ErrorClass::Timeout), 1);
        assert_eq!(take(0, ErrorClass::Status), 0, "enough of these are told");
        let others: usize = (1..50).map(|step| take(step, ErrorClass::Reset)).sum();
        assert_eq!(others, MOST_LATE - 1, "all together have a bound");
    }

    #[test]
    fn setup_leaves_half_for_the_trial() {
        let mut examples = Examples::new(1);
        let setup = (0..100).filter(|_| examples.take_of_setup()).count();
        assert_eq!(setup, MAX_ERROR_EXAMPLES / 2);
        let trial = (0..100)
            .filter(|_| examples.take(0, ErrorClass::Check))
            .count();
        assert_eq!(setup + trial, MAX_ERROR_EXAMPLES);
    }
}
