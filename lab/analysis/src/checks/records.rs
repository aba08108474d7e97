//! Are the records whole? Gaps in time, agreement of counts, counters, setup, errors, skips.

use lab_archive::model::ErrorClass;
use lab_stats::quantile;

use super::facts::Facts;
use super::outcome::{invalid, not_judged, pass, warn};
use crate::format::{count, ms, percent, still_unanswered};
use crate::model::Check;
use crate::number::as_f64;

/// Windows meet within this; they are cut by timers.
const MEET_MS: f64 = 2.0;
/// More of the trial than this without a window, or covered twice, is no record of it.
const GAP_INVALID: f64 = 0.01;
/// A window is handed over within this, unless the generator stands still.
const USUAL_HAND_OVER_MS: f64 = 50.0;
/// Later than this is worth a warning.
const HELD_UP_MS: f64 = 250.0;
/// Ramp and hold may last this much longer or shorter than planned.
const ELAPSED_TOLERANCE: f64 = 0.02;
/// Samples must cover this much of the hold.
const COVERAGE_WARN: f64 = 0.80;
/// A server that closes idle connections under more requests than this makes them take longer than
/// their recorded times.
const STALE_WARN: f64 = 0.001;
/// Requests under way for less than this at the end are the usual ones…
const UNANSWERED_MS: f64 = 1000.0;
/// … as are those within this many times p99.
const UNANSWERED_P99: f64 = 10.0;
/// More skipped steps than this are a fault of the workload or of the server's answers.
const SKIPPED_WARN: f64 = 0.005;

/// Windows cover ramp and hold without gaps, overlaps, and in the planned time.
pub(super) fn clock(facts: &Facts<'_>) -> Check {
    let name = "clock and windows";
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
    let evidence = format!(
        "{} windows; {} ms without one, {} ms covered twice; {} s of {} s planned",
        count(facts.sums.whole.windows),
        ms(gaps_ms),
        ms(overlaps_ms),
        ms(elapsed_ms / 1000.0),
        ms(planned_ms / 1000.0)
    );
    let uneven = (gaps_ms + overlaps_ms) / planned_ms.max(1.0);
    let off = (elapsed_ms / planned_ms.max(1.0) - 1.0).abs();
    let held_up = held_up(facts);
    let evidence = match held_up {
        Some((_, most)) if most > HELD_UP_MS => {
            format!("{evidence}; a window was handed over {} ms late", ms(most))
        }
        _ => evidence,
    };
    let held_part = held_up.map_or(0.0, |(sum, _)| sum / planned_ms.max(1.0));
    if uneven > GAP_INVALID || off > ELAPSED_TOLERANCE || held_part > GAP_INVALID {
        let advice = "The generator was stopped for a while, or the machine slept: run again.";
        invalid(name, evidence, advice)
    } else if gaps_ms + overlaps_ms > 0.0 {
        warn(name, evidence, "Short gaps; figures leave them out.")
    } else if held_up.is_some_and(|(_, most)| most > HELD_UP_MS) {
        warn(
            name,
            evidence,
            "The generator stood still for a moment: look at its other checks.",
        )
    } else {
        pass(name, evidence)
    }
}

/// Ramp and hold; of a sequence, up to its last session.
fn planned_ms(facts: &Facts<'_>) -> f64 {
    facts.sums.hold_span.end_ms
}

/// By how much windows were handed over late, together and at most, beyond the usual; `None` where
/// that was not recorded.
fn held_up(facts: &Facts<'_>) -> Option<(f64, f64)> {
    let late = facts.data.windows.iter();
    let late: Option<Vec<f64>> = late
        .map(|window| Some(window.handed_over_ms? - window.end_ms))
        .collect();
    let late = late?;
    let beyond = late.iter().filter(|late| **late > USUAL_HAND_OVER_MS);
    Some((beyond.sum(), late.iter().copied().fold(0.0, f64::max)))
}

/// Counters of the windows and histograms count the same requests.
pub(super) fn agreement(facts: &Facts<'_>) -> Check {
    let name = "records agree";
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
    if whole.ok() != ok {
        invalid(
            name,
            evidence,
            "The archive is incomplete or was changed: run again.",
        )
    } else if failed < errors {
        invalid(
            name,
            evidence,
            "More errors were timed than counted: the archive was changed.",
        )
    } else {
        pass(name, evidence)
    }
}

