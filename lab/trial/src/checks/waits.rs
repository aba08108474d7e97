//! Did the users wait as long as planned?

use lab_plan::checks::{CheckId, WAITS};

use super::facts::Facts;
use super::outcome::{held, judged, not_judged};
use crate::format::{ms, signed_percent};
use crate::model::Check;
use crate::number::as_f64;
use crate::predicted::{Predicted, mean_wait_ms};

/// Fewer waits don't determine their mean.
const LEAST_WAITS: u64 = 20;
/// The largest standard deviation of a uniform wait, relative to its mean: 1/√3.
const UNIFORM_DEVIATION: f64 = 0.577;

/// Compares the mean wait before each step with the plan's.
pub(super) fn waits(facts: &Facts<'_>) -> Check {
    let id = CheckId::Waits;
    let limit = facts.limit(&WAITS);
    let allowed = limit.invalid / 100.0;
    let mut steps = 0;
    let mut worst: Option<(f64, f64, String)> = None;
    for (step, predicted) in facts.predicted {
        let Some(sum) = facts.sums.whole.steps.get(step) else {
            continue;
        };
        let (Some(real), Some(planned)) = (mean_wait_ms(sum), predicted.wait_ms) else {
            continue;
        };
        let Some(off) = lab_stats::relative_difference(real, planned) else {
            continue;
        };
        if sum.waits.min(predicted.waits) < LEAST_WAITS {
            continue;
        }
        steps += 1;
        let excess = off.abs() - tolerance(sum.waits, predicted, allowed);
        if worst.as_ref().is_none_or(|(most, _, _)| excess > *most) {
            let evidence = format!(
                "furthest off: {step}, {} ms for {} ms planned ({})",
                ms(real),
                ms(planned),
                signed_percent(off * 100.0)
            );
            worst = Some((excess, off, evidence));
        }
    }
    let Some((excess, _, evidence)) = worst else {
        return not_judged(id, format!("no step has {LEAST_WAITS} waits"));
    };
    let evidence = format!("{steps} steps judged; {evidence}");
    let figure = held(100.0 * (allowed + excess).max(0.0), &WAITS, limit);
    judged(id, vec![figure], evidence)
}

/// The drawn waits equal the planned ones, unless a slow server dropped some of them, or responses decided which: then
/// random variation counts too.
fn tolerance(done: u64, planned: &Predicted, allowed: f64) -> f64 {
    let (planned, open) = (planned.waits, planned.open);
    let same = as_f64(done.abs_diff(planned)) <= 0.01 * as_f64(planned);
    if same && !open {
        allowed
    } else {
        allowed.max(3.0 * UNIFORM_DEVIATION / as_f64(done.min(planned)).sqrt())
    }
}
