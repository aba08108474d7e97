//! The rows of the table per level, shared by all writers: what is shown, from where, how, and
//! which published columns stand beside it.

use crate::Analysis;
use crate::format::{NONE, count, figure, or_none};
use crate::model::{CellSummary, Entry, Estimate};

/// One row of the table per level.
pub(crate) struct Row {
    /// What it is, with its unit.
    pub(crate) name: String,
    /// One text per cell, in the analysis's order.
    pub(crate) ours: Vec<String>,
    /// One published entry per cell, where there is one; empty if there is none at all.
    pub(crate) published: Vec<Option<Entry>>,
}

type Figure = fn(&CellSummary) -> Option<f64>;

/// Name, figure, whether it is a count, published columns that mean the same.
const ROWS: [(&str, Figure, bool, &[&str]); 36] = [
    (
        "transactions",
        |cell| mean(cell.transactions),
        true,
        &["transactions"],
    ),
    ("errors", |cell| cell.errors_per_trial, true, &["errors"]),
    ("skipped steps", |cell| cell.skipped_per_trial, true, &[]),
    (
        "throughput, per s",
        |cell| mean(cell.throughput_per_s),
        false,
        &["average_tps", "throughput_per_s"],
    ),
    (
        "NotesMark, per min",
        |cell| mean(cell.notesmark_per_min),
        false,
        &["notesmark_tpm"],
    ),
    (
        "mean response, ms",
        |cell| mean(cell.response_ms.mean),
        false,
        &["response_mean_ms", "response_ms"],
    ),
    ("p50, ms", |cell| mean(cell.response_ms.p50), false, &[]),
    ("p95, ms", |cell| mean(cell.response_ms.p95), false, &[]),
    ("p99, ms", |cell| mean(cell.response_ms.p99), false, &[]),
    ("max, ms", |cell| cell.response_ms.max, false, &[]),
    (
        "service mean, ms",
        |cell| mean(cell.service_ms?.mean),
        false,
        &[],
    ),
    (
        "service p95, ms",
        |cell| mean(cell.service_ms?.p95),
        false,
        &[],
    ),
    (
        "service p99, ms",
        |cell| mean(cell.service_ms?.p99),
        false,
        &[],
    ),
    (
        "sessions planned, per s",
        |cell| Some(cell.arrivals?.planned_per_s),
        false,
        &[],
    ),
    (
        "sessions arrived, per s",
        |cell| Some(cell.arrivals?.arrived_per_s),
        false,
        &[],
    ),
    (
        "most sessions waiting",
        |cell| Some(count_of(cell.arrivals?.waiting_max)),
        true,
        &[],
    ),
    (
        "probe transactions",
        |cell| per_trial(cell, cell.probe?.transactions),
        true,
        &[],
    ),
    (
        "probe errors",
        |cell| per_trial(cell, cell.probe?.errors),
        true,
        &[],
    ),
    (
        "probe mean, ms",
        |cell| mean(cell.probe_ms?.mean),
        false,
        &["probe_ms"],
    ),
    ("probe p95, ms", |cell| mean(cell.probe_ms?.p95), false, &[]),
    (
        "CPU of the host, %",
        |cell| host(cell, "cpu_percent"),
        false,
        &["cpu_percent"],
    ),
    (
        "CPU of the system, % of core",
        |cell| system(cell, "cpu_percent"),
        false,
        &[],
    ),
    (
        "CPU per transaction, ms",
        |cell| system(cell, "cpu_ms_per_transaction"),
        false,
        &[],
    ),
    (
        "disk transfers, per s",
        |cell| host(cell, "disk_transfers_per_s"),
        false,
        &["disk_transfers_per_s"],
    ),
    (
        "disk, KB per s",
        |cell| host(cell, "disk_kb_per_s"),
        false,
        &["disk_kb_per_s"],
    ),
    (
        "disk transfers per transaction",
        |cell| host(cell, "disk_transfers_per_transaction"),
        false,
        &[],
    ),
    (
        "disk, KB per transaction",
        |cell| host(cell, "disk_kb_per_transaction"),
        false,
        &[],
    ),
    (
        "disk busy, %",
        |cell| host(cell, "disk_busy_percent"),
        false,
        &["disk_busy_percent"],
    ),
    (
        "disk queue length",
        |cell| host(cell, "disk_queue_length"),
        false,
        &["disk_queue_length"],
    ),
    (
        "disk service time, ms",
        |cell| host(cell, "disk_service_ms"),
        false,
        &["disk_service_ms"],
    ),
    (
        "memory of the system, MB",
        |cell| system(cell, "rss_mb_max"),
        false,
        &[],
    ),
    (
        "memory available, MB",
        |cell| host(cell, "memory_available_mb"),
        false,
        &["memory_available_mb"],
    ),
    (
        "memory committed, MB",
        |cell| host(cell, "memory_committed_mb"),
        false,
        &["memory_committed_mb"],
    ),
    (
        "memory committed, %",
        |cell| host(cell, "memory_committed_percent"),
        false,
        &["memory_committed_percent"],
    ),
    (
        "page scans, per s",
        |cell| host(cell, "scan_rate_pages_per_s"),
        false,
        &["scan_rate_pages_per_s"],
    ),
    (
        "network, KB per s",
        |cell| host(cell, "network_kb_per_s"),
        false,
        &["network_kb_per_s"],
    ),
];

