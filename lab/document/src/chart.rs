//! Contents of charts: lines, bands, bars, intervals, as figures. This module knows no size, colour, or markup.

use lab_analysis::model::LoadLine;

/// A chart with a name for readers without sight.
#[derive(Debug, Clone)]
pub enum Chart {
    /// Lines against an axis.
    Plot(Plot),
    /// One bar per step.
    Bars(Bars),
    /// One interval per comparison.
    Intervals(Intervals),
}

/// The meaning of a mark in the key of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The main line.
    First,
    /// The other line.
    Second,
    /// A published line.
    Published,
    /// A published figure on a bar.
    PublishedAt,
    /// A bar.
    Bar,
    /// The part that doesn't count yet.
    Ramp,
    /// The range of a value.
    Band,
    /// An interval.
    Interval,
    /// A figure that differs.
    Shown,
}

/// The kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// The main line.
    First,
    /// Another line of ours.
    Second,
    /// A published line.
    Published,
}

/// A line; a missing value breaks it.
#[derive(Debug, Clone)]
pub struct Line {
    /// The kind of the line.
    pub series: Series,
    /// The points: across, and up.
    pub points: Vec<(f64, Option<f64>)>,
}

/// The horizontal axis of lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Across {
    /// Executed levels, from 0 on, or on a logarithmic axis if `may_be_log`; a dot at each.
    Levels {
        /// Whether the axis may be logarithmic.
        may_be_log: bool,
    },
    /// Seconds of a trial up to its end; nothing counts up to `counts_from`.
    Time {
        /// The end of the trial.
        end: f64,
        /// The end of ramp and warm-up.
        counts_from: f64,
        /// The top value of all panels of this figure.
        most: f64,
    },
    /// Numbers from 0 on that lie close to each other.
    Numbers,
}

/// Lines against an axis.
#[derive(Debug, Clone)]
pub struct Plot {
    /// The title.
    pub name: String,
    /// The horizontal axis.
    pub across: Across,
    /// The lines, the last on top.
    pub lines: Vec<Line>,
    /// The range of the first line: across, lower end, upper end.
    pub band: Vec<(f64, Option<f64>, Option<f64>)>,
    /// The measured points.
    pub dots: Vec<(f64, f64)>,
    /// A highlighted place.
    pub mark: Option<f64>,
    /// Consecutive stretches, by their ends, and whether each is shaded.
    pub stretches: Vec<(f64, bool)>,
}

/// Bars of means with a whisker to p95 and a mark at the published mean.
#[derive(Debug, Clone)]
pub struct Bars {
    /// The title.
    pub name: String,
    /// One per step.
    pub bars: Vec<Bar>,
    /// The value of the longest bar.
    pub most_ms: f64,
}

/// One step's bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// The name.
    pub name: String,
    /// Mean response.
    pub mean_ms: Option<f64>,
    /// p95 of the responses.
    pub p95_ms: Option<f64>,
    /// The known bound in the place of a mean: `> 5 min`.
    pub bound: Option<String>,
    /// The published mean.
    pub published_ms: Option<f64>,
    /// The published text in the place of a figure.
    pub published_words: Option<String>,
}

/// Ratios with their intervals around 1.
#[derive(Debug, Clone)]
pub struct Intervals {
    /// The title.
    pub name: String,
    /// One per comparison.
    pub rows: Vec<Interval>,
    /// Ratios within this part of 1 are irrelevant.
    pub relevant: f64,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    /// The name.
    pub name: &'static str,
    /// The ratio.
    pub ratio: f64,
    /// Its interval, where there is one.
    pub interval: Option<(f64, f64)>,
    /// Whether it is shown to be a difference.
    pub is_shown: bool,
}

impl Line {
    /// Whether it has no value at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values().next().is_none()
    }

    /// Its values, without the gaps.
    pub fn values(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().filter_map(|(_, y)| *y)
    }

    /// Stretches without a gap.
    #[must_use]
    pub fn stretches(&self) -> Vec<Vec<(f64, f64)>> {
        self.points
            .split(|(_, y)| y.is_none())
            .map(|part| part.iter().filter_map(|(x, y)| Some((*x, (*y)?))).collect())
            .filter(|part: &Vec<_>| !part.is_empty())
            .collect()
    }
}

impl Plot {
    /// Lines against levels; `None` if there is nothing above 0 to draw.
    #[must_use]
    pub fn against_levels(name: String, lines: Vec<Line>, may_be_log: bool) -> Option<Self> {
        let any = lines.iter().flat_map(Line::values).any(|value| value > 0.0);
        any.then(|| Self::new(name, Across::Levels { may_be_log }, lines))
    }

    /// Lines through a trial; `None` if nothing was recorded.
    #[must_use]
    pub fn through_time(name: String, lines: Vec<Line>, across: Across) -> Option<Self> {
        let is_empty = lines.iter().all(Line::is_empty);
        (!is_empty).then(|| Self::new(name, across, lines))
    }

    /// Lines without a band, points, or a place.
    #[must_use]
    pub fn new(name: String, across: Across, lines: Vec<Line>) -> Self {
        Self {
            name,
            across,
            lines,
            band: Vec::new(),
            dots: Vec::new(),
            mark: None,
            stretches: Vec::new(),
        }
    }
}

/// A published mark further out than this many times our largest stands at the edge.
const FAR: f64 = 2.5;

impl Bars {
    /// Bars; `None` if no step has a value.
    #[must_use]
    pub fn new(name: String, bars: Vec<Bar>, most_ms: f64) -> Option<Self> {
        let shows = |bar: &Bar| bar.bound.is_some() || bar.mean_ms.is_some_and(|_| most_ms > 0.0);
        let any = bars.iter().any(shows);
        any.then_some(Self {
            name,
            bars,
            most_ms,
        })
    }

    /// The value of the longest of these bars: our largest figure, or the largest published one if that is near.
    #[must_use]
    pub fn scale<'a>(bars: impl IntoIterator<Item = &'a Bar> + Clone) -> f64 {
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
}

impl Intervals {
    /// Intervals of the rows with a positive ratio; `None` if there are none.
    #[must_use]
    pub fn new(name: String, rows: &[Interval], relevant: f64) -> Option<Self> {
        let drawn = |row: &&Interval| row.ratio.is_finite() && row.ratio > 0.0;
        let rows: Vec<Interval> = rows.iter().filter(drawn).copied().collect();
        let any = !rows.is_empty();
        any.then_some(Self {
            name,
            rows,
            relevant,
        })
    }
}

/// Rows of levels, counted from the bottom, between which a load line lies or may lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePlace {
    /// Levels below the line.
    pub below: usize,
    /// Levels that it is not below.
    pub from: usize,
    /// Levels that it is not above.
    pub to: usize,
}

impl LinePlace {
    /// The position of the line among the levels that were tried.
    #[must_use]
    pub fn of(line: &LoadLine) -> Self {
        let up_to = |users: u32| {
            let levels = line.levels.iter();
            levels.filter(|level| level.users <= users).count()
        };
        let from = line.low.map_or(0, up_to);
        let to = line.high.map_or(line.levels.len(), up_to);
        Self {
            below: line.users.map_or(0, up_to),
            from,
            to: to.max(from),
        }
    }
}
