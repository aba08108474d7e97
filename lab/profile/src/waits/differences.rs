//! Finds waits that differ between two variants: columns by class and by function, tested together.
//!
//! Waits for work are excluded, since a thread waits for work whenever there is none. No common factor is
//! removed, since an increase of all waits is a result. By chance alone, the variance of a column's sum is the sum of
//! the squares of its intervals.

use std::collections::{BTreeMap, BTreeSet};

use lab_stats::moderated::{LEAST_SAMPLES, MOST_COLUMNS, moderated_by};
use lab_stats::paired::{interval, max_t_scaled, mean};
use lab_stats::verdict::ALPHA;
use schemars::JsonSchema;
use serde::Serialize;

use super::code::{Code, Codes};
use super::patterns::Patterns;
use super::summary::{Per, Trial};
use crate::class::Class;

/// Most findings of a pair that are kept.
const MOST_FINDINGS: usize = 100;

/// The waits of one trial by code, without those for work.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    columns: BTreeMap<Code, Column>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Column {
    us: f64,
    /// The sum of the squares of all intervals.
    squares: f64,
    count: f64,
}

impl Columns {
    /// Returns the waits of a trial; `None` if its stacks weren't recorded.
    pub fn of(trial: &Trial<'_>, per: Per, patterns: &Patterns) -> Option<Self> {
        let divisor = trial.divisor(per, trial.recorded_seconds)?;
        let profile = trial.profile?;
        let mut codes = Codes::new(profile, patterns);
        let mut columns: BTreeMap<Code, Column> = BTreeMap::new();
        for sample in &profile.samples {
            let code = codes.of(sample);
            if code.class.is_waiting_for_work() || sample.count == 0 || code.is_placeholder() {
                continue;
            }
            let column = columns.entry(code).or_default();
            let us = sample.ns as f64 / 1e3 / divisor;
            column.us += us;
            column.squares += us * us / sample.count as f64;
            column.count += sample.count as f64;
        }
        Some(Self { columns })
    }

    /// The waits of a trial by code: time in µs per transaction, the sum of the squares of all intervals, and their number.
    pub fn of_sums(sums: impl IntoIterator<Item = (Code, (f64, f64, f64))>) -> Self {
        let column = |(us, squares, count)| Column { us, squares, count };
        let columns = sums.into_iter().map(|(code, sums)| (code, column(sums)));
        Self {
            columns: columns.collect(),
        }
    }

    fn whole(&self) -> f64 {
        self.columns.values().map(|column| column.us).sum()
    }
}

/// Two cells, and the waits of both by block; `None` where one has no valid trial with waits.
#[derive(Clone, Debug)]
pub struct Sides<'a> {
    /// The baseline.
    pub a: &'a str,
    /// The cell compared with it.
    pub b: &'a str,
    /// By block.
    pub blocks: Vec<Option<(&'a Columns, &'a Columns)>>,
}

/// The parameters of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The seed of the random sign patterns.
    pub seed: u64,
    /// The smallest difference that matters, as a part of all waits of the baseline that aren't for work.
    pub least: f64,
    /// The fewest blocks that show a difference.
    pub least_blocks: usize,
    /// The unit of reference of times.
    pub per: Per,
}

/// The differences between the waits of two cells. Times are in µs of all threads together, without waits for work.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WaitDifference {
    /// The label of the baseline.
    pub a: String,
    /// The label of the cell that is compared with it.
    pub b: String,
    /// The number of blocks with a valid trial of both cells.
    pub blocks: usize,
    /// The unit of reference of times: a transaction or a second.
    pub per: Per,
    /// The number of tested waits.
    pub tested: usize,
    /// The mean time of all waits of *a*, in µs.
    pub us_a: f64,
    /// The mean time of all waits of *b*, in µs.
    pub us_b: f64,
    /// The mean difference of all waits by block, in µs.
    pub us: f64,
    /// The 95 % interval of `us`.
    pub us_interval: Option<(f64, f64)>,
    /// The waits that differ beyond noise, the largest difference first, at most 100.
    pub findings: Vec<CodeDifference>,
    /// The reason why waits are not compared; absent if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The results in sentences; the first is about all waits together.
    pub sentences: Vec<String>,
}

/// A wait that differs beyond noise, in µs of all threads together.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CodeDifference {
    /// The function nearest to the wait.
    pub function: String,
    /// The class of the wait.
    pub class: Class,
    /// The mean time of *a*.
    pub us_a: f64,
    /// The mean time of *b*.
    pub us_b: f64,
    /// The mean difference by block.
    pub us: f64,
    /// The 95 % interval of `us`.
    pub us_interval: Option<(f64, f64)>,
    /// The p-value over all waits of all pairs of cells.
    pub p: f64,
}

/// The columns of a pair of cells.
struct Table<'a> {
    sides: &'a Sides<'a>,
    blocks: Vec<usize>,
    codes: Vec<&'a Code>,
    /// By column and block: a, b.
    values: Vec<Vec<(f64, f64)>>,
    variances: Vec<f64>,
    whole: Vec<(f64, f64)>,
}