/// Counters were sampled through the hold.
pub(super) fn monitor(facts: &Facts<'_>) -> Check {
    let evidence = format!(
        "samples cover {} of the hold",
        percent(facts.monitored.coverage * 100.0)
    );
    if facts.monitored.coverage < COVERAGE_WARN {
        warn(
            "counters",
            evidence,
            "Counters speak for a part of the hold only.",
        )
    } else {
        pass("counters", evidence)
    }
}

/// The setup went through.
pub(super) fn setup(facts: &Facts<'_>) -> Check {
    let record = &facts.data.record;
    let evidence = format!(
        "{} requests, {} errors",
        count(record.setup_transactions + record.setup_errors),
        count(record.setup_errors)
    );
    if record.setup_errors > 0 {
        let advice = "The data that the load began with is not what the workload describes.";
        warn("setup", evidence, advice)
    } else {
        pass("setup", evidence)
    }
}

/// Errors are data: they warn and never invalidate.
pub(super) fn errors(facts: &Facts<'_>) -> Check {
    let whole = &facts.sums.whole;
    let errors = whole.errors();
    let requests = whole.sent();
    let over = match whole.over_limit() {
        0 => String::new(),
        n => format!("; {} given up at the time limit, a bound", count(n)),
    };
    let stale = match whole.stale_retries {
        0 => over,
        n => format!("; {} sent again on a fresh connection{over}", count(n)),
    };
    let many_stale = as_f64(whole.stale_retries) > STALE_WARN * as_f64(requests);
    if errors == 0 {
        let evidence = format!("none in {} requests{stale}", count(requests));
        return if many_stale {
            let advice = "The server closes idle connections sooner than users use them: raise its \
                          keep-alive time.";
            warn("errors", evidence, advice)
        } else {
            pass("errors", evidence)
        };
    }
    let classes: Vec<String> = whole
        .errors_by_class
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(class, n)| format!("{} {}", count(*n), class_name(*class)))
        .collect();
    let evidence = format!(
        "{} of {} requests failed ({}): {}{stale}",
        count(errors),
        count(requests),
        percent(as_f64(errors) / as_f64(requests) * 100.0),
        classes.join(", ")
    );
    warn(
        "errors",
        evidence,
        "Errors are data; the examples and system.log tell more.",
    )
}

/// Requests under way at the end of the hold are in no figure: they must be few and young.
pub(super) fn unanswered(facts: &Facts<'_>) -> Check {
    let name = "unanswered at the end";
    let Some(unanswered) = &facts.data.record.unanswered else {
        return not_judged(name, "not recorded");
    };
    if unanswered.count == 0 {
        return pass(name, "none".to_owned());
    }
    let evidence = still_unanswered(unanswered.count, unanswered.oldest_ms);
    let p99_ms = quantile(&facts.sums.response, 0.99).map(|us| as_f64(us) / 1000.0);
    let usual = p99_ms.map_or(0.0, |p99| UNANSWERED_P99 * p99);
    if unanswered.oldest_ms < UNANSWERED_MS.max(usual) {
        pass(name, evidence)
    } else {
        let evidence = format!("{evidence}: response times leave them out");
        let advice = "Some requests got stuck in the server: response times are longer than they \
                      look.";
        warn(name, evidence, advice)
    }
}

/// What a class of errors is called.
pub(crate) fn class_name(class: ErrorClass) -> &'static str {
    match class {
        ErrorClass::Status => "unexpected status",
        ErrorClass::Timeout => "timeout",
        ErrorClass::Connect => "no connection",
        ErrorClass::Reset => "connection broken",
        ErrorClass::Check => "unusable answer",
    }
}

/// Steps that found their list empty.
pub(super) fn skipped(facts: &Facts<'_>) -> Check {
    let whole = &facts.sums.whole;
    let skipped = whole.skipped();
    let part = lab_stats::ratio(as_f64(skipped), as_f64(whole.attempts())).unwrap_or_default();
    let evidence = format!(
        "{} of {} ({})",
        count(skipped),
        count(whole.attempts()),
        percent(part * 100.0)
    );
    if part > SKIPPED_WARN {
        let advice = "Steps found no item to work on: look at the captures, or at the data that \
                      the setup leaves.";
        warn("skipped steps", evidence, advice)
    } else {
        pass("skipped steps", evidence)
    }
}
