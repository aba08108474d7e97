//! The stages of a load: the figures of each.

use super::by_cell::by_cell;
use super::figures::{counted, mean, whole};
use super::words::millis;
use crate::Analysis;
use crate::document::{Cell, Column, Kind, Row, Section, Table};
use crate::format::{duration, figure, percent};
use crate::model::{CellSummary, StagePlan, StageSummary};

/// A table for each cell; `None` if no load has stages.
pub(super) fn stages(analysis: &Analysis) -> Option<Section> {
    let cells = analysis.cells.iter().filter(|cell| !cell.stages.is_empty());
    let cells: Vec<&CellSummary> = cells.collect();
    let lead = "All of each stage counts, in ms and per second; nothing is cut off as warm-up. In a stage \
                that ramps the load is never the same for long: its figures describe no level, and no \
                threshold is about it. Of plan: the load that the server had, of what was planned.";
    by_cell("Stages", lead, &cells, table)
}

fn table(cell: &CellSummary) -> Table {
    let texts = ["stage", "load"].map(|head| Column::new(head, Kind::Text));
    let figures = ["for", "tx/s", "of plan", "errors", "mean", "p95", "p99"];
    let figures = figures.map(|head| Column::new(head, Kind::Number));
    let columns = texts.into_iter().chain(figures).collect();
    Table::new(
        "Stages",
        "stage",
        columns,
        cell.stages.iter().map(row).collect(),
    )
}

fn row(stage: &StageSummary) -> Row {
    let (plan, times) = (&stage.plan, &stage.response_ms);
    let length = millis(plan.length_ms);
    let of_plan = mean(stage.delivered_per_s).zip(mean(stage.offered_per_s));
    let of_plan = of_plan.and_then(|(had, planned)| Some(100.0 * lab_stats::ratio(had, planned)?));
    let errors = counted(stage.errors);
    let shown = |value: Option<f64>, show: fn(f64) -> String| Cell {
        value,
        ..Cell::text(crate::format::or_none(value, show))
    };
    Row::new(vec![
        Cell::text(&plan.name),
        Cell::text(level(plan)),
        shown(Some(length), duration),
        Cell::number(mean(stage.throughput_per_s)),
        shown(of_plan, percent),
        errors,
        Cell::number(mean(times.mean)),
        Cell::number(mean(times.p95)),
        Cell::number(mean(times.p99)),
    ])
}

/// `100 users`, `100 → 500 users`, `20 → 0/s`.
fn level(plan: &StagePlan) -> String {
    let unit = if plan.arrives { "/s" } else { " users" };
    let level = |level: f64| match plan.arrives {
        true => figure(level),
        false => whole(level),
    };
    match plan.ramps {
        true => format!("{} → {}{unit}", level(plan.from), level(plan.to)),
        false => format!("{}{unit}", level(plan.to)),
    }
}
