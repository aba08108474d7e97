//! Lines against levels, through a trial, or with a band.

use maud::Markup;

use super::drawing::{Anchor, Drawing, Ink, WIDTH};
use super::scale::{LOG_FROM, Scale, multiples, nice_step};
use crate::chart::{Across, Line, Plot, Series};
use crate::format::times;

/// The plot's edges: on the left are the figures of the axis, below are those of the factor.
const LEFT: f64 = 46.0;
const RIGHT: f64 = WIDTH - 9.0;
const TOP: f64 = 8.0;
const BELOW: f64 = 20.0;
/// The width of a letter, and the minimum distance between labels.
const LETTER: f64 = 6.8;

/// The notes on the axes, after the unit.
pub(crate) fn scales(plot: &Plot) -> &'static str {
    let frame = Frame::of(plot);
    match (frame.across_log, frame.up.is_log()) {
        (true, true) => ", both axes logarithmic",
        (true, false) => ", logarithmic across",
        (false, true) => ", logarithmic",
        (false, false) => "",
    }
}

pub(super) fn plot(plot: &Plot) -> Markup {
    let frame = Frame::of(plot);
    let mut drawing = Drawing::new("chart", &plot.name, (WIDTH, frame.bottom + BELOW));
    if let Across::Time { counts_from, .. } = plot.across {
        let width = frame.x(counts_from) - LEFT;
        let size = (width, frame.bottom - TOP);
        if width > 0.0 {
            drawing.rectangle((LEFT, TOP), size, Ink::Ramp);
        }
    }
    stretches(&mut drawing, &frame, plot);
    band(&mut drawing, &frame, plot);
    axes(&mut drawing, &frame);
    if let Some(x) = plot.mark {
        let ends = [(frame.x(x), TOP), (frame.x(x), frame.bottom)];
        drawing.line(&ends, Ink::Second, 2.0, "");
    }
    for line in &plot.lines {
        line_of(&mut drawing, &frame, line);
    }
    for (x, y) in &plot.dots {
        drawing.dot((frame.x(*x), frame.y(*y)), 3.5, Ink::First);
    }
    drawing.finish()
}

/// The scales and the labels of the axes.
struct Frame {
    from: f64,
    to: f64,
    across_log: bool,
    up: Scale,
    bottom: f64,
    /// Values of the horizontal axis with a tick.
    ticks: Vec<f64>,
    has_dots: bool,
}

impl Frame {
    fn of(plot: &Plot) -> Self {
        let lines = plot.lines.iter();
        let mut levels: Vec<f64> = lines
            .flat_map(|line| line.points.iter().map(|point| point.0))
            .collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let first = levels.first().copied().unwrap_or_default();
        let last = levels.last().copied().unwrap_or(1.0);
        let mut values: Vec<f64> = plot.lines.iter().flat_map(Line::values).collect();
        values.extend(plot.dots.iter().map(|dot| dot.1));
        match plot.across {
            Across::Levels { may_be_log } => {
                let across_log = may_be_log && first > 0.0 && last / first > LOG_FROM;
                let margin = (last / first).ln() * 0.06;
                let (from, to) = match across_log {
                    true => (first.ln() - margin, last.ln() + margin),
                    false => (0.0, last * 1.06),
                };
                Self {
                    from,
                    to,
                    across_log,
                    up: Scale::of(&values),
                    bottom: 190.0,
                    ticks: levels,
                    has_dots: true,
                }
            }
            Across::Time { end, most, .. } => Self::from_0(end, Scale::up_to(most), 98.0),
            Across::Numbers => {
                let most = values.into_iter().fold(0.0, f64::max);
                Self::from_0(last, Scale::up_to(most * 1.05), 190.0)
            }
        }
    }

