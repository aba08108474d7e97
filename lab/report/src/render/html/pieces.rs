//! Pieces of a page, for callers with a page of their own: the report's look, tables, and charts, each as HTML by
//! itself. Text from a study, a server, or a machine is escaped.

use maud::{Markup, html};

use super::{POLICY, SCRIPT, STYLE, block, part, room, sum_up};
use crate::chart::Chart;
use crate::document::{Block, Document, Role};
use crate::format;
use crate::render::svg;

/// The style of a page, in light and dark.
#[must_use]
pub fn style() -> &'static str {
    STYLE
}

/// The script that sorts and copies tables: `dress(element)` adds this to all tables in an element.
#[must_use]
pub fn script() -> &'static str {
    SCRIPT
}

/// The content security policy for the server of a document's page: the page loads nothing.
#[must_use]
pub fn policy() -> &'static str {
    POLICY
}

/// The ship's mark with the kind of page.
#[must_use]
pub fn brand(kind: &str) -> String {
    super::brand(kind).into_string()
}

/// The result of a document: its verdict, its load lines, its findings.
#[must_use]
pub fn summary(document: &Document) -> String {
    steady(&sum_up(document))
}

/// The sections under it, as far as a page has room for them.
#[must_use]
pub fn sections(document: &Document) -> String {
    let document = room::fitted(document);
    let body = document.sections.iter().filter(|it| it.role != Role::Lead);
    steady(&html! { @for section in body { (part(section)) } })
}

/// Blocks, one after the other.
#[must_use]
pub fn blocks(blocks: &[Block]) -> String {
    steady(&html! { @for one in blocks { (block(one)) } })
}

/// A chart.
#[must_use]
pub fn chart(chart: &Chart) -> String {
    steady(&svg::chart(chart))
}

/// Removes characters that could steer the reader's terminal or reorder a line.
#[must_use]
pub fn plain(text: &str) -> String {
    format::plain(text)
}

fn steady(markup: &Markup) -> String {
    let lines: Vec<String> = markup.0.split('\n').map(plain).collect();
    lines.join("\n")
}
