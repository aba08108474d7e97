//! Compares each cell with the cell that differs from it in one factor only, at that factor's first level; and each
//! factor's levels over all cells (main effects).
//!
//! Only valid trials count, paired by block; missing trials exclude good verdicts ([`crate::sample`]). The deciding
//! comparisons of cells (those of the deciding measures, along the variants if there are any) are tested together. So
//! are all other comparisons, and all main effects: the p of each of these families are joint.

#[cfg(test)]
mod simulations;

use lab_plan::{Cell, Factor, Level, Plan, VARIANT};
use lab_stats::exchange::Exchange;
use lab_stats::verdict::{ALPHA, Compared, Margins, word};
use lab_trial::as_f64;
use lab_trial::format::{level, plural, times};

use crate::answer::{self, AskedPair, Deciding};
use crate::duet::Duets;
use crate::model::{
    Answer, CellSummary, Claim, Comparison, Difference, Inference, Measure, TrialAnalysis, Verdict,
    WorseAtMost,
};
use crate::sample::{CellSample, Consumer, Standing};

/// The maximum number of compared pairs of cells, with at most nine measures each.
pub(crate) const MOST_PAIRS: usize = 40;

/// All results on differences.
pub(crate) struct Differences {
    pub(crate) comparisons: Vec<Comparison>,
    /// Empty with fewer than two factors, where they would repeat the comparisons.
    pub(crate) main_effects: Vec<Comparison>,
    /// The control beside its cell.
    pub(crate) control: Vec<Comparison>,
    pub(crate) inference: Inference,
    /// The answer to the study's question about its comparisons.
    pub(crate) answer: Option<Answer>,
}

/// Compares the cells of a run.
pub(crate) fn compare(
    plan: &Plan,
    trials: &[TrialAnalysis],
    (cells, samples): (&[CellSummary], &[CellSample]),
    duets: Option<&Duets>,
) -> Differences {
    let study = &plan.question;
    let test = Exchange {
        seed: plan.seed,
        swapped: duets.map(|duets| duets.swapped.as_slice()),
    };
    let all = Trials {
        duets,
        ..Trials::new(trials)
    };
    let smallest = study.smallest_difference;
    let control = judge(
        control(cells, &all),
        &|measure| Margins::of(measure.matters(smallest)),
        &|_| false,
        test,
    );
    let claims = claims(smallest, &control);
    let margins = |measure| margins(&claims, smallest, measure);
    let (pairs, pairs_left_out) = compared_pairs(plan, cells);
    let mut deciding = Deciding::of(study.decides, plan.fixes_rate(), trials);
    let has_variants = pairs.iter().any(|pair| pair.factor.name == VARIANT);
    let decides = |draft: &Draft| {
        (!has_variants || draft.names.factor == VARIANT) && deciding.has(draft.measure)
    };
    let in_order = deciding.in_order();
    let of_pair = |pair: &Pair<'_>| {
        let measures = measures(&in_order, std::slice::from_ref(pair)).into_iter();
        let drafts = measures.map(|m| all.draft(pair.names(), m, &[*pair]));
        drafts.flatten().collect::<Vec<_>>()
    };
    let of_cells = pairs.iter().flat_map(of_pair).collect();
    let mut comparisons = judge(of_cells, &margins, &decides, test);
    if let Some(duets) = duets {
        duets.withhold(&mut comparisons, test, deciding.named);
        deciding.keep(&comparisons);
    }
    let standings: Vec<Standing> = pairs.iter().map(|pair| pair.standing(samples)).collect();
    bar(&mut comparisons, &pairs, &standings);
    let drafts = main_effects(plan, cells, &all);
    let mut main_effects = judge(drafts, &margins, &|_| false, test);
    duets.inspect(|duets| duets.withhold(&mut main_effects, test, deciding.named));
    bar_levels(&mut main_effects, &pairs, &standings);
    let judged = || comparisons.iter().filter(|c| c.p.is_some());
    let asked = asked(&pairs, &standings, has_variants, &all);
    let inference = Inference {
        smallest_relevant: smallest,
        asked: study.trials > 1 || study.control || has_variants,
        confidence: 1.0 - ALPHA,
        least_blocks: Exchange::least_blocks(study.duet),
        judged: judged().count(),
        deciding: judged().filter(|c| c.decides).count(),
        pairs_left_out,
        claims,
    };
    let answer = answer::of_run(study, has_variants, &deciding, &asked, &comparisons);
    Differences {
        comparisons,
        main_effects,
        control,
        inference,
        answer,
    }
}

