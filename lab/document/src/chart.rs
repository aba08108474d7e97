//! What charts show: lines, bands, bars, intervals, as figures. It knows no size, colour, or markup.

use lab_analysis::model::LoadLine;

/// A chart with a name for those who don't see it.
#[derive(Debug, Clone)]
pub enum Chart {
    /// Lines against something.
    Plot(Plot),
    /// A bar per step.
    Bars(Bars),
    /// An interval per comparison.
    Intervals(Intervals),
}

/// What a mark stands for in the key of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The line that matters most.
    First,
    /// The line beside it.
    Second,
    /// A published line.
    Published,
    /// A published figure on a bar.
    PublishedAt,
    /// A bar.
    Bar,
    /// What doesn't count yet.
    Ramp,
    /// Where something may lie.
    Band,
    /// An interval.
    Interval,
    /// A figure that differs.
    Shown,
}

/// Whose a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Series {
    /// The one that matters most.
    First,
    /// What stands beside it.
    Second,
    /// What was published.
    Published,
}

/// A line; a missing value breaks it.
#[derive(Debug, Clone)]
pub struct Line {
    /// Whose it is.
    pub series: Series,
    /// Across, and up.
    pub points: Vec<(f64, Option<f64>)>,
}

/// What lines are drawn against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Across {
    /// Levels that were run, from 0 on, or decades apart where `may_be_log`; a dot at each.
    Levels {
        /// Whether the levels may stand decades apart.
        may_be_log: bool,
    },
    /// Seconds of a trial up to its end; up to `counts_from` nothing counts.
    Time {
        /// The end of the trial.
        end: f64,
        /// The end of ramp and warm-up.
        counts_from: f64,
        /// What all panels of this figure show at the top.
        most: f64,
    },
    /// Numbers from 0 on that lie close to each other.
    Numbers,
}

/// Lines against something.
#[derive(Debug, Clone)]
pub struct Plot {
    /// What it shows.
    pub name: String,
    /// What the lines are drawn against.
    pub across: Across,
    /// The lines, the last on top.
    pub lines: Vec<Line>,
    /// Where the first line may lie: across, lower end, upper end.
    pub band: Vec<(f64, Option<f64>, Option<f64>)>,
    /// What was measured.
    pub dots: Vec<(f64, f64)>,
    /// A place of its own.
    pub mark: Option<f64>,
    /// Stretches that follow each other, by their ends, and whether each is shaded.
    pub stretches: Vec<(f64, bool)>,
}

/// Bars of means with a whisker to p95 and a mark at the published mean.
#[derive(Debug, Clone)]
pub struct Bars {
    /// What they show.
    pub name: String,
    /// One per step.
    pub bars: Vec<Bar>,
    /// What the longest bar stands for.
    pub most_ms: f64,
}

/// One step's bar.
#[derive(Debug, Clone)]
pub struct Bar {
    /// Of what.
    pub name: String,
    /// Mean response.
    pub mean_ms: Option<f64>,
    /// p95 of the responses.
    pub p95_ms: Option<f64>,
    /// What is known in the place of a mean: `> 5 min`.
    pub bound: Option<String>,
    /// The published mean.
    pub published_ms: Option<f64>,
    /// What was published in the place of a figure.
    pub published_words: Option<String>,
}

/// Ratios with their intervals around 1.
#[derive(Debug, Clone)]
pub struct Intervals {
    /// What they show.
    pub name: String,
    /// One per comparison.
    pub rows: Vec<Interval>,
    /// Ratios within this part of 1 don't matter.
    pub relevant: f64,
}

/// A ratio with its interval.
#[derive(Debug, Clone, Copy)]
pub struct Interval {
    /// Of what.
    pub name: &'static str,
    /// The ratio.
    pub ratio: f64,
    /// Its interval, where there is one.
    pub interval: Option<(f64, f64)>,
    /// Whether it is called a difference.
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

    /// Lines and no more.
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
    /// Bars; `None` if none shows anything.
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

    /// What the longest of these bars stands for: our largest figure, or the largest published one if
    /// that is near.
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
    /// Where the line stands among the levels that were tried.
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
