//! The state of a run as OpenMetrics text (version 1.0), for Prometheus and compatible systems.
//!
//! Response times are exposed as histograms, which add up over trials, steps, and generators; never as quantiles, which
//! don't. Names, labels, and bounds are those of `lab-export`.

use std::fmt::Write as _;

use lab_analysis::model::LoadLine;
use lab_stats::exponential::Exponential;

use crate::state::{Mode, Outcome, State};
use crate::trial::{COUNTERS, Counted, Step, Trial};
use crate::watch::Watch;

/// The content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The run's metrics.
#[must_use]
pub fn metrics(watch: &Watch) -> String {
    let state = watch.state();
    let mut text = String::new();
    let run = watch.run();
    let study = labels(&[("run", run), ("study", &state.manifest.study)]);
    let (done, valid) = state.counts();
    gauge(&mut text, "plimsoll_run_up", "Whether the run goes on.");
    let up = u8::from(state.mode == Mode::Running);
    let _ = writeln!(text, "plimsoll_run_up{{{study}}} {up}");
    gauge(
        &mut text,
        "plimsoll_trials",
        "Trials of the plan, by what became of them.",
    );
    let failed = |outcome| {
        state
            .done
            .iter()
            .filter(|one| one.outcome == outcome)
            .count()
    };
    let counts = [
        ("planned", state.trials as usize),
        ("done", done),
        ("valid", valid),
        ("invalid", failed(Outcome::Invalid)),
        ("system_failed", failed(Outcome::SystemFailed)),
    ];
    for (which, count) in counts {
        let _ = writeln!(text, "plimsoll_trials{{{study},state=\"{which}\"}} {count}");
    }
    gauge(
        &mut text,
        "plimsoll_load_left_seconds",
        "Ramps and holds that are left.",
    );
    let left = state.left_ms() / 1e3;
    let _ = writeln!(text, "plimsoll_load_left_seconds{{{study}}} {left}");
    if let Some(analysis) = watch.analysis() {
        of_lines(&mut text, &study, &analysis.load_lines);
    }
    of_done(&mut text, &study, state);
    if let Some(trial) = &state.trial {
        of_trial(&mut text, &study, trial);
    }
    text.push_str("# EOF\n");
    text
}

/// The lines of a search, as far as complete trials show them; unknown ones are omitted.
fn of_lines(text: &mut String, study: &str, lines: &[LoadLine]) {
    let mut each = |name: &str, help: &str, of: &dyn Fn(&LoadLine) -> Option<f64>| {
        let told: Vec<_> = lines
            .iter()
            .filter_map(|line| Some((line, of(line)?)))
            .collect();
        if !told.is_empty() {
            gauge(text, name, help);
        }
        for (line, value) in told {
            let cell = labels(&[("cell", &line.label)]);
            let _ = writeln!(text, "{name}{{{study},{cell}}} {value}");
        }
    };
    each(
        "plimsoll_safe_line_users",
        "The most users with whom nearly all trials are shown to hold.",
        &|line| Some(f64::from(line.safe?.users)),
    );
    each(
        "plimsoll_safe_line_ratio",
        "At least this part of the trials with so many users is shown to hold.",
        &|line| Some(line.safe?.part),
    );
    each(
        "plimsoll_load_line_users",
        "The most users with whom half of the trials hold.",
        &|line| line.users.map(f64::from),
    );
}

/// The finished trials.
fn of_done(text: &mut String, study: &str, state: &State) {
    if state.done.is_empty() {
        return;
    }
    let name = "plimsoll_trial_valid";
    gauge(text, name, "Whether a trial that is over is a measurement.");
    for done in &state.done {
        let id = done.id.to_string();
        let of = labels(&[("trial", &id), ("cell", &done.label)]);
        let is_valid = u8::from(done.outcome == Outcome::Valid);
        let _ = writeln!(text, "{name}{{{study},{of}}} {is_valid}");
    }
}

fn of_trial(text: &mut String, study: &str, trial: &Trial) {
    let id = trial.id.to_string();
    let of = labels(&[("trial", &id), ("cell", &trial.label)]);
    let of = format!("{study},{of}");
    gauge(text, "plimsoll_users", "Users in a session.");
    let _ = writeln!(text, "plimsoll_users{{{of}}} {}", trial.users_now());
    counter(text, "plimsoll_sessions", "Sessions begun, ramp included.");
    let _ = writeln!(text, "plimsoll_sessions_total{{{of}}} {}", trial.sessions);
    counter(
        text,
        "plimsoll_requests",
        "Requests by what came back, ramp included.",
    );
    let steps = || trial.steps.iter().chain(&trial.probe);
    for step in steps() {
        requests(text, &of, ("plimsoll_requests_total", "step"), step);
    }
    times(text, &of, trial);
    transactions(text, &of, trial);
    measures(text, &of, trial);
    gauge(
        text,
        "plimsoll_counter",
        "The newest samples of host and processes, as in monitor.csv.",
    );
    newest(text, &of, "", &trial.counters);
    for part in &trial.parts {
        newest(
            text,
            &of,
            &format!("{}/", escaped(&part.name)),
            &part.counted,
        );
    }
}

