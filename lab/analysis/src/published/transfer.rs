//! The data that a cell's sessions transferred, beside published reports.

use lab_trial::format::{figure, list};
use lab_trial::{as_f64, kib_per_whole_ms};

use crate::model::{
    CellSummary, Estimate, PublishedTransfer, Transfer, TransferSummary, TrialAnalysis,
};

/// The maximum number of cells in sentences; the table has all.
const MOST_CELLS: usize = 4;
/// Columns of a published file of transfers, after the columns with the settings.
const PUBLISHED: [&str; 6] = [
    "count",
    "total_ms",
    "minimum_ms",
    "maximum_ms",
    "average_ms",
    "mb_per_s",
];

/// Over the valid trials of a cell; `None` if they transferred nothing, or not all the same.
pub(crate) fn of_cell(valid: &[&TrialAnalysis]) -> Option<TransferSummary> {
    let all: Option<Vec<&Transfer>> = valid.iter().map(|trial| trial.transfer.as_ref()).collect();
    let all = all?;
    let first = all.first()?;
    let same = |one: &&Transfer| (one.bytes, one.chunk_bytes) == (first.bytes, first.chunk_bytes);
    if !all.iter().all(same) {
        return None;
    }
    let over = |of: fn(&Transfer) -> Option<f64>| Estimate::of(all.iter().map(|one| of(one)));
    let sessions: u64 = all.iter().map(|one| one.count).sum();
    let mean_ms = over(|one| one.mean_ms);
    Some(TransferSummary {
        place: first.place.clone(),
        bytes: first.bytes,
        chunk_bytes: first.chunk_bytes,
        count: as_f64(sessions) / as_f64(all.len() as u64),
        total_ms: over(|one| one.total_ms),
        min_ms: all.iter().filter_map(|one| one.min_ms).reduce(f64::min),
        max_ms: all.iter().filter_map(|one| one.max_ms).reduce(f64::max),
        mean_ms,
        mb_per_s: over(|one| one.mb_per_s),
        kib_per_whole_ms: mean_ms.and_then(|mean| kib_per_whole_ms(first.bytes, mean.mean)),
        raw_mb_per_s: over(|one| one.raw_mb_per_s),
        of_raw: over(|one| one.of_raw),
    })
}

/// `The system wrote at 71 % of what the disk alone does with the same chunks (52.3 of 73.6 MB/s) at
/// a 1.`
pub(crate) fn sentence(cells: &[CellSummary]) -> Option<String> {
    let parts = cells.iter().filter_map(|cell| {
        let transfer = cell.transfer.as_ref()?;
        let (ours, raw) = (transfer.mb_per_s?.mean, transfer.raw_mb_per_s?.mean);
        Some((transfer.of_raw?.mean * 100.0, cell, ours, raw))
    });
    let words = parts.take(MOST_CELLS).enumerate();
    let words: Vec<String> = words
        .map(|(at, (of_raw, cell, ours, raw))| {
            let what = [" of what the disk alone does with the same chunks", ""][at.min(1)];
            let (ours, raw) = (figure(ours), figure(raw));
            format!(
                "{of_raw:.0} %{what} at {} ({ours} of {raw} MB/s)",
                cell.label
            )
        })
        .collect();
    (!words.is_empty()).then(|| format!("The system wrote at {}.", list(&words)))
}

/// The rows of a published file that has these figures; empty if it has others.
pub(crate) fn published(header: &[String], rows: &[Vec<String>]) -> Vec<PublishedTransfer> {
    let at = PUBLISHED.map(|name| header.iter().position(|column| column == name));
    let [
        Some(count),
        Some(total),
        Some(least),
        Some(most),
        Some(mean),
        Some(rate),
    ] = at
    else {
        return Vec::new();
    };
    let row = |row: &Vec<String>| {
        let text = |at: usize| row.get(at).cloned().unwrap_or_default();
        let set = header.iter().zip(row).take(count);
        let set: Vec<String> = set.map(|(name, value)| format!("{name} {value}")).collect();
        PublishedTransfer {
            label: set.join(" · "),
            count: text(count),
            total_ms: text(total),
            minimum_ms: text(least),
            maximum_ms: text(most),
            average_ms: text(mean),
            mb_per_s: text(rate),
        }
    };
    rows.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_published_files_have_no_transfers() {
        let texts = |texts: &[&str]| texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let header = texts(&[
            "knob",
            "count",
            "total_ms",
            "minimum_ms",
            "maximum_ms",
            "average_ms",
            "mb_per_s",
        ]);
        let rows = [texts(&["4", "10", "192", "16", "35", "19", "107.8"])];
        let found = published(&header, &rows);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].label.as_str(), found[0].mb_per_s.as_str()),
            ("knob 4", "107.8")
        );
        assert!(published(&header[..6], &rows).is_empty());
    }
}
