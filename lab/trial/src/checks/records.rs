//! Are the records complete? Gaps in time, agreement of counts, counters, setup, errors, skips.

use lab_plan::LoadKind;
use lab_plan::checks::{
    CheckId, ELAPSED, HELD_UP, RESENT, SKIPPED_STEPS, UNANSWERED, UNSAMPLED, WINDOW_GAPS,
};
use lab_stats::quantile;

use super::facts::Facts;
use super::outcome::{check, invalid, judged, not_judged, pass, warn};
use super::skips;
use crate::format::{count, ms, percent, plural_count, still_unanswered};
use crate::model::{Check, CheckOutcome, Figure};
use crate::number::as_f64;
use crate::queues;

/// Tolerance between adjacent windows, which timers end.
const MEET_MS: f64 = 2.0;
/// Usual delay until a window is delivered, unless the generator stands still.
const USUAL_HAND_OVER_MS: f64 = 50.0;
/// Requests in flight for less than this many times p99 at the end are normal.
const UNANSWERED_P99: f64 = 10.0;

/// Checks that windows cover ramp and hold without gaps or overlaps, and in the planned time.
pub(super) fn clock(facts: &Facts<'_>) -> Check {
    let id = CheckId::ClockAndWindows;
    let record = &facts.data.record;
    let planned_ms = planned_ms(facts);
    let (mut gaps_ms, mut overlaps_ms, mut at) = (0.0, 0.0, 0.0);
    for window in &facts.data.windows {
        let step = window.start_ms - at;
        gaps_ms += if step > MEET_MS { step } else { 0.0 };
        overlaps_ms += if step < -MEET_MS { -step } else { 0.0 };
        at = window.end_ms;
    }
    if planned_ms - at > MEET_MS {
        gaps_ms += planned_ms - at;
    }
    let elapsed_ms = as_f64(record.elapsed_ms);
    let mut evidence = format!(
        "{} windows; {} ms without one, {} ms covered twice; {} s of {} s planned",
        count(facts.sums.whole.windows),
        ms(gaps_ms),
        ms(overlaps_ms),
        ms(elapsed_ms / 1000.0),
        ms(planned_ms / 1000.0)
    );
    let (still_ms, latest_ms) = stood_still(facts).unwrap_or_default();
    if still_ms > 0.0 {
        evidence.push_str(&format!(
            "; a loop of the generator stood still for {} ms in all, and handed a window over {} ms late",
            ms(still_ms),
            ms(latest_ms)
        ));
    }
    let part = |ms: f64| 100.0 * ms / planned_ms.max(1.0);
    let figures = vec![
        facts.held(part(gaps_ms + overlaps_ms), &WINDOW_GAPS),
        facts.held(part((elapsed_ms - planned_ms).abs()), &ELAPSED),
        facts.held(part(still_ms), &HELD_UP),
    ];
    let advice = match [figures[0].outcome(), figures[2].outcome()] {
        _ if figures.iter().any(is_invalid) => CheckId::ClockAndWindows.row().advice,
        [CheckOutcome::Warn, _] => "Short gaps; figures leave them out.",
        _ => "The generator stood still for a moment: look at its other checks.",
    };
    judged(id, figures, evidence).advise(advice)
}

fn is_invalid(figure: &Figure) -> bool {
    figure.outcome() == CheckOutcome::Invalid
}

/// Returns the length of ramp and hold; of a sequence, up to its last session.
fn planned_ms(facts: &Facts<'_>) -> f64 {
    facts.sums.hold_span.end_ms
}

