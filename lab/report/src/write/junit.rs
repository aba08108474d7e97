//! `junit.xml`: what a build server shows as tests. A case per trial, check, threshold, comparison.
//!
//! An *error* is a measurement that is none, a *failure* is a server that missed what was asked, and
//! what can't be judged is *skipped*: the three are never mixed up.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::Analysis;
use crate::model::{
    Check, CheckOutcome, Comparison, Difference, RunComparison, RunOutcome, TrialAnalysis, Verdict,
};
use crate::sections::{difference, outcome, texts, threshold_value, threshold_words};
use lab_analysis::{line_difference_sentence, load_line_figure};

/// How a case came out.
enum Came {
    Passed,
    Skipped,
    /// The server missed what was asked.
    Failed,
    /// The measurement is none.
    Broken,
}

struct Case {
    class: String,
    name: String,
    elapsed_ms: u64,
    came: Came,
    /// Shown beside what didn't pass, else kept as output.
    text: String,
}

/// A run as JUnit XML.
#[must_use]
pub fn junit(analysis: &Analysis) -> String {
    let study = &analysis.study;
    let mut suites = vec![
        ("trials", trials(analysis)),
        ("checks", checks(analysis)),
        ("thresholds", thresholds(analysis)),
    ];
    let pairs = analysis.comparisons.iter().chain(&analysis.main_effects);
    let pairs = pairs.map(|one| comparison(&format!("{} → {}", one.a, one.b), one, false));
    suites.push(("comparisons", pairs.collect()));
    let lines = analysis.load_lines.iter().map(|line| Case {
        class: line.label.clone(),
        name: "load line".to_owned(),
        elapsed_ms: 0,
        came: if line.users.is_some() {
            Came::Passed
        } else {
            Came::Skipped
        },
        text: load_line_figure(line),
    });
    suites.push(("load line", lines.collect()));
    document(&study.name, &study.started, suites)
}

/// A comparison of runs as JUnit XML: a regression fails, a cell with too few trials is an error.
#[must_use]
pub fn junit_of_runs(runs: &RunComparison) -> String {
    let cases = runs
        .comparisons
        .iter()
        .map(|one| comparison(&one.factor, one, true));
    let lines = runs.load_lines.iter().map(|one| Case {
        class: one.b.clone(),
        name: "load line".to_owned(),
        elapsed_ms: 0,
        came: match one.is_regression {
            Some(true) => Came::Failed,
            Some(false) => Came::Passed,
            None => Came::Broken,
        },
        text: line_difference_sentence(one),
    });
    let mut cases: Vec<Case> = cases.chain(lines).collect();
    if cases.is_empty() && runs.outcome == RunOutcome::TooFewValidTrials {
        cases.push(Case {
            class: runs.b.study.clone(),
            name: "comparison".to_owned(),
            elapsed_ms: 0,
            came: Came::Broken,
            text: runs.headline.clone(),
        });
    }
    document(&runs.b.study, &runs.b.started, vec![("regressions", cases)])
}

fn trials(analysis: &Analysis) -> Vec<Case> {
    let case = |trial: &TrialAnalysis| {
        let failing = trial
            .checks
            .iter()
            .filter(|check| check.outcome == CheckOutcome::Invalid)
            .map(|check| format!("{}: {}", check.name, check.evidence));
        let text: Vec<String> = failing.collect();
        Case {
            class: trial.label.clone(),
            name: format!("trial {}", trial.id),
            elapsed_ms: trial.elapsed_ms,
            came: match trial.verdict {
                Verdict::Valid => Came::Passed,
                Verdict::Invalid => Came::Broken,
            },
            text: text.join("; "),
        }
    };
    analysis.trials.iter().map(case).collect()
}

