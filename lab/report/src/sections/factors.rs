//! Studies of two factors as one table per measure, the first factor down, the second across, with
//! the published figure where there is one.

use lab_plan::Level;
use lab_stats::mean_interval;

use super::figures::mean;
use super::published::{Entries, published_text};
use crate::Analysis;
use crate::document::{Block, Matrix, MatrixEntry, Section};
use crate::format::{figure, level, or_none};
use crate::model::{CellSummary, Entry, Estimate, Measure, TrialAnalysis, Verdict};

type OfTrial = fn(&TrialAnalysis) -> Option<f64>;

/// Name, value of a trial, published columns that mean the same.
type MeasureOf = (&'static str, OfTrial, &'static [&'static str]);

#[rustfmt::skip]
const MEASURES: [MeasureOf; 14] = [
    ("throughput, per s", |it| Measure::Throughput.of(it), &["average_tps", "throughput_per_s"]),
    ("NotesMark, per min", |it| it.notesmark_per_min, &["notesmark_tpm"]),
    ("mean response, ms", |it| Measure::Mean.of(it), RESPONSE),
    ("p50 response, ms", |it| Measure::P50.of(it), &[]),
    ("p95 response, ms", |it| Measure::P95.of(it), &[]),
    ("p99 response, ms", |it| Measure::P99.of(it), &[]),
    ("mean of the probe, ms", |it| it.probe_ms?.mean, &["probe_ms", "probe_s"]),
    ("CPU of the host, %", |it| counter(&it.host, "cpu_percent"), &["cpu_percent"]),
    ("CPU per transaction, ms", |it| Measure::Cpu.of(it), &[]),
    ("peak memory, MB", |it| Measure::Memory.of(it), &[]),
    ("memory committed, MB", |it| counter(&it.host, "memory_committed_mb"), &["memory_committed_mb"]),
    ("disk queue length", |it| counter(&it.host, "disk_queue_length"), &["disk_queue_length"]),
    ("disk service time, ms", |it| counter(&it.host, "disk_service_ms"), &["disk_service_ms"]),
    ("page scans, per s", |it| counter(&it.host, "scan_rate_pages_per_s"), &["scan_rate_pages_per_s"]),
];

/// A measure that only matters beside a report that has it.
const OF_REPORTS: [&str; 3] = [
    "notesmark_tpm",
    "memory_committed_mb",
    "scan_rate_pages_per_s",
];

fn counter(counters: &crate::model::Counters, name: &str) -> Option<f64> {
    counters.get(name).copied().flatten()
}

/// One table per measure, the first factor down, the second across; none unless the study has exactly two factors of
/// two levels or more.
pub(super) fn two_factors(analysis: &Analysis) -> Option<Section> {
    let axes = Axes::of(analysis)?;
    let mut matrices = Vec::new();
    for (title, of, columns) in MEASURES {
        let is_of_report = columns.iter().any(|column| OF_REPORTS.contains(column));
        if is_of_report && !Entries::of(analysis, columns, None).any() {
            continue;
        }
        matrices.extend(
            axes.matrix(title, &|cell| estimate(analysis, cell, of), &|cell| {
                Some(as_published(axes.entry(columns, cell)?))
            }),
        );
        if columns == RESPONSE {
            matrices.extend(relative(&axes));
        }
    }
    let first = analysis.cells.first().map_or("", |cell| &cell.label);
    let lead = format!(
        "Means over valid trials, with their 95 % intervals, and the published figures, where there \
         are any. Relative response is the mean response ÷ that of {first}."
    );
    let title = format!("By {} and {}", axes.down, axes.across);
    let blocks = vec![Block::Paragraph(lead), Block::Matrices(matrices)];
    Some(Section::new(title, blocks))
}

/// Each cell's mean response as a multiple of the first one's: it shows what the absolute figures hide if they are
/// small, and vice versa.
fn relative(axes: &Axes<'_>) -> Option<Matrix> {
    let first = axes.analysis.cells.first()?;
    let response = |cell: &CellSummary| mean(cell.response_ms.mean);
    let baseline = response(first)?;
    let ours = |cell: &CellSummary| {
        Some(Estimate {
            mean: lab_stats::ratio(response(cell)?, baseline)?,
            low: None,
            high: None,
        })
    };
    let published = |cell: &CellSummary| axes.entry(RESPONSE, cell)?.published;
    let theirs = |cell: &CellSummary| {
        let ratio = lab_stats::ratio(published(cell)?, published(first)?)?;
        Some(figure(ratio))
    };
    axes.matrix("relative response", &ours, &theirs)
}

/// Published columns that hold a mean response.
const RESPONSE: &[&str] = &["response_mean_ms", "response_ms", "response_s"];

/// The maximum number of steps with a chart each, if levels are compared step by step.
pub(super) const FEW_STEPS: usize = 4;

/// The levels of the first and of the second factor of a study that has exactly two, of two levels
/// or more.
pub(super) fn levels_of_two(analysis: &Analysis) -> Option<(Vec<&Level>, Vec<&Level>)> {
    let [down, across] = analysis.study.factors.as_slice() else {
        return None;
    };
    // A search varies the users within a cell, so that a mean over the cell has no meaning.
    if !analysis.load_lines.is_empty() {
        return None;
    }
    let (rows, columns) = (levels(analysis, down), levels(analysis, across));
    (rows.len() >= 2 && columns.len() >= 2).then_some((rows, columns))
}

/// The two factors with their levels, and their cells.
struct Axes<'a> {
    down: &'a str,
    across: &'a str,
    columns: Vec<String>,
    /// Row by row: its name, and a cell per column.
    rows: Vec<(String, Vec<Option<&'a CellSummary>>)>,
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
        let row = |row: &Level| {
            let cells = columns.iter().map(|column| find(row, column)).collect();
            (format!("{down} {}", level(row)), cells)
        };
        Some(Self {
            down,
            across,
            rows: rows.into_iter().map(row).collect(),
            columns: columns.iter().map(|one| level(one)).collect(),
            analysis,
        })
    }

    /// `None` if no cell has a figure, and if all are 0 without a published figure.
    fn matrix(
        &self,
        title: &str,
        ours: &dyn Fn(&CellSummary) -> Option<Estimate>,
        theirs: &dyn Fn(&CellSummary) -> Option<String>,
    ) -> Option<Matrix> {
        let mut says_something = false;
        let mut has_figure = false;
        let mut entry = |cell: &Option<&CellSummary>| {
            let estimate = cell.and_then(ours);
            let published = cell.and_then(theirs).unwrap_or_default();
            has_figure |= estimate.is_some();
            says_something |= estimate.is_some_and(|it| it.mean != 0.0) || !published.is_empty();
            MatrixEntry {
                mean: or_none(mean(estimate), figure),
                spread: spread(estimate),
                published,
            }
        };
        let rows = self.rows.iter();
        let rows = rows.map(|(name, cells)| (name.clone(), cells.iter().map(&mut entry).collect()));
        let rows = rows.collect();
        (has_figure && says_something).then(|| Matrix {
            title: title.to_owned(),
            factor: self.across.to_owned(),
            levels: self.columns.clone(),
            rows,
        })
    }

    /// The published entry of a cell.
    fn entry(&self, columns: &[&str], cell: &CellSummary) -> Option<&'a Entry> {
        let mut cells = self.analysis.cells.iter();
        let at = cells.position(|one| one.cell == cell.cell)?;
        Entries::of(self.analysis, columns, None).at(at)
    }
}

/// The published figure in its original form, with its unit if that isn't ours.
fn as_published(entry: &Entry) -> String {
    let is_seconds = entry.metric.ends_with("_s") && !entry.metric.ends_with("_per_s");
    format!(
        "{}{}",
        published_text(entry),
        if is_seconds { " s" } else { "" }
    )
}

fn estimate(analysis: &Analysis, cell: &CellSummary, of: OfTrial) -> Option<Estimate> {
    let valid = analysis
        .trials
        .iter()
        .filter(|trial| trial.verdict == Verdict::Valid && cell.is_of(trial));
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

/// `10.9…11.6`, or empty for a single trial.
fn spread(estimate: Option<Estimate>) -> String {
    let bounds = estimate.and_then(|estimate| Some((estimate.low?, estimate.high?)));
    bounds.map_or_else(String::new, |(low, high)| {
        format!("{}…{}", figure(low), figure(high))
    })
}
