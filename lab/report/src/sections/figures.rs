//! What tables of figures share: means, counts, heads, and what is said of published figures.

use crate::Analysis;
use crate::document::{CellHead, FigureRow, PublishedNote};
use crate::format::{count, figure};
use crate::model::Estimate;

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

/// What must be said of published figures, where there are any in the rows.
pub(super) fn published_note(analysis: &Analysis, rows: &[FigureRow]) -> Option<PublishedNote> {
    let has_any = rows.iter().any(|row| row.has_published);
    has_any.then(|| PublishedNote(analysis.speed_note()))
}

/// A mean of counts: as a count where it is whole or large.
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
