//! Sentences of more than one section: the setup of the run, its result, and notes.

use std::collections::{BTreeMap, BTreeSet};

use super::void::is_void;
use crate::Analysis;
use crate::format::part_of_load;
use crate::format::{duration, list, or_none, plural};
use crate::model::{CheckOutcome, Outcome, ThresholdResult, TrialAnalysis};

/// The maximum number of kinds of failed requests; more are counted.
const MOST_FAILURES: usize = 6;
/// The maximum number of named slow requests.
const MOST_SLOW: usize = 5;
/// The maximum number of named trials; more are counted.
const MOST_TRIALS: usize = 8;
/// The maximum number of named cells with one set of settings; more are counted.
const MOST_LABELS: usize = 4;

/// Which cores each side had, in words.
pub(crate) fn pinning(analysis: &Analysis) -> String {
    let pinning = &analysis.environment.pinning;
    let cores = |cores: &[u32]| {
        let names: Vec<String> = cores.iter().map(u32::to_string).collect();
        if names.is_empty() {
            "any core".to_owned()
        } else {
            format!("core {}", list(&names))
        }
    };
    let shared = if pinning.shared { " (shared)" } else { "" };
    format!(
        "generator on {}, system on {}{shared}",
        cores(&pinning.generator),
        cores(&pinning.system)
    )
}

/// The system's settings: those of all trials, a line per distinct set of the rest, and the changes by `--set`.
pub(crate) fn setups(analysis: &Analysis) -> Vec<String> {
    let trials = &analysis.trials;
    let mut common = trials
        .first()
        .map_or_else(BTreeMap::new, |first| first.system_settings.clone());
    common.retain(|name, value| {
        let has = |trial: &TrialAnalysis| trial.system_settings.get(name) == Some(value);
        trials.iter().all(has)
    });
    let mut sets: Vec<(String, Vec<String>)> = Vec::new();
    for trial in trials {
        let all = trial.system_settings.iter();
        let own = settings(all.filter(|(name, _)| !common.contains_key(*name)));
        match sets.iter_mut().find(|(set, _)| *set == own) {
            Some((_, labels)) if labels.contains(&trial.label) => {}
            Some((_, labels)) => labels.push(trial.label.clone()),
            None => sets.push((own, vec![trial.label.clone()])),
        }
    }
    let one = sets.len() == 1;
    let mut lines = Vec::new();
    let (begin, nothing) = match common.is_empty() {
        true => ("system set up with:", "nothing recorded"),
        false => {
            lines.push(format!("system set up with: {}", settings(common.iter())));
            sets.retain(|_| !one);
            ("and with", "nothing else")
        }
    };
    lines.extend(sets.iter().map(|(set, labels)| {
        let set = if set.is_empty() { nothing } else { set };
        match labels.len() {
            _ if one => format!("{begin} {set}"),
            1..=MOST_LABELS => format!("{begin} {set} (at {})", list(labels)),
            n => format!("{begin} {set} (at {})", plural(n, "cell")),
        }
    }));
    let overrides: Vec<String> = analysis
        .study
        .overrides
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    lines.extend(
        (!overrides.is_empty()).then(|| format!("changed by --set: {}", overrides.join(", "))),
    );
    lines
}

/// Settings with their values, one after the other.
fn settings<'a>(some: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let some = some.map(|(name, value)| format!("{name} {value}"));
    some.collect::<Vec<_>>().join(", ")
}

/// The measured value in a readable unit, or why there is none.
pub(crate) fn threshold_value(threshold: &ThresholdResult) -> String {
    let value = |value| crate::format::threshold_value(threshold, value);
    let reason = threshold.reason.clone();
    reason.unwrap_or_else(|| or_none(threshold.value, value))
}

