//! A page of plain text: lines, sections, paragraphs wrapped to a width. This module knows no report.
//!
//! Text from files and servers is shown without control characters, so that nothing in it can steer
//! the terminal.

use crate::format::{NONE, plain};

/// Narrower than this, columns would collide.
const LEAST_WIDTH: usize = 60;

/// The margin of lines that are separate from the report.
const MARGIN: &str = "┆ ";

/// The text of the page.
pub(crate) struct Page {
    pub(crate) width: usize,
    text: String,
    margin: &'static str,
}

impl Page {
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width: width.max(LEAST_WIDTH),
            text: String::new(),
            margin: "",
        }
    }

    /// Puts the output of `write` behind a margin, so that no line of it is taken for a result.
    pub(crate) fn apart(&mut self, write: impl FnOnce(&mut Self)) {
        let room = MARGIN.chars().count();
        self.width -= room;
        self.margin = MARGIN;
        write(self);
        self.margin = "";
        self.width += room;
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    /// The number of lines.
    pub(crate) fn lines(&self) -> usize {
        self.text.matches('\n').count()
    }

    /// The output of `write`; `None`, and nothing is written, if the page would become too long.
    pub(crate) fn within(&mut self, lines: usize, write: impl FnOnce(&mut Self)) -> Option<()> {
        let before = self.text.len();
        write(self);
        if self.text.len() > before && self.lines() > lines {
            self.text.truncate(before);
            return None;
        }
        Some(())
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.push(&plain(text));
    }

    fn push(&mut self, line: &str) {
        let line = format!("{}{}", self.margin, line.trim_end());
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    pub(crate) fn section(&mut self, title: &str) {
        self.text.push('\n');
        self.line(title);
        self.line(&"─".repeat(self.width.min(title.chars().count())));
    }

    /// Words wrapped to the width; lines after the first are indented by `hang`.
    pub(crate) fn paragraph(&mut self, text: &str, hang: usize) {
        let mut line = String::new();
        let mut used = 0;
        let text = plain(text);
        // A number and its per-cent sign are one word.
        let text = text.replace(" %", "\u{a0}%");
        for word in text.split([' ', '\t']).filter(|word| !word.is_empty()) {
            let word = word.replace('\u{a0}', " ");
            let length = word.chars().count();
            if used > 0 && used + 1 + length > self.width {
                self.push(&line);
                line = " ".repeat(hang);
                used = hang;
                line.push_str(&word);
            } else {
                if !line.trim().is_empty() {
                    line.push(' ');
                    used += 1;
                }
                line.push_str(&word);
            }
            used += length;
        }
        self.push(&line);
    }

    /// A line as printed, truncated at the width.
    pub(crate) fn printed(&mut self, line: &str) {
        let line = format!("  | {}", line.replace('\t', "    "));
        let shown = clip(line.trim_end(), self.width);
        self.line(&shown);
    }
}

pub(crate) fn right(text: &str, width: usize) -> String {
    format!(
        "{}{text}",
        " ".repeat(width.saturating_sub(text.chars().count()))
    )
}

pub(crate) fn left(text: &str, width: usize) -> String {
    format!(
        "{text}{}",
        " ".repeat(width.saturating_sub(text.chars().count()))
    )
}

/// At most `width` characters, the last one `…` if some are missing.
pub(crate) fn clip(text: &str, width: usize) -> String {
    let text = if text.is_empty() { NONE } else { text };
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}

/// A cell's label as the head of a column: whole if it fits, else the levels without the names of their factors, as the
/// levels distinguish columns.
pub(crate) fn column_head(label: &str, width: usize) -> String {
    if label.chars().count() <= width {
        return label.to_owned();
    }
    let level = |part: &str| {
        part.split_once(' ')
            .map_or_else(|| part.to_owned(), |(_, level)| level.to_owned())
    };
    let levels: Vec<String> = label.split(" · ").map(level).collect();
    match levels.len() {
        1 => format!("… {}", levels[0]),
        _ => levels.join(" · "),
    }
}

#[cfg(test)]
mod tests {
    use super::column_head;

    #[test]
    fn heads_that_are_too_long_keep_their_levels() {
        assert_eq!(column_head("1,000 users", 16), "1,000 users");
        assert_eq!(column_head("worker_processes 2", 16), "… 2");
        assert_eq!(column_head("http_threads 80 · users 2000", 16), "80 · 2000");
    }
}
