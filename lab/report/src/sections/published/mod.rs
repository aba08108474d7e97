//! Published figures beside ours: their cells, their format, and the notes on them. A separate module: studies without
//! a published report don't use it.

mod transfers;

pub(super) use transfers::transfers;

use crate::Analysis;
use crate::document::{Block, Cell, Column, Kind, Published, Row, Section, Table};
use crate::format::{NONE, count, plural};
use crate::model::{AsIs, Entry};

/// The published entries that stand beside one figure of each cell.
pub(crate) struct Entries<'a>(Vec<Option<&'a Entry>>);

impl<'a> Entries<'a> {
    /// The entries of the first of `columns` that has any; of a step, or of the whole workload.
    pub(super) fn of(analysis: &'a Analysis, columns: &[&str], step: Option<&str>) -> Self {
        let found = columns.iter().map(|column| {
            let entry = |cell: &crate::model::CellSummary| {
                let mut entries = all(analysis);
                entries.find(|entry| {
                    entry.metric == *column
                        && entry.step.as_deref() == step
                        && entry.cell == cell.cell
                })
            };
            Self(analysis.cells.iter().map(entry).collect())
        });
        let mut found = found.filter(Self::any);
        found.next().unwrap_or_else(|| Self(Vec::new()))
    }

    /// The published mean response of a step.
    pub(crate) fn of_step(analysis: &'a Analysis, step: &str) -> Self {
        Self::of(analysis, &["response_mean_ms"], Some(step))
    }

    /// Returns true if any cell has one.
    pub(super) fn any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    /// The entry of the cell at an index.
    pub(crate) fn at(&self, at: usize) -> Option<&'a Entry> {
        self.0.get(at).copied().flatten()
    }

    /// The same, formatted to stand beside ours.
    pub(super) fn beside(&self, at: usize) -> Option<Published> {
        self.at(at).map(beside)
    }
}

fn all(analysis: &Analysis) -> impl Iterator<Item = &Entry> {
    let tables = analysis.published.iter();
    tables.flat_map(|table| &table.entries)
}

/// Returns true if a published mean stands beside that of any step.
pub(super) fn has_steps(analysis: &Analysis) -> bool {
    all(analysis).any(|entry| entry.step.is_some() && entry.published.is_some())
}

fn beside(entry: &Entry) -> Published {
    Published {
        text: published_text(entry),
        value: entry.published,
        ratio: entry.ratio,
    }
}

/// Published metrics of the whole workload that `shown` doesn't name, with their names.
pub(super) fn further_metrics<'a>(
    analysis: &'a Analysis,
    shown: &[&str],
) -> Vec<(&'a str, &'a str)> {
    let mut found: Vec<(&str, &str)> = Vec::new();
    for entry in all(analysis).filter(|entry| entry.step.is_none()) {
        let metric = entry.metric.as_str();
        if !shown.contains(&metric) && found.iter().all(|(one, _)| *one != metric) {
            found.push((metric, &entry.name));
        }
    }
    found
}

/// The published figure as shown: grouped like ours if it is a number.
pub(super) fn published_text(entry: &Entry) -> String {
    match entry.published {
        // As many digits as published: rounding another author's figure would misquote it.
        Some(_) => grouped(&entry.published_text),
        None if entry.published_text.is_empty() => NONE.to_owned(),
        None => entry.published_text.clone(),
    }
}

/// `11974.5` as `11,974.5`; other texts than plain digits stay unchanged.
fn grouped(text: &str) -> String {
    match text
        .split_once('.')
        .map(|(whole, rest)| (whole.parse(), rest))
    {
        None => text.parse().map_or_else(|_| text.to_owned(), count),
        Some((Ok(whole), rest)) if !rest.is_empty() => format!("{}.{rest}", count(whole)),
        Some(_) => text.to_owned(),
    }
}

/// The source of the figures, the figures for no level of this run, all others, and notes.
pub(super) fn published(analysis: &Analysis) -> Option<Section> {
    if analysis.published.is_empty() || analysis.cells.is_empty() {
        return None;
    }
    let tables = analysis.published.iter();
    let source = tables.map(|table| format!("{}: {}", table.file, table.source.join(" ")));
    let mut blocks = vec![Block::List(source.collect())];
    let as_is = analysis.published.iter().filter_map(|it| it.as_is.as_ref());
    blocks.extend(as_is.map(as_is_table).map(Block::Table));
    let figures = all(analysis).count();
    if figures > 0 {
        let summary = format!("All {}, with notes", plural(figures, "figure"));
        blocks.push(Block::Fold(summary, every_figure(analysis)));
    }
    let speed = analysis.speed_note();
    let mut lines: Vec<String> = Vec::from_iter(speed.map(|it| format!("All comparisons: {it}.")));
    lines.extend(notes(analysis));
    blocks.push(Block::List(lines));
    Some(Section::new("Published figures", blocks))
}

/// The notes on the published figures, each once, with its subject.
fn notes(analysis: &Analysis) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in all(analysis) {
        let Some(note) = &entry.note else { continue };
        let about = entry.step.as_ref().unwrap_or(&entry.name);
        match notes.iter_mut().find(|(text, _)| text == note) {
            Some((_, names)) if names.contains(&about.as_str()) => {}
            Some((_, names)) => names.push(about),
            None => notes.push((note, vec![about])),
        }
    }
    let notes = notes.into_iter();
    let notes = notes.map(|(note, names)| format!("{}: {note}", names.join("; ")));
    let left_out = analysis.published.iter().flat_map(|table| {
        let lines = table.left_out.iter();
        lines.map(|line| format!("{}: {line}", table.file))
    });
    notes.chain(left_out).collect()
}

/// Published figures for no level of this run, unchanged.
fn as_is_table(as_is: &AsIs) -> Table {
    let heads = as_is.heads.iter();
    let columns = heads.map(|head| Column::new(head, Kind::Number)).collect();
    let row = |texts: &Vec<String>| Row::new(texts.iter().map(Cell::text).collect());
    let rows = as_is.rows.iter().map(row).collect();
    Table::new("Published figures", "published figure", columns, rows)
}

/// Every published figure with ours, sortable by ratio.
fn every_figure(analysis: &Analysis) -> Table {
    let columns = [
        ("figure", Kind::Text),
        ("cell", Kind::Text),
        ("here", Kind::Number),
        ("published", Kind::Published),
        ("×", Kind::Ratio),
        ("note", Kind::Prose),
    ];
    let row = |entry: &Entry| {
        let name = match &entry.step {
            Some(step) => format!("{}: {step}", entry.name),
            None => entry.name.clone(),
        };
        let times = entry.ratio.map_or_else(String::new, crate::format::ratio);
        let with = |text: String, value| Cell {
            value,
            ..Cell::text(text)
        };
        Row::new(vec![
            Cell::text(name),
            Cell::text(&entry.label),
            Cell::number(entry.ours),
            with(published_text(entry), entry.published),
            with(times, entry.ratio),
            Cell::text(entry.note.as_deref().unwrap_or_default()),
        ])
    };
    let columns = columns.map(|(head, kind)| Column::new(head, kind));
    let rows = all(analysis).map(row).collect();
    Table::new(
        "Published figures",
        "published figure",
        columns.to_vec(),
        rows,
    )
}
