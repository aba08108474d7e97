//! The argument of a script's `handleSummary`, of the valid trials of a run.

use lab_trial::model::{MeasureAnalysis, TrialAnalysis};
use lab_workload::{ALL_CHECKS_MEASURE, CHECK_MEASURE};
use serde_json::{Map, Value, json};

/// What is read of a valid trial.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The checks and metrics of the script.
    pub measures: &'a [MeasureAnalysis],
    /// The length of the hold.
    pub elapsed_ms: u64,
}

impl<'a> From<&'a TrialAnalysis> for Trial<'a> {
    fn from(trial: &'a TrialAnalysis) -> Self {
        Self {
            measures: &trial.measures,
            elapsed_ms: trial.elapsed_ms,
        }
    }
}

/// The values of a measure, of all populations.
#[derive(Debug, Default)]
struct Values<'a> {
    count: u64,
    sum: f64,
    /// Of each population that has values.
    parts: Vec<&'a MeasureAnalysis>,
}

impl<'a> Values<'a> {
    fn add(&mut self, one: &'a MeasureAnalysis) {
        if one.values.count > 0 {
            self.count += one.values.count;
            self.sum += one.sum;
            self.parts.push(one);
        }
    }

    /// Returns a figure by its name in k6; `None` if it is unknown.
    fn figure(&self, name: &str) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let each =
            |of: fn(&MeasureAnalysis) -> Option<f64>| self.parts.iter().map(move |one| of(one));
        match name {
            "rate" | "avg" => Some(self.sum / self.count as f64),
            "count" => Some(self.sum),
            "min" => each(|one| one.values.min).flatten().reduce(f64::min),
            "max" | "value" => each(|one| one.values.max).flatten().reduce(f64::max),
            _ => match self.parts[..] {
                [one] => quantile(one, name),
                // The quantile of several populations is not that of any.
                _ => None,
            },
        }
    }
}

fn quantile(of: &MeasureAnalysis, name: &str) -> Option<f64> {
    match name {
        "med" | "p(50)" => of.values.p50,
        "p(90)" => of.values.p90,
        "p(95)" => of.values.p95,
        "p(99)" => of.values.p99,
        "p(99.9)" => of.values.p999,
        _ => None,
    }
}

/// Returns the argument of `handleSummary`, as k6 documents it: `report` is the run's summary in the format of
/// `--summary-export`.
#[must_use]
pub fn figures(report: &Value, trials: &[Trial<'_>], options: &Value) -> Value {
    let mut metrics = Map::new();
    for (name, flat) in report["metrics"].as_object().into_iter().flatten() {
        if name != ALL_CHECKS_MEASURE {
            metrics.insert(name.clone(), metric(name, flat));
        }
    }
    let (measures, checks) = measures(trials);
    for (name, mut metric) in measures {
        add_thresholds(&mut metric, &report["metrics"][&name]["thresholds"]);
        metrics.insert(name, metric);
    }
    let mut options = options.clone();
    if options.get("summaryTrendStats").is_none() && options.is_object() {
        options["summaryTrendStats"] = json!(["avg", "min", "med", "max", "p(90)", "p(95)"]);
    }
    let length: u64 = trials.iter().map(|trial| trial.elapsed_ms).sum();
    json!({
        "metrics": metrics,
        "root_group": { "name": "", "path": "", "id": "", "groups": [], "checks": checks },
        "options": options,
        "state": { "isStdOutTTY": false, "isStdErrTTY": false, "testRunDurationMs": length },
    })
}

/// Returns a metric of the export as `handleSummary` receives it.
fn metric(name: &str, flat: &Value) -> Value {
    let mut values = flat.as_object().cloned().unwrap_or_default();
    values.remove("thresholds");
    let (kind, contains) = match name.split('{').next() {
        Some("http_reqs" | "iterations") => ("counter", "default"),
        Some("vus" | "vus_max") => ("gauge", "default"),
        Some("http_req_failed") => {
            if let Some(rate) = values.remove("value") {
                values.insert("rate".to_owned(), rate);
            }
            ("rate", "default")
        }
        _ => ("trend", "time"),
    };
    let mut metric = json!({ "type": kind, "contains": contains, "values": values });
    add_thresholds(&mut metric, &flat["thresholds"]);
    metric
}

/// Adds the thresholds of the export, which says of each whether it was crossed.
fn add_thresholds(metric: &mut Value, crossed: &Value) {
    for (limit, crossed) in crossed.as_object().into_iter().flatten() {
        metric["thresholds"][limit] = json!({ "ok": crossed == false });
    }
}

/// The metrics of the script, and its checks.
fn measures(trials: &[Trial<'_>]) -> (Map<String, Value>, Vec<Value>) {
    let mut all: Vec<(&MeasureAnalysis, Values<'_>)> = Vec::new();
    for one in trials.iter().flat_map(|trial| trial.measures) {
        let known = all.iter().position(|(known, _)| known.name == one.name);
        let at = known.unwrap_or_else(|| {
            all.push((one, Values::default()));
            all.len() - 1
        });
        all[at].1.add(one);
    }
    let (mut metrics, mut checks) = (Map::new(), Vec::new());
    for (one, values) in all {
        let passes = values.sum.round();
        let fails = values.count as f64 - passes;
        if one.name == ALL_CHECKS_MEASURE {
            let rate = values.figure("rate").unwrap_or_default();
            let values = json!({ "rate": rate, "passes": passes, "fails": fails });
            let all = json!({ "type": "rate", "contains": "default", "values": values });
            metrics.insert(ALL_CHECKS_MEASURE.to_owned(), all);
        } else if let Some(name) = one.name.strip_prefix(CHECK_MEASURE) {
            let path = format!("::{name}");
            checks.push(json!({
                "name": name, "path": path, "id": path, "passes": passes, "fails": fails,
            }));
        } else {
            let contains = if one.unit == "ms" { "time" } else { "default" };
            let metric = json!({ "type": "trend", "contains": contains, "values": trend(&values) });
            metrics.insert(one.name.clone(), metric);
        }
    }
    (metrics, checks)
}

/// Returns the figures of a metric; those that are unknown are skipped, as k6's readers take every value for a number.
fn trend(values: &Values<'_>) -> Map<String, Value> {
    let names = [
        "avg", "min", "med", "max", "p(90)", "p(95)", "p(99)", "count", "rate", "value",
    ];
    let known = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), json!(values.figure(name)?))));
    known.collect()
}

#[cfg(test)]
mod tests;
