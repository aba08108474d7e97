//! Was the planned load offered? Rate in the hold, requests of the trial, mix of the steps.
//!
//! The plan predicts what the very same users with the very same waits would do against a server
//! that answers in no time. Where less than that was delivered, the server or the generator was
//! slow. Users who wait for an answer offer no load, so at most that part of the load can be missing
//! because of the server (Little's law); what is missing beyond it, the generator lost. Users without a
//! pace who wait a little for each answer are no slow server: that is what users do. A skipped
//! step sends nothing: it is load that is missing, and no slow server makes a step skip, unless it holds up much
//! more: users who take what others send find nothing while those wait.

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

/// Requests under way at either end of a count.
pub(super) const EDGE_REQUESTS: f64 = 3.0;
/// The part of their time that users without a pace may spend waiting for answers before a server is
/// called too slow for them.
const WAITING: f64 = 0.1;
/// Counts of steps under way may be off by this part of the users.
const LOST_USERS: f64 = 0.05;
/// So many times as much as was skipped must be missing before what was skipped is laid to slow answers.
const SKIPPED_BESIDE: f64 = 4.0;

/// Load delivered in the hold beside the load that the plan offers. `None` of a sequence, whose answers set its rate.
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

/// The load of the hold; `None` where the plan offers none, or nothing was recorded.
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

/// Returns true for users who begin the next cycle when the last is over: they send as fast as answers come, so that
/// the plan's rate is that of a server that answers in no time. Several populations have no session in common.
fn is_unpaced(facts: &Facts<'_>) -> bool {
    let session = facts.study.session(&facts.planned.parameters);
    facts.planned.load.kind == LoadKind::Users
        && facts.planned.load.mix.is_empty()
        && session.is_some_and(|session| session.pace_s.is_none())
}

/// Whether the whole trial sent no more than planned.
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

/// Requests of the whole trial beside the plan's prediction.
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

/// The load of the whole trial; `None` where the plan predicts none.
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

/// Returns true if the server explains all load that is missing, in the hold and in the whole trial alike, with one
/// tolerance for both: checks that look at the same facts then come to the same conclusion.
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

/// Where steps were not repeated any further, because they took longer than the load's time limit, the
/// plan's numbers of requests say nothing: unless that can't have cost as many as are tolerated.
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

/// The most requests that were left out of steps after one took longer than the time limit.
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

/// Requests that were sent, as planned, but cut off before their answers. Of arrivals, sessions that
/// never got a connection are among them, which sent nothing.
fn under_way_at_the_end(facts: &Facts<'_>) -> u64 {
    let left = facts.data.record.unanswered.as_ref();
    match facts.planned.load.kind {
        LoadKind::Arrival { .. } => 0,
        LoadKind::Users | LoadKind::Sequence { .. } => left.map_or(0, |left| left.count),
    }
}

/// What chance makes of a count: three standard errors of a Poisson process; nothing of users with a pace, whose draws
/// are planned. Users without one do fewer cycles than planned, with some of the planned waits alone: two standard
/// errors of the mean of waits that deviate by as much as they last.
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

/// Sessions that arrive on their own don't wait for each other: what is missing are those that wait
/// for a connection, or were turned away, at most all.
pub(super) fn busy_or_waiting(kind: LoadKind, busy: f64, counts: &Counts) -> f64 {
    match kind {
        LoadKind::Arrival { .. } if counts.waiting_max + counts.dropped > 0 => 1.0,
        LoadKind::Arrival { .. } | LoadKind::Users | LoadKind::Sequence { .. } => busy,
    }
}

/// What was sent of a plan, over a stretch of a trial.
pub(super) struct Load<'a> {
    pub(super) facts: &'a Facts<'a>,
    /// Sent ÷ planned.
    pub(super) part: f64,
    /// What failures before it cost ÷ planned.
    pub(super) not_reached: f64,
    /// Skipped ÷ planned.
    pub(super) skipped: f64,
    pub(super) tolerance: Tolerance,
    /// Sent ÷ planned of those that were under way at the end, unless they count as sent.
    pub(super) under_way: f64,
    /// The part of the users' time that went into waiting for answers.
    pub(super) busy: f64,
    /// Users, each of whom begins the next session when the last is over.
    pub(super) closed: bool,
    pub(super) counts: &'a Counts,
}

impl Load<'_> {
    /// What is missing; below 0 what is too much. Failures explain as much of what is missing as they cost. Users whose
    /// session ends at one begin the next sooner, so that they explain as much that is too much, too.
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

    /// Whether steps that were skipped go with what slow answers held up: cycles overran, and hardly any of what is
    /// missing was skipped. Who accepts what others send finds nothing as long as they wait.
    fn skips_beside(&self) -> bool {
        self.counts.overruns > 0 && self.skipped * SKIPPED_BESIDE <= self.missing()
    }

    /// What is missing beyond the time that users without a pace, or well within it, wait for answers.
    /// They send as much as they can, and the plan can't know how long they wait.
    fn unexplained(&self) -> f64 {
        let within_pace = self.closed && self.counts.overruns == 0 && self.busy <= WAITING;
        let answers_set_rate = within_pace || is_unpaced(self.facts);
        match answers_set_rate && self.missing() > self.tolerance.usual {
            true => (self.missing() - self.busy).max(0.0),
            false => self.missing(),
        }
    }
}

