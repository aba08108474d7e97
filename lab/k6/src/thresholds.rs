//! The thresholds of a script's options, as those of a study.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lab_units::units::decimal;
use lab_units::yaml::text;
use lab_workload::{ALL_CHECKS_MEASURE, CHECK_MEASURE, MetricKind};
use serde_json::Value;

use crate::load::Scenario;
use crate::script::{Refused, Script};

/// What to do about a threshold without a counterpart.
const HELP: &str = "leave it out, or judge `http_req_duration`, `http_req_failed`, `http_reqs`, `iteration_duration`, a group, \
                    `checks`, or a metric of the script by a figure that it has";

/// A kind of figure, by the units of its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Milliseconds.
    Time,
    /// A part of 1.
    Part,
    /// Per second.
    Rate,
    /// The numbers of a check, or of a metric of the script. The `rate` of a counter is per second, which no study has.
    Of(MetricKind),
}

/// Returns the thresholds as a study's key; empty if there are none. Those that can't be judged are refused.
pub(super) fn thresholds(
    script: &Script<'_>,
    scenarios: &[Scenario],
    (refused, notes): (&mut Vec<Refused>, &mut Vec<String>),
) -> String {
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
            let judged = key(script, scenarios, metric)
                .and_then(|(key, kind)| Some((key, limits_of(kind, limit)?)));
            match judged {
                Some((key, limits)) => found.entry(key).or_default().extend(limits),
                None if script.flags.is_attempt => {}
                None if is_noted(script, metric, limit) => {
                    notes.push(format!("the threshold `{metric}: {limit}` is not judged"));
                }
                None => {
                    let message = format!("the threshold `{metric}: {limit}` can't be judged");
                    refused.push(script.refused(&["thresholds", metric], message, HELP));
                }
            }
            if aborts {
                notes.push(format!(
                    "`abortOnFail` of the threshold `{metric}: {limit}` is ignored: use `abort_on` in a study"
                ));
            }
        }
    }
    if found.is_empty() {
        return String::new();
    }
    let mut out = "thresholds:\n".to_owned();
    for (key, limits) in found {
        let limits: Vec<String> = limits.iter().map(|limit| text(limit)).collect();
        let _ = writeln!(out, "  {}: [{}]", text(&key), limits.join(", "));
    }
    out
}

/// Whether a threshold without a counterpart is only noted: the `rate` of a counter, a limit such as `max>=0`, which always
/// holds and shows a submetric in k6, and one on a scenario that flags replace.
fn is_noted(script: &Script<'_>, metric: &str, limit: &str) -> bool {
    let of_scenario = metric.split_once("{scenario:");
    let replaced = of_scenario.filter(|_| script.flags.replace_load());
    let replaced = replaced.and_then(|(_, name)| name.strip_suffix('}'));
    let is_replaced = replaced.is_some_and(|name| {
        let scenarios = script.options.get("scenarios");
        scenarios.is_some_and(|all| all.get(name.trim()).is_some())
    });
    let Some((figure, operators, number)) = parts(limit) else {
        return false;
    };
    let always_holds = operators == [">="] && number == 0.0;
    let kind = measure(script, metric, None).map(|(_, kind)| *kind);
    is_replaced || always_holds || (figure == "rate" && kind == Some(MetricKind::Counter))
}

/// Splits `p(95) < 500` into its figure, operators, and number. `==` is both `>=` and `<=`.
fn parts(text: &str) -> Option<(&str, &'static [&'static str], f64)> {
    let at = text.find(['<', '>', '='])?;
    let (left, rest) = text.split_at(at);
    let signs = rest.find(|c| !"<>=".contains(c)).unwrap_or(rest.len());
    let (signs, right) = rest.split_at(signs);
    let operators: &[&str] = match signs {
        "<" => &["<"],
        "<=" => &["<="],
        ">" => &[">"],
        ">=" => &[">="],
        "==" | "===" => &[">=", "<="],
        _ => return None,
    };
    let number: f64 = right.trim().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some((left.trim(), operators, number))
}

/// Returns the measure of a check or a metric of the script.
fn measure<'a>(
    script: &Script<'a>,
    name: &str,
    tag: Option<&str>,
) -> Option<&'a (String, MetricKind)> {
    let of_check = tag.and_then(|tag| tag.strip_prefix("check:"));
    let name = match (name, of_check) {
        (ALL_CHECKS_MEASURE, Some(check)) => &format!("{CHECK_MEASURE}{}", check.trim()),
        _ if tag.is_some() => return None,
        (name, _) => name,
    };
    script.measures.iter().find(|(known, _)| known == name)
}

/// Returns the study's key for a metric of k6.
fn key(script: &Script<'_>, scenarios: &[Scenario], metric: &str) -> Option<(String, Kind)> {
    let (name, tag) = match metric.split_once('{') {
        Some((name, rest)) => (name.trim(), Some(rest.strip_suffix('}')?.trim())),
        None => (metric.trim(), None),
    };
    if let Some((measure, kind)) = measure(script, name, tag) {
        return Some((format!("measure{{name:{measure}}}"), Kind::Of(*kind)));
    }
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

/// Returns the limits of a study, with their units: `p(95) < 500ms`.
fn limits_of(kind: Kind, limit: &str) -> Option<Vec<String>> {
    let (figure, operators, number) = parts(limit)?;
    let one = |operator: &&str| {
        let figure = match (kind, figure) {
            (Kind::Part | Kind::Rate | Kind::Of(MetricKind::Rate), "rate") => figure,
            (Kind::Part | Kind::Rate, _) => return None,
            (_, "avg" | "min" | "max" | "med") => figure,
            (Kind::Of(_), "count") => "sum",
            // The last value of a gauge is between its extremes.
            (Kind::Of(MetricKind::Gauge), "value") if operator.starts_with('<') => "max",
            (Kind::Of(MetricKind::Gauge), "value") => "min",
            (_, other) => {
                let percent = other.strip_prefix("p(")?.strip_suffix(')')?;
                let percent: f64 = percent.trim().parse().ok()?;
                (percent > 0.0 && percent < 100.0).then_some(other)?
            }
        };
        let right = match (kind, figure) {
            (Kind::Time, _) => format!("{}ms", decimal(number)),
            (Kind::Rate, _) => format!("{}/s", decimal(number)),
            (_, "rate") if number > 1.0 => return None,
            (_, "rate") => format!("{}%", decimal(number * 100.0)),
            _ => decimal(number),
        };
        Some(format!("{figure} {operator} {right}"))
    };
    operators.iter().map(one).collect()
}

#[cfg(test)]
mod tests;
