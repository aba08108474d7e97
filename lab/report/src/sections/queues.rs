//! Queues and pools that users share.

use super::by_cell::by_cell;
use super::figures::{mean, whole};
use crate::Analysis;
use crate::document::{Cell, Column, Kind, Row, Section, Table};
use crate::model::{CellSummary, QueueSummary};

/// A table for each cell; `None` where users share no queue and no row.
pub(super) fn queues(analysis: &Analysis) -> Option<Section> {
    let cells = analysis.cells.iter();
    let cells: Vec<&CellSummary> = cells.filter(|cell| !cell.queues.is_empty()).collect();
    let lead = "What steps put into queues and took out of them, in the whole trials, and rows of pools that sessions had to \
                themselves. Dropped are entries for which a queue was full; skipped are steps for which nothing came in \
                time. Waits for what was taken are in ms, zeros included: they are neither think times nor response times. \
                Queues are of each generator, and lengths those of all generators together, in the trial with the longest; other \
                counts are sums over the trials.";
    by_cell("Queues", lead, &cells, table)
}

fn table(cell: &CellSummary) -> Table {
    let mut columns = vec![Column::new("queue", Kind::Text)];
    let figures = [
        "put in",
        "taken",
        "dropped",
        "skipped",
        "left at the end",
        "longest",
        "wait mean",
        "wait p50",
        "wait p95",
        "wait p99",
    ];
    columns.extend(figures.map(|head| Column::new(head, Kind::Number)));
    let rows = cell.queues.iter().map(row).collect();
    Table::new("Queues", "queue", columns, rows)
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn row(one: &QueueSummary) -> Row {
    let count = |count: u64| Cell {
        value: Some(count as f64),
        ..Cell::text(whole(count as f64))
    };
    let of_queue = |number: u64| match one.is_pool {
        true => Cell::text("–"),
        false => count(number),
    };
    let name = match one.is_pool {
        true => format!("{} (pool)", one.name),
        false => one.name.clone(),
    };
    let mut cells = vec![
        Cell::text(name),
        of_queue(one.puts),
        count(one.takes),
        of_queue(one.dropped),
        of_queue(one.missed),
        of_queue(one.length),
        of_queue(one.longest),
    ];
    let wait = &one.queue_wait_ms;
    let waits = [wait.mean, wait.p50, wait.p95, wait.p99];
    cells.extend(waits.map(|figure| Cell::number(mean(figure))));
    Row::new(cells)
}
