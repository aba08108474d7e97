//! A document as one HTML file that needs no network, follows light and dark, and prints.
//!
//! Every text from a study, a server, or a machine is escaped; the page's own policy forbids any load. The script only
//! sorts and copies tables, and zooms into flame graphs: without it nothing is missing.

mod charts;
mod figures;
mod parts;
pub mod pieces;
mod room;
mod tables;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::document::{Block, Document, Role, Section, Tone};
use crate::format::plain;
use crate::model::LoadLine;
use crate::render::svg;
use lab_analysis::{load_line_figure, safe_line_words};
use parts::{class_of, facts, judged, list};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The page's content security policy: it loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// The document as an HTML file.
#[must_use]
pub fn html(document: &Document) -> String {
    let document = &room::fitted(document);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(PreEscaped(POLICY));
                meta name="color-scheme" content="light dark";
                title { (document.title) " · Plimsoll" }
                style { (PreEscaped(STYLE)) }
            }
            "\n"
            body {
                (head(document))
                main {
                    @for section in document.sections.iter().filter(|it| it.role != Role::Lead) {
                        (part(section))
                    }
                }
                footer { (document.made_by) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    // No character in a text may steer the reader's terminal or reorder a line.
    let page = page.into_string();
    let lines: Vec<String> = page.split('\n').map(plain).collect();
    lines.join("\n")
}

fn head(document: &Document) -> Markup {
    html! {
        header {
            (brand(document.kind))
            h1 { (document.title) }
            @for line in &document.origin { p.meta { (line) } }
            (sum_up(document))
        }
        "\n"
    }
}

fn brand(kind: &str) -> Markup {
    html! {
        div.brand {
            // A ship's load-line mark: the ring and the line that runs through it.
            svg viewBox="0 0 34 26" aria-hidden="true" {
                g fill="none" stroke="currentColor" stroke-width="2.6" {
                    circle cx="17" cy="13" r="9" {}
                    path d="M1 13H33" {}
                }
            }
            span { (kind) }
        }
    }
}

/// The result.
fn sum_up(document: &Document) -> Markup {
    html! {
        div.pills {
            (pill(document.verdict.tone, document.verdict.text.trim_end_matches('.')))
            @for one in &document.badges { (pill(one.tone, &judged(one.tone, &one.text))) }
        }
        p.headline { (document.headline) }
        @for section in document.sections.iter().filter(|it| it.role == Role::Lead) {
            @for one in &section.blocks { (block(one)) }
        }
        (load_lines(&document.load_lines))
        (list("findings", &document.findings))
    }
}

fn pill(tone: Tone, text: &str) -> Markup {
    html! { span class={ "pill " (class_of(tone)) } { (text) } }
}

/// The ship's mark of each load line.
fn load_lines(lines: &[LoadLine]) -> Markup {
    let many = lines.len() > 1;
    html! {
        @if !lines.is_empty() {
            div.lines {
                @for line in lines {
                    figure.line {
                        @if many { figcaption { (line.label) } }
                        (svg::hull(line))
                        @if many { figcaption.meta { (load_line_figure(line)) } }
                        @if many { figcaption.meta { (safe_line_words(line)) } }
                    }
                }
            }
            ul.key {
                li { b.carried { "●" } " a trial that carried it" }
                li { b.missed { "○" } " one that did not" }
                li { b.none { "×" } " no measurement" }
                li { i.band {} "where the line may lie" }
                @if lines.iter().any(|line| line.safe.is_some()) {
                    li { b.carried { "─" } " the safe line" }
                }
            }
        }
    }
}

fn part(section: &Section) -> Markup {
    let inner = html! {
        @if !section.title.is_empty() { h2 { (section.title) } }
        @for one in &section.blocks { (block(one)) }
    };
    html! {
        @match section.role {
            Role::Apart(mark) => section.apart data-mark=(mark) { (inner) },
            _ => (inner),
        }
        "\n"
    }
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Paragraph(text) => html! { p.lead { (text) } },
        Block::List(lines) => list("notes", lines),
        Block::Facts { items, .. } => facts(items),
        Block::KeyFigures(all) => figures::key_figures(all),
        Block::Printed(who, lines) => html! {
            p { (who) }
            pre.printed { @for line in lines { (line.replace('\t', "    ")) "\n" } }
        },
        Block::Table(one) | Block::Lookup(one) => tables::table(one),
        Block::Fold(summary, one) => html! {
            details { summary { (summary) } (tables::table(one)) }
        },
        Block::Figures(one) => figures::figures(one),
        Block::Matrices(all) => figures::matrices(all),
        Block::Charts(all) => charts::charts(all),
        Block::Flame(graph) => charts::flame(graph),
        Block::Spent(bars) => charts::spent(bars),
    }
}
