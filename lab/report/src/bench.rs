//! The page of one request under load: whether the measurement is valid, and the figures.

use std::fmt::Write as _;

use crate::Analysis;
use crate::format::{count, duration, figure, list, ms, or_none, percent, plain, plural_count};
use crate::model::{Check, CheckOutcome, Times, TrialAnalysis, Verdict};

/// Columns of the page.
pub const WIDTH: usize = 80;

/// The maximum number of examples of errors.
const EXAMPLES: usize = 3;
/// The maximum length of an example in characters: it contains parts of unexpected responses.
const MOST_CHARS: usize = 300;

/// The text of an error for a reader.
type Cure<'a> = &'a dyn Fn(&str) -> String;

/// The result, [`WIDTH`] columns wide, and the path of its report. Errors contain keys of studies; `cure` rewrites them
/// for callers without a study.
#[must_use]
pub fn page(analysis: &Analysis, report: &str, cure: Cure<'_>) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", analysis.study.title);
    match analysis.trials.last() {
        Some(trial) => {
            let checks = Judged::of(trial);
            let _ = writeln!(text, "\n{}\n", checks.headline(trial, cure));
            if let Some(note) = analysis.certificates_note() {
                let _ = writeln!(text, "{}\n", textwrap::fill(&cure(&note), WIDTH));
            }
            if is_unanswered(trial) {
                examples(trial, cure, &mut text);
            } else if trial.system_failure.is_none() {
                figures(trial, cure, &mut text);
                text.push_str(&checks.told());
            }
        }
        None => text.push_str("nothing was measured\n"),
    }
    let _ = writeln!(text, "\nreport: {report}");
    text
}

/// Returns true if all requests failed: then the page has only the reasons.
#[must_use]
pub fn is_unanswered(trial: &TrialAnalysis) -> bool {
    trial.system_failure.is_none() && trial.transactions == 0 && trial.errors > 0
}

/// The checks that did not pass, and the number of those that did.
struct Judged<'a> {
    passed: usize,
    invalid: Vec<&'a Check>,
    warning: Vec<&'a Check>,
}

impl<'a> Judged<'a> {
    fn of(trial: &'a TrialAnalysis) -> Self {
        let checks = |outcome: CheckOutcome| -> Vec<&'a Check> {
            let all = trial.checks.iter();
            all.filter(|check| check.outcome == outcome).collect()
        };
        Self {
            passed: checks(CheckOutcome::Pass).len(),
            invalid: checks(CheckOutcome::Invalid),
            warning: checks(CheckOutcome::Warn),
        }
    }

    /// The verdict on the measurement.
    fn headline(&self, trial: &TrialAnalysis, cure: Cure<'_>) -> String {
        if let Some(failure) = &trial.system_failure {
            let failure = cure(failure);
            return textwrap::fill(&format!("Nothing was measured: {failure}"), WIDTH);
        }
        if is_unanswered(trial) {
            let sent = plural_count(trial.errors, "request");
            return format!("Nothing was measured: {sent} sent, and all failed.");
        }
        let names = |checks: &[&Check]| -> String {
            let names: Vec<String> = checks
                .iter()
                .map(|check| check.id.title().to_owned())
                .collect();
            list(&names)
        };
        let line = match (trial.verdict, self.warning.as_slice()) {
            (Verdict::Valid, []) => format!("A measurement: {} checks passed.", self.passed),
            (Verdict::Valid, warning) => format!(
                "A measurement: {} checks passed; {} warned (see below).",
                self.passed,
                names(warning)
            ),
            (Verdict::Invalid, _) => format!(
                "NOT a measurement, by {} (see below): take the figures for a hint.",
                names(&self.invalid)
            ),
        };
        textwrap::fill(&line, WIDTH)
    }

    /// The reasons against it, a paragraph each.
    fn told(&self) -> String {
        let mut text = String::new();
        for check in self.invalid.iter().chain(&self.warning) {
            let word = match check.outcome {
                CheckOutcome::Invalid => "INVALID",
                _ => "warning",
            };
            let advice = check.advice.as_deref().map(|advice| format!(" → {advice}"));
            let advice = advice.unwrap_or_default();
            let name = check.id.title();
            let line = format!("- {name}, {word}: {}{advice}", check.evidence);
            let wrapped = textwrap::Options::new(WIDTH).subsequent_indent("  ");
            let _ = write!(text, "\n{}", textwrap::fill(&line, &wrapped));
        }
        match text.is_empty() {
            true => text,
            false => text + "\n",
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a trial stay far below 2^52"
)]
fn figures(trial: &TrialAnalysis, cure: Cure<'_>, text: &mut String) {
    let per_s = |value: Option<f64>| or_none(value, figure);
    let (ramp, hold) = (trial.ramp_ms as f64, trial.hold_ms as f64);
    let users = count(u64::from(trial.users));
    let load = match trial.arrivals {
        Some(arrivals) => format!("{} sessions per s arrive", figure(arrivals.planned_per_s)),
        None => format!("{users} users"),
    };
    let rows = [
        (
            "load",
            format!(
                "{load}, {} after a ramp of {}",
                duration(hold),
                duration(ramp)
            ),
        ),
        (
            "requests",
            format!(
                "{} answered, {} per s in the hold",
                count(trial.transactions),
                per_s(trial.throughput_per_s)
            ),
        ),
        ("bodies", bodies(trial)),
        ("errors", errors(trial)),
        ("server", server(trial)),
        ("generator", generator(trial)),
    ];
    for (name, value) in rows {
        let options = textwrap::Options::new(WIDTH)
            .initial_indent("")
            .subsequent_indent("               ");
        let line = format!("  {name:<13}{value}");
        let _ = writeln!(text, "{}", textwrap::fill(&line, &options));
    }
    examples(trial, cure, text);
    let _ = writeln!(text, "\n  response time in ms");
    times(&trial.response_ms, text);
}

