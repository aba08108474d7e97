//! Was the planned load offered? Rate in the hold, requests of the trial, mix of the steps.
//!
//! The plan predicts the requests of the same users with the same waits against a server that responds in no time. If
//! less was delivered, the server or the generator was slow. Users who wait for a response offer no load, so at most
//! that part of the load can be missing because of the server (Little's law); the generator lost any further missing
//! load. If users without a pace wait a little for each response, the server is not slow: that is their normal
//! behaviour. A skipped step sends nothing: it is missing load, and no slow server makes a step skip, unless it delays
//! much more: users who take items that others send find nothing while those wait.

use lab_archive::WindowLine;
use lab_plan::checks::{Cause, CheckId, DELIVERED_LOAD, Limit, MIX_OF_STEPS, REQUESTS};
use lab_plan::{LoadKind, Span, StepOutline};
use lab_stats::{WeightedMean, histogram, little};

use super::facts::Facts;
use super::generator;
use super::outcome::{check, invalid, not_judged, pass, warn};
use super::skips;
use crate::format::{count, percent, plural_count, rate, signed_percent};
use crate::model::{Check, CheckOutcome, Figure};
use crate::number::as_f64;
use crate::predicted::part;
use crate::sums::Counts;

/// Requests in flight at either end of a count.
pub(super) const EDGE_REQUESTS: f64 = 3.0;
/// The part of their time that users without a pace may wait for responses before the server counts as too slow for
/// them.
const WAITING: f64 = 0.1;
/// Counts of steps in flight may be off by this part of the users.
const LOST_USERS: f64 = 0.05;
/// The minimum ratio of missing to skipped load for attributing skips to slow responses.
const SKIPPED_BESIDE: f64 = 4.0;

/// Compares the load delivered in the hold with the planned load. `None` for a sequence, whose responses set its rate.
pub(super) fn delivered(facts: &Facts<'_>) -> Option<Check> {
    if matches!(facts.planned.load.kind, LoadKind::Sequence { .. }) {
        return None;
    }
    let id = CheckId::DeliveredLoad;
    Some(cut_by_limit(facts, id).unwrap_or_else(|| in_hold(facts, id)))
}

fn in_hold(facts: &Facts<'_>, id: CheckId) -> Check {
    let hold = &facts.sums.hold;
    let prediction = facts.planned.prediction.as_ref();
    let offered = prediction.map_or(0.0, |plan| plan.offered_per_s);
    let Some(delivered) = hold.per_s(hold.sent()) else {
        let evidence = "no window of the hold was recorded".to_owned();
        let advice =
            "The hold is shorter than two windows, or the trial was cut: make the hold longer.";
        return invalid(id, evidence).advise(advice).caused_by(Cause::Study);
    };
    let Some(load) = load_of_hold(facts) else {
        let evidence = format!(
            "{} per s; the server sets the pace, not the plan",
            rate(delivered)
        );
        return not_judged(id, evidence);
    };
    let range = range_of_hold(facts);
    let of = match is_unpaced(facts) {
        true => "requests per s that users would send if answers took no time",
        false => "requests per s offered",
    };
    let evidence = format!(
        "{} of {} {of} ({})",
        rate(delivered),
        planned(offered, range),
        off(load.part, range)
    );
    if load.part - 1.0 > load.tolerance.usual && whole_is_within_plan(facts) {
        let advice = "The whole trial had no more than its plan: the hold took over what slow \
                      answers had delayed in the ramp. A longer ramp would keep it out.";
        return warn(id, evidence).advise(advice).caused_by(Cause::System);
    }
    judge(id, evidence, &load)
}

fn range_of_hold(facts: &Facts<'_>) -> Option<Span> {
    let hold_s = as_f64(facts.planned.load.hold_ms) / 1000.0;
    let range = facts.planned.prediction.as_ref()?.range?;
    Some(per_second(range.hold, hold_s))
}

