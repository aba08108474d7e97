//! Limits a document to the size of a readable page, with a sentence for each removed part.

use crate::document::{Block, Document, Figures, Group, Heading, Table};
use crate::format::plural;

/// Columns of cells of the study.
const MOST_CELLS: usize = 24;
/// Rows of a table.
const MOST_ROWS: usize = 300;

/// The document, limited to the size of a page.
pub(super) fn fitted(document: &Document) -> Document {
    let mut fitted = document.clone();
    let mut left_out: Vec<String> = Vec::new();
    let blocks = fitted.sections.iter_mut().flat_map(|it| &mut it.blocks);
    for block in blocks {
        let said = match block {
            Block::Table(table) | Block::Lookup(table) | Block::Fold(_, table) => rows(table),
            Block::Figures(figures) => cells(figures),
            _ => None,
        };
        left_out.extend(said.filter(|said| !left_out.contains(said)));
    }
    fitted.findings.extend(left_out);
    fitted
}

fn left_out(all: usize, most: usize, noun: &str) -> Option<String> {
    let all_of_them = plural(all, noun);
    (all > most).then(|| {
        format!("This page shows {most} of {all_of_them}; result.json and steps.csv have all.")
    })
}

/// Rows in folds take no room until they are opened; the renderer of folds limits and reports their number.
fn rows(table: &mut Table) -> Option<String> {
    let is_fold = |group: &Group| matches!(group.heading, Heading::Summary(_));
    let mut all = 0;
    for group in table.groups.iter_mut().filter(|group| !is_fold(group)) {
        let room = MOST_ROWS.saturating_sub(all);
        all += group.rows.len();
        group.rows.truncate(room);
    }
    let is_shown = |group: &Group| !group.rows.is_empty() || is_fold(group);
    table.groups.retain(is_shown);
    left_out(all, MOST_ROWS, table.row)
}

fn cells(figures: &mut Figures) -> Option<String> {
    let said = left_out(figures.cells.len(), MOST_CELLS, "cell");
    figures.cells.truncate(MOST_CELLS);
    for row in &mut figures.rows {
        row.entries.truncate(MOST_CELLS);
    }
    said
}
