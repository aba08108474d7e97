//! Shared queues and pools of users.

use super::by_cell::by_cell;
use super::figures::{counted, mean};
use crate::Analysis;
use crate::document::{Cell, Column, Kind, Row, Section, Table};
use crate::model::{CellSummary, QueueSummary};

/// A table for each cell; `None` if users share no queue and no row.
pub(super) fn queues(analysis: &Analysis) -> Option<Section> {
    let cells = analysis.cells.iter();
    let cells: Vec<&CellSummary> = cells.filter(|cell| !cell.queues.is_empty()).collect();
    let lead = "What steps put into queues and took out of them, and the rows of pools that sessions leased, summed over whole \
                trials. “Dropped” counts entries that found the queue full; “skipped” counts steps that got no entry in time. \
                Waits are in ms, zero waits included: they are neither think times nor response times. Each generator has its \
                own queues; lengths add up all generators, in the trial with the longest queue.";
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

fn row(one: &QueueSummary) -> Row {
    let of_queue = |number: u64| match one.is_pool {
        true => Cell::text("–"),
        false => counted(number),
    };
    let name = match one.is_pool {
        true => format!("{} (pool)", one.name),
        false => one.name.clone(),
    };
    let mut cells = vec![
        Cell::text(name),
        of_queue(one.puts),
        counted(one.takes),
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
