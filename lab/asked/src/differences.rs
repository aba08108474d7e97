//! Which counters of a system differ between cells, beyond noise.
//!
//! Trials are paired by block, as in all comparisons; all counters of an ask over all pairs of cells are one family, by
//! the permutation test of [`lab_stats::paired::max_t_scaled`]. If the answer also has the number of events behind a
//! counter (`calls` for `total_exec_time`, `x_count` for `x_sum`), the noise is that of this number of events, moderated
//! like the samples of functions (`lab_stats::moderated`). Other counters have no known noise: |Σd| ÷ √Σd².
//!
//! Unlike for functions, no common factor is removed: statements and lock waits don't share one.

use std::collections::{BTreeMap, BTreeSet};

use lab_stats::duet;
use lab_stats::moderated::{Pair, has_enough, moderated};
use lab_stats::paired::{Adjusted, interval, max_t_scaled};
use lab_stats::verdict::{ALPHA, LEAST_BLOCKS};

use crate::change::OfTrial;
use crate::model::{AskDifference, CounterDifference};
use crate::series::Series;
use crate::words;

/// The maximum number of counters in a family, divided among its pairs of cells.
const MOST_OF_FAMILY: usize = 10_000;
/// Most findings of a pair of cells.
const MOST_FINDINGS: usize = 200;
/// A difference of a part is relevant from this fraction of the whole's equivalence margin.
const OF_SMALLEST: f64 = 0.25;
/// Names of columns that count the events behind the other columns with the same labels.
const EVENTS: [&str; 3] = ["calls", "count_star", "count"];

/// The parameters of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The seed of the random sign patterns.
    pub seed: u64,
    /// The equivalence margin of a whole, as a fraction.
    pub smallest: f64,
    /// For duets, by block: whether the variants have changed sides.
    pub swapped: Option<&'a [bool]>,
}

/// A pair of cells.
#[derive(Debug)]
pub struct Sides<'a> {
    /// The baseline.
    pub a: &'a str,
    /// The other cell.
    pub b: &'a str,
    /// The counters, by block; `None` where a trial lacks them.
    pub blocks: Vec<Option<(&'a OfTrial, &'a OfTrial)>>,
}

/// The counters of a pair of cells, by block.
struct Table<'s, 'a> {
    sides: &'s Sides<'a>,
    /// The blocks that have both.
    blocks: Vec<usize>,
    columns: Vec<Column>,
    /// The sums of columns in *a*.
    wholes: BTreeMap<String, f64>,
}

/// A counter with its values per transaction.
struct Column {
    series: Series,
    unit: Option<String>,
    /// The blocks that have a value of both sides.
    blocks: Vec<usize>,
    pairs: Vec<Pair>,
    /// The pairs in units of events per trial, if the number of events is known.
    events: Option<Vec<Pair>>,
}

impl Column {
    fn differences(&self) -> Vec<f64> {
        self.pairs.iter().map(|pair| pair.b - pair.a).collect()
    }

    fn size(&self) -> f64 {
        self.pairs.iter().map(|pair| pair.a + pair.b).sum()
    }

    /// Returns true if the counts suffice for a comparison.
    fn is_testable(&self) -> bool {
        let is_large = self.events.as_ref().is_none_or(|events| has_enough(events));
        self.pairs.len() >= LEAST_BLOCKS && self.size() > 0.0 && is_large
    }
}

