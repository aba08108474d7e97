//! Why trials are invalid or doubtful: each check that didn't pass, once over all trials; and the one sentence with the
//! main reason.

use std::collections::BTreeSet;

use lab_archive::Run;
use lab_plan::checks::{self, Cause, CheckId, Limits, Unit};
use lab_trial::format::{figure as number, limit, list, plural};
use lab_trial::{failed, suspects};

use crate::model::{
    Beyond, Check, CheckOutcome, Figure, Range, Reason, Summary, TrialAnalysis, Verdict,
};

/// The maximum number of named culprits.
const MOST_CULPRITS: usize = 4;

/// Failed checks first, then warnings; within each, those of the most trials first.
pub(crate) fn reasons(run: &Run, trials: &[TrialAnalysis]) -> Vec<Reason> {
    let mut found: Vec<Found<'_>> = Vec::new();
    for trial in trials {
        for check in &trial.checks {
            if check.outcome < CheckOutcome::Warn {
                continue;
            }
            let known = found.iter_mut().find(|one| {
                let (_, first) = one[0];
                first.id == check.id && first.outcome == check.outcome
            });
            match known {
                Some(known) => known.push((trial, check)),
                None => found.push(vec![(trial, check)]),
            }
        }
    }
    found.sort_by_key(|one| {
        let check = one[0].1;
        // Causes from outside explain why other checks fail.
        let is_outside = check.cause == Some(Cause::Outside);
        std::cmp::Reverse((check.outcome, is_outside, one.len()))
    });
    found.iter().map(|one| reason(run, one)).collect()
}

/// The trials in which a check had the same outcome.
type Found<'a> = Vec<(&'a TrialAnalysis, &'a Check)>;

fn reason(run: &Run, found: &Found<'_>) -> Reason {
    let (_, check) = found[0];
    let trials: Vec<u32> = found.iter().map(|(trial, _)| trial.id).collect();
    let figure = beyond(found);
    Reason {
        check: check.id,
        outcome: check.outcome,
        cause: check.cause,
        evidence: evidence(found, figure.as_ref()),
        figure,
        culprits: match check.id == CheckId::OtherPrograms {
            true => culprits(run, &trials),
            false => Vec::new(),
        },
        advice: check.advice.clone().unwrap_or_default(),
        trials,
    }
}

/// For one trial, the text of its check; for several, the range of the figure beside the limit, or the text of the
/// first of them.
fn evidence(found: &Found<'_>, figure: Option<&Beyond>) -> String {
    let (first, check) = found[0];
    match figure {
        _ if found.len() == 1 => check.evidence.clone(),
        None => format!("trial {}: {}", first.id, check.evidence),
        Some(figure) => {
            let what = checks::limit(figure.key).map_or(figure.key, |limit| limit.figure);
            let limit = limit(figure.limit, figure.unit);
            let of = match check.outcome {
                CheckOutcome::Warn => "warns beyond",
                _ => "limit",
            };
            format!("{what}: {} ({of} {limit})", range(figure))
        }
    }
}

/// The figure that is beyond its limit in all of these trials.
fn beyond(found: &Found<'_>) -> Option<Beyond> {
    let (_, check) = found[0];
    let is_beyond = |figure: &&Figure| figure.outcome() == check.outcome;
    let first = check.figures.iter().find(is_beyond)?;
    let of = |check: &Check| {
        let mut figures = check.figures.iter().filter(is_beyond);
        figures.find(|figure| figure.key == first.key).copied()
    };
    let all: Option<Vec<Figure>> = found.iter().map(|(_, check)| of(check)).collect();
    let values = Range::of(all?.iter().map(|figure| figure.value))?;
    let limit = match check.outcome {
        CheckOutcome::Invalid => first.invalid,
        _ => first.warn,
    };
    Some(Beyond {
        key: first.key,
        unit: first.unit,
        least: values.least,
        most: values.most,
        limit: limit?,
    })
}

/// `43.1 to 87.0 %`.
fn range(figure: &Beyond) -> String {
    let unit = match figure.unit {
        Unit::Percent => "%",
        Unit::Milliseconds => "ms",
    };
    let (least, most) = (number(figure.least), number(figure.most));
    if least == most {
        return format!("{least} {unit}");
    }
    format!("{least} to {most} {unit}")
}

/// Programs other than the lab and the system in these trials, by the CPU they used.
fn culprits(run: &Run, trials: &[u32]) -> Vec<String> {
    let mut used: Vec<(String, f64)> = Vec::new();
    let data = run.trials.iter();
    let data = data.filter(|data| trials.contains(&data.record.id));
    for program in data.flat_map(|data| &data.record.environment.others_during) {
        match used.iter_mut().find(|(name, _)| *name == program.name) {
            Some((_, sum)) => *sum += program.cpu_percent,
            None => used.push((program.name.clone(), program.cpu_percent)),
        }
    }
    used.sort_by(|a, b| b.1.total_cmp(&a.1));
    used.truncate(MOST_CULPRITS);
    used.into_iter().map(|(name, _)| name).collect()
}

