//! The load line as the mark on a ship's hull: levels stand one above the other, the most on top, as
//! draught marks do. They are not to scale, because a search tries most of them close to the line.

use maud::Markup;

use super::drawing::{Anchor, Drawing, Ink};
use crate::chart::LinePlace;
use crate::format::count;
use crate::model::{LineLevel, LoadLine};
use lab_analysis::load_line_figure;

const WIDTH: f64 = 396.0;
/// Height of a level's row.
const ROW: f64 = 24.0;
/// The position of the hull's scale.
const SCALE_X: f64 = 124.0;
/// The position and size of the ring and the bar through it.
const RING: (f64, f64) = (54.0, 27.0);
/// With more trials at a level than this, only their number is shown.
const MOST_MARKS: u32 = 8;

pub(crate) fn hull(line: &LoadLine) -> Markup {
    let rows = line.levels.len().max(1) as f64;
    let height = (rows * ROW + 40.0).max(RING.1 * 2.0 + 34.0);
    let place = LinePlace::of(line);
    let y = |rows: usize| height - 20.0 - rows as f64 * ROW;
    let name = format!("Load line: {}", load_line_figure(line));
    let mut drawing = Drawing::new("chart hull", &name, (WIDTH, height));
    if !line.levels.is_empty() {
        // A band between neighbouring levels has no height of its own: draw it 8 pixels high.
        let half = if place.from == place.to { 4.0 } else { 0.0 };
        let (from, to) = (y(place.from) + half, y(place.to) - half);
        drawing.rectangle((SCALE_X, to), (WIDTH - SCALE_X, from - to), Ink::Band);
    }
    let scale = [(SCALE_X, 8.0), (SCALE_X, height - 8.0)];
    drawing.line(&scale, Ink::Axis, 1.5, "");
    for (at, level) in line.levels.iter().enumerate() {
        row(&mut drawing, level, y(at) - ROW / 2.0);
    }
    let safe = line.safe.map(|safe| safe.users);
    let safe = line
        .levels
        .iter()
        .position(|level| Some(level.users) == safe);
    if let Some(at) = safe {
        let (top, middle) = (y(at + 1), y(at) - ROW / 2.0);
        drawing.line(&[(SCALE_X, top), (WIDTH, top)], Ink::Good, 2.0, "");
        drawing.words("safe", (WIDTH - 2.0, middle), Ink::Good, Anchor::End);
    }
    let (x, radius) = RING;
    let water = y(place.below);
    // The ring needs room on both sides, also of a line at the top or the bottom.
    let middle = water.clamp(radius + 6.0, height - radius - 6.0);
    drawing.ring((x, middle), radius, 6.0, Ink::First);
    let end = x * 2.0 - 10.0;
    drawing.line(&[(10.0, middle), (end, middle)], Ink::First, 6.0, "");
    let line = [(end, middle), (SCALE_X, water), (WIDTH, water)];
    drawing.line(&line, Ink::First, 2.0, " stroke-dasharray=\"6 4\"");
    drawing.finish()
}

fn row(drawing: &mut Drawing, level: &LineLevel, y: f64) {
    drawing.line(&[(SCALE_X - 7.0, y), (SCALE_X, y)], Ink::Axis, 1.5, "");
    let users = count(u64::from(level.users));
    drawing.words(&users, (SCALE_X + 64.0, y), Ink::Strong, Anchor::End);
    let trials = [
        ("●", Ink::Good, level.carried),
        ("○", Ink::Bad, level.not_carried),
        ("×", Ink::Muted, level.invalid),
    ];
    let mut x = SCALE_X + 76.0;
    for (mark, ink, n) in trials {
        for _ in 0..n.min(MOST_MARKS) {
            drawing.words(mark, (x, y), ink, Anchor::Start);
            x += 13.0;
        }
        if n > MOST_MARKS {
            let words = format!("{n} in all");
            drawing.words(&words, (x + 4.0, y), Ink::Muted, Anchor::Start);
            x += 58.0;
        }
    }
}
