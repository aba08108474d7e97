//! The figures of a trial in `result.json` under the names that k6 gives them.

use serde_json::{Map, Value, json};

use crate::script::Limit;

/// The prefix of the measures of checks.
const CHECK: &str = "check: ";
/// The measure of all checks.
const CHECKS: &str = "checks";

/// The reason why a figure of a script's metric is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Nothing was added to a counter or a rate.
    Never,
    /// There are too few values for this figure.
    TooFew,
}

/// Returns the figure that a threshold limits.
///
/// # Errors
/// The reason why there is none.
pub fn figure(trial: &Value, limit: &Limit) -> Result<f64, Missing> {
    let Some(values) = measure(trial, &limit.measure) else {
        return Err(match limit.figure.as_str() {
            "count" | "rate" => Missing::Never,
            _ => Missing::TooFew,
        });
    };
    let key = match limit.figure.as_str() {
        "avg" | "rate" => "mean",
        "med" | "p(50)" => "p50",
        "p(90)" => "p90",
        "p(95)" => "p95",
        "p(99)" => "p99",
        "p(99.9)" => "p999",
        "value" => "max",
        "count" => return sum(values).ok_or(Missing::TooFew),
        other => other,
    };
    values[key].as_f64().ok_or(Missing::TooFew)
}

/// Returns the values of a measure; `None` if there are none.
fn measure<'a>(trial: &'a Value, name: &str) -> Option<&'a Value> {
    let all = trial["measures"].as_array()?;
    let mut of = all.iter().filter(|one| one["name"] == name);
    let values = of.next().map(|one| &one["values"])?;
    values["count"].as_f64().filter(|count| *count > 0.0)?;
    Some(values)
}

/// Returns the sum of the values.
fn sum(values: &Value) -> Option<f64> {
    Some(values["count"].as_f64()? * values["mean"].as_f64()?)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_default()
}

/// Returns the argument of `handleSummary`: the figures of a trial, as k6 documents it.
#[must_use]
pub fn figures(trial: &Value, options: &Value) -> Value {
    let mut metrics = requests(trial);
    metrics.extend(sessions(trial));
    let (measures, checks) = measures(trial);
    metrics.extend(measures);
    let mut options = options.clone();
    if options.get("summaryTrendStats").is_none() && options.is_object() {
        options["summaryTrendStats"] = json!(["avg", "min", "med", "max", "p(90)", "p(95)"]);
    }
    json!({
        "metrics": metrics,
        "root_group": { "name": "", "path": "", "id": "", "groups": [], "checks": checks },
        "options": options,
        "state": {
            "isStdOutTTY": false, "isStdErrTTY": false, "testRunDurationMs": trial["elapsed_ms"],
        },
    })
}

fn metric(kind: &str, contains: &str, values: Value) -> Value {
    json!({ "type": kind, "contains": contains, "values": values })
}

fn seconds(trial: &Value) -> f64 {
    (number(&trial["elapsed_ms"]) / 1e3).max(1e-9)
}

fn requests(trial: &Value) -> Map<String, Value> {
    let (ok, errors) = (number(&trial["transactions"]), number(&trial["errors"]));
    let all = ok + errors;
    let count = json!({ "count": all, "rate": all / seconds(trial) });
    let failed = json!({ "rate": errors / all.max(1.0), "passes": errors, "fails": ok });
    Map::from_iter([
        ("http_reqs".to_owned(), metric("counter", "default", count)),
        (
            "http_req_duration".to_owned(),
            metric("trend", "time", trend(&trial["response_ms"])),
        ),
        (
            "http_req_failed".to_owned(),
            metric("rate", "default", failed),
        ),
    ])
}

fn sessions(trial: &Value) -> Map<String, Value> {
    let cycles = number(&trial["cycles"]);
    let count = json!({ "count": cycles, "rate": cycles / seconds(trial) });
    let users = &trial["users"];
    let users = metric(
        "gauge",
        "default",
        json!({ "value": users, "min": users, "max": users }),
    );
    let mut all = Map::from_iter([
        ("iterations".to_owned(), metric("counter", "default", count)),
        ("vus".to_owned(), users.clone()),
        ("vus_max".to_owned(), users),
    ]);
    let named = trial["named_transactions"].as_array();
    let mut named = named.into_iter().flatten();
    if let Some(session) = named.find(|one| one["name"] == "session") {
        let times = metric("trend", "time", trend(&session["elapsed_ms"]));
        all.insert("iteration_duration".to_owned(), times);
    }
    all
}

/// The metrics of the script, and its checks.
fn measures(trial: &Value) -> (Map<String, Value>, Vec<Value>) {
    let (mut metrics, mut checks) = (Map::new(), Vec::new());
    for one in trial["measures"].as_array().into_iter().flatten() {
        let name = one["name"].as_str().unwrap_or_default();
        let values = &one["values"];
        let (count, mean) = (number(&values["count"]), number(&values["mean"]));
        let passes = (count * mean).round();
        if name == CHECKS {
            let values = json!({ "rate": mean, "passes": passes, "fails": count - passes });
            metrics.insert(CHECKS.to_owned(), metric("rate", "default", values));
        } else if let Some(name) = name.strip_prefix(CHECK) {
            let path = format!("::{name}");
            checks.push(json!({
                "name": name, "path": path, "id": path, "passes": passes, "fails": count - passes,
            }));
        } else {
            let contains = match one["unit"].as_str() {
                Some("ms") => "time",
                _ => "default",
            };
            let mut shown = trend(values);
            shown["count"] = json!(count * mean);
            shown["rate"] = json!(mean);
            shown["value"] = values["max"].clone();
            metrics.insert(name.to_owned(), metric("trend", contains, shown));
        }
    }
    (metrics, checks)
}

/// Returns the values of a trend. k6 has no missing ones.
fn trend(times: &Value) -> Value {
    let value = |key: &str| number(&times[key]);
    json!({
        "avg": value("mean"), "min": value("min"), "med": value("p50"), "max": value("max"),
        "p(90)": value("p90"), "p(95)": value("p95"), "p(99)": value("p99"), "count": value("count"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(measure: &str, figure: &str) -> Limit {
        Limit {
            measure: measure.to_owned(),
            figure: figure.to_owned(),
            operator: "<".to_owned(),
            limit: 1.0,
            text: String::new(),
        }
    }

    #[test]
    fn figures_have_the_names_of_k6() {
        let trial = json!({ "measures": [
            { "name": "errors", "values": { "count": 4, "mean": 0.5, "max": 1, "p95": null } },
            { "name": "unused", "values": { "count": 0 } },
        ] });
        let of = |measure: &str, name: &str| figure(&trial, &limit(measure, name));
        assert_eq!(of("errors", "count"), Ok(2.0));
        assert_eq!(of("errors", "rate"), Ok(0.5));
        assert_eq!(of("errors", "p(95)"), Err(Missing::TooFew));
        assert_eq!(of("unused", "count"), Err(Missing::Never));
        assert_eq!(of("absent", "rate"), Err(Missing::Never));
        assert_eq!(of("absent", "p(95)"), Err(Missing::TooFew));
    }
}
