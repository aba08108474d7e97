//! Queues and pools that users share: what was put in and taken out, how long users waited, and what was left.

use std::collections::BTreeMap;

use lab_archive::{Kind, Series, TrialData, WindowLine};
use lab_counts::StepCounts;
use lab_plan::{SharedKind, SharedOutline, WorkloadOutline};
use lab_stats::histogram::MergeError;
use lab_stats::{Merger, Sparse};

use crate::format::{count, plural_count};
use crate::model::{QueueAnalysis, Times};
use crate::sums::Hold;

/// What a queue counted in a whole trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct QueueCounts {
    pub(crate) puts: u64,
    pub(crate) takes: u64,
    /// Entries that were dropped since it was full.
    pub(crate) dropped: u64,
    /// Steps that were skipped since it was empty for too long.
    pub(crate) missed: u64,
    /// Its length at the end of the trial, and the most at the end of any window.
    pub(crate) length: u64,
    pub(crate) longest: u64,
}

impl QueueCounts {
    fn add(&mut self, counts: &StepCounts, (puts, takes): (bool, bool), kind: SharedKind) {
        if kind == SharedKind::Pool {
            self.takes += if takes { counts.leases } else { 0 };
            return;
        }
        if puts {
            self.puts += counts.puts;
            self.dropped += counts.put_dropped;
        }
        if takes {
            self.takes += counts.takes;
            self.missed += counts.take_missed;
        }
    }
}

/// The counts of a queue over these windows.
pub(crate) fn counts(
    queue: &SharedOutline,
    steps: &[String],
    windows: &[WindowLine],
) -> QueueCounts {
    let has = |steps: &[String], name: &String| steps.contains(name);
    let mut counts = QueueCounts::default();
    for window in windows {
        for (place, line) in &window.steps {
            if let Some(name) = steps.get(usize::from(*place)) {
                let sides = (has(&queue.puts, name), has(&queue.takes, name));
                counts.add(line, sides, queue.kind);
            }
        }
        counts.length = counts.puts.saturating_sub(counts.takes);
        counts.longest = counts.longest.max(counts.length);
    }
    counts
}

/// All queues of a trial, with how long users waited in this stretch of it.
///
/// # Errors
/// [`MergeError`].
pub(crate) fn queues(
    outline: &WorkloadOutline,
    data: &TrialData,
    hold: &Hold,
) -> Result<Vec<QueueAnalysis>, MergeError> {
    if outline.shared.is_empty() {
        return Ok(Vec::new());
    }
    let mut waits = waits(outline, data, hold)?;
    let one = |queue: &SharedOutline| {
        let QueueCounts {
            puts,
            takes,
            dropped,
            missed,
            length,
            longest,
        } = counts(queue, &outline.steps, &data.windows);
        let wait = waits.remove(&queue.name).unwrap_or_default();
        QueueAnalysis {
            name: queue.name.clone(),
            is_pool: queue.kind == SharedKind::Pool,
            puts,
            takes,
            dropped,
            missed,
            length,
            longest,
            queue_wait_ms: Times::of(&wait.into_merged()),
        }
    };
    let waited_for = outline.shared.iter().filter(|one| !one.takes.is_empty());
    Ok(waited_for.map(one).collect())
}

/// How long users waited for entries, by the name of the queue.
fn waits(
    outline: &WorkloadOutline,
    data: &TrialData,
    hold: &Hold,
) -> Result<BTreeMap<String, Merger>, MergeError> {
    let mut waits: BTreeMap<String, Merger> = BTreeMap::new();
    let mut times = Sparse::default();
    for interval in data.hlog.iter().filter(|one| hold.contains_interval(one)) {
        let (step, waited_for) = match interval.series {
            Series::Step {
                step,
                kind: Kind::QueueWait,
                ..
            } => (step, SharedKind::Queue),
            Series::Step {
                step,
                kind: Kind::LeaseWait,
                ..
            } => (step, SharedKind::Pool),
            _ => continue,
        };
        let name = outline.steps.get(usize::from(step));
        let takes = |one: &&SharedOutline| {
            one.kind == waited_for && name.is_some_and(|name| one.takes.contains(name))
        };
        if let Some(queue) = outline.shared.iter().find(takes) {
            interval.read_counts(&mut times);
            let waits = waits.entry(queue.name.clone()).or_default();
            waits.add_sparse(&times)?;
        }
    }
    Ok(waits)
}

