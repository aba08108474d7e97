//! Thresholds: the metric, the step, and the limit; and the default threshold, unless a
//! study overrides it.

use lab_language::{Problems, TextError, parsed, unknown_name};

use super::parts::Parts;
use super::threshold::threshold;
use lab_plan::Scope;

use crate::file::{At, Scalar, Table};
use crate::model::{Metric, Threshold};

/// Reads the thresholds of a table. An invalid one is reported and skipped.
pub(super) fn thresholds(
    table: &Table<Vec<At<Scalar>>>,
    parts: &Parts,
    problems: &mut Problems,
) -> Vec<Threshold> {
    let mut all = Vec::new();
    for (key, list) in table.iter() {
        if let Some((metric, scope)) = threshold_key(key, parts, problems) {
            let unit = unit_of(&scope, parts);
            let read = |text: &str| threshold(metric, scope.clone(), unit, text);
            all.extend(
                list.iter()
                    .filter_map(|at| parsed(at, "threshold", read, problems)),
            );
        }
    }
    all
}

/// Adds the default limit on the error rate, unless the study sets one for all its steps.
pub(super) fn with_error_rate(
    mut thresholds: Vec<Threshold>,
    implied: Threshold,
) -> Vec<Threshold> {
    let sets = |one: &Threshold| one.metric == Metric::ErrorRate && one.scope == Scope::All;
    if !thresholds.iter().any(sets) {
        thresholds.push(implied);
    }
    thresholds
}

/// `response_time`, `response_time{step:Open one event}`, `measure{name:queue}`.
fn threshold_key(
    key: &At<String>,
    parts: &Parts,
    problems: &mut Problems,
) -> Option<(Metric, Scope)> {
    let (name, rest) = match key.value.split_once('{') {
        Some((name, rest)) => (name, Some(rest)),
        None => (key.value.as_str(), None),
    };
    let Some(metric) = Metric::named(name.trim()) else {
        let names = Metric::NAMED.map(|(known, _)| known);
        let (message, help) = unknown_name("metric", name.trim(), &names);
        let error = TextError::new(message, 0..name.len()).help(help);
        problems.push(key.span.text_problem("threshold", &key.value, &error));
        return None;
    };
    let scope = scope(&key.value, metric, rest, parts);
    let noted = |error: TextError| {
        problems.push(key.span.text_problem("threshold", &key.value, &error));
    };
    Some((metric, scope.map_err(noted).ok()?))
}

/// Reads the scope of a threshold, from the text after `{`.
fn scope(key: &str, metric: Metric, rest: Option<&str>, parts: &Parts) -> Result<Scope, TextError> {
    let of_events = matches!(metric, Metric::FirstEvent | Metric::BetweenEvents);
    let of_transactions = metric.is_of_transactions();
    let wrong = |message: &str, help: &str| {
        let error = TextError::new(message, 0..key.len());
        Err(error.help(help))
    };
    let inside = rest.and_then(|rest| rest.strip_suffix('}'));
    let inside = inside.and_then(|inside| inside.trim().split_once(':'));
    let (kind, name) = inside.map_or(("", ""), |(kind, name)| (kind, name.trim()));
    match kind {
        "name" if metric == Metric::Measure => measure_scope(key, name, parts),
        _ if metric == Metric::Measure => wrong(
            "a threshold on a measure needs its name",
            "write `measure{name:…}` with a `measure` of the workload",
        ),
        _ if rest.is_none() && of_events => wrong(
            "times of events are of one step",
            &format!("write `{}{{step:…}}`", key.trim()),
        ),
        _ if rest.is_none() && of_transactions => wrong(
            "this is the time of one transaction",
            &format!("write `{}{{transaction:session}}`", key.trim()),
        ),
        _ if rest.is_none() => Ok(Scope::All),
        "transaction" if metric.suits_transactions() => {
            known_name(kind, (key, name), &parts.transactions).map(Scope::Transaction)
        }
        "transaction" => wrong(
            "a transaction has no such figure",
            "write `transaction_time{transaction:…}`, `transaction_elapsed`, `error_rate`, or `throughput`",
        ),
        _ if of_transactions => wrong(
            "this is the time of a transaction",
            "write `transaction_time{transaction:session}`, or name one that the workload has",
        ),
        "stage" if !of_events => steady_stage(key, name, &parts.stages),
        _ if metric == Metric::Resends => wrong(
            "resends are counted for all steps together",
            "write `resends`",
        ),
        "population" if !of_events => {
            known_name(kind, (key, name), &parts.populations).map(Scope::Population)
        }
        "tag" if !of_events => known_name(kind, (key, name), &parts.tags).map(Scope::Tag),
        "step" => step_scope(key, name, of_events, parts),
        _ => wrong(
            "only a step, a stage, a population, a tag, or a transaction can narrow a threshold",
            "write `response_time{step:Log in}`, `response_time{stage:spike}`, \
             `response_time{population:readers}`, or `response_time{tag:checkout}`",
        ),
    }
}

