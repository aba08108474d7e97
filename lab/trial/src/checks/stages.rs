//! Was the planned load offered in each stage of a changing load, and by each of its populations?
//!
//! Over a whole hold, the other stages mask one in which the generator fell short; the same applies to a small
//! population. Only missing load is judged here: slow responses delay load to a later stage, which then exceeds its
//! plan.

use lab_plan::checks::{CheckId, Limit, POPULATION_LOAD, STAGE_LOAD};
use lab_plan::{LoadKind, Population, PopulationOutline, PopulationPrediction, Spacing, Span};
use lab_stats::{WeightedMean, histogram};

use super::facts::Facts;
use super::load::{
    self, EDGE_REQUESTS, Load, Tolerance, busy_fraction, busy_or_waiting, cut_by_limit, judge,
    per_second, under_way,
};
use super::outcome::not_judged;
use crate::format::rate;
use crate::model::Check;
use crate::number::as_f64;
use crate::predicted::part;
use crate::stages::Stage;
use crate::sums::{Counts, Hold, Sums};

/// Compares the load sent in each stage with the plan; the check is that of the stage furthest below. `None` for a load
/// without stages.
pub(super) fn stages(facts: &Facts<'_>) -> Option<Check> {
    let has_stages = !facts.stages.is_empty();
    let what = (CheckId::Stages, &STAGE_LOAD);
    let check = || furthest_below(facts, what, &of_stages(facts));
    has_stages.then(check)
}

/// Does the same for each population, in each stage if the load has stages. `None` for a load with one population.
pub(super) fn populations(facts: &Facts<'_>) -> Option<Check> {
    let has_populations = !facts.planned.load.mix.is_empty();
    let what = (CheckId::Populations, &POPULATION_LOAD);
    has_populations.then(|| furthest_below(facts, what, &of_populations(facts)))
}

/// A stretch of a trial with a planned load, and the load sent in it.
struct Stretch<'a> {
    /// Name of the stage or population.
    name: String,
    /// The steps that count; `None` for all.
    steps: Option<&'a [String]>,
    kind: LoadKind,
    span: Hold,
    /// Users, or arrivals per second, at its beginning,
    from: f64,
    /// and at its end.
    to: f64,
    /// Requests per second, by the plan.
    offered_per_s: f64,
    /// Minimum and maximum, if responses decide.
    range_per_s: Option<Span>,
    /// Requests per second offered at the very end of the stretch before it.
    before_per_s: f64,
    counts: Counts,
    /// Responses, and their total time, µs; and that of failed requests, of all populations.
    answers: u64,
    answered_us: f64,
    failed_us: f64,
}

impl<'a> Stretch<'a> {
    /// Creates the stretch of all users.
    fn of_all(facts: &Facts<'_>, stage: &Stage, offered_per_s: f64, before_per_s: f64) -> Self {
        Self {
            name: format!("`{}`", stage.plan.name),
            steps: None,
            kind: facts.planned.load.kind,
            span: stage.sums.hold_span,
            from: stage.plan.from,
            to: stage.plan.to,
            offered_per_s,
            range_per_s: None,
            before_per_s,
            counts: stage.sums.hold.clone(),
            answers: stage.sums.response.len(),
            answered_us: histogram::sum(&stage.sums.response),
            failed_us: histogram::sum(&stage.sums.failed),
        }
    }

