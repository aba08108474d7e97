//! The populations of a load: the figures of each, and of all together.

use super::by_cell::by_cell;
use super::figures::{mean, whole};
use crate::Analysis;
use crate::document::{Cell, Column, Kind, Row, Section, Table};
use crate::format::{duration, figure, or_none, percent};
use crate::model::{CellSummary, Estimate, PopulationPlan, PopulationSummary, TimesSummary};

/// A table for each cell; `None` without populations.
pub(super) fn populations(analysis: &Analysis) -> Option<Section> {
    let cells = analysis.cells.iter();
    let cells: Vec<&CellSummary> = cells.filter(|cell| !cell.populations.is_empty()).collect();
    let lead = "Who was there at the same time, each with what its own users sent, in ms and per second of \
                the hold. Of plan: the load that the server had, of what was planned.";
    by_cell("Populations", lead, &cells, table)
}

fn table(cell: &CellSummary) -> Table {
    let texts = ["population", "workload", "load"].map(|head| Column::new(head, Kind::Text));
    let figures = ["tx/s", "of plan", "errors", "mean", "p95", "p99"];
    let figures = figures.map(|head| Column::new(head, Kind::Number));
    let columns = texts.into_iter().chain(figures).collect();
    let each = cell.populations.iter().map(|one| {
        let plan = &one.plan;
        let words = [plan.name.clone(), plan.workload.clone(), load(plan)];
        let rates = [one.throughput_per_s, one.delivered_per_s, one.offered_per_s].map(mean);
        row(words, rates, one.errors, &one.response_ms)
    });
    let errors = cell.populations.iter().map(|one| one.errors).sum();
    let words = ["all", "", ""].map(str::to_owned);
    let sum = |of: fn(&PopulationSummary) -> Option<Estimate>| -> Option<f64> {
        cell.populations.iter().map(|one| mean(of(one))).sum()
    };
    let rates = [
        mean(cell.throughput_per_s),
        sum(|one| one.delivered_per_s),
        sum(|one| one.offered_per_s),
    ];
    let all = row(words, rates, errors, &cell.response_ms);
    let rows = each.chain([all]).collect();
    Table::new("Populations", "population", columns, rows)
}

fn row(
    words: [String; 3],
    [throughput, delivered, offered]: [Option<f64>; 3],
    errors: u64,
    times: &TimesSummary,
) -> Row {
    let of_plan = delivered.zip(offered);
    let of_plan = of_plan.and_then(|(had, planned)| Some(100.0 * lab_stats::ratio(had, planned)?));
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let errors = errors as f64;
    let shown = |value: Option<f64>, show: fn(f64) -> String| Cell {
        value,
        ..Cell::text(or_none(value, show))
    };
    let figures = [
        Cell::number(throughput),
        shown(of_plan, percent),
        shown(Some(errors), whole),
        Cell::number(mean(times.mean)),
        Cell::number(mean(times.p95)),
        Cell::number(mean(times.p99)),
    ];
    let words = words.into_iter().map(Cell::text);
    Row::new(words.chain(figures).collect())
}

/// `800 users`, `20/s`, `20 users after 5 min`.
fn load(plan: &PopulationPlan) -> String {
    let load = match plan.arrivals_per_s {
        Some(rate) => format!("{}/s", figure(rate)),
        None => format!("{} users", whole(f64::from(plan.users))),
    };
    match plan.after_ms {
        Some(ms) => format!("{load} after {}", duration(ms as f64)),
        None => load,
    }
}
