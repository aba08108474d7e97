//! The columns of two cells: own and total samples of functions, and samples of call paths, by block.

use crate::columns::{Column, Counts, Names, Part, Sampled};
use lab_stats::common_factor::common_factor;
use lab_stats::moderated::{Pair, differences, has_enough, tested};
use lab_stats::paired;
use lab_stats::verdict::ALPHA;

/// Two cells, and their samples by block; `None` where one has no valid, profiled trial.
pub struct Sides<'a> {
    /// The baseline.
    pub a: &'a str,
    /// The cell compared with it.
    pub b: &'a str,
    /// By block.
    pub blocks: Vec<Option<(&'a Sampled, &'a Sampled)>>,
}

/// A stack that was sampled in one of the cells.
pub struct Stack {
    /// The outermost first.
    pub frames: Vec<usize>,
    /// The call path that ends at each frame.
    nodes: Vec<usize>,
    samples: Vec<Pair>,
    /// The mean difference of its samples, the common factor taken out.
    pub difference: f64,
}

impl Stack {
    /// Returns true if a column counts this stack.
    pub fn is_in(&self, column: Column) -> bool {
        match column.of {
            Part::Own => self.frames.last() == Some(&column.function),
            Part::Total => self.frames.contains(&column.function),
            Part::Path => self.nodes.get(column.depth - 1) == Some(&column.node),
        }
    }

    /// The position of the frame that a column is about: the outermost one of a function that calls itself.
    pub fn frame_of(&self, column: Column) -> Option<usize> {
        match column.of {
            Part::Own => self.frames.len().checked_sub(1),
            Part::Total => self.frames.iter().position(|at| *at == column.function),
            Part::Path => Some(column.depth - 1),
        }
    }
}

/// Two cells side by side.
pub struct Table {
    /// All stacks, in a fixed order.
    pub stacks: Vec<Stack>,
    columns: Vec<Column>,
    pairs: Vec<Vec<Pair>>,
    /// The log of the common factor, by block.
    pub factor: Vec<f64>,
    /// The numbers of the blocks that have both cells.
    pub blocks: Vec<usize>,
    /// Samples of a trial, on average.
    pub samples: f64,
    /// The CPU time per transaction that a sample represents, in µs.
    pub us_per_sample: f64,
    /// CPU time per transaction, by block.
    pub whole: Vec<Pair>,
    /// The fraction of the CPU time in code without names common to all builds.
    pub unnamed: f64,
}

impl Table {
    /// The table of two cells; `None` without a block that has both.
    pub fn of(sides: &Sides<'_>, names: &Names) -> Option<Self> {
        let both = sides.blocks.iter().enumerate();
        let both = both.filter_map(|(block, both)| Some((block, (*both)?)));
        let (blocks, both): (Vec<usize>, Vec<_>) = both.unzip();
        if both.is_empty() {
            return None;
        }
        let whole: Vec<Pair> = both
            .iter()
            .map(|(a, b)| Pair {
                a: a.us_per_transaction,
                b: b.us_per_transaction,
            })
            .collect();
        let trials = (2 * both.len()) as f64;
        let samples: u64 = both.iter().map(|(a, b)| a.samples + b.samples).sum();
        let samples = (samples as f64) / trials;
        let us = whole.iter().map(|pair| pair.a + pair.b).sum::<f64>() / trials;
        let part = |trial: &Sampled| (trial.unnamed_ns as f64) / (trial.whole_ns() as f64);
        let unnamed = both.iter().map(|(a, b)| part(a) + part(b)).sum::<f64>() / trials;
        let mut table = Self {
            unnamed,
            stacks: Vec::new(),
            columns: Vec::new(),
            pairs: Vec::new(),
            factor: Vec::new(),
            blocks,
            samples,
            us_per_sample: us / samples,
            whole,
        };
        table.fill(&both, names);
        Some(table)
    }

