//! Did the users think as long as planned, and do counted users agree with counted completions?

use lab_plan::checks::{CLOSED_SYSTEM_BOUND, LITTLES_LAW, WAITS};
use lab_plan::{LoadKind, Prediction};
use lab_stats::little::{self, Curve, Station, users};

use super::facts::Facts;
use super::load::{requests_of_each, steps_under_way};
use super::outcome::{held, judged, not_judged, pass};
use crate::format::{count, ms, percent, rate, signed_percent};
use crate::model::{Check, CheckOutcome};
use crate::number::as_f64;
use crate::predicted::{Predicted, mean_wait_ms};

/// Fewer waits than this say nothing about their mean.
const LEAST_WAITS: u64 = 20;
/// The largest standard deviation of a uniform wait, relative to its mean: 1/√3.
const UNIFORM_DEVIATION: f64 = 0.577;
/// What overrun cycles make of the idle rest, at most.
const OVERRUNS: f64 = 0.2;

/// The mean wait before each step beside the plan's.
pub(super) fn waits(facts: &Facts<'_>) -> Check {
    let name = "waits";
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
        return not_judged(name, format!("no step has {LEAST_WAITS} waits"));
    };
    let evidence = format!("{steps} steps judged; {evidence}");
    let figure = held(100.0 * (allowed + excess).max(0.0), &WAITS, limit);
    let advice = "The users did not wait as planned: the load is another one.";
    judged(name, vec![figure], evidence, advice)
}

/// The same waits were drawn as were planned, unless a slow server left some of them out, or answers
/// decided which: then chance counts too.
fn tolerance(done: u64, planned: &Predicted, allowed: f64) -> f64 {
    let (planned, open) = (planned.waits, planned.open);
    let same = as_f64(done.abs_diff(planned)) <= 0.01 * as_f64(planned);
    if same && !open {
        allowed
    } else {
        allowed.max(3.0 * UNIFORM_DEVIATION / as_f64(done.min(planned)).sqrt())
    }
}

/// Little's law from independent estimates: users counted; completions counted × (response time +
/// **planned** wait). With a pace users also idle from the end of a cycle to the next: cycles counted
/// × (pace − planned waits − response times). Sessions that arrive on their own hold a connection
/// from their first send on, so service times count for them.
pub(super) fn little(facts: &Facts<'_>) -> Option<Check> {
    let name = "Little's law";
    if let Some(evidence) = outside_the_law(facts) {
        return Some(not_judged(name, evidence));
    }
    let counted = facts.sums.hold.users.mean()?;
    let idle = idle(facts);
    let computed = by_completions(facts, idle);
    let off = lab_stats::relative_difference(computed, counted)?;
    let chance = chance(facts, counted);
    if chance > MOST_CHANCE {
        return Some(not_judged(
            name,
            format!(
                "{} users counted, {} computed; by chance alone they may differ by {}",
                rate(counted),
                rate(computed),
                percent(chance * 100.0)
            ),
        ));
    }
    let cut = cut_off(facts, counted, chance);
    if cut > MOST_CUT {
        return Some(not_judged(name, too_short(counted, computed, cut)));
    }
    let piled = piled_up(facts, counted);
    let of_piled = piled.map_or(0.0, |piled| piled.part);
    let slack =
        idle.map_or(0.0, |idle| idle.slack) + stuck(facts, counted) + chance + cut + of_piled;
    let evidence = format!(
        "{} users counted, {} by completions × (response + planned wait){} ({}; {} allowed)",
        rate(counted),
        rate(computed),
        idle.map_or("", |_| " + cycles × idle rest"),
        signed_percent(off * 100.0),
        percent(facts.limit(&LITTLES_LAW).warn + slack * 100.0),
    );
    let figure = facts.held(100.0 * (off.abs() - slack).max(0.0), &LITTLES_LAW);
    if let Some(piled) = piled.filter(|one| one.part > MOST_CUT)
        && figure.outcome() == CheckOutcome::Pass
    {
        return Some(not_judged(name, format!("{evidence}; {}", piled.told())));
    }
    Some(judged(
        name,
        vec![figure],
        evidence,
        "Counted users and counted completions contradict each other: answers that never came, or \
         time that nobody accounts for. Response times and throughput can't both be right.",
    ))
}

