//! Was the generator healthy? Lateness of its sends, its wait for a CPU, its use of CPU.

use lab_stats::histogram::max;
use lab_stats::quantile;

use super::{Facts, graded, pass};
use crate::format::{ms, percent};
use crate::model::{Check, CheckOutcome};

/// Lateness of sends at p99, ms. The upper limit is Hyperfoil's (over 100 ms late is an error).
const LATE_WARN_MS: f64 = 10.0;
const LATE_INVALID_MS: f64 = 100.0;
/// Part of the time that worker threads waited for a CPU (`/proc/PID/task/TID/schedstat`).
const QUEUE_WARN: f64 = 0.05;
const QUEUE_INVALID: f64 = 0.20;
/// A worker core busier than this over five seconds is under 20 % idle (Hyperfoil's limit).
const BUSY_WARN: f64 = 0.80;

/// The generator's checks, and whether all of them pass.
pub(super) struct Health {
    pub(super) checks: [Check; 3],
    pub(super) healthy: bool,
}

pub(super) fn health(facts: &Facts<'_>) -> Health {
    let checks = [lateness(facts), run_queue(facts), cpu(facts)];
    let healthy = checks
        .iter()
        .all(|check| check.outcome == CheckOutcome::Pass);
    Health { checks, healthy }
}

/// p99 where the sample supports it, else the latest of all.
fn lateness(facts: &Facts<'_>) -> Check {
    let histogram = &facts.sums.lateness;
    let name = "lateness of sends";
    let Some(latest) = max(histogram).map(us_as_ms) else {
        return pass(name, "no sends in the hold".to_owned());
    };
    let p99 = quantile(histogram, 0.99).map(us_as_ms);
    let judged = p99.unwrap_or(latest);
    let evidence = match p99 {
        Some(p99) => format!("p99 {} ms, latest {} ms", ms(p99), ms(latest)),
        None => format!("latest {} ms of {} sends", ms(latest), histogram.len()),
    };
    let advice = "The generator sent later than it meant to: give it more cores or a quieter \
                  machine, or fewer users.";
    check(
        name,
        graded(judged, LATE_WARN_MS, LATE_INVALID_MS),
        evidence,
        advice,
    )
}

fn run_queue(facts: &Facts<'_>) -> Check {
    let waited = facts.data.record.generator.run_queue_delay_fraction;
    let evidence = format!(
        "its threads waited for a CPU {} of the hold",
        percent(waited * 100.0)
    );
    let advice = "Something else ran on the generator's cores: pin it and the system to different \
                  cores, or stop the other work.";
    check(
        "run-queue delay",
        graded(waited, QUEUE_WARN, QUEUE_INVALID),
        evidence,
        advice,
    )
}

fn cpu(facts: &Facts<'_>) -> Check {
    let health = &facts.data.record.generator;
    let evidence = format!(
        "busiest worker {} busy over five seconds, {} on average",
        percent(health.cpu_fraction_max * 100.0),
        percent(health.cpu_fraction * 100.0),
    );
    let advice = "The generator is near the end of its CPU: give it more cores.";
    check(
        "generator CPU",
        graded(health.cpu_fraction_max, BUSY_WARN, f64::INFINITY),
        evidence,
        advice,
    )
}

fn check(name: &'static str, outcome: CheckOutcome, evidence: String, advice: &str) -> Check {
    let advice = (outcome != CheckOutcome::Pass).then(|| advice.to_owned());
    Check {
        name,
        outcome,
        evidence,
        advice,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of a trial stay far below 2^52"
)]
fn us_as_ms(us: u64) -> f64 {
    us as f64 / 1000.0
}
