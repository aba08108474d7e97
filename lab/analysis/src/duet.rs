//! Duets: trials that ran at the same time. Selects the pairs that count, and compares their windows at the same time
//! (Bulej et al., "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE 2020).
//!
//! A window of one trial is compared with the same window of the other, so that a disturbance of both cancels, however
//! long it lasts. The mean over a block's windows is the block's value: the trials remain the unit. The test is in
//! `lab_stats::duet`.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use lab_counts::{Aggregate, Metric, Scope};
use lab_plan::{Decides, Level, Named, Plan, Side, VARIANT};
use lab_stats::duet::{Block, Windows, effects, windows};
use lab_stats::exchange::Exchange;
use lab_stats::histogram::mean;
use lab_stats::interference::{stretch, worse_at_most};
use lab_stats::verdict::ALPHA;
use lab_stats::{Merger, quantile};
use lab_trial::checks::partner_is_none;
use lab_trial::{Input, ReportError, answers_by_part, as_f64, own_time, used_of_shared};

use crate::answer::Deciding;
use crate::model::{
    Comparison, Difference, Duet, DuetBlock, LeftOut, Measure, SideEffect, TrialAnalysis, Verdict,
    WorseAtMost,
};

/// Numbers of windows per hold: the largest for which both sides have enough responses.
const CUTS: [usize; 6] = [48, 24, 12, 6, 3, 1];
/// A mean of fewer responses than this is mostly chance.
const LEAST_ANSWERS: u64 = 20;
/// The minimum part of the windows that have their figure on both sides.
const MOST: f64 = 0.9;
/// Measures compared by window. A named response time or throughput is too, unless its scope is a stage; all others are
/// compared trial by trial.
const BY_WINDOW: [Measure; 5] = [
    Measure::Throughput,
    Measure::Mean,
    Measure::P50,
    Measure::P95,
    Measure::P99,
];

/// The part of the CPU of shared cores beyond which the two trials wait for each other.
const CROWDED: f64 = 0.7;
/// Measures of which [`lab_stats::interference`] bounds what a disturbance hides; there is no bound for quantiles.
const BOUNDED: [Measure; 2] = [Measure::Mean, Measure::Throughput];

/// The counted pairs of a run.
pub(crate) struct Duets {
    /// By block: whether the second variant was on the left.
    pub(crate) swapped: Vec<bool>,
    /// By trial of the first variant and of the second.
    pairs: BTreeMap<(u32, u32), Pair>,
    /// The number of pairs with a disturbance that would make each trial alone invalid.
    disturbed: usize,
    /// The number of pairs in which both trials together used most of their shared cores.
    crowded: usize,
    /// Whether the trials shared any cores.
    together: bool,
    /// Whether the systems were on another machine than their generators.
    elsewhere: bool,
    /// The number of these pairs in which the generators could not be moved.
    stayed: usize,
}

/// Two trials that ran at the same time.
struct Pair {
    block: u32,
    /// Of *a* and *b*.
    labels: [String; 2],
    windows: Vec<(Measure, Windows)>,
    /// Mean response of the slower trial, after the warm-up.
    mean_us: Option<f64>,
    /// An upper bound on the mean response without interference.
    own_us: Option<f64>,
    /// CPU that both used ÷ CPU that other programs left to them.
    crowding: f64,
}

/// A trial without its peer is invalid: it had the machine for itself, or the variant in the peer failed.
pub(crate) fn couple(trials: &mut [TrialAnalysis]) {
    let verdicts: BTreeMap<u32, _> = trials
        .iter()
        .map(|trial| (trial.id, (trial.verdict, trial.cause)))
        .collect();
    for trial in trials {
        let Some(duet) = &trial.duet else { continue };
        let partner = verdicts.get(&duet.partner);
        if trial.verdict == Verdict::Invalid || matches!(partner, Some((Verdict::Valid, _))) {
            continue;
        }
        let check = partner_is_none(duet.partner, partner.and_then(|(_, cause)| *cause));
        (trial.verdict, trial.cause, trial.carried) = (Verdict::Invalid, check.cause, None);
        trial.checks.insert(0, check);
    }
}

