//! Tables of the page. A number carries its value in `data-v`, so that sorting sorts numbers.

use maud::{Markup, html};

use super::parts::{class_of, frame, judged};
use crate::document::{Badge, Cell, Column, Group, Heading, Kind, Record, Records, Table, Tone};
use crate::format::plural;

/// Folds of a page: more would outgrow what people can read.
const MOST_FOLDS: usize = 24;

fn heads(columns: &[Column]) -> Markup {
    html! {
        thead { tr {
            @for column in columns {
                th scope="col" class=(head_class(column.kind)) { (column.head) }
            }
        } }
    }
}

fn head_class(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Prose => "text",
        Kind::Number | Kind::Published | Kind::Ratio => "",
    }
}

fn cell_class(kind: Kind, cell: &Cell) -> String {
    let of_kind = match kind {
        Kind::Number => "",
        Kind::Text => "text",
        Kind::Prose => "text wrap",
        Kind::Published => "pub",
        Kind::Ratio => "ratio",
    };
    // What is judged stays readable in a row that is struck out.
    let kept = if cell.is_outcome { " keep" } else { "" };
    let tone = class_of(cell.tone);
    let gap = if tone.is_empty() { "" } else { " " };
    format!("{of_kind}{kept}{gap}{tone}")
        .trim_start()
        .to_owned()
}

fn cells(columns: &[Column], cells: &[Cell]) -> Markup {
    html! {
        @for (at, (column, cell)) in columns.iter().zip(cells).enumerate() {
            @if at == 0 {
                th scope="row" { (cell.text) }
            } @else {
                td class=(cell_class(column.kind, cell)) data-v=[cell.value] {
                    @if cell.is_outcome { (judged(cell.tone, &cell.text)) } @else { (cell.text) }
                }
            }
        }
    }
}

pub(super) fn table(table: &Table) -> Markup {
    let rows = html! {
        (heads(&table.columns))
        tbody {
            @for row in &table.rows {
                tr class=[row.struck.then_some("invalid")] { (cells(&table.columns, &row.cells)) }
                "\n"
            }
        }
    };
    frame(if table.sorts { "sorts" } else { "" }, &table.name, rows)
}

/// Groups under their names in one table, or each in a fold of its own under its summary.
pub(super) fn records(records: &Records) -> Markup {
    let (folded, together): (Vec<&Group>, Vec<&Group>) = records
        .groups
        .iter()
        .partition(|group| matches!(group.heading, Heading::Summary(_)));
    html! {
        @if !together.is_empty() { (one_table(records, &together)) }
        (folds(records, folded))
    }
}

fn one_table(records: &Records, groups: &[&Group]) -> Markup {
    let rows = html! {
        (heads(&records.columns))
        tbody {
            @for group in groups {
                @if matches!(group.heading, Heading::Name) {
                    tr.section {
                        th scope="rowgroup" colspan=(records.columns.len()) { (group.name) }
                    }
                    "\n"
                }
                (rows_of(records, &group.records))
            }
        }
    };
    let has_names = groups.iter().any(|group| !group.name.is_empty());
    frame(if has_names { "" } else { "sorts" }, records.name, rows)
}

fn rows_of(records: &Records, all: &[Record]) -> Markup {
    html! {
        @for record in all { tr { (cells(&records.columns, &record.cells)) } "\n" }
    }
}

/// Those with something to say are open, and go first where not all are shown.
fn folds(records: &Records, mut groups: Vec<&Group>) -> Markup {
    let worst = |group: &Group| {
        let cells = group.records.iter().flat_map(|record| &record.cells);
        cells.map(|cell| cell.tone).max()
    };
    let left_out = groups.len().saturating_sub(MOST_FOLDS);
    if left_out > 0 {
        groups.sort_by_key(|group| std::cmp::Reverse(worst(group)));
        groups.truncate(MOST_FOLDS);
    }
    html! {
        @for group in groups {
            @if let Heading::Summary(summary) = &group.heading {
                details open[worst(group) >= Some(Tone::Warn)] {
                    (summary_line(summary))
                    (frame("", &format!("{}, {}", records.name, group.name), html! {
                        (heads(&records.columns))
                        tbody { (rows_of(records, &group.records)) }
                    }))
                }
            }
        }
        @if left_out > 0 {
            p.lead { (plural(left_out, "further trial")) ": see report.md or result.json." }
        }
    }
}

fn summary_line(summary: &Badge) -> Markup {
    html! { summary class=(class_of(summary.tone)) { (judged(summary.tone, &summary.text)) } }
}
