//! Named transactions: groups of steps, and the session as a whole.

use super::by_cell::by_cell;
use super::figures::{counted, mean};
use crate::Analysis;
use crate::document::{Cell, Column, Kind, Row, Section, Table};
use crate::model::{CellSummary, TransactionSummary};

/// A table for each cell; `None` if no session has more than one request.
pub(super) fn transactions(analysis: &Analysis) -> Option<Section> {
    let cells = analysis.cells.iter();
    let cells: Vec<&CellSummary> = cells
        .filter(|cell| !cell.named_transactions.is_empty())
        .collect();
    let lead = "Times from the first request of several to the last response, in ms: without the think times between \
                them, and as “elapsed” with them. Times are of the completed ones. A transaction fails if one \
                of its requests does. Skipped are those in which a request was left out for want of an entry; unfinished are those that were under way at the end or when their user left.";
    by_cell("Named transactions", lead, &cells, table)
}

fn table(cell: &CellSummary) -> Table {
    let mut columns = vec![Column::new("transaction", Kind::Text)];
    let figures = [
        "completed",
        "per s",
        "failed",
        "skipped",
        "unfinished",
        "mean",
        "p50",
        "p95",
        "p99",
        "elapsed p50",
        "elapsed p95",
    ];
    columns.extend(figures.map(|head| Column::new(head, Kind::Number)));
    let rows = cell.named_transactions.iter().map(row).collect();
    Table::new("Named transactions", "transaction", columns, rows)
}

fn row(one: &TransactionSummary) -> Row {
    let (time, elapsed) = (&one.time_ms, &one.elapsed_ms);
    let mut cells = vec![
        Cell::text(one.name.clone()),
        counted(one.completed),
        Cell::number(mean(one.completed_per_s)),
        counted(one.failed),
        counted(one.skipped),
        counted(one.unfinished),
    ];
    let times = [
        time.mean,
        time.p50,
        time.p95,
        time.p99,
        elapsed.p50,
        elapsed.p95,
    ];
    cells.extend(times.map(|figure| Cell::number(mean(figure))));
    Row::new(cells)
}
