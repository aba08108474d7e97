//! What sessions carry: its rate, and how close that comes to what the disk alone does.

use hdrhistogram::Histogram;
use lab_archive::model::RawBaseline;
use lab_stats::histogram::{max, mean, min};

use crate::format::{figure, list};
use crate::model::{
    CellSummary, Estimate, PublishedTransfer, Transfer, TransferSummary, TrialAnalysis,
};
use crate::number::as_f64;

/// More cells than this are left to the table.
const MOST_CELLS: usize = 4;
/// Columns of a published file of transfers, after those that say what was set.
const PUBLISHED: [&str; 6] = [
    "count",
    "total_ms",
    "minimum_ms",
    "maximum_ms",
    "average_ms",
    "mb_per_s",
];

/// Of a trial whose sessions took these times, in µs.
pub(crate) fn of_trial(
    carried: &lab_plan::Transfer,
    sessions: &Histogram<u64>,
    raw: Option<&RawBaseline>,
) -> Transfer {
    let ms = |us: u64| as_f64(us) / 1000.0;
    let mean_ms = mean(sessions).map(|us| us / 1000.0);
    let mb_per_s = mean_ms.and_then(|ms| rate(carried.bytes, ms));
    let raw_mb_per_s = raw.and_then(raw_rate);
    Transfer {
        place: carried.place.clone(),
        bytes: carried.bytes,
        chunk_bytes: carried.chunk_bytes,
        count: sessions.len(),
        total_ms: mean_ms.map(|mean| mean * as_f64(sessions.len())),
        min_ms: min(sessions).map(ms),
        max_ms: max(sessions).map(ms),
        mean_ms,
        mb_per_s,
        kib_per_whole_ms: mean_ms.and_then(|mean| kib_per_whole_ms(carried.bytes, mean)),
        raw_mb_per_s,
        of_raw: mb_per_s
            .zip(raw_mb_per_s)
            .and_then(|(ours, raw)| lab_stats::ratio(ours, raw)),
    }
}

/// 10⁶ bytes per second.
fn rate(bytes: u64, ms: f64) -> Option<f64> {
    lab_stats::ratio(as_f64(bytes) / 1e3, ms)
}

/// Report 002's: 2048 KiB in 81.4 ms are 2048 ÷ 81. `None` below a whole ms.
fn kib_per_whole_ms(bytes: u64, ms: f64) -> Option<f64> {
    lab_stats::ratio(as_f64(bytes) / 1024.0, ms.trunc())
}

/// All passes together, so that a disk that slows down through a trial shows as half of that.
fn raw_rate(raw: &RawBaseline) -> Option<f64> {
    let bytes = raw.files * raw.file_bytes * raw.passes_ms.len() as u64;
    rate(bytes, raw.passes_ms.iter().sum())
}

/// Over the valid trials of a cell; `None` where they carried nothing, or not all the same.
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

    fn carried(bytes: u64, chunk_bytes: u64) -> lab_plan::Transfer {
        lab_plan::Transfer {
            place: "a".to_owned(),
            bytes,
            chunk_bytes,
        }
    }

    #[test]
    fn rates_are_those_of_report_002_and_the_true_ones() {
        let mut sessions = Histogram::<u64>::new(3).unwrap();
        // 814 ms in all, as published: 81.4 ms each.
        sessions.record_n(81_400, 10).unwrap();
        let raw = RawBaseline {
            files: 10,
            file_bytes: 2_097_152,
            chunk_bytes: 262_144,
            passes_ms: vec![300.0, 500.0],
        };
        let found = of_trial(&carried(2_097_152, 262_144), &sessions, Some(&raw));
        assert_eq!(found.kib_per_whole_ms.unwrap(), 2048.0 / 81.0);
        assert!((found.mb_per_s.unwrap() - 25.76).abs() < 0.02, "{found:?}");
        assert!((found.raw_mb_per_s.unwrap() - 52.43).abs() < 0.01);
        assert!((found.of_raw.unwrap() - 0.491).abs() < 0.002);
        assert!((found.total_ms.unwrap() - 814.0).abs() < 1.0);
    }

    #[test]
    fn nothing_is_made_of_no_sessions_and_of_less_than_a_millisecond() {
        let mut sessions = Histogram::<u64>::new(3).unwrap();
        let none = of_trial(&carried(1000, 1000), &sessions, None);
        assert_eq!((none.count, none.mb_per_s, none.of_raw), (0, None, None));
        sessions.record(900).unwrap();
        let quick = of_trial(&carried(1000, 1000), &sessions, None);
        assert_eq!(quick.kib_per_whole_ms, None);
        assert!(quick.mb_per_s.is_some());
    }

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