    /// Creates the stretch of a population, at a level, with the `sums` of its steps.
    fn of_population(
        (outline, population): (&'a PopulationOutline, &Population),
        sums: &Sums,
        (from, to): (f64, f64),
        (offered_per_s, before_per_s): (f64, f64),
    ) -> Self {
        let times = outline.steps.iter().filter_map(|step| sums.steps.get(step));
        let (answers, answered_us) = times.fold((0, 0.0), |(answers, us), one| {
            (answers + one.len(), us + histogram::sum(one))
        });
        let mut counts = sums.hold.of_steps(&outline.steps);
        if population.kind == LoadKind::Users {
            // Windows count the users of all populations.
            counts.users = WeightedMean::default();
            counts.users.add(f64::midpoint(from, to), counts.span_ms);
        }
        Self {
            name: format!("`{}`", outline.name),
            steps: Some(&outline.steps),
            kind: population.kind,
            span: sums.hold_span,
            from,
            to,
            offered_per_s,
            range_per_s: None,
            before_per_s,
            counts,
            answers,
            answered_us,
            failed_us: histogram::sum(&sums.failed),
        }
    }

    /// Returns the requests per second that are offered at this level of the load.
    fn per_s_at(&self, level: f64) -> f64 {
        let mean = f64::midpoint(self.from, self.to);
        self.offered_per_s * lab_stats::ratio(level, mean).unwrap_or_default()
    }

    fn length_s(&self) -> f64 {
        self.span.length_ms() / 1000.0
    }

    /// Returns the part of its load between two positions, 0 to 1; `None` for a stretch without load.
    fn part_of_load(&self, from: f64, to: f64) -> Option<f64> {
        let until = |at: f64| self.from * at + (self.to - self.from) * at * at / 2.0;
        lab_stats::ratio(until(to) - until(from), until(1.0))
    }

    /// Returns how many more requests are in flight at its end than at its beginning: they are counted when their
    /// responses arrive. By Little's law.
    fn more_under_way(&self) -> f64 {
        let response_us = lab_stats::ratio(self.answered_us, as_f64(self.answers));
        let more_per_s = self.per_s_at(self.to) - self.before_per_s;
        (more_per_s * response_us.unwrap_or_default() / 1e6).max(0.0)
    }

    /// Returns three standard errors of the number of its arrivals, if that was not drawn but computed; and for
    /// recorded arrivals, which come in bursts, of which the last may be truncated.
    fn chance(&self, facts: &Facts<'_>) -> f64 {
        let LoadKind::Arrival { spacing, .. } = self.kind else {
            return 0.0;
        };
        let prediction = facts.planned.prediction.as_ref();
        let is_drawn = prediction.is_some_and(|plan| plan.exact);
        if is_drawn && spacing != Spacing::Recorded {
            return 0.0;
        }
        let arrivals = f64::midpoint(self.from, self.to) * self.length_s();
        3.0 / arrivals.max(1.0).sqrt()
    }

    /// Returns the part of its users' time spent waiting for responses.
    fn busy(&self, facts: &Facts<'_>) -> f64 {
        let answered_s = (self.answered_us + self.failed_us) / 1e6;
        let within = |start_ms, end_ms| self.span.contains(start_ms, end_ms);
        busy_fraction(
            answered_s,
            &self.counts,
            under_way(facts, self.steps, within),
        )
    }
}

/// Returns the stages with a planned rate.
fn of_stages(facts: &Facts<'_>) -> Vec<Stretch<'static>> {
    let mut before_per_s = 0.0;
    let mut stretches = Vec::new();
    for stage in facts.stages {
        let offered_per_s = stage.offered_per_s.unwrap_or_default();
        let stretch = Stretch::of_all(facts, stage, offered_per_s, before_per_s);
        before_per_s = stretch.per_s_at(stretch.to);
        stretches.extend(stage.offered_per_s.map(|_| stretch));
    }
    stretches
}

/// Returns the populations with a planned rate: in each stage, or in the hold of a load without any.
fn of_populations<'a>(facts: &'a Facts<'_>) -> Vec<Stretch<'a>> {
    let predicted = facts.planned.prediction.iter();
    let predicted = predicted.flat_map(|plan| &plan.populations);
    let outlines = &facts.study.workload.populations;
    let each = outlines.iter().zip(&facts.planned.load.mix).zip(predicted);
    let mut stretches = Vec::new();
    for (of, plan) in each {
        match (facts.stages.is_empty(), plan.range) {
            (true, _) => stretches.push(in_hold(facts, of, plan)),
            (false, None) => in_stages(facts, of, plan, &mut stretches),
            // The influence of responses is known for the whole hold only.
            (false, Some(_)) => {}
        }
    }
    stretches
}

fn in_hold<'a>(
    facts: &Facts<'_>,
    of: (&'a PopulationOutline, &Population),
    plan: &PopulationPrediction,
) -> Stretch<'a> {
    let load = &facts.planned.load;
    let part = load.part_in_hold(of.1);
    let level = of.1.full() * part;
    let before_per_s = match (load.ramp_ms, of.1.after_ms) {
        // Without a ramp, no session is in progress at the start of the hold.
        (0, 0) => 0.0,
        (_, 0) => plan.offered_per_s,
        // The load offered at its end exceeds the mean by this much.
        (_, after) => {
            let begun = lab_stats::ratio(
                as_f64(load.ramp_ms.saturating_sub(after)),
                as_f64(load.ramp_ms),
            );
            let grows = 1.0 - begun.unwrap_or_default();
            plan.offered_per_s * (1.0 - lab_stats::ratio(grows, part).unwrap_or_default())
        }
    };
    let rates = (plan.offered_per_s, before_per_s);
    let of = Stretch::of_population(of, facts.sums, (level, level), rates);
    let range = plan.range.map(|range| range.hold);
    Stretch {
        range_per_s: range.map(|range| per_second(range, of.length_s())),
        ..of
    }
}

fn in_stages<'a>(
    facts: &Facts<'_>,
    of: (&'a PopulationOutline, &Population),
    plan: &PopulationPrediction,
    stretches: &mut Vec<Stretch<'a>>,
) {
    let mut before_per_s = 0.0;
    let own = of.1.stages.iter().zip(&plan.stages);
    for (stage, (own, plan)) in facts.stages.iter().zip(own) {
        let length_s = as_f64(stage.plan.length_ms) / 1000.0;
        let rates = (plan.transactions / length_s, before_per_s);
        let mut stretch = Stretch::of_population(of, &stage.sums, (own.from, own.to), rates);
        stretch.name.push_str(&format!(" in `{}`", stage.plan.name));
        before_per_s = stretch.per_s_at(own.to);
        stretches.push(stretch);
    }
}

/// Returns the check of the stretch furthest below its plan; it names the others that are short.
fn furthest_below(
    facts: &Facts<'_>,
    (id, limit): (CheckId, &'static Limit),
    stretches: &[Stretch<'_>],
) -> Check {
    if let Some(cut) = cut_by_limit(facts, id) {
        return cut;
    }
    let judged = stretches.iter().filter_map(|one| {
        let check = below(facts, (id, limit), one)?;
        Some((one, check))
    });
    let judged: Vec<(&Stretch<'_>, Check)> = judged.collect();
    let short = judged.iter().filter(|(_, check)| check.advice.is_some());
    let short: Vec<&str> = short.map(|(stretch, _)| stretch.name.as_str()).collect();
    let worst = judged.iter().max_by(|(_, one), (_, other)| {
        let missing = |check: &Check| check.figures.first().map_or(0.0, |figure| figure.value);
        let by_outcome = one.outcome.cmp(&other.outcome);
        by_outcome.then(missing(one).total_cmp(&missing(other)))
    });
    let Some((worst, check)) = worst else {
        let evidence = format!("the plan has no rate of any of the {}", id.title());
        return not_judged(id, evidence);
    };
    let mut check = check.clone();
    let others = short.into_iter().filter(|name| *name != worst.name);
    let others: Vec<&str> = others.collect();
    if !others.is_empty() {
        let others = format!("; short, too: {}", others.join(", "));
        check.evidence.push_str(&others);
    }
    check
}

/// Compares the load sent in a stretch with the plan; `None` if the plan has none.
fn below(
    facts: &Facts<'_>,
    (id, limit): (CheckId, &'static Limit),
    stretch: &Stretch<'_>,
) -> Option<Check> {
    let (from, to) = covered(facts, stretch.span)?;
    let in_all = stretch.offered_per_s * stretch.length_s();
    let planned = in_all * stretch.part_of_load(from, to)?;
    if planned <= 0.0 {
        return None;
    }
    let counts = &stretch.counts;
    let seconds = (to - from) * stretch.length_s();
    let (sent_per_s, range) = (as_f64(counts.sent()) / seconds, stretch.range_per_s);
    let part = part(sent_per_s, planned / seconds, range);
    let evidence = format!(
        "furthest below its plan: {}, {} of {} requests per s offered ({})",
        stretch.name,
        rate(sent_per_s),
        load::planned(planned / seconds, range),
        load::off(part, range)
    );
    let edges = EDGE_REQUESTS + outside(in_all - planned) + stretch.more_under_way();
    let by_chance = stretch.chance(facts).max(edges / planned);
    let load = Load {
        facts,
        part: part.min(1.0),
        not_reached: as_f64(counts.not_reached()) / planned,
        skipped: as_f64(counts.skipped()) / planned,
        tolerance: Tolerance::of(facts, limit, by_chance),
        under_way: 0.0,
        busy: busy_or_waiting(stretch.kind, stretch.busy(facts), counts),
        closed: stretch.kind == LoadKind::Users,
        counts,
    };
    Some(judge(id, evidence, &load))
}

/// Returns the part of a stretch that is covered by windows within it, as start and end, 0 to 1; `None` without any.
fn covered(facts: &Facts<'_>, span: Hold) -> Option<(f64, f64)> {
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

/// Returns the possible error of a count from requests planned near the edges.
fn outside(planned: f64) -> f64 {
    3.0 * planned.max(0.0).sqrt()
}
