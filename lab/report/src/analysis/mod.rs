//! From an archive to an [`Analysis`]: pure, from the archive alone, the same each time.
//!
//! ```text
//! windows, histograms ─sums→ whole trial and hold ─┬─warmup→ figures
//! plan, record, monitor ───────────────────────────┼→ checks → verdict
//! study ───────────────────────────────────────────┴→ thresholds
//! trials ─cells→ means over valid trials ─→ comparisons, published figures, findings, headline
//! ```

mod capacity;
mod cells;
mod checks;
mod compare;
mod counters;
mod effects;
mod findings;
mod published;
mod source;
mod sums;
mod thresholds;
mod trial;
mod warmup;

use std::collections::BTreeSet;

use lab_archive::Run;
use lab_study::model::Study;
use lab_study::plan::Plan;
use sha2::{Digest, Sha256};

use crate::model::{
    Analysis, CheckOutcome, Outcome, RESULT_SCHEMA, StudyFacts, Summary, TrialAnalysis, Verdict,
};

/// Why an archive could not be analysed.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// `plan.json` isn't a plan that this version reads.
    #[error("the archive's plan.json can't be read as a plan")]
    Plan(#[source] serde_json::Error),
    /// The archive holds no study file.
    #[error("the archive holds no study file")]
    NoStudy,
    /// The archived study or workload no longer loads.
    #[error("the archived study can't be loaded")]
    Study(#[source] Box<lab_study::LoadError>),
    /// A trial that the plan doesn't know.
    #[error("trial {0} is in the archive but not in its plan")]
    UnknownTrial(u32),
    /// A histogram that can't be merged.
    #[error("trial {trial}: histograms can't be merged")]
    Merge {
        /// The trial.
        trial: u32,
        /// The cause.
        #[source]
        source: lab_stats::histogram::MergeError,
    },
}

/// Analyses an archive.
///
/// # Errors
/// See [`ReportError`]: the archive's own study, plan, or histograms can't be used.
pub fn analyse(run: &Run) -> Result<Analysis, ReportError> {
    let plan: Plan = serde_json::from_value(run.plan.clone()).map_err(ReportError::Plan)?;
    let study = source::study(run)?;
    let steps = step_names(&study);
    let mut trials = Vec::with_capacity(run.trials.len());
    for data in &run.trials {
        let id = data.record.id;
        let planned = plan
            .trials
            .iter()
            .find(|trial| trial.id == id)
            .ok_or(ReportError::UnknownTrial(id))?;
        trials.push(trial::analyse(&trial::Input {
            manifest: &run.manifest,
            study: &study,
            steps: &steps,
            planned,
            data,
        })?);
    }
    let cells = cells::summarise(&study, &steps, &trials);
    let differences = compare::compare(&study, plan.seed, &trials, &cells);
    let usl = capacity::scaling(&study, &trials);
    let published = published::compare(&study, plan.speed, &trials, &cells);
    let summary = summarise(plan.trials.len(), &trials);
    let facts = facts(run, &study, &plan, steps);
    let headline = findings::headline(&facts, &summary, &cells, &trials);
    let environment = &run.manifest.environment;
    let mut findings =
        findings::findings(&facts, &summary, &cells, &trials, &published, environment);
    findings.extend(effects::sentences(
        &differences.comparisons,
        &differences.main_effects,
    ));
    findings.extend(usl.as_ref().map(capacity::sentence));
    Ok(Analysis {
        schema: RESULT_SCHEMA,
        study: facts,
        environment: run.manifest.environment.clone(),
        headline,
        summary,
        trials,
        cells,
        comparisons: differences.comparisons,
        main_effects: differences.main_effects,
        inference: differences.inference,
        usl,
        findings,
        published,
    })
}

fn facts(run: &Run, study: &Study, plan: &Plan, steps: Vec<String>) -> StudyFacts {
    StudyFacts {
        name: study.name.clone(),
        title: study.title.clone(),
        about: study.about.clone(),
        workload: study.workload.name.clone(),
        file_sha256: run
            .files
            .first()
            .map(|(_, bytes)| hex(&Sha256::digest(bytes))),
        seed: plan.seed,
        speed: plan.speed,
        started: run.manifest.started.clone(),
        overrides: run.manifest.overrides.clone(),
        factors: study
            .matrix
            .iter()
            .map(|factor| factor.name.clone())
            .collect(),
        steps,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The session's steps in session order; a name that occurs several times is one step here.
fn step_names(study: &Study) -> Vec<String> {
    let mut seen = BTreeSet::new();
    study
        .workload
        .session
        .steps
        .iter()
        .filter(|step| seen.insert(step.name.as_str()))
        .map(|step| step.name.clone())
        .collect()
}

fn summarise(planned: usize, trials: &[TrialAnalysis]) -> Summary {
    let valid: Vec<&TrialAnalysis> = trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Valid)
        .collect();
    let thresholds = || valid.iter().flat_map(|trial| &trial.thresholds);
    let ran: BTreeSet<&str> = trials.iter().map(|trial| trial.label.as_str()).collect();
    let measured: BTreeSet<&str> = valid.iter().map(|trial| trial.label.as_str()).collect();
    let mut summary = Summary {
        outcome: Outcome::Ok,
        planned,
        complete: trials.len(),
        valid: valid.len(),
        invalid: trials.len() - valid.len(),
        system_failures: trials
            .iter()
            .filter(|trial| trial.system_failure.is_some())
            .count(),
        warnings: trials
            .iter()
            .flat_map(|trial| &trial.checks)
            .filter(|check| check.outcome == CheckOutcome::Warn)
            .count(),
        thresholds: thresholds().count(),
        thresholds_failed: thresholds().filter(|threshold| !threshold.holds).count(),
        cells_without_valid_trial: ran.len() - measured.len(),
    };
    summary.outcome = outcome(&summary);
    summary
}

fn outcome(summary: &Summary) -> Outcome {
    if summary.system_failures > 0 {
        Outcome::SystemFailed
    } else if summary.valid == 0 || summary.cells_without_valid_trial > 0 {
        Outcome::TooFewValidTrials
    } else if summary.thresholds_failed > 0 {
        Outcome::ThresholdFailed
    } else {
        Outcome::Ok
    }
}
