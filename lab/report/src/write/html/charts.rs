//! Charts as SVG: lines against users, lines through a trial, bars per step.
//!
//! Drawn with plotters in marker colours, each replaced by a CSS variable afterwards, so that a
//! chart follows the page's theme, and at four times its size, because plotters places everything
//! on whole pixels. Titles, units, and legends belong to the page.

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::format::{figure, plain, times};
use crate::write::html::escape::escape;

/// Drawn this much larger than shown.
pub(super) const SCALE: i32 = 4;
/// Width of every chart in CSS pixels; the page scales it a little.
pub(super) const WIDTH: i32 = 400;
/// A font's size in plotters is its line height; this gives 12 px letters.
const LETTERS: i32 = 15;
/// Above this ratio of largest to smallest value a linear axis hides the smaller ones.
const LOG_FROM: f64 = 12.0;

/// What a mark stands for; its colour is a CSS variable of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    First,
    Second,
    Published,
    Text,
    Strong,
    Axis,
    Grid,
    Ramp,
    Track,
    Band,
}

impl Ink {
    const ALL: [Self; 10] = [
        Self::First,
        Self::Second,
        Self::Published,
        Self::Text,
        Self::Strong,
        Self::Axis,
        Self::Grid,
        Self::Ramp,
        Self::Track,
        Self::Band,
    ];

    /// The CSS variable.
    pub(super) fn variable(self) -> &'static str {
        match self {
            Self::First => "--first",
            Self::Second => "--second",
            Self::Published => "--published",
            Self::Text => "--muted",
            Self::Strong => "--ink",
            Self::Axis => "--axis",
            Self::Grid => "--grid",
            Self::Ramp => "--ramp",
            Self::Track => "--track",
            Self::Band => "--band",
        }
    }

    /// A colour that nothing else has; it never reaches the page.
    pub(super) fn marker(self) -> RGBColor {
        RGBColor(1, 2, self as u8 + 1)
    }

    fn marker_text(self) -> String {
        let RGBColor(red, green, blue) = self.marker();
        format!("\"#{red:02X}{green:02X}{blue:02X}\"")
    }
}

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// One line of a chart.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) ink: Ink,
    /// A missing value breaks the line.
    pub(super) points: Vec<(f64, Option<f64>)>,
}

impl Line {
    /// Stretches without a gap.
    fn stretches(&self) -> Vec<Vec<(f64, f64)>> {
        let mut stretches = vec![Vec::new()];
        for (x, y) in &self.points {
            match y {
                Some(y) => stretches
                    .last_mut()
                    .expect("it begins with one")
                    .push((*x, *y)),
                None => stretches.push(Vec::new()),
            }
        }
        stretches.retain(|stretch| !stretch.is_empty());
        stretches
    }

    /// Whether it has no value at all.
    pub(super) fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().filter_map(|(_, y)| *y)
    }
}

/// A drawn chart, and which of its axes are logarithmic.
pub(super) struct Against {
    pub(super) svg: String,
    across_log: bool,
    up_log: bool,
}

impl Against {
    /// What a reader must know of the axes, after the unit.
    pub(super) fn scales(&self) -> &'static str {
        match (self.across_log, self.up_log) {
            (true, true) => ", both axes logarithmic",
            (true, false) => ", logarithmic across",
            (false, true) => ", logarithmic",
            (false, false) => "",
        }
    }
}

/// Lines against the number of users; `None` if there is nothing to draw. The second value tells
/// whether the axis is logarithmic.
pub(super) fn against_users(name: &str, lines: &[Line]) -> Option<(String, bool)> {
    let drawn = against(name, lines, false)?;
    Some((drawn.svg, drawn.up_log))
}

/// Lines against levels, which may span decades.
pub(super) fn against_levels(name: &str, lines: &[Line]) -> Option<Against> {
    against(name, lines, true)
}