/// Compares the counters of one ask in all pairs of cells. Pairs without a block that has both are skipped.
#[must_use]
pub fn compare(ask: &str, pairs: &[Sides<'_>], rules: Rules<'_>) -> Vec<AskDifference> {
    let mut tables: Vec<Table<'_, '_>> = pairs.iter().filter_map(Table::of).collect();
    let most = MOST_OF_FAMILY / tables.len().max(1);
    for table in &mut tables {
        table.columns.truncate(most);
    }
    let tested: Vec<Vec<&Column>> = tables.iter().map(|table| table.tested(rules)).collect();
    let mut p = family(&tables, &tested, rules.seed).into_iter();
    let all = tables.iter().zip(&tested);
    all.map(|(table, tested)| {
        let tested: Vec<(&Column, Adjusted)> = tested.iter().copied().zip(p.by_ref()).collect();
        table.difference(ask, &tested, rules)
    })
    .collect()
}

/// p of all counters of all pairs, tested together.
fn family(tables: &[Table<'_, '_>], tested: &[Vec<&Column>], seed: u64) -> Vec<Adjusted> {
    let (mut rows, mut scales) = (Vec::new(), Vec::new());
    for (table, tested) in tables.iter().zip(tested) {
        let counts = table.sides.blocks.len();
        let known: Vec<&[Pair]> = tested
            .iter()
            .filter_map(|one| one.events.as_deref())
            .collect();
        let mut known = {
            let found = moderated(&known, &vec![0.0; table.blocks.len()]);
            found.differences.into_iter().zip(found.scales)
        };
        for column in tested {
            let of_events = column.events.as_ref().and_then(|_| known.next());
            let (differences, scale) = of_events.unwrap_or_else(|| {
                let differences = column.differences();
                let scale = differences.iter().map(|d| d * d).sum::<f64>().sqrt();
                (differences, scale)
            });
            let mut row = vec![None; counts];
            for (block, difference) in column.blocks.iter().zip(differences) {
                row[*block] = Some(difference);
            }
            rows.push(row);
            scales.push(scale);
        }
    }
    max_t_scaled(&rows, &scales, seed)
}

impl<'s, 'a> Table<'s, 'a> {
    fn of(sides: &'s Sides<'a>) -> Option<Self> {
        let both: Vec<(usize, &OfTrial, &OfTrial)> = sides
            .blocks
            .iter()
            .enumerate()
            .filter_map(|(block, both)| both.map(|(a, b)| (block, a, b)))
            .filter(|(_, a, b)| a.transactions > 0.0 && b.transactions > 0.0)
            .collect();
        if both.is_empty() {
            return None;
        }
        let mut names: BTreeSet<&Series> = BTreeSet::new();
        for (_, a, b) in &both {
            names.extend(a.values.keys().chain(b.values.keys()));
        }
        let mut columns: Vec<Column> = names.iter().map(|series| column(series, &both)).collect();
        let mut wholes = BTreeMap::new();
        for one in &columns {
            let whole: &mut f64 = wholes.entry(one.series.column.clone()).or_default();
            *whole += mean(one.pairs.iter().map(|pair| pair.a));
        }
        columns.sort_by(|a, b| {
            b.size()
                .total_cmp(&a.size())
                .then_with(|| a.series.cmp(&b.series))
        });
        Some(Self {
            sides,
            blocks: both.iter().map(|(block, ..)| *block).collect(),
            columns,
            wholes,
        })
    }

    /// Why these cells can't be compared.
    fn reason(&self, rules: Rules<'_>) -> Option<String> {
        let have = self.blocks.len();
        if have < LEAST_BLOCKS {
            let have = match have {
                1 => "1 block has".to_owned(),
                n => format!("{n} blocks have"),
            };
            return Some(format!(
                "only {have} valid trials of both cells that were counted, and at least {LEAST_BLOCKS} are needed"
            ));
        }
        let swapped = rules.swapped?;
        let side = |block: &usize| swapped.get(*block).copied().unwrap_or_default();
        let sides: Vec<bool> = self.blocks.iter().map(side).collect();
        (!duet::can_show(&sides)).then(|| {
            format!(
                "a duet needs at least {} blocks in which both variants were counted, half of them on each side",
                duet::LEAST_BLOCKS
            )
        })
    }

    fn tested(&self, rules: Rules<'_>) -> Vec<&Column> {
        if self.reason(rules).is_some() {
            return Vec::new();
        }
        // Equal counters are one test.
        let mut seen = BTreeSet::new();
        let columns = self.columns.iter().filter(|column| column.is_testable());
        let bits = |pair: &Pair| (pair.a.to_bits(), pair.b.to_bits());
        columns
            .filter(|column| {
                let of_events = column.events.is_some();
                seen.insert((of_events, column.pairs.iter().map(bits).collect::<Vec<_>>()))
            })
            .collect()
    }

    fn difference(
        &self,
        ask: &str,
        tested: &[(&Column, Adjusted)],
        rules: Rules<'_>,
    ) -> AskDifference {
        let least = OF_SMALLEST * rules.smallest;
        let mut findings: Vec<CounterDifference> = tested
            .iter()
            .filter(|(_, p)| p.joint <= ALPHA)
            .map(|(column, p)| self.finding(column, *p, rules.seed))
            .filter(|one| one.part.is_none_or(|part| part.abs() >= least))
            .collect();
        let size = |one: &CounterDifference| one.part.map_or(f64::INFINITY, f64::abs);
        findings.sort_by(|a, b| size(b).total_cmp(&size(a)));
        findings.truncate(MOST_FINDINGS);
        let nothing = tested
            .is_empty()
            .then(|| "nothing was counted often enough".to_owned());
        let mut difference = AskDifference {
            ask: ask.to_owned(),
            a: self.sides.a.to_owned(),
            b: self.sides.b.to_owned(),
            blocks: self.blocks.len(),
            tested: tested.len(),
            findings,
            reason: self.reason(rules).or(nothing),
            sentences: Vec::new(),
        };
        difference.sentences = words::sentences(&difference);
        difference
    }

    fn finding(&self, column: &Column, p: Adjusted, seed: u64) -> CounterDifference {
        let differences = column.differences();
        let whole = self.wholes.get(&column.series.column).copied();
        let difference = mean(differences.iter().copied());
        CounterDifference {
            column: column.series.column.clone(),
            labels: column.series.labels.clone(),
            unit: column.unit.clone(),
            mean_a: mean(column.pairs.iter().map(|pair| pair.a)),
            mean_b: mean(column.pairs.iter().map(|pair| pair.b)),
            difference,
            interval: interval(&differences, ALPHA, seed).ends(),
            p: p.joint,
            part: whole
                .filter(|whole| *whole > 0.0)
                .map(|whole| difference / whole),
        }
    }
}

/// The values of a counter in the blocks that have both. If a trial's answers lack the counter, its value is 0.
fn column(series: &Series, both: &[(usize, &OfTrial, &OfTrial)]) -> Column {
    let of =
        |trial: &OfTrial, series: &Series| trial.values.get(series).copied().unwrap_or(Some(0.0));
    let (mut blocks, mut pairs, mut scales) = (Vec::new(), Vec::new(), Vec::new());
    for (block, a, b) in both {
        if let (Some(in_a), Some(in_b)) = (of(a, series), of(b, series)) {
            blocks.push(*block);
            pairs.push(Pair { a: in_a, b: in_b });
            scales.push((a.transactions + b.transactions) / 2.0);
        }
    }
    let mut units = both.iter().flat_map(|(_, a, b)| [a, b]);
    let unit = units.find_map(|trial| trial.units.get(series).cloned());
    let events = events_column(series).and_then(|name| {
        let name = series.sibling(&name);
        let is_known = both
            .iter()
            .any(|(_, a, b)| a.values.contains_key(&name) || b.values.contains_key(&name));
        let counts: Option<Vec<f64>> = both
            .iter()
            .filter(|(block, ..)| blocks.contains(block))
            .map(|(_, a, b)| Some(of(a, &name)? + of(b, &name)?))
            .collect();
        let counts: f64 = counts.filter(|_| is_known)?.iter().sum();
        // The average value of one event over both sides, which a permutation of the sides doesn't change.
        let of_one = pairs.iter().map(|pair| pair.a + pair.b).sum::<f64>() / counts;
        let transactions = mean(scales.iter().copied());
        let scaled = |value: f64| value / of_one * transactions;
        (of_one.is_finite() && of_one > 0.0).then(|| {
            let pairs = pairs.iter();
            pairs
                .map(|pair| Pair {
                    a: scaled(pair.a),
                    b: scaled(pair.b),
                })
                .collect()
        })
    });
    Column {
        series: series.clone(),
        unit,
        blocks,
        pairs,
        events,
    }
}

/// Returns the column that counts the events behind this one: this column itself if it counts events.
fn events_column(series: &Series) -> Option<String> {
    match series.column.strip_suffix("_sum") {
        Some(name) => Some(format!("{name}_count")),
        None if series.column.ends_with("_count") => Some(series.column.clone()),
        None => {
            // The labels of a table's row identify the events.
            let lower = series.column.to_ascii_lowercase();
            let of_rows = !series.labels.is_empty();
            let own = EVENTS.iter().find(|name| **name == lower);
            own.map(|_| series.column.clone())
                .or_else(|| of_rows.then(|| EVENTS[0].to_owned()))
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    lab_stats::paired::mean(&values).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDIES: u64 = 40;

    /// Approximately normal random numbers from a seed: sums of twelve uniform ones (SplitMix64).
    struct Draws(u64);

    impl Draws {
        fn uniform(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// Thirty statements. Their numbers of calls vary like counts, their times also by 4 %, and the whole trial by 5 %.
    /// One statement takes `factor` times as long.
    fn trial(draws: &mut Draws, factor: f64) -> OfTrial {
        let transactions = 3_000.0;
        let machine = 1.0 + 0.05 * draws.normal();
        let mut values = BTreeMap::new();
        for n in 0..30_u32 {
            let labels = vec![("query".to_owned(), format!("select {n}"))];
            let series = |column: &str| Series {
                column: column.to_owned(),
                labels: labels.clone(),
            };
            let expected = transactions / f64::from(n + 1);
            let calls = (expected + expected.sqrt() * draws.normal()).round();
            let slow = if n == 3 { factor } else { 1.0 };
            let noise = machine * (1.0 + 0.04 * draws.normal());
            let time = 0.1 * f64::from(n + 1) * slow * calls * noise;
            values.insert(series("calls"), Some(calls / transactions));
            values.insert(series("total_exec_time"), Some(time / transactions));
        }
        OfTrial {
            name: "db".to_owned(),
            values,
            units: BTreeMap::new(),
            transactions,
            notes: Vec::new(),
        }
    }

    /// The number of studies of six blocks that name the slow statement, and of those that name another one.
    fn studies(factor: f64) -> (u64, u64) {
        let (mut named, mut others) = (0, 0);
        for study in 0..STUDIES {
            let mut draws = Draws(study * 1_000_003 + 17);
            let trials: Vec<(OfTrial, OfTrial)> = (0..6)
                .map(|_| (trial(&mut draws, 1.0), trial(&mut draws, factor)))
                .collect();
            let blocks = trials.iter().map(|(a, b)| Some((a, b))).collect();
            let sides = [Sides {
                a: "a",
                b: "b",
                blocks,
            }];
            let rules = Rules {
                seed: study,
                smallest: 0.05,
                swapped: None,
            };
            let found = compare("db", &sides, rules).remove(0);
            let is_it = |one: &CounterDifference| {
                one.column == "total_exec_time" && one.labels[0].1 == "select 3"
            };
            named += u64::from(found.findings.iter().any(is_it));
            others += u64::from(found.findings.iter().any(|one| !is_it(one)));
        }
        (named, others)
    }

    #[test]
    fn six_blocks_name_the_statement_and_rarely_another_one() {
        let (named, others) = studies(2.0);
        println!("twice as long: {named} named, {others} with another one, of {STUDIES}");
        assert!(named >= 36 && others <= 5);
        let (named, others) = studies(1.0);
        println!("equal: {named} named, {others} with another one, of {STUDIES}");
        assert!(named + others <= 5);
    }
}
