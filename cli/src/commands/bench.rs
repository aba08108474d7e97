//! `plimsoll bench`: one request under load, whether that was a measurement, and the figures.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_analysis::Analysis;
use lab_analysis::format::{count, duration, figure, list, ms, or_none, percent};
use lab_analysis::model::{Check, CheckOutcome, Times, TrialAnalysis, Verdict};
use lab_conduct::Patience;

use crate::args::{GateArgs, StudyArgs};
use crate::commands::folder::Folder;
use crate::commands::report;
use crate::commands::run::{conduct, now};
use crate::commands::{RUNS, print, quick, request};
use crate::exit::{Exit, Failure};
use crate::live::Page;
use crate::talk::say;
use crate::trying::BenchArgs;
use crate::width::USUAL;

/// Most examples of errors.
const EXAMPLES: usize = 3;

pub(crate) fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    let study = StudyArgs {
        study: PathBuf::from("bench"),
        speed: 1.0,
        set: Vec::new(),
        seed: None,
        state: args.state.clone(),
    };
    let (loaded, plan) = quick::bench(args, &study)?;
    let out = match &args.out {
        Some(out) => Folder::named(out.clone()),
        None => Folder::new(Path::new(RUNS), &plan.study, now()),
    };
    let mut request = request::new(&study, (loaded, plan), out.path.clone(), false)?;
    // Who asks for one number doesn't want to wait for a quiet machine; what disturbed is told.
    request.patience = Patience {
        trial: Duration::ZERO,
        run: Duration::ZERO,
    };
    let outcome = conduct(&request, Page::None)?;
    if outcome.completed == 0 {
        say(format_args!("interrupted: nothing was measured"));
        return Ok(Exit::Interrupted);
    }
    let analysis = report::read(&outcome.dir)?;
    report::write_files(&analysis, &outcome.dir)?;
    print(&summary(&analysis, &outcome.dir))?;
    Ok(report::exit(&analysis, GateArgs { lenient: false }))
}

/// What came out, 80 columns wide.
fn summary(analysis: &Analysis, dir: &Path) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", analysis.study.title);
    match analysis.trials.last() {
        Some(trial) => {
            let checks = Judged::of(trial);
            let _ = writeln!(text, "\n{}\n", checks.headline(trial));
            if trial.system_failure.is_none() {
                figures(trial, &mut text);
                text.push_str(&checks.told());
            }
        }
        None => text.push_str("nothing was measured\n"),
    }
    let _ = writeln!(text, "\nreport: {}", dir.join("report.html").display());
    text
}

/// The checks that did not pass, and how many did.
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

    /// Whether it is a measurement.
    fn headline(&self, trial: &TrialAnalysis) -> String {
        if let Some(failure) = &trial.system_failure {
            return format!("Nothing was measured: {failure}");
        }
        let names = |checks: &[&Check]| -> String {
            let names: Vec<String> = checks.iter().map(|check| check.name.to_owned()).collect();
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
        textwrap::fill(&line, USUAL)
    }

    /// What speaks against it, a paragraph each.
    fn told(&self) -> String {
        let mut text = String::new();
        for check in self.invalid.iter().chain(&self.warning) {
            let word = match check.outcome {
                CheckOutcome::Invalid => "INVALID",
                _ => "warning",
            };
            let advice = check.advice.as_deref().map(|advice| format!(" → {advice}"));
            let advice = advice.unwrap_or_default();
            let line = format!("- {}, {word}: {}{advice}", check.name, check.evidence);
            let wrapped = textwrap::Options::new(USUAL).subsequent_indent("  ");
            let _ = write!(text, "\n{}", textwrap::fill(&line, &wrapped));
        }
        match text.is_empty() {
            true => text,
            false => text + "\n",
        }
    }
}

fn figures(trial: &TrialAnalysis, text: &mut String) {
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
        let options = textwrap::Options::new(USUAL)
            .initial_indent("")
            .subsequent_indent("               ");
        let line = format!("  {name:<13}{value}");
        let _ = writeln!(text, "{}", textwrap::fill(&line, &options));
    }
    for example in trial.error_examples.iter().take(EXAMPLES) {
        let detail = lab_analysis::format::plain(&example.detail);
        let _ = writeln!(text, "                 {}", cut(&detail, USUAL - 17));
    }
    let _ = writeln!(text, "\n  response time in ms");
    times(&trial.response_ms, text);
}

fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most - 1).chain(['…']).collect(),
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

/// What it cost the server, where its process is known.
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

/// How near the generator was to what it can do: then it is measured, and not the server.
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
    fn a_page_that_says_first_whether_it_is_a_measurement() {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
        let pages = ["workload", "search"].map(|name| {
            let analysis = report::read(&golden.join(name)).unwrap();
            summary(&analysis, Path::new("runs/bench"))
        });
        let widest = pages.iter().flat_map(|page| page.lines().skip(1));
        assert!(widest.map(|line| line.chars().count()).max() <= Some(USUAL));
        insta::assert_snapshot!(pages.join("\n════\n"));
    }

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