/// The compared pairs, and the number of pairs beyond the maximum.
fn compared_pairs<'a>(plan: &'a Plan, cells: &'a [CellSummary]) -> (Vec<Pair<'a>>, usize) {
    let mut pairs = pairs(plan, cells);
    let left_out = pairs.len().saturating_sub(MOST_PAIRS);
    pairs.truncate(MOST_PAIRS);
    (pairs, left_out)
}

/// The pairs that decide the answer: those of variants, if there are any.
fn asked<'a>(
    pairs: &'a [Pair<'_>],
    standings: &'a [Standing],
    has_variants: bool,
    all: &Trials<'_>,
) -> Vec<AskedPair<'a>> {
    let is_asked =
        |(pair, _): &(&Pair<'_>, &Standing)| !has_variants || pair.factor.name == VARIANT;
    let pairs = pairs.iter().zip(standings).filter(is_asked);
    let asked = pairs.map(|(pair, standing)| AskedPair {
        a: &pair.a.label,
        b: &pair.b.label,
        blocks: all.blocks_of(pair),
        same_users: pair.a.users == pair.b.users,
        standing,
    });
    asked.collect()
}

/// Removes good verdicts from comparisons of pairs whose samples are incomplete.
fn bar(comparisons: &mut [Comparison], pairs: &[Pair<'_>], standings: &[Standing]) {
    for (pair, standing) in pairs.iter().zip(standings) {
        let Some(why) = standing.reason() else {
            continue;
        };
        let of_pair = |one: &&mut Comparison| one.a == pair.a.label && one.b == pair.b.label;
        for one in comparisons.iter_mut().filter(of_pair) {
            one.bar(why);
        }
    }
}

/// The same for levels of a factor, each over several pairs.
fn bar_levels(effects: &mut [Comparison], pairs: &[Pair<'_>], standings: &[Standing]) {
    for (pair, standing) in pairs.iter().zip(standings) {
        let Some(why) = standing.reason() else {
            continue;
        };
        let level_of = pair.b.cell.get(&pair.factor.name);
        let name = level_of.map(|of| format!("{} {}", pair.factor.name, level(of)));
        let of_level = |one: &&mut Comparison| Some(&one.b) == name.as_ref();
        for one in effects.iter_mut().filter(of_level) {
            one.bar(why);
        }
    }
}

/// Compares the control with the cell that it repeats, paired by block like any two cells.
fn control(cells: &[CellSummary], trials: &Trials<'_>) -> Vec<Draft> {
    let cell = cells.iter().find(|cell| trials.has_control(&cell.cell));
    let Some(cell) = cell else {
        return Vec::new();
    };
    let drafts = Measure::ALL.into_iter().filter_map(|measure| {
        let names = Names {
            factor: "control".to_owned(),
            a: cell.label.clone(),
            b: format!("{} (control)", cell.label),
        };
        trials.draft_of(names, measure, |block| {
            let a = trials.value(cell, block, measure)?;
            let b = trials.of_control(&cell.cell, block, measure)?;
            Some(vec![(a, b, measure.scaled(b)? - measure.scaled(a)?)])
        })
    });
    drafts.collect()
}

/// By measure, the study's smallest relevant difference, or the far end of the control's interval if that is larger:
/// the same system under two labels seemed to differ by as much, so no smaller difference can be claimed.
fn claims(smallest: f64, control: &[Comparison]) -> Vec<Claim> {
    let far = |one: &Comparison| {
        let (low, high) = one.interval?;
        Some(low.ln().abs().max(high.ln().abs()).exp_m1())
    };
    control
        .iter()
        .filter_map(|one| {
            Some(Claim {
                metric: one.metric,
                smallest_difference: one.metric.matters(smallest).max(far(one)?),
            })
        })
        .collect()
}

/// Two cells that differ in one factor.
#[derive(Clone, Copy)]
pub(crate) struct Pair<'a> {
    factor: &'a Factor,
    pub(crate) a: &'a CellSummary,
    pub(crate) b: &'a CellSummary,
}

impl Pair<'_> {
    /// The completeness of its sample.
    fn standing(&self, samples: &[CellSample]) -> Standing {
        let of = |cell: &CellSummary| {
            let mut all = samples.iter();
            all.find(|one| one.cell == cell.cell && one.users == cell.users)
        };
        let side = |cell: &'_ CellSummary| (of(cell), cell.label.clone());
        let ((a, name_a), (b, name_b)) = (side(self.a), side(self.b));
        Standing::of((a, &name_a), (b, &name_b), Consumer::Run)
    }

    pub(crate) fn names(&self) -> Names {
        Names {
            factor: self.factor.name.clone(),
            a: self.a.label.clone(),
            b: self.b.label.clone(),
        }
    }
}

