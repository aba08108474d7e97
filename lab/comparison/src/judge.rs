//! Verdicts between runs: differences beyond the noise of blocks, and beyond the noise of runs.
//!
//! A difference is only reported if both tests show it: a permutation of labels between whole blocks
//! (`lab_stats::unpaired`), or between the sides of a pair (`lab_stats::paired`), and a test with runs as the unit
//! (`lab_stats::between`). Intervals are as wide as the wider of the two.

use lab_analysis::answer::Deciding;
use lab_analysis::format::{plural, times};
use lab_analysis::margins;
use lab_analysis::model::{Claim, Comparison, Difference, RunSpread, SpreadBasis, WorseAtMost};
use lab_stats::between::{Basis, Between, holm};
use lab_stats::paired::{self, Adjusted, Bounds};
use lab_stats::unpaired::{self, Row, least_p, least_units};
use lab_stats::verdict::{ALPHA, Compared, LEAST_BLOCKS, word};

use crate::drafts::Draft;

/// The rule for differences.
pub(crate) struct Rule<'a> {
    pub(crate) claims: &'a [Claim],
    pub(crate) relevant: f64,
    pub(crate) deciding: &'a Deciding,
    pub(crate) exchange: Exchange,
}

/// The permutations that are equally likely if the sides don't differ.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    /// True if all runs have the same plan: the sides are then exchanged block by block, otherwise whole blocks of any
    /// run are.
    pub(crate) paired: bool,
    /// Blocks of the first side.
    pub(crate) units: usize,
    pub(crate) seed: u64,
}

impl Exchange {
    pub(crate) fn can_show(self, draft: &Draft) -> bool {
        if self.paired {
            return draft.pairs().iter().flatten().count() >= LEAST_BLOCKS;
        }
        let (a, b) = draft.values();
        least_p(a.len(), b.len()) <= ALPHA
    }

    fn between(self, draft: &Draft) -> Option<Between> {
        let (a, b) = draft.sides();
        match self.paired {
            true => Between::of_one_plan(&a, &b, &draft.earlier),
            false => Between::of(&a, &b, &draft.earlier),
        }
    }

    /// p of drafts that are tested together.
    fn p(self, family: &[&mut Tested]) -> Vec<Adjusted> {
        let drafts = family.iter().map(|one| &one.draft);
        match self.paired {
            true => paired::max_t(&drafts.map(Draft::pairs).collect::<Vec<_>>(), self.seed),
            false => {
                let rows: Vec<Row> = drafts.map(Draft::row).collect();
                unpaired::max_t(&rows, self.units, self.seed)
            }
        }
    }

    fn interval(self, draft: &Draft, alpha: f64) -> Bounds {
        if self.paired {
            let pairs: Vec<f64> = draft.pairs().into_iter().flatten().collect();
            return paired::interval(&pairs, alpha, self.seed);
        }
        let (a, b) = draft.values();
        unpaired::interval(&a, &b, alpha, self.seed)
    }
}

/// A draft with the measures of its noise.
struct Tested {
    draft: Draft,
    between: Option<Between>,
    /// Adjusted for its family, and alone; `None` if it has too few blocks.
    p: Option<(f64, f64)>,
    decides: bool,
}

/// The deciding measures of all cells are tested together, and so are the others.
pub(crate) fn judge(drafts: Vec<Draft>, rule: &Rule<'_>) -> Vec<Comparison> {
    let exchange = rule.exchange;
    let tested = |draft: Draft| Tested {
        between: exchange.between(&draft),
        decides: rule.deciding.has(draft.measure),
        p: None,
        draft,
    };
    let mut all: Vec<Tested> = drafts.into_iter().map(tested).collect();
    for deciding in [true, false] {
        let enough = |one: &&mut Tested| one.decides == deciding && exchange.can_show(&one.draft);
        let family: Vec<&mut Tested> = all.iter_mut().filter(enough).collect();
        let of_blocks = exchange.p(&family);
        let of_run = |one: &&mut Tested| one.between.map_or(1.0, |between| between.p());
        let alone: Vec<f64> = family.iter().map(of_run).collect();
        let of_runs = holm(&alone);
        for (at, one) in family.into_iter().enumerate() {
            let joint = of_blocks[at].joint.max(of_runs[at]);
            one.p = Some((joint, of_blocks[at].single.max(alone[at])));
        }
    }
    all.iter().map(|one| comparison(one, rule)).collect()
}

fn comparison(tested: &Tested, rule: &Rule<'_>) -> Comparison {
    let draft = &tested.draft;
    let measure = draft.measure;
    let margins = margins(rule.claims, rule.relevant, measure);
    let (a, b) = draft.values();
    let mean = |of: &[f64]| paired::mean(of).unwrap_or_default();
    let log_ratio = tested
        .between
        .map_or(mean(&b) - mean(&a), |between| between.difference);
    let interval = |alpha: f64| {
        let of_blocks = rule.exchange.interval(draft, alpha);
        match tested.between.map(|between| between.interval(alpha)) {
            None => of_blocks,
            Some(of_runs) => Bounds {
                low: of_blocks.low.min(of_runs.low),
                high: of_blocks.high.max(of_runs.high),
            },
        }
    };
    let bounds = interval(ALPHA);
    let trials = a.len().min(b.len());
    let one_sided = interval(2.0 * ALPHA);
    let judged = tested.p.map(|(joint, _)| {
        let compared = Compared {
            log_ratio,
            one_sided,
            p: joint,
            blocks: trials,
        };
        Difference::of(word(&compared, measure.better(), margins), measure)
    });
    let mut compared = Comparison {
        a: "a".to_owned(),
        b: "b".to_owned(),
        factor: draft.label.clone(),
        metric: measure,
        blocks: trials,
        mean_a: draft.means.0,
        mean_b: draft.means.1,
        difference: draft.means.1 - draft.means.0,
        ratio: measure.ratio(log_ratio),
        interval: bounds.is_bounded().then(|| {
            [bounds.low, bounds.high]
                .map(|end| measure.ratio(end))
                .into()
        }),
        smallest_difference: margins.claims,
        matters: margins.matters,
        decides: tested.decides,
        run_spread: tested.between.as_ref().map(spread),
        p: tested.p.map(|p| p.0),
        p_single: tested.p.map(|p| p.1),
        verdict: judged,
        worse_at_most: WorseAtMost::of(judged, measure, one_sided),
        reason: judged.is_none().then(|| too_few(a.len(), b.len())),
    };
    if let Some(why) = &draft.missing {
        compared.bar(why);
    }
    compared
}

fn spread(of: &Between) -> RunSpread {
    RunSpread {
        deviation: of.spread,
        told_by: match of.basis {
            Basis::Runs => SpreadBasis::Runs,
            Basis::Assumed => SpreadBasis::Assumed,
        },
        runs: of.runs,
    }
}

/// Why the trials are too few for a verdict.
fn too_few(a: usize, b: usize) -> String {
    format!(
        "with {} beside {b} chance alone gives p ≥ {}; {} in each run are the fewest that can go \
         below {}",
        plural(a, "valid trial"),
        times(least_p(a, b)),
        least_units(ALPHA),
        times(ALPHA),
    )
}
