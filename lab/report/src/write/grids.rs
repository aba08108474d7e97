//! Studies of two factors as one table per measure, the first factor down, the second across, with
//! the published figure where there is one. It knows no layout.

use lab_stats::mean_interval;
use lab_study::model::Level;

use crate::Analysis;
use crate::format::{figure, level};
use crate::model::{CellSummary, Entry, Estimate, Measure, TrialAnalysis, Verdict};
use crate::write::rows::{published, published_text};

/// One measure over two factors.
pub(crate) struct Grid {
    /// `mean response, ms`.
    pub(crate) title: String,
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<String>,
    /// Row by row.
    pub(crate) figures: Vec<Vec<Option<Estimate>>>,
    /// Row by row: the published figure, with its unit where that is another; empty if there is none
    /// at all.
    pub(crate) published: Vec<Vec<String>>,
}

type OfTrial = fn(&TrialAnalysis) -> Option<f64>;

/// Name, value of a trial, published columns that mean the same.
const MEASURES: [(&str, OfTrial, &[&str]); 14] = [
    (
        "throughput, per s",
        |trial| Measure::Throughput.of(trial),
        &["average_tps", "throughput_per_s"],
    ),
    (
        "NotesMark, per min",
        |trial| trial.notesmark_per_min,
        &["notesmark_tpm"],
    ),
    (
        "mean response, ms",
        |trial| Measure::Mean.of(trial),
        RESPONSE,
    ),
    ("p50 response, ms", |trial| Measure::P50.of(trial), &[]),
    ("p95 response, ms", |trial| Measure::P95.of(trial), &[]),
    ("p99 response, ms", |trial| Measure::P99.of(trial), &[]),
    (
        "mean of the probe, ms",
        |trial| trial.probe_ms?.mean,
        &["probe_ms", "probe_s"],
    ),
    (
        "CPU of the host, %",
        |trial| counter(&trial.host, "cpu_percent"),
        &["cpu_percent"],
    ),
    (
        "CPU per transaction, ms",
        |trial| Measure::Cpu.of(trial),
        &[],
    ),
    ("peak memory, MB", |trial| Measure::Memory.of(trial), &[]),
    (
        "memory committed, MB",
        |trial| counter(&trial.host, "memory_committed_mb"),
        &["memory_committed_mb"],
    ),
    (
        "disk queue length",
        |trial| counter(&trial.host, "disk_queue_length"),
        &["disk_queue_length"],
    ),
    (
        "disk service time, ms",
        |trial| counter(&trial.host, "disk_service_ms"),
        &["disk_service_ms"],
    ),
    (
        "page scans, per s",
        |trial| counter(&trial.host, "scan_rate_pages_per_s"),
        &["scan_rate_pages_per_s"],
    ),
];

fn counter(counters: &crate::model::Counters, name: &str) -> Option<f64> {
    counters.get(name).copied().flatten()
}

/// One table per measure; none unless the study has exactly two factors of two levels or more.
pub(crate) fn grids(analysis: &Analysis) -> Vec<Grid> {
    let Some(axes) = Axes::of(analysis) else {
        return Vec::new();
    };
    let mut grids = Vec::new();
    for (title, of, columns) in MEASURES {
        let grid = axes.grid(
            title.to_owned(),
            &|cell| estimate(analysis, cell, of),
            columns,
        );
        grids.extend(grid);
        if columns == RESPONSE {
            grids.extend(relative(analysis, &axes));
        }
    }
    grids
}

/// Each cell's mean response as a multiple of the first one's: what the absolute figures hide where
/// they are small, and the other way round.
fn relative(analysis: &Analysis, axes: &Axes<'_>) -> Option<Grid> {
    let first = analysis.cells.first()?;
    let mean = |cell: &CellSummary| cell.response_ms.mean.map(|mean| mean.mean);
    let baseline = mean(first)?;
    let of = |cell: &CellSummary| {
        Some(Estimate {
            mean: lab_stats::ratio(mean(cell)?, baseline)?,
            low: None,
            high: None,
        })
    };
    let mut grid = axes.grid("relative response".to_owned(), &of, &[])?;
    grid.published = axes.published(&|cell| {
        let theirs = |cell: &CellSummary| entry(analysis, RESPONSE, cell)?.published;
        let ratio = lab_stats::ratio(theirs(cell)?, theirs(first)?)?;
        Some(figure(ratio))
    });
    Some(grid)
}

/// What a reader must know before the tables, beside what the figures are.
pub(crate) fn lead(analysis: &Analysis) -> String {
    let first = analysis.cells.first().map_or("", |cell| &cell.label);
    format!("Relative response is the mean response ÷ that of {first}.")
}

impl Grid {
    /// The factor of the columns, and its levels.
    pub(crate) fn across(&self) -> (&str, Vec<&str>) {
        let split = |name: &str| name.find(' ').map_or(0, |at| at + 1);
        let factor = self.columns.first().map_or("", |name| &name[..split(name)]);
        let levels = self.columns.iter().map(|name| &name[split(name)..]);
        (factor.trim_end(), levels.collect())
    }
}

