//! The profiles of a run's trials, summed up by cell.

use lab_profile::{FunctionSum, Profile, Sums, ThreadSum, Tree, Weight};
use lab_trial::Input;

use crate::cells::is_of;
use crate::model::{CellSummary, CpuProfile, FunctionTime, ThreadTime, TrialAnalysis, Verdict};

/// The maximum number of functions in `result.json`.
const MOST_FUNCTIONS: usize = 100;
/// The maximum number of groups of threads in `result.json`.
const MOST_THREADS: usize = 50;

/// The profile of a trial, over the hold after its warm-up.
pub(crate) struct Profiled {
    /// The trial's id.
    pub(crate) trial: u32,
    /// The samples; never empty.
    pub(crate) profile: Profile,
    /// The part of its samples that the kernel dropped.
    pub(crate) lost: f64,
}

/// The profiles of the valid trials. A damaged file is a note of its trial.
pub(crate) fn profiled(inputs: &[Input<'_>], trials: &mut [TrialAnalysis]) -> Vec<Profiled> {
    let mut found = Vec::new();
    for trial in trials {
        let input = inputs.iter().find(|input| input.data.record.id == trial.id);
        let Some(input) = input else { continue };
        match lab_trial::cpu_profile(input.data, trial) {
            Ok(Some(profile)) if !profile.samples.is_empty() && trial.verdict == Verdict::Valid => {
                let made = input.data.record.profile.as_ref();
                found.push(Profiled {
                    trial: trial.id,
                    profile,
                    lost: made.map_or(0.0, lost),
                });
            }
            Ok(_) => {}
            Err(problem) => trial.notes.push(format!(
                "The CPU profile can't be read and is left out. {problem}"
            )),
        }
    }
    found
}

/// The part of a profile's samples that the kernel dropped.
fn lost(made: &lab_archive::Profiled) -> f64 {
    let [lost, read] = [made.lost, made.records.max(made.samples)].map(lab_trial::as_f64);
    lab_stats::ratio(lost, lost + read).unwrap_or_default()
}

/// The distribution of CPU time over functions, for each cell with a profile.
pub(crate) fn summarise(
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
    profiled: &[Profiled],
) -> Vec<CpuProfile> {
    let of_cell = |cell: &CellSummary| {
        let both = profiled.iter().filter_map(|one| {
            let trial = trials.iter().find(|trial| trial.id == one.trial)?;
            is_of(cell, trial).then_some((trial, &one.profile))
        });
        let both: Vec<(&TrialAnalysis, &Profile)> = both.collect();
        (!both.is_empty()).then(|| summary(cell, &both))
    };
    cells.iter().filter_map(of_cell).collect()
}

fn summary(cell: &CellSummary, trials: &[(&TrialAnalysis, &Profile)]) -> CpuProfile {
    let merged = Profile::merged(trials.iter().map(|(_, profile)| *profile));
    let sums = Sums::of(&merged);
    let scale = Scale {
        all: sums.all,
        us: us_per_transaction(trials.iter().map(|(trial, _)| *trial)),
    };
    let functions = sums.functions.iter().take(MOST_FUNCTIONS);
    let threads = sums.threads.iter().take(MOST_THREADS);
    CpuProfile {
        cell: cell.cell.clone(),
        label: cell.label.clone(),
        users: cell.users,
        trials: trials.len(),
        samples: sums.all.count,
        us_per_transaction: scale.us,
        functions: functions.map(|sum| scale.function(sum)).collect(),
        functions_sampled: sums.functions.len(),
        threads: threads.map(|sum| scale.thread(sum)).collect(),
        tree: Tree::by_thread(&merged),
    }
}

/// CPU time of the system per transaction in µs, the mean over trials; `None` if a trial has no such value.
pub fn us_per_transaction<'a>(trials: impl Iterator<Item = &'a TrialAnalysis>) -> Option<f64> {
    let ms = trials.map(|trial| {
        let counter = trial.system.get("cpu_ms_per_transaction");
        counter.copied().flatten()
    });
    let ms: Option<Vec<f64>> = ms.collect();
    let ms = ms.filter(|ms| !ms.is_empty())?;
    Some(1000.0 * ms.iter().sum::<f64>() / lab_trial::as_f64(ms.len() as u64))
}

/// The samples and the CPU time per transaction that they stand for.
struct Scale {
    all: Weight,
    us: Option<f64>,
}

impl Scale {
    fn percent(&self, part: Weight) -> f64 {
        let ratio = lab_stats::ratio(lab_trial::as_f64(part.ns), lab_trial::as_f64(self.all.ns));
        100.0 * ratio.unwrap_or_default()
    }

    fn us(&self, part: Weight) -> Option<f64> {
        Some(self.us? * self.percent(part) / 100.0)
    }

    fn function(&self, sum: &FunctionSum) -> FunctionTime {
        FunctionTime {
            function: sum.key.name.clone(),
            file: sum.key.file.clone(),
            own_percent: self.percent(sum.own),
            total_percent: self.percent(sum.total),
            own_us: self.us(sum.own),
            total_us: self.us(sum.total),
        }
    }

    fn thread(&self, sum: &ThreadSum) -> ThreadTime {
        ThreadTime {
            group: sum.group.clone(),
            percent: self.percent(sum.weight),
            us: self.us(sum.weight),
        }
    }
}