/// `all 12 trials`, `both trials`, `7 of 12 trials`.
fn of_trials(n: usize, all: usize) -> String {
    match (n, all) {
        (1, 1) => "the only trial".to_owned(),
        (2, 2) => "both trials".to_owned(),
        (n, all) if n == all => format!("all {all} trials"),
        (n, all) => format!("{n} of {}", plural(all, "trial")),
    }
}

/// Why a run is invalid, in one sentence; `None` if no check gives a reason.
pub(crate) fn why(
    reasons: &[Reason],
    summary: &Summary,
    (trials, set): (&[TrialAnalysis], &Limits),
) -> Option<String> {
    let main = main_reason(reasons, trials)?;
    let what = cause(main);
    // Counts trials of the plan, regardless of the number of attempts.
    let hit = trials
        .iter()
        .filter(|trial| main.trials.contains(&trial.id));
    let hit: BTreeSet<u32> = hit.map(TrialAnalysis::planned).collect();
    let during = of_trials(hit.len(), summary.complete);
    if trials.iter().all(|trial| trial.verdict == Verdict::Invalid) {
        let perhaps = perhaps(reasons, main, (trials, set));
        return Some(format!(
            "Not a measurement: {what} during {during}{perhaps}."
        ));
    }
    let invalid = of_trials(summary.invalid, summary.complete);
    let are = if summary.invalid == 1 { "is" } else { "are" };
    let most = if summary.invalid == hit.len() {
        ""
    } else {
        "most often "
    };
    let of_cells = match summary.cells_without_valid_trial {
        0 => "",
        _ => "Not a measurement of every cell: ",
    };
    Some(format!(
        "{of_cells}{invalid} {are} invalid, {most}because {what}{}.",
        perhaps(reasons, main, (trials, set))
    ))
}

/// Possible causes of the main reason, in words.
fn perhaps(
    reasons: &[Reason],
    main: &Reason,
    (trials, set): (&[TrialAnalysis], &Limits),
) -> String {
    let hit = || {
        trials
            .iter()
            .filter(|trial| main.trials.contains(&trial.id))
    };
    let is_suspect = |reason: &&Reason| {
        let mut suspected = hit().flat_map(|trial| suspects(trial, set));
        reason.outcome == CheckOutcome::Warn && suspected.any(|check| check.id == reason.check)
    };
    let all: Vec<String> = reasons.iter().filter(is_suspect).map(cause).collect();
    match all.is_empty() {
        true => String::new(),
        false => format!(", perhaps because {}", list(&all)),
    }
}

/// The reason that is the first failed check of the most invalid trials.
fn main_reason<'r>(reasons: &'r [Reason], trials: &[TrialAnalysis]) -> Option<&'r Reason> {
    let first = |trial: &TrialAnalysis| failed(trial).first().map(|check| check.id);
    let invalid = trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Invalid);
    let told: Vec<CheckId> = invalid.filter_map(first).collect();
    let times = |one: &&Reason| told.iter().filter(|id| **id == one.check).count();
    // Among equally frequent reasons, the first in the list.
    let most = reasons.iter().rev().max_by_key(times)?;
    match times(&most) {
        0 => reasons
            .iter()
            .find(|one| one.outcome == CheckOutcome::Invalid),
        _ => Some(most),
    }
}

/// The failure, as the end of a sentence.
pub(crate) fn cause(reason: &Reason) -> String {
    let much = reason.figure.as_ref().map(range);
    let much = |before: &str| {
        much.as_ref()
            .map_or(String::new(), |it| format!("{before}{it}"))
    };
    match reason.check {
        CheckId::OtherPrograms => {
            let names = match reason.culprits.as_slice() {
                [] => String::new(),
                some => format!(" ({})", list(some)),
            };
            format!(
                "other programs{names} used{} of this machine's CPU",
                much(" ")
            )
        }
        CheckId::StolenCpu => format!("the hypervisor took{} of this machine's CPU", much(" ")),
        CheckId::LatenessOfSends => format!("the generator sent late{}", much(" by ")),
        CheckId::RunQueueDelay => format!("the generator waited for a CPU{}", much(" for ")),
        CheckId::ClockAndWindows => "the generator stood still at times".to_owned(),
        CheckId::LoadGenerator => "a part of the load generator failed".to_owned(),
        id => {
            let what = reason.figure.as_ref().and_then(|figure| {
                let what = checks::limit(figure.key)?.figure;
                Some(format!(" ({what}: {})", range(figure)))
            });
            format!(
                "the check “{}” failed{}",
                id.title(),
                what.unwrap_or_default()
            )
        }
    }
}
