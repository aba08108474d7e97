//! Trials one by one: their figures, and their course over time.

use super::words::millis;
use crate::Analysis;
use crate::chart::{Across, Chart, Line, Mark, Plot, Series};
use crate::document::{
    Badge, Block, Card, Cell, Charts, Column, Content, Kind, Row, Section, Table, Tone,
};
use crate::format::count;
use crate::model::{Attempt, BEYOND, Counters, Point, Sample, TrialAnalysis, Verdict};

/// The maximum number of trials with charts; all are in the archive.
const MOST_CARDS: usize = 24;

fn badge(trial: &TrialAnalysis) -> Badge {
    let (text, tone) = match trial.verdict {
        Verdict::Valid => ("valid", Tone::Good),
        Verdict::Invalid => ("invalid", Tone::Bad),
    };
    Badge {
        text: text.to_owned(),
        tone,
    }
}

/// One row per trial; invalid ones are struck out.
pub(super) fn trials(analysis: &Analysis) -> Option<Section> {
    if analysis.trials.is_empty() {
        return None;
    }
    let figures = [
        "tx", "errors", "skipped", "tx/s", "mean", "p50", "p95", "p99", "p99.9", "max", "late",
        "CPU, %", "CPU/tx", "MB",
    ];
    let names = [
        ("trial", Kind::Number),
        ("cell", Kind::Text),
        ("verdict", Kind::Text),
    ];
    let figures = figures.map(|head| (head, Kind::Number));
    // Beside the times of successful requests, only if some failed.
    let failed = analysis.trials.iter();
    let failed = failed.map(|trial| trial.response_with_failures_ms.failed);
    let any_failed = failed.sum::<u64>() > 0;
    let with_failures = any_failed.then_some(("p95, failed too", Kind::Number));
    let columns = names.into_iter().chain(figures).chain(with_failures);
    let row = |trial: &TrialAnalysis| {
        let verdict = badge(trial);
        let mut cells = vec![
            Cell::text(trial.name()),
            Cell::text(&trial.label),
            Cell::outcome(verdict.text, verdict.tone),
        ];
        cells.extend(trial_figures(trial));
        cells.extend(any_failed.then(|| attempt(trial.response_with_failures_ms.p95)));
        Row {
            struck: trial.verdict == Verdict::Invalid,
            ..Row::new(cells)
        }
    };
    let lead = "Times in ms. late: p99 of lateness; CPU: of the host; CPU/tx: of the system per \
                transaction; MB: peak memory of the system. Invalid trials are struck out and count \
                nowhere else.";
    let failed =
        " p95, failed too: over all attempts, where a failed one is slower than any limit.";
    let lead = format!("{lead}{}", if any_failed { failed } else { "" });
    let columns = columns
        .map(|(head, kind)| Column::new(head, kind))
        .collect();
    let rows = analysis.trials.iter().map(row).collect();
    let table = Table::new("Trials", "trial", columns, rows);
    let blocks = vec![Block::Paragraph(lead), Block::Table(table)];
    Some(Section::of_page("Trials", blocks))
}

