//! How a staged load's requests are spread over its windows, and the steps' parts of them.

use lab_study::plan::{LoadKind, Trial};

use super::Shape;

/// Returns the part of all planned requests in a window, which has its stage's level.
pub(super) fn share(trial: &Trial, shape: &Shape, (start, end): (u64, u64)) -> f64 {
    let prediction = trial.prediction.as_ref().unwrap();
    let mut begins = trial.load.ramp_ms;
    for (at, stage) in trial.load.stages.iter().enumerate() {
        let length = stage.length_ms as f64;
        if start < begins + stage.length_ms {
            let until = |at: u64| {
                let at = (at - begins) as f64 / length;
                stage.from * at + (stage.to - stage.from) * at * at / 2.0
            };
            let all = until(begins + stage.length_ms);
            let within = until(end.min(begins + stage.length_ms)) - until(start);
            let short = shape.short_stage.filter(|(stage, _)| *stage == at);
            let of_stage = prediction.stages[at].transactions / prediction.transactions;
            return short.map_or(1.0, |(_, part)| part) * of_stage * within / all;
        }
        begins += stage.length_ms;
    }
    0.0
}

/// Returns the part of its planned requests that the step at this index had.
pub(super) fn part_of_step(shape: &Shape, at: usize) -> f64 {
    let first = if at == 0 { shape.first_step } else { 1.0 };
    let short = shape.short_steps.as_ref();
    let short = short.filter(|(steps, _)| steps.contains(&at));
    first * short.map_or(1.0, |(_, part)| *part)
}

/// Returns the users, or for arrivals the concurrent sessions: the number that arrive during one think time.
pub(super) fn under_way(trial: &Trial) -> f64 {
    let LoadKind::Arrival { rate_per_s, .. } = trial.load.kind else {
        return f64::from(trial.load.users);
    };
    let steps = trial.prediction.iter().flat_map(|plan| &plan.steps);
    rate_per_s * steps.map(|step| step.mean_wait_ms).sum::<f64>() / 1e3
}

/// Returns the sessions that the plan begins in the ramp or in the hold.
pub(super) fn planned_sessions(trial: &Trial, in_ramp: bool) -> f64 {
    match (trial.load.kind, in_ramp) {
        (LoadKind::Sequence { .. }, true) | (LoadKind::Users, _) => 0.0,
        (LoadKind::Sequence { sessions, .. }, false) => f64::from(sessions),
        (LoadKind::Arrival { rate_per_s, .. }, true) => {
            rate_per_s / 2.0 * trial.load.ramp_ms as f64 / 1e3
        }
        (LoadKind::Arrival { rate_per_s, .. }, false) => {
            let drawn = trial.prediction.as_ref().and_then(|plan| plan.arrivals);
            let mean = rate_per_s * trial.load.hold_ms as f64 / 1e3;
            drawn.map_or(mean, |drawn| drawn.hold)
        }
    }
}