    fn fill(&mut self, both: &[(&Sampled, &Sampled)], names: &Names) {
        let counts = Counts::of(both, names);
        // CPU time in nanoseconds becomes the number of samples that all trials would have for this many transactions.
        let us_per_sample = self.us_per_sample;
        let scale =
            |trial: &Sampled| trial.us_per_transaction / (trial.whole_ns() as f64) / us_per_sample;
        let scales: Vec<(f64, f64)> = both.iter().map(|(a, b)| (scale(a), scale(b))).collect();
        let scaled = |ns: &[[u64; 2]]| -> Vec<Pair> {
            let pair = |(ns, scale): (&[u64; 2], &(f64, f64))| Pair {
                a: (ns[0] as f64) * scale.0,
                b: (ns[1] as f64) * scale.1,
            };
            ns.iter().zip(&scales).map(pair).collect()
        };
        for (column, ns) in &counts.columns {
            let pairs = scaled(ns);
            // Most columns are call paths with a sample or two.
            if has_enough(&pairs) {
                self.columns.push(*column);
                self.pairs.push(pairs);
            }
        }
        let own = self.columns.iter().zip(&self.pairs);
        let own = own.filter(|(column, _)| column.of == Part::Own);
        let own: Vec<&[Pair]> = own.map(|(_, pairs)| pairs.as_slice()).collect();
        self.factor = common_factor(&own);
        let stacks = counts.stacks.into_iter();
        self.stacks = stacks
            .map(|((frames, nodes), ns)| {
                let samples = scaled(&ns);
                Stack {
                    difference: mean(&differences(&samples, &self.factor)),
                    samples,
                    frames,
                    nodes,
                }
            })
            .collect();
    }

    /// The columns to test, up to a limit, as groups of equal columns. Each entry has the representative column and its
    /// samples.
    pub fn tested(&self, most: usize) -> Vec<Tested<'_>> {
        let mut groups = tested(&self.pairs);
        if groups.len() > most {
            // Functions before paths: the largest paths are the start of all stacks.
            groups.sort_by_key(|group| {
                let mut columns = group.iter().map(|at| self.columns[*at].of);
                columns.all(|of| of == Part::Path)
            });
            groups.truncate(most);
        }
        let group = |group: Vec<usize>| {
            let columns: Vec<Column> = group.iter().map(|at| self.columns[*at]).collect();
            Tested {
                column: self.most_telling(&columns),
                paths: columns
                    .into_iter()
                    .filter(|column| column.of == Part::Path)
                    .collect(),
                pairs: &self.pairs[group[0]],
            }
        };
        groups.into_iter().map(group).collect()
    }

    /// Returns the most informative of columns with equal samples: the innermost whole function.
    fn most_telling(&self, columns: &[Column]) -> Column {
        let stack = self.stacks.iter().find(|stack| stack.is_in(columns[0]));
        let depth = |column: &Column| stack.and_then(|stack| stack.frame_of(*column));
        let rank = |column: &&Column| {
            let kind = match column.of {
                Part::Total => 2,
                Part::Path => 1,
                Part::Own => 0,
            };
            (kind, depth(column))
        };
        columns
            .iter()
            .max_by_key(rank)
            .copied()
            .unwrap_or(columns[0])
    }

    /// The differences by block of all stacks that `is_in` accepts, in samples, the common factor taken out.
    pub fn differences(&self, is_in: impl Fn(usize, &Stack) -> bool) -> Vec<f64> {
        differences(&self.samples_of(is_in), &self.factor)
    }

    /// Their samples.
    pub fn samples_of(&self, is_in: impl Fn(usize, &Stack) -> bool) -> Vec<Pair> {
        let mut sum = vec![Pair::default(); self.blocks.len()];
        let stacks = self.stacks.iter().enumerate();
        for (_, stack) in stacks.filter(|(at, stack)| is_in(*at, stack)) {
            for (sum, pair) in sum.iter_mut().zip(&stack.samples) {
                sum.a += pair.a;
                sum.b += pair.b;
            }
        }
        sum
    }

    /// A mean of differences with its interval, from samples to microseconds per transaction.
    pub fn us(&self, by_block: &[f64], seed: u64) -> (f64, Option<(f64, f64)>) {
        let us = |samples: f64| samples * self.us_per_sample;
        let ends = paired::interval(by_block, ALPHA, seed).ends();
        let interval = ends.map(|(low, high)| (us(low), us(high)));
        (us(mean(by_block)), interval)
    }
}

/// Equal columns, tested as one.
pub struct Tested<'a> {
    /// The column that represents all of them.
    pub column: Column,
    /// The call paths among them.
    pub paths: Vec<Column>,
    /// Its samples by block.
    pub pairs: &'a [Pair],
}

/// The mean of values; 0 of none.
pub fn mean(values: &[f64]) -> f64 {
    paired::mean(values).unwrap_or_default()
}