fn against(name: &str, lines: &[Line], may_be_log: bool) -> Option<Against> {
    let mut across: Vec<f64> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|point| point.0))
        .collect();
    across.sort_by(f64::total_cmp);
    across.dedup();
    let (first, last) = (*across.first()?, *across.last()?);
    let across_log = may_be_log && first > 0.0 && last / first > LOG_FROM;
    let place = |x: f64| if across_log { x.log10() } else { x };
    let values: Vec<f64> = lines.iter().flat_map(Line::values).collect();
    let most = values
        .iter()
        .copied()
        .reduce(f64::max)
        .filter(|most| *most > 0.0)?;
    let least = values
        .iter()
        .copied()
        .filter(|value| *value > 0.0)
        .reduce(f64::min)?;
    let up_log = most / least > LOG_FROM && values.iter().all(|value| *value > 0.0);
    let margin = (place(last) - place(first)) * 0.06;
    let frame = Frame {
        height: 210,
        x: match across_log {
            true => place(first) - margin..place(last) + margin,
            false => 0.0..last * 1.06,
        },
        ramp: None,
        dots: true,
        ticks: across.iter().map(|x| (place(*x), times(*x))).collect(),
    };
    let axis = match up_log {
        true => Axis::Log(10f64.powf(least.log10().floor())..nice_log_end(most)),
        false => Axis::Linear(nice_end(most)),
    };
    let placed: Vec<Line> = lines
        .iter()
        .map(|line| Line {
            ink: line.ink,
            points: line.points.iter().map(|(x, y)| (place(*x), *y)).collect(),
        })
        .collect();
    Some(Against {
        svg: draw(name, &frame, &placed, axis),
        across_log,
        up_log,
    })
}

/// Lines through a trial, in seconds, with its ramp shaded; all panels of a measure share `most`.
pub(super) fn through_time(
    name: &str,
    lines: &[Line],
    ramp_s: f64,
    end_s: f64,
    most: f64,
) -> Option<String> {
    if end_s <= 0.0 || lines.iter().all(Line::is_empty) {
        return None;
    }
    let step = nice_step(end_s, 5.0);
    let ticks = multiples(step, end_s);
    let ticks = ticks.into_iter().map(|tick| (tick, times(tick))).collect();
    let frame = Frame {
        height: 118,
        x: 0.0..end_s,
        ramp: Some(ramp_s),
        dots: false,
        ticks,
    };
    Some(draw(name, &frame, lines, Axis::Linear(nice_end(most))))
}

struct Frame {
    height: i32,
    x: std::ops::Range<f64>,
    ramp: Option<f64>,
    dots: bool,
    /// Where they stand, and what they say.
    ticks: Vec<(f64, String)>,
}

enum Axis {
    /// From 0 to here.
    Linear(f64),
    /// Decades between these; both positive.
    Log(std::ops::Range<f64>),
}

impl Axis {
    /// Where a value stands, 0 … 1.
    fn place(&self, value: f64) -> f64 {
        match self {
            Self::Linear(end) => value / end,
            Self::Log(range) => {
                let (low, high) = (range.start.log10(), range.end.log10());
                (value.log10() - low) / (high - low)
            }
        }
    }

    fn ticks(&self) -> Vec<f64> {
        match self {
            Self::Linear(end) => multiples(nice_step(*end, 5.0), *end),
            Self::Log(range) => {
                let mut ticks = Vec::new();
                let mut decade = range.start;
                while decade <= range.end * 1.0001 {
                    ticks.push(decade);
                    decade *= 10.0;
                }
                if ticks.len() < 3 {
                    let between: Vec<f64> = ticks
                        .iter()
                        .flat_map(|tick| [tick * 2.0, tick * 5.0])
                        .collect();
                    ticks.extend(
                        between
                            .into_iter()
                            .filter(|tick| *tick <= range.end * 1.0001),
                    );
                    ticks.sort_by(f64::total_cmp);
                }
                ticks
            }
        }
    }
}

type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

fn draw(name: &str, frame: &Frame, lines: &[Line], axis: Axis) -> String {
    svg(name, frame.height, |area| {
        let mut plot = ChartBuilder::on(area)
            .margin_top(8 * SCALE)
            .margin_right(10 * SCALE)
            .margin_bottom(20 * SCALE)
            .margin_left(46 * SCALE)
            .build_cartesian_2d(frame.x.clone(), 0.0..1.0)?;
        if let Some(ramp) = frame.ramp.filter(|ramp| *ramp > 0.0) {
            let shade = Rectangle::new([(0.0, 0.0), (ramp, 1.0)], Ink::Ramp.marker().filled());
            plot.draw_series(std::iter::once(shade))?;
        }
        grid(&mut plot, frame, &axis)?;
        for line in lines {
            line_of(&mut plot, frame, line, &axis)?;
        }
        labels(area, &plot, frame, &axis)
    })
}

