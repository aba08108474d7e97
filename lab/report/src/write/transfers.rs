//! The table of what sessions carried, shared by all writers: ours, and what was published.

use crate::Analysis;
use crate::format::{count, figure, or_none};
use crate::model::{CellSummary, Estimate, PublishedTransfer, TransferSummary};
use crate::write::rows::whole;

/// The table, in words.
pub(crate) struct Transfers {
    pub(crate) title: &'static str,
    pub(crate) lead: String,
    /// Heads of the columns after the first.
    pub(crate) heads: Vec<String>,
    /// A name and a text per column.
    pub(crate) rows: Vec<(&'static str, Vec<String>)>,
    /// What the heads of published columns stand for.
    pub(crate) notes: Vec<String>,
}

/// Of an analysis whose sessions carried anything.
pub(crate) fn transfers(analysis: &Analysis) -> Option<Transfers> {
    let with = |cell: &CellSummary| Some((cell.label.clone(), cell.transfer.clone()?));
    let ours: Vec<(String, TransferSummary)> = analysis.cells.iter().filter_map(with).collect();
    if ours.is_empty() {
        return None;
    }
    let tables = analysis.published.iter();
    let published: Vec<(&str, &PublishedTransfer)> = tables
        .flat_map(|table| table.transfers.iter().map(|row| (table.file.as_str(), row)))
        .collect();
    let heads = ours.iter().map(|(label, _)| label.clone());
    let head = |(at, _): (usize, &(&str, &PublishedTransfer))| format!("published {}", at + 1);
    let note = |(at, (file, row)): (usize, &(&str, &PublishedTransfer))| {
        format!("published {}: {}, from {file}", at + 1, row.label)
    };
    let has_raw = ours.iter().any(|(_, one)| one.raw_mb_per_s.is_some());
    Some(Transfers {
        title: "What the sessions carried",
        lead: lead(has_raw),
        heads: heads
            .chain(published.iter().enumerate().map(head))
            .collect(),
        rows: rows(&ours, &published, has_raw),
        notes: published.iter().enumerate().map(note).collect(),
    })
}

fn lead(has_raw: bool) -> String {
    let raw = if has_raw {
        " The disk alone: as many new files of the same chunks, each chunk synced, written to the \
         same disk just before and just after each trial's sessions."
    } else {
        ""
    };
    format!(
        "Sessions without a failed request, from the first request to the last answer. Times and \
         rates are means over trials; minimum and maximum are over all of them.{raw}"
    )
}

type Ours = fn(&TransferSummary) -> String;
type Theirs = fn(&PublishedTransfer) -> String;

fn rows(
    ours: &[(String, TransferSummary)],
    published: &[(&str, &PublishedTransfer)],
    has_raw: bool,
) -> Vec<(&'static str, Vec<String>)> {
    let nothing: Theirs = |_| String::new();
    let all: [(&'static str, Ours, Theirs); 12] = [
        ("database", |one| one.place.clone(), nothing),
        ("size, bytes", |one| count(one.bytes), nothing),
        ("chunk, bytes", |one| count(one.chunk_bytes), nothing),
        ("count", |one| whole(one.count), |row| row.count.clone()),
        (
            "total, ms",
            |one| mean(one.total_ms),
            |row| row.total_ms.clone(),
        ),
        (
            "minimum, ms",
            |one| or_none(one.min_ms, figure),
            |row| row.minimum_ms.clone(),
        ),
        (
            "maximum, ms",
            |one| or_none(one.max_ms, figure),
            |row| row.maximum_ms.clone(),
        ),
        (
            "average, ms",
            |one| mean(one.mean_ms),
            |row| row.average_ms.clone(),
        ),
        (
            "MB/s of whole ms",
            |one| or_none(one.kib_per_whole_ms, figure),
            |row| row.mb_per_s.clone(),
        ),
        ("MB/s", |one| mean(one.mb_per_s), nothing),
        ("disk alone, MB/s", |one| mean(one.raw_mb_per_s), nothing),
        ("of the disk, %", |one| percent(one.of_raw), nothing),
    ];
    let shown = if has_raw { all.len() } else { all.len() - 2 };
    let row = |(name, mine, theirs): &(&'static str, Ours, Theirs)| {
        let mine = ours.iter().map(|(_, one)| mine(one));
        let texts = mine.chain(published.iter().map(|(_, row)| theirs(row)));
        (*name, texts.collect())
    };
    all[..shown].iter().map(row).collect()
}

/// What two of the rows mean.
pub(crate) const LEGEND: &str = "MB/s of whole ms: KiB of a session ÷ the average cut to whole ms, \
                                 as published. MB/s: 10⁶ bytes per second, nothing cut off.";

fn mean(estimate: Option<Estimate>) -> String {
    or_none(estimate.map(|estimate| estimate.mean), figure)
}

fn percent(estimate: Option<Estimate>) -> String {
    or_none(estimate.map(|one| one.mean * 100.0), figure)
}
