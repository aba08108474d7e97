//! Parts of several sections of a page.

use maud::{Markup, html};

use crate::document::Tone;

pub(super) fn class_of(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => "good",
        Tone::Warn => "warn",
        Tone::Bad => "bad",
    }
}

/// A judgement with a mark that has the same meaning without colour.
pub(super) fn judged(tone: Tone, text: &str) -> String {
    match tone {
        Tone::Plain => text.to_owned(),
        Tone::Good => format!("✓ {text}"),
        Tone::Warn => format!("! {text}"),
        Tone::Bad => format!("✕ {text}"),
    }
}

pub(super) fn list(class: &str, lines: &[String]) -> Markup {
    html! {
        @if !lines.is_empty() {
            ul class=(class) { @for line in lines { li { (line) } } }
        }
    }
}

pub(super) fn facts(items: &[(&'static str, String)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in items.iter().filter(|(_, value)| !value.is_empty()) {
                dt { (name) } dd { (value) }
            }
        }
    }
}

/// A table that scrolls on its own where it is wider than the page.
pub(super) fn frame(class: &str, name: &str, rows: Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label=(name) {
            table class=(class) { (rows) }
        }
        "\n"
    }
}
