//! What the threads of a trial's system waited for, in the time that its figures are taken from.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use lab_archive::{Latencies, ThreadsLine, TrialData, groups_of};
use lab_profile::Profile;
use lab_profile::waits::{ThreadGroup, Trial, settle_idle_groups};

use crate::as_f64;
use crate::model::{TrialAnalysis, Verdict};
use crate::profile::{seconds_of, within_hold};
use crate::trial::Input;

/// The waits of a trial over the hold after its warm-up. Parts that weren't recorded are empty.
#[derive(Debug, Clone, Default)]
pub struct TrialWaits {
    /// Intervals off the CPU with their stacks.
    pub profile: Option<Profile>,
    /// How each group of threads spent that time.
    pub groups: Vec<ThreadGroup>,
    /// The scheduling latency of each group over the whole hold, in µs.
    pub latencies: Latencies,
    /// The time that the profile covers, in seconds.
    pub recorded_seconds: f64,
    /// The time that the groups cover, in seconds.
    pub seconds: f64,
    /// Transactions in a second.
    pub transactions_per_s: Option<f64>,
    /// What is damaged and therefore left out, in words.
    pub problems: Vec<String>,
}

impl TrialWaits {
    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.profile.is_none() && self.groups.is_empty() && self.latencies.is_empty()
    }

    /// The same for tables.
    #[must_use]
    pub fn trial(&self) -> Trial<'_> {
        Trial {
            profile: self.profile.as_ref(),
            groups: &self.groups,
            recorded_seconds: self.recorded_seconds,
            seconds: self.seconds,
            transactions_per_s: self.transactions_per_s,
        }
    }
}

/// The waits of trials by the trial's id.
pub type WaitsByTrial = HashMap<u32, TrialWaits>;

/// Reads the waits of valid trials. A damaged file is a note of its trial.
pub fn waits_of_valid(inputs: &[Input<'_>], trials: &mut [TrialAnalysis]) -> WaitsByTrial {
    let mut found = HashMap::new();
    for trial in trials {
        let input = inputs.iter().find(|input| input.data.record.id == trial.id);
        let Some(input) = input.filter(|_| trial.verdict == Verdict::Valid) else {
            continue;
        };
        let waits = waits(input.data, trial);
        let problems = waits.problems.iter();
        trial.notes.extend(problems.map(|problem| {
            format!("What threads waited for can't be read and is left out. {problem}")
        }));
        if !waits.is_empty() {
            found.insert(trial.id, waits);
        }
    }
    found
}

/// The waits of a trial.
#[must_use]
pub fn waits(data: &TrialData, analysis: &TrialAnalysis) -> TrialWaits {
    let mut problems = Vec::new();
    let profile = within_hold(data.waits.profile.as_ref(), "waits.pb.gz", analysis);
    let profile = profile.unwrap_or_else(|problem| {
        problems.push(problem);
        None
    });
    let mut profile = profile.filter(|profile| !profile.samples.is_empty());
    let lines = lines(data, analysis).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    let (seconds, known) = seconds_covered(&lines);
    let recorded_seconds = match (&profile, known > 0.0) {
        (Some(profile), false) => seconds_with_samples(profile),
        (Some(_) | None, _) => known,
    };
    let mut groups = groups_of(&lines);
    settle_idle_groups(profile.as_mut(), &mut groups);
    let latencies = match &data.waits.latency {
        Some(Ok(latencies)) => latencies.clone(),
        Some(Err(problem)) => {
            problems.push(problem.clone());
            Latencies::new()
        }
        None => Latencies::new(),
    };
    TrialWaits {
        profile,
        groups,
        latencies,
        recorded_seconds,
        seconds,
        transactions_per_s: analysis.throughput_per_s.filter(|rate| *rate > 0.0),
        problems,
    }
}

/// How groups of threads spent each second of the hold after its warm-up.
fn lines(data: &TrialData, analysis: &TrialAnalysis) -> Result<Vec<ThreadsLine>, String> {
    let lines = match &data.waits.threads {
        None => return Ok(Vec::new()),
        Some(lines) => lines.as_ref().map_err(Clone::clone)?,
    };
    let seconds = seconds_of(analysis);
    // A line has the time up to its end, about a second.
    let (from, to) = (f64::from(seconds.start), f64::from(seconds.end));
    let is_inside = |t_ms: f64| (from + 0.5..=to + 0.5).contains(&(t_ms / 1000.0));
    let lines = lines.iter().filter(|line| is_inside(line.t_ms));
    Ok(lines.cloned().collect())
}

/// Returns two times in seconds: that of all lines, and that of lines with classes of waits, since some seconds of a hold
/// are not recorded. A group whose threads lived through a whole line, such as the main thread's, gives its length.
fn seconds_covered(lines: &[ThreadsLine]) -> (f64, f64) {
    let mut longest: BTreeMap<u64, (f64, bool)> = BTreeMap::new();
    for ThreadsLine { t_ms, group } in lines {
        let life = as_f64(group.wall_ns) / 1e9 / f64::from(group.threads.max(1));
        let of_second = longest.entry(t_ms.to_bits()).or_default();
        of_second.0 = of_second.0.max(life);
        of_second.1 |= group.blocked_ns.is_some();
    }
    let sum = |known: bool| {
        let seconds = longest.values().filter(|(_, is_known)| *is_known || !known);
        seconds.map(|(life, _)| life).sum()
    };
    (sum(false), sum(true))
}

/// The seconds of a profile. Threads of a system under load wait in each second.
fn seconds_with_samples(profile: &Profile) -> f64 {
    let seconds = profile.samples.iter().map(|sample| sample.second);
    as_f64(seconds.collect::<BTreeSet<u32>>().len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_without_classes_are_not_recorded() {
        let line = |t_ms: f64, threads, wall_ms: u64, is_known: bool| ThreadsLine {
            t_ms,
            group: ThreadGroup {
                threads,
                wall_ns: wall_ms * 1_000_000,
                blocked_ns: is_known.then(BTreeMap::new),
                ..ThreadGroup::default()
            },
        };
        let lines = [
            line(1000.0, 1, 1000, true),
            // Four threads, three of which began within the second.
            line(1000.0, 4, 1900, false),
            line(2000.0, 1, 1000, false),
            line(2500.0, 2, 1000, true),
        ];
        assert_eq!(seconds_covered(&lines), (2.5, 1.5));
        assert_eq!(seconds_covered(&[]), (0.0, 0.0));
    }
}