/// Returns how long a loop of the generator stood still within the trial, and the delay of its latest window; `None` if
/// that was not recorded. Workers stamp their windows themselves. A stall that delays many windows counts once: from
/// the end of the first of them, plus the usual delay, until it is over.
fn stood_still(facts: &Facts<'_>) -> Option<(f64, f64)> {
    let end_ms = planned_ms(facts);
    let (mut still_ms, mut latest_ms, mut counted_to) = (0.0, 0.0_f64, 0.0_f64);
    for window in &facts.data.windows {
        let handed_over_ms = window.handed_over_ms?;
        let from_ms = (window.end_ms + USUAL_HAND_OVER_MS).max(counted_to);
        let to_ms = handed_over_ms.min(end_ms);
        if to_ms > from_ms {
            still_ms += to_ms - from_ms;
            counted_to = to_ms;
        }
        latest_ms = latest_ms.max(handed_over_ms - window.end_ms);
    }
    Some((still_ms, latest_ms))
}

/// Checks that counters of the windows and histograms have the same number of requests.
pub(super) fn agreement(facts: &Facts<'_>) -> Check {
    let id = CheckId::RecordsAgree;
    let whole = &facts.sums.whole;
    let (ok, errors) = facts.sums.recorded;
    let failed = whole.errors() + whole.over_limit();
    let evidence = format!(
        "{} transactions counted, {} timed; {} errors counted, {} timed",
        count(whole.ok()),
        count(ok),
        count(failed),
        count(errors)
    );
    if let Some(spent) = overspent(facts) {
        let evidence = format!("{evidence}; waits and answers took {spent} of the users' time");
        invalid(id, evidence).advise(
            "Users had no time for so many waits and answers of that length: times or counts are wrong.",
        )
    } else if whole.ok() != ok {
        invalid(id, evidence)
    } else if failed < errors {
        invalid(id, evidence)
            .advise("More errors were timed than counted: the archive was changed.")
    } else {
        pass(id, evidence)
    }
}

/// Users may spend this much more time than they have: they are counted at the ends of windows only, and a request that
/// began before the trial counts with its whole time.
const TIME_SLACK: f64 = 1.1;

/// Describes the part of their time that users spent on waits and responses, if that is more than they had. `None` also
/// for loads whose users change between the windows' ends.
fn overspent(facts: &Facts<'_>) -> Option<String> {
    let whole = &facts.sums.whole;
    let load = &facts.planned.load;
    let steps = whole.steps.values();
    let waited_us: u64 = steps.map(|step| step.wait_sum_us + step.pause_us).sum();
    let spent_s = as_f64(waited_us) / 1e6 + facts.sums.answered_s;
    let part = lab_stats::ratio(spent_s, whole.users.mean()? * whole.span_ms / 1000.0)?;
    let is_closed = load.kind == LoadKind::Users && load.mix.is_empty();
    (is_closed && part > TIME_SLACK).then(|| percent(part * 100.0))
}

/// Checks that counters were sampled through the hold: the ones with the most gaps count.
pub(super) fn monitor(facts: &Facts<'_>) -> Check {
    let coverage = &facts.monitored.coverage;
    let (of, part) = coverage.least();
    let whose = match coverage.is_alike() {
        true => String::new(),
        false => format!(" of {of}"),
    };
    let evidence = format!("samples{whose} cover {} of the hold", percent(part * 100.0));
    let figure = facts.held(100.0 * (1.0 - part), &UNSAMPLED);
    judged(CheckId::Counters, vec![figure], evidence)
}

/// Checks that the setup succeeded.
pub(super) fn setup(facts: &Facts<'_>) -> Check {
    let record = &facts.data.record;
    let evidence = format!(
        "{} requests, {} errors",
        count(record.setup_transactions + record.setup_errors),
        count(record.setup_errors)
    );
    if record.setup_errors > 0 {
        warn(CheckId::Setup, evidence)
    } else {
        pass(CheckId::Setup, evidence)
    }
}