/// The machines of a system that has several, trial by trial.
pub(super) fn machines(analysis: &Analysis) -> Option<Section> {
    let parted = analysis.trials.iter();
    let parted: Vec<&TrialAnalysis> = parted.filter(|trial| !trial.parts.is_empty()).collect();
    parted.first()?;
    let texts = ["trial", "machine"].map(|head| Column::new(head, Kind::Text));
    let figures = ["CPU, %", "CPU of the system, % of core", "MB"];
    let figures = figures.map(|head| Column::new(head, Kind::Number));
    let columns = texts.into_iter().chain(figures).collect();
    let counter = |counters: &Counters, name: &str| counters.get(name).copied().flatten();
    let row = |trial: &TrialAnalysis, name: String, values: [Option<f64>; 3]| {
        let words = [trial.name(), name].map(Cell::text);
        let figures = values.map(Cell::number);
        Row {
            struck: trial.verdict == Verdict::Invalid,
            ..Row::new(words.into_iter().chain(figures).collect())
        }
    };
    let rows = parted.into_iter().flat_map(|trial| {
        // For the machine that users connect to, the rest of the sum.
        let own = |name: &str| {
            let parts = trial.parts.iter();
            let of_parts: Option<f64> = parts.map(|part| counter(&part.system, name)).sum();
            Some((counter(&trial.system, name)? - of_parts?).max(0.0))
        };
        let last = [
            counter(&trial.host, "cpu_percent"),
            own("cpu_percent"),
            own("rss_mb"),
        ];
        let parts = trial.parts.iter().map(move |part| {
            let values = [
                counter(&part.host, "cpu_percent"),
                counter(&part.system, "cpu_percent"),
                counter(&part.system, "rss_mb"),
            ];
            row(trial, format!("of {}", part.name), values)
        });
        parts.chain([row(trial, "that users come to".to_owned(), last)])
    });
    let lead = "The system had parts on several machines. CPU: of that machine; MB: mean memory of the \
                system's processes there.";
    let table = Table::new("Machines of the system", "trial", columns, rows.collect());
    let blocks = vec![Block::Paragraph(lead.to_owned()), Block::Table(table)];
    Some(Section::of_page("Machines of the system", blocks))
}

fn attempt(of: Attempt) -> Cell {
    match of {
        Attempt::Ms(ms) => Cell::number(Some(ms)),
        Attempt::Unsupported => Cell::number(None),
        Attempt::Beyond => Cell::text(BEYOND),
    }
}

fn trial_figures(trial: &TrialAnalysis) -> Vec<Cell> {
    let times = &trial.response_ms;
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let whole = |n: u64| Cell {
        value: Some(n as f64),
        ..Cell::text(count(n))
    };
    let counter = |counters: &Counters, name: &str| counters.get(name).copied().flatten();
    let figures = [
        trial.throughput_per_s,
        times.mean,
        times.p50,
        times.p95,
        times.p99,
        times.p999,
        times.max,
        trial.lateness_ms.p99,
        counter(&trial.host, "cpu_percent"),
        counter(&trial.system, "cpu_ms_per_transaction"),
        counter(&trial.system, "rss_mb_max"),
    ];
    let counts = [trial.transactions, trial.errors, trial.skipped].map(whole);
    counts
        .into_iter()
        .chain(figures.map(Cell::number))
        .collect()
}

/// A row of charts: its name, its unit, its lines.
type Panel = (&'static str, &'static str, fn(&TrialAnalysis) -> Vec<Line>);

const PANELS: [Panel; 4] = [
    ("Throughput", "transactions per s", |trial| {
        vec![load(trial, Series::First, |point| {
            Some(point.transactions_per_s)
        })]
    }),
    ("p95 response", "ms", |trial| {
        vec![load(trial, Series::First, |point| point.p95_ms)]
    }),
    ("CPU", "% of the host", |trial| {
        vec![
            counters(trial, Series::First, |sample| sample.host_cpu_percent),
            counters(trial, Series::Second, |sample| sample.system_cpu_percent),
        ]
    }),
    ("Disk", "transfers per s", |trial| {
        vec![counters(trial, Series::First, |sample| {
            sample.disk_transfers_per_s
        })]
    }),
];

/// For sessions that arrive independently.
const SESSIONS: Panel = ("Sessions", "arriving per s; waiting", |trial| {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    let waiting = |point: &Point| Some(point.waiting as f64);
    vec![
        load(trial, Series::First, |point| Some(point.arrived_per_s)),
        load(trial, Series::Second, waiting),
    ]
});

/// For a changing number of users.
const USERS: Panel = ("Users", "there, or sessions under way", |trial| {
    vec![load(trial, Series::First, |point| {
        Some(f64::from(point.users))
    })]
});

