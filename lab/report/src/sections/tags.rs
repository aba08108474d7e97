//! The tags of steps: figures of the steps with each tag.

use super::by_cell::by_cell;
use super::figures::{mean, whole};
use crate::Analysis;
use crate::document::{Cell, Column, Kind, Row, Section, Table};
use crate::model::{CellSummary, TagSummary};

/// A table for each cell; `None` if no step has a tag.
pub(super) fn tags(analysis: &Analysis) -> Option<Section> {
    let cells = analysis.cells.iter();
    let cells: Vec<&CellSummary> = cells.filter(|cell| !cell.tags.is_empty()).collect();
    let lead = "What the steps that have a tag come to together, in ms and per second of the hold. A step \
                with several tags counts in each.";
    by_cell("Tags", lead, &cells, table)
}

fn table(cell: &CellSummary) -> Table {
    let mut columns = vec![Column::new("tag", Kind::Text)];
    let figures = ["steps", "tx/s", "errors", "mean", "p50", "p95", "p99"];
    columns.extend(figures.map(|head| Column::new(head, Kind::Number)));
    let rows = cell.tags.iter().map(row).collect();
    Table::new("Tags", "tag", columns, rows)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn row(tag: &TagSummary) -> Row {
    let count = |count: f64| Cell {
        value: Some(count),
        ..Cell::text(whole(count))
    };
    let times = &tag.response_ms;
    let mut cells = vec![
        Cell::text(tag.name.clone()),
        count(tag.steps.len() as f64),
        Cell::number(mean(tag.throughput_per_s)),
        count(tag.errors as f64),
    ];
    let times = [times.mean, times.p50, times.p95, times.p99];
    cells.extend(times.map(|figure| Cell::number(mean(figure))));
    Row::new(cells)
}