fn mean(estimate: Option<Estimate>) -> Option<f64> {
    estimate.map(|estimate| estimate.mean)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn count_of(n: u64) -> f64 {
    n as f64
}

fn per_trial(cell: &CellSummary, n: u64) -> Option<f64> {
    lab_stats::ratio(count_of(n), count_of(cell.valid_trials as u64))
}

/// Rows that only some loads have: without any value they aren't shown.
const OPTIONAL: [&str; 4] = ["probe", "service", "sessions", "most sessions"];

fn host(cell: &CellSummary, name: &str) -> Option<f64> {
    cell.host.get(name).copied().flatten()
}

fn system(cell: &CellSummary, name: &str) -> Option<f64> {
    cell.system.get(name).copied().flatten()
}

/// All rows that have anything to show; published figures that no row holds get rows of their own.
pub(crate) fn level_rows(analysis: &Analysis) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut shown: Vec<&str> = Vec::new();
    for (name, figure_of, is_count, columns) in ROWS {
        let values: Vec<Option<f64>> = analysis.cells.iter().map(figure_of).collect();
        let published = published(analysis, columns, None);
        let optional = OPTIONAL.iter().any(|kind| name.starts_with(kind));
        if values.iter().all(Option::is_none) && published.is_empty() && optional {
            continue;
        }
        shown.extend(columns);
        let show = if is_count { whole } else { figure };
        let ours = values
            .into_iter()
            .map(|value| or_none(value, show))
            .collect();
        rows.push(Row {
            name: name.to_owned(),
            ours,
            published,
        });
    }
    rows.extend(further_rows(analysis, &shown));
    rows
}

/// A mean of counts: as a count where it is whole or large.
pub(crate) fn whole(value: f64) -> String {
    if value < 99.5 && value.fract() != 0.0 {
        return figure(value);
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are positive and far below 2^52"
    )]
    let n = value.round() as u64;
    count(n)
}

/// Published metrics of the whole workload that `shown` doesn't name.
fn further_rows(analysis: &Analysis, shown: &[&str]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    for entry in analysis.published.iter().flat_map(|table| &table.entries) {
        let metric = entry.metric.as_str();
        if entry.step.is_some() || shown.contains(&metric) || done.contains(&metric) {
            continue;
        }
        done.push(metric);
        let published = published(analysis, &[metric], None);
        let ours = published
            .iter()
            .map(|entry| or_none(entry.as_ref().and_then(|entry| entry.ours), figure))
            .collect();
        rows.push(Row {
            name: entry.name.clone(),
            ours,
            published,
        });
    }
    rows
}

/// The published entry of each cell for the first of `columns` that has any; empty if none has.
pub(crate) fn published(
    analysis: &Analysis,
    columns: &[&str],
    step: Option<&str>,
) -> Vec<Option<Entry>> {
    for column in columns {
        let found: Vec<Option<Entry>> = analysis
            .cells
            .iter()
            .map(|cell| {
                let mut entries = analysis.published.iter().flat_map(|table| &table.entries);
                entries
                    .find(|entry| {
                        entry.metric == *column
                            && entry.step.as_deref() == step
                            && entry.cell == cell.cell
                    })
                    .cloned()
            })
            .collect();
        if found.iter().any(Option::is_some) {
            return found;
        }
    }
    Vec::new()
}

/// The published mean response of a step, per cell.
pub(crate) fn published_step(analysis: &Analysis, step: &str) -> Vec<Option<Entry>> {
    published(analysis, &["response_mean_ms"], Some(step))
}

/// The published figure as shown: grouped like ours if it is a number.
pub(crate) fn published_text(entry: &Entry) -> String {
    match entry.published {
        // As many digits as published: rounding someone else's figure would misquote it.
        Some(_) => match entry.published_text.parse::<u64>() {
            Ok(n) => count(n),
            Err(_) => grouped(&entry.published_text),
        },
        None if entry.published_text.is_empty() => NONE.to_owned(),
        None => entry.published_text.clone(),
    }
}

/// `11974.5` as `11,974.5`; anything that isn't plain digits stays as it is.
fn grouped(text: &str) -> String {
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    match whole.parse::<u64>() {
        Ok(n) if !rest.is_empty() => format!("{}.{rest}", count(n)),
        _ => text.to_owned(),
    }
}

/// What a reader must know of the published figures, each once, with what it is about.
pub(crate) fn published_notes(analysis: &Analysis) -> Vec<String> {
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    for entry in analysis.published.iter().flat_map(|table| &table.entries) {
        let Some(note) = &entry.note else { continue };
        let about = entry.step.clone().unwrap_or_else(|| entry.name.clone());
        match notes.iter_mut().find(|(text, _)| text == note) {
            Some((_, names)) if names.contains(&about) => {}
            Some((_, names)) => names.push(about),
            None => notes.push((note.clone(), vec![about])),
        }
    }
    let mut lines: Vec<String> = notes
        .into_iter()
        .map(|(note, names)| format!("{}: {note}", names.join("; ")))
        .collect();
    for table in &analysis.published {
        lines.extend(
            table
                .left_out
                .iter()
                .map(|line| format!("{}: {line}", table.file)),
        );
    }
    lines
}