/// What was wrong with the queues of a trial, in words: those that were full, and those that were empty in the end.
pub(crate) fn faults(outline: &WorkloadOutline, windows: &[WindowLine]) -> Vec<String> {
    let of = |queue: &SharedOutline| {
        let counts = counts(queue, &outline.steps, windows);
        let name = &queue.name;
        if counts.dropped > 0 {
            let dropped = count(counts.dropped);
            return Some(format!(
                "the queue `{name}` was full and dropped {dropped} of what was put in"
            ));
        }
        let is_empty = counts.length == 0 && counts.missed > 0;
        is_empty.then(|| {
            let missed = plural_count(counts.missed, "step");
            format!(
                "the queue `{name}` was empty at the end: {missed} skipped for want of an entry"
            )
        })
    };
    let queues = outline.shared.iter();
    let queues = queues.filter(|one| one.kind == SharedKind::Queue);
    queues.filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(kind: SharedKind) -> WorkloadOutline {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        WorkloadOutline {
            steps: names(&["Place", "Handle"]),
            shared: vec![SharedOutline {
                name: "orders".to_owned(),
                kind,
                puts: names(&["Place"]),
                takes: names(&["Handle"]),
            }],
            ..WorkloadOutline::default()
        }
    }

    /// A window in which so many were put in and dropped, taken and missed.
    fn window([puts, put_dropped, takes, take_missed]: [u64; 4]) -> WindowLine {
        let place = StepCounts {
            puts,
            put_dropped,
            ..StepCounts::default()
        };
        let handle = StepCounts {
            takes,
            take_missed,
            leases: 3,
            ..StepCounts::default()
        };
        WindowLine {
            steps: [(0, place), (1, handle)].into(),
            ..WindowLine::default()
        }
    }

    fn counted(outline: &WorkloadOutline, windows: &[[u64; 4]]) -> (QueueCounts, Vec<String>) {
        let windows: Vec<WindowLine> = windows.iter().map(|one| window(*one)).collect();
        let counts = counts(&outline.shared[0], &outline.steps, &windows);
        (counts, faults(outline, &windows))
    }

    #[test]
    fn lengths_are_what_was_put_in_less_what_was_taken() {
        let outline = outline(SharedKind::Queue);
        let (counts, faults) = counted(&outline, &[[5, 0, 1, 0], [4, 0, 2, 1], [0, 0, 5, 0]]);
        let expected = QueueCounts {
            puts: 9,
            takes: 8,
            dropped: 0,
            missed: 1,
            length: 1,
            longest: 6,
        };
        assert_eq!((counts, faults), (expected, Vec::new()));
    }

    #[test]
    fn queues_that_were_full_or_empty_at_the_end_are_named() {
        let outline = outline(SharedKind::Queue);
        let faults = |windows: &[[u64; 4]]| counted(&outline, windows).1;
        assert_eq!(
            faults(&[[9, 0, 9, 0]]),
            [""; 0],
            "empty, and nobody missed anything"
        );
        assert_eq!(
            faults(&[[9, 0, 8, 3]]),
            [""; 0],
            "somebody missed something, and it filled again"
        );
        assert_eq!(faults(&[]), [""; 0]);
        assert_eq!(
            faults(&[[9, 0, 9, 2]]),
            ["the queue `orders` was empty at the end: 2 steps skipped for want of an entry"]
        );
        assert_eq!(faults(&[[0, 0, 0, 1]]).len(), 1, "nothing was ever put in");
        assert_eq!(
            faults(&[[9, 1, 5, 0], [0, 0, 4, 2]]),
            ["the queue `orders` was full and dropped 1 of what was put in"]
        );
    }

    #[test]
    fn a_pool_has_rows_that_sessions_took_alone() {
        let outline = outline(SharedKind::Pool);
        let (counts, faults) = counted(&outline, &[[9, 9, 9, 9], [9, 9, 9, 9]]);
        let expected = QueueCounts {
            takes: 6,
            ..QueueCounts::default()
        };
        assert_eq!(counts, expected);
        assert!(faults.is_empty());
    }
}
