//! Thresholds: which metric, of which step, against which limit; and the one that holds unless a
//! study says otherwise.

use lab_language::{Problems, TextError, unknown_name};

use super::threshold::threshold;
use crate::file::{At, Scalar, Table};
use crate::model::{Metric, Threshold, Workload};

/// The thresholds of a table; what is wrong with one is noted, and it is left out.
pub(super) fn thresholds(
    table: &Table<Vec<At<Scalar>>>,
    workload: &Workload,
    problems: &mut Problems,
) -> Vec<Threshold> {
    let mut parsed = Vec::new();
    for (key, list) in table.iter() {
        let Some((metric, step)) = threshold_key(key, workload, problems) else {
            continue;
        };
        for at in list {
            let text = at.text();
            match threshold(metric, step.as_deref(), &text) {
                Ok(threshold) => parsed.push(threshold),
                Err(error) => problems.push(at.span.text_problem("threshold", &text, &error)),
            }
        }
    }
    parsed
}

/// With the limit on the error rate that holds where the study sets none for all its steps.
pub(super) fn with_error_rate(
    mut thresholds: Vec<Threshold>,
    implied: Threshold,
) -> Vec<Threshold> {
    let sets = |one: &Threshold| one.metric == Metric::ErrorRate && one.step.is_none();
    if !thresholds.iter().any(sets) {
        thresholds.push(implied);
    }
    thresholds
}

/// `response_time` or `response_time{step:Open one event}`.
fn threshold_key(
    key: &At<String>,
    workload: &Workload,
    problems: &mut Problems,
) -> Option<(Metric, Option<String>)> {
    const METRICS: &[&str] = &[
        "response_time",
        "service_time",
        "error_rate",
        "resends",
        "throughput",
    ];
    let (name, rest) = match key.value.split_once('{') {
        Some((name, rest)) => (name, Some(rest)),
        None => (key.value.as_str(), None),
    };
    let metric = match name.trim() {
        "response_time" => Metric::ResponseTime,
        "service_time" => Metric::ServiceTime,
        "error_rate" => Metric::ErrorRate,
        "resends" => Metric::Resends,
        "throughput" => Metric::Throughput,
        other => {
            let (message, help) = unknown_name("metric", other, METRICS);
            let error = TextError::new(message, 0..name.len()).help(help);
            problems.push(key.span.text_problem("threshold", &key.value, &error));
            return None;
        }
    };
    let Some(rest) = rest else {
        return Some((metric, None));
    };
    if metric == Metric::Resends {
        let error = TextError::new(
            "resends are counted for all steps together",
            0..key.value.len(),
        )
        .help("write `resends`");
        problems.push(key.span.text_problem("threshold", &key.value, &error));
        return None;
    }
    let step = rest
        .strip_suffix('}')
        .and_then(|r| r.trim().strip_prefix("step:"));
    let Some(step) = step.map(str::trim) else {
        let error = TextError::new("only a step can narrow a threshold", 0..key.value.len())
            .help("write `response_time{step:Log in}`");
        problems.push(key.span.text_problem("threshold", &key.value, &error));
        return None;
    };
    let names: Vec<&str> = workload
        .session
        .steps
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    if !names.contains(&step) {
        let (message, help) = unknown_name("step", step, &names);
        let at = key.value.find(step).unwrap_or(0);
        let error = TextError::new(message, at..at + step.len()).help(help);
        problems.push(key.span.text_problem("threshold", &key.value, &error));
        return None;
    }
    Some((metric, Some(step.to_owned())))
}
