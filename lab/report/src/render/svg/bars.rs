//! Bars of means with a whisker to p95 and a mark at the published mean.

use maud::Markup;

use super::drawing::{Anchor, Drawing, Ink, WIDTH};
use crate::chart::{Bar, Bars};
use crate::format::{figure, or_none};

/// Height of a step's row: its name above its bar.
const ROW: f64 = 33.0;
const LEFT: f64 = 2.0;
const RIGHT: f64 = WIDTH - 11.0;
/// Letters of a name that fit beside the value.
const FITS: usize = 44;

pub(super) fn bars(bars: &Bars) -> Markup {
    let height = bars.bars.len() as f64 * ROW + 4.0;
    let mut drawing = Drawing::new("chart", &bars.name, (WIDTH, height));
    for (at, bar) in bars.bars.iter().enumerate() {
        bar_row(&mut drawing, bar, at as f64 * ROW, bars.most_ms);
    }
    drawing.finish()
}

fn bar_row(drawing: &mut Drawing, bar: &Bar, top: f64, most_ms: f64) {
    let x = |ms: f64| LEFT + (ms / most_ms).min(1.0) * (RIGHT - LEFT);
    let (words, from, to) = (top + 9.0, top + 18.0, top + 26.0);
    let middle = f64::midpoint(from, to);
    drawing.words(&name(bar), (LEFT, words), Ink::Strong, Anchor::Start);
    let value = bar.bound.clone();
    let value = value.unwrap_or_else(|| or_none(bar.mean_ms, figure));
    drawing.words(&value, (RIGHT, words), Ink::Strong, Anchor::End);
    let full = |drawing: &mut Drawing, end: f64, ink| {
        drawing.rectangle((LEFT, from), (end - LEFT, to - from), ink);
    };
    full(drawing, RIGHT, Ink::Track);
    if let Some(p95) = bar.p95_ms {
        let end = x(p95);
        drawing.line(&[(LEFT, middle), (end, middle)], Ink::Second, 2.0, "");
        let tip = [(end, from + 1.0), (end, to - 1.0)];
        drawing.line(&tip, Ink::Second, 2.0, "");
    }
    if let Some(mean) = bar.mean_ms {
        full(drawing, x(mean).max(LEFT + 1.0), Ink::First);
    }
    if bar.bound.is_some() {
        // All of the track and an arrow: the end is unknown.
        full(drawing, RIGHT, Ink::First);
        let (top, bottom) = ((RIGHT, from - 3.0), (RIGHT, to + 3.0));
        drawing.area(&[top, (RIGHT + 9.0, middle), bottom], Ink::First);
    }
    match bar.published_ms {
        Some(published) if published > most_ms => {
            let (top, bottom) = ((RIGHT + 2.0, from), (RIGHT + 2.0, to));
            drawing.area(&[top, (RIGHT + 9.0, middle), bottom], Ink::Published);
        }
        Some(published) => {
            let corner = (x(published) - 1.0, from - 3.0);
            drawing.rectangle(corner, (2.0, to - from + 6.0), Ink::Published);
        }
        None => {}
    }
}

/// The part of a text that fits beside the value.
fn name(bar: &Bar) -> String {
    let published = bar.published_words.as_ref();
    let name = published.map_or_else(
        || bar.name.clone(),
        |words| format!("{} (published: {words})", bar.name),
    );
    if name.chars().count() <= FITS {
        return name;
    }
    name.chars().take(FITS - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bar: Bar, most_ms: f64) -> String {
        let made = Bars::new("\"><script>".to_owned(), vec![bar], most_ms);
        bars(&made.unwrap()).into_string()
    }

    #[test]
    fn a_bound_is_drawn_where_there_is_no_mean() {
        let bar = Bar {
            name: "Deregister".to_owned(),
            mean_ms: None,
            p95_ms: None,
            bound: Some("> 5 min".to_owned()),
            published_ms: None,
            published_words: Some("> 5 min".to_owned()),
        };
        let most_ms = Bars::scale([&bar]);
        let svg = drawn(bar, most_ms);
        assert!(svg.contains("Deregister (published: &gt; 5 min)"), "{svg}");
    }

    #[test]
    fn names_are_escaped_and_what_is_far_off_stands_at_the_edge() {
        let bar = Bar {
            name: "<script>alert(1)</script>".to_owned(),
            mean_ms: Some(1.0),
            p95_ms: None,
            bound: None,
            published_ms: Some(9.0),
            published_words: None,
        };
        assert!((Bars::scale([&bar]) - 1.0).abs() < 1e-12);
        let svg = drawn(bar, 2.0);
        assert!(!svg.contains("<script"), "{svg}");
        assert!(svg.contains("Z\" fill=\"var(--published)\""), "{svg}");
    }

    #[test]
    fn nothing_to_draw_is_no_chart() {
        assert!(Bars::new("a".to_owned(), vec![], 1.0).is_none());
    }
}
