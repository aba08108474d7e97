//! The table of transfers: ours, and published ones.

use crate::Analysis;
use crate::document::{Block, Cell, Column, Kind, Row, Section, Table};
use crate::format::{count, figure, or_none};
use crate::model::{CellSummary, Estimate, PublishedTransfer, TransferSummary};
use crate::sections::figures::whole;

/// The section, if sessions transferred anything.
pub(crate) fn transfers(analysis: &Analysis) -> Option<Section> {
    let with = |cell: &CellSummary| Some((cell.label.clone(), cell.transfer.clone()?));
    let ours: Vec<(String, TransferSummary)> = analysis.cells.iter().filter_map(with).collect();
    if ours.is_empty() {
        return None;
    }
    let tables = analysis.published.iter();
    let published: Vec<(&str, &PublishedTransfer)> = tables
        .flat_map(|table| table.transfers.iter().map(|row| (table.file.as_str(), row)))
        .collect();
    let name = |at: usize| format!("published {}", at + 1);
    let heads = ours.iter().map(|(label, _)| label.clone());
    let heads = std::iter::once(String::new()).chain(heads);
    let heads = heads.chain((0..published.len()).map(name));
    let notes = published.iter().enumerate();
    let notes = notes.map(|(at, (file, row))| format!("{}: {}, from {file}", name(at), row.label));
    let has_raw = ours.iter().any(|(_, one)| one.raw_mb_per_s.is_some());
    let title = "What the sessions carried";
    let columns = heads.map(|head| Column::new(head, Kind::Number)).collect();
    let rows = rows(&ours, &published, has_raw);
    let table = Table {
        sorts: false,
        ..Table::new(title, "figure", columns, rows)
    };
    let blocks = vec![
        Block::Paragraph(lead(has_raw)),
        Block::Paragraph(LEGEND.to_owned()),
        Block::Table(table),
        Block::List(notes.collect()),
    ];
    Some(Section::new(title, blocks))
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
) -> Vec<Row> {
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
        let name = std::iter::once((*name).to_owned());
        Row::new(name.chain(texts).map(Cell::text).collect())
    };
    all[..shown].iter().map(row).collect()
}

/// The meaning of two of the rows.
const LEGEND: &str = "MB/s of whole ms: KiB of a session ÷ the average cut to whole ms, as \
                      published. MB/s: 10⁶ bytes per second, nothing cut off.";

fn mean(estimate: Option<Estimate>) -> String {
    or_none(estimate.map(|estimate| estimate.mean), figure)
}

fn percent(estimate: Option<Estimate>) -> String {
    or_none(estimate.map(|one| one.mean * 100.0), figure)
}
