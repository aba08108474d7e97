//! A document for a terminal: plain text, no colour, understandable as it is.
//!
//! Names and messages are from files and servers: they are shown without control characters, so that nothing in them
//! can steer the terminal.

use crate::document::{
    Block, CellHead, Document, FigureEntry, FigureRow, Figures, Group, Heading, Matrix, Role,
    Section, Table, Tone,
};
use crate::format::{count, ratio};
use crate::model::{LineLevel, LoadLine};
use crate::render::text_page::{Page, clip, column_head, left, right};
use lab_analysis::{load_line_figure, safe_line_words};

/// The width of one cell's column.
const CELL: usize = 17;
/// The width of the parts of an entry after its first.
const PART: usize = 8;
/// The minimum width of names.
const NAMES: usize = 26;
/// The maximum number of lines of a document without a result, before its environment and its verdict.
const ONE_SCREEN: usize = 44;
/// Between two columns of a table.
const GAP: usize = 2;
/// The maximum width of a table's heads.
const HEAD: usize = 13;
/// The name of the line with published figures.
const PUBLISHED: &str = "  published";

/// The document in `width` columns (80 suits most terminals).
#[must_use]
pub fn terminal(document: &Document, width: usize) -> String {
    let mut page = Page::new(width);
    page.paragraph(&document.title, 0);
    // With several lines, each must differ visibly from the next.
    let hang = if document.origin.len() > 1 { 2 } else { 0 };
    for line in &document.origin {
        page.paragraph(line, hang);
    }
    let with = |role: Role| {
        let all = document.sections.iter();
        all.filter(move |section| section.role == role)
    };
    // After a failure, readers need its reasons before the environment.
    let went_wrong = document.verdict.tone == Tone::Bad;
    if !went_wrong {
        with(Role::Circumstances).for_each(|section| circumstances(&mut page, section));
    }
    page.line("");
    page.paragraph(&document.headline, 0);
    for section in with(Role::Lead) {
        section.blocks.iter().for_each(|one| block(&mut page, one));
    }
    list(&mut page, &document.findings);
    for line in &document.load_lines {
        load_line(&mut page, line, document.load_lines.len() > 1);
    }
    let most = match document.is_void {
        true => ONE_SCREEN,
        false => usize::MAX,
    };
    for section in &document.sections {
        let written = page.within(most, |page| match section.role {
            Role::Body => body(page, section),
            Role::Apart(_) => page.apart(|page| body(page, section)),
            Role::Lead | Role::Circumstances | Role::Page => {}
        });
        if written.is_none() {
            page.line("");
            page.paragraph(&format!("{}: see report.html.", section.title), 0);
        }
    }
    if went_wrong && with(Role::Circumstances).next().is_some() {
        page.section("Environment");
        with(Role::Circumstances).for_each(|section| circumstances(&mut page, section));
    }
    page.section("Verdict");
    page.paragraph(&document.verdict.text, 0);
    page.finish()
}

fn body(page: &mut Page, section: &Section) {
    page.section(&section.title);
    section.blocks.iter().for_each(|one| block(page, one));
}

/// The environment of the measurement, in sentences.
fn circumstances(page: &mut Page, section: &Section) {
    for block in &section.blocks {
        match block {
            Block::Facts { sentence, .. } => page.paragraph(sentence, 0),
            Block::List(lines) => lines.iter().for_each(|line| page.paragraph(line, 2)),
            _ => {}
        }
    }
}

fn block(page: &mut Page, block: &Block) {
    match block {
        Block::Paragraph(text) => page.paragraph(text, 0),
        Block::List(lines) => list(page, lines),
        Block::Facts { sentence, .. } => page.paragraph(sentence, 0),
        Block::Table(table) => self::table(page, table),
        Block::Figures(one) => figures(page, one),
        Block::Matrices(all) => all.iter().for_each(|one| matrix(page, one)),
        Block::Printed(who, lines) => {
            page.paragraph(who, 0);
            lines.iter().for_each(|line| page.printed(line));
        }
        Block::KeyFigures(_)
        | Block::Fold(..)
        | Block::Lookup(_)
        | Block::Charts(_)
        | Block::Flame(_)
        | Block::Spent(_) => {}
    }
}

fn list(page: &mut Page, lines: &[String]) {
    for line in lines {
        page.paragraph(&format!("- {line}"), 2);
    }
}

