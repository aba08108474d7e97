//! The thresholds of a script's checks and metrics, and the argument of its `handleSummary`, of the valid trials of a run.

use lab_trial::model::{MeasureAnalysis, TrialAnalysis};
use serde_json::{Map, Value, json};

use crate::script::Limit;

/// The prefix of the measures of checks.
const CHECK: &str = "check: ";
/// The measure of all checks.
const CHECKS: &str = "checks";

/// What is read of a valid trial.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The checks and metrics of the script.
    pub measures: &'a [MeasureAnalysis],
    /// The sessions that ended in the hold.
    pub sessions: u64,
    /// The length of the hold.
    pub elapsed_ms: u64,
}

impl<'a> From<&'a TrialAnalysis> for Trial<'a> {
    fn from(trial: &'a TrialAnalysis) -> Self {
        Self {
            measures: &trial.measures,
            sessions: trial.cycles,
            elapsed_ms: trial.elapsed_ms,
        }
    }
}

/// A threshold of a check or a metric, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The metric of the threshold.
    pub measure: String,
    /// The threshold, as written, without the metric.
    pub limit: String,
    /// Whether it holds in all trials.
    pub holds: bool,
    /// The figure, or the reason why there is none.
    pub reason: String,
}

/// Judges thresholds by the trials: each must hold in all of them.
#[must_use]
pub fn judge(limits: &[Limit], trials: &[Trial<'_>]) -> Vec<Judged> {
    let judged = |limit: &Limit| {
        let mut all = trials.iter().map(|trial| in_trial(limit, trial));
        let first = all
            .next()
            .unwrap_or((false, "there is no valid trial".to_owned()));
        let (holds, reason) = match first.0 {
            true => all.find(|one| !one.0).unwrap_or(first),
            false => first,
        };
        let written = limit.text.strip_prefix(&format!("{}: ", limit.measure));
        Judged {
            measure: limit.measure.clone(),
            limit: written.unwrap_or(&limit.text).to_owned(),
            holds,
            reason,
        }
    };
    limits.iter().map(judged).collect()
}

/// Fails the thresholds on checks and metrics of which a trial has values that are in no figure.
pub fn fail_uncounted<'a>(
    judged: &mut [Judged],
    trials: impl Iterator<Item = &'a TrialAnalysis> + Clone,
) {
    for one in judged {
        let values = trials
            .clone()
            .filter_map(|trial| trial.not_counted.get(&one.measure));
        let values: u64 = values.sum();
        if values > 0 {
            one.holds = false;
            one.reason = format!("not judged: {values} of its values are in no figure");
        }
    }
}

/// Judges a threshold by one trial.
fn in_trial(limit: &Limit, trial: &Trial<'_>) -> (bool, String) {
    let values = Values::of(trial, &limit.measure);
    match values.figure(&limit.figure) {
        Some(value) => (limit.holds(value), format!("it is {}", shown(value))),
        // k6 begins counters and rates at 0. Without a session, nothing could be added.
        None if values.count == 0 && trial.sessions > 0 && is_sum(&limit.figure) => (
            limit.holds(0.0),
            "nothing was added to it, which counts as 0, as in k6".to_owned(),
        ),
        None => (false, values.missing(&limit.figure)),
    }
}

/// Whether a figure of k6 begins at 0.
fn is_sum(figure: &str) -> bool {
    matches!(figure, "count" | "rate")
}

fn shown(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
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
    fn of(trial: &Trial<'a>, name: &str) -> Self {
        let mut values = Self::default();
        for one in trial.measures.iter().filter(|one| one.name == name) {
            values.add(one);
        }
        values
    }

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

    /// Returns the reason why a figure is missing.
    fn missing(&self, figure: &str) -> String {
        match self.parts[..] {
            [] => "it has no values".to_owned(),
            [_] if is_recorded(figure) => "it has too few values for this figure".to_owned(),
            [_] => format!("{figure} is not recorded: use p(90), p(95), p(99), or p(99.9)"),
            _ => format!("{figure} over several scenarios is not known"),
        }
    }
}

fn is_recorded(figure: &str) -> bool {
    matches!(
        figure,
        "med" | "p(50)" | "p(90)" | "p(95)" | "p(99)" | "p(99.9)"
    )
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
pub fn figures(report: &Value, trials: &[Trial<'_>], judged: &[Judged], options: &Value) -> Value {
    let mut metrics = Map::new();
    for (name, flat) in report["metrics"].as_object().into_iter().flatten() {
        if name != CHECKS {
            metrics.insert(name.clone(), metric(name, flat));
        }
    }
    let (measures, checks) = measures(trials);
    metrics.extend(measures);
    for one in judged {
        let metric = metrics.entry(one.measure.clone()).or_insert(json!({}));
        metric["thresholds"][&one.limit] = json!({ "ok": one.holds });
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
    let crossed = values.remove("thresholds");
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
    for (limit, crossed) in crossed
        .as_ref()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        metric["thresholds"][limit] = json!({ "ok": crossed == false });
    }
    metric
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
        if one.name == CHECKS {
            let rate = values.figure("rate").unwrap_or_default();
            let values = json!({ "rate": rate, "passes": passes, "fails": fails });
            let all = json!({ "type": "rate", "contains": "default", "values": values });
            metrics.insert(CHECKS.to_owned(), all);
        } else if let Some(name) = one.name.strip_prefix(CHECK) {
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