impl<'a> Table<'a> {
    fn of(sides: &'a Sides<'a>) -> Option<Self> {
        let both = sides.blocks.iter().enumerate();
        let both = both.filter_map(|(block, both)| Some((block, (*both)?)));
        let (blocks, both): (Vec<usize>, Vec<(&Columns, &Columns)>) = both.unzip();
        if both.is_empty() {
            return None;
        }
        let all: BTreeSet<&Code> = both
            .iter()
            .flat_map(|(a, b)| a.columns.keys().chain(b.columns.keys()))
            .collect();
        let mut columns: Vec<(f64, &Code)> = all
            .into_iter()
            .map(|code| {
                let of = |one: &Columns| one.columns.get(code).map_or(0.0, |column| column.count);
                (both.iter().map(|(a, b)| of(a) + of(b)).sum(), code)
            })
            .filter(|(count, _)| *count >= LEAST_SAMPLES * 2.0 * both.len() as f64)
            .collect();
        columns.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        columns.truncate(MOST_COLUMNS);
        let codes: Vec<&Code> = columns.into_iter().map(|(_, code)| code).collect();
        let column = |one: &Columns, code: &Code| one.columns.get(code).copied();
        let of = |one: &Columns, code: &Code| column(one, code).unwrap_or_default();
        Some(Self {
            sides,
            blocks,
            values: codes
                .iter()
                .map(|code| {
                    let pair = |(a, b): &(&Columns, &Columns)| (of(a, code).us, of(b, code).us);
                    both.iter().map(pair).collect()
                })
                .collect(),
            variances: codes
                .iter()
                .map(|code| {
                    let both = both.iter();
                    both.map(|(a, b)| of(a, code).squares + of(b, code).squares)
                        .sum()
                })
                .collect(),
            whole: both.iter().map(|(a, b)| (a.whole(), b.whole())).collect(),
            codes,
        })
    }

    fn reason(&self, least: usize) -> Option<String> {
        let have = self.blocks.len();
        let blocks = if have == 1 {
            "block has"
        } else {
            "blocks have"
        };
        (have < least).then(|| {
            format!(
                "only {have} {blocks} recorded waits of both cells, and at least {least} are needed"
            )
        })
    }

    fn differences(&self) -> Vec<Vec<f64>> {
        self.values.iter().map(|row| differences(row)).collect()
    }
}

fn differences(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(a, b)| b - a).collect()
}

fn sides_of(pairs: &[(f64, f64)]) -> (f64, f64) {
    let of = |side: fn(&(f64, f64)) -> f64| pairs.iter().map(side).collect::<Vec<f64>>();
    let mean = |values: Vec<f64>| mean(&values).unwrap_or_default();
    (mean(of(|pair| pair.0)), mean(of(|pair| pair.1)))
}

/// Compares the waits of all pairs of cells, as one family. Pairs without a block that has both are skipped.
pub fn compare(pairs: &[Sides<'_>], rules: Rules) -> Vec<WaitDifference> {
    let tables: Vec<Table<'_>> = pairs.iter().filter_map(Table::of).collect();
    let (mut rows, mut scales) = (Vec::new(), Vec::new());
    for table in tables
        .iter()
        .filter(|table| table.reason(rules.least_blocks).is_none())
    {
        let of_pair = moderated_by(table.differences(), &table.variances, table.blocks.len());
        for differences in of_pair.differences {
            let mut row = vec![None; table.sides.blocks.len()];
            for (block, difference) in table.blocks.iter().zip(differences) {
                row[*block] = Some(difference);
            }
            rows.push(row);
        }
        scales.extend(of_pair.scales);
    }
    let mut p = max_t_scaled(&rows, &scales, rules.seed).into_iter();
    tables
        .iter()
        .map(|table| {
            let tested = match table.reason(rules.least_blocks) {
                Some(_) => 0,
                None => table.codes.len(),
            };
            let p: Vec<f64> = p.by_ref().take(tested).map(|p| p.joint).collect();
            difference(table, &p, rules)
        })
        .collect()
}

fn difference(table: &Table<'_>, p: &[f64], rules: Rules) -> WaitDifference {
    let (us_a, us_b) = sides_of(&table.whole);
    let whole = differences(&table.whole);
    let least = rules.least * us_a;
    let rows = table.codes.iter().zip(&table.values).zip(p);
    let mut findings: Vec<CodeDifference> = rows
        .filter(|(_, p)| **p <= ALPHA)
        .map(|((code, pairs), p)| {
            let (us_a, us_b) = sides_of(pairs);
            CodeDifference {
                function: code.function.clone(),
                class: code.class,
                us_a,
                us_b,
                us: us_b - us_a,
                us_interval: interval(&differences(pairs), ALPHA, rules.seed).ends(),
                p: *p,
            }
        })
        .filter(|one| one.us.abs() >= least)
        .collect();
    findings.sort_by(|a, b| b.us.abs().total_cmp(&a.us.abs()));
    findings.truncate(MOST_FINDINGS);
    WaitDifference {
        a: table.sides.a.to_owned(),
        b: table.sides.b.to_owned(),
        blocks: table.blocks.len(),
        per: rules.per,
        tested: p.len(),
        us_a,
        us_b,
        us: us_b - us_a,
        us_interval: interval(&whole, ALPHA, rules.seed).ends(),
        findings,
        reason: table.reason(rules.least_blocks),
        sentences: Vec::new(),
    }
}