/// The ship's mark: the ring, the line through it, and its number of users; then the levels that were tried, with the
/// most users on top, as on a ship's hull.
fn load_line(page: &mut Page, line: &LoadLine, is_one_of_many: bool) {
    page.section(&match is_one_of_many {
        false => "Load line".to_owned(),
        true => format!("Load line · {}", line.label),
    });
    page.paragraph(&format!("──⊖──  {}", load_line_figure(line)), 6);
    page.paragraph(&format!("with {}", line.thresholds.join(", ")), 6);
    page.line("");
    page.paragraph(&format!("{}.", safe_line_words(line)), 6);
    page.line("");
    for at in line.levels.iter().rev() {
        let users = format!("{} users", count(u64::from(at.users)));
        page.line(&format!("{}  {}", right(&users, 16), marks(line, at)));
    }
}

/// A mark per trial at a level: `●` passed, `○` failed, `×` invalid.
fn marks(line: &LoadLine, at: &LineLevel) -> String {
    let tried = [
        ("●", "carried", at.carried),
        ("○", "not carried", at.not_carried),
        ("×", "invalid", at.invalid),
    ];
    let marks = tried.map(|(mark, _, n)| mark.repeat(n.min(20) as usize));
    let words = tried.into_iter().filter(|(_, _, n)| *n > 0);
    let mut words: Vec<String> = words.map(|(_, word, n)| format!("{n} {word}")).collect();
    if at.held_while_disturbed > 0 {
        words.push(format!(
            "{} of them held all the same",
            at.held_while_disturbed
        ));
    }
    let is_safe = line.safe.is_some_and(|safe| safe.users == at.users);
    let here = match (line.users == Some(at.users), is_safe) {
        (true, true) => " ── the line, and the safe one",
        (true, false) => " ── the line: half hold",
        (false, true) => " ── the safe line",
        (false, false) => "",
    };
    format!("{}  {}{here}", left(&marks.concat(), 8), words.join(", "))
}

/// Rows as sentences if they have any, else in columns.
fn table(page: &mut Page, table: &Table) {
    let is_introduced = |group: &Group| !matches!(group.heading, Heading::None);
    let is_told = table.rows().any(|row| row.sentence.is_some());
    if is_told || table.groups.iter().any(is_introduced) {
        groups(page, table);
    } else {
        columns(page, table);
    }
}

/// Each row in a sentence, under its group's introduction.
fn groups(page: &mut Page, table: &Table) {
    for group in &table.groups {
        let (dash, hang) = match (&group.heading, group.name.is_empty()) {
            (Heading::Name, _) => {
                page.line("");
                page.paragraph(&group.name, 0);
                ("- ", 2)
            }
            (Heading::Summary(summary), _) => {
                page.paragraph(&summary.text, 2);
                ("- ", 4)
            }
            (Heading::None, false) => ("- ", 4),
            (Heading::None, true) => ("", 2),
        };
        for sentence in sentences(group) {
            page.paragraph(&format!("{dash}{sentence}"), hang);
        }
    }
}

fn sentences(group: &Group) -> impl Iterator<Item = &String> {
    let rows = group.rows.iter();
    rows.filter_map(|row| row.sentence.as_ref())
}

/// Cells of the study across, as many as fit; the others below, beside the names again.
fn figures(page: &mut Page, figures: &Figures) {
    if let Some(note) = &figures.published {
        let note = note.0.as_ref();
        let note = note.map_or_else(String::new, |note| format!("; {note}"));
        page.paragraph(
            &format!("A line below a figure has the published one and ours ÷ published (×){note}."),
            0,
        );
    }
    let across = (page.width.saturating_sub(NAMES) / CELL).max(1);
    let names = page.width.saturating_sub(across * CELL);
    for from in (0..figures.cells.len()).step_by(across) {
        let to = (from + across).min(figures.cells.len());
        page.line("");
        cell_heads(page, &figures.cells[from..to], names);
        let parts: Vec<&str> = essential(figures)
            .map(|at| figures.parts[at].name)
            .collect();
        if parts.len() > 1 {
            let kinds = parts_line(&parts).repeat(to - from);
            page.line(&format!("{}{kinds}", " ".repeat(names)));
        }
        for row in &figures.rows {
            figure_row(page, figures, row, (from, to), names);
        }
    }
}

/// Positions of the parts that a terminal has room for.
fn essential(figures: &Figures) -> impl Iterator<Item = usize> {
    let parts = figures.parts.iter().enumerate();
    parts.filter(|(_, part)| !part.is_detail).map(|(at, _)| at)
}

/// Texts of one entry beside each other, as wide as a cell.
fn parts_line(texts: &[&str]) -> String {
    let first = CELL - PART * texts.len().saturating_sub(1);
    let widths = std::iter::once(first).chain(std::iter::repeat(PART));
    let texts = texts.iter().zip(widths);
    texts.map(|(text, width)| right(text, width)).collect()
}

