//! The judgement of one trial: what a run that goes on must know of it.

use lab_archive::{Run, TrialData};
use lab_plan::checks::Cause;
use lab_plan::{Plan, Trial};
use lab_stats::search::Judgement;

use crate::error::ReportError;
use crate::model::{Check, CheckOutcome, TrialAnalysis, Verdict};
use crate::source::{self, step_names};
use crate::trial::{Input, alone};

/// What one trial came to, as a run that goes on must know it.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialJudgement {
    /// The checks that make it no measurement, what explains the others first; empty of a measurement.
    pub failed: Vec<Check>,
    /// Where the cause lies; `None` of a measurement.
    pub cause: Option<Cause>,
    /// Whether the system under test failed.
    pub system_failed: bool,
    /// Whether it ended before it offered any load.
    pub before_load: bool,
    /// As a search takes it in.
    pub judgement: Judgement,
}

impl TrialAnalysis {
    /// The result of the trial for a search for the load line. The run that searches and the report that
    /// reads it follow the same.
    #[must_use]
    pub fn judgement(&self) -> Judgement {
        let failed = self.system_failure.is_some() || self.preparation_failure.is_some();
        match (self.verdict, self.carried) {
            _ if failed && self.before_load => Judgement::Unprepared,
            _ if failed => Judgement::SystemFailed,
            // A load that must be stopped to protect the system is not carried.
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

/// Judges one trial of an archive, as its report will; a pure function of the archive.
///
/// # Errors
/// See [`ReportError`]; [`ReportError::UnknownTrial`] also where the archive has no such trial.
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
        cause: trial.cause,
        system_failed: trial.system_failure.is_some(),
        before_load: trial.before_load,
        judgement: trial.judgement(),
    })
}

/// The checks that make a trial no measurement, those first that name its cause: what competes for the
/// CPU may only warn, and explains why the generator failed all the same.
#[must_use]
pub fn failed(trial: &TrialAnalysis) -> Vec<&Check> {
    let told = |check: &&Check| match check.outcome {
        CheckOutcome::Invalid => true,
        CheckOutcome::Warn => {
            trial.cause == Some(Cause::Outside) && check.cause == Some(Cause::Outside)
        }
        CheckOutcome::Pass | CheckOutcome::NotJudged => false,
    };
    let mut failed: Vec<&Check> = trial.checks.iter().filter(told).collect();
    failed.sort_by_key(|check| {
        (
            check.cause != trial.cause,
            check.outcome == CheckOutcome::Warn,
        )
    });
    failed
}

/// The trial of the plan that an archived one is an attempt at.
#[must_use]
pub fn planned<'a>(plan: &'a Plan, data: &TrialData) -> Option<&'a Trial> {
    let id = data.record.attempt_of.unwrap_or(data.record.id);
    plan.trials.iter().find(|trial| trial.id == id)
}