/// Returns the load of the hold; `None` if the plan offers none, or nothing was recorded.
fn load_of_hold<'a>(facts: &'a Facts<'_>) -> Option<Load<'a>> {
    let hold = &facts.sums.hold;
    let prediction = facts.planned.prediction.as_ref();
    let offered = prediction.map_or(0.0, |plan| plan.offered_per_s);
    let delivered = hold.per_s(hold.sent())?;
    if !is_offer(offered) {
        return None;
    }
    let in_all = offered * hold.span_ms / 1000.0;
    let by_chance = (EDGE_REQUESTS / in_all).max(chance(facts, hold));
    let kind = facts.planned.load.kind;
    Some(Load {
        facts,
        part: part(delivered, offered, range_of_hold(facts)),
        not_reached: as_f64(hold.not_reached()) / in_all,
        skipped: as_f64(hold.skipped()) / in_all,
        tolerance: Tolerance::of(facts, &DELIVERED_LOAD, by_chance),
        under_way: as_f64(under_way_at_the_end(facts)) / in_all,
        busy: busy_or_waiting(kind, busy_in_hold(facts), hold),
        closed: kind == LoadKind::Users,
        counts: hold,
    })
}

/// Returns true for users who begin the next cycle when the last is over: responses set their rate, so that the plan's
/// rate assumes a server that responds in no time. Several populations have no session in common.
fn is_unpaced(facts: &Facts<'_>) -> bool {
    let session = facts.study.session(&facts.planned.parameters);
    facts.planned.load.kind == LoadKind::Users
        && facts.planned.load.mix.is_empty()
        && session.is_some_and(|session| session.pace_s.is_none())
}

/// Returns true if the whole trial sent no more than planned.
fn whole_is_within_plan(facts: &Facts<'_>) -> bool {
    let predicted = facts.planned.prediction.as_ref();
    predicted.is_some_and(|plan| {
        let tolerated = 1.0 + facts.limit(&REQUESTS).warn / 100.0;
        let planned = plan
            .range
            .map_or(plan.transactions, |range| range.trial.high);
        let most = planned * tolerated + EDGE_REQUESTS;
        as_f64(facts.sums.whole.sent()) <= most
    })
}

/// Compares the requests of the whole trial with the plan's prediction.
pub(super) fn transactions(facts: &Facts<'_>) -> Check {
    let id = CheckId::Requests;
    if let Some(cut) = cut_by_limit(facts, id) {
        return cut;
    }
    let whole = &facts.sums.whole;
    let Some(load) = load_of_trial(facts) else {
        let evidence = format!("{}; the plan predicts none", count(whole.sent()));
        return not_judged(id, evidence);
    };
    if is_unpaced(facts) {
        let evidence = format!(
            "{}; users without a pace send as many as the answers allow",
            count(whole.sent())
        );
        return not_judged(id, evidence);
    }
    let prediction = facts.planned.prediction.as_ref();
    let predicted = prediction.map_or(0.0, |plan| plan.transactions);
    let range = prediction.and_then(|plan| Some(plan.range?.trial));
    let cut = match under_way_at_the_end(facts) {
        0 => String::new(),
        n => format!(", {} under way at the end,", count(n)),
    };
    let evidence = format!(
        "{} transactions and errors{cut} of {} predicted ({})",
        count(whole.sent()),
        planned(predicted, range),
        off(load.part, range)
    );
    judge(id, evidence, &load)
}