/// Users computed from completions: thinking, waiting before a retry (in archives where that is no response time),
/// pausing after failures, waiting for responses, and idle.
fn by_completions(facts: &Facts<'_>, idle: Option<Idle>) -> f64 {
    let hold = &facts.sums.hold;
    let thinking = facts.predicted.iter().filter_map(|(step, predicted)| {
        let done = hold.steps.get(step)?.waits;
        Some(Station {
            per_s: hold.per_s(done)?,
            seconds: predicted.wait_ms? / 1000.0,
        })
    });
    let service = facts.sums.service.as_ref();
    let answered = [service.unwrap_or(&facts.sums.response), &facts.sums.failed]
        .into_iter()
        .filter_map(|times| {
            Some(Station {
                per_s: hold.per_s(times.len())?,
                seconds: lab_stats::histogram::mean(times)? / 1e6,
            })
        });
    let resting = hold.steps.values().filter_map(|step| {
        Some(Station {
            per_s: hold.per_s(step.retries)?,
            seconds: lab_stats::ratio(as_f64(step.retry_wait_us) / 1e6, as_f64(step.retries))?,
        })
    });
    let pausing = hold.steps.values().filter_map(|step| {
        Some(Station {
            per_s: hold.per_s(step.pauses)?,
            seconds: lab_stats::ratio(as_f64(step.pause_us) / 1e6, as_f64(step.pauses))?,
        })
    });
    let idling = idle.iter().map(|idle| idle.station);
    users(
        thinking
            .chain(resting)
            .chain(pausing)
            .chain(answered)
            .chain(idling),
    )
}

fn too_short(counted: f64, computed: f64, cut: f64) -> String {
    format!(
        "{} users counted, {} computed; their waits are too long for so short a trial: those that its end \
         cut off are {} of the users' time, and are in no count",
        rate(counted),
        rate(computed),
        percent(cut * 100.0)
    )
}

/// Sessions that arrive on their own and became more in the hold: what those have waited that are under way at its
/// end is in no count.
#[derive(Debug, Clone, Copy)]
struct Piled {
    first: u32,
    last: u32,
    /// The part of the sessions' time, at most.
    part: f64,
}

impl Piled {
    fn told(self) -> String {
        format!(
            "under way were {} sessions when the hold began and {} at its end, whose waits are in no count: a \
             longer ramp and a longer hold let about as many end as begin",
            count(self.first.into()),
            count(self.last.into())
        )
    }
}

fn piled_up(facts: &Facts<'_>, counted: f64) -> Option<Piled> {
    let LoadKind::Arrival { .. } = facts.planned.load.kind else {
        return None;
    };
    let span = facts.sums.hold_span;
    let windows = facts.data.windows.iter();
    let mut held = windows.filter(|one| span.contains(one.start_ms, one.end_ms));
    let (first, last) = (held.next()?.counts.users, held.next_back()?.counts.users);
    let session = facts.study.session(&facts.planned.parameters)?;
    let steps = session.steps.iter();
    let waits_s = steps.map(|step| step.wait_s * f64::from(step.repeat) * step.share);
    let session_ms = 1000.0 * waits_s.sum::<f64>() / facts.speed;
    let more = f64::from(last.saturating_sub(first));
    let part = more * session_ms / (span.length_ms() * counted.max(f64::MIN_POSITIVE));
    (more > 0.0).then_some(Piled { first, last, part })
}

/// Where so much of the users' time is in no count, the law shows nothing.
const MOST_CUT: f64 = 0.05;

/// The part of the users' time that is in waits which the trial's end cut off. These are in no count, and the
/// waits that are, in the plan as in the trial, are rather short ones: of exponential waits of 1 s in a trial
/// of 3 s they last 0.65 s on average. What chance makes of the mean is no cut.
fn cut_off(facts: &Facts<'_>, counted: f64, chance: f64) -> f64 {
    let Some(session) = facts.study.session(&facts.planned.parameters) else {
        return 0.0;
    };
    let of_step = |(step, predicted): (&String, &Predicted)| {
        let mut named = session.steps.iter().filter(|one| one.name == *step);
        // Steps of one name have their waits together, and no distribution of their own.
        let (Some(only), None) = (named.next(), named.next()) else {
            return None;
        };
        let short_s = only.wait_s / facts.speed - predicted.wait_ms? / 1000.0;
        let per_s = facts
            .sums
            .hold
            .per_s(facts.sums.hold.steps.get(step)?.waits)?;
        Some(per_s * short_s)
    };
    let cut: f64 = facts.predicted.iter().filter_map(of_step).sum();
    (cut / counted.max(f64::MIN_POSITIVE) - chance).max(0.0)
}

