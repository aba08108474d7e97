//! `junit.xml`: test results for a build server. It has a case per trial, with its failed checks, per threshold of a
//! cell, and per comparison that decides or shows a difference: tens of cases, not hundreds.
//!
//! An *error* is an invalid measurement or one that leaves the question open, a *failure* is a server that missed a
//! requirement, and a case that can't be judged and isn't required is *skipped*: the three are never mixed up.

use std::time::Duration;

use lab_analysis::{line_difference_sentence, load_line_figure, safe_line_words};
use lab_comparison::{RunComparison, RunOutcome};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use crate::Analysis;
use crate::format::plain;
use crate::model::{
    Answer, Check, CheckOutcome, Comparison, Decision, Difference, ThresholdResult, TrialAnalysis,
    Verdict,
};
use crate::sections::{outcome, texts, threshold_value, threshold_words};

use CaseOutcome::{Broken, Failed, Passed, Skipped};

/// The outcome of a case, with a text that is shown if it didn't pass and else kept as output.
enum CaseOutcome {
    Passed(String),
    Skipped(String),
    /// The server missed a requirement.
    Failed(String),
    /// The measurement is invalid.
    Broken(String),
}

/// A run as JUnit XML.
#[must_use]
pub fn junit(analysis: &Analysis) -> String {
    let study = &analysis.study;
    let pairs = analysis.comparisons.iter().chain(&analysis.main_effects);
    let pairs = pairs.filter(|one| one.decides || one.is_shown());
    let weight = |one: &Comparison| Weight::of(one, analysis.answer.as_ref());
    let pairs = pairs.map(|one| comparison(&format!("{} → {}", one.a, one.b), one, weight(one)));
    let lines = analysis.load_lines.iter().map(|line| {
        let came = match (line.finished, line.users) {
            (false, _) => Broken,
            (true, Some(_)) => Passed,
            (true, None) => Skipped,
        };
        let text = format!("{}; {}", safe_line_words(line), load_line_figure(line));
        case(&line.label, "load line", came(text))
    });
    let suites = vec![
        ("trials", analysis.trials.iter().map(trial).collect()),
        ("checks", checks(analysis)),
        ("thresholds", thresholds(analysis)),
        ("answer", answer(&study.name, analysis.answer.as_ref())),
        ("comparisons", pairs.collect()),
        ("load line", lines.collect()),
    ];
    document(&study.name, &study.started, suites)
}

/// A comparison of runs as JUnit XML: a regression fails, a cell with too few trials is an error.
#[must_use]
pub fn junit_of_runs(runs: &RunComparison) -> String {
    let comparisons = runs.comparisons.iter();
    let comparisons = comparisons.filter(|one| one.decides || one.is_shown());
    let weight = |one: &Comparison| Weight::of(one, runs.answer.as_ref());
    let cases = comparisons.map(|one| comparison(&one.factor, one, weight(one)));
    let lines = runs.load_lines.iter().map(|one| {
        let came = match one.is_regression {
            Some(true) => Failed,
            Some(false) => Passed,
            None => Broken,
        };
        case(&one.b, "load line", came(line_difference_sentence(one)))
    });
    let mut cases: Vec<TestCase> = cases.chain(lines).collect();
    if cases.is_empty() && runs.outcome == RunOutcome::TooFewValidTrials {
        let came = Broken(runs.headline.clone());
        cases.push(case(&runs.b.study, "comparison", came));
    }
    let suites = vec![
        ("answer", answer(&runs.b.study, runs.answer.as_ref())),
        ("regressions", cases),
    ];
    document(&runs.b.study, &runs.b.started, suites)
}

fn trial(trial: &TrialAnalysis) -> TestCase {
    let checks = trial.checks.iter();
    let failing = checks.filter(|check| check.outcome == CheckOutcome::Invalid);
    let texts = failing.map(|check| format!("{}: {}", check.id.title(), check.evidence));
    let text = texts.collect::<Vec<_>>().join("; ");
    let came = match trial.verdict {
        Verdict::Valid => Passed(text),
        Verdict::Invalid => match trial.repeated_by {
            Some(id) => Skipped(format!("{text}; trial {id} repeats it")),
            None => Broken(text),
        },
    };
    let mut made = case(&trial.label, &format!("trial {}", trial.name()), came);
    made.set_time(Duration::from_millis(trial.elapsed_ms));
    made
}

/// The checks of the run as a whole that did not pass. A trial's case has the trial's own checks.
fn checks(analysis: &Analysis) -> Vec<TestCase> {
    let of = |check: &Check| {
        let advice = check.advice.as_deref().unwrap_or_default();
        let text = format!("{}: {}. {advice}", outcome(check.outcome), check.evidence);
        let text = text.trim_end().to_owned();
        let came = match check.outcome {
            CheckOutcome::Pass | CheckOutcome::NotJudged => return None,
            CheckOutcome::Warn => Passed(text),
            CheckOutcome::Invalid => Broken(text),
        };
        Some(case("the run", check.id.title(), came))
    };
    analysis.checks.iter().filter_map(of).collect()
}