/// Returns the load of the whole trial; `None` if the plan predicts none.
fn load_of_trial<'a>(facts: &'a Facts<'_>) -> Option<Load<'a>> {
    let prediction = facts.planned.prediction.as_ref();
    let predicted = prediction.map_or(0.0, |plan| plan.transactions);
    let range = prediction.and_then(|plan| Some(plan.range?.trial));
    let whole = &facts.sums.whole;
    let sent = as_f64(whole.sent() + under_way_at_the_end(facts));
    if !is_offer(predicted) {
        return None;
    }
    let by_chance = (EDGE_REQUESTS / predicted).max(chance(facts, whole));
    let kind = facts.planned.load.kind;
    Some(Load {
        facts,
        part: part(sent, predicted, range),
        not_reached: as_f64(whole.not_reached()) / predicted,
        skipped: as_f64(whole.skipped()) / predicted,
        tolerance: Tolerance::of(facts, &REQUESTS, by_chance),
        under_way: 0.0,
        busy: busy_or_waiting(kind, busy_in_trial(facts), whole),
        closed: kind == LoadKind::Users,
        counts: whole,
    })
}

/// Returns true if the server explains all missing load, in the hold and in the whole trial alike, with one tolerance
/// for both: checks with the same inputs then agree.
fn server_was_slow(facts: &Facts<'_>) -> bool {
    let loads = [load_of_hold(facts), load_of_trial(facts)];
    let loads = || loads.iter().flatten();
    let slack = loads().map(|load| load.tolerance.usual).fold(0.0, f64::max);
    let short = |load: &&Load<'_>| load.missing() > load.tolerance.usual;
    let explained = |load: &Load<'_>| load.missing() <= load.busy + load.under_way + slack;
    generator::is_healthy(facts)
        && loads().any(|load| short(&load))
        && loads().filter(short).all(explained)
}

/// Returns a skipped check if steps were not repeated further because they exceeded the load's time limit: the plan's
/// numbers of requests don't apply then. Not if fewer requests than tolerated can be missing for that reason.
pub(super) fn cut_by_limit(facts: &Facts<'_>, id: CheckId) -> Option<Check> {
    let over = facts.sums.whole.over_limit();
    let planned = facts.planned.prediction.as_ref();
    let part = facts.limit(&REQUESTS).warn / 100.0;
    let tolerated = planned.map_or(0.0, |plan| plan.transactions * part);
    (over > 0 && most_left_out(facts) > tolerated).then(|| {
        let what = plural_count(over, "operation");
        let evidence = format!("{what} over the time limit, after which a step is not repeated");
        not_judged(id, evidence)
    })
}

/// Returns the maximum number of requests that steps can have dropped after one exceeded the time limit.
fn most_left_out(facts: &Facts<'_>) -> f64 {
    let Some(session) = facts.study.session(&facts.planned.parameters) else {
        return f64::INFINITY;
    };
    let of_step = |step: &StepOutline| {
        let counted = facts.sums.whole.steps.get(&step.name);
        let over = counted.map_or(0, |sum| sum.over_limit);
        let rest = f64::from(step.repeat) * as_f64(step.requests) - 1.0;
        as_f64(over) * rest.max(0.0)
    };
    session.steps.iter().map(of_step).sum()
}

/// Returns requests that were sent as planned, but truncated before their responses. For arrivals 0: sessions without a
/// connection, which sent nothing, are among them.
fn under_way_at_the_end(facts: &Facts<'_>) -> u64 {
    let left = facts.data.record.unanswered.as_ref();
    match facts.planned.load.kind {
        LoadKind::Arrival { .. } => 0,
        LoadKind::Users | LoadKind::Sequence { .. } => left.map_or(0, |left| left.count),
    }
}

/// Returns the random variation of a count: three standard errors of a Poisson process; zero for users with a pace,
/// whose draws are planned. Users without one run fewer cycles than planned, with only some of the planned waits: two
/// standard errors of the mean of waits whose deviation equals their mean.
fn chance(facts: &Facts<'_>, counts: &Counts) -> f64 {
    match facts.planned.load.kind {
        LoadKind::Arrival { .. } => 3.0 / as_f64(counts.arrived.max(1)).sqrt(),
        LoadKind::Users if is_unpaced(facts) => {
            let waits: u64 = counts.steps.values().map(|step| step.waits).sum();
            2.0 / as_f64(waits.max(1)).sqrt()
        }
        LoadKind::Users | LoadKind::Sequence { .. } => 0.0,
    }
}