fn step_scope(key: &str, name: &str, of_events: bool, parts: &Parts) -> Result<Scope, TextError> {
    let names: Vec<String> = parts.steps.iter().map(|(step, _)| step.clone()).collect();
    let step = known_name("step", (key, name), &names)?;
    if of_events && parts.steps.contains(&(step.clone(), false)) {
        let at = key.find(name).unwrap_or(0);
        let error = TextError::new("this step doesn't listen for events", at..at + name.len());
        return Err(error.help("a request listens that says `events`"));
    }
    Ok(Scope::Step(step))
}

/// The scope of a threshold on the numbers of a measure.
fn measure_scope(key: &str, name: &str, parts: &Parts) -> Result<Scope, TextError> {
    let mut names: Vec<String> = parts.measures.iter().map(|one| one.0.clone()).collect();
    if names.iter().filter(|known| *known == name).count() > 1 {
        let error = TextError::new("steps measure this in different units", 0..key.len());
        return Err(error.help("give one of them another name"));
    }
    names.dedup();
    known_name("measure", (key, name), &names).map(Scope::Measure)
}

/// The unit of a measure; empty of any other scope.
fn unit_of<'a>(scope: &Scope, parts: &'a Parts) -> &'a str {
    let mut units = parts.measures.iter();
    let own = units.find(|(name, _)| scope.named() == Some(("measure", name)));
    own.map_or("", |(_, unit)| unit)
}

/// Looks up the name of a part in a key.
fn known_name(
    what: &str,
    (key, name): (&str, &str),
    known: &[String],
) -> Result<String, TextError> {
    let none = match what {
        "stage" => (
            "the load has no stages that keep their level",
            "write `load: { stages: [{ stage: spike, users: 100, for: 2m }] }`",
        ),
        "population" => (
            "the load has no populations",
            "write `load: { users: 100, mix: [{ population: readers, share: 1 }] }`",
        ),
        "transaction" => (
            "the session is one step of one request, whose response time is all of it",
            "write `response_time`, or group steps: `- { transaction: Checkout, steps: […] }`",
        ),
        "tag" => (
            "no step has a tag",
            "write `tags: [checkout]` in the steps that belong together",
        ),
        _ => (
            "no step has a measure",
            "write `measure: { queue: $.queue.length }` in a step",
        ),
    };
    if known.iter().any(|known| known == name) {
        return Ok(name.to_owned());
    }
    let (message, help) = match known.is_empty() {
        true => (none.0.to_owned(), none.1.to_owned()),
        false => {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            unknown_name(what, name, &names)
        }
    };
    let at = key.find(name).unwrap_or(0);
    Err(TextError::new(message, at..at + name.len()).help(help))
}

/// The stage of that name, which keeps its level.
fn steady_stage(key: &str, name: &str, named: &[(String, bool)]) -> Result<Scope, TextError> {
    let at = key.find(name).unwrap_or(0);
    if named.iter().any(|(other, ramps)| other == name && *ramps) {
        let message = format!("the stage `{name}` is no steady load, so nothing is judged by it");
        let error = TextError::new(message, at..at + name.len());
        return Err(error.help("name a stage that keeps its level (`for`)"));
    }
    let steady = named.iter().filter(|(_, ramps)| !ramps);
    let steady: Vec<String> = steady.map(|(name, _)| name.clone()).collect();
    known_name("stage", (key, name), &steady).map(Scope::Stage)
}
