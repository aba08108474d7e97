//! A document for an issue, a wiki, or a pull request: GitHub-flavoured Markdown.
//!
//! Text from files is escaped: it can't open a tag, a table cell, a link, or emphasis.

use crate::document::{
    Block, Cell, CellHead, Document, FigureEntry, Figures, Kind, Matrix, MatrixEntry, Role,
    Section, Table,
};
use crate::format::{count, plain, ratio};
use crate::model::LoadLine;
use lab_analysis::{load_line_figure, safe_line_words};

/// The document as Markdown.
#[must_use]
pub fn markdown(document: &Document) -> String {
    match in_two(document) {
        (gist, rest) if rest.is_empty() => gist + "\n",
        (gist, rest) => format!("{gist}\n\n{rest}\n"),
    }
}

/// The result, followed by its sections.
pub(crate) fn in_two(document: &Document) -> (String, String) {
    let mut page = Page::default();
    page.part(format!("# {}", escape(&document.title)));
    page.part(format!("**{}**", escape(&document.verdict.text)));
    page.part(escape(&document.headline));
    let sections = || document.sections.iter();
    for section in sections().filter(|section| section.role == Role::Lead) {
        section.blocks.iter().for_each(|one| block(&mut page, one));
    }
    if sections().all(|section| section.role != Role::Circumstances) {
        page.list(&document.origin);
    }
    page.list(&document.findings);
    for line in &document.load_lines {
        load_line(&mut page, line, document.load_lines.len() > 1);
    }
    let gist = std::mem::take(&mut page).text;
    for section in sections() {
        match section.role {
            Role::Lead | Role::Page => {}
            Role::Body => body(&mut page, section),
            Role::Apart(_) => page.apart(|page| body(page, section)),
            Role::Circumstances => {
                page.part(format!("## {}", escape(&section.title)));
                document.origin.iter().for_each(|line| page.sentence(line));
                section.blocks.iter().for_each(|one| block(&mut page, one));
            }
        }
    }
    (gist, page.text)
}

/// The kind of the last text written.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Last {
    #[default]
    Part,
    Sentence,
    List,
}

/// The output: parts with a gap between them.
#[derive(Default)]
struct Page {
    text: String,
    last: Last,
}

impl Page {
    /// Markup of our own.
    fn part(&mut self, markup: String) {
        self.add(&markup, Last::Part);
    }

    /// Consecutive sentences are one paragraph.
    fn sentence(&mut self, text: &str) {
        self.add(&escape(text), Last::Sentence);
    }

    /// Quotes the output of `write`, so that no line of it is taken for a result.
    fn apart(&mut self, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        let lines: Vec<String> = inner.text.lines().map(|line| format!("> {line}")).collect();
        self.part(lines.join("\n"));
    }

    /// Consecutive lists are one list.
    fn list(&mut self, lines: &[String]) {
        for line in lines {
            self.add(&format!("- {}", escape(line)), Last::List);
        }
    }

    fn add(&mut self, markup: &str, what: Last) {
        if !self.text.is_empty() {
            let goes_on = self.last == what && what != Last::Part;
            self.text.push_str(if goes_on { "\n" } else { "\n\n" });
        }
        self.text.push_str(markup);
        self.last = what;
    }
}

fn body(page: &mut Page, section: &Section) {
    page.part(format!("## {}", escape(&section.title)));
    section.blocks.iter().for_each(|one| block(page, one));
}

/// Indented by four, text is shown unchanged and nothing in it acts.
fn printed(page: &mut Page, who: &str, lines: &[String]) {
    page.sentence(who);
    let lines = lines.iter().map(|line| plain(&line.replace('\t', "    ")));
    let lines: Vec<String> = lines.map(|line| format!("    {line}")).collect();
    page.part(lines.join("\n"));
}

fn block(page: &mut Page, block: &Block) {
    match block {
        Block::Paragraph(text) => page.sentence(text),
        Block::List(lines) => page.list(lines),
        Block::Facts { sentence, .. } => page.sentence(sentence),
        Block::Printed(who, lines) => printed(page, who, lines),
        Block::Table(one) | Block::Lookup(one) => page.part(table(one)),
        Block::Figures(one) => figures(page, one),
        Block::Matrices(all) => all.iter().for_each(|one| page.part(matrix(one))),
        Block::KeyFigures(_)
        | Block::Fold(..)
        | Block::Charts(_)
        | Block::Flame(_)
        | Block::Spent(_) => {}
    }
}

/// Heads with the kinds of their columns, then rows.
fn grid(heads: &[(String, Kind)], rows: impl Iterator<Item = Vec<String>>) -> String {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        format!("| {} |", cells.join(" | "))
    };
    let names: Vec<String> = heads.iter().map(|(name, _)| name.clone()).collect();
    let rule = |(at, (_, kind)): (usize, &(String, Kind))| match kind {
        Kind::Text | Kind::Prose => "---",
        Kind::Number | Kind::Published | Kind::Ratio if at > 0 => "---:",
        _ => "---",
    };
    let rules: Vec<&str> = heads.iter().enumerate().map(rule).collect();
    let mut lines = vec![row(&names), format!("| {} |", rules.join(" | "))];
    lines.extend(rows.map(|cells| row(&cells)));
    lines.join("\n")
}

