//! The systems' own counters, per transaction, and their differences.

use lab_asked::{CountedSeries, largest};

use crate::Analysis;
use crate::document::{Block, Cell, Column, Kind, Row, Section, Table};

/// The maximum number of rows of an ask's table.
const ROWS: usize = 20;
/// The maximum length of a counter's name beside figures in a terminal.
const LETTERS: usize = 38;
/// The maximum number of cells with a column.
const MOST_CELLS: usize = 4;

const LEAD: &str = "Counters of the system itself, read during the hold after warm-up: how much they rose per \
                    transaction, the largest first. All are in result.json.";
const TESTED: &str = "Compared block by block, all counters of an ask tested together. These differences explain; they \
                      do not change the verdict or the exit code.";

/// `What the system counted`.
pub(super) fn counted(analysis: &Analysis) -> Option<Section> {
    let all = &analysis.counting.counted;
    if all.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Paragraph(LEAD.to_owned())];
    let mut asks: Vec<&str> = all.iter().map(|one| one.ask.as_str()).collect();
    asks.dedup();
    for ask in asks {
        let differences = analysis
            .counting
            .ask_differences
            .iter()
            .filter(|one| one.ask == ask);
        let sentences: Vec<String> = differences
            .flat_map(|one| one.sentences.iter().cloned())
            .collect();
        blocks.push(Block::Paragraph(format!("As `{ask}` counts:")));
        blocks.push(Block::Table(table(&largest(all, ask, ROWS))));
        if !sentences.is_empty() {
            blocks.push(Block::List(sentences));
        }
    }
    if !analysis.counting.ask_differences.is_empty() {
        blocks.push(Block::Paragraph(TESTED.to_owned()));
    }
    Some(Section::new("What the system counted", blocks))
}

fn table(rows: &[&CountedSeries]) -> Table {
    let cells = rows.first().map_or(&[][..], |one| &one.cells);
    let cells = &cells[..cells.len().min(MOST_CELLS)];
    let heads = cells
        .iter()
        .map(|cell| Column::new(cell.label.clone(), Kind::Number));
    let mut columns = vec![Column::new("counter", Kind::Text)];
    columns.extend(heads);
    columns.push(Column::new("of", Kind::Text));
    let row = |one: &&CountedSeries| {
        let figures = one.cells.iter().take(cells.len()).map(|cell| Cell {
            value: cell.per_transaction,
            ..Cell::text(one.figure(cell).unwrap_or_else(|| "–".to_owned()))
        });
        let figures = std::iter::once(Cell::text(&one.column)).chain(figures);
        Row::new(figures.chain([Cell::text(one.subject(LETTERS))]).collect())
    };
    Table::new(
        "What the system counted",
        "counter",
        columns,
        rows.iter().map(row).collect(),
    )
}