impl Duets {
    /// The pairs in which both trials are valid, for a plan that has pairs.
    pub(crate) fn of(
        plan: &Plan,
        inputs: &[Input<'_>],
        trials: &[TrialAnalysis],
    ) -> Result<Option<Self>, ReportError> {
        if !plan.question.duet {
            return Ok(None);
        }
        let (mut pairs, mut disturbed, mut crowded, mut stayed) = (BTreeMap::new(), 0, 0, 0);
        let mut elsewhere = false;
        for a in trials.iter().filter(|trial| is_first(plan, trial)) {
            let partner = a.duet.as_ref().map(|duet| duet.partner);
            let b = trials.iter().find(|trial| Some(trial.id) == partner);
            let Some(b) = b.filter(|b| [a, b].iter().all(|t| t.verdict == Verdict::Valid)) else {
                continue;
            };
            let input = |id: u32| inputs.iter().find(|input| input.data.record.id == id);
            if let Some((of_a, of_b)) = input(a.id).zip(input(b.id)) {
                let cut_ms = a.warmup_cut_ms.max(b.warmup_cut_ms);
                disturbed += usize::from(a.disturbed || b.disturbed);
                let there = of_a.data.record.environment.system_host.as_ref();
                let there = there.map(|host| host.system_cores);
                elsewhere |= there.is_some();
                let used = used((a, b), there);
                crowded += usize::from(used.is_some_and(|used| used.part() > CROWDED));
                let crowding = used.map_or(0.0, |used| used.part_of_free(of_a));
                let named = named_by_window(plan);
                let pair = pair((a, of_a), (b, of_b), (cut_ms, crowding), named)?;
                pairs.insert((a.id, b.id), pair);
                let duet = a.duet.as_ref();
                stayed +=
                    usize::from(duet.is_some_and(|duet| duet.together && duet.exchanges == 0));
            }
        }
        let is_together =
            |trial: &TrialAnalysis| trial.duet.as_ref().is_some_and(|duet| duet.together);
        Ok(Some(Self {
            swapped: swapped(plan),
            pairs,
            disturbed,
            crowded,
            together: trials.iter().any(is_together),
            elsewhere,
            stayed,
        }))
    }

    /// Corrects the verdicts if interference or crowding hides a part of a difference in more than one pair in ten. A
    /// shown difference stays; no measure is called equal. Beside interference, the mean and throughput may be not
    /// worse, by a bound that includes the hidden part. Quantiles have no such bound: unless the study names one, they
    /// decide only by the differences that they show.
    pub(crate) fn withhold(&self, comparisons: &mut [Comparison], test: Exchange<'_>, named: bool) {
        let is_often = |count: usize| count * 10 > self.pairs.len();
        let (crowded, disturbed) = (is_often(self.crowded), is_often(self.disturbed));
        if !(crowded || disturbed) {
            return;
        }
        let depends = |one: &&mut Comparison| depends_on_the_machine(one.metric);
        for one in comparisons.iter_mut().filter(depends) {
            let is_shown = one.verdict.is_some_and(Difference::is_shown);
            // A reason excludes every good verdict: figures are missing.
            if one.verdict.is_none() || is_shown || one.reason.is_some() {
                continue;
            }
            let bound = self.bound(one, test).filter(|_| !crowded);
            one.verdict = match bound {
                Some(bound) if bound.part < one.matters => Some(Difference::NotWorse),
                _ => Some(Difference::CouldNotTell),
            };
            one.worse_at_most = bound;
            one.decides &= named || crowded || BOUNDED.contains(&one.metric);
        }
    }

    /// The one-sided bound on how much worse *b* is, including what interference hides; 95 % confidence.
    fn bound(&self, one: &Comparison, test: Exchange<'_>) -> Option<WorseAtMost> {
        if !BOUNDED.contains(&one.metric) {
            return None;
        }
        let of_cells = |pair: &&Pair| pair.labels[0] == one.a && pair.labels[1] == one.b;
        let pairs: Vec<&Pair> = self.pairs.values().filter(of_cells).collect();
        let own = pairs.iter().map(|pair| pair.own_us).reduce(|x, y| {
            let (x, y) = (x?, y?);
            Some(x.min(y))
        });
        let own = own.flatten()?;
        let mut by_block = vec![None; self.swapped.len()];
        let mut sum = 0.0;
        for pair in &pairs {
            let found = pair.windows.iter().find(|(m, _)| *m == one.metric)?;
            *by_block.get_mut(pair.block as usize)? = Some(found.1.difference);
            sum += stretch(pair.mean_us?, own, pair.crowding)?;
        }
        let stretch = sum / as_f64(pairs.len() as u64);
        let worse = one.metric.worse_end(test.interval(&by_block, 2.0 * ALPHA));
        let part = worse_at_most(worse, stretch).exp_m1();
        part.is_finite().then_some(WorseAtMost { part, stretch })
    }

    /// The excess of *b* over *a*, on the measure's scale; `None` if no window has a figure.
    pub(crate) fn difference(
        &self,
        a: &TrialAnalysis,
        b: &TrialAnalysis,
        measure: Measure,
    ) -> Option<f64> {
        let paired = self.pairs.get(&(a.id, b.id))?;
        // A named figure with few responses has none by windows: then all pairs are compared trial by trial.
        let has_windows = |pair: &Pair| pair.windows.iter().any(|(one, _)| *one == measure);
        let is_named = matches!(measure, Measure::Named(_));
        if is_by_window(measure) && (!is_named || self.pairs.values().all(has_windows)) {
            let mut paired = paired.windows.iter();
            return paired
                .find(|(one, _)| *one == measure)
                .map(|(_, windows)| windows.difference);
        }
        Some(measure.scaled(measure.of(b)?)? - measure.scaled(measure.of(a)?)?)
    }

    /// The duet's part of a report, for the deciding measures.
    pub(crate) fn told(
        &self,
        trials: &[TrialAnalysis],
        plan: &Plan,
        left_out: Vec<LeftOut>,
    ) -> Duet {
        let deciding = Deciding::of(plan.question.decides, plan.fixes_rate(), trials);
        let trial = |id: u32| trials.iter().find(|trial| trial.id == id);
        let known = self.pairs.iter().filter_map(|((a, b), pair)| {
            let (a, b) = (trial(*a)?, trial(*b)?);
            Some((a, b, &pair.windows))
        });
        let known: Vec<_> = known.collect();
        let measure = deciding.measures.iter().find(|one| is_by_window(**one));
        let measure = measure.copied().unwrap_or(Measure::Mean);
        let block =
            |(a, b, windows): &(&TrialAnalysis, &TrialAnalysis, &Vec<(Measure, Windows)>)| {
                let found = windows.iter().find(|(one, _)| *one == measure);
                DuetBlock {
                    block: a.block,
                    a: a.id,
                    b: b.id,
                    labels: (a.label.clone(), b.label.clone()),
                    a_is_left: a.duet.as_ref().is_some_and(|duet| duet.left),
                    b_later_ms: b.duet.as_ref().and_then(|duet| duet.later_ms),
                    windows: found.map_or(0, |(_, windows)| windows.paired),
                    unpaired: found.map_or(0, |(_, windows)| windows.unpaired),
                    ratio: found.map(|(_, windows)| measure.ratio(windows.difference)),
                }
            };
        let side = |measure: &Measure| {
            let of_block = |(a, b, _): &(&TrialAnalysis, &TrialAnalysis, _)| {
                Some(Block {
                    difference: self.difference(a, b, *measure)?,
                    swapped: *self.swapped.get(a.block as usize)?,
                })
            };
            let blocks: Vec<Block> = known.iter().filter_map(of_block).collect();
            Some(SideEffect {
                metric: *measure,
                ratio: measure.ratio(effects(&blocks)?.sides),
            })
        };
        Duet {
            metric: measure,
            disturbed: self.disturbed,
            together: self.together,
            elsewhere: self.elsewhere,
            crowded: self.crowded,
            stayed: self.stayed,
            blocks: known.iter().map(block).collect(),
            left_out,
            sides: deciding.measures.iter().filter_map(side).collect(),
        }
    }
}

/// CPU used by both trials of a pair, in cores.
#[derive(Clone, Copy)]
struct Used {
    cores: f64,
    /// Cores available to both.
    of: f64,
    /// True if the systems are on another machine than the generators.
    elsewhere: bool,
}

impl Used {
    fn part(self) -> f64 {
        lab_stats::ratio(self.cores, self.of).unwrap_or_default()
    }

