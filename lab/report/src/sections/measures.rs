//! Numbers from responses: the length of a queue, the size of a heap.

use super::by_cell::by_cell;
use super::figures::{counted, mean};
use crate::Analysis;
use crate::document::{Cell, Column, Kind, Row, Section, Table};
use crate::model::{CellSummary, MeasureSummary};

/// A table for each cell; `None` without any measures.
pub(super) fn measures(analysis: &Analysis) -> Option<Section> {
    let cells = analysis.cells.iter();
    let cells: Vec<&CellSummary> = cells.filter(|cell| !cell.measures.is_empty()).collect();
    let lead = "Numbers that answers in the hold told, each in its own unit, as the workload has them under \
                `measure`.";
    by_cell("Measures", lead, &cells, table)
}

fn table(cell: &CellSummary) -> Table {
    let texts = ["measure", "step"].map(|head| Column::new(head, Kind::Text));
    let figures = ["numbers", "mean", "min", "p50", "p95", "p99", "max"];
    let figures = figures.map(|head| Column::new(head, Kind::Number));
    let columns = texts.into_iter().chain(figures).collect();
    let rows = cell.measures.iter().map(row).collect();
    Table::new("Measures", "measure", columns, rows)
}

fn row(measure: &MeasureSummary) -> Row {
    let name = match measure.unit.as_str() {
        "" => measure.name.clone(),
        unit => format!("{}, {unit}", measure.name),
    };
    let mut cells = vec![
        Cell::text(name),
        Cell::text(measure.step.clone()),
        counted(measure.samples),
    ];
    let values = &measure.values;
    let figures = [
        mean(values.mean),
        values.min,
        mean(values.p50),
        mean(values.p95),
        mean(values.p99),
        values.max,
    ];
    cells.extend(figures.map(Cell::number));
    Row::new(cells)
}
