//! The profiles of cells compared: which functions and call paths take more or less CPU time per transaction.
//!
//! Profiles are paired by block, as in all comparisons. The permutation test flips the signs of blocks, also in a duet,
//! where the difference between the sides counts as noise. Each pair of cells has up to some thousands of columns: own
//! and total samples of functions, and samples of call paths. All pairs of a run are one family, so the p of each
//! column is joint over all of them. The comparison is exploratory: it explains a difference, and never decides the
//! result of a run.
//!
//! Columns contain each other: a difference in a function is also one in its callers. So flagged columns are reduced to
//! the most specific ones, the findings (`reduce`), and all stacks without a finding are judged once more, together.

mod of_run;
#[cfg(test)]
mod tests;
mod words;

use lab_profile::columns::{Column, Names, Part};
use lab_profile::differences::{
    Flagged, MOST_FLAGGED, Moved, Reduced, Sides, Table, Tested, called_by, mean, parts, reduce,
};
use lab_stats::duet;
use lab_stats::moderated::{self, MOST_COLUMNS, Pair, moderated};
use lab_stats::paired::{Adjusted, interval, log_ratio, max_t_scaled, sign_flip_p};
use lab_stats::verdict::{ALPHA, Better, Compared, LEAST_BLOCKS, Margins, word};

use crate::model::{
    CalleePart, CpuDifference, Difference, FunctionDifference, Measure, MovedFunction,
    PathDifference, ProfileDifference, RatioInterval, RestDifference, SamplesOf,
};
use crate::power::{OF_SMALLEST, detectable_in_function};
pub(crate) use of_run::differences;
pub(crate) use words::{MOST_NAMED, more};

/// The maximum number of columns of a run: with more pairs of cells, each has fewer.
const MOST_OF_FAMILY: usize = 10_000;
/// The share of the function for which a study's smallest detectable difference is given.
const USUAL_SHARE: f64 = 0.01;
/// The maximum part of the CPU time in functions without names for which builds are compared.
const MOST_UNNAMED: f64 = 0.1;
/// The maximum number of pairs of cells in a run's findings.
const MOST_SENTENCES: usize = 5;
/// The maximum number of coloured call paths.
const MOST_PATHS: usize = 300;

/// The parameters of a comparison of profiles.
#[derive(Debug, Clone, Copy)]
struct Rules<'a> {
    /// The seed of the random sign patterns.
    seed: u64,
    /// The smallest relevant difference of the whole, as a part.
    smallest: f64,
    /// By block, for duets: whether the variants have changed sides.
    swapped: Option<&'a [bool]>,
}

impl Rules<'_> {
    /// The smallest relevant difference of a function, as a part of the whole.
    fn least(self) -> f64 {
        OF_SMALLEST * self.smallest
    }

    /// The reason why the functions of two cells can't be compared.
    fn reason(self, table: &Table) -> Option<String> {
        let have = table.blocks.len();
        if have < LEAST_BLOCKS {
            let have = match have {
                1 => "1 block has".to_owned(),
                n => format!("{n} blocks have"),
            };
            return Some(format!(
                "only {have} a valid profile of both cells, and at least {LEAST_BLOCKS} are needed"
            ));
        }
        if let Some(swapped) = self.swapped {
            let side = |block: &usize| swapped.get(*block).copied().unwrap_or_default();
            let sides: Vec<bool> = table.blocks.iter().map(side).collect();
            if !duet::can_show(&sides) {
                let least = duet::LEAST_BLOCKS;
                return Some(format!(
                    "a duet needs at least {least} blocks with a valid profile of both variants, half of them on each side"
                ));
            }
        }
        (table.unnamed > MOST_UNNAMED).then(|| {
            format!(
                "{:.0} % of the CPU time is in functions without names, which can't be told apart in different builds; keep \
                 the symbols of the program (`strip = false`), or install its debug symbols",
                100.0 * table.unnamed
            )
        })
    }
}

/// The findings of the run: the functions that differ most.
pub(crate) fn sentences(differences: &[ProfileDifference]) -> Vec<String> {
    let with_finding = differences.iter().filter(|one| !one.findings.is_empty());
    with_finding
        .take(MOST_SENTENCES)
        .map(words::summary)
        .collect()
}