/// Distinct errors, each whole: the end of an error is mostly the cure.
fn examples(trial: &TrialAnalysis, cure: Cure<'_>, text: &mut String) {
    let mut told: Vec<String> = Vec::new();
    for example in &trial.error_examples {
        let detail = plain(&example.detail);
        let detail = cure(&detail);
        if told.len() < EXAMPLES && !told.contains(&detail) {
            told.push(detail);
        }
    }
    let options = textwrap::Options::new(WIDTH)
        .initial_indent("               - ")
        .subsequent_indent("                 ");
    for detail in told {
        let _ = writeln!(text, "{}", textwrap::fill(&cut(&detail), &options));
    }
}

/// Truncates a text to a few lines.
fn cut(text: &str) -> String {
    match text.chars().count() > MOST_CHARS {
        true => text.chars().take(MOST_CHARS - 1).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

fn bodies(trial: &TrialAnalysis) -> String {
    let body = trial.steps.first().and_then(|step| step.body_bytes);
    let rate = body.zip(trial.throughput_per_s).map(|(b, per_s)| b * per_s);
    match body.zip(rate) {
        Some((body, rate)) => format!("{} each, {} per s", bytes(body), bytes(rate)),
        None => "–".to_owned(),
    }
}

fn bytes(n: f64) -> String {
    const UNITS: [&str; 4] = ["bytes", "KiB", "MiB", "GiB"];
    let mut value = n;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", figure(value), UNITS[unit])
}

fn errors(trial: &TrialAnalysis) -> String {
    let classes = trial.errors_by_class.iter();
    let classes: Vec<String> = classes
        .map(|(class, n)| format!("{} {class:?}", count(*n)).to_lowercase())
        .collect();
    match classes.is_empty() {
        true => "0".to_owned(),
        false => format!("{}: {}", count(trial.errors), list(&classes)),
    }
}

/// The server's cost, if its process is known.
fn server(trial: &TrialAnalysis) -> String {
    let counter = |name: &str| trial.system.get(name).copied().flatten();
    let Some(cpu) = counter("cpu_percent") else {
        return "its process is not known, so neither are its CPU and memory".to_owned();
    };
    let each = counter("cpu_ms_per_transaction");
    let each = each.map(|each| format!(", {} ms CPU per request", ms(each)));
    let memory = counter("rss_mb_max").map(|mb| format!(", {} MB", figure(mb)));
    format!(
        "{} of one core{}{}",
        percent(cpu),
        each.unwrap_or_default(),
        memory.unwrap_or_default()
    )
}

/// The load of the generator: near its maximum, the figures are of the generator, and not of the server.
fn generator(trial: &TrialAnalysis) -> String {
    let late = match (trial.lateness_ms.p99, trial.lateness_ms.max) {
        (Some(p99), _) => format!("sent up to {} ms late (p99)", ms(p99)),
        (None, Some(max)) => format!("sent up to {} ms late", ms(max)),
        (None, None) => "lateness of sends not told".to_owned(),
    };
    let cpu = trial
        .generator
        .counters
        .get("cpu_percent")
        .copied()
        .flatten();
    match cpu {
        Some(cpu) => format!("{late}, with {} of one core", percent(cpu)),
        None => late,
    }
}

fn times(times: &Times, text: &mut String) {
    let columns = [
        ("mean", times.mean),
        ("min", times.min),
        ("p50", times.p50),
        ("p90", times.p90),
        ("p95", times.p95),
        ("p99", times.p99),
        ("p99.9", times.p999),
        ("max", times.max),
    ];
    for (name, _) in columns {
        let _ = write!(text, "{name:>9}");
    }
    text.push('\n');
    for (_, value) in columns {
        let _ = write!(text, "{:>9}", or_none(value, ms));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_suits_them() {
        for (n, text) in [
            (12.0, "12.0 bytes"),
            (2048.0, "2.00 KiB"),
            (3e9, "2.79 GiB"),
        ] {
            assert_eq!(bytes(n), text);
        }
    }
}