/// Published columns that hold a mean response.
const RESPONSE: &[&str] = &["response_mean_ms", "response_ms", "response_s"];

/// Steps that get a chart each, where levels are compared step by step.
pub(crate) const FEW_STEPS: usize = 4;

/// The levels of the first and of the second factor of a study that has exactly two, of two levels
/// or more.
pub(crate) fn levels_of_two(analysis: &Analysis) -> Option<(Vec<&Level>, Vec<&Level>)> {
    let [down, across] = analysis.study.factors.as_slice() else {
        return None;
    };
    // A search varies the users within a cell, so that a mean over the cell says nothing.
    if !analysis.load_lines.is_empty() {
        return None;
    }
    let (rows, columns) = (levels(analysis, down), levels(analysis, across));
    (rows.len() >= 2 && columns.len() >= 2).then_some((rows, columns))
}

/// The two factors with their levels, and the cells where they cross.
struct Axes<'a> {
    rows: Vec<String>,
    columns: Vec<String>,
    cells: Vec<Vec<Option<&'a CellSummary>>>,
    analysis: &'a Analysis,
}

impl<'a> Axes<'a> {
    fn of(analysis: &'a Analysis) -> Option<Self> {
        let (rows, columns) = levels_of_two(analysis)?;
        let [down, across] = analysis.study.factors.as_slice() else {
            return None;
        };
        let find = |row: &Level, column: &Level| {
            analysis.cells.iter().find(|cell| {
                cell.cell.get(down) == Some(row) && cell.cell.get(across) == Some(column)
            })
        };
        let cells = rows
            .iter()
            .map(|row| columns.iter().map(|column| find(row, column)).collect())
            .collect();
        let name = |factor: &str, of: &[&Level]| -> Vec<String> {
            of.iter()
                .map(|one| format!("{factor} {}", level(one)))
                .collect()
        };
        Some(Self {
            rows: name(down, &rows),
            columns: name(across, &columns),
            cells,
            analysis,
        })
    }

    /// `None` where no cell has a figure, and where all are 0 and nothing published stands beside.
    fn grid(
        &self,
        title: String,
        of: &dyn Fn(&CellSummary) -> Option<Estimate>,
        columns: &[&str],
    ) -> Option<Grid> {
        let figures: Vec<Vec<Option<Estimate>>> = self
            .cells
            .iter()
            .map(|row| row.iter().map(|cell| of((*cell)?)).collect())
            .collect();
        let beside = self.published(&|cell| Some(beside(entry(self.analysis, columns, cell)?)));
        let says_something = |one: &Estimate| one.mean != 0.0 || !beside.is_empty();
        if !figures.iter().flatten().flatten().any(says_something) {
            return None;
        }
        Some(Grid {
            title,
            rows: self.rows.clone(),
            columns: self.columns.clone(),
            figures,
            published: beside,
        })
    }

    fn published(&self, of: &dyn Fn(&CellSummary) -> Option<String>) -> Vec<Vec<String>> {
        let texts: Vec<Vec<String>> = self
            .cells
            .iter()
            .map(|row| {
                row.iter()
                    .map(|cell| cell.and_then(of).unwrap_or_default())
                    .collect()
            })
            .collect();
        let any = texts.iter().flatten().any(|text| !text.is_empty());
        if any { texts } else { Vec::new() }
    }
}

/// The published figure as it was published, with its unit where that isn't ours.
fn beside(entry: Entry) -> String {
    let unit = if entry.metric.ends_with("_s") && !entry.metric.ends_with("_per_s") {
        " s"
    } else {
        ""
    };
    format!("{}{unit}", published_text(&entry))
}

fn entry(analysis: &Analysis, columns: &[&str], cell: &CellSummary) -> Option<Entry> {
    let at = analysis
        .cells
        .iter()
        .position(|one| one.cell == cell.cell)?;
    published(analysis, columns, None).into_iter().nth(at)?
}

fn estimate(analysis: &Analysis, cell: &CellSummary, of: OfTrial) -> Option<Estimate> {
    let valid = analysis.trials.iter().filter(|trial| {
        trial.verdict == Verdict::Valid && !trial.control && trial.cell == cell.cell
    });
    let values: Option<Vec<f64>> = valid.map(of).collect();
    let interval = mean_interval(&values?)?;
    Some(Estimate {
        mean: interval.mean,
        low: interval.bounds.map(|bounds| bounds.0),
        high: interval.bounds.map(|bounds| bounds.1),
    })
}

/// A factor's levels, in the order of the cells.
fn levels<'a>(analysis: &'a Analysis, factor: &str) -> Vec<&'a Level> {
    let mut levels: Vec<&Level> = Vec::new();
    for cell in &analysis.cells {
        if let Some(level) = cell.cell.get(factor)
            && !levels.contains(&level)
        {
            levels.push(level);
        }
    }
    levels
}

/// `10.9…11.6`, or nothing of a single trial.
pub(crate) fn spread(estimate: Option<Estimate>) -> String {
    let bounds = estimate.and_then(|estimate| Some((estimate.low?, estimate.high?)));
    bounds.map_or_else(String::new, |(low, high)| {
        format!("{}…{}", figure(low), figure(high))
    })
}
