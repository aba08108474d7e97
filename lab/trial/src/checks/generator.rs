//! Was the generator healthy? Lateness of its sends, its wait for a CPU, its use of CPU.

use hdrhistogram::Histogram;
use lab_plan::LoadKind;
use lab_plan::checks::{
    CheckId, GENERATOR_CPU, LATENESS, LATENESS_OF_SERVICE, LATENESS_TAIL, LOOP_LAG, LOOP_LAG_TAIL,
    RUN_QUEUE_DELAY,
};
use lab_stats::delay::Undelayed;
use lab_stats::histogram::{max, mean};
use lab_stats::{little, quantile};

use super::facts::Facts;
use super::outcome::{check, invalid, judged, not_judged, warn};
use crate::format::{ms, percent};
use crate::model::{Check, CheckOutcome, Figure};

/// Reported for a figure that the kernel didn't provide.
const UNKNOWN: &str = "not judged: no scheduling times of the hold are known";
const UNKNOWN_ADVICE: &str = "Nothing shows whether the generator had the CPU it needed: a kernel \
                              with schedstat would tell, and a machine with CPU to spare.";

/// A delay that is normal on any machine: up to here it isn't compared with the service time.
const USUAL_DELAY_MS: f64 = 1.0;

/// The usual wake-up time of a sleeping loop, whatever else runs; this much of its lag is ignored.
const USUAL_LAG_US: u64 = 100;

/// A user's late send delays all of its later ones. If late sends took less of the users' time than this, they lost no
/// more of the load than may be missing anyway.
const LATE_LOAD: f64 = 0.01;

/// Returns true if missing load can be attributed to the server: sends were in time, apart from single late ones or
/// delays that lose hardly any load; the generator's threads did not starve (a CPU wait without late sends loses no
/// load); and it had CPU to spare.
pub(super) fn is_healthy(facts: &Facts<'_>) -> bool {
    let in_time = || late_load(facts).is_some_and(|part| part <= LATE_LOAD);
    (sends_outcome(facts) <= CheckOutcome::NotJudged || in_time())
        && run_queue(facts).outcome <= CheckOutcome::Warn
        && cpu(facts).outcome == CheckOutcome::Pass
}

/// Returns the outcome for the sends in the hold, without single late ones.
fn sends_outcome(facts: &Facts<'_>) -> CheckOutcome {
    let figures = lateness_figures(facts);
    let most = figures.iter().flatten().map(Figure::outcome).max();
    most.unwrap_or(CheckOutcome::NotJudged)
}

/// Figures of the lateness of sends; `None` without sends.
fn lateness_figures(facts: &Facts<'_>) -> Option<Vec<Figure>> {
    let histogram = &facts.sums.lateness;
    let latest = max(histogram).map(us_as_ms)?;
    let [p99, p999] = [0.99, 0.999].map(|p| quantile(histogram, p).map(us_as_ms));
    let mut figures = vec![
        facts.held(p99.unwrap_or(latest), &LATENESS),
        facts.held(p999.unwrap_or_default(), &LATENESS_TAIL),
    ];
    // Lateness is part of the times only if they count from the plan.
    if matches!(facts.planned.load.kind, LoadKind::Arrival { .. }) {
        let part = p99.zip(median_service_ms(facts));
        let part = part.map(|(late, service)| part_of_service(late, service));
        figures.extend(part.map(|part| facts.held(part, &LATENESS_OF_SERVICE)));
    }
    Some(figures)
}

/// Judges p99 if the sample supports it, else the maximum. A p99 hides a stall that affects less than every hundredth
/// send, so p99.9 and the maximum have limits, too.
pub(super) fn lateness(facts: &Facts<'_>) -> Check {
    let histogram = &facts.sums.lateness;
    let id = CheckId::LatenessOfSends;
    let figures = max(histogram).map(us_as_ms).zip(lateness_figures(facts));
    let Some((latest, figures)) = figures else {
        return not_judged(id, "no sends in the hold");
    };
    let p99 = quantile(histogram, 0.99).map(us_as_ms);
    let p999 = quantile(histogram, 0.999).map(us_as_ms);
    let evidence = match (p99, p999) {
        (Some(p99), Some(p999)) => format!(
            "p99 {} ms, p99.9 {} ms, latest {} ms",
            ms(p99),
            ms(p999),
            ms(latest)
        ),
        (Some(p99), None) => format!("p99 {} ms, latest {} ms", ms(p99), ms(latest)),
        (None, _) => format!("latest {} ms of {} sends", ms(latest), histogram.len()),
    };
    let single = match latest > facts.limit(&LATENESS_TAIL).warn {
        true => CheckOutcome::Warn,
        false => CheckOutcome::Pass,
    };
    check(id, sends_outcome(facts).max(single), evidence).by(figures)
}

/// Returns response times from the actual send.
fn service_times<'a>(facts: &'a Facts<'_>) -> &'a Histogram<u64> {
    facts.sums.service.as_ref().unwrap_or(&facts.sums.response)
}