/// Compares the profiles of all pairs of cells. Pairs without a block that has both are skipped.
fn compare(pairs: &[Sides<'_>], names: &Names, rules: Rules<'_>) -> Vec<ProfileDifference> {
    let tables: Vec<(&Sides<'_>, Table)> = pairs
        .iter()
        .filter_map(|sides| Some((sides, Table::of(sides, names)?)))
        .collect();
    let is_tested = |table: &Table| rules.reason(table).is_none();
    let count = tables.iter().filter(|(_, table)| is_tested(table)).count();
    let most = MOST_COLUMNS.min(MOST_OF_FAMILY / count.max(1));
    let tested: Vec<Vec<Tested<'_>>> = tables
        .iter()
        .map(|(_, table)| match is_tested(table) {
            true => table.tested(most),
            false => Vec::new(),
        })
        .collect();
    let mut p = family(&tables, &tested, rules.seed).into_iter();
    let all = tables.iter().zip(&tested);
    all.map(|((sides, table), tested)| {
        let tested: Vec<_> = tested.iter().zip(p.by_ref()).collect();
        let found = Found {
            table,
            names,
            rules,
        };
        found.difference(sides, &tested)
    })
    .collect()
}

/// p of all columns of all pairs, tested together.
fn family(tables: &[(&Sides<'_>, Table)], tested: &[Vec<Tested<'_>>], seed: u64) -> Vec<Adjusted> {
    let (mut rows, mut scales) = (Vec::new(), Vec::new());
    for ((sides, table), tested) in tables.iter().zip(tested) {
        let columns: Vec<&[Pair]> = tested.iter().map(|one| one.pairs).collect();
        let of_pair = moderated(&columns, &table.factor);
        for differences in of_pair.differences {
            let mut row = vec![None; sides.blocks.len()];
            for (block, difference) in table.blocks.iter().zip(differences) {
                row[*block] = Some(difference);
            }
            rows.push(row);
        }
        scales.extend(of_pair.scales);
    }
    max_t_scaled(&rows, &scales, seed)
}

/// A pair of cells whose columns were tested.
struct Found<'a> {
    table: &'a Table,
    names: &'a Names,
    rules: Rules<'a>,
}

impl Found<'_> {
    fn difference(
        &self,
        sides: &Sides<'_>,
        tested: &[(&Tested<'_>, Adjusted)],
    ) -> ProfileDifference {
        let table = self.table;
        let cpu = self.cpu();
        let least = self.rules.least() * cpu.us_a / table.us_per_sample;
        let differing = self.differing(tested, least);
        let mut paths = Vec::new();
        for (one, _, difference) in &differing {
            if paths.len() < MOST_PATHS {
                paths.extend(self.paths(one, *difference));
            }
        }
        paths.sort_by(|a: &PathDifference, b| b.us.abs().total_cmp(&a.us.abs()));
        paths.truncate(MOST_PATHS);
        let flagged = differing.into_iter().take(MOST_FLAGGED);
        let flagged = flagged.map(|(one, p, difference)| {
            Flagged::new(table, one.column, (p, one.pairs, difference))
        });
        let reduced = reduce(table, flagged.collect());
        let none = tested.is_empty().then(|| {
            "no function has enough samples; take longer holds, or a higher `rate`".to_owned()
        });
        let reason = self.rules.reason(table).or(none);
        let is_whole = sides.blocks.iter().all(Option::is_some);
        let rest = self.rest(&reduced, is_whole);
        let moved = reduced.moved.iter();
        let mut difference = ProfileDifference {
            a: sides.a.to_owned(),
            b: sides.b.to_owned(),
            blocks: table.blocks.len(),
            samples: table.samples,
            tested: tested.len(),
            cpu,
            common: self.common(rest.as_ref()),
            findings: reduced
                .findings
                .iter()
                .map(|one| self.finding(one))
                .collect(),
            moved: moved.map(|one| self.moved(one)).collect(),
            rest,
            detectable: detectable_in_function(
                USUAL_SHARE,
                table.samples,
                table.blocks.len(),
                self.rules.smallest,
            ),
            paths,
            tree: None,
            reason,
            sentences: Vec::new(),
        };
        difference.sentences =
            words::sentences(&difference, self.rules.smallest, self.rules.least());
        difference
    }

    /// The columns that differ beyond noise by `least` samples or more, with their mean differences, the largest first.
    fn differing<'t, 'p>(
        &self,
        tested: &[(&'t Tested<'p>, Adjusted)],
        least: f64,
    ) -> Vec<(&'t Tested<'p>, Adjusted, f64)> {
        let factor = &self.table.factor;
        let difference = |one: &Tested<'_>| mean(&moderated::differences(one.pairs, factor));
        let mut differing: Vec<_> = tested
            .iter()
            .filter(|(_, p)| p.joint <= ALPHA)
            .map(|(one, p)| (*one, *p, difference(one)))
            .filter(|(_, _, difference)| difference.abs() >= least)
            .collect();
        differing.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()));
        differing
    }

    fn name(&self, function: usize) -> String {
        self.names.name(function).to_owned()
    }

    /// All functions together, as measured.
    fn cpu(&self) -> CpuDifference {
        let whole = &self.table.whole;
        let of = |side: fn(&Pair) -> f64| mean(&whole.iter().map(side).collect::<Vec<f64>>());
        let differences: Vec<f64> = whole.iter().map(|pair| pair.b - pair.a).collect();
        let bounds = interval(&differences, ALPHA, self.rules.seed);
        CpuDifference {
            us_a: of(|pair| pair.a),
            us_b: of(|pair| pair.b),
            us: mean(&differences),
            us_interval: bounds.ends(),
        }
    }

    /// The common factor, if it is relevant and beyond noise, and if the functions without a finding confirm it
    /// together.
    fn common(&self, rest: Option<&RestDifference>) -> Option<RatioInterval> {
        let factor = &self.table.factor;
        let (low, high) = rest?.ratio.interval?;
        let is_up = mean(factor) > 0.0;
        let agrees = if is_up { low > 1.0 } else { high < 1.0 };
        let is_shown = sign_flip_p(factor, self.rules.seed) <= ALPHA;
        let matters = mean(factor).abs() >= self.rules.least().ln_1p();
        (agrees && is_shown && matters).then(|| self.ratio(factor))
    }

    /// Log ratios by block as a ratio with its interval.
    fn ratio(&self, logs: &[f64]) -> RatioInterval {
        let bounds = interval(logs, ALPHA, self.rules.seed);
        RatioInterval {
            ratio: mean(logs).exp(),
            interval: bounds.ends().map(|(low, high)| (low.exp(), high.exp())),
        }
    }

    fn finding(&self, one: &Flagged) -> FunctionDifference {
        let table = self.table;
        let differences = table.differences(|_, stack| stack.is_in(one.column));
        let (us, us_interval) = table.us(&differences, self.rules.seed);
        let (own_part, callees) = parts(table, one);
        FunctionDifference {
            function: self.name(one.column.function),
            of: match one.column.of {
                Part::Own => SamplesOf::Own,
                Part::Total => SamplesOf::Total,
                Part::Path => SamplesOf::Path,
            },
            called_by: called_by(table, one).map(|function| self.name(function)),
            us,
            us_interval,
            p: one.p.joint,
            own_part,
            callees: callees
                .into_iter()
                .map(|(function, part)| CalleePart {
                    function: self.name(function),
                    part,
                })
                .collect(),
        }
    }

    fn moved(&self, one: &Moved) -> MovedFunction {
        let us_per_sample = self.table.us_per_sample;
        MovedFunction {
            from: self.name(one.less.function),
            to: self.name(one.more.function),
            within: self.name(one.within),
            us_less: -one.differences.0 * us_per_sample,
            us_more: one.differences.1 * us_per_sample,
        }
    }

    /// Call paths of a flagged column, with their difference.
    fn paths(&self, one: &Tested<'_>, difference: f64) -> Vec<PathDifference> {
        let path = |column: &Column| {
            let mut stacks = self.table.stacks.iter();
            let stack = stacks.find(|stack| stack.is_in(*column))?;
            let functions = stack.frames[..column.depth].iter();
            Some(PathDifference {
                path: functions.map(|function| self.name(*function)).collect(),
                us: difference * self.table.us_per_sample,
            })
        };
        one.paths.iter().filter_map(path).collect()
    }

    /// Judges all stacks without a finding; `None` with too few blocks, or if a block has no such stack. If trials are
    /// missing (`is_whole` is false), only "uses more" stands and all else is inconclusive: the missing trials may be
    /// those that differed.
    fn rest(&self, reduced: &Reduced, is_whole: bool) -> Option<RestDifference> {
        let table = self.table;
        if self.rules.reason(table).is_some() {
            return None;
        }
        let rest = table.samples_of(|at, _| reduced.is_rest(at));
        let logs: Option<Vec<f64>> = rest.iter().map(|pair| log_ratio(pair.a, pair.b)).collect();
        let logs = logs?;
        let seed = self.rules.seed;
        let compared = Compared {
            log_ratio: mean(&logs),
            one_sided: interval(&logs, 2.0 * ALPHA, seed),
            p: sign_flip_p(&logs, seed),
            blocks: logs.len(),
        };
        let verdict = word(&compared, Better::Lower, Margins::of(self.rules.smallest));
        let verdict = match Difference::of(verdict, Measure::Cpu) {
            Difference::UsesMore => Difference::UsesMore,
            _ if !is_whole => Difference::CouldNotTell,
            verdict => verdict,
        };
        Some(RestDifference {
            ratio: self.ratio(&logs),
            verdict,
        })
    }
}
