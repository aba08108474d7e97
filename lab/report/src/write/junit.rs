//! `junit.xml`: what a build server shows as tests. A case per trial, check, threshold, comparison;
//! the schema is the one that Jenkins' xUnit plugin checks (`junit-10.xsd`).
//!
//! An *error* is a measurement that is none, a *failure* is a server that missed what was asked, and
//! what can't be judged is *skipped*: the three are never mixed up.

use std::fmt::Write as _;

use crate::Analysis;
use crate::format::plain;
use crate::model::{
    Check, CheckOutcome, Comparison, Difference, RunComparison, RunOutcome, TrialAnalysis, Verdict,
};
use crate::write::differences::{texts, verdict};
use crate::write::words::{outcome, threshold_value, threshold_words};
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
    seconds: f64,
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
        seconds: 0.0,
        came: if line.users.is_some() {
            Came::Passed
        } else {
            Came::Skipped
        },
        text: load_line_figure(line),
    });
    suites.push(("load line", lines.collect()));
    document(&study.name, &study.started, &suites)
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
        seconds: 0.0,
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
            seconds: 0.0,
            came: Came::Broken,
            text: runs.headline.clone(),
        });
    }
    document(&runs.b.study, &runs.b.started, &[("regressions", cases)])
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
            seconds: seconds(trial),
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
        seconds: 0.0,
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
    let mut cases = Vec::new();
    for trial in &analysis.trials {
        for threshold in &trial.thresholds {
            let step = threshold
                .step
                .as_ref()
                .map_or_else(String::new, |step| format!(" in “{step}”"));
            let measured = match &threshold.reason {
                Some(reason) => reason.clone(),
                None => format!("measured {}", threshold_value(threshold, threshold.value)),
            };
            cases.push(Case {
                class: format!("trial {}, {}", trial.id, trial.label),
                name: format!("{}{step}", threshold_words(threshold)),
                seconds: 0.0,
                came: match (trial.verdict, threshold.holds) {
                    (Verdict::Invalid, _) => Came::Skipped,
                    (Verdict::Valid, true) => Came::Passed,
                    (Verdict::Valid, false) => Came::Failed,
                },
                text: measured,
            });
        }
    }
    cases
}

/// Between cells of a run a difference is an answer; between runs a worse one is a regression.
fn comparison(class: &str, one: &Comparison, between_runs: bool) -> Case {
    let shown = texts(one);
    let reason = one.reason.as_ref();
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    Case {
        class: class.to_owned(),
        name: one.metric.name().to_owned(),
        seconds: 0.0,
        came: match (one.verdict, between_runs) {
            (None, true) => Came::Broken,
            (None, false) => Came::Skipped,
            (Some(verdict), true) if verdict.is_worse() => Came::Failed,
            (Some(Difference::Unstable), _) => Came::Skipped,
            (Some(_), _) => Came::Passed,
        },
        text: format!(
            "{}: {} → {} ({}), interval {}, p {}{reason}",
            verdict(one),
            shown.a,
            shown.b,
            shown.relative,
            shown.interval,
            shown.p
        ),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a trial stay far below 2^52"
)]
fn seconds(trial: &TrialAnalysis) -> f64 {
    trial.elapsed_ms as f64 / 1000.0
}

fn document(name: &str, started: &str, suites: &[(&str, Vec<Case>)]) -> String {
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n".to_owned();
    for (suite_name, cases) in suites.iter().filter(|(_, cases)| !cases.is_empty()) {
        suite(&mut xml, &format!("{name}: {suite_name}"), started, cases);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(xml: &mut String, name: &str, started: &str, cases: &[Case]) {
    let of = |wanted: fn(&Came) -> bool| cases.iter().filter(|case| wanted(&case.came)).count();
    // The schema wants the time of day without a zone.
    let started: String = started.chars().take(19).collect();
    let time: f64 = cases.iter().map(|case| case.seconds).sum();
    let _ = writeln!(
        xml,
        "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" \
         time=\"{time:.3}\" timestamp=\"{}\">",
        escape(name),
        cases.len(),
        of(|came| matches!(came, Came::Failed)),
        of(|came| matches!(came, Came::Broken)),
        of(|came| matches!(came, Came::Skipped)),
        escape(&started),
    );
    for case in cases {
        write_case(xml, case);
    }
    xml.push_str("  </testsuite>\n");
}

fn write_case(xml: &mut String, case: &Case) {
    let text = escape(&case.text);
    let _ = write!(
        xml,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">",
        escape(&case.class),
        escape(&case.name),
        case.seconds
    );
    let _ = match case.came {
        Came::Passed if text.is_empty() => Ok(()),
        Came::Passed => write!(xml, "<system-out>{text}</system-out>"),
        Came::Skipped => write!(xml, "<skipped message=\"{text}\"/>"),
        Came::Failed => write!(xml, "<failure type=\"threshold\" message=\"{text}\"/>"),
        Came::Broken => write!(xml, "<error type=\"measurement\" message=\"{text}\"/>"),
    };
    xml.push_str("</testcase>\n");
}

/// Text that XML takes as it is: no markup, and no character that XML 1.0 forbids.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
