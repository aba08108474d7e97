//! What the threads of a trial's system waited for, in the time that its figures are taken from.

use std::collections::{BTreeSet, HashMap};

use lab_archive::{Latencies, TrialData, Waits};
use lab_profile::Profile;
use lab_profile::waits::{ThreadGroup, Trial};

use crate::as_f64;
use crate::model::{TrialAnalysis, Verdict};
use crate::profile::seconds_of;
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
    /// The time that groups and profile cover, in seconds.
    pub seconds: f64,
    /// Transactions in that time.
    pub transactions: Option<f64>,
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
            seconds: self.seconds,
            transactions: self.transactions,
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
    let profile = match &data.waits.profile {
        None => None,
        Some(Err(problem)) => {
            problems.push(problem.clone());
            None
        }
        Some(Ok(bytes)) => match Profile::from_pprof(bytes) {
            Ok(profile) => Some(profile.within(seconds_of(analysis))),
            Err(problem) => {
                problems.push(format!("waits.pb.gz: {problem}"));
                None
            }
        },
    };
    let profile = profile.filter(|profile| !profile.samples.is_empty());
    let groups = groups(data, analysis).unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    let latencies = match &data.waits.latency {
        Some(Ok(latencies)) => latencies.clone(),
        Some(Err(problem)) => {
            problems.push(problem.clone());
            Latencies::new()
        }
        None => Latencies::new(),
    };
    let seconds = seconds_covered(&groups, profile.as_ref());
    let transactions = analysis.throughput_per_s.map(|rate| rate * seconds);
    TrialWaits {
        profile,
        groups,
        latencies,
        seconds,
        transactions: transactions.filter(|count| *count > 0.0),
        problems,
    }
}

/// How groups of threads spent the seconds of the hold after its warm-up.
fn groups(data: &TrialData, analysis: &TrialAnalysis) -> Result<Vec<ThreadGroup>, String> {
    let lines = match &data.waits.threads {
        None => return Ok(Vec::new()),
        Some(lines) => lines.as_ref().map_err(Clone::clone)?,
    };
    let seconds = seconds_of(analysis);
    // A line has the time up to its end, about a second.
    let (from, to) = (f64::from(seconds.start), f64::from(seconds.end));
    let is_inside = |t_ms: f64| (from + 0.5..=to + 0.5).contains(&(t_ms / 1000.0));
    let lines = lines.iter().filter(|line| is_inside(line.t_ms)).cloned();
    let inside = Waits {
        threads: Some(Ok(lines.collect())),
        ..Waits::default()
    };
    inside.groups().unwrap_or_else(|| Ok(Vec::new()))
}

/// The time that was recorded. Some seconds of a hold are not, and a group whose threads lived through all of it, such as
/// that of the main thread, has the others.
fn seconds_covered(groups: &[ThreadGroup], profile: Option<&Profile>) -> f64 {
    let life = |group: &ThreadGroup| as_f64(group.wall_ns) / 1e9 / f64::from(group.threads.max(1));
    let longest = groups.iter().map(life).fold(0.0, f64::max);
    if longest > 0.0 {
        return longest;
    }
    let samples = profile.iter().flat_map(|profile| &profile.samples);
    let seconds: BTreeSet<u32> = samples.map(|sample| sample.second).collect();
    as_f64(seconds.len() as u64)
}