/// A case for each threshold of a cell, over its trials.
fn thresholds(analysis: &Analysis) -> Vec<TestCase> {
    let mut cells: Vec<(&str, String, Vec<OfTrial<'_>>)> = Vec::new();
    for trial in &analysis.trials {
        for threshold in &trial.thresholds {
            let words = threshold_words(threshold);
            let same = |(label, of, _): &&mut (&str, String, Vec<_>)| {
                *label == trial.label && *of == words
            };
            match cells.iter_mut().find(same) {
                Some((.., each)) => each.push((trial, threshold)),
                None => cells.push((&trial.label, words, vec![(trial, threshold)])),
            }
        }
    }
    let cases = cells.iter().map(|(label, words, each)| {
        let valid = || {
            each.iter()
                .filter(|(trial, _)| trial.verdict == Verdict::Valid)
        };
        let failed = |(_, threshold): &&OfTrial<'_>| !threshold.holds;
        let told = |of: Vec<&OfTrial<'_>>| {
            let texts = of.iter().map(|(trial, threshold)| {
                let measured = match &threshold.reason {
                    Some(reason) => reason.clone(),
                    None => format!("measured {}", threshold_value(threshold)),
                };
                format!("trial {}: {measured}", trial.id)
            });
            texts.collect::<Vec<_>>().join("; ")
        };
        let missed: Vec<_> = valid().filter(failed).collect();
        let came = match (valid().count(), missed.is_empty()) {
            (0, _) => Skipped("no trial is valid".to_owned()),
            (_, true) => Passed(told(valid().collect())),
            (_, false) => Failed(told(missed)),
        };
        case(label, words, came)
    });
    cases.collect()
}

/// The result of a threshold in a trial.
type OfTrial<'a> = (&'a TrialAnalysis, &'a ThresholdResult);

/// The answer to the study's question.
fn answer(class: &str, answer: Option<&Answer>) -> Vec<TestCase> {
    let case = answer.map(|answer| {
        let came = match answer.decision {
            Decision::Worse => Failed,
            known if known.is_known() => Passed,
            _ => Broken,
        };
        case(class, "answer", came(answer.sentence.clone()))
    });
    case.into_iter().collect()
}

/// The role of a comparison.
#[derive(Clone, Copy)]
enum Weight {
    /// It decides the answer, and *b* must not be worse.
    Gate,
    /// It decides the answer, and a difference of either sign is one.
    Description,
    /// No role: others decide.
    Exploratory,
    /// No role: the study asks for no comparison.
    Unasked,
}

impl Weight {
    fn of(one: &Comparison, answer: Option<&Answer>) -> Self {
        match answer {
            None => Self::Unasked,
            Some(_) if !one.decides => Self::Exploratory,
            Some(answer) if answer.is_gate => Self::Gate,
            Some(_) => Self::Description,
        }
    }
}

/// For a deciding comparison, a worse one is a failure of the server, and one without a verdict is a failure of the
/// measurement. An exploratory comparison changes no result, and is marked as exploratory.
fn comparison(class: &str, one: &Comparison, weight: Weight) -> TestCase {
    let shown = texts(one);
    let reason = one.reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    let role = match weight {
        Weight::Exploratory => "exploratory, decides nothing: ",
        Weight::Gate | Weight::Description | Weight::Unasked => "",
    };
    let text = format!(
        "{role}{}: {} → {} ({}), interval {}, p {}{reason}",
        shown.verdict, shown.a, shown.b, shown.relative, shown.interval, shown.p
    );
    let came = match (one.verdict, weight) {
        (None | Some(Difference::CouldNotTell), Weight::Gate | Weight::Description) => Broken(text),
        (None | Some(Difference::CouldNotTell), _) => Skipped(text),
        (Some(verdict), Weight::Gate) if verdict.is_worse() => Failed(text),
        (Some(_), _) => Passed(text),
    };
    case(class, one.metric.name(), came)
}

fn document(name: &str, started: &str, suites: Vec<(&str, Vec<TestCase>)>) -> String {
    let mut report = Report::unnamed();
    for (kind, cases) in suites.into_iter().filter(|(_, cases)| !cases.is_empty()) {
        let mut suite = TestSuite::new(text_of(&format!("{name}: {kind}")));
        suite.set_time(cases.iter().filter_map(|case| case.time).sum());
        // The schema wants the time of day without a zone.
        let started: String = text_of(started).chars().take(19).collect();
        suite.extra.insert("timestamp".into(), started.into());
        suite.add_test_cases(cases);
        report.add_test_suite(suite);
    }
    let text = report.to_string();
    text.expect("a string takes all writes")
}

fn case(class: &str, name: &str, came: CaseOutcome) -> TestCase {
    let unlike_success = |kind, ty, text: &str| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_message(text_of(text)).set_type(ty);
        status
    };
    let mut output = None;
    let status = match came {
        Passed(text) => {
            output = Some(text).filter(|text| !text.is_empty());
            TestCaseStatus::success()
        }
        Skipped(text) => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(text_of(&text));
            status
        }
        Failed(text) => unlike_success(NonSuccessKind::Failure, "threshold", &text),
        Broken(text) => unlike_success(NonSuccessKind::Error, "measurement", &text),
    };
    let mut made = TestCase::new(text_of(name), status);
    made.set_classname(text_of(class)).set_time(Duration::ZERO);
    if let Some(output) = output {
        made.set_system_out(text_of(&output));
    }
    made
}

/// Valid XML text: without the characters that XML 1.0 forbids.
fn text_of(text: &str) -> String {
    plain(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
