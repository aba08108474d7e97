//! Figures per level: the rows for each cell, with source, format, and equivalent published columns; and the figures of
//! the most important cell.

use super::figures::{cell_heads, mean, measured, published_note, whole, without_valid};
use super::published::{Entries, further_metrics};
use super::words::service_note;
use crate::Analysis;
use crate::document::{Block, Figure, FigureEntry, FigureRow, Figures, KeyFigure, Part, Section};
use crate::format::figure;
use crate::model::CellSummary;
use lab_analysis::most_loaded;

/// A figure of a cell.
enum Of {
    Cell(fn(&CellSummary) -> Option<f64>),
    /// A counter of the host.
    Host(&'static str),
    /// A counter of the system's processes.
    System(&'static str),
}

/// A row of the table: its name, the source of its figures, their format, and the published columns with the same
/// meaning.
struct Measure {
    name: &'static str,
    of: Of,
    is_count: bool,
    /// Whether the row is shown only beside a published figure.
    is_of_report: bool,
    published: &'static [&'static str],
}

const fn row(name: &'static str, of: Of, published: &'static [&'static str]) -> Measure {
    Measure {
        name,
        of,
        is_count: false,
        is_of_report: false,
        published,
    }
}

const fn counted(row: Measure) -> Measure {
    Measure {
        is_count: true,
        ..row
    }
}

const fn of_report(row: Measure) -> Measure {
    Measure {
        is_of_report: true,
        ..row
    }
}

/// Published columns that hold a mean response, and throughput.
const RESPONSE: &[&str] = &["response_mean_ms", "response_ms"];
const THROUGHPUT: &[&str] = &["average_tps", "throughput_per_s"];

#[rustfmt::skip]
const ROWS: [Measure; 35] = [
    counted(row("transactions", Of::Cell(|cell| mean(cell.transactions)), &["transactions"])),
    counted(row("errors", Of::Cell(|cell| cell.errors_per_trial), &["errors"])),
    counted(row("skipped steps", Of::Cell(|cell| cell.skipped_per_trial), &[])),
    row("throughput, per s", Of::Cell(|cell| mean(cell.throughput_per_s)), THROUGHPUT),
    of_report(row("NotesMark, per min", Of::Cell(|cell| mean(cell.notesmark_per_min)), &["notesmark_tpm"])),
    row("mean response, ms", Of::Cell(|cell| mean(cell.response_ms.mean)), RESPONSE),
    row("p50, ms", Of::Cell(|cell| mean(cell.response_ms.p50)), &[]),
    row("p95, ms", Of::Cell(|cell| mean(cell.response_ms.p95)), &[]),
    row("p99, ms", Of::Cell(|cell| mean(cell.response_ms.p99)), &[]),
    row("max, ms", Of::Cell(|cell| cell.response_ms.max), &[]),
    row("service mean, ms", Of::Cell(|cell| mean(cell.service_ms?.mean)), &[]),
    row("service p95, ms", Of::Cell(|cell| mean(cell.service_ms?.p95)), &[]),
    row("service p99, ms", Of::Cell(|cell| mean(cell.service_ms?.p99)), &[]),
    row("sessions planned, per s", Of::Cell(|cell| Some(cell.arrivals?.planned_per_s)), &[]),
    row("sessions arrived, per s", Of::Cell(|cell| Some(cell.arrivals?.arrived_per_s)), &[]),
    counted(row("most sessions waiting", Of::Cell(|cell| Some(number(cell.arrivals?.waiting_max))), &[])),
    counted(row("probe transactions", Of::Cell(|cell| per_trial(cell, cell.probe?.transactions)), &[])),
    counted(row("probe errors", Of::Cell(|cell| per_trial(cell, cell.probe?.errors)), &[])),
    row("probe mean, ms", Of::Cell(|cell| mean(cell.probe_ms?.mean)), &["probe_ms"]),
    row("probe p95, ms", Of::Cell(|cell| mean(cell.probe_ms?.p95)), &[]),
    row("CPU of the host, %", Of::Host("cpu_percent"), &["cpu_percent"]),
    row("CPU of the system, % of core", Of::System("cpu_percent"), &[]),
    row("CPU per transaction, ms", Of::System("cpu_ms_per_transaction"), &[]),
    row("disk transfers, per s", Of::Host("disk_transfers_per_s"), &["disk_transfers_per_s"]),
    row("disk, KB per s", Of::Host("disk_kb_per_s"), &["disk_kb_per_s"]),
    row("disk of the system, KB per transaction", Of::System("disk_kb_per_transaction"), &[]),
    row("disk busy, %", Of::Host("disk_busy_percent"), &["disk_busy_percent"]),
    row("disk queue length", Of::Host("disk_queue_length"), &["disk_queue_length"]),
    row("disk service time, ms", Of::Host("disk_service_ms"), &["disk_service_ms"]),
    row("memory of the system, MB", Of::System("rss_mb_max"), &[]),
    row("memory available, MB", Of::Host("memory_available_mb"), &["memory_available_mb"]),
    of_report(row("memory committed, MB", Of::Host("memory_committed_mb"), &["memory_committed_mb"])),
    of_report(row("memory committed, %", Of::Host("memory_committed_percent"), &["memory_committed_percent"])),
    of_report(row("page scans, per s", Of::Host("scan_rate_pages_per_s"), &["scan_rate_pages_per_s"])),
    row("network, KB per s", Of::Host("network_kb_per_s"), &["network_kb_per_s"]),
];

impl Of {
    fn value(&self, cell: &CellSummary) -> Option<f64> {
        match self {
            Self::Cell(of) => of(cell),
            Self::Host(name) => cell.host.get(*name).copied().flatten(),
            Self::System(name) => cell.system.get(*name).copied().flatten(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn number(n: u64) -> f64 {
    n as f64
}

fn per_trial(cell: &CellSummary, n: u64) -> Option<f64> {
    lab_stats::ratio(number(n), number(cell.valid_trials as u64))
}

/// Measures down, cells across, published figures beside.
pub(super) fn levels(analysis: &Analysis) -> Option<Section> {
    if analysis.cells.iter().all(|cell| cell.valid_trials == 0) {
        return None;
    }
    let words = "Transactions, errors, and skipped steps count the whole trial, ramp included; all \
                 else counts the hold after its warm-up.";
    let mut blocks = vec![Block::Paragraph(words.to_owned())];
    blocks.extend(service_note(analysis).map(Block::Paragraph));
    blocks.extend(without_valid(analysis).map(Block::Paragraph));
    let rows = rows(analysis);
    blocks.push(Block::Figures(measured(
        analysis,
        Figures {
            name: "Figures per level",
            of: "figure",
            cells: cell_heads(analysis),
            parts: vec![Part {
                name: "here",
                is_detail: false,
            }],
            published: published_note(analysis, &rows),
            rows,
        },
    )));
    Some(Section::new("Per level", blocks))
}

/// All rows with content; published figures without a row get rows of their own.
fn rows(analysis: &Analysis) -> Vec<FigureRow> {
    let mut rows = Vec::new();
    let mut shown: Vec<&str> = Vec::new();
    for measure in &ROWS {
        let values = analysis.cells.iter().map(|cell| measure.of.value(cell));
        let values: Vec<Option<f64>> = values.collect();
        let published = Entries::of(analysis, measure.published, None);
        let has_none = values.iter().all(Option::is_none) && !published.any();
        let is_of_report = measure.is_of_report && !published.any();
        if has_none || is_of_report {
            continue;
        }
        shown.extend(measure.published);
        let show = if measure.is_count { whole } else { figure };
        let figures = values.into_iter().map(|value| Figure::new(value, show));
        rows.push(figure_row(measure.name, figures, &published));
    }
    for (metric, name) in further_metrics(analysis, &shown) {
        let published = Entries::of(analysis, &[metric], None);
        let ours = (0..analysis.cells.len()).map(|at| published.at(at)?.ours);
        let figures = ours.map(|ours| Figure::new(ours, figure));
        rows.push(figure_row(name, figures, &published));
    }
    rows
}

fn figure_row(
    name: &str,
    figures: impl Iterator<Item = Figure>,
    published: &Entries<'_>,
) -> FigureRow {
    let entry = |(at, figure)| FigureEntry {
        figures: vec![figure],
        bound: None,
        published: published.beside(at),
    };
    FigureRow {
        name: name.to_owned(),
        entries: figures.enumerate().map(entry).collect(),
        has_published: published.any(),
    }
}

/// The most loaded cell with a valid trial; of a search, the one at the load line.
fn key_cell(analysis: &Analysis) -> Option<&CellSummary> {
    let line = analysis.load_line.as_ref();
    let is_line = |cell: &&CellSummary| {
        line.is_some_and(|line| {
            let mut factors = line.cell.iter();
            line.users == Some(cell.users)
                && factors.all(|(factor, level)| cell.cell.get(factor) == Some(level))
        })
    };
    let measured = |cell: &&CellSummary| cell.valid_trials > 0;
    let at_line = analysis.cells.iter().filter(measured).find(is_line);
    at_line.or_else(|| most_loaded(&analysis.cells))
}

/// The figures of the most important cell.
pub(super) fn key_figures(analysis: &Analysis) -> Option<Section> {
    let cell = key_cell(analysis)?;
    let at = analysis
        .cells
        .iter()
        .position(|one| one.cell == cell.cell)?;
    let one = |name, unit, value: Option<f64>, columns: &[&str]| KeyFigure {
        name,
        text: Figure::new(value, figure).text,
        unit,
        published: Entries::of(analysis, columns, None).beside(at),
    };
    let response = &cell.response_ms;
    let cpu = Of::Host("cpu_percent").value(cell);
    let transactions = mean(cell.transactions);
    let errors = KeyFigure {
        text: Figure::new(cell.errors_per_trial, whole).text,
        ..one("errors", "", None, &[])
    };
    let figures = vec![
        one(
            "throughput",
            "per s",
            mean(cell.throughput_per_s),
            THROUGHPUT,
        ),
        one("mean response", "ms", mean(response.mean), RESPONSE),
        one("p95 response", "ms", mean(response.p95), &[]),
        one("CPU of the host", "%", cpu, &["cpu_percent"]),
        one("transactions", "", transactions, &["transactions"]),
        errors,
    ];
    let mut blocks = vec![Block::KeyFigures(figures)];
    if let Some(note) = analysis.speed_note().filter(|_| analysis.has_published()) {
        blocks.push(Block::Paragraph(format!("Published figures: {note}.")));
    }
    Some(Section::of_page(format!("At {}", cell.label), blocks))
}
