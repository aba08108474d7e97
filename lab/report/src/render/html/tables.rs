//! Tables of the page. A number has its value in `data-v`, so that sorting compares numbers.

use maud::{Markup, html};

use super::parts::{class_of, frame, judged};
use crate::document::{Badge, Cell, Column, Group, Heading, Kind, Row, Table, Tone};
use crate::format::plural;

/// With more problematic folds than these, all folds are closed.
const MOST_OPEN: usize = 2;
/// The maximum number of folds of a page that people can read.
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
    // Judgements stay readable in a row that is struck out.
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
                th scope="row" {
                    @match &cell.link {
                        Some(link) => a href=(link) { (cell.text) },
                        None => (cell.text),
                    }
                }
            } @else {
                td class=(cell_class(column.kind, cell)) data-v=[cell.value] {
                    @if cell.is_outcome { (judged(cell.tone, &cell.text)) } @else { (cell.text) }
                }
            }
        }
    }
}

/// Groups under their names in one table, or each in a fold of its own under its summary.
pub(super) fn table(table: &Table) -> Markup {
    let (folded, together): (Vec<&Group>, Vec<&Group>) = table
        .groups
        .iter()
        .partition(|group| matches!(group.heading, Heading::Summary(_)));
    html! {
        @if !together.is_empty() { (one_table(table, &together)) }
        (folds(table, folded))
    }
}

fn one_table(table: &Table, groups: &[&Group]) -> Markup {
    let rows = html! {
        (heads(&table.columns))
        tbody {
            @for group in groups {
                @if matches!(group.heading, Heading::Name) {
                    tr.section {
                        th scope="rowgroup" colspan=(table.columns.len()) { (group.name) }
                    }
                    "\n"
                }
                (rows_of(table, &group.rows))
            }
        }
    };
    frame(if table.sorts { "sorts" } else { "" }, table.name, rows)
}

fn rows_of(table: &Table, rows: &[Row]) -> Markup {
    html! {
        @for row in rows {
            tr class=[class_of_row(row)] { (cells(&table.columns, &row.cells)) }
            "\n"
        }
    }
}

/// The worst come first if not all are shown. A few problematic ones are open; for many, the text above them states the
/// common problem once.
fn folds(table: &Table, mut groups: Vec<&Group>) -> Markup {
    let worst = |group: &Group| {
        let cells = group.rows.iter().flat_map(|row| &row.cells);
        cells.map(|cell| cell.tone).max()
    };
    let left_out = groups.len().saturating_sub(MOST_FOLDS);
    if left_out > 0 {
        groups.sort_by_key(|group| std::cmp::Reverse(worst(group)));
        groups.truncate(MOST_FOLDS);
    }
    let told = |group: &&&Group| worst(group) >= Some(Tone::Warn);
    let few = groups.iter().filter(told).count() <= MOST_OPEN;
    html! {
        @for group in groups {
            @if let Heading::Summary(summary) = &group.heading {
                details open[few && told(&&group)] {
                    (summary_line(summary))
                    (frame("", &format!("{}, {}", table.name, group.name), html! {
                        (heads(&table.columns))
                        tbody { (rows_of(table, &group.rows)) }
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

fn class_of_row(row: &Row) -> Option<&'static str> {
    match (row.struck, row.muted) {
        (true, _) => Some("invalid"),
        (false, true) => Some("muted"),
        (false, false) => None,
    }
}