/// Throughput, p95, CPU, and disk through each trial, one card per trial.
pub(super) fn through_trials(analysis: &Analysis) -> Option<Section> {
    let mut trials = analysis.trials.iter();
    if trials.all(|trial| trial.series.load.is_empty()) {
        return None;
    }
    let shown = &analysis.trials[..analysis.trials.len().min(MOST_CARDS)];
    let first = match analysis.trials.len() - shown.len() {
        0 => String::new(),
        n => format!("The first {MOST_CARDS} trials; {n} more are in the archive. "),
    };
    let mut panels = PANELS.to_vec();
    let has_stages = shown.iter().any(|trial| !trial.stages.is_empty());
    if has_stages {
        panels.insert(0, USERS);
    }
    if shown.iter().any(|trial| trial.arrivals.is_some()) {
        panels.push(SESSIONS);
    }
    let most = |(_, _, lines): &Panel| {
        let lines = shown.iter().flat_map(lines);
        lines.fold(0.0, |most, line| line.values().fold(most, f64::max))
    };
    let most: Vec<f64> = panels.iter().map(most).collect();
    let key = [
        (Mark::First, "the figure; CPU: all of the host"),
        (Mark::Second, "CPU of the system; sessions waiting"),
        match has_stages {
            true => (Mark::Ramp, "a stage that ramps"),
            false => (Mark::Ramp, "ramp and warm-up, not counted"),
        },
    ];
    let cards = shown.iter().map(|trial| trial_card(trial, &panels, &most));
    let charts = Charts {
        lead: format!(
            "{first}Seconds from the start of the {}; each row has one scale for all trials.",
            if has_stages { "first stage" } else { "ramp" }
        ),
        key: key.map(|(mark, words)| (mark, words.to_owned())).to_vec(),
        cards: cards.collect(),
    };
    let blocks = vec![Block::Charts(charts)];
    Some(Section::of_page("Through each trial", blocks))
}

fn trial_card(trial: &TrialAnalysis, panels: &[Panel], most: &[f64]) -> Card {
    // A sequence ends with its sessions, long before the time limit of the plan.
    let planned_ms = trial.ramp_ms + trial.hold_ms;
    let end = millis(planned_ms.min(trial.elapsed_ms)) / 1000.0;
    let counts_from = (millis(trial.ramp_ms) + trial.warmup_cut_ms) / 1000.0;
    let panels = panels.iter().zip(most).map(|((name, unit, lines), most)| {
        let across = Across::Time {
            end,
            counts_from,
            most: *most,
        };
        let title = format!("{name} through trial {}", trial.id);
        let plot = Plot::through_time(title, lines(trial), across).filter(|_| end > 0.0);
        let plot = plot.map(|plot| Plot {
            stretches: stretches(trial),
            ..plot
        });
        (*name, *unit, plot.map(Chart::Plot))
    });
    Card {
        title: format!("Trial {} · {}", trial.id, trial.label),
        unit: String::new(),
        badge: Some(badge(trial)),
        content: Content::Panels(panels.collect()),
    }
}

/// The ends of its stages, and whether each ramps.
fn stretches(trial: &TrialAnalysis) -> Vec<(f64, bool)> {
    let plans = trial.stages.iter().map(|stage| &stage.plan);
    let end = |start_ms, length_ms| millis(start_ms + length_ms) / 1000.0;
    plans
        .map(|plan| (end(plan.start_ms, plan.length_ms), plan.ramps))
        .collect()
}

fn load(trial: &TrialAnalysis, series: Series, of: fn(&Point) -> Option<f64>) -> Line {
    let points = trial.series.load.iter();
    let points = points.map(|point| (point.t_ms / 1000.0, of(point)));
    Line {
        series,
        points: points.collect(),
    }
}

fn counters(trial: &TrialAnalysis, series: Series, of: fn(&Sample) -> Option<f64>) -> Line {
    let samples = trial.series.counters.iter();
    let samples = samples.filter(|sample| sample.t_ms >= 0.0);
    let points = samples.map(|sample| (sample.t_ms / 1000.0, of(sample)));
    Line {
        series,
        points: points.collect(),
    }
}