/// The newest samples of a machine; `begin` is the prefix of its counters' names.
fn newest(text: &mut String, of: &str, begin: &str, counted: &Counted) {
    for (column, value) in COUNTERS.iter().zip(counted.newest) {
        if let Some(value) = value {
            let _ = writeln!(
                text,
                "plimsoll_counter{{{of},name=\"{begin}{column}\"}} {value}"
            );
        }
    }
}

fn requests(text: &mut String, of: &str, (counter, label): (&str, &str), step: &Step) {
    let name = escaped(&step.name);
    let mut line = |outcome: &str, count: u64| {
        let _ = writeln!(
            text,
            "{counter}{{{of},{label}=\"{name}\",outcome=\"{outcome}\"}} {count}"
        );
    };
    line("ok", step.ok);
    for (class, count) in step.errors.iter() {
        line(class.name(), count);
    }
}

fn times(text: &mut String, of: &str, trial: &Trial) {
    let name = "plimsoll_response_time_seconds";
    seconds(
        text,
        name,
        "Of answered requests, from the planned send, ramp included.",
    );
    for step in trial.steps.iter().chain(&trial.probe) {
        let mut times = Exponential::default();
        times.add_us(&step.all_times);
        let of = format!("{of},{}", labels(&[("step", &step.name)]));
        histogram(text, name, &of, &times);
    }
    let name = "plimsoll_lateness_seconds";
    seconds(text, name, "How much later than meant the generator sent.");
    histogram(text, name, of, &trial.all_lateness);
}

/// Named transactions, and the times of completed ones.
fn transactions(text: &mut String, of: &str, trial: &Trial) {
    if trial.transactions.is_empty() {
        return;
    }
    counter(
        text,
        "plimsoll_transactions",
        "Transactions by what came of them, ramp included.",
    );
    for one in &trial.transactions {
        requests(
            text,
            of,
            ("plimsoll_transactions_total", "transaction"),
            one,
        );
    }
    let name = "plimsoll_transaction_time_seconds";
    let help = "Of completed transactions, without the think times within them, ramp included.";
    seconds(text, name, help);
    for one in &trial.transactions {
        let mut times = Exponential::default();
        times.add_us(&one.all_times);
        let of = format!("{of},{}", labels(&[("transaction", &one.name)]));
        histogram(text, name, &of, &times);
    }
}

fn seconds(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(
        text,
        "# TYPE {name} histogram\n# UNIT {name} seconds\n# HELP {name} {help}"
    );
}

/// Numbers in responses.
fn measures(text: &mut String, of: &str, trial: &Trial) {
    if trial.measures.is_empty() {
        return;
    }
    let name = "plimsoll_measure";
    let help = "Numbers that answers told, each in the unit of its label, ramp included.";
    let _ = writeln!(text, "# TYPE {name} histogram\n# HELP {name} {help}");
    for one in &trial.measures {
        let step = trial.steps.get(usize::from(one.step));
        let step = step.map_or("", |step| &step.name);
        let own = [
            ("measure", one.name.as_str()),
            ("step", step),
            ("unit", one.unit.as_str()),
        ];
        histogram(
            text,
            name,
            &format!("{of},{}", labels(&own)),
            &one.all_numbers,
        );
    }
}

fn histogram(text: &mut String, name: &str, of: &str, values: &Exponential) {
    for (bound, count) in values.classic() {
        let _ = writeln!(text, "{name}_bucket{{{of},le=\"{bound}\"}} {count}");
    }
    let (count, sum) = (values.count(), values.sum_s());
    let _ = writeln!(text, "{name}_bucket{{{of},le=\"+Inf\"}} {count}");
    let _ = writeln!(
        text,
        "{name}_count{{{of}}} {count}\n{name}_sum{{{of}}} {sum}"
    );
}

fn gauge(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} gauge\n# HELP {name} {help}");
}

fn counter(text: &mut String, name: &str, help: &str) {
    let _ = writeln!(text, "# TYPE {name} counter\n# HELP {name} {help}");
}

fn labels(all: &[(&str, &str)]) -> String {
    let each = all
        .iter()
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    each.collect::<Vec<_>>().join(",")
}

/// Escapes backslash, quote, and line end in a label value.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
