//! The end of a script's run: thresholds of its checks and metrics, and its `handleSummary`. They read the run's
//! result, and change nothing in it.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use lab_driver::summarize;
use lab_import::k6::Limit;
use lab_study::Workload;
use serde_json::{Map, Value, json};

use crate::commands::print;
use crate::exit::{Exit, Failure};
use crate::talk::say;

/// The prefix of the measures of checks.
const CHECK: &str = "check: ";
/// The measure of all checks.
const CHECKS: &str = "checks";

/// What is left to do once a script's run is reported.
pub(crate) struct ScriptEnd {
    pub(crate) limits: Vec<Limit>,
    pub(crate) workload: Arc<Workload>,
    /// The script's options.
    pub(crate) options: Value,
}

impl ScriptEnd {
    /// Judges the thresholds, and writes the files of the summary into the run's folder.
    pub(crate) fn finish(&self, dir: &Path) -> Result<Exit, Failure> {
        let text = fs::read_to_string(dir.join("result.json"));
        let text = text.map_err(|error| Failure::new(Exit::Internal, &error))?;
        let result: Value =
            serde_json::from_str(&text).map_err(|error| Failure::new(Exit::Internal, &error))?;
        let trial = result["trials"].as_array().and_then(|all| all.last());
        let Some(trial) = trial else {
            return Ok(Exit::Success);
        };
        let exit = self.judge(trial)?;
        self.summarize(trial, dir)?;
        Ok(exit)
    }

    fn judge(&self, trial: &Value) -> Result<Exit, Failure> {
        let mut exit = Exit::Success;
        let mut lines = String::new();
        for limit in &self.limits {
            let value = measure(trial, &limit.measure).and_then(|of| figure(of, &limit.figure));
            let line = match value {
                Some(value) if limit.holds(value) => {
                    format!("  ✓ {} (it is {})\n", limit.text, shown(value))
                }
                Some(value) => {
                    exit = Exit::ThresholdFailed;
                    format!("  ✗ {} (it is {})\n", limit.text, shown(value))
                }
                None => {
                    exit = Exit::ThresholdFailed;
                    format!("  ✗ {} (there are too few values)\n", limit.text)
                }
            };
            lines.push_str(&line);
        }
        if !lines.is_empty() {
            print(&format!("thresholds of the script:\n{lines}"))?;
        }
        Ok(exit)
    }

    fn summarize(&self, trial: &Value, dir: &Path) -> Result<(), Failure> {
        let figures = figures(trial, &self.options);
        let made = match summarize(&self.workload, figures) {
            Ok(made) => made,
            Err(error) => {
                say(format_args!("{error}"));
                return Ok(());
            }
        };
        for (name, text) in made.iter().filter_map(Value::as_object).flatten() {
            let text = match text {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match name.as_str() {
                "stdout" => print(&text)?,
                "stderr" => say(format_args!("{text}")),
                name => write(dir, name, &text)?,
            }
        }
        Ok(())
    }
}

/// Writes a file of the summary into the run's folder; it replaces no other file there.
fn write(dir: &Path, name: &str, text: &str) -> Result<(), Failure> {
    let parts = name.split(['/', '\\']);
    let parts = parts.filter(|part| !matches!(*part, "" | "." | ".."));
    let path = dir
        .join("summary")
        .join(parts.collect::<Vec<_>>().join("_"));
    let folder = dir.join("summary");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| Failure::new(Exit::Internal, &error))?;
    say(format_args!("the script's summary: {}", path.display()));
    Ok(())
}

/// Returns the values of a measure of the script.
fn measure<'a>(trial: &'a Value, name: &str) -> Option<&'a Value> {
    let all = trial["measures"].as_array()?;
    let mut of = all.iter().filter(|one| one["name"] == name);
    of.next().map(|one| &one["values"])
}

/// Returns a figure of times or of a measure, by its name in k6.
fn figure(values: &Value, name: &str) -> Option<f64> {
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

fn shown(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the argument of `handleSummary`: the figures of a trial in the form of k6.
fn figures(trial: &Value, options: &Value) -> Value {
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
