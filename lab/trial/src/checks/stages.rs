//! Was the planned load offered in each stage of a load that changes?
//!
//! Over a whole hold, a stage in which the generator fell short hides behind the others. Only what is missing
//! is judged here: what slow answers delay comes in a later stage, which then has more than its plan.

use lab_plan::LoadKind;
use lab_plan::checks::STAGE_LOAD;
use lab_stats::histogram;

use super::facts::Facts;
use super::generator::Health;
use super::load::{
    EDGE_REQUESTS, Load, Tolerance, busy_fraction, busy_or_waiting, chance, cut_by_limit, judge,
    under_way,
};
use super::outcome::not_judged;
use crate::format::{rate, signed_percent};
use crate::model::{Check, StagePlan};
use crate::number::as_f64;
use crate::stages::Stage;

const NAME: &str = "stages";

/// What was sent in each stage beside what the plan has of it; the check is that of the stage that is
/// furthest below. `None` of a load without stages.
pub(super) fn stages(facts: &Facts<'_>, health: &Health) -> Option<Check> {
    if facts.stages.is_empty() {
        return None;
    }
    if let Some(cut) = cut_by_limit(facts, NAME) {
        return Some(cut);
    }
    let judged = judged(facts, health);
    let short = judged.iter().filter(|(_, check)| check.advice.is_some());
    let short: Vec<&str> = short.map(|(stage, _)| stage.plan.name.as_str()).collect();
    let worst = judged.iter().max_by(|(_, one), (_, other)| {
        let missing = |check: &Check| check.figures.first().map_or(0.0, |figure| figure.value);
        let by_outcome = one.outcome.cmp(&other.outcome);
        by_outcome.then(missing(one).total_cmp(&missing(other)))
    });
    let Some((stage, check)) = worst else {
        return Some(not_judged(NAME, "the plan has no rate of any stage"));
    };
    let mut check = check.clone();
    if short.len() > 1 {
        let others = short.iter().filter(|name| **name != stage.plan.name);
        let others: Vec<String> = others.map(|name| format!("`{name}`")).collect();
        check
            .evidence
            .push_str(&format!("; short, too: {}", others.join(", ")));
    }
    Some(check)
}

/// The stages of which the plan has a rate, with what each comes to.
fn judged<'a>(facts: &'a Facts<'_>, health: &Health) -> Vec<(&'a Stage, Check)> {
    let mut before = None;
    let mut judged = Vec::new();
    for stage in facts.stages {
        let check = of_stage(facts, stage, before, health);
        judged.extend(check.map(|check| (stage, check)));
        before = Some(stage);
    }
    judged
}

fn of_stage(
    facts: &Facts<'_>,
    stage: &Stage,
    before: Option<&Stage>,
    health: &Health,
) -> Option<Check> {
    let (from, to) = covered(facts, stage)?;
    let length_s = as_f64(stage.plan.length_ms) / 1000.0;
    let in_all = stage.offered_per_s? * length_s;
    let planned = in_all * part_of_load(&stage.plan, from, to)?;
    if planned <= 0.0 {
        return None;
    }
    let counts = &stage.sums.hold;
    let part = as_f64(counts.sent()) / planned;
    let seconds = (to - from) * length_s;
    let evidence = format!(
        "furthest below its plan: `{}`, {} of {} requests per s offered ({})",
        stage.plan.name,
        rate(as_f64(counts.sent()) / seconds),
        rate(planned / seconds),
        signed_percent((part - 1.0) * 100.0)
    );
    let edges = EDGE_REQUESTS + outside(in_all - planned) + more_under_way(stage, before);
    let exact = facts
        .planned
        .prediction
        .as_ref()
        .is_some_and(|plan| plan.exact);
    let by_chance = match exact {
        true => 0.0,
        false => chance(facts, counts),
    };
    let load = Load {
        facts,
        part: part.min(1.0),
        skipped: as_f64(counts.skipped()) / planned,
        tolerance: Tolerance::of(facts, &STAGE_LOAD, by_chance.max(edges / planned)),
        busy: busy_or_waiting(facts, busy(facts, stage), counts),
        closed: facts.planned.load.kind == LoadKind::Users,
        counts,
    };
    Some(judge(NAME, evidence, &load, health))
}

/// From where to where of a stage there are windows that lie within it, 0 to 1; `None` where there are none.
fn covered(facts: &Facts<'_>, stage: &Stage) -> Option<(f64, f64)> {
    let span = stage.sums.hold_span;
    let within = facts
        .data
        .windows
        .iter()
        .filter(|window| span.contains(window.start_ms, window.end_ms));
    let ends = within.map(|window| (window.start_ms, window.end_ms));
    let (start, end) = ends.reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)))?;
    let at = |ms: f64| ((ms - span.start_ms) / span.length_ms()).clamp(0.0, 1.0);
    (at(start) < at(end)).then(|| (at(start), at(end)))
}

/// The part of a stage's load between these of its moments; `None` of one without a load.
fn part_of_load(stage: &StagePlan, from: f64, to: f64) -> Option<f64> {
    let until = |at: f64| stage.from * at + (stage.to - stage.from) * at * at / 2.0;
    lab_stats::ratio(until(to) - until(from), until(1.0))
}

/// How far off what is counted within may be because of so many requests that are planned near its edges.
fn outside(planned: f64) -> f64 {
    3.0 * planned.max(0.0).sqrt()
}

/// How many more requests are under way at a stage's end than were at its beginning: they are counted when
/// they are answered. By Little's law.
fn more_under_way(stage: &Stage, before: Option<&Stage>) -> f64 {
    let response_s = lab_stats::histogram::mean(&stage.sums.response).unwrap_or_default() / 1e6;
    let rate_at = |stage: &Stage, level: f64| {
        let mean = f64::midpoint(stage.plan.from, stage.plan.to);
        let part = lab_stats::ratio(level, mean).unwrap_or_default();
        stage.offered_per_s.unwrap_or_default() * part
    };
    let at_end = rate_at(stage, stage.plan.to);
    let at_start = before.map_or(0.0, |before| rate_at(before, before.plan.to));
    ((at_end - at_start) * response_s).max(0.0)
}

/// The part of the users' time in a stage that went into waiting for answers.
fn busy(facts: &Facts<'_>, stage: &Stage) -> f64 {
    let sums = &stage.sums;
    let answered_s = (histogram::sum(&sums.response) + histogram::sum(&sums.failed)) / 1e6;
    let within = |start_ms, end_ms| sums.hold_span.contains(start_ms, end_ms);
    busy_fraction(answered_s, &sums.hold, under_way(facts, within))
}