/// How much may be off.
pub(super) struct Tolerance {
    /// By the edges of a count, by chance, or by the limit from which it warns, whichever is most.
    usual: f64,
    /// The same by the limit from which the trial is no measurement.
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

/// What the plan says, in words.
pub(super) fn planned(predicted: f64, range: Option<Span>) -> String {
    match range {
        Some(range) => format!("{} to {}", rate(range.low), rate(range.high)),
        None => rate(predicted),
    }
}

/// How far off that is, in words.
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

/// What is within the limit of an invalid trial is a warning at most.
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

/// Whose fault it is that load is missing.
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

/// How many requests were left out after failures, behind a semicolon; empty where none was.
fn not_reached(counts: &Counts) -> String {
    match counts.not_reached() {
        0 => String::new(),
        1 => "; 1 request was not reached, after a failure".to_owned(),
        n => format!("; {} requests were not reached, after failures", count(n)),
    }
}

/// How many steps were skipped, which, and for want of what.
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

/// See [`busy_fraction`], of the hold.
fn busy_in_hold(facts: &Facts<'_>) -> f64 {
    let sums = facts.sums;
    let answered_s = (histogram::sum(&sums.response) + histogram::sum(&sums.failed)) / 1e6;
    let hold = |start_ms, end_ms| sums.hold_span.contains(start_ms, end_ms);
    busy_fraction(answered_s, &sums.hold, under_way(facts, None, hold))
}

/// See [`busy_fraction`], of the whole trial.
fn busy_in_trial(facts: &Facts<'_>) -> f64 {
    let all = under_way(facts, None, |_, _| true);
    busy_fraction(facts.sums.answered_s, &facts.sums.whole, all)
}

/// The part of the users' time that went into waiting for answers: by the recorded times, or by
/// counting requests under way, whichever is more. The first misses answers that never came, the
/// second fails where a step has no wait.
pub(super) fn busy_fraction(answered_s: f64, counts: &Counts, under_way: f64) -> f64 {
    let users = counts.users.mean().unwrap_or_default();
    let by_time = little::busy_fraction(answered_s, users, counts.span_ms / 1000.0);
    let by_count = lab_stats::ratio(under_way, users);
    by_time
        .unwrap_or_default()
        .max(by_count.unwrap_or_default().clamp(0.0, 1.0))
}

/// Mean number of steps under way, of these or of all, in the windows that `counts`. 0 where more steps begin than end,
/// though hardly any is under way at the end: the generator lost requests then, and no server held them up.
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

/// Returns true if fewer requests were under way at the end than counts of begun and ended steps leave.
fn is_lost(facts: &Facts<'_>, at_end: f64) -> bool {
    let left = facts.data.record.unanswered.as_ref();
    let edge = EDGE_REQUESTS.max(LOST_USERS * f64::from(facts.planned.load.users));
    left.is_some_and(|left| at_end > as_f64(left.count) + edge)
}

/// The windows, each with the number of steps under way at its end, of those whose begins and ends are counted: waits
/// that ended, less steps that did.
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

/// The requests of a step whose begins and ends are counted. Without a wait, nothing tells when a step
/// began; and a request that failed or was skipped ends its step, so that nothing tells which of several
/// it was.
fn requests_of_each(facts: &Facts<'_>, step: &str) -> Option<f64> {
    let plan = facts.predicted.get(step)?;
    let each = lab_stats::ratio(as_f64(plan.requests), as_f64(plan.waits))?;
    let sum = facts.sums.whole.steps.get(step)?;
    let whole = sum.failed() + sum.over_limit + sum.skipped == 0;
    (plan.wait_ms? > 0.0 && (each <= 1.0 || whole)).then_some(each)
}

/// The share of each step in all requests beside its planned share.
pub(super) fn mix(facts: &Facts<'_>) -> Check {
    let id = CheckId::MixOfSteps;
    if let Some(cut) = cut_by_limit(facts, id) {
        return cut;
    }
    // Where the answers decide, the plan knows no share.
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
        // Few requests vary by the chance of where the hold cuts them off.
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

/// Returns true if slow answers explain that sessions did not come to their later steps: users spent their time waiting
/// for answers, for a connection, or for requests that had no answer at the end; or the server explains the load that
/// is missing.
fn holds_sessions_back(facts: &Facts<'_>) -> bool {
    let whole = &facts.sums.whole;
    let busy = busy_or_waiting(facts.planned.load.kind, busy_in_trial(facts), whole);
    let waiting = 100.0 * busy.max(stuck(facts));
    let is_slow = waiting > facts.limit(&MIX_OF_STEPS).warn;
    generator::is_healthy(facts) && is_slow || server_was_slow(facts)
}

/// The part of the users' time that went into requests without an answer at the end, at most.
fn stuck(facts: &Facts<'_>) -> f64 {
    let whole = &facts.sums.whole;
    let users = whole.users.mean().unwrap_or_default();
    let part = facts.data.record.unanswered.as_ref().and_then(|left| {
        let waited_ms = as_f64(left.count) * left.oldest_ms.min(whole.span_ms);
        lab_stats::ratio(waited_ms, users * whole.span_ms)
    });
    part.unwrap_or_default()
}