/// Arriving sessions don't wait for each other: sessions that wait for a connection, or were turned away, can explain
/// all missing load.
pub(super) fn busy_or_waiting(kind: LoadKind, busy: f64, counts: &Counts) -> f64 {
    match kind {
        LoadKind::Arrival { .. } if counts.waiting_max + counts.dropped > 0 => 1.0,
        LoadKind::Arrival { .. } | LoadKind::Users | LoadKind::Sequence { .. } => busy,
    }
}

/// The load sent in a stretch of a trial, relative to the plan.
pub(super) struct Load<'a> {
    pub(super) facts: &'a Facts<'a>,
    /// Sent ÷ planned.
    pub(super) part: f64,
    /// Dropped after earlier failures ÷ planned.
    pub(super) not_reached: f64,
    /// Skipped ÷ planned.
    pub(super) skipped: f64,
    pub(super) tolerance: Tolerance,
    /// Requests in flight at the end ÷ planned, unless they count as sent.
    pub(super) under_way: f64,
    /// The part of the users' time spent waiting for responses.
    pub(super) busy: f64,
    /// Users, each of whom begins the next session when the last is over.
    pub(super) closed: bool,
    pub(super) counts: &'a Counts,
}

impl Load<'_> {
    /// Returns the missing load; below 0 for too much. Failures explain as much missing load as they cost. Users whose
    /// session ends at a failure begin the next sooner, so failures also explain as much excess.
    fn missing(&self) -> f64 {
        let missing = 1.0 - self.part;
        match missing > 0.0 {
            true => (missing - self.not_reached).max(0.0),
            false if self.closed => (missing + self.not_reached).min(0.0),
            false => missing,
        }
    }

    fn skips(&self) -> bool {
        self.skipped > self.tolerance.usual
    }

    /// Returns true if skipped steps are a side effect of slow responses: cycles overran, and hardly any missing load
    /// was skipped. Users who accept items that others send find nothing while those wait.
    fn skips_beside(&self) -> bool {
        self.counts.overruns > 0 && self.skipped * SKIPPED_BESIDE <= self.missing()
    }

    /// Returns the missing load beyond the waiting time of users without a pace, or well within it. They send as much
    /// as they can, and the plan can't know how long they wait.
    fn unexplained(&self) -> f64 {
        let within_pace = self.closed && self.counts.overruns == 0 && self.busy <= WAITING;
        let answers_set_rate = within_pace || is_unpaced(self.facts);
        match answers_set_rate && self.missing() > self.tolerance.usual {
            true => (self.missing() - self.busy).max(0.0),
            false => self.missing(),
        }
    }
}

/// Allowed deviations.
pub(super) struct Tolerance {
    /// By the edges of a count, by chance, or by the warning limit, whichever is largest.
    usual: f64,
    /// The same by the limit above which the trial is invalid.
    most: f64,
    limit: &'static Limit,
}

impl Tolerance {
    pub(super) fn of(facts: &Facts<'_>, limit: &'static Limit, by_chance: f64) -> Self {
        let in_force = facts.limit(limit);
        Self {
            usual: by_chance.max(in_force.warn / 100.0),
            most: by_chance.max(in_force.invalid / 100.0),
            limit,
        }
    }

    fn figure(&self, off: f64) -> Figure {
        Figure {
            key: self.limit.key,
            value: off.abs() * 100.0,
            unit: self.limit.unit,
            warn: Some(self.usual * 100.0).filter(|_| self.usual < self.most),
            invalid: Some(self.most * 100.0).filter(|most| most.is_finite()),
        }
    }
}

/// Describes the plan's value.
pub(super) fn planned(predicted: f64, range: Option<Span>) -> String {
    match range {
        Some(range) => format!("{} to {}", rate(range.low), rate(range.high)),
        None => rate(predicted),
    }
}

