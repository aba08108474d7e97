//! Figures of a study over its runs, and their change points.

use lab_analysis::model::{Estimate, Measure};
use lab_stats::change::{self, changes};
use lab_stats::verdict::Better;
use serde::Serialize;

use crate::facts::Facts;

/// Most runs: the energy of all divisions grows with their square.
const MOST_RUNS: usize = 100;
/// Most series of a study.
const MOST_SERIES: usize = 64;
/// The chance of a false change in any series of a study.
pub(crate) const LEVEL: f64 = 0.05;
/// Seed of the permutations.
pub(crate) const SEED: u64 = 1;

/// A figure over comparable runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// The cell in words.
    pub cell: String,
    /// Its name: `p95 response`, `load line`.
    pub measure: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Runs that have it, oldest first.
    pub points: Vec<Point>,
    /// Change points, oldest first.
    pub changes: Vec<Change>,
}

/// The figure of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// The run, by its index among the study's.
    pub run: usize,
    /// The figure: its mean over valid trials, with its interval.
    #[serde(flatten)]
    pub value: Estimate,
}

/// A change point of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Change {
    /// The first run with the new figure, by its index among the study's.
    pub run: usize,
    /// True if the new figure is better.
    pub is_better: bool,
    /// Geometric mean of the runs before, back to the previous change.
    pub before: f64,
    /// Geometric mean of the runs from it on, up to the next change.
    pub after: f64,
    /// after ÷ before.
    pub ratio: f64,
    /// Its interval, given the change point; `None` with too few runs.
    pub interval: Option<(f64, f64)>,
    /// The chance of such a division without a change, over all series of the study.
    pub p: f64,
}

/// The figure of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Measure(Measure),
    /// The ratio of the variants of a duet, *b* ÷ *a*: their own times depend on the machine's other programs.
    Ratio(Measure),
    LoadLine,
}

impl Of {
    fn name(self) -> &'static str {
        match self {
            Self::Measure(measure) | Self::Ratio(measure) => measure.name(),
            Self::LoadLine => "load line",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Measure(measure) => measure.unit(),
            Self::Ratio(_) => "ratio of the variants",
            Self::LoadLine => "users",
        }
    }

    fn is_better(self, ratio: f64) -> bool {
        let higher = match self {
            Self::Measure(measure) | Self::Ratio(measure) => measure.better() == Better::Higher,
            Self::LoadLine => true,
        };
        (ratio > 1.0) == higher
    }

    fn value(self, run: &Facts, label: &str) -> Option<Estimate> {
        match self {
            Self::Measure(measure) => run.value(label, measure),
            Self::Ratio(measure) => run.ratio(label, measure),
            Self::LoadLine => {
                let line = run.load_lines.iter().find(|line| line.label == label)?;
                Some(Estimate {
                    mean: f64::from(line.users?),
                    low: line.low.map(f64::from),
                    high: line.high.map(f64::from),
                })
            }
        }
    }
}

/// The series of comparable runs, each with its index among all runs of the study.
pub(crate) fn series(runs: &[(usize, &Facts)]) -> Vec<Series> {
    let runs = &runs[runs.len().saturating_sub(MOST_RUNS)..];
    let Some((_, latest)) = runs.last() else {
        return Vec::new();
    };
    let lines = latest.load_lines.iter();
    let lines = lines.map(|line| (Of::LoadLine, line.label.as_str()));
    let measures = latest.measures();
    // A search chooses levels as it runs: its runs only have their lines in common.
    let cells = latest.cells.iter().filter(|_| latest.load_lines.is_empty());
    let of: fn(Measure) -> Of = match latest.duet {
        Some(_) => Of::Ratio,
        None => Of::Measure,
    };
    let cells = cells.flat_map(|cell| {
        let of = measures.iter().map(|one| of(*one));
        of.map(|of| (of, cell.label.as_str()))
    });
    let all: Vec<(Of, &str)> = lines.chain(cells).take(MOST_SERIES).collect();
    let values = |(of, label): &(Of, &str)| -> Vec<Option<Estimate>> {
        let each = runs.iter().map(|(_, run)| of.value(run, label));
        // Only values above 0 have a ratio.
        each.map(|value| value.filter(|value| value.mean.is_finite() && value.mean > 0.0))
            .collect()
    };
    let values: Vec<Vec<Option<Estimate>>> = all.iter().map(values).collect();
    let log = |row: &Vec<Option<Estimate>>| {
        row.iter()
            .map(|one| Some(one.as_ref()?.mean.ln()))
            .collect()
    };
    let rows: Vec<_> = values.iter().map(log).collect();
    let found = changes(&rows, LEVEL, SEED);
    let each = all.into_iter().zip(values).zip(found);
    let series = each.map(|(((of, label), values), found)| Series {
        cell: label.to_owned(),
        measure: of.name(),
        unit: of.unit(),
        points: runs
            .iter()
            .zip(values)
            .filter_map(|((run, _), value)| {
                Some(Point {
                    run: *run,
                    value: value?,
                })
            })
            .collect(),
        changes: found
            .iter()
            .map(|one| told(of, one, runs[one.at].0))
            .collect(),
    });
    series.filter(|one| !one.points.is_empty()).collect()
}

/// Converts a change of the logarithm to one of the figure.
fn told(of: Of, change: &change::Change, run: usize) -> Change {
    let ratio = (change.after - change.before).exp();
    let bounds = (change.low.exp(), change.high.exp());
    Change {
        run,
        is_better: of.is_better(ratio),
        before: change.before.exp(),
        after: change.after.exp(),
        ratio,
        interval: (change.low.is_finite() && change.high.is_finite()).then_some(bounds),
        p: change.p,
    }
}