/// A threshold in words: `response time p(95) < 300ms`, `error rate < 0.1% in “Log in”`.
pub(crate) fn threshold_words(threshold: &ThresholdResult) -> String {
    let mut words = crate::format::threshold(threshold.metric, &threshold.text);
    if threshold.implied {
        words.push_str(" (unless said otherwise)");
    }
    words.push_str(&threshold.scope.words());
    words
}

/// The outcome of a check in a word.
pub(crate) fn outcome(outcome: CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Pass => "pass",
        CheckOutcome::NotJudged => "not judged",
        CheckOutcome::Warn => "warning",
        CheckOutcome::Invalid => "INVALID",
    }
}

/// The part cut off the holds as warm-up, the same for all trials of a cell; more cells than this are only counted.
fn warm_up(analysis: &Analysis) -> Option<String> {
    const MOST: usize = 12;
    let mut cut: Vec<String> = Vec::new();
    for trial in analysis
        .trials
        .iter()
        .filter(|trial| trial.warmup_cut_ms > 0.0)
    {
        let (cut_off, hold) = (
            duration(trial.warmup_cut_ms),
            duration(millis(trial.hold_ms)),
        );
        let label = trial.label.trim_end_matches(" (control)");
        let text = format!("{cut_off} of {hold} at {label}");
        if !cut.contains(&text) {
            cut.push(text);
        }
    }
    let shown = &cut[..cut.len().min(MOST)];
    let more = match cut.len() - shown.len() {
        0 => String::new(),
        more => format!("; and at {}", plural(more, "further cell")),
    };
    (!cut.is_empty()).then(|| {
        format!(
            "Warm-up, cut off the hold by MSER-5 and counted in no figure: {}{more}.",
            shown.join(", ")
        )
    })
}

/// The note on studies in which response and service times differ.
pub(crate) fn service_note(analysis: &Analysis) -> Option<String> {
    let has_plan = analysis.cells.iter().any(|cell| cell.service_ms.is_some());
    has_plan.then(|| {
        "Sessions arrive on their own here, so there are two times. Response time counts from the \
         moment at which the request was due: what a user waits. Service time counts from its \
         actual send: what the server took once a connection was free. Where they differ, requests \
         queued for a connection."
            .to_owned()
    })
}

/// Notes of the trials, each once; failed requests.
pub(crate) fn trial_notes(analysis: &Analysis) -> Vec<String> {
    let warm_up = warm_up(analysis).filter(|_| !is_void(analysis));
    let mut notes: Vec<String> = warm_up.into_iter().collect();
    for trial in &analysis.trials {
        for note in &trial.notes {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
    }
    notes.extend(failures(analysis));
    notes.extend(slowest(analysis));
    notes
}

/// Examples of failed requests, one per kind: the first one, and the number of trials with this kind.
fn failures(analysis: &Analysis) -> Vec<String> {
    let mut kinds: Vec<(&TrialAnalysis, usize, BTreeSet<u32>)> = Vec::new();
    for trial in &analysis.trials {
        for (at, example) in trial.error_examples.iter().enumerate() {
            let known = kinds.iter_mut().find(|(first, at, _)| {
                let known = &first.error_examples[*at];
                (&known.step, &known.detail) == (&example.step, &example.detail)
            });
            match known {
                Some((_, _, trials)) => drop(trials.insert(trial.id)),
                None => kinds.push((trial, at, BTreeSet::from([trial.id]))),
            }
        }
    }
    let more = kinds.len().saturating_sub(MOST_FAILURES);
    let said = kinds.iter().take(MOST_FAILURES);
    let said = said.map(|(trial, at, trials)| {
        let example = &trial.error_examples[*at];
        let others = match trials.len() - 1 {
            0 => String::new(),
            n => format!(" (and in {})", plural(n, "further trial")),
        };
        format!(
            "trial {}, {}: “{}” failed: {}{}{others}",
            trial.id,
            duration(millis(example.t_ms)),
            example.step,
            example.detail,
            trace(example.trace.as_deref())
        )
    });
    let more = (more > 0).then(|| {
        format!(
            "{} of failed requests: see result.json",
            plural(more, "further kind")
        )
    });
    said.chain(more).collect()
}

/// The slowest requests of all trials that are in the system's traces.
fn slowest(analysis: &Analysis) -> Vec<String> {
    let of_trial = |trial: &'_ TrialAnalysis| {
        let id = trial.id;
        trial
            .slowest
            .iter()
            .map(move |slow| (id, slow.clone()))
            .collect::<Vec<_>>()
    };
    let mut all: Vec<_> = analysis.trials.iter().flat_map(of_trial).collect();
    all.sort_by(|a, b| b.1.response_ms.total_cmp(&a.1.response_ms));
    let told = all.iter().take(MOST_SLOW).map(|(id, slow)| {
        let took = duration(slow.response_ms);
        format!("trial {id}: “{}” took {took}", slow.step) + &trace(Some(&slow.trace))
    });
    told.collect()
}

