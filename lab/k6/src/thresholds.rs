//! The thresholds of a script's options, as those of a study.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab_units::units::decimal;
use lab_units::yaml::text;
use serde_json::Value;

use crate::load::Scenario;
use crate::script::{Limit, Script};

/// A kind of figure, by the units of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Milliseconds.
    Time,
    /// A part of 1.
    Part,
    /// Per second.
    Rate,
}

/// Returns the thresholds as a study's key; empty if there are none. Those that can't be judged are notes.
pub(super) fn thresholds(
    script: &Script<'_>,
    scenarios: &[Scenario],
    notes: &mut Vec<String>,
) -> (String, Vec<Limit>) {
    let mut limits = Vec::new();
    let all = script.options.get("thresholds").and_then(Value::as_object);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (metric, list) in all.into_iter().flatten() {
        let list = match list {
            Value::Array(list) => list.as_slice(),
            one => std::slice::from_ref(one),
        };
        for one in list {
            let (limit, aborts) = match one {
                Value::String(limit) => (limit.as_str(), false),
                other => (
                    other
                        .get("threshold")
                        .and_then(Value::as_str)
                        .unwrap_or_default(),
                    other.get("abortOnFail").and_then(Value::as_bool) == Some(true),
                ),
            };
            if let Some(limit) = of_measure(script, metric, limit) {
                limits.push(limit);
                continue;
            }
            let judged = key(script, scenarios, metric)
                .and_then(|(key, kind)| Some((key, limit_of(kind, limit)?)));
            match judged {
                Some((key, limit)) => found.entry(key).or_default().push(limit),
                None => notes.push(format!("the threshold `{metric}: {limit}` is not judged")),
            }
            if aborts {
                notes.push(format!(
                    "the threshold `{metric}: {limit}` ends no run (`abortOnFail`): `abort_on` of a study does"
                ));
            }
        }
    }
    if found.is_empty() {
        return (String::new(), limits);
    }
    let mut out = "thresholds:\n".to_owned();
    for (key, limits) in found {
        let limits: Vec<String> = limits.iter().map(|limit| text(limit)).collect();
        let _ = writeln!(out, "  {}: [{}]", text(&key), limits.join(", "));
    }
    (out, limits)
}

/// Returns the threshold of a check or of a metric of the script.
fn of_measure(script: &Script<'_>, metric: &str, text: &str) -> Option<Limit> {
    let is_known = metric == "checks" || script.metrics.iter().any(|known| known == metric);
    if !is_known {
        return None;
    }
    let (figure, operator, limit) = parts(text)?;
    let is_figure = ["rate", "avg", "min", "max", "med", "count", "value"].contains(&figure);
    (is_figure || figure.starts_with("p(")).then(|| Limit {
        measure: metric.to_owned(),
        figure: figure.to_owned(),
        operator: operator.to_owned(),
        limit,
        text: format!("{metric}: {}", text.trim()),
    })
}

/// Splits `p(95) < 500` into its parts.
fn parts(text: &str) -> Option<(&str, &str, f64)> {
    let at = text.find(['<', '>'])?;
    let (left, rest) = text.split_at(at);
    let (operator, right) = match rest.as_bytes().get(1) {
        Some(b'=') => rest.split_at(2),
        _ => rest.split_at(1),
    };
    Some((left.trim(), operator, right.trim().parse().ok()?))
}

/// Returns the study's key for a metric of k6.
fn key(script: &Script<'_>, scenarios: &[Scenario], metric: &str) -> Option<(String, Kind)> {
    let (name, tag) = match metric.split_once('{') {
        Some((name, rest)) => (name.trim(), Some(rest.strip_suffix('}')?.trim())),
        None => (metric.trim(), None),
    };
    let (ours, kind) = match name {
        "http_req_duration" => ("response_time", Kind::Time),
        "http_req_failed" => ("error_rate", Kind::Part),
        "http_reqs" => ("throughput", Kind::Rate),
        "iteration_duration" => {
            return Some((
                "transaction_elapsed{transaction:session}".to_owned(),
                Kind::Time,
            ));
        }
        "group_duration" => ("transaction_elapsed", Kind::Time),
        _ => return None,
    };
    let scope = match tag.map(|tag| tag.split_once(':')) {
        None => String::new(),
        Some(Some(("expected_response", "true"))) if kind == Kind::Time => String::new(),
        Some(Some(("group", group))) => {
            let group = group.trim_matches(':').trim();
            let group = group.rsplit("::").next().unwrap_or(group);
            let is_known = script.groups.iter().any(|known| known == group);
            if name != "group_duration" || !is_known {
                return None;
            }
            format!("{{transaction:{group}}}")
        }
        Some(Some(("scenario", scenario))) => {
            let found = scenarios.iter().find(|one| one.name == scenario.trim())?;
            match scenarios.len() {
                1 => String::new(),
                _ => format!("{{population:{}}}", found.population()),
            }
        }
        Some(Some(("name", step))) => {
            let step = step.trim().trim_matches(['\'', '"']);
            let known = script.steps.iter().find(|known| known.as_str() == step)?;
            match scenarios {
                [_] => format!("{{step:{known}}}"),
                _ => return None,
            }
        }
        Some(_) => return None,
    };
    (name != "group_duration" || !scope.is_empty()).then(|| (format!("{ours}{scope}"), kind))
}

/// Returns a limit with its unit: `p(95) < 500ms`.
fn limit_of(kind: Kind, limit: &str) -> Option<String> {
    let (left, operator, number) = parts(limit)?;
    let is_known = match kind {
        Kind::Time => left.starts_with("p(") || ["avg", "min", "max", "med"].contains(&left),
        Kind::Part | Kind::Rate => left == "rate",
    };
    let right = match kind {
        Kind::Time => format!("{}ms", decimal(number)),
        Kind::Part => format!("{}%", decimal(number * 100.0)),
        Kind::Rate => format!("{}/s", decimal(number)),
    };
    is_known.then(|| format!("{left} {operator} {right}"))
}