fn grid(plot: &mut Plot<'_, '_>, frame: &Frame, axis: &Axis) -> Drawn {
    let style = Ink::Grid.marker().stroke_width(SCALE as u32);
    let (from, to) = (frame.x.start, frame.x.end);
    let across = axis
        .ticks()
        .into_iter()
        .map(|tick| axis.place(tick))
        .filter(|y| *y > 0.0);
    let lines: Vec<_> = across
        .map(|y| PathElement::new(vec![(from, y), (to, y)], style))
        .collect();
    plot.draw_series(lines)?;
    let base = Ink::Axis.marker().stroke_width(SCALE as u32);
    plot.draw_series(std::iter::once(PathElement::new(
        vec![(from, 0.0), (to, 0.0)],
        base,
    )))?;
    Ok(())
}

fn line_of(plot: &mut Plot<'_, '_>, frame: &Frame, line: &Line, axis: &Axis) -> Drawn {
    let style = line
        .ink
        .marker()
        .stroke_width(if frame.dots { 2 * SCALE } else { 6 } as u32);
    for stretch in line.stretches() {
        let points: Vec<(f64, f64)> = stretch
            .into_iter()
            .map(|(x, y)| (x, axis.place(y).clamp(0.0, 1.0)))
            .collect();
        if frame.dots || points.len() == 1 {
            let dot =
                |point: &(f64, f64)| Circle::new(*point, 3 * SCALE, line.ink.marker().filled());
            plot.draw_series(points.iter().map(dot))?;
        }
        plot.draw_series(LineSeries::new(points, style))?;
    }
    Ok(())
}

fn labels(area: &Area<'_>, plot: &Plot<'_, '_>, frame: &Frame, axis: &Axis) -> Drawn {
    let (left, _) = plot.plotting_area().get_pixel_range();
    for tick in axis.ticks() {
        let (_, y) = plot
            .plotting_area()
            .map_coordinate(&(frame.x.start, axis.place(tick)));
        text(
            area,
            &times(tick),
            left.start - 7 * SCALE,
            y,
            Ink::Text,
            HPos::Right,
        )?;
    }
    for (tick, words) in &frame.ticks {
        let (x, y) = plot.plotting_area().map_coordinate(&(*tick, 0.0));
        text(area, words, x, y + 11 * SCALE, Ink::Text, HPos::Center)?;
    }
    Ok(())
}

/// One step's bar.
#[derive(Debug, Clone)]
pub(super) struct Bar {
    pub(super) name: String,
    pub(super) mean_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    /// What is known in the place of a mean: `> 5 min`.
    pub(super) bound: Option<String>,
    pub(super) published_ms: Option<f64>,
    /// What was published in the place of a figure.
    pub(super) published_words: Option<String>,
}

/// A published mark further out than this many times our largest stands at the edge.
const FAR: f64 = 2.5;

/// What the longest bar stands for: our largest figure, or the largest published one if that is
/// near.
pub(super) fn scale<'a>(bars: impl IntoIterator<Item = &'a Bar> + Clone) -> f64 {
    let all = || bars.clone().into_iter();
    let ours = all()
        .flat_map(|bar| [bar.mean_ms, bar.p95_ms])
        .flatten()
        .fold(0.0, f64::max);
    let near = all()
        .filter_map(|bar| bar.published_ms)
        .filter(|ms| *ms <= ours * FAR);
    near.fold(ours, f64::max)
}

/// Bars of means with a whisker to p95 and a mark at the published mean; a mark beyond `most_ms`
/// stands at the edge as an arrow.
pub(super) fn bars(name: &str, bars: &[Bar], most_ms: f64) -> Option<String> {
    let shows = |bar: &Bar| bar.bound.is_some() || bar.mean_ms.is_some_and(|_| most_ms > 0.0);
    if !bars.iter().any(shows) {
        return None;
    }
    const ROW: i32 = 33;
    let height = bars.len() as i32 * ROW + 4;
    Some(svg(name, height, |area| {
        for (at, bar) in bars.iter().enumerate() {
            bar_row(area, bar, at as i32 * ROW * SCALE, most_ms)?;
        }
        Ok(())
    }))
}

