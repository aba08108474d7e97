//! Common parts of tables of figures: means, counts, heads, and the notes on published figures.

use crate::Analysis;
use crate::document::{Cell, CellHead, FigureRow, Figures, PublishedNote};
use crate::format::{count, figure, list, plural};
use crate::model::{CellSummary, Estimate};

pub(super) fn mean(estimate: Option<Estimate>) -> Option<f64> {
    estimate.map(|estimate| estimate.mean)
}

/// The cells of the study as heads of columns.
pub(super) fn cell_heads(analysis: &Analysis) -> Vec<CellHead> {
    let cells = analysis.cells.iter().map(|cell| CellHead {
        label: cell.label.clone(),
        valid: cell.valid_trials,
        trials: cell.trials,
    });
    cells.collect()
}

/// The notes on published figures, if there are any in the rows.
pub(super) fn published_note(analysis: &Analysis, rows: &[FigureRow]) -> Option<PublishedNote> {
    let has_any = rows.iter().any(|row| row.has_published);
    has_any.then(|| PublishedNote(analysis.speed_note()))
}

/// A count.
pub(super) fn counted(count: u64) -> Cell {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let value = count as f64;
    Cell {
        value: Some(value),
        ..Cell::text(whole(value))
    }
}

/// A mean of counts: as a count if it is whole or large.
pub(super) fn whole(value: f64) -> String {
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

/// Removes the columns of cells without a valid trial: they would contain only dashes.
pub(super) fn measured(analysis: &Analysis, mut figures: Figures) -> Figures {
    let is_measured: Vec<bool> = analysis.cells.iter().map(has_valid).collect();
    figures.cells = kept(figures.cells, &is_measured);
    for row in &mut figures.rows {
        row.entries = kept(std::mem::take(&mut row.entries), &is_measured);
        let mut entries = row.entries.iter();
        row.has_published = entries.any(|entry| entry.published.is_some());
    }
    figures
}

fn has_valid(cell: &CellSummary) -> bool {
    cell.valid_trials > 0
}

fn kept<T>(all: Vec<T>, is_kept: &[bool]) -> Vec<T> {
    let all = all.into_iter().zip(is_kept);
    all.filter_map(|(one, is_kept)| is_kept.then_some(one))
        .collect()
}

/// The cells without a column; `None` if all have one.
pub(super) fn without_valid(analysis: &Analysis) -> Option<String> {
    /// The maximum number of named cells; more are counted.
    const MOST: usize = 6;
    let cells = analysis.cells.iter().filter(|cell| !has_valid(cell));
    let labels: Vec<String> = cells.map(|cell| cell.label.clone()).collect();
    let named = match labels.len() {
        0 => return None,
        n if n > MOST => plural(n, "cell"),
        _ => list(&labels),
    };
    Some(format!(
        "Without a column, since no trial of theirs is a measurement: {named}."
    ))
}