pub(crate) struct Names {
    factor: String,
    a: String,
    b: String,
}

/// Each cell with its baseline in each factor, variants first, then factors and cells in the order of the study. A
/// search has no pairs: it chooses loads by earlier results, so no two trials make a pair. In a duet, only variants ran
/// at the same time.
pub(crate) fn pairs<'a>(plan: &'a Plan, cells: &'a [CellSummary]) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    if plan.search.is_some() {
        return pairs;
    }
    let is_compared = |factor: &&Factor| !plan.question.duet || factor.name == VARIANT;
    let mut factors: Vec<&Factor> = plan.question.matrix.iter().filter(is_compared).collect();
    factors.sort_by_key(|factor| factor.name != VARIANT);
    for factor in factors {
        for b in cells {
            let Some(baseline) = baseline(factor, &b.cell) else {
                continue;
            };
            let a = cells.iter().find(|cell| cell.cell == baseline);
            pairs.extend(a.map(|a| Pair { factor, a, b }));
        }
    }
    pairs
}

/// The cell with the factor's first level; `None` if `cell` has that level itself.
pub(crate) fn baseline(factor: &Factor, cell: &Cell) -> Option<Cell> {
    let first = factor.levels.first()?;
    let own = cell.get(&factor.name)?;
    (own != first).then(|| {
        let mut baseline = cell.clone();
        baseline.insert(factor.name.clone(), first.clone());
        baseline
    })
}

/// Throughput follows the number of users, so it is only compared between equal numbers.
fn measures(all: &[Measure], pairs: &[Pair<'_>]) -> Vec<Measure> {
    let same_users = pairs.iter().all(|pair| pair.a.users == pair.b.users);
    let compared = |measure: &&Measure| same_users || **measure != Measure::Throughput;
    all.iter().filter(compared).copied().collect()
}

/// Compares the levels of each factor, over all pairs that differ in it.
fn main_effects(plan: &Plan, cells: &[CellSummary], trials: &Trials<'_>) -> Vec<Draft> {
    if plan.question.matrix.len() < 2 {
        return Vec::new();
    }
    let pairs = pairs(plan, cells);
    let mut drafts = Vec::new();
    for factor in &plan.question.matrix {
        for to in factor.levels.iter().skip(1) {
            let of_level: Vec<Pair<'_>> = pairs
                .iter()
                .filter(|pair| pair.factor.name == factor.name)
                .filter(|pair| pair.b.cell.get(&factor.name) == Some(to))
                .copied()
                .collect();
            let name = |level_of: &Level| format!("{} {}", factor.name, level(level_of));
            drafts.extend(
                measures(&Measure::ALL, &of_level)
                    .into_iter()
                    .filter_map(|measure| {
                        let names = Names {
                            factor: factor.name.clone(),
                            a: name(factor.levels.first()?),
                            b: name(to),
                        };
                        trials.draft(names, measure, &of_level)
                    }),
            );
        }
    }
    drafts
}

/// The counted trials, by block.
pub(crate) struct Trials<'a> {
    valid: Vec<&'a TrialAnalysis>,
    pub(crate) blocks: u32,
    /// The trials that ran at the same time.
    duets: Option<&'a Duets>,
}

impl<'a> Trials<'a> {
    fn new(trials: &'a [TrialAnalysis]) -> Self {
        Self::that(trials, |trial| trial.verdict == Verdict::Valid)
    }

    /// The trials for which `counts` is true.
    pub(crate) fn that(
        trials: &'a [TrialAnalysis],
        counts: impl Fn(&TrialAnalysis) -> bool,
    ) -> Self {
        Self {
            valid: trials.iter().filter(|trial| counts(trial)).collect(),
            blocks: trials
                .iter()
                .map(|trial| trial.block + 1)
                .max()
                .unwrap_or(0),
            duets: None,
        }
    }