/// Reports errors: they are data, and never make a trial invalid.
pub(super) fn errors(facts: &Facts<'_>) -> Check {
    let whole = &facts.sums.whole;
    let errors = whole.errors();
    let requests = whole.sent() + whole.sent_again();
    let over = match whole.over_limit() {
        0 => String::new(),
        n => format!("; {} given up at the time limit, a bound", count(n)),
    };
    let stale = match whole.stale_retries {
        0 => over,
        n => format!("; {} sent again{over}", count(n)),
    };
    let stale = match whole.evicted_cookies {
        0 => stale,
        n => format!(
            "{stale}; {} lost because the server set more than a user keeps",
            plural_count(n, "cookie")
        ),
    };
    let stale = match whole.sent_again() {
        0 => stale,
        n => format!("; {} sent by `retry`{stale}", count(n)),
    };
    let resent = lab_stats::ratio(as_f64(whole.stale_retries), as_f64(requests));
    let resent = facts.held(100.0 * resent.unwrap_or_default(), &RESENT);
    if errors == 0 {
        let evidence = format!("none in {} requests{stale}", count(requests));
        let advice = "The server closes idle connections sooner than users use them: raise its \
                      keep-alive time.";
        return judged(CheckId::Errors, vec![resent], evidence).advise(advice);
    }
    let classes: Vec<String> = whole
        .errors_by_class
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(class, n)| format!("{} {}", count(*n), class.words()))
        .collect();
    let evidence = format!(
        "{} of {} requests failed ({}): {}{stale}",
        count(errors),
        count(requests),
        percent(as_f64(errors) / as_f64(requests) * 100.0),
        classes.join(", ")
    );
    let outcome = resent.outcome().max(CheckOutcome::Warn);
    check(CheckId::Errors, outcome, evidence).by(vec![resent])
}

/// Requests in flight at the end of the hold are in no figure: they must be few and young.
pub(super) fn unanswered(facts: &Facts<'_>) -> Check {
    let id = CheckId::Unanswered;
    let Some(unanswered) = &facts.data.record.unanswered else {
        return not_judged(id, "not recorded");
    };
    if unanswered.count == 0 {
        return pass(id, "none".to_owned());
    }
    let evidence = still_unanswered(unanswered.count, unanswered.oldest_ms);
    let p99_ms = quantile(&facts.sums.response, 0.99).map(|us| as_f64(us) / 1000.0);
    let usual = p99_ms.map_or(0.0, |p99| UNANSWERED_P99 * p99);
    let figure = facts.held(unanswered.oldest_ms, &UNANSWERED);
    if figure.outcome() == CheckOutcome::Pass || unanswered.oldest_ms < usual {
        pass(id, evidence)
    } else {
        let evidence = format!("{evidence}: response times leave them out");
        judged(id, vec![figure], evidence)
    }
}

/// Reports loops that reached their bound. `None` if none did.
pub(super) fn loops(facts: &Facts<'_>) -> Option<Check> {
    let cut_off = facts.sums.whole.cut_off();
    let evidence = format!("{} ended by their bound", plural_count(cut_off, "loop"));
    (cut_off > 0).then(|| warn(CheckId::Loops, evidence))
}

/// Reports steps that found their list empty.
pub(super) fn skipped(facts: &Facts<'_>) -> Check {
    let whole = &facts.sums.whole;
    let skipped = whole.skipped();
    let part = lab_stats::ratio(as_f64(skipped), as_f64(whole.attempts())).unwrap_or_default();
    let evidence = format!(
        "{} of {} ({}){}",
        count(skipped),
        count(whole.attempts()),
        percent(part * 100.0),
        skips::told(facts, whole)
    );
    let faults = queues::faults(&facts.study.workload, &facts.data.windows);
    let evidence = faults
        .iter()
        .fold(evidence, |all, one| format!("{all}; {one}"));
    let figure = facts.held(100.0 * part, &SKIPPED_STEPS);
    let check = judged(CheckId::SkippedSteps, vec![figure], evidence);
    if !faults.is_empty() && check.outcome < CheckOutcome::Warn {
        let advice = "Users put in more or less than others take out: let as many take as put in, or let the \
                      queue be longer (`at_most`) and the wait for an entry (`within`).";
        return warn(check.id, check.evidence)
            .by(check.figures)
            .advise(advice);
    }
    match skips::too_few(facts) {
        Some(advice) => check.advise(&advice),
        None => check,
    }
}