/// Why the law says nothing of a load, if it doesn't.
fn outside_the_law(facts: &Facts<'_>) -> Option<&'static str> {
    let load = &facts.planned.load;
    if load.timeline.is_some() {
        Some("sessions arrive as recorded, ever more or fewer of them at a time")
    } else if !load.stages.is_empty() {
        Some("users come and go by stages, and the time of what they leave undone is not counted")
    } else if !load.mix.is_empty() {
        Some("users of several populations have no cycle in common")
    } else {
        None
    }
}

/// Where chance alone makes this much, the law shows nothing.
const MOST_CHANCE: f64 = 0.25;

/// What chance may make of the difference (two standard errors): waits counted in the hold are some
/// of those that the plan's mean is over; sessions that arrive on their own are counted at the
/// windows' ends only.
fn chance(facts: &Facts<'_>, counted: f64) -> f64 {
    let hold = &facts.sums.hold;
    let waits: u64 = hold.steps.values().map(|step| step.waits).sum();
    let of_waits = match waits {
        0 => 0.0,
        waits => 2.0 * UNIFORM_DEVIATION / as_f64(waits).sqrt(),
    };
    let of_sessions = match facts.planned.load.kind {
        LoadKind::Arrival { .. } => {
            let squares = hold.users_squared.mean().unwrap_or_default();
            let deviation = (squares - counted * counted).max(0.0).sqrt();
            2.0 * deviation / counted.max(f64::MIN_POSITIVE) / as_f64(hold.windows.max(1)).sqrt()
        }
        LoadKind::Users | LoadKind::Sequence { .. } => 0.0,
    };
    of_waits + of_sessions
}

/// The part of the users' time that went into requests without an answer at the end of the hold;
/// these are in no histogram, so the law can't count them.
fn stuck(facts: &Facts<'_>, counted: f64) -> f64 {
    let Some(left) = &facts.data.record.unanswered else {
        return 0.0;
    };
    let hold_ms = facts.sums.hold_span.length_ms();
    let part = lab_stats::ratio(left.oldest_ms.min(hold_ms), hold_ms);
    as_f64(left.count) * part.unwrap_or_default() / counted.max(1.0)
}

/// Users who have done their cycle and rest until the next one is due.
#[derive(Debug, Clone, Copy)]
struct Idle {
    station: Station,
    /// What this estimate may be off by, relative to all users.
    slack: f64,
}

/// `None` without a pace.
fn idle(facts: &Facts<'_>) -> Option<Idle> {
    // Sessions that arrive don't come back.
    if facts.planned.load.kind != LoadKind::Users {
        return None;
    }
    // Its pace and its waits may be parameters of the cell.
    let session = facts.study.session(&facts.planned.parameters)?;
    let pace_s = session.pace_s? / facts.speed;
    let sums = facts.sums;
    let (mut waits_s, mut requests, mut counted) = (0.0, 0.0, 0.0);
    for step in &session.steps {
        let planned = facts
            .predicted
            .get(&step.name)
            .and_then(|plan| plan.wait_ms);
        // Steps that the plan never gets to are waited for, too.
        let wait_s = planned.map_or_else(|| step.wait_s / facts.speed, |ms| ms / 1000.0);
        // A part of the sessions does it, where it is one of several or has a share.
        // Where the answers decide how often, that was counted.
        let open = facts.predicted.get(&step.name).is_some_and(|p| p.open);
        let done = sums.hold.steps.get(&step.name).map_or(0, |sum| sum.waits);
        let times = match open {
            true => lab_stats::ratio(as_f64(done), as_f64(sums.hold.cycles))?,
            false => f64::from(step.repeat) * step.share,
        };
        waits_s += times * wait_s;
        requests += times * as_f64(step.requests);
        if requests_of_each(facts, &step.name).is_some() {
            counted += times;
        }
    }
    let answers = sums.response.len() + sums.failed.len();
    let answered_s =
        (lab_stats::histogram::sum(&sums.response) + lab_stats::histogram::sum(&sums.failed)) / 1e6;
    let response_s = lab_stats::ratio(answered_s, as_f64(answers)).unwrap_or_default();
    let busy_s = requests * response_s + counted * earlier_step_s(facts, pace_s);
    let rest_s = (pace_s - waits_s - busy_s).max(0.0);
    let station = Station {
        per_s: sums.hold.per_s(sums.hold.cycles)?,
        seconds: rest_s,
    };
    Some(Idle {
        station,
        slack: idle_slack(facts, pace_s, rest_s),
    })
}

/// How much longer a step took in the cycles whose rest lies in the hold than in the hold itself: they
/// began up to a cycle earlier, and a server that gets slower was faster then. By counts, since the
/// ramp's response times are in no figure.
fn earlier_step_s(facts: &Facts<'_>, pace_s: f64) -> f64 {
    let (mut under_way, mut ended_per_s) = (Curve::default(), Curve::default());
    for (window, flow) in steps_under_way(facts) {
        let seconds = (window.end_ms - window.start_ms) / 1000.0;
        let end_s = window.end_ms / 1000.0;
        under_way.0.push((end_s, flow.now));
        ended_per_s.0.push((end_s, flow.ended / seconds));
    }
    let hold = facts.sums.hold_span;
    let hold = (hold.start_ms / 1000.0, hold.end_ms / 1000.0);
    little::earlier_step_s(&under_way, &ended_per_s, hold, pace_s).unwrap_or_default()
}

/// A hold of whole cycles sees each user's rest as often as it has cycles; another one may see one
/// more or less. Where some cycles overrun, those that don't rest longer than the mean tells.
fn idle_slack(facts: &Facts<'_>, pace_s: f64, rest_s: f64) -> f64 {
    let hold_s = facts.sums.hold_span.length_ms() / 1000.0;
    let cycles = hold_s / pace_s;
    let whole = (cycles - cycles.round()).abs() < 0.01 && cycles > 0.5;
    let edge = if whole { 0.0 } else { rest_s / hold_s };
    let hold = &facts.sums.hold;
    let overran = lab_stats::ratio(as_f64(hold.overruns), as_f64(hold.cycles)).unwrap_or_default();
    edge + OVERRUNS * (overran * (1.0 - overran)).clamp(0.0, 0.25)
}

/// The bound of a closed system: with N users, demand D per request at the busiest resource, and Z of
/// thinking per request, R ≥ N·D − Z. Source: Denning & Buzen, "The Operational Analysis of Queueing
/// Network Models" (1978); Gunther. D is the system's CPU per request over its cores; Z is what the
/// plan leaves between requests of a server that answers in no time, idling for the pace included,
/// so the bound never asks too much; nor does it ask for the time of requests that had no answer at the
/// end, which are in no mean. `None` without CPU counters or answers.
pub(super) fn bound(facts: &Facts<'_>) -> Option<Check> {
    let hold = &facts.sums.hold;
    let users = hold.users.mean()?;
    let demand_s = facts.demand_s?;
    let answered = [&facts.sums.response, &facts.sums.failed];
    let total_s: f64 = answered
        .iter()
        .map(|times| lab_stats::histogram::sum(times) / 1e6)
        .sum();
    let n: u64 = answered.iter().map(|times| times.len()).sum();
    let response_s = lab_stats::ratio(total_s, as_f64(n))?;
    let prediction = facts.planned.prediction.as_ref();
    let hold_s = as_f64(facts.planned.load.hold_ms) / 1000.0;
    let fewest = |plan: &Prediction| match plan.range {
        Some(range) => range.hold.low / hold_s,
        None => plan.offered_per_s,
    };
    let think_s =
        prediction.map(|plan| lab_stats::ratio(users, fewest(plan)).unwrap_or(f64::INFINITY));
    let think_s = think_s.unwrap_or_default();
    let least_s = users * demand_s - think_s;
    let name = "closed-system bound";
    if least_s <= 0.0 {
        return Some(pass(
            name,
            format!(
                "not binding: {} users × {} ms of CPU take less than the {} ms that they think",
                rate(users),
                ms(demand_s * 1000.0),
                ms(think_s * 1000.0)
            ),
        ));
    }
    let short_s = (least_s - response_s).max(0.0);
    let stuck = stuck(facts, users);
    let unanswered = match short_s > 0.0 && stuck > 0.0 {
        true => format!(
            ", and up to {} less by what was unanswered at the end",
            percent(stuck * 100.0)
        ),
        false => String::new(),
    };
    let evidence = format!(
        "mean response {} ms; {} users × {} ms of CPU less {} ms of thinking leave at least {} ms{unanswered}",
        ms(response_s * 1000.0),
        rate(users),
        ms(demand_s * 1000.0),
        ms(think_s * 1000.0),
        ms(least_s * 1000.0)
    );
    let part = 100.0 * (short_s / (users * demand_s) - stuck).max(0.0);
    Some(judged(
        name,
        vec![facts.held(part, &CLOSED_SYSTEM_BOUND)],
        evidence,
        "No server can be as fast with so much work: users, CPU counters, or response times were \
         measured wrongly.",
    ))
}
