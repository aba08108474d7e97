//! The live page: a constant frame, and parts that are rebuilt as the run proceeds. Every part is complete HTML, made
//! from the state alone; nothing here reads or sends.
//!
//! The style, the tables, and the charts are the report's own.

mod figures;
mod now;

use lab_report::render::pieces;
use lab_report::sections;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::state::{Mode, State};
use crate::watch::{Controls, Watch};

/// The style sheet of the page, the report's first.
pub(crate) fn style() -> String {
    format!("{}{}", pieces::style(), include_str!("page/live.css"))
}

/// The script of the page: tables as in the report, then the parts.
pub(crate) fn script() -> String {
    format!("{}{}", pieces::script(), include_str!("page/live.js"))
}

/// A part of the page: its id, and the HTML in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The element's id.
    pub id: &'static str,
    /// Its content.
    pub html: String,
}

/// All parts in their present state, in the page's order.
#[must_use]
pub fn parts(watch: &Watch) -> Vec<Part> {
    let state = watch.state();
    let lines = watch.analysis().map_or(&[][..], |found| &found.load_lines);
    let part = |id, html: Markup| Part {
        id,
        html: html.into_string(),
    };
    vec![
        part("said", html! { (said(state)) }),
        part("progress", now::progress(state)),
        part("lines", now::lines(lines, state.mode == Mode::Ended)),
        part("controls", controls(watch.controls())),
        part("now", now::tiles(state)),
        part("charts", figures::charts(state)),
        part("steps", figures::steps(state)),
        part("errors", figures::errors(state)),
        part("report", report(watch)),
        part("log", log(state)),
    ]
}

/// The whole page.
#[must_use]
pub fn page(watch: &Watch) -> String {
    let state = watch.state();
    let parts = parts(watch);
    let put = |id: &str| {
        let part = parts.iter().find(|part| part.id == id);
        PreEscaped(part.map_or_else(String::new, |part| part.html.clone()))
    };
    let manifest = &state.manifest;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width,initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (manifest.title) " · Plimsoll" }
                link rel="stylesheet" href="live.css";
                noscript { meta http-equiv="refresh" content="5"; }
            }
            body {
                header {
                    (PreEscaped(pieces::brand("Plimsoll live")))
                    h1 { (manifest.title) }
                    p.meta {
                        "study " (manifest.study) " · speed " (manifest.speed) " · seed " (manifest.seed)
                        " · begun " (manifest.started) " · "
                        span #link role="status" { noscript { "shown anew every 5 s" } }
                    }
                    p #said .sr role="status" aria-live="polite" { (put("said")) }
                    div #progress { (put("progress")) }
                    div #lines role="status" { (put("lines")) }
                    div #controls { (put("controls")) }
                }
                main {
                    section #now aria-label="Figures of the last seconds" { (put("now")) }
                    section #charts aria-label="Through the trial" { (put("charts")) }
                    section #steps { (put("steps")) }
                    section #errors { (put("errors")) }
                    section #report { (put("report")) }
                    section #log { (put("log")) }
                }
                footer { "Computed from the run's archive as it grows." }
                script src="live.js" {}
            }
        }
    };
    page.into_string()
}

/// The newest news, for screen readers.
fn said(state: &State) -> String {
    let news = state.log.iter().rev().find(|line| line.is_news);
    news.map_or_else(String::new, |line| pieces::plain(&line.text))
}

fn controls(controls: Option<&Controls>) -> Markup {
    let Some(controls) = controls else {
        return html! {};
    };
    let button = |act: &str, id: &str, words: &str| {
        html! { button #(id) name="do" value=(act) { (words) } }
    };
    html! {
        @if controls.is_stopped() {
            p.lead { "The run ends: the trial under way is given up, and its system stopped." }
        } @else {
            form method="post" action="control" {
                @if controls.is_paused() {
                    (button("resume", "pause", "Go on"))
                    span.lead { "The run pauses before its next trial." }
                } @else {
                    (button("pause", "pause", "Pause before the next trial"))
                }
                @if controls.may_skip {
                    details #skipping {
                        summary #to-skip { "Skip this trial…" }
                        p { "It is given up and left out; `--resume` runs it later." }
                        (button("skip", "skip", "Skip this trial"))
                    }
                }
                details #stopping {
                    summary #to-stop { "Stop the run…" }
                    p { "The trial under way is given up. Finished trials stay; `--resume` goes on." }
                    (button("stop", "stop", "Stop the run"))
                }
            }
        }
    }
}

/// The result of complete trials so far, as the report will state it.
fn report(watch: &Watch) -> Markup {
    let is_over = watch.state().mode == Mode::Ended;
    let Some(analysis) = watch.analysis() else {
        return html! {
            h2 { "The report so far" }
            p.none { "Nothing is judged until the first trial is complete." }
        };
    };
    let document = sections::report(analysis);
    html! {
        h2 { @if is_over { "The report" } @else { "The report so far" } }
        (PreEscaped(pieces::summary(&document)))
        (PreEscaped(pieces::sections(&document)))
    }
}

fn log(state: &State) -> Markup {
    html! {
        h2 { "What happened" }
        @if !state.is_logged {
            p.none { "This archive has no log of events." }
        }
        div.scroll tabindex="0" role="region" aria-label="What happened, the newest first" {
            ol.log reversed {
                @for line in state.log.iter().rev() {
                    li { time datetime=(line.at) { (clock(&line.at)) } " " (pieces::plain(&line.text)) }
                }
            }
        }
    }
}

/// `10:15:42` of an RFC 3339 time; the whole text if it is none.
fn clock(at: &str) -> &str {
    let time = at.split_once('T').map(|(_, time)| time);
    time.and_then(|time| time.get(..8)).unwrap_or(at)
}
