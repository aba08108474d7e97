//! The figures of a run's `result.json` in the form of k6, for `handleSummary` and for thresholds of checks and metrics.

use serde_json::{Map, Value, json};

/// The prefix of the measures of checks.
const CHECK: &str = "check: ";
/// The measure of all checks.
const CHECKS: &str = "checks";

/// Returns the values of a measure of the script.
#[must_use]
pub fn measure<'a>(trial: &'a Value, name: &str) -> Option<&'a Value> {
    let all = trial["measures"].as_array()?;
    let mut of = all.iter().filter(|one| one["name"] == name);
    of.next().map(|one| &one["values"])
}

/// Returns a figure of times or of a measure, by its name in k6.
#[must_use]
pub fn figure(values: &Value, name: &str) -> Option<f64> {
    let key = match name {
        "avg" | "rate" => "mean",
        "med" => "p50",
        "p(50)" => "p50",
        "p(90)" => "p90",
        "p(95)" => "p95",
        "p(99)" => "p99",
        "p(99.9)" => "p999",
        "value" => "max",
        "count" => {
            let count = values["count"].as_f64()?;
            return Some(count * values["mean"].as_f64()?);
        }
        other => other,
    };
    values[key].as_f64()
}

/// Returns the argument of `handleSummary`: the figures of a trial in the form of k6.
#[must_use]
pub fn figures(trial: &Value, options: &Value) -> Value {
    let mut metrics = Map::new();
    let mut add = |name: &str, kind: &str, contains: &str, values: Value| {
        let metric = json!({ "type": kind, "contains": contains, "values": values });
        metrics.insert(name.to_owned(), metric);
    };
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let (ok, errors) = (number(&trial["transactions"]), number(&trial["errors"]));
    let seconds = (number(&trial["elapsed_ms"]) / 1e3).max(1e-9);
    let all = ok + errors;
    add(
        "http_reqs",
        "counter",
        "default",
        json!({ "count": all, "rate": all / seconds }),
    );
    add(
        "http_req_duration",
        "trend",
        "time",
        trend(&trial["response_ms"]),
    );
    let failed = json!({ "rate": errors / all.max(1.0), "passes": errors, "fails": ok });
    add("http_req_failed", "rate", "default", failed);
    let cycles = number(&trial["cycles"]);
    add(
        "iterations",
        "counter",
        "default",
        json!({ "count": cycles, "rate": cycles / seconds }),
    );
    let users = number(&trial["users"]);
    add(
        "vus",
        "gauge",
        "default",
        json!({ "value": users, "min": users, "max": users }),
    );
    add(
        "vus_max",
        "gauge",
        "default",
        json!({ "value": users, "min": users, "max": users }),
    );
    let named = trial["named_transactions"].as_array();
    let session = named
        .into_iter()
        .flatten()
        .find(|one| one["name"] == "session");
    if let Some(session) = session {
        add(
            "iteration_duration",
            "trend",
            "time",
            trend(&session["elapsed_ms"]),
        );
    }
    let mut checks = Vec::new();
    for one in trial["measures"].as_array().into_iter().flatten() {
        let name = one["name"].as_str().unwrap_or_default();
        let (count, mean) = (
            number(&one["values"]["count"]),
            number(&one["values"]["mean"]),
        );
        let passes = (count * mean).round();
        if name == CHECKS {
            let values = json!({ "rate": mean, "passes": passes, "fails": count - passes });
            add(CHECKS, "rate", "default", values);
        } else if let Some(name) = name.strip_prefix(CHECK) {
            let path = format!("::{name}");
            checks.push(json!({
                "name": name, "path": path, "id": path, "passes": passes, "fails": count - passes,
            }));
        } else {
            let contains = if one["unit"] == "ms" {
                "time"
            } else {
                "default"
            };
            let mut values = trend(&one["values"]);
            values["count"] = json!(count * mean);
            values["rate"] = json!(mean);
            values["value"] = one["values"]["max"].clone();
            add(name, "trend", contains, values);
        }
    }
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

/// Returns the values of a trend. k6 has no missing ones.
fn trend(times: &Value) -> Value {
    let value = |key: &str| times[key].as_f64().unwrap_or_default();
    json!({
        "avg": value("mean"), "min": value("min"), "med": value("p50"), "max": value("max"),
        "p(90)": value("p90"), "p(95)": value("p95"), "p(99)": value("p99"), "count": value("count"),
    })
}