/// Describes the deviation.
pub(super) fn off(part: f64, range: Option<Span>) -> String {
    match range {
        Some(_) if (part - 1.0).abs() < f64::EPSILON => "the answers decide".to_owned(),
        _ => signed_percent((part - 1.0) * 100.0),
    }
}

pub(super) fn per_second(range: Span, seconds: f64) -> Span {
    Span {
        low: range.low / seconds,
        high: range.high / seconds,
    }
}

fn is_offer(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

/// A deviation within the limit of an invalid trial is a warning at most.
pub(super) fn judge(id: CheckId, evidence: String, load: &Load<'_>) -> Check {
    let (missing, unexplained) = (load.missing(), load.unexplained());
    let figure = load.tolerance.figure(unexplained);
    let healthy = generator::is_healthy(load.facts);
    let evidence = format!("{evidence}{}", not_reached(load.counts));
    let mut check = if missing.abs() <= load.tolerance.usual {
        pass(id, evidence)
    } else if missing < 0.0 {
        let advice = "More was sent than planned: the generator doesn't follow its plan.";
        invalid(id, evidence).advise(advice)
    } else if healthy && unexplained <= load.tolerance.usual && !load.skips() {
        let waited = percent(load.busy * 100.0);
        let evidence = format!(
            "{evidence}: users spent {waited} of their time waiting for answers, which the plan can't know"
        );
        pass(id, evidence)
    } else {
        judge_missing(id, evidence, load, healthy)
    };
    if figure.outcome() < check.outcome {
        check.outcome = CheckOutcome::Warn;
    }
    check.figures = vec![figure];
    check
}

const TOO_SLOW: &str = "The server was too slow to take the planned load.";
const TOO_SLOW_FOR_ALL: &str = "The server was too slow to take the planned load, so that what \
                                some users need of others came late, or not at all.";

/// Attributes missing load to the server or the generator.
fn judge_missing(id: CheckId, evidence: String, load: &Load<'_>, healthy: bool) -> Check {
    let missing = load.missing();
    let by_slowness = match id {
        CheckId::DeliveredLoad | CheckId::Requests => server_was_slow(load.facts),
        _ => healthy && missing <= load.busy + load.tolerance.usual,
    };
    let too_few = skips::too_few(load.facts);
    if load.skips() && (too_few.is_some() || !by_slowness || !load.skips_beside()) {
        let evidence = format!("{evidence}; {}", skipped(load));
        let advice = "Captures found nothing, or tokens were refused: does the server answer as the workload \
                      expects? `plimsoll try` shows what it answers.";
        return match too_few {
            Some(advice) => invalid(id, evidence)
                .advise(&advice)
                .caused_by(Cause::Study),
            None => invalid(id, evidence)
                .advise(advice)
                .caused_by(Cause::System),
        };
    }
    let evidence = format!(
        "{evidence}; users spent {} of their time waiting for answers, {} of {} cycles overran",
        percent(load.busy * 100.0),
        count(load.counts.overruns),
        count(load.counts.cycles),
    );
    if by_slowness {
        let (evidence, advice) = match load.skips() {
            true => (format!("{evidence}; {}", skipped(load)), TOO_SLOW_FOR_ALL),
            false => (evidence, TOO_SLOW),
        };
        warn(id, evidence).advise(advice).caused_by(Cause::System)
    } else if healthy {
        invalid(id, evidence)
    } else {
        let advice = "The generator was not healthy (see its checks), so the missing load can't be laid to \
                      the server.";
        invalid(id, evidence).advise(advice)
    }
}

/// Describes how many requests were dropped after failures, after a semicolon; empty if none were.
fn not_reached(counts: &Counts) -> String {
    match counts.not_reached() {
        0 => String::new(),
        1 => "; 1 request was not reached, after a failure".to_owned(),
        n => format!("; {} requests were not reached, after failures", count(n)),
    }
}

/// Describes how many steps were skipped, which, and which lists were empty.
fn skipped(load: &Load<'_>) -> String {
    format!(
        "{} skipped ({} of the plan){}",
        were(load.counts.skipped()),
        percent(load.skipped * 100.0),
        skips::told(load.facts, load.counts)
    )
}

/// `1 step was`, `12 steps were`.
fn were(steps: u64) -> String {
    let were = if steps == 1 { "was" } else { "were" };
    format!("{} {were}", plural_count(steps, "step"))
}

/// Returns [`busy_fraction`] of the hold.
fn busy_in_hold(facts: &Facts<'_>) -> f64 {
    let sums = facts.sums;
    let answered_s = (histogram::sum(&sums.response) + histogram::sum(&sums.failed)) / 1e6;
    let hold = |start_ms, end_ms| sums.hold_span.contains(start_ms, end_ms);
    busy_fraction(answered_s, &sums.hold, under_way(facts, None, hold))
}

/// Returns [`busy_fraction`] of the whole trial.
fn busy_in_trial(facts: &Facts<'_>) -> f64 {
    let all = under_way(facts, None, |_, _| true);
    busy_fraction(facts.sums.answered_s, &facts.sums.whole, all)
}

/// Returns the part of the users' time spent waiting for responses: by the recorded times, or by counting requests in
/// flight, whichever is larger. The first misses responses that never arrived, the second fails if a step has no wait.
pub(super) fn busy_fraction(answered_s: f64, counts: &Counts, under_way: f64) -> f64 {
    let users = counts.users.mean().unwrap_or_default();
    let by_time = little::busy_fraction(answered_s, users, counts.span_ms / 1000.0);
    let by_count = lab_stats::ratio(under_way, users);
    by_time
        .unwrap_or_default()
        .max(by_count.unwrap_or_default().clamp(0.0, 1.0))
}

/// Returns the mean number of steps in flight, of these or all, in the windows that `counts` selects. 0 if more steps
/// begin than end, though hardly any is in flight at the end: the generator, not the server, lost requests.
pub(super) fn under_way(
    facts: &Facts<'_>,
    of: Option<&[String]>,
    counts: impl Fn(f64, f64) -> bool,
) -> f64 {
    let mut mean = WeightedMean::default();
    let is_of = |step: &str| of.is_none_or(|steps| steps.iter().any(|one| one == step));
    let at_end = flows(facts, is_of).last().map_or(0.0, |(_, now)| now);
    if is_lost(facts, at_end) {
        return 0.0;
    }
    for (window, now) in flows(facts, is_of) {
        if counts(window.start_ms, window.end_ms) {
            mean.add(now, window.end_ms - window.start_ms);
        }
    }
    mean.mean().unwrap_or_default()
}

/// Returns true if fewer requests were in flight at the end than the counts of begun and ended steps imply.
fn is_lost(facts: &Facts<'_>, at_end: f64) -> bool {
    let left = facts.data.record.unanswered.as_ref();
    let edge = EDGE_REQUESTS.max(LOST_USERS * f64::from(facts.planned.load.users));
    left.is_some_and(|left| at_end > as_f64(left.count) + edge)
}

/// Returns the windows, each with the number of steps in flight at its end, for steps whose begins and ends are
/// counted: ended waits, less ended steps.
fn flows<'a>(
    facts: &'a Facts<'_>,
    is_of: impl Fn(&str) -> bool,
) -> impl Iterator<Item = (&'a WindowLine, f64)> {
    let mut now = 0.0;
    facts.data.windows.iter().map(move |window| {
        for (tag, line) in &window.steps {
            let name = facts.names.step(*tag).filter(|name| is_of(name));
            if let Some(each) = name.and_then(|name| requests_of_each(facts, name)) {
                now += as_f64(line.waits) - as_f64(line.ended()) / each - as_f64(line.skipped);
            }
        }
        (window, now)
    })
}

