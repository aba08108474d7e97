//! The capacity of the server, as far as the numbers support it: the resource that limits it (the utilisation law) and
//! how throughput scales with users (the universal scalability law).

use lab_plan::Question;
use lab_stats::usl::{self, Usl};
use lab_trial::format::{figure, times};

use crate::model::{CellSummary, Measure, Scaling, TrialAnalysis, UslPoint, Verdict};

/// A resource that is busy for less than this part of the time limits nothing yet.
const IDLE: f64 = 0.5;
/// The minimum part of a disk's traffic that is the system's, for its busy time to be attributed to the system.
const OWN: f64 = 0.8;

/// A busy resource, with the busy part of the time and the cause.
pub(crate) struct Bottleneck {
    pub(crate) is_cpu: bool,
    /// The clause on this resource.
    pub(crate) words: String,
}

/// Utilisation U = X·D: the resource with the largest demand D per transaction limits throughput to 1 ÷ D. Source:
/// Denning & Buzen, "The Operational Analysis of Queueing Network Models" (1978). `None` if all are idle, and for a
/// disk that other or unknown programs used as well.
pub(crate) fn bottleneck(cores: u64, cell: &CellSummary) -> Option<Bottleneck> {
    let throughput = cell.throughput_per_s?.mean;
    let cores = lab_trial::as_f64(cores);
    let cpu = counter(&cell.system, "cpu_percent").map(|busy| busy / cores);
    let resources = [
        (true, "the system's CPU", cpu),
        (false, "the disk", disk_busy(cell)),
    ];
    let (is_cpu, name, busy) = resources
        .into_iter()
        .filter_map(|(is_cpu, name, busy)| Some((is_cpu, name, busy? / 100.0)))
        .max_by(|a, b| a.2.total_cmp(&b.2))?;
    let demand_s = lab_stats::ratio(busy, throughput).filter(|_| busy >= IDLE)?;
    let words = format!(
        "the bottleneck is {name}, {} ms per transaction, which would be full at {} transactions per s",
        figure(demand_s * 1000.0),
        figure(1.0 / demand_s)
    );
    Some(Bottleneck { is_cpu, words })
}

/// How busy the system kept its disk, in per cent. `None` if the system's own traffic, as the kernel charges it to its
/// processes (`/proc/PID/io`), is less than nearly all of the disk's traffic.
pub(crate) fn disk_busy(cell: &CellSummary) -> Option<f64> {
    let system = |name: &str| counter(&cell.system, name);
    let own = system("read_kb_per_s")? + system("write_kb_per_s")?;
    let all = counter(&cell.host, "disk_kb_per_s")?;
    counter(&cell.host, "disk_busy_percent").filter(|_| own >= OWN * all)
}

fn counter(counters: &crate::model::Counters, name: &str) -> Option<f64> {
    counters.get(name).copied().flatten()
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

/// Points of the law across the measured range. The curve bends most near one user, so the points are evenly spaced on
/// a logarithmic scale.
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
