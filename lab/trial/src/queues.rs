//! Queues and pools that users share: entries put and taken, waiting times of users, and remaining entries.

use lab_archive::{Kind, TrialData, WindowLine};
use lab_counts::StepCounts;
use lab_plan::{SharedKind, SharedOutline, WorkloadOutline};
use lab_stats::Merger;
use lab_stats::histogram::MergeError;

use crate::format::{count, plural_count};
use crate::model::{QueueAnalysis, Times};
use crate::sums::Sums;

/// Returns the counts of a queue over these windows; without its waits.
fn counts(queue: &SharedOutline, steps: &[String], windows: &[WindowLine]) -> QueueAnalysis {
    let sides = |name: &String| (queue.puts.contains(name), queue.takes.contains(name));
    let sides: Vec<(bool, bool)> = steps.iter().map(sides).collect();
    let mut all = QueueAnalysis {
        name: queue.name.clone(),
        is_pool: queue.kind == SharedKind::Pool,
        ..QueueAnalysis::default()
    };
    for window in windows {
        for (place, line) in &window.steps {
            let sides = sides.get(usize::from(*place)).copied();
            add(&mut all, line, sides.unwrap_or_default());
        }
        all.length = all.puts.saturating_sub(all.takes);
        all.longest = all.longest.max(all.length);
    }
    all
}

/// Adds the counts of a step that puts, takes, or does both.
fn add(all: &mut QueueAnalysis, counts: &StepCounts, (puts, takes): (bool, bool)) {
    if all.is_pool {
        all.takes += if takes { counts.leases } else { 0 };
        return;
    }
    if puts {
        all.puts += counts.puts;
        all.dropped += counts.put_dropped;
    }
    if takes {
        all.takes += counts.takes;
        all.missed += counts.take_missed;
    }
}

/// Returns all queues of a trial, with the waiting times of users in its hold.
///
/// # Errors
/// [`MergeError`].
pub(crate) fn queues(
    outline: &WorkloadOutline,
    data: &TrialData,
    sums: &Sums,
) -> Result<Vec<QueueAnalysis>, MergeError> {
    let one = |queue: &SharedOutline| {
        let kind = match queue.kind {
            SharedKind::Pool => Kind::LeaseWait,
            SharedKind::Counter | SharedKind::Queue => Kind::QueueWait,
        };
        let mut wait = Merger::default();
        for step in &queue.takes {
            if let Some(times) = sums.step_phases.get(&(step.clone(), kind)) {
                wait.add(times)?;
            }
        }
        Ok(QueueAnalysis {
            queue_wait_ms: Times::of(&wait.into_merged()),
            ..counts(queue, &outline.steps, &data.windows)
        })
    };
    let waited_for = outline.shared.iter().filter(|one| !one.takes.is_empty());
    waited_for.map(one).collect()
}

/// Describes the faults of a trial's queues: those that were full, and those that were empty at the end.
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
                "the queue `{name}` was empty at the end: {missed} skipped because no entry came"
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

    /// Returns a window with these numbers of puts, dropped puts, takes, and missed takes.
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

    fn counted(outline: &WorkloadOutline, windows: &[[u64; 4]]) -> (QueueAnalysis, Vec<String>) {
        let windows: Vec<WindowLine> = windows.iter().map(|one| window(*one)).collect();
        let counts = counts(&outline.shared[0], &outline.steps, &windows);
        (counts, faults(outline, &windows))
    }

    #[test]
    fn lengths_are_what_was_put_in_less_what_was_taken() {
        let outline = outline(SharedKind::Queue);
        let (counts, faults) = counted(&outline, &[[5, 0, 1, 0], [4, 0, 2, 1], [0, 0, 5, 0]]);
        let expected = QueueAnalysis {
            name: "orders".to_owned(),
            puts: 9,
            takes: 8,
            dropped: 0,
            missed: 1,
            length: 1,
            longest: 6,
            ..QueueAnalysis::default()
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
            ["the queue `orders` was empty at the end: 2 steps skipped because no entry came"]
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
        let expected = QueueAnalysis {
            name: "orders".to_owned(),
            is_pool: true,
            takes: 6,
            ..QueueAnalysis::default()
        };
        assert_eq!(counts, expected);
        assert!(faults.is_empty());
    }
}
