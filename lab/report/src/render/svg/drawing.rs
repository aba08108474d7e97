//! A drawing: shapes and texts in the page's colours, as SVG. It knows no chart.

use std::fmt::Write as _;

use maud::{Escaper, Markup, PreEscaped};

use crate::chart::Series;

/// The width of a chart in its own pixels: a card is about as wide, so that letters keep their size.
pub(super) const WIDTH: f64 = 340.0;

/// A colour of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    First,
    Second,
    Published,
    Muted,
    Strong,
    Axis,
    Grid,
    Ramp,
    Track,
    Band,
    Good,
    Bad,
}

impl Ink {
    fn variable(self) -> &'static str {
        match self {
            Self::First => "var(--first)",
            Self::Second => "var(--second)",
            Self::Published => "var(--published)",
            Self::Muted => "var(--muted)",
            Self::Strong => "var(--ink)",
            Self::Axis => "var(--axis)",
            Self::Grid => "var(--grid)",
            Self::Ramp => "var(--ramp)",
            Self::Track => "var(--track)",
            Self::Band => "var(--band)",
            Self::Good => "var(--good)",
            Self::Bad => "var(--bad)",
        }
    }
}

impl From<Series> for Ink {
    fn from(series: Series) -> Self {
        match series {
            Series::First => Self::First,
            Series::Second => Self::Second,
            Series::Published => Self::Published,
        }
    }
}

/// The position of a text relative to its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The font size of charts, in their own pixels.
const LETTERS: f64 = 12.0;

/// A chart as it is drawn.
pub(super) struct Drawing {
    text: String,
}

impl Drawing {
    pub(super) fn new(class: &str, name: &str, (width, height): (f64, f64)) -> Self {
        let mut text = String::new();
        let size = format!("{} {}", number(width), number(height));
        let name = escaped(name);
        let _ = write!(
            text,
            "<svg class=\"{class}\" viewBox=\"0 0 {size}\" role=\"img\" aria-label=\"{name}\">\
             <title>{name}</title>"
        );
        Self { text }
    }

    pub(super) fn finish(mut self) -> Markup {
        self.text.push_str("</svg>");
        PreEscaped(self.text)
    }

    pub(super) fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), ink: Ink) {
        let _ = write!(
            self.text,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>",
            number(x),
            number(y),
            number(width.max(0.0)),
            number(height.max(0.0)),
            ink.variable()
        );
    }

    /// A line through points; `extra` are attributes of our own.
    pub(super) fn line(&mut self, points: &[(f64, f64)], ink: Ink, width: f64, extra: &str) {
        let _ = write!(
            self.text,
            "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{extra}/>",
            path(points),
            ink.variable(),
            number(width)
        );
    }

    pub(super) fn area(&mut self, points: &[(f64, f64)], ink: Ink) {
        let _ = write!(
            self.text,
            "<path d=\"{}Z\" fill=\"{}\"/>",
            path(points),
            ink.variable()
        );
    }

    pub(super) fn dot(&mut self, (x, y): (f64, f64), radius: f64, ink: Ink) {
        let _ = write!(
            self.text,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{}\"/>",
            number(x),
            number(y),
            number(radius),
            ink.variable()
        );
    }

    pub(super) fn ring(&mut self, (x, y): (f64, f64), radius: f64, width: f64, ink: Ink) {
        let _ = write!(
            self.text,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>",
            number(x),
            number(y),
            number(radius),
            ink.variable(),
            number(width)
        );
    }

    /// A text whose middle is at `y`.
    pub(super) fn words(&mut self, words: &str, (x, y): (f64, f64), ink: Ink, anchor: Anchor) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = write!(
            self.text,
            "<text x=\"{}\" y=\"{}\" fill=\"{}\" font-size=\"{LETTERS}\"{anchor}>{}</text>",
            number(x),
            number(y + LETTERS * 0.35),
            ink.variable(),
            escaped(words)
        );
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(points.len() * 11);
    for (at, (x, y)) in points.iter().enumerate() {
        let command = if at == 0 { 'M' } else { 'L' };
        let _ = write!(text, "{command}{} {}", number(*x), number(*y));
    }
    text
}

/// Rounds to a tenth of a pixel, which is as fine as the eye sees.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let _ = Escaper::new(&mut escaped).write_str(text);
    escaped
}
