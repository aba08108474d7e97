//! Thresholds: judgements on the server, per trial. An empty metric fails (k6#4283).

use lab_counts::{Aggregate, Attempts, Metric, NoFigure, Scope, Value};
use lab_plan::Threshold;

use crate::format::{count, duration, plural_count};
use crate::model::{BEYOND, Measured, ThresholdResult};

/// Compares a figure, of this unit, with a threshold.
pub(crate) fn judge(threshold: &Threshold, of: Measured, unit: &str) -> ThresholdResult {
    let Measured {
        value,
        beyond,
        reason,
    } = of;
    let held = if beyond { Some(f64::INFINITY) } else { value };
    ThresholdResult {
        text: threshold.text.clone(),
        metric: threshold.metric,
        scope: threshold.scope.clone(),
        aggregate: threshold.aggregate,
        unit: unit.to_owned(),
        value,
        limit: threshold.limit,
        holds: held.is_some_and(|value| threshold.holds(value)),
        beyond,
        implied: threshold.implied,
        reason,
    }
}

/// The verdict of a script that failed the test by itself, as a threshold that doesn't hold.
pub(crate) fn of_script(reason: String) -> ThresholdResult {
    ThresholdResult {
        text: "no `test.fail` of the script".to_owned(),
        metric: Metric::Measure,
        scope: Scope::Measure("test".to_owned()),
        aggregate: Aggregate::Sum,
        unit: String::new(),
        value: None,
        limit: 0.0,
        holds: false,
        beyond: false,
        implied: true,
        reason: Some(format!("the script failed the test: {reason}")),
    }
}

/// Returns a figure of the attempts within a scope.
pub(crate) fn measured(metric: Metric, aggregate: Aggregate, of: &Attempts) -> Measured {
    let (value, beyond, reason) = match of.figure(metric, aggregate) {
        Ok(Value::Known(value)) => (Some(value), false, None),
        // The times of requests without a response are unknown: no limit on them is known to pass.
        Ok(Value::Beyond | Value::AtLeast(_)) => (None, true, Some(beyond_words(metric, of))),
        Err(why) => (None, false, Some(no_figure_words(why))),
    };
    Measured {
        value,
        beyond,
        reason,
    }
}

/// Describes the attempts slower than any limit: `beyond any limit: 10 of 100 attempts failed, 3 have no response`.
fn beyond_words(metric: Metric, of: &Attempts) -> String {
    let all = plural_count(of.count(metric) + of.unanswered.len(), "attempt");
    let failed = of.failed(metric) - of.hold.turned_away;
    let mut parts = Vec::new();
    if failed > 0 {
        parts.push(format!("{} failed", count(failed)));
    }
    match of.hold.turned_away {
        0 => {}
        1 => parts.push("1 session was turned away".to_owned()),
        away => parts.push(format!("{} sessions were turned away", count(away))),
    }
    match of.unanswered.len() {
        0 => {}
        1 => parts.push("1 has no response".to_owned()),
        left => parts.push(format!("{} have no response", count(left))),
    }
    format!("{BEYOND}: of {all} {}", parts.join(", "))
}

fn no_figure_words(why: NoFigure) -> String {
    match why {
        NoFigure::OverLimit { over, of, limit_ms } => format!(
            "{} of {} took over {}",
            count(over),
            plural_count(of, "operation"),
            duration(limit_ms)
        ),
        other => other.to_string(),
    }
}
