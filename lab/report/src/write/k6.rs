//! The end-of-test summary in the format of k6's `--summary-export`, for programs that read that file.
//!
//! k6 knows one load; here it is the load of the cell under the most load, over its valid trials: counts are sums,
//! minimum and maximum are of all, and other figures are means over trials, as in the report. Other cells and steps are
//! submetrics, named as k6 names those with tags. A threshold is `true` if it was crossed in any valid trial, as in k6.

use serde_json::{Map, Value, json};

use crate::Analysis;
use crate::model::{CellSummary, Estimate, ThresholdResult, TimesSummary, TrialAnalysis, Verdict};
use lab_plan::{ALL_CHECKS_MEASURE, CHECK_MEASURE, Metric, Scope};

/// The check of the valid trials.
const CHECK_OF_TRIALS: &str = "the trial is a measurement";
/// k6's id of the group without a name: the MD5 of the empty string.
const ROOT: &str = "d41d8cd98f00b204e9800998ecf8427e";
const DURATION: &str = "http_req_duration";
const REQUESTS: &str = "http_reqs";
const FAILED: &str = "http_req_failed";
const ITERATION: &str = "iteration_duration";
/// The transaction of the whole session.
const SESSION: &str = "session";

/// A run as k6's summary.
pub(super) fn k6(analysis: &Analysis) -> Value {
    let valid = || {
        analysis
            .trials
            .iter()
            .filter(|trial| trial.verdict == Verdict::Valid)
    };
    let measured = analysis.cells.iter().filter(|cell| cell.valid_trials > 0);
    let cell = measured.clone().max_by_key(|cell| cell.users);
    let mut metrics = Map::new();
    let (passes, fails) = (analysis.summary.valid, analysis.summary.invalid);
    let mut checks = Map::new();
    checks.insert(
        CHECK_OF_TRIALS.to_owned(),
        check(CHECK_OF_TRIALS, passes, fails),
    );
    metrics.insert(ALL_CHECKS_MEASURE.to_owned(), rate(passes, fails));
    if let Some(cell) = cell {
        let trials: Vec<&TrialAnalysis> = valid().filter(|trial| cell.is_of(trial)).collect();
        of_cell(&mut metrics, cell, &trials);
        measures(&mut metrics, &mut checks, (cell, &trials), (passes, fails));
        let is_other =
            |other: &&CellSummary| (&other.cell, other.users) != (&cell.cell, cell.users);
        for other in measured.filter(is_other) {
            let name = format!("{DURATION}{{cell:{}}}", other.label);
            metrics.insert(name, trend(&other.response_ms));
        }
    }
    let has_populations = cell.is_some_and(|cell| !cell.populations.is_empty());
    for trial in valid() {
        thresholds(&mut metrics, trial, has_populations);
    }
    json!({
        "root_group": { "name": "", "path": "", "id": ROOT, "groups": {}, "checks": checks },
        "metrics": metrics,
    })
}

fn check(name: &str, passes: usize, fails: usize) -> Value {
    json!({ "name": name, "path": format!("::{name}"), "id": "", "passes": passes, "fails": fails })
}

/// The measures of a cell, by their names; a script's checks are counted beside that of the trials.
fn measures(
    metrics: &mut Map<String, Value>,
    checks: &mut Map<String, Value>,
    (cell, trials): (&CellSummary, &[&TrialAnalysis]),
    of_trials: (usize, usize),
) {
    for one in &cell.measures {
        let all = trials.iter().flat_map(|trial| &trial.measures);
        let own = all.filter(|other| other.name == one.name);
        let (count, sum) = own.fold((0, 0.0), |(count, sum), own| {
            (count + own.values.count, sum + own.sum)
        });
        let passes = sum.round() as u64;
        let (passes, fails) = (passes as usize, count.saturating_sub(passes) as usize);
        if let Some(name) = one.name.strip_prefix(CHECK_MEASURE) {
            checks.insert(name.to_owned(), check(name, passes, fails));
        } else if one.name == ALL_CHECKS_MEASURE {
            let (valid, invalid) = of_trials;
            metrics.insert(
                ALL_CHECKS_MEASURE.to_owned(),
                rate(valid + passes, invalid + fails),
            );
        } else {
            metrics.insert(one.name.clone(), trend(&one.values));
        }
    }
}