    fn from_0(end: f64, up: Scale, bottom: f64) -> Self {
        Self {
            from: 0.0,
            to: end,
            across_log: false,
            up,
            bottom,
            ticks: multiples(nice_step(end, 5.0), end),
            has_dots: false,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let value = if self.across_log { value.ln() } else { value };
        let part = (value - self.from) / (self.to - self.from);
        LEFT + part.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - self.up.place(value).clamp(0.0, 1.0) * (self.bottom - TOP)
    }
}

fn axes(drawing: &mut Drawing, frame: &Frame) {
    for tick in frame.up.ticks() {
        let y = frame.y(tick);
        if y < frame.bottom - 0.5 {
            drawing.line(&[(LEFT, y), (RIGHT, y)], Ink::Grid, 1.0, "");
        }
        drawing.words(&times(tick), (LEFT - 7.0, y), Ink::Muted, Anchor::End);
    }
    let base = [(LEFT, frame.bottom), (RIGHT, frame.bottom)];
    drawing.line(&base, Ink::Axis, 1.0, "");
    // From the right, as the largest level must have its label; a label that would touch it is skipped.
    let mut free = f64::INFINITY;
    for tick in frame.ticks.iter().rev() {
        let (words, x) = (times(*tick), frame.x(*tick));
        let half = words.chars().count() as f64 * LETTER / 2.0;
        if x + half <= free {
            drawing.words(&words, (x, frame.bottom + 12.0), Ink::Muted, Anchor::Middle);
            free = x - half - LETTER;
        }
    }
}

fn stretches(drawing: &mut Drawing, frame: &Frame, plot: &Plot) {
    let mut from = LEFT;
    for (end, is_shaded) in &plot.stretches {
        let to = frame.x(*end);
        if *is_shaded && to > from {
            drawing.rectangle((from, TOP), (to - from, frame.bottom - TOP), Ink::Ramp);
        }
        if to < RIGHT {
            drawing.line(&[(to, TOP), (to, frame.bottom)], Ink::Axis, 1.0, "");
        }
        from = to;
    }
}

fn band(drawing: &mut Drawing, frame: &Frame, plot: &Plot) {
    let upper = plot.band.iter().map(|(x, _, high)| {
        let high = high.map_or(TOP, |high| frame.y(high));
        (frame.x(*x), high)
    });
    let lower = plot.band.iter().rev().map(|(x, low, _)| {
        let low = low.map_or(frame.bottom, |low| frame.y(low));
        (frame.x(*x), low)
    });
    let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
    if !outline.is_empty() {
        drawing.area(&outline, Ink::Band);
    }
}

fn line_of(drawing: &mut Drawing, frame: &Frame, line: &Line) {
    let ink = Ink::from(line.series);
    let width = if frame.bottom < 100.0 { 1.5 } else { 2.0 };
    let extra = match line.series {
        Series::Published => " stroke-dasharray=\"5 4\"",
        _ => " stroke-linejoin=\"round\"",
    };
    for stretch in line.stretches() {
        let points = stretch.iter().map(|(x, y)| (frame.x(*x), frame.y(*y)));
        let points: Vec<(f64, f64)> = points.collect();
        if points.len() > 1 {
            drawing.line(&points, ink, width, extra);
        }
        if frame.has_dots || points.len() == 1 {
            for point in &points {
                drawing.dot(*point, 3.0, ink);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(series: Series, xs: [f64; 3], ys: [Option<f64>; 3]) -> Line {
        let points = xs.into_iter().zip(ys).collect();
        Line { series, points }
    }

    fn against(ys: [f64; 3]) -> Plot {
        let lines = vec![line(Series::First, [100.0, 1000.0, 1e5], ys.map(Some))];
        Plot::against_levels("a".to_owned(), lines, true).unwrap()
    }

    #[test]
    fn levels_may_span_decades() {
        let wide = against([1.0, 2.0, 50.0]);
        assert_eq!(scales(&wide), ", both axes logarithmic");
        assert!(plot(&wide).into_string().contains(">100,000</text>"));
        assert_eq!(scales(&against([1.0, 1.2, 1.1])), ", logarithmic across");
    }

    #[test]
    fn a_gap_breaks_the_line_and_what_stands_alone_is_a_dot() {
        let xs = [1.0, 2.0, 3.0];
        let lines = vec![
            line(Series::First, xs, [Some(1.0), None, Some(3.0)]),
            line(Series::Published, xs, [None, Some(2.0), Some(2.5)]),
        ];
        let drawn = Plot::against_levels("a".to_owned(), lines, false).unwrap();
        let svg = plot(&drawn).into_string();
        assert_eq!(svg.matches("stroke=\"var(--first)\"").count(), 0, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 4, "{svg}");
        assert_eq!(svg.matches("stroke-dasharray").count(), 1, "{svg}");
    }

    #[test]
    fn labels_never_touch_and_the_last_one_stays() {
        let points = (1..=40).map(|n| (f64::from(n) * 1000.0, Some(5.0)));
        let lines = vec![Line {
            series: Series::First,
            points: points.collect(),
        }];
        let drawn = Plot::against_levels("a".to_owned(), lines, false).unwrap();
        let svg = plot(&drawn).into_string();
        assert!(svg.contains(">40,000</text>"), "{svg}");
        assert!(svg.matches("text-anchor=\"middle\"").count() <= 8, "{svg}");
    }

    #[test]
    fn nothing_to_draw_is_no_chart() {
        assert!(Plot::against_levels("a".to_owned(), vec![], false).is_none());
        assert!(Plot::through_time("a".to_owned(), vec![], Across::Numbers).is_none());
    }

    #[test]
    fn names_are_escaped() {
        let hostile = "\"><script>";
        let lines = vec![line(Series::First, [1.0, 2.0, 3.0], [Some(1.0); 3])];
        let drawn = Plot::against_levels(hostile.to_owned(), lines, false).unwrap();
        assert!(!plot(&drawn).into_string().contains("<script"));
    }
}