    /// The part of the CPU that other programs left.
    fn part_of_free(self, input: &Input<'_>) -> f64 {
        let around = &input.data.record.environment;
        let others = match (&around.system_host, self.elsewhere) {
            (Some(host), true) => &host.others_during,
            _ => &around.others_during,
        };
        let others: f64 = others.iter().map(|one| one.cpu_percent / 100.0).sum();
        match self.of - others {
            free if free > 0.0 => self.cores / free,
            _ => 1.0,
        }
    }
}

/// The part of the shared cores' CPU that two trials used, with their generators. On a remote host, which has
/// `there` cores for the systems, without generators. `None` if each had its half, or the kernel reports nothing.
fn used((a, b): (&TrialAnalysis, &TrialAnalysis), there: Option<u32>) -> Option<Used> {
    a.duet.as_ref().filter(|duet| duet.together)?;
    if let Some(cores) = there {
        let system = |trial: &TrialAnalysis| Some((*trial.system.get("cpu_percent")?)? / 100.0);
        return Some(Used {
            cores: system(a)? + system(b)?,
            of: f64::from(cores),
            elsewhere: true,
        });
    }
    let (of_a, of_b) = (used_of_shared(a)?, used_of_shared(b)?);
    Some(Used {
        cores: of_a.cores + of_b.cores,
        of: of_a.of,
        elsewhere: false,
    })
}

/// Returns true if a trial is of the baseline variant.
fn is_first(plan: &Plan, trial: &TrialAnalysis) -> bool {
    variant_of(plan).is_some_and(|first| trial.cell.get(VARIANT) == Some(first))
}

fn variant_of(plan: &Plan) -> Option<&Level> {
    let mut factors = plan.question.matrix.iter();
    factors.find(|one| one.name == VARIANT)?.levels.first()
}

/// By block, whether the second variant is on the left: the same for all pairs of a block.
pub(crate) fn swapped(plan: &Plan) -> Vec<bool> {
    let first = variant_of(plan);
    let left_of = |block: u32| {
        let mut trials = plan.trials.iter();
        trials.find(|trial| {
            trial.block == block && trial.duet.is_some_and(|duet| duet.side == Side::Left)
        })
    };
    let is_swapped = |block| left_of(block).is_some_and(|trial| trial.cell.get(VARIANT) != first);
    (0..plan.question.trials).map(is_swapped).collect()
}

/// Returns true if a measure is compared window by window.
fn is_by_window(measure: Measure) -> bool {
    match measure {
        Measure::Named(named) => {
            let is_of_answers = matches!(named.metric(), Metric::ResponseTime | Metric::Throughput);
            is_of_answers && !matches!(named.scope(), Scope::Stage(_) | Scope::Transaction(_))
        }
        _ => BY_WINDOW.contains(&measure),
    }
}

/// Returns true if a disturbance of the machine may hide a difference in the measure.
fn depends_on_the_machine(measure: Measure) -> bool {
    match measure {
        Measure::Named(named) => named.metric().is_time() || named.metric() == Metric::Throughput,
        _ => BY_WINDOW.contains(&measure),
    }
}

/// The named figure that decides, if it is compared window by window.
fn named_by_window(plan: &Plan) -> Option<Named> {
    match plan.question.decides {
        Some(Decides::Named(named)) => Some(named).filter(|one| is_by_window(Measure::Named(*one))),
        _ => None,
    }
}

/// Both trials, window by window, after this part of the hold.
fn pair(
    (a, of_a): (&TrialAnalysis, &Input<'_>),
    (b, of_b): (&TrialAnalysis, &Input<'_>),
    (cut_ms, crowding): (f64, f64),
    named: Option<Named>,
) -> Result<Pair, ReportError> {
    let of_both = |scope: &Scope| -> Result<_, ReportError> {
        let of_a = answers_by_part(of_a, cut_ms, CUTS[0], scope)?;
        Ok([of_a, answers_by_part(of_b, cut_ms, CUTS[0], scope)?])
    };
    let in_windows = |finest: &_, measure| {
        let mut cuts = CUTS.iter();
        let found = cuts.find_map(|parts| by_parts(finest, *parts, measure));
        found.map(|found| (measure, found))
    };
    let finest = of_both(&Scope::All)?;
    let found = BY_WINDOW.into_iter();
    let mut found: Vec<_> = found
        .filter_map(|measure| in_windows(&finest, measure))
        .collect();
    if let Some(named) = named {
        found.extend(in_windows(&of_both(named.scope())?, Measure::Named(named)));
    }
    let means = finest.each_ref().map(|side| mean_of(side));
    let both = |[a, b]: [Option<f64>; 2], of: fn(f64, f64) -> f64| Some(of(a?, b?));
    Ok(Pair {
        block: a.block,
        labels: [a.label.clone(), b.label.clone()],
        windows: found,
        mean_us: both(means, f64::max),
        own_us: both([own_time(of_a, cut_ms)?, own_time(of_b, cut_ms)?], f64::min),
        crowding,
    })
}

/// The mean of all windows' responses.
fn mean_of(windows: &[Histogram<u64>]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for window in windows {
        let n = as_f64(window.len());
        sum += mean(window).unwrap_or_default() * n;
        count += n;
    }
    lab_stats::ratio(sum, count)
}

/// A measure in this many windows; `None` if too many of them have no figure.
fn by_parts(finest: &[Vec<Histogram<u64>>; 2], parts: usize, measure: Measure) -> Option<Windows> {
    let of_side = |side: &Vec<Histogram<u64>>| -> Vec<Option<f64>> {
        side.chunks(CUTS[0] / parts)
            .map(|part| value(part, measure))
            .collect()
    };
    let [a, b] = finest.each_ref().map(of_side);
    let found = windows(&a, &b)?;
    (as_f64(found.paired as u64) >= MOST * as_f64(parts as u64)).then_some(found)
}

/// The measure over some neighbouring windows, on its scale of comparison. All windows are equally long, so the number
/// of responses stands for throughput.
fn value(part: &[Histogram<u64>], measure: Measure) -> Option<f64> {
    let mut merger = Merger::default();
    for histogram in part {
        merger.add(histogram).ok()?;
    }
    let all = merger.into_merged();
    let enough = all.len() >= LEAST_ANSWERS;
    let value = match measure {
        Measure::Throughput => enough.then(|| as_f64(all.len())),
        Measure::Mean => mean(&all).filter(|_| enough),
        Measure::P50 => quantile(&all, 0.50).filter(|_| enough).map(as_f64),
        Measure::P95 => quantile(&all, 0.95).map(as_f64),
        Measure::P99 => quantile(&all, 0.99).map(as_f64),
        Measure::Named(named) => match (named.metric(), named.aggregate()) {
            (Metric::Throughput, _) => Some(as_f64(all.len())),
            (_, Aggregate::Percentile(percent)) => quantile(&all, percent / 100.0).map(as_f64),
            (_, Aggregate::Mean) => mean(&all),
            _ => None,
        }
        .filter(|_| enough),
        _ => None,
    };
    measure.scaled(value?)
}