fn of_cell(metrics: &mut Map<String, Value>, cell: &CellSummary, trials: &[&TrialAnalysis]) {
    let sum = |of: fn(&TrialAnalysis) -> u64| trials.iter().map(|trial| of(trial)).sum::<u64>();
    let answered = sum(|trial| trial.transactions);
    let (failed, sessions) = (sum(|trial| trial.errors), sum(|trial| trial.cycles));
    let seconds = sum(|trial| trial.elapsed_ms) as f64 / 1e3;
    let count = |count: u64| {
        let rate = lab_stats::ratio(count as f64, seconds);
        json!({ "count": count, "rate": rate.unwrap_or_default() })
    };
    let mut put = |name: &str, value: Value| metrics.insert(name.to_owned(), value);
    put(DURATION, trend(&cell.response_ms));
    put(REQUESTS, count(answered + failed));
    // k6 counts whether a request failed.
    put(FAILED, rate(failed as usize, answered as usize));
    put("iterations", count(sessions));
    put(
        "vus",
        json!({ "value": cell.users, "min": 0, "max": cell.users }),
    );
    put(
        "vus_max",
        json!({ "value": cell.users, "min": cell.users, "max": cell.users }),
    );
    for step in &cell.steps {
        put(&of_step(DURATION, &step.name), trend(&step.response_ms));
    }
    let has_populations = !cell.populations.is_empty();
    for one in &cell.named_transactions {
        put(
            &of_transaction(&one.name, has_populations),
            trend(&one.elapsed_ms),
        );
    }
}

fn of_step(metric: &str, step: &str) -> String {
    format!("{metric}{{step:{step}}}")
}

/// k6's name for the duration of a transaction with its think times: for the whole session that of an iteration, for
/// any other that of a group.
fn of_transaction(name: &str, has_populations: bool) -> String {
    match name.split_once('/').filter(|_| has_populations) {
        _ if name == SESSION => ITERATION.to_owned(),
        Some((population, SESSION)) => format!("{ITERATION}{{scenario:{population}}}"),
        _ => format!("group_duration{{group:::{name}}}"),
    }
}

/// A figure that the sample can't support is skipped: k6's readers take every value for a number.
fn trend(times: &TimesSummary) -> Value {
    let mean = |one: Option<Estimate>| one.map(|one| one.mean);
    let all = [
        ("avg", mean(times.mean)),
        ("min", times.min),
        ("med", mean(times.p50)),
        ("max", times.max),
        ("p(90)", mean(times.p90)),
        ("p(95)", mean(times.p95)),
    ];
    let told = all
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), json!(value?))));
    Value::Object(told.collect())
}

fn rate(passes: usize, fails: usize) -> Value {
    let value = lab_stats::ratio(passes as f64, (passes + fails) as f64);
    json!({ "passes": passes, "fails": fails, "value": value.unwrap_or_default() })
}

fn thresholds(metrics: &mut Map<String, Value>, trial: &TrialAnalysis, has_populations: bool) {
    for one in &trial.thresholds {
        let metric = match one.metric {
            Metric::TransactionElapsed => match &one.scope {
                Scope::Transaction(name) => {
                    cross(metrics, of_transaction(name, has_populations), one);
                    continue;
                }
                _ => continue,
            },
            Metric::Measure => match &one.scope {
                Scope::Measure(name) => {
                    cross(metrics, name.clone(), one);
                    continue;
                }
                _ => continue,
            },
            _ if !matches!(one.scope, Scope::All | Scope::Step(_)) => continue,
            Metric::ResponseTime | Metric::ServiceTime => DURATION,
            Metric::ErrorRate => FAILED,
            Metric::Throughput => REQUESTS,
            Metric::Resends
            | Metric::FirstEvent
            | Metric::BetweenEvents
            | Metric::TransactionTime => continue,
        };
        let name = one.scope.step().map(|step| of_step(metric, step));
        cross(metrics, name.unwrap_or(metric.to_owned()), one);
    }
}

/// Records whether a threshold was crossed, as it may have been in an earlier trial.
fn cross(metrics: &mut Map<String, Value>, metric: String, one: &ThresholdResult) {
    let metric = metrics.entry(metric).or_insert(json!({}));
    let crossed = &mut metric["thresholds"][&one.text];
    *crossed = json!(crossed.as_bool().unwrap_or_default() || !one.holds);
}