/// Returns the requests of a step whose begins and ends are counted. Without a wait, its begin is unknown; and a failed
/// or skipped request ends its step, so that its position among several is unknown.
fn requests_of_each(facts: &Facts<'_>, step: &str) -> Option<f64> {
    let plan = facts.predicted.get(step)?;
    let each = lab_stats::ratio(as_f64(plan.requests), as_f64(plan.waits))?;
    let sum = facts.sums.whole.steps.get(step)?;
    let whole = sum.failed() + sum.over_limit + sum.skipped == 0;
    (plan.wait_ms? > 0.0 && (each <= 1.0 || whole)).then_some(each)
}

/// Compares the share of each step in all requests with its planned share.
pub(super) fn mix(facts: &Facts<'_>) -> Check {
    let id = CheckId::MixOfSteps;
    if let Some(cut) = cut_by_limit(facts, id) {
        return cut;
    }
    // If responses decide, the plan knows no share.
    let judged = || facts.predicted.iter().filter(|(_, step)| !step.open);
    let steps = &facts.sums.whole.steps;
    let attempts = |step: &str| steps.get(step).map_or(0, |sum| sum.attempts());
    let all = as_f64(judged().map(|(step, _)| attempts(step)).sum());
    let planned_all = as_f64(judged().map(|(_, step)| step.requests).sum());
    let mut worst: Option<(f64, f64, &str)> = None;
    for (step, predicted) in judged() {
        let share = as_f64(attempts(step)) / all;
        let planned = as_f64(predicted.requests) / planned_all;
        let Some(off) = lab_stats::relative_difference(share, planned) else {
            continue;
        };
        // The share of few requests varies with the truncation at the end of the hold.
        let excess = off.abs() - 3.0 / as_f64(predicted.requests).sqrt();
        if worst.is_none_or(|(most, _, _)| excess > most) {
            worst = Some((excess, off, step));
        }
    }
    let Some((excess, off, step)) = worst else {
        return not_judged(id, "nothing to compare");
    };
    let evidence = format!(
        "furthest off its planned share: {step}, {}",
        signed_percent(off * 100.0)
    );
    let figure = facts.held(100.0 * off.abs(), &MIX_OF_STEPS);
    let within = figure.outcome() == CheckOutcome::Pass || excess <= 0.0;
    let mut check = if within {
        pass(id, evidence)
    } else if holds_sessions_back(facts) {
        let advice = "Slow answers cut sessions short, so their early steps weigh more.";
        warn(id, evidence).advise(advice).caused_by(Cause::System)
    } else if generator::is_healthy(facts) {
        check(id, figure.outcome(), evidence)
    } else {
        let advice = "The generator was not healthy (see its checks), so the mix can't be laid to the server.";
        check(id, figure.outcome(), evidence).advise(advice)
    };
    check.figures = vec![figure];
    check
}

/// Returns true if slow responses explain that sessions did not reach their later steps: users spent their time waiting
/// for responses, for a connection, or for requests without a response at the end; or the server explains the missing
/// load.
fn holds_sessions_back(facts: &Facts<'_>) -> bool {
    let whole = &facts.sums.whole;
    let busy = busy_or_waiting(facts.planned.load.kind, busy_in_trial(facts), whole);
    let waiting = 100.0 * busy.max(stuck(facts));
    let is_slow = waiting > facts.limit(&MIX_OF_STEPS).warn;
    generator::is_healthy(facts) && is_slow || server_was_slow(facts)
}

/// Returns the maximum part of the users' time spent on requests without a response at the end.
fn stuck(facts: &Facts<'_>) -> f64 {
    let whole = &facts.sums.whole;
    let users = whole.users.mean().unwrap_or_default();
    let part = facts.data.record.unanswered.as_ref().and_then(|left| {
        let waited_ms = as_f64(left.count) * left.oldest_ms.min(whole.span_ms);
        lab_stats::ratio(waited_ms, users * whole.span_ms)
    });
    part.unwrap_or_default()
}
