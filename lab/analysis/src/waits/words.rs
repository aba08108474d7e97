//! Sentences on the differences between the waits of two cells.

use lab_profile::waits::differences::{CodeDifference, WaitDifference};
use lab_profile::waits::scheduling::{NoCore, SchedulingDifference};
use lab_profile::waits::{ANY_CODE, Per};
use lab_trial::format::{
    code as name, list, micros as time, ms, ratio_or_percent, signed_micros as signed_us,
};

use crate::model::{CellScheduling, Comparison, Difference, Measure};
use crate::profiles::{MOST_NAMED, more};

/// The maximum number of waits that a run's finding names.
const MOST_OF_RUN: usize = 2;
/// The minimum part of a longer response time that waits for a core must explain to be called the reason.
const REASON: f64 = 0.5;

/// All sentences of a comparison; the first one is about all waits.
pub(super) fn sentences(of: &WaitDifference, least: f64) -> Vec<String> {
    let whole = format!(
        "Time that threads waited, waits for work left out, {} against {}: {} against {} per {}, {}.",
        of.b,
        of.a,
        time(of.us_b),
        time(of.us_a),
        of.per.word(),
        signed_us(of.us, of.us_interval)
    );
    if let Some(reason) = &of.reason {
        return vec![whole, format!("Single waits are not compared: {reason}.")];
    }
    let nothing = of.findings.is_empty().then(|| {
        format!(
            "No single wait differs by {} or more beyond noise.",
            time(least * of.us_a)
        )
    });
    let finding =
        |one: &CodeDifference| format!("{}: {}.", signed_us(one.us, one.us_interval), what(one));
    std::iter::once(whole)
        .chain(of.findings.iter().take(MOST_NAMED).map(finding))
        .chain(nothing)
        .chain(more(of.findings.len(), "wait"))
        .collect()
}

/// `waiting for a lock in work_17`.
fn what(of: &CodeDifference) -> String {
    let awaited = of.class.doing();
    match of.function == ANY_CODE {
        true => awaited.to_owned(),
        false => format!("{awaited}, in {}", name(&of.function)),
    }
}

/// The run's finding: waits that became longer or shorter.
pub(super) fn summary(of: &WaitDifference) -> Option<String> {
    let named: Vec<String> = of
        .findings
        .iter()
        .take(MOST_OF_RUN)
        .map(|one| format!("{} {}", signed_us(one.us, one.us_interval), what(one)))
        .collect();
    (!named.is_empty()).then(|| {
        let (a, b, per) = (&of.a, &of.b, of.per.word());
        format!(
            "{b} against {a}: per {per}, threads spent {}.",
            list(&named)
        )
    })
}

/// Puts waits for a core into sentences; `of_b` has the distribution of the cell that is compared with the baseline.
pub(super) fn scheduling(
    of: &mut SchedulingDifference,
    comparisons: &[Comparison],
    of_b: Option<&CellScheduling>,
) {
    let mut sentences = Vec::new();
    if let Some(no_core) = of.no_core {
        let slower = slower(of, &no_core, comparisons);
        of.is_reason = slower.is_some();
        sentences.push(cores(of, &no_core, slower, of_b));
    }
    let differing = of.latencies.iter().filter(|one| one.differs);
    sentences.extend(differing.map(|one| {
        let interval = one
            .ratio_interval
            .map(|(low, high)| format!(" [{}, {}]", ratio_or_percent(low), ratio_or_percent(high)));
        format!(
            "{} of the waits of {} for a core: {} against {}, {}{}.",
            one.quantile,
            name(&one.group),
            time(one.us_b),
            time(one.us_a),
            ratio_or_percent(one.ratio),
            interval.unwrap_or_default()
        )
    }));
    of.sentences = sentences;
}

/// The slower mean response that waits for a core mostly explain, if both are beyond noise.
fn slower<'a>(
    of: &SchedulingDifference,
    no_core: &NoCore,
    comparisons: &'a [Comparison],
) -> Option<&'a Comparison> {
    let is_more =
        no_core.us_interval.is_some_and(|(low, _)| low > 0.0) && no_core.per == Per::Transaction;
    comparisons.iter().find(|one| {
        let is_it = (&one.a, &one.b, one.metric) == (&of.a, &of.b, Measure::Mean);
        let is_most = no_core.us / 1000.0 >= REASON * one.difference;
        is_it && is_more && is_most && one.verdict == Some(Difference::Slower)
    })
}

/// Waits for a core, as the reason of longer responses if they are.
fn cores(
    of: &SchedulingDifference,
    no_core: &NoCore,
    slower: Option<&Comparison>,
    of_b: Option<&CellScheduling>,
) -> String {
    let (a, b, per) = (&of.a, &of.b, no_core.per.word());
    let difference = signed_us(no_core.us, no_core.us_interval);
    let Some(slower) = slower else {
        let (us_a, us_b) = (time(no_core.us_a), time(no_core.us_b));
        return format!(
            "Ready, but without a core, {b} against {a}: {us_b} against {us_a} per {per}, {difference}."
        );
    };
    let groups = of_b.into_iter().flat_map(|cell| &cell.groups);
    let longest = groups.filter_map(|group| group.p99_us).reduce(f64::max);
    let longest = longest.map(|us| format!("; 99 % of these waits were below {} ms", ms(us / 1e3)));
    format!(
        "Responses are longer because threads that were ready waited for a core, {b} against {a}: {difference} per {per}, \
         beside +{} ms of the mean response{}.",
        ms(slower.difference),
        longest.unwrap_or_default()
    )
}