fn bar_row(area: &Area<'_>, bar: &Bar, top: i32, most_ms: f64) -> Drawn {
    const LEFT: i32 = 2 * SCALE;
    const RIGHT: i32 = (WIDTH - 10) * SCALE;
    let place = |ms: f64| LEFT + ((ms / most_ms).min(1.0) * f64::from(RIGHT - LEFT)) as i32;
    let (line, from, to) = (top + 9 * SCALE, top + 18 * SCALE, top + 26 * SCALE);
    let published = bar.published_words.as_ref();
    let name = published.map_or_else(
        || bar.name.clone(),
        |words| format!("{} (published: {words})", bar.name),
    );
    text(area, &clip(&name), LEFT, line, Ink::Strong, HPos::Left)?;
    let value = bar.bound.clone();
    let value = value.unwrap_or_else(|| bar.mean_ms.map_or_else(|| "–".to_owned(), figure));
    text(area, &value, RIGHT, line, Ink::Strong, HPos::Right)?;
    area.draw(&Rectangle::new(
        [(LEFT, from), (RIGHT, to)],
        Ink::Track.marker().filled(),
    ))?;
    let middle = i32::midpoint(from, to);
    if let Some(p95) = bar.p95_ms {
        let style = Ink::Second.marker().stroke_width(2 * SCALE as u32);
        area.draw(&PathElement::new(
            vec![(LEFT, middle), (place(p95), middle)],
            style,
        ))?;
        let end = vec![(place(p95), from + SCALE), (place(p95), to - SCALE)];
        area.draw(&PathElement::new(end, style))?;
    }
    if let Some(mean) = bar.mean_ms {
        let end = place(mean).max(LEFT + SCALE);
        area.draw(&Rectangle::new(
            [(LEFT, from), (end, to)],
            Ink::First.marker().filled(),
        ))?;
    }
    if bar.bound.is_some() {
        // All of the track and an arrow: nobody knows how far it goes.
        let fill = Ink::First.marker().filled();
        area.draw(&Rectangle::new([(LEFT, from), (RIGHT, to)], fill))?;
        let (back, tip) = (RIGHT, RIGHT + 9 * SCALE);
        let arrow = vec![
            (back, from - 3 * SCALE),
            (tip, middle),
            (back, to + 3 * SCALE),
        ];
        area.draw(&Polygon::new(arrow, fill))?;
    }
    match bar.published_ms {
        Some(published) if published > most_ms => {
            let (tip, back) = (RIGHT + 9 * SCALE, RIGHT + 2 * SCALE);
            let arrow = vec![(back, from), (tip, middle), (back, to)];
            area.draw(&Polygon::new(arrow, Ink::Published.marker().filled()))
        }
        Some(published) => {
            let x = place(published);
            let mark = [(x - SCALE, from - 3 * SCALE), (x + SCALE, to + 3 * SCALE)];
            area.draw(&Rectangle::new(mark, Ink::Published.marker().filled()))
        }
        None => Ok(()),
    }
}

/// What fits beside the value.
fn clip(name: &str) -> String {
    const FITS: usize = 52;
    if name.chars().count() <= FITS {
        return name.to_owned();
    }
    name.chars().take(FITS - 1).chain(['…']).collect()
}

pub(super) fn text(area: &Area<'_>, words: &str, x: i32, y: i32, ink: Ink, at: HPos) -> Drawn {
    let style = ("sans-serif", LETTERS * SCALE)
        .into_font()
        .color(&ink.marker())
        .pos(Pos::new(at, VPos::Center));
    area.draw(&Text::new(plain(words), (x, y), style))
}

/// Draws and turns the result into an element of the page.
pub(super) fn svg(name: &str, height: i32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut drawn = String::new();
    {
        let size = ((WIDTH * SCALE) as u32, (height * SCALE) as u32);
        let area = SVGBackend::with_string(&mut drawn, size).into_drawing_area();
        let done = draw(&area).and_then(|()| area.present());
        debug_assert!(
            done.is_ok(),
            "a string takes all writes, and all coordinates are finite"
        );
    }
    let body = drawn
        .split_once("<svg")
        .and_then(|(_, rest)| rest.split_once('>'));
    let body = body.map_or("", |(_, body)| body);
    let mut themed = body.to_owned();
    for ink in Ink::ALL {
        themed = themed.replace(&ink.marker_text(), &format!("\"var({})\"", ink.variable()));
    }
    // Plotters dashes by drawing each dash; one attribute says the same.
    let published = format!("stroke=\"var({})\"", Ink::Published.variable());
    let dashed = format!(
        "{published} stroke-dasharray=\"{} {}\"",
        5 * SCALE,
        4 * SCALE
    );
    let themed = themed
        .replace(&published, &dashed)
        .replace(" opacity=\"1\"", "");
    let themed: String = themed.lines().map(str::trim).collect();
    format!(
        "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">{themed}",
        WIDTH * SCALE,
        height * SCALE,
        escape(name)
    )
}

