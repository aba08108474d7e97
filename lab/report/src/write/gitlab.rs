//! The problems of a run for GitLab's merge requests: a code-quality report
//! (<https://docs.gitlab.com/ci/testing/code_quality/>, the fields of its section on other tools).
//!
//! GitLab recognises new findings by their fingerprints, so no fingerprint contains a figure: a threshold that fails
//! again is the same finding.

use lab_analysis::model::Decision;
use lab_comparison::{RunComparison, RunOutcome};
use serde::Serialize;

use crate::Analysis;
use crate::format::plain;
use crate::model::{Answer, CheckOutcome, ThresholdResult, TrialAnalysis, Verdict};
use crate::sections::{threshold_value, threshold_words};

/// A finding.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    description: String,
    check_name: &'static str,
    fingerprint: String,
    severity: Severity,
    location: Location,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Severity {
    /// The measurement is doubtful.
    Info,
    /// A trial is invalid.
    Minor,
    /// The question has no answer.
    Major,
    /// The server missed a requirement.
    Critical,
    /// It failed.
    Blocker,
}

#[derive(Debug, Serialize)]
struct Location {
    path: String,
    lines: Lines,
}

#[derive(Debug, Serialize)]
struct Lines {
    begin: u32,
}

/// Findings about a study; they point to its file.
struct Findings<'a> {
    study: &'a str,
    path: &'a str,
    all: Vec<Finding>,
}

/// The problems of a run.
pub(super) fn gitlab(analysis: &Analysis, path: &str) -> Vec<Finding> {
    let mut findings = Findings::new(&analysis.study.name, path);
    let trials = &analysis.trials;
    let last = || trials.iter().filter(|trial| trial.repeated_by.is_none());
    for trial in last() {
        if let Some(failure) = &trial.system_failure {
            let text = format!("Under {} the system failed: {failure}", trial.label);
            findings.put("system", Severity::Blocker, &trial.label, &text);
        }
        if let Some(failure) = &trial.preparation_failure {
            let text = format!("Under {} the preparation failed: {failure}", trial.label);
            findings.put("preparation", Severity::Blocker, &trial.label, &text);
        }
    }
    let valid = || {
        trials
            .iter()
            .filter(|trial| trial.verdict == Verdict::Valid)
    };
    for trial in valid() {
        for threshold in trial.thresholds.iter().filter(|one| !one.holds) {
            findings.missed(trial, threshold);
        }
    }
    findings.answer(analysis.answer.as_ref());
    for reason in &analysis.reasons {
        let (severity, does) = match reason.outcome {
            CheckOutcome::Invalid => (Severity::Minor, "spoils"),
            _ => (Severity::Info, "makes doubtful"),
        };
        let trials = crate::format::plural(reason.trials.len(), "trial");
        let text = format!(
            "The check “{}” {does} {trials}: {}. {}",
            reason.check.title(),
            reason.evidence,
            reason.advice
        );
        findings.put("measurement", severity, reason.check.title(), &text);
    }
    findings.all
}

/// The problems in a comparison of runs.
pub(super) fn of_runs(runs: &RunComparison, path: &str) -> Vec<Finding> {
    let mut findings = Findings::new(&runs.b.study, path);
    match (&runs.answer, runs.outcome) {
        (Some(answer), _) => findings.answer(Some(answer)),
        (None, RunOutcome::Ok) => {}
        (None, RunOutcome::Regression) => {
            findings.put("comparison", Severity::Critical, "runs", &runs.headline);
        }
        (None, _) => findings.put("comparison", Severity::Major, "runs", &runs.headline),
    }
    findings.all
}

impl<'a> Findings<'a> {
    fn new(study: &'a str, path: &'a str) -> Self {
        let all = Vec::new();
        Self { study, path, all }
    }

    /// Of equal findings, only the first is kept.
    fn put(&mut self, check_name: &'static str, severity: Severity, what: &str, text: &str) {
        let fingerprint = format!("plimsoll/{}/{check_name}/{}", self.study, plain(what));
        if self.all.iter().any(|one| one.fingerprint == fingerprint) {
            return;
        }
        self.all.push(Finding {
            description: format!("{}: {}", self.study, plain(text.trim_end())),
            check_name,
            fingerprint,
            severity,
            location: Location {
                path: self.path.to_owned(),
                lines: Lines { begin: 1 },
            },
        });
    }

    fn missed(&mut self, trial: &TrialAnalysis, threshold: &ThresholdResult) {
        let words = threshold_words(threshold);
        let value = threshold_value(threshold);
        let text = format!("Under {}, {words} does not hold: {value}", trial.label);
        let what = format!("{}/{words}", trial.label);
        self.put("threshold", Severity::Critical, &what, &text);
    }

    fn answer(&mut self, answer: Option<&Answer>) {
        let Some(answer) = answer else { return };
        let severity = match answer.decision {
            Decision::Worse => Severity::Critical,
            known if known.is_known() => return,
            _ => Severity::Major,
        };
        self.put("answer", severity, "answer", &answer.sentence);
    }
}
