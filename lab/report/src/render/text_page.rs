//! A page of plain text: lines, sections, paragraphs wrapped to a width. It knows no report.
//!
//! Text from files and servers is shown without control characters, so that nothing in it can steer
//! the terminal.

use crate::format::{NONE, plain};

/// Narrower than this, columns would collide.
const LEAST_WIDTH: usize = 60;

/// The page as it is written.
pub(crate) struct Page {
    pub(crate) width: usize,
    text: String,
}

impl Page {
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width: width.max(LEAST_WIDTH),
            text: String::new(),
        }
    }

    pub(crate) fn finish(self) -> String {
        self.text
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.text.push_str(plain(text).trim_end());
        self.text.push('\n');
    }

    pub(crate) fn section(&mut self, title: &str) {
        self.line("");
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
                self.text.push_str(line.trim_end());
                self.text.push('\n');
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
        self.text.push_str(line.trim_end());
        self.text.push('\n');
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

/// A cell's label as the head of a column: whole where it fits, else the levels without the names
/// of their factors, as those are what tells columns apart.
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
