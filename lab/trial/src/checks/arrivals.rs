//! Did sessions begin as planned, for arriving sessions and for sequences?

use lab_plan::checks::{ARRIVALS, Cause, CheckId};
use lab_plan::{LoadKind, Spacing};

use super::facts::Facts;
use super::outcome::{check, invalid, pass};
use crate::format::{count, plural_count, rate, signed_percent};
use crate::model::{Check, CheckOutcome};
use crate::number::as_f64;

/// Arrivals at either end of the hold.
const EDGE: f64 = 2.0;

/// Compares the sessions that arrived in the hold with the plan's rate, and reports those without a connection. `None`
/// for other loads.
pub(super) fn arrivals(facts: &Facts<'_>) -> Option<Check> {
    let id = CheckId::Arrivals;
    let LoadKind::Arrival { spacing, .. } = facts.planned.load.kind else {
        return None;
    };
    let rate_per_s = facts.planned.load.arrivals_per_s()?;
    let hold = &facts.sums.hold;
    let prediction = facts.planned.prediction.as_ref();
    let drawn = prediction.and_then(|plan| plan.arrivals);
    // The plan draws exactly the driver's arrivals; the rate is their mean.
    let planned = drawn.map_or(rate_per_s * hold.span_ms / 1000.0, |drawn| drawn.hold);
    let arrived = as_f64(hold.arrived);
    let off = lab_stats::relative_difference(arrived, planned)?;
    let mut evidence = format!(
        "{} sessions arrived of {} planned ({})",
        count(hold.arrived),
        rate(planned),
        signed_percent(off * 100.0)
    );
    if hold.waiting_max > 0 {
        evidence.push_str(&format!(
            "; up to {} waited for one of {} connections",
            count(hold.waiting_max),
            count(u64::from(facts.planned.load.users))
        ));
    }
    let chance = match (drawn, spacing) {
        (Some(_), _) | (None, Spacing::Constant | Spacing::Recorded) => EDGE / planned,
        // Four standard errors of the count.
        (None, Spacing::Poisson) => 4.0 / planned.sqrt() + EDGE / planned,
    };
    let figure = facts.held(100.0 * (off.abs() - chance).max(0.0), &ARRIVALS);
    if figure.outcome() == CheckOutcome::Invalid {
        return Some(invalid(id, evidence).by(vec![figure]));
    }
    let dropped = facts.sums.whole.dropped;
    if dropped > 0 {
        evidence.push_str(&format!("; {} turned away", count(dropped)));
    }
    let outcome = match dropped {
        0 => CheckOutcome::Pass,
        _ => CheckOutcome::Warn,
    };
    let judged = check(id, outcome, evidence).advise(
        "So many sessions waited that others were turned away; they are in no response time. The \
         server can't take this rate, or needs more `connections`.",
    );
    Some(judged.caused_by(Cause::System).by(vec![figure]))
}

/// Checks whether a sequence was completed. `None` for other loads.
pub(super) fn sequence(facts: &Facts<'_>) -> Option<Check> {
    let load = &facts.planned.load;
    let sessions = load.kind.sessions(load.users)?;
    let (id, begun) = (CheckId::Sequence, facts.sums.whole.cycles);
    let left = facts.data.record.unanswered.as_ref();
    let left = left.map_or(0, |left| left.count);
    let evidence = format!(
        "{} of {} begun",
        count(begun),
        plural_count(sessions, "session")
    );
    Some(if begun < sessions || left > 0 {
        invalid(id, evidence)
    } else {
        pass(id, evidence)
    })
}