fn cell_heads(page: &mut Page, cells: &[CellHead], names: usize) {
    let blank = " ".repeat(names);
    let heads = cells.iter().map(|cell| {
        let head = clip(&column_head(&cell.label, CELL - 1), CELL - 1);
        right(&head, CELL)
    });
    page.line(&format!("{blank}{}", heads.collect::<String>()));
    if cells.iter().all(|cell| cell.valid == cell.trials) {
        return;
    }
    let states = cells.iter().map(|cell| match cell.valid {
        0 => right("INVALID", CELL),
        valid => right(&format!("{valid} of {} valid", cell.trials), CELL),
    });
    page.line(&format!("{blank}{}", states.collect::<String>()));
}

fn figure_row(
    page: &mut Page,
    figures: &Figures,
    row: &FigureRow,
    (from, to): (usize, usize),
    names: usize,
) {
    let texts = row.entries[from..to].iter().map(|entry| {
        if let Some(bound) = &entry.bound {
            return right(&bound.text, CELL);
        }
        let parts = essential(figures).filter_map(|at| entry.figures.get(at));
        let parts: Vec<&str> = parts.map(|figure| figure.text.as_str()).collect();
        parts_line(&parts)
    });
    let texts: String = texts.collect();
    // A name that is too long for its column has a line of its own.
    if row.name.chars().count() < names {
        page.line(&format!("{}{texts}", left(&row.name, names)));
    } else {
        page.line(&row.name);
        page.line(&format!("{}{texts}", " ".repeat(names)));
    }
    if row.has_published {
        let texts: String = row.entries[from..to].iter().map(published).collect();
        page.line(&format!("{}{texts}", left(PUBLISHED, names)));
    }
}

fn published(entry: &FigureEntry) -> String {
    let Some(published) = &entry.published else {
        return right("", CELL);
    };
    let times = published.ratio.map_or_else(String::new, ratio);
    format!(
        "{}{}",
        right(&clip(&published.text, 9), CELL - 7),
        right(&times, 7)
    )
}

/// The factor's name once, over the names of the rows, then its levels; below the means their
/// intervals and the published figures.
fn matrix(page: &mut Page, matrix: &Matrix) {
    page.line("");
    page.paragraph(&matrix.title, 2);
    let line = |name: &str, texts: Vec<String>| -> Vec<String> {
        std::iter::once(name.to_owned()).chain(texts).collect()
    };
    let mut lines = vec![line(
        &format!("  {} →", matrix.factor),
        matrix.levels.clone(),
    )];
    for (name, entries) in &matrix.rows {
        let entries = || entries.iter();
        lines.push(line(name, entries().map(|one| one.mean.clone()).collect()));
        let spreads: Vec<String> = entries().map(|one| one.spread.clone()).collect();
        let published: Vec<String> = entries().map(|one| one.published.clone()).collect();
        for (name, texts) in [("", spreads), (PUBLISHED, published)] {
            if texts.iter().any(|text| !text.is_empty()) {
                lines.push(line(name, texts));
            }
        }
    }
    fitted(page, &lines);
}

fn columns(page: &mut Page, table: &Table) {
    let heads = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| match at {
            0 => column.head.clone(),
            _ => clip(&column_head(&column.head, HEAD), HEAD),
        });
    let rows = table.rows().map(|row| {
        let cells = row.cells.iter();
        cells.map(|cell| cell.without_colour()).collect()
    });
    let lines: Vec<Vec<String>> = std::iter::once(heads.collect()).chain(rows).collect();
    page.line("");
    fitted(page, &lines);
}

/// Lines of texts, the first left-aligned, columns as wide as their contents; columns that don't fit stand below,
/// beside the first again.
fn fitted(page: &mut Page, lines: &[Vec<String>]) {
    let count = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let texts = lines.iter().filter_map(|line| line.get(column));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let names = width(0) + GAP;
    let mut from = 1;
    while from < count {
        let mut used = names + width(from) + GAP;
        let mut to = from + 1;
        while to < count && used + width(to) + GAP <= page.width {
            used += width(to) + GAP;
            to += 1;
        }
        for line in lines {
            let name = line.first().map_or("", String::as_str);
            let texts = (from..to).map(|column| {
                let text = line.get(column).map_or("", String::as_str);
                right(text, width(column) + GAP)
            });
            let texts: String = texts.collect();
            page.line(&format!("{}{texts}", left(name, names)));
        }
        from = to;
    }
}