fn trace(id: Option<&str>) -> String {
    id.map_or_else(String::new, |id| format!(" (trace {id})"))
}

/// Names of trials: `trial 3`, `trials 1, 3, and 4`; many are counted.
pub(crate) fn which(trials: &[u32]) -> String {
    let names: Vec<String> = trials.iter().map(u32::to_string).collect();
    match trials.len() {
        1 => format!("trial {}", names[0]),
        n if n > MOST_TRIALS => format!("{n} trials"),
        _ => format!("trials {}", list(&names)),
    }
}

/// The result of the run, in a sentence or two.
pub(crate) fn verdict(analysis: &Analysis) -> String {
    let summary = &analysis.summary;
    let trials = format!(
        "{} of {} valid",
        summary.valid,
        plural(summary.complete, "trial")
    );
    let warnings = match summary.warnings {
        0 => String::new(),
        n => format!(", {}", plural(n, "warning")),
    };
    let thresholds = match (summary.thresholds, summary.thresholds_failed) {
        (0, _) => String::new(),
        (1, 0) => "; the threshold holds".to_owned(),
        (all, 0) => format!("; all {all} thresholds hold"),
        (all, failed) => format!("; {failed} of {} failed", plural(all, "threshold")),
    };
    let missing = match summary.planned.saturating_sub(summary.complete) {
        0 => String::new(),
        n => format!(
            "; {} of {} not run",
            n,
            plural(summary.planned, "planned trial")
        ),
    };
    let took = summary
        .least_part_of_load
        .map(|part| format!("took {} of the planned load", part_of_load(part)));
    let comes_to = match (summary.outcome, took) {
        (Outcome::Ok, None) => "A valid measurement".to_owned(),
        (Outcome::Ok, Some(took)) => format!("A valid measurement, but the server {took}"),
        (Outcome::ThresholdFailed, _) if summary.aborted > 0 => {
            format!("{} aborted", plural(summary.aborted, "trial"))
        }
        (Outcome::ThresholdFailed, None) => {
            "A valid measurement, but the server missed a threshold".to_owned()
        }
        (Outcome::ThresholdFailed, Some(took)) => {
            format!("A valid measurement, but the server missed a threshold and {took}")
        }
        (Outcome::CouldNotTell, _) => "Could not tell".to_owned(),
        (Outcome::Regression, _) => "A regression is shown".to_owned(),
        (Outcome::TooFewValidTrials, _) => "Too few valid trials".to_owned(),
        (Outcome::SearchNotFinished, _) => "The search was not finished".to_owned(),
        (Outcome::SystemFailed, _) => "The system under test failed".to_owned(),
        (Outcome::PreparationFailed, _) => "The preparation failed".to_owned(),
    };
    format!("{comes_to}. {trials}{warnings}{thresholds}{missing}.")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a trial stay far below 2^52"
)]
pub(crate) fn millis(ms: u64) -> f64 {
    ms as f64
}