fn checks(analysis: &Analysis) -> Vec<Case> {
    let case = |class: &str, check: &Check| Case {
        class: class.to_owned(),
        name: check.name.to_owned(),
        elapsed_ms: 0,
        came: match check.outcome {
            CheckOutcome::Pass | CheckOutcome::Warn => Came::Passed,
            CheckOutcome::NotJudged => Came::Skipped,
            CheckOutcome::Invalid => Came::Broken,
        },
        text: line(check),
    };
    let run = analysis.checks.iter().map(|check| case("the run", check));
    let of_trials = analysis.trials.iter().flat_map(|trial| {
        let class = format!("trial {}, {}", trial.id, trial.label);
        trial.checks.iter().map(move |check| case(&class, check))
    });
    run.chain(of_trials).collect()
}

fn line(check: &Check) -> String {
    let advice = check.advice.as_deref().unwrap_or_default();
    let text = format!("{}: {}. {advice}", outcome(check.outcome), check.evidence);
    text.trim_end().to_owned()
}

fn thresholds(analysis: &Analysis) -> Vec<Case> {
    let of_trial = |trial: &TrialAnalysis| {
        let thresholds = trial.thresholds.iter();
        let case = thresholds.map(|threshold| Case {
            class: format!("trial {}, {}", trial.id, trial.label),
            name: threshold_words(threshold),
            elapsed_ms: 0,
            came: match (trial.verdict, threshold.holds) {
                (Verdict::Invalid, _) => Came::Skipped,
                (Verdict::Valid, true) => Came::Passed,
                (Verdict::Valid, false) => Came::Failed,
            },
            text: match &threshold.reason {
                Some(reason) => reason.clone(),
                None => format!("measured {}", threshold_value(threshold)),
            },
        });
        case.collect::<Vec<_>>()
    };
    analysis.trials.iter().flat_map(of_trial).collect()
}

/// Between cells of a run a difference is an answer; between runs a worse one is a regression.
fn comparison(class: &str, one: &Comparison, between_runs: bool) -> Case {
    let shown = texts(one);
    let reason = one.reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    Case {
        class: class.to_owned(),
        name: one.metric.name().to_owned(),
        elapsed_ms: 0,
        came: match (one.verdict, between_runs) {
            (None, true) => Came::Broken,
            (None, false) => Came::Skipped,
            (Some(verdict), true) if verdict.is_worse() => Came::Failed,
            (Some(Difference::Unstable), _) => Came::Skipped,
            (Some(_), _) => Came::Passed,
        },
        text: format!(
            "{}: {} → {} ({}), interval {}, p {}{reason}",
            difference(one),
            shown.a,
            shown.b,
            shown.relative,
            shown.interval,
            shown.p
        ),
    }
}

fn document(name: &str, started: &str, suites: Vec<(&str, Vec<Case>)>) -> String {
    let mut report = Report::unnamed();
    for (kind, cases) in suites.into_iter().filter(|(_, cases)| !cases.is_empty()) {
        let mut suite = TestSuite::new(text_of(&format!("{name}: {kind}")));
        let elapsed_ms = cases.iter().map(|case| case.elapsed_ms).sum();
        suite.set_time(Duration::from_millis(elapsed_ms));
        // The schema wants the time of day without a zone.
        let started: String = text_of(started).chars().take(19).collect();
        suite.extra.insert("timestamp".into(), started.into());
        suite.add_test_cases(cases.into_iter().map(test_case));
        report.add_test_suite(suite);
    }
    let text = report.to_string();
    text.expect("a string takes all writes")
}

fn test_case(case: Case) -> TestCase {
    let text = text_of(&case.text);
    let unlike_success = |kind, ty| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_message(&text).set_type(ty);
        status
    };
    let status = match case.came {
        Came::Passed => TestCaseStatus::success(),
        Came::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(&text);
            status
        }
        Came::Failed => unlike_success(NonSuccessKind::Failure, "threshold"),
        Came::Broken => unlike_success(NonSuccessKind::Error, "measurement"),
    };
    let has_output = matches!(case.came, Came::Passed) && !text.is_empty();
    let mut made = TestCase::new(text_of(&case.name), status);
    made.set_classname(text_of(&case.class));
    made.set_time(Duration::from_millis(case.elapsed_ms));
    if has_output {
        made.set_system_out(&text);
    }
    made
}

/// Text that XML takes: without the characters that XML 1.0 forbids.
fn text_of(text: &str) -> String {
    crate::format::plain(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
