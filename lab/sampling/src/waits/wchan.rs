//! The kernel functions that threads sleep in, read from `wchan` many times a second. Programs of the same user may read it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::time::Duration;

use super::switches::Number;

/// The approximate maximum cost of a reading on the lab's cores.
const READ: f64 = 10e-6;
/// Rounds over all threads in a second, at most.
const MOST_ROUNDS: f64 = 20.0;
/// Names of functions that are kept.
const MOST_FUNCTIONS: usize = 2000;

/// The activity of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// It runs, or is ready to.
    Runs,
    /// It sleeps in this function of the kernel.
    Sleeps(String),
}

/// Returns `None` if the thread has ended or this user may not read it.
pub(crate) fn doing(pid: i32, tid: i32) -> Option<Doing> {
    let name = fs::read_to_string(format!("/proc/{pid}/task/{tid}/wchan")).ok()?;
    let name = name.trim();
    if name.is_empty() || name == "0" {
        return Some(Doing::Runs);
    }
    Some(Doing::Sleeps(name.chars().take(100).collect()))
}

/// The number of times that threads of a group were found in a function.
pub(crate) type Found = BTreeMap<String, BTreeMap<String, u64>>;

/// Reads threads in turn, at moments that are spread out.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Readings a second.
    most_a_second: f64,
    owed: f64,
    last: Duration,
    next: usize,
    /// By group, since the last [`Rounds::take`].
    found: HashMap<Number, BTreeMap<String, u64>>,
    functions: HashSet<String>,
    pub(crate) reads: u64,
    pub(crate) asleep: u64,
}

impl Rounds {
    /// `budget` is a fraction of one core.
    pub(crate) fn new(budget: f64) -> Self {
        Self {
            most_a_second: budget / READ,
            ..Self::default()
        }
    }

    pub(crate) fn begin(&mut self, now: Duration) {
        self.last = now;
        self.owed = 0.0;
    }

    /// Reads as many threads as are due: process, thread, group.
    pub(crate) fn turn(&mut self, now: Duration, threads: &[(i32, i32, Number)]) {
        let rate = self.most_a_second.min(threads.len() as f64 * MOST_ROUNDS);
        self.owed += now.saturating_sub(self.last).as_secs_f64() * rate;
        self.last = now;
        let due = (self.owed as usize).min(threads.len());
        self.owed = (self.owed - due as f64).clamp(0.0, 1.0);
        for _ in 0..due {
            self.next = (self.next + 1) % threads.len();
            let (pid, tid, group) = threads[self.next];
            self.reads += 1;
            if let Some(Doing::Sleeps(function)) = doing(pid, tid) {
                self.count(group, function);
            }
        }
    }

    fn count(&mut self, group: Number, function: String) {
        self.asleep += 1;
        let is_new = !self.functions.contains(&function);
        let function = if is_new && self.functions.len() >= MOST_FUNCTIONS {
            "…".to_owned()
        } else {
            if is_new {
                self.functions.insert(function.clone());
            }
            function
        };
        let of_group = self.found.entry(group).or_default();
        *of_group.entry(function).or_default() += 1;
    }

    /// Returns the findings since the last call. `groups` are the names of groups by their numbers.
    pub(crate) fn take(&mut self, groups: &[String]) -> Found {
        let found = self.found.drain();
        found
            .map(|(group, functions)| (groups[group as usize].clone(), functions))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_reads_itself_runs() {
        let pid = std::process::id() as i32;
        let tid = nix::unistd::gettid().as_raw();
        assert_eq!(doing(pid, tid), Some(Doing::Runs));
        assert_eq!(doing(pid, -1), None);
    }

    #[test]
    fn readings_stay_within_the_budget() {
        let mut rounds = Rounds::new(0.01);
        let threads: Vec<_> = (0..500).map(|at| (-1, at, 0)).collect();
        rounds.begin(Duration::ZERO);
        for turn in 1..=200 {
            rounds.turn(Duration::from_millis(50 * turn), &threads);
        }
        assert!((9_900..=10_000).contains(&rounds.reads), "{}", rounds.reads);
        let mut few = Rounds::new(0.01);
        few.begin(Duration::ZERO);
        for turn in 1..=200 {
            few.turn(Duration::from_millis(50 * turn), &threads[..2]);
        }
        assert!((390..=400).contains(&few.reads), "{}", few.reads);
    }
}
