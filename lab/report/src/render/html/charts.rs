//! Charts of the page: cards beside each other, under the meaning of their marks.

use lab_profile::bars::Bars;
use maud::{Markup, PreEscaped, html};

use super::parts::{class_of, facts, judged};
use crate::chart::{Chart, Mark};
use crate::document::{Card, Charts, Content};
use crate::flame::{Frame, Graph, Tint};
use crate::format::{count, figure};
use crate::render::svg;

pub(super) fn charts(charts: &Charts) -> Markup {
    // One card with many charts has the page's whole width.
    let is_wide =
        matches!(charts.cards.as_slice(), [one] if matches!(one.content, Content::Panels(_)));
    html! {
        @if !charts.lead.is_empty() { p.lead { (charts.lead) } }
        @if !charts.key.is_empty() {
            ul.key {
                @for (mark, words) in &charts.key { li { i class=(class(*mark)) {} (words) } }
            }
        }
        div class={ "grid" @if is_wide { " wide" } } {
            @for one in &charts.cards { (card(one)) }
        }
        "\n"
    }
}

/// A flame graph over the page's whole width; one that is higher than a screen scrolls on its own.
pub(super) fn flame(graph: &Graph) -> Markup {
    let differs = |frame: &Frame| matches!(frame.tint, Tint::More(_) | Tint::Less(_));
    let is_difference = graph.frames.iter().any(differs);
    html! {
        figure.flame {
            div.tall tabindex="0" role="region" aria-label=(graph.name) { (PreEscaped(graph.svg(&figure))) }
            figcaption.meta {
                "Callers stand above what they called; the width is " (graph.width) "."
                @if is_difference { " Red takes more time, blue less; callers of both are outlined." }
                @if graph.left_out > 0 {
                    " " (count(graph.left_out as u64)) " call paths with less are left out."
                }
            }
        }
        "\n"
    }
}

/// Bars of groups of threads, with the meaning of their colours.
pub(super) fn spent(bars: &Bars) -> Markup {
    html! {
        @if !bars.bars.is_empty() {
            figure.card.spent {
                ul.key {
                    @for one in bars.key() { li { i class=(one.colour()) {} (one.label()) } }
                }
                (PreEscaped(bars.svg(&figure)))
                figcaption.meta { "Time of all threads of a group together. Waits for work are left out." }
            }
            "\n"
        }
    }
}

fn class(mark: Mark) -> &'static str {
    match mark {
        Mark::First => "",
        Mark::Second => "second",
        Mark::Published => "published",
        Mark::PublishedAt => "mark",
        Mark::Bar => "bar",
        Mark::Ramp => "ramp",
        Mark::Band => "band",
        Mark::Interval => "interval",
        Mark::Shown => "shown",
    }
}

fn card(card: &Card) -> Markup {
    html! {
        section.card {
            h3 {
                (card.title)
                @if let Some(badge) = &card.badge {
                    span class=(class_of(badge.tone)) { (judged(badge.tone, &badge.text)) }
                } @else {
                    span.unit { (card.unit) (scales(&card.content)) }
                }
            }
            @match &card.content {
                Content::Chart(Some(one), _) => (svg::chart(one)),
                Content::Chart(None, words) => p.none { (words) },
                Content::Facts(items) => (facts(items)),
                Content::Panels(panels) => div.panels {
                    @for (name, unit, one) in panels {
                        div {
                            div.panel { span { (name) } span { (unit) } }
                            @match one {
                                Some(one) => (svg::chart(one)),
                                None => p.none { "not recorded, or too few answers for it" },
                            }
                        }
                    }
                }
            }
        }
        "\n"
    }
}

/// The notes on a chart's axes, after the unit.
fn scales(content: &Content) -> &'static str {
    match content {
        Content::Chart(Some(Chart::Plot(plot)), _) => svg::scales(plot),
        _ => "",
    }
}