fn median_service_ms(facts: &Facts<'_>) -> Option<f64> {
    quantile(service_times(facts), 0.5).map(us_as_ms)
}

/// Returns a delay of the generator relative to the service time, %.
fn part_of_service(delay_ms: f64, service_ms: f64) -> f64 {
    if delay_ms <= USUAL_DELAY_MS {
        return 0.0;
    }
    lab_stats::ratio(delay_ms * 100.0, service_ms).unwrap_or(f64::INFINITY)
}

/// Checks how long responses waited before they were read, and how much that added to their times; `None` if it wasn't
/// sampled.
pub(super) fn loop_lag(facts: &Facts<'_>) -> Option<Check> {
    let lag = &facts.sums.loop_lag;
    let latest = us_as_ms(max(lag)?);
    let id = CheckId::LoopLag;
    let times = service_times(facts);
    let p50 = quantile(lag, 0.5).map(us_as_ms);
    let Some((p50, undelayed)) = p50.zip(Undelayed::new(times, lag, USUAL_LAG_US, 0.99)) else {
        return Some(not_judged(id, "too few samples, or no answers"));
    };
    let of_mean = mean(times)
        .and_then(|mean| lab_stats::ratio(undelayed.added_to_mean().min(mean) * 100.0, mean));
    let of_quantile = |p| {
        let measured = quantile(times, p)? as f64;
        lab_stats::ratio(undelayed.added(p)? * 100.0, measured)
    };
    let [p50_part, p95_part, p99_part] = [0.5, 0.95, 0.99].map(of_quantile);
    let parts = [
        ("mean", of_mean),
        ("p50", p50_part),
        ("p95", p95_part),
        ("p99", p99_part),
    ];
    let told = parts
        .iter()
        .filter_map(|(of, part)| Some(format!("{} of the {of}", percent((*part)?))));
    let evidence = format!(
        "answers were read p50 {} ms, at the latest {} ms after they were there, which made up {}",
        ms(p50),
        ms(latest),
        told.collect::<Vec<_>>().join(", "),
    );
    let most = [of_mean, p50_part, p95_part]
        .into_iter()
        .flatten()
        .fold(0.0, f64::max);
    let mut figures = vec![facts.held(most, &LOOP_LAG)];
    figures.extend(p99_part.map(|part| facts.held(part, &LOOP_LAG_TAIL)));
    Some(judged(id, figures, evidence))
}

/// Returns the part of the users' time that late sends took; `None` if sends don't wait for each other.
fn late_load(facts: &Facts<'_>) -> Option<f64> {
    if facts.planned.load.kind != LoadKind::Users {
        return None;
    }
    let hold = &facts.sums.hold;
    let late_s = lab_stats::histogram::sum(&facts.sums.lateness) / 1e6;
    little::busy_fraction(late_s, hold.users.mean()?, hold.span_ms / 1000.0)
}

pub(super) fn run_queue(facts: &Facts<'_>) -> Check {
    let id = CheckId::RunQueueDelay;
    let Some(waited) = facts.data.record.generator.run_queue_delay_fraction else {
        return unknown(facts, id);
    };
    let priority = match facts.data.record.generator.nice {
        Some(nice) if nice < 0 => format!(" (nice −{})", nice.unsigned_abs()),
        _ => String::new(),
    };
    let evidence = format!(
        "its threads{priority} waited for a CPU {} of the hold",
        percent(waited * 100.0)
    );
    let figure = facts.held(waited * 100.0, &RUN_QUEUE_DELAY);
    judged(id, vec![figure], evidence)
}

/// Returns a check without scheduling times. Sends and reads in time show that the generator had enough CPU; otherwise
/// nothing does.
fn unknown(facts: &Facts<'_>, id: CheckId) -> Check {
    let read_in_time = loop_lag(facts).is_none_or(|lag| lag.outcome <= CheckOutcome::NotJudged);
    let sent_in_time = sends_outcome(facts) == CheckOutcome::Pass;
    match sent_in_time && read_in_time {
        true => warn(id, format!("{UNKNOWN}; its sends and reads were in time")),
        false => invalid(
            id,
            "no scheduling times of the hold are known, and sends or reads were late".to_owned(),
        ),
    }
    .advise(UNKNOWN_ADVICE)
}

pub(super) fn cpu(facts: &Facts<'_>) -> Check {
    let id = CheckId::GeneratorCpu;
    let health = &facts.data.record.generator;
    let (Some(most), Some(mean)) = (health.cpu_fraction_max, health.cpu_fraction) else {
        return warn(id, UNKNOWN.to_owned()).advise(UNKNOWN_ADVICE);
    };
    let evidence = format!(
        "busiest core {} busy over five seconds, {} on average",
        percent(most * 100.0),
        percent(mean * 100.0),
    );
    let figure = facts.held(most * 100.0, &GENERATOR_CPU);
    judged(id, vec![figure], evidence)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "microseconds of a trial stay far below 2^52"
)]
fn us_as_ms(us: u64) -> f64 {
    us as f64 / 1000.0
}