/// The name of a row's group stands first, if there are groups.
fn table(table: &Table) -> String {
    let has_groups = !table.group.is_empty();
    let group = has_groups.then(|| (table.group.to_owned(), Kind::Text));
    let columns = table.columns.iter();
    let columns = columns.map(|it| (it.head.clone(), it.kind));
    let heads: Vec<(String, Kind)> = group.into_iter().chain(columns).collect();
    let rows = table.groups.iter().flat_map(|group| {
        group.rows.iter().map(move |row| {
            let name = has_groups.then(|| group.name.clone());
            let cells = row.cells.iter().map(Cell::without_colour);
            name.into_iter().chain(cells).collect()
        })
    });
    grid(&heads, rows)
}

fn figures(page: &mut Page, figures: &Figures) {
    if let Some(note) = &figures.published {
        let note = note.0.as_ref();
        let note = note.map_or_else(String::new, |note| format!("; {note}"));
        page.sentence(&format!(
            "In brackets: the published figure and ours ÷ published{note}."
        ));
    }
    let of = (figures.of.to_owned(), Kind::Text);
    let cells = figures.cells.iter().map(|cell| (label(cell), Kind::Number));
    let heads: Vec<(String, Kind)> = std::iter::once(of).chain(cells).collect();
    let rows = figures.rows.iter().map(|row| {
        let entries = row.entries.iter().map(|one| entry(figures, one));
        std::iter::once(row.name.clone()).chain(entries).collect()
    });
    page.part(grid(&heads, rows));
}

fn label(cell: &CellHead) -> String {
    match cell.valid {
        0 => format!("{} (INVALID)", cell.label),
        valid if valid < cell.trials => {
            format!("{} ({valid} of {} valid)", cell.label, cell.trials)
        }
        _ => cell.label.clone(),
    }
}

fn entry(figures: &Figures, entry: &FigureEntry) -> String {
    let parts = figures.parts.iter().zip(&entry.figures);
    let parts = parts.filter(|(part, _)| !part.is_detail);
    let parts: Vec<&str> = parts.map(|(_, figure)| figure.text.as_str()).collect();
    let bound = entry.bound.as_ref().map(|bound| bound.text.clone());
    let ours = bound.unwrap_or_else(|| parts.join(" / "));
    let Some(published) = &entry.published else {
        return ours;
    };
    let times = published.ratio;
    let times = times.map_or_else(String::new, |times| format!(", {}", ratio(times)));
    format!("{ours} ({}{times})", published.text)
}

fn matrix(matrix: &Matrix) -> String {
    let level = |level: &String| (format!("{} {level}", matrix.factor), Kind::Number);
    let title = (matrix.title.clone(), Kind::Text);
    let heads: Vec<(String, Kind)> = std::iter::once(title)
        .chain(matrix.levels.iter().map(level))
        .collect();
    let rows = matrix.rows.iter().map(|(name, entries)| {
        let entries = entries.iter().map(matrix_entry);
        std::iter::once(name.clone()).chain(entries).collect()
    });
    grid(&heads, rows)
}

fn matrix_entry(entry: &MatrixEntry) -> String {
    let mut text = entry.mean.clone();
    if !entry.spread.is_empty() {
        text.push_str(&format!(" ({})", entry.spread));
    }
    if !entry.published.is_empty() {
        text.push_str(&format!("; published {}", entry.published));
    }
    text
}

/// The load line with the levels that were tried.
fn load_line(page: &mut Page, line: &LoadLine, is_one_of_many: bool) {
    let of = match is_one_of_many {
        false => String::new(),
        true => format!(" of {}", escape(&line.label)),
    };
    let figure = escape(&load_line_figure(line));
    let thresholds = escape(&line.thresholds.join(", "));
    let heads = ["users", "carried", "not carried", "invalid"];
    let heads = heads.map(|head| (head.to_owned(), Kind::Number));
    let rows = line.levels.iter().map(|at| {
        let users = count(u64::from(at.users));
        let trials = [at.carried, at.not_carried, at.invalid].map(|n| n.to_string());
        std::iter::once(users).chain(trials).collect()
    });
    page.part(format!("## Load line{of}"));
    page.part(format!("—⊖— **{figure}**, with {thresholds}."));
    page.part(escape(&format!("Safe line: {}.", safe_line_words(line))));
    page.part(grid(&heads, rows));
}

/// Escapes text, so that Markdown and HTML show it unchanged.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_does_not_survive() {
        let hostile = "<script>a|b</script> [x](y) `c`\n# d";
        let escaped = escape(hostile);
        assert!(!escaped.contains('<') && !escaped.contains('\n'));
        assert_eq!(escape("a|b"), "a\\|b");
    }
}
