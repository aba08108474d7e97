//! A section with a table for each cell, up to a readable number of cells.

use crate::document::{Block, Section, Table};
use crate::model::CellSummary;

/// The maximum number of cells with a table; all are in `result.json`.
const MOST_CELLS: usize = 12;

/// The section of these cells under a title, which also names the subject; `None` without a cell.
pub(super) fn by_cell(
    title: &str,
    lead: &str,
    cells: &[&CellSummary],
    table: impl Fn(&CellSummary) -> Table,
) -> Option<Section> {
    let (shown, more) = cells.split_at(cells.len().min(MOST_CELLS));
    if shown.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Paragraph(lead.to_owned())];
    for cell in shown {
        if cells.len() > 1 {
            blocks.push(Block::Paragraph(format!("At {}:", cell.label)));
        }
        blocks.push(Block::Table(table(cell)));
    }
    if !more.is_empty() {
        let words = format!(
            "The {} of {} more cells are in result.json.",
            title.to_lowercase(),
            more.len()
        );
        blocks.push(Block::Paragraph(words));
    }
    Some(Section::new(title, blocks))
}