    /// The trial of a cell in a block.
    pub(crate) fn at(&self, cell: &CellSummary, block: u32) -> Option<&'a TrialAnalysis> {
        let mut valid = self.valid.iter();
        let is_of = |trial: &&&TrialAnalysis| {
            trial.block == block && trial.cell == cell.cell && !trial.control
        };
        valid.find(is_of).copied()
    }

    fn value(&self, cell: &CellSummary, block: u32, measure: Measure) -> Option<f64> {
        measure.of(self.at(cell, block)?)
    }

    /// Blocks with a trial of both cells.
    fn blocks_of(&self, pair: &Pair<'_>) -> usize {
        let has = |block: u32, cell: &CellSummary| self.at(cell, block).is_some();
        let both = |block: &u32| has(*block, pair.a) && has(*block, pair.b);
        (0..self.blocks).filter(both).count()
    }

    fn has_control(&self, cell: &Cell) -> bool {
        let mut valid = self.valid.iter();
        valid.any(|trial| trial.control && trial.cell == *cell)
    }

    fn of_control(&self, cell: &Cell, block: u32, measure: Measure) -> Option<f64> {
        let mut valid = self.valid.iter();
        let found =
            |trial: &&&TrialAnalysis| trial.control && trial.block == block && trial.cell == *cell;
        measure.of(valid.find(found)?)
    }

    /// Returns true if a trial of a cell has no value because some operations took too long. Without its block, only
    /// fast trials would be compared.
    fn is_cut(&self, cell: &CellSummary, measure: Measure) -> bool {
        let mut of_cell = self.valid.iter().filter(|trial| trial.cell == cell.cell);
        of_cell.any(|trial| measure.is_cut(trial))
    }

    /// One comparison over all of `pairs`. A block counts if it has every one of them, so that the means of all blocks
    /// are over the same cells. `None` without any block, and if times are bounds.
    pub(crate) fn draft(
        &self,
        names: Names,
        measure: Measure,
        pairs: &[Pair<'_>],
    ) -> Option<Draft> {
        let cells = || pairs.iter().flat_map(|pair| [pair.a, pair.b]);
        if cells().any(|cell| self.is_cut(cell, measure)) {
            return None;
        }
        let both = |block: u32| {
            let mut cells = cells();
            cells.all(|cell| self.at(cell, block).is_some())
        };
        let blocks = (0..self.blocks).filter(|block| both(*block)).count();
        let draft = self.draft_of(names, measure, |block| {
            pairs
                .iter()
                .map(|pair| {
                    let (of_a, of_b) = (self.at(pair.a, block)?, self.at(pair.b, block)?);
                    let (a, b) = (measure.of(of_a)?, measure.of(of_b)?);
                    let difference = match self.duets {
                        Some(duets) => duets.difference(of_a, of_b, measure)?,
                        None => measure.scaled(b)? - measure.scaled(a)?,
                    };
                    Some((a, b, difference))
                })
                .collect()
        })?;
        let none = blocks.saturating_sub(draft.blocks());
        Some(Draft {
            missing: (none > 0).then(|| {
                format!(
                    "{none} of {} have no {}",
                    plural(blocks, "block"),
                    measure.name()
                )
            }),
            ..draft
        })
    }

    /// The same for values of *a* and *b* with the log of their ratio, as `of_block` returns them.
    fn draft_of(
        &self,
        names: Names,
        measure: Measure,
        of_block: impl Fn(u32) -> Option<Vec<(f64, f64, f64)>>,
    ) -> Option<Draft> {
        let mut draft = Draft {
            names,
            measure,
            by_block: Vec::new(),
            sums: (0.0, 0.0),
            missing: None,
        };
        for block in 0..self.blocks {
            let values = of_block(block).filter(|values| !values.is_empty());
            draft.by_block.push(values.map(|values| {
                let n = as_f64(values.len() as u64);
                draft.sums.0 += values.iter().map(|v| v.0).sum::<f64>() / n;
                draft.sums.1 += values.iter().map(|v| v.1).sum::<f64>() / n;
                values.iter().map(|v| v.2).sum::<f64>() / n
            }));
        }
        // Without failures there are no error rates to compare.
        let nothing = measure.is_rate() && draft.sums == (0.0, 0.0);
        (draft.blocks() > 0 && !nothing).then_some(draft)
    }
}

/// A comparison before judgement.
pub(crate) struct Draft {
    names: Names,
    measure: Measure,
    /// The log ratio, if the block has both.
    pub(crate) by_block: Vec<Option<f64>>,
    /// Values of *a* and *b* over the counted blocks.
    sums: (f64, f64),
    /// Why a good verdict is impossible: blocks with valid trials of both have no such figure.
    missing: Option<String>,
}

impl Draft {
    fn blocks(&self) -> usize {
        self.by_block.iter().flatten().count()
    }
}

