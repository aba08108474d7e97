//! The judgement of one trial, for a run in progress.

use lab_archive::{Run, TrialData};
use lab_plan::checks::{Cause, Limits};
use lab_plan::{Plan, Trial};
use lab_stats::search::Judgement;

use crate::as_f64;
use crate::error::ReportError;
use crate::model::{Check, CheckOutcome, TrialAnalysis, Verdict};
use crate::source::{self, step_names};
use crate::trial::{Input, alone};

/// The result of one trial, for a run in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialJudgement {
    /// The checks that make it invalid, those first that name the cause; empty for a valid trial.
    pub failed: Vec<Check>,
    /// Possible causes: see [`suspects`].
    pub suspects: Vec<Check>,
    /// The cause; `None` for a valid trial.
    pub cause: Option<Cause>,
    /// Whether the system under test failed.
    pub system_failed: bool,
    /// Whether it ended before it offered any load.
    pub before_load: bool,
    /// The result for a search.
    pub judgement: Judgement,
    /// For a duet: the part of the CPU of the cores shared by both trials that this trial and its generator used.
    pub cpu: Option<f64>,
}

impl TrialAnalysis {
    /// Returns the result of the trial for a search for the load line. The run and its report both use it.
    #[must_use]
    pub fn judgement(&self) -> Judgement {
        let failed = self.system_failure.is_some() || self.preparation_failure.is_some();
        match (self.verdict, self.carried) {
            _ if failed && self.before_load => Judgement::Unprepared,
            _ if failed => Judgement::SystemFailed,
            // A load that must be stopped to protect the system is not sustained.
            _ if self.aborted => Judgement::NotCarried,
            (Verdict::Valid, Some(true)) => Judgement::Carried,
            (Verdict::Valid, _) => Judgement::NotCarried,
            (Verdict::Invalid, _) if self.cause == Some(Cause::Outside) => Judgement::Disturbed {
                held: self.held_while_disturbed,
            },
            (Verdict::Invalid, _) => Judgement::Invalid,
        }
    }
}

/// Judges one trial of an archive, as its report does; a pure function of the archive.
///
/// # Errors
/// See [`ReportError`]; [`ReportError::UnknownTrial`] also if the archive has no such trial.
pub fn judge_trial(run: &Run, id: u32) -> Result<TrialJudgement, ReportError> {
    let plan = source::plan(run)?;
    let steps = step_names(&plan.question);
    let data = run.trials.iter().find(|data| data.record.id == id);
    let planned = data.and_then(|data| planned(&plan, data));
    let (data, planned) = data.zip(planned).ok_or(ReportError::UnknownTrial(id))?;
    let input = Input {
        manifest: &run.manifest,
        study: &plan.question,
        steps: &steps,
        planned,
        find: plan.search.as_ref().map(|search| &search.find),
        data,
    };
    let trial = alone(&input)?;
    Ok(TrialJudgement {
        failed: failed(&trial).into_iter().cloned().collect(),
        suspects: suspects(&trial, &plan.question.checks).cloned().collect(),
        cause: trial.cause,
        system_failed: trial.system_failure.is_some(),
        before_load: trial.before_load,
        judgement: trial.judgement(),
        cpu: used_of_shared(&trial).and_then(|used| lab_stats::ratio(used.cores, used.of)),
    })
}

/// Used CPU time, in cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Used {
    /// Cores used on average.
    pub cores: f64,
    /// Cores available.
    pub of: f64,
}

/// Returns the CPU that a trial of a duet and its generator used of the cores shared by both trials. `None` for other
/// trials, if each variant had its own half, and if the kernel reports nothing.
#[must_use]
pub fn used_of_shared(trial: &TrialAnalysis) -> Option<Used> {
    let duet = trial.duet.as_ref().filter(|duet| duet.together)?;
    let mut cores = [&duet.pinning.generator[..], &duet.pinning.system].concat();
    cores.sort_unstable();
    cores.dedup();
    let system = (*trial.system.get("cpu_percent")?)? / 100.0;
    let generator = &trial.generator.health;
    Some(Used {
        cores: system + generator.cpu_fraction? * f64::from(generator.workers),
        of: as_f64(cores.len() as u64),
    })
}

/// Returns the checks that make a trial invalid, those first that name its cause.
#[must_use]
pub fn failed(trial: &TrialAnalysis) -> Vec<&Check> {
    let is_invalid = |check: &&Check| check.outcome == CheckOutcome::Invalid;
    let mut failed: Vec<&Check> = trial.checks.iter().filter(is_invalid).collect();
    failed.sort_by_key(|check| check.cause != trial.cause);
    failed
}

/// Returns outside warnings that may explain why a trial is invalid, since competition for the CPU also makes the
/// generator fail. A warning that the study allows by its own limit explains nothing.
pub fn suspects<'a>(
    trial: &'a TrialAnalysis,
    set: &'a Limits,
) -> impl Iterator<Item = &'a Check> + 'a {
    let is_outside = trial.cause == Some(Cause::Outside);
    let warns = move |check: &&Check| {
        is_outside && check.outcome == CheckOutcome::Warn && check.cause == Some(Cause::Outside)
    };
    let is_allowed = move |check: &Check| {
        let mut beyond = check.figures.iter();
        beyond
            .any(|figure| figure.outcome() == CheckOutcome::Warn && set.0.contains_key(figure.key))
    };
    let warnings = trial.checks.iter().filter(warns);
    warnings.filter(move |check| !is_allowed(check))
}

/// Returns the planned trial of an archived attempt.
#[must_use]
pub fn planned<'a>(plan: &'a Plan, data: &TrialData) -> Option<&'a Trial> {
    let id = data.record.attempt_of.unwrap_or(data.record.id);
    plan.trials.iter().find(|trial| trial.id == id)
}