/// A step of 1, 2, 2.5, or 5 × 10ⁿ that cuts `end` into at most `parts`.
pub(super) fn nice_step(end: f64, parts: f64) -> f64 {
    let raw = end / parts;
    let decade = 10f64.powf(raw.log10().floor());
    let nice = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .find(|nice| nice * decade >= raw * 0.999);
    nice.unwrap_or(10.0) * decade
}

/// The end of a linear axis that shows `most`.
pub(super) fn nice_end(most: f64) -> f64 {
    let most = if most > 0.0 { most } else { 1.0 };
    let step = nice_step(most, 5.0);
    (most / step).ceil() * step
}

/// The end of a logarithmic axis that shows `most`: 1, 2, or 5 × 10ⁿ.
fn nice_log_end(most: f64) -> f64 {
    let decade = 10f64.powf(most.log10().floor());
    let nice = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|nice| nice * decade >= most);
    nice.unwrap_or(10.0) * decade
}

pub(super) fn multiples(step: f64, end: f64) -> Vec<f64> {
    let count = (end / step + 1e-6).floor() as usize;
    (0..=count.min(20)).map(|n| n as f64 * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        for (most, end) in [
            (5252.0, 6000.0),
            (0.9, 1.0),
            (21.4, 25.0),
            (100.0, 100.0),
            (0.0, 1.0),
        ] {
            assert!(
                (nice_end(most) - end).abs() < 1e-9,
                "{most}: {}",
                nice_end(most)
            );
        }
        assert_eq!(multiples(15.0, 60.0), [0.0, 15.0, 30.0, 45.0, 60.0]);
    }

    #[test]
    fn no_marker_colour_reaches_the_page() {
        let line = |ink| Line {
            ink,
            points: vec![(1.0, Some(1.0)), (2.0, None), (3.0, Some(50.0))],
        };
        let (svg, logarithmic) =
            against_users("a", &[line(Ink::First), line(Ink::Published)]).unwrap();
        assert!(logarithmic);
        assert!(!svg.contains("#0102"), "{svg}");
        assert!(svg.contains("var(--first)") && svg.contains("stroke-dasharray"));
    }

    #[test]
    fn levels_may_span_decades() {
        let line = |ys: [f64; 3]| Line {
            ink: Ink::First,
            points: [100.0, 1000.0, 100_000.0]
                .into_iter()
                .zip(ys.map(Some))
                .collect(),
        };
        let drawn = against_levels("a", &[line([1.0, 2.0, 50.0])]).unwrap();
        assert_eq!(drawn.scales(), ", both axes logarithmic");
        assert!(drawn.svg.contains("100,000"), "{}", drawn.svg);
        let flat = against_levels("a", &[line([1.0, 1.2, 1.1])]).unwrap();
        assert_eq!(flat.scales(), ", logarithmic across");
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
        let svg = bars("a", std::slice::from_ref(&bar), scale([&bar])).unwrap();
        assert!(svg.contains("Deregister (published: &gt; 5 min)"), "{svg}");
    }

    #[test]
    fn nothing_to_draw_is_no_chart() {
        assert!(against_users("a", &[]).is_none());
        assert!(through_time("a", &[], 1.0, 2.0, 1.0).is_none());
        assert!(bars("a", &[], 1.0).is_none());
    }

    #[test]
    fn names_are_escaped() {
        let bar = Bar {
            name: "<script>alert(1)</script>".to_owned(),
            mean_ms: Some(1.0),
            p95_ms: None,
            bound: None,
            published_ms: Some(9.0),
            published_words: None,
        };
        let svg = bars("\"><script>", &[bar], 2.0).unwrap();
        assert!(!svg.contains("<script"), "{svg}");
    }
}
