//! Places in hand-written texts, and their excerpts.

use std::ops::Range;
use std::sync::Arc;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use lab_filters::Secrets;

/// Longest excerpt of a line; a file may have a single line.
const MAX_LINE: usize = 160;

/// A file's name and text, shared by all places in it.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its name in errors.
    pub name: Arc<str>,
    /// All of it.
    pub text: Arc<str>,
}

/// A place: a file and a range of its bytes.
#[derive(Debug, Clone)]
pub struct Span {
    /// The file.
    pub file: SourceFile,
    /// In bytes of its text, at character boundaries.
    pub range: Range<usize>,
}

impl Span {
    /// The place; a range outside of the text or within a character is clamped to the boundaries.
    #[must_use]
    pub fn new(file: &SourceFile, range: Range<usize>) -> Self {
        let length = file.text.len();
        let start = floor(&file.text, range.start.min(length));
        let end = floor(&file.text, range.end.clamp(start, length));
        Self {
            file: file.clone(),
            range: start..end,
        }
    }

    /// The text at this place.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.file.text[self.range.clone()]
    }

    /// Line and column of its start, both from 1.
    #[must_use]
    pub fn position(&self) -> (usize, usize) {
        position(&self.file.text, self.range.start)
    }

    /// The place of `at` within `value`. If quoting or folding changed the text, the same words are searched; otherwise
    /// it is the whole value.
    #[must_use]
    pub fn part(&self, value: &str, at: &Range<usize>) -> Self {
        let source = self.text();
        let inner = value.get(at.clone()).filter(|part| !part.is_empty());
        let offset = match (source.find(value), inner) {
            (Some(offset), Some(_)) if !value.is_empty() => Some(offset + at.start),
            (_, Some(part)) => source.find(part),
            _ => None,
        };
        match (offset, inner) {
            (Some(offset), Some(part)) => {
                let start = self.range.start + offset;
                Self::new(&self.file, start..start + part.len())
            }
            _ => self.first_line(),
        }
    }

    /// The first line of this place, which is short enough to display.
    #[must_use]
    pub fn first_line(&self) -> Self {
        let text = self.text();
        let end = text.find('\n').unwrap_or(text.len());
        let length = text[..end].trim_end().len();
        Self::new(&self.file, self.range.start..self.range.start + length)
    }
}

/// The byte at a line and column, both from 1.
#[must_use]
pub fn offset(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text
        .split_inclusive('\n')
        .take(line.max(1) - 1)
        .map(str::len)
        .sum();
    let rest = &text[start..];
    start
        + rest
            .chars()
            .take(column.max(1) - 1)
            .map(char::len_utf8)
            .sum::<usize>()
}

/// Line and column of a byte, both from 1, columns in characters.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..floor(text, at.min(text.len()))];
    let line_start = before.rfind('\n').map_or(0, |i| i + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// The nearest character boundary at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The lines around a place, cropped for files of one long line.
#[derive(Debug, Clone)]
pub(crate) struct Excerpt {
    name: Arc<str>,
    text: String,
    /// The place, within `text`.
    span: Range<usize>,
    /// Line and column of `text`'s start in the file, from 0.
    start: (usize, usize),
}

impl Excerpt {
    pub(crate) fn new(span: &Span) -> Self {
        let text = &*span.file.text;
        let line_start = |at: usize| text[..at].rfind('\n').map_or(0, |i| i + 1);
        let line_end = |at: usize| text[at..].find('\n').map_or(text.len(), |i| at + i);
        let place = span.first_line().range;
        let (line, column) = position(text, place.start);
        let first = line_start(place.start);
        let last = line_end(place.end);
        if last - first > MAX_LINE {
            return Self::cropped(span, place, (line - 1, column - 1));
        }
        // One line before and one after, if they are short.
        let before = if first > 0 {
            line_start(first - 1)
        } else {
            first
        };
        let after = if last < text.len() {
            line_end(last + 1)
        } else {
            last
        };
        let from = if first - before > MAX_LINE {
            first
        } else {
            before
        };
        let to = if after - last > MAX_LINE { last } else { after };
        let lead = text[from..first].matches('\n').count();
        Self {
            name: Arc::clone(&span.file.name),
            text: shown(&text[from..to]),
            span: place.start - from..place.end - from,
            start: (line - 1 - lead, 0),
        }
    }

    /// A part of a long line.
    fn cropped(span: &Span, place: Range<usize>, (line, column): (usize, usize)) -> Self {
        let text = &*span.file.text;
        let from = floor(text, place.start.saturating_sub(MAX_LINE / 4));
        let from = text[from..place.start]
            .rfind('\n')
            .map_or(from, |i| from + i + 1);
        let to = floor(text, (place.start + MAX_LINE * 3 / 4).min(text.len()));
        let to = text[place.start..to]
            .find('\n')
            .map_or(to, |i| place.start + i);
        let lead = text[from..place.start].chars().count();
        Self {
            name: Arc::clone(&span.file.name),
            text: shown(&text[from..to]),
            span: place.start - from..place.end.min(to) - from,
            start: (line, column - lead),
        }
    }

    /// Replaces secrets with stars.
    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        self.text = secrets.starred(&self.text);
    }

    pub(crate) fn span(&self) -> SourceSpan {
        (self.span.start, self.span.len()).into()
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        lines_before: usize,
        lines_after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let part = self
            .text
            .as_str()
            .read_span(span, lines_before, lines_after)?;
        let column = if part.line() == 0 { self.start.1 } else { 0 };
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.to_string(),
            part.data(),
            *part.span(),
            self.start.0 + part.line(),
            column + part.column(),
            part.line_count(),
        )))
    }
}

/// Text of a file as part of a message: without control characters, which could affect a terminal, and truncated.
pub(crate) fn clean(text: &str) -> String {
    const LONGEST: usize = 400;
    let text = &masked(text);
    let mut out: String = text.chars().take(LONGEST).map(visible).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push('…');
    }
    out
}

/// One-byte control characters become question marks, so that positions stay valid.
fn visible(c: char) -> char {
    if c.is_ascii_control() && c != '\n' {
        '?'
    } else {
        c
    }
}

/// A section of a file for an excerpt; tabs stay, since the renderer expands them.
fn shown(text: &str) -> String {
    masked(text)
        .chars()
        .map(|c| if c == '\t' { c } else { visible(c) })
        .collect()
}

/// Replaces the name and the password of each URL with stars, byte for byte: more people read logs of errors than the
/// file. A password may contain characters that end it in a valid URL, and errors show invalid ones: all up to the
/// word's last @ is masked.
fn masked(text: &str) -> String {
    const BEFORE: &str = "://";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEFORE) {
        let (before, authority) = rest.split_at(at + BEFORE.len());
        let word = authority.split(char::is_whitespace).next().unwrap_or("");
        let secret = word.rfind('@').unwrap_or(0);
        out.push_str(before);
        out.extend(std::iter::repeat_n('*', secret));
        rest = &rest[before.len() + secret..];
    }
    out + rest
}

/// Resolves a path written in the file `from`, relative to the base of `from`.
#[must_use]
pub fn sibling_path(from: &str, path: &str) -> String {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if from.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests;