/// Returns true if the first of these rows of log ratios is a difference when all rows decide together.
#[cfg(test)]
pub(crate) fn first_is_shown(rows: &[Vec<f64>], relevant: f64) -> bool {
    let draft = |row: &Vec<f64>| Draft {
        names: Names {
            factor: "n".to_owned(),
            a: "a".to_owned(),
            b: "b".to_owned(),
        },
        measure: Measure::P95,
        by_block: row.iter().copied().map(Some).collect(),
        sums: (1.0, 1.0),
        missing: None,
    };
    let drafts = rows.iter().map(draft).collect();
    let test = Exchange::of_signs(1);
    let judged = judge(drafts, &|_| Margins::of(relevant), &|_| true, test);
    judged.first().is_some_and(Comparison::is_shown)
}

/// The deciding comparisons are tested together, and so are the others: exploratory comparisons cost the answer no
/// power.
pub(crate) fn judge(
    drafts: Vec<Draft>,
    margins: &dyn Fn(Measure) -> Margins,
    decides: &dyn Fn(&Draft) -> bool,
    test: Exchange<'_>,
) -> Vec<Comparison> {
    let mut adjusted = [true, false].map(|deciding| {
        let family: Vec<Vec<Option<f64>>> = drafts
            .iter()
            .filter(|draft| test.can_show(&draft.by_block) && decides(draft) == deciding)
            .map(|draft| draft.by_block.clone())
            .collect();
        test.p(&family).into_iter()
    });
    drafts
        .into_iter()
        .map(|draft| {
            let decides = decides(&draft);
            let family = &mut adjusted[usize::from(!decides)];
            let enough = test.can_show(&draft.by_block);
            let p = enough.then(|| family.next()).flatten();
            let margins = margins(draft.measure);
            let compared = comparison(draft, p.map(|p| (p.joint, p.single)), margins, test);
            Comparison {
                decides,
                ..compared
            }
        })
        .collect()
}

/// A comparison without a verdict yet.
fn comparison(
    draft: Draft,
    p: Option<(f64, f64)>,
    margins: Margins,
    test: Exchange<'_>,
) -> Comparison {
    let blocks = draft.blocks();
    let log_ratio = test.centre(&draft.by_block);
    let bounds = test.interval(&draft.by_block, ALPHA);
    let one_sided = test.interval(&draft.by_block, 2.0 * ALPHA);
    let judged = p.map(|(joint, _)| {
        let compared = Compared {
            log_ratio,
            one_sided,
            p: joint,
            blocks,
        };
        let verdict = word(&compared, draft.measure.better(), margins);
        Difference::of(verdict, draft.measure)
    });
    let n = as_f64(blocks as u64);
    let (mean_a, mean_b) = (draft.sums.0 / n, draft.sums.1 / n);
    let mut compared = Comparison {
        a: draft.names.a,
        b: draft.names.b,
        factor: draft.names.factor,
        metric: draft.measure,
        blocks,
        mean_a,
        mean_b,
        difference: mean_b - mean_a,
        ratio: draft.measure.ratio(log_ratio),
        interval: bounds.is_bounded().then(|| {
            [bounds.low, bounds.high]
                .map(|end| draft.measure.ratio(end))
                .into()
        }),
        p: p.map(|p| p.0),
        p_single: p.map(|p| p.1),
        smallest_difference: margins.claims,
        matters: margins.matters,
        decides: false,
        run_spread: None,
        verdict: judged,
        worse_at_most: WorseAtMost::of(judged, draft.measure, one_sided),
        reason: judged.is_none().then(|| too_few(test, blocks)),
    };
    if let Some(why) = &draft.missing {
        compared.bar(why);
    }
    compared
}

/// The reason for no verdict with so few blocks.
fn too_few(test: Exchange<'_>, count: usize) -> String {
    let least = Exchange::least_blocks(test.swapped.is_some());
    let (blocks, alpha) = (plural(count, "paired block"), times(ALPHA));
    if test.swapped.is_some() {
        return format!(
            "with {blocks} the sides can't be exchanged often enough for p ≤ {alpha}: {least} are needed, \
             half of them on each side"
        );
    }
    let p = 2.0 / 2f64.powf(as_f64(count as u64));
    format!(
        "with {blocks} chance alone gives p ≥ {}, and {least} blocks are the fewest that can go below {alpha}",
        times(p)
    )
}

/// The smallest relevant difference of a measure: the control may show that small differences can't be claimed.
#[must_use]
pub fn margins(claims: &[Claim], smallest: f64, measure: Measure) -> Margins {
    let matters = measure.matters(smallest);
    let claim = claims.iter().find(|claim| claim.metric == measure);
    Margins {
        matters,
        claims: claim.map_or(matters, |claim| claim.smallest_difference),
    }
}
