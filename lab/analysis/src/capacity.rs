//! What the server could carry, as far as the numbers bear it: the resource that limits it (the
//! utilisation law) and how throughput scales with users (the universal scalability law).

use lab_plan::Question;
use lab_stats::usl::{self, Usl};
use lab_trial::format::{figure, times};

use crate::model::{CellSummary, Measure, Scaling, TrialAnalysis, UslPoint, Verdict};

/// A resource that is busy for less than this part of the time limits nothing yet.
const IDLE: f64 = 0.5;

/// The part of a sentence on the busiest resource. Utilisation U = X·D: the resource with the largest demand D per transaction limits throughput to
/// 1 ÷ D. Source: Denning & Buzen, "The Operational Analysis of Queueing Network Models" (1978).
pub(crate) fn bottleneck(cores: u64, cell: &CellSummary) -> Option<String> {
    let throughput = cell.throughput_per_s?.mean;
    let cores = lab_trial::as_f64(cores);
    let counter = |counters: &crate::model::Counters, name: &str| {
        counters
            .get(name)
            .copied()
            .flatten()
            .map(|value| value / 100.0)
    };
    let resources = [
        (
            "the system's CPU",
            counter(&cell.system, "cpu_percent").map(|busy| busy / cores),
        ),
        ("the disk", counter(&cell.host, "disk_busy_percent")),
    ];
    let (name, busy) = resources
        .into_iter()
        .filter_map(|(name, busy)| Some((name, busy?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let demand_s = lab_stats::ratio(busy, throughput).filter(|demand| *demand > 0.0)?;
    let what = if busy < IDLE {
        "busiest resource"
    } else {
        "bottleneck"
    };
    Some(format!(
        "the {what} is {name}, {} ms per transaction, which would be full at {} transactions per s",
        figure(demand_s * 1000.0),
        figure(1.0 / demand_s)
    ))
}

/// The law over the valid trials of a study that varies users alone; `None` with fewer than six
/// levels, or without a single user, or of users whose number changes within a trial.
pub(crate) fn scaling(study: &Question, trials: &[TrialAnalysis]) -> Option<Scaling> {
    let factors: Vec<&str> = study.matrix.iter().map(|f| f.name.as_str()).collect();
    let changes = |trial: &TrialAnalysis| !trial.stages.is_empty();
    if factors != ["users"] || trials.iter().any(changes) {
        return None;
    }
    let points: Option<Vec<(f64, f64)>> = trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Valid && !trial.control)
        .map(|trial| Some((f64::from(trial.users), Measure::Throughput.of(trial)?)))
        .collect();
    let points = points?;
    let fitted: Usl = usl::fit(&points)?;
    Some(Scaling {
        gamma_per_s: interval(fitted.gamma),
        alpha: interval(fitted.alpha),
        beta: interval(fitted.beta),
        peak_users: fitted.peak.map(interval),
        peak_per_s: fitted.peak.map(|peak| fitted.throughput(peak.value)),
        scatter: fitted.scatter,
        points: curve(&fitted, &points),
    })
}

fn interval(one: usl::Fitted) -> crate::model::Estimate {
    crate::model::Estimate {
        mean: one.value,
        low: Some(one.low),
        high: one.high.is_finite().then_some(one.high),
    }
}

/// Points of the law through the range that was measured: its curve bends most near one user, so
/// they stand evenly on the scale of logs.
const CURVE_POINTS: u32 = 48;

fn curve(fitted: &Usl, measured: &[(f64, f64)]) -> Vec<UslPoint> {
    let most = measured.iter().map(|(users, _)| *users).fold(1.0, f64::max);
    let at = |users: f64, measured_per_s: Option<f64>| UslPoint {
        users,
        measured_per_s,
        law_per_s: interval(fitted.band(users)),
    };
    let even = |n: u32| most.powf(f64::from(n) / f64::from(CURVE_POINTS));
    let mut points: Vec<UslPoint> = (0..=CURVE_POINTS).map(|n| at(even(n), None)).collect();
    points.extend(
        measured
            .iter()
            .map(|(users, per_s)| at(*users, Some(*per_s))),
    );
    points.sort_by(|a, b| a.users.total_cmp(&b.users));
    points
}

/// The law in words.
pub(crate) fn sentence(scaling: &Scaling) -> String {
    let part = |one: crate::model::Estimate, unit: f64| {
        let (low, high) = (one.low.unwrap_or(one.mean), one.high.unwrap_or(one.mean));
        format!(
            "{} ({} to {})",
            times(one.mean * unit),
            times(low * unit),
            times(high * unit)
        )
    };
    let peak = match (scaling.peak_users, scaling.peak_per_s) {
        (Some(users), Some(per_s)) => format!(
            "throughput peaks at {} users, {} per s",
            part(users, 1.0),
            figure(per_s)
        ),
        _ => "no peak is shown, the interval of the coherence holds 0".to_owned(),
    };
    format!(
        "Scaling (USL): one user gets {} per s, contention is {} %; {peak}.",
        part(scaling.gamma_per_s, 1.0),
        part(scaling.alpha, 100.0)
    )
}
