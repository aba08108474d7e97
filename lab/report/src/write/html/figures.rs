//! The page's key figures and charts: which numbers go where. It knows no SVG.

use super::charts::{self, Bar, Ink, Line};
use super::escape::escape;
use super::{MOST_CELLS, Page, side_by_side};
use crate::Analysis;
use crate::format::{bound, figure, or_none, ratio};
use crate::model::{CellSummary, Estimate, Sample, StepSummary, TrialAnalysis, Verdict};
use crate::write::rows::{published, published_step, published_text, whole};
use lab_analysis::most_loaded;

fn mean(estimate: Option<Estimate>) -> Option<f64> {
    estimate.map(|estimate| estimate.mean)
}

fn counter(cell: &CellSummary, name: &str) -> Option<f64> {
    cell.host.get(name).copied().flatten()
}

/// The most loaded cell with a valid trial; of a search, the one at the load line.
fn key_cell(analysis: &Analysis) -> Option<&CellSummary> {
    let line = analysis.load_line.as_ref();
    let is_line = |cell: &&CellSummary| {
        line.is_some_and(|line| {
            let mut factors = line.cell.iter();
            line.users == Some(cell.users)
                && factors.all(|(factor, level)| cell.cell.get(factor) == Some(level))
        })
    };
    let measured = |cell: &&CellSummary| cell.valid_trials > 0;
    let at_line = analysis.cells.iter().filter(measured).find(is_line);
    at_line.or_else(|| most_loaded(&analysis.cells))
}

/// The figures of the cell that matters most.
pub(super) fn tiles(page: &mut Page, analysis: &Analysis) {
    let Some(cell) = key_cell(analysis) else {
        return;
    };
    page.section(&format!("At {}", cell.label), "");
    page.raw("<dl class=\"tiles\">\n");
    let requests = mean(cell.transactions);
    tile(
        page,
        analysis,
        cell,
        ("throughput", "per s", mean(cell.throughput_per_s)),
        &["average_tps", "throughput_per_s"],
    );
    tile(
        page,
        analysis,
        cell,
        ("mean response", "ms", mean(cell.response_ms.mean)),
        &["response_mean_ms", "response_ms"],
    );
    tile(
        page,
        analysis,
        cell,
        ("p95 response", "ms", mean(cell.response_ms.p95)),
        &[],
    );
    tile(
        page,
        analysis,
        cell,
        ("CPU of the host", "%", counter(cell, "cpu_percent")),
        &["cpu_percent"],
    );
    tile(
        page,
        analysis,
        cell,
        ("transactions", "", requests),
        &["transactions"],
    );
    page.raw("<div class=\"tile\">");
    page.element("dt", "", "errors");
    page.raw("<dd class=\"value\">");
    page.raw(&escape(&or_none(cell.errors_per_trial, whole)));
    page.raw("</dd>\n<dd class=\"than\"></dd></div>\n</dl>\n");
    if let Some(note) = analysis.speed_note().filter(|_| analysis.has_published()) {
        page.element(
            "p",
            "class=\"meta\"",
            &format!("Published figures: {note}."),
        );
    }
}

fn tile(
    page: &mut Page,
    analysis: &Analysis,
    cell: &CellSummary,
    (name, unit, value): (&str, &str, Option<f64>),
    columns: &[&str],
) {
    page.raw("<div class=\"tile\">");
    page.element("dt", "", name);
    page.raw("<dd class=\"value\">");
    page.raw(&escape(&or_none(value, figure)));
    if !unit.is_empty() {
        page.element("small", "", unit);
    }
    page.raw("</dd>\n");
    let at = analysis
        .cells
        .iter()
        .position(|other| other.cell == cell.cell);
    let entries = published(analysis, columns, None);
    let entry = at.and_then(|at| entries.get(at)?.as_ref());
    let than = entry.map_or_else(String::new, |entry| {
        let times = entry
            .ratio
            .map_or_else(String::new, |value| format!(" {}", ratio(value)));
        format!("published {}{times}", published_text(entry))
    });
    page.element("dd", "class=\"than\"", &than);
    page.raw("</div>\n");
}

/// Response, throughput, CPU, and disk against the number of users, if that varies.
pub(super) fn against_users(page: &mut Page, analysis: &Analysis) {
    let valid = || analysis.cells.iter().filter(|cell| cell.valid_trials > 0);
    let distinct: std::collections::BTreeSet<u32> = valid().map(|cell| cell.users).collect();
    let one_line = analysis.study.factors == ["users"];
    if distinct.len() < 2 || !one_line {
        return;
    }
    let lead = analysis.speed_note().filter(|_| analysis.has_published());
    let lead = lead.map_or_else(String::new, |note| format!("Published figures: {note}."));
    page.section("Against users", &lead);
    let any = analysis.has_published();
    key(
        page,
        &[("", "here (response: mean)"), ("second", "here, p95")],
        any.then_some("published"),
    );
    page.raw("<div class=\"grid\">\n");
    let response = [
        line(analysis, Ink::Second, |cell| mean(cell.response_ms.p95)),
        line(analysis, Ink::First, |cell| mean(cell.response_ms.mean)),
        published_line(analysis, &["response_mean_ms", "response_ms"]),
    ];
    chart(page, "Response", "ms", &response);
    let throughput = [
        line(analysis, Ink::First, |cell| mean(cell.throughput_per_s)),
        published_line(analysis, &["average_tps", "throughput_per_s"]),
    ];
    chart(page, "Throughput", "transactions per s", &throughput);
    let host = |name: &'static str, columns: &[&str]| {
        let ours = Line {
            ink: Ink::First,
            points: points(analysis, |cell| counter(cell, name)),
        };
        [ours, published_line(analysis, columns)]
    };
    chart(
        page,
        "CPU of the host",
        "%",
        &host("cpu_percent", &["cpu_percent"]),
    );
    let disk = host("disk_transfers_per_s", &["disk_transfers_per_s"]);
    chart(page, "Disk transfers", "per s", &disk);
    let network = host("network_kb_per_s", &["network_kb_per_s"]);
    chart(page, "Network", "KB per s", &network);
    let available = host("memory_available_mb", &["memory_available_mb"]);
    chart(page, "Memory available", "MB", &available);
    page.raw("</div>\n");
}

fn points(
    analysis: &Analysis,
    of: impl Fn(&CellSummary) -> Option<f64>,
) -> Vec<(f64, Option<f64>)> {
    let mut points: Vec<_> = analysis
        .cells
        .iter()
        .map(|cell| (f64::from(cell.users), of(cell)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

fn line(analysis: &Analysis, ink: Ink, of: fn(&CellSummary) -> Option<f64>) -> Line {
    Line {
        ink,
        points: points(analysis, of),
    }
}

fn published_line(analysis: &Analysis, columns: &[&str]) -> Line {
    let entries = published(analysis, columns, None);
    let mut points: Vec<_> = analysis
        .cells
        .iter()
        .zip(entries)
        .map(|(cell, entry)| {
            (
                f64::from(cell.users),
                entry.and_then(|entry| entry.published),
            )
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Line {
        ink: Ink::Published,
        points,
    }
}

fn chart(page: &mut Page, name: &str, unit: &str, lines: &[Line]) {
    if lines
        .iter()
        .filter(|line| line.ink != Ink::Published)
        .all(Line::is_empty)
    {
        return;
    }
    lines_card(page, (name, "users"), unit, lines);
}

/// A card with one chart: `name` against `across`, in `unit`.
pub(super) fn lines_card(
    page: &mut Page,
    (name, across): (&str, &str),
    unit: &str,
    lines: &[Line],
) {
    let title = format!("{name} against {across}");
    let Some((svg, logarithmic)) = charts::against_users(&title, lines) else {
        return;
    };
    let unit = if logarithmic {
        format!("{unit}, logarithmic")
    } else {
        unit.to_owned()
    };
    page.raw("<section class=\"card\"><h3>");
    page.raw(&escape(name));
    page.element("span", "class=\"unit\"", &unit);
    page.raw("</h3>\n");
    page.raw(&svg);
    page.raw("</section>\n");
}

pub(super) fn key(page: &mut Page, lines: &[(&str, &str)], published: Option<&str>) {
    page.raw("<ul class=\"key\">\n");
    for (class, name) in lines {
        page.raw(&format!(
            "<li><i class=\"{class}\"></i>{}</li>\n",
            escape(name)
        ));
    }
    if let Some(name) = published {
        page.raw(&format!(
            "<li><i class=\"published\"></i>{}</li>\n",
            escape(name)
        ));
    }
    page.raw("</ul>\n");
}

/// Bars per step, one card per cell; of two factors and few steps, levels beside each other.
pub(super) fn steps(page: &mut Page, analysis: &Analysis) {
    let cells: Vec<(usize, &CellSummary)> = analysis
        .cells
        .iter()
        .enumerate()
        .filter(|(_, cell)| cell.valid_trials > 0)
        .take(MOST_CELLS)
        .collect();
    if cells.is_empty() {
        return;
    }
    let lead = "Mean response of each step in ms, with a whisker to p95. Less is better.";
    let lead = match analysis.speed_note().filter(|_| analysis.has_published()) {
        Some(note) => format!("{lead} Published means: {note}."),
        None => lead.to_owned(),
    };
    if side_by_side::steps(page, analysis, &lead) {
        return;
    }
    page.section("Per step", &lead);
    bars_key(page, analysis);
    let bars: Vec<Vec<Bar>> = cells
        .iter()
        .map(|(at, cell)| {
            let steps = cell.steps.iter();
            steps.map(|step| bar_of(analysis, *at, step)).collect()
        })
        .collect();
    let most_ms = charts::scale(bars.iter().flatten());
    page.raw("<div class=\"grid\">\n");
    for ((_, cell), bars) in cells.iter().zip(&bars) {
        page.raw("<section class=\"card\"><h3>");
        page.raw(&escape(&cell.label));
        page.element(
            "span",
            "class=\"unit\"",
            &format!("bar: 0 to {} ms", figure(most_ms)),
        );
        page.raw("</h3>\n");
        match charts::bars(
            &format!("Response per step at {}", cell.label),
            bars,
            most_ms,
        ) {
            Some(svg) => page.raw(&svg),
            None => page.element("p", "class=\"none\"", "no responses"),
        }
        page.raw("</section>\n");
    }
    page.raw("</div>\n");
}

/// What the marks of the bars mean.
pub(super) fn bars_key(page: &mut Page, analysis: &Analysis) {
    page.raw("<ul class=\"key\">\n<li><i class=\"bar\"></i>mean</li>\n");
    page.raw("<li><i class=\"second\"></i>p95</li>\n");
    let mut entries = analysis.published.iter().flat_map(|table| &table.entries);
    if entries.any(|entry| entry.step.is_some() && entry.published.is_some()) {
        page.raw("<li><i class=\"mark\"></i>published mean; an arrow at the edge: off the scale");
        page.raw("</li>\n");
    }
    page.raw("</ul>\n");
}

/// The bar of a step of the cell at a place.
pub(super) fn bar_of(analysis: &Analysis, at: usize, step: &StepSummary) -> Bar {
    let entries = published_step(analysis, &step.name);
    let entry = entries.get(at).and_then(Option::as_ref);
    let words = entry.filter(|entry| entry.published.is_none());
    Bar {
        name: step.name.clone(),
        mean_ms: mean(step.response_ms.mean),
        p95_ms: mean(step.response_ms.p95),
        bound: step.bound.as_ref().map(bound),
        published_ms: entry.and_then(|entry| entry.published),
        published_words: words.map(published_text),
    }
}

/// Throughput, p95, CPU, and disk through each trial, one card per trial.
pub(super) fn through_trials(page: &mut Page, analysis: &Analysis) {
    if analysis
        .trials
        .iter()
        .all(|trial| trial.series.load.is_empty())
    {
        return;
    }
    let shown = &analysis.trials[..analysis.trials.len().min(MOST_CELLS)];
    let left_out = analysis.trials.len() - shown.len();
    let lead = match left_out {
        0 => {
            "Seconds from the start of the ramp; each row has one scale for all trials.".to_owned()
        }
        n => format!(
            "The first {MOST_CELLS} trials; {n} more are in the archive. Seconds from the start \
             of the ramp; each row has one scale for all trials."
        ),
    };
    page.section("Through each trial", &lead);
    page.raw("<ul class=\"key\">\n<li><i></i>the figure; CPU: all of the host</li>\n");
    page.raw("<li><i class=\"second\"></i>CPU of the system; sessions waiting</li>\n");
    page.raw("<li><i class=\"ramp\"></i>ramp and warm-up, not counted</li>\n</ul>\n<div class=\"grid fit\">\n");
    let mut panels: Vec<Panel> = vec![
        ("Throughput", "transactions per s", |trial| {
            vec![load(trial, |p| Some(p.transactions_per_s))]
        }),
        ("p95 response", "ms", |trial| {
            vec![load(trial, |point| point.p95_ms)]
        }),
        ("CPU", "% of the host", |trial| {
            let system = counters(trial, Ink::Second, |sample| sample.system_cpu_percent);
            vec![
                counters(trial, Ink::First, |sample| sample.host_cpu_percent),
                system,
            ]
        }),
        ("Disk", "transfers per s", |trial| {
            vec![counters(trial, Ink::First, |sample| {
                sample.disk_transfers_per_s
            })]
        }),
    ];
    if shown.iter().any(|trial| trial.arrivals.is_some()) {
        panels.push(("Sessions", "arriving per s; waiting", |trial| {
            let waiting = Line {
                ink: Ink::Second,
                ..load(trial, |point| Some(waiting(point)))
            };
            vec![load(trial, |point| Some(point.arrived_per_s)), waiting]
        }));
    }
    let most: Vec<f64> = panels
        .iter()
        .map(|(_, _, lines)| largest(shown.iter().flat_map(lines)))
        .collect();
    for trial in shown {
        card(page, trial, &panels, &most);
    }
    page.raw("</div>\n");
}

type Panel = (&'static str, &'static str, fn(&TrialAnalysis) -> Vec<Line>);

fn largest(lines: impl Iterator<Item = Line>) -> f64 {
    lines
        .flat_map(|line| line.points)
        .filter_map(|point| point.1)
        .fold(0.0, f64::max)
}

fn card(page: &mut Page, trial: &TrialAnalysis, panels: &[Panel], most: &[f64]) {
    page.raw("<section class=\"card\"><h3>");
    page.raw(&escape(&format!("Trial {} · {}", trial.id, trial.label)));
    match trial.verdict {
        Verdict::Valid => page.element("span", "class=\"good\"", "✓ valid"),
        Verdict::Invalid => page.element("span", "class=\"bad\"", "✕ invalid"),
    }
    page.raw("</h3>\n");
    #[expect(
        clippy::cast_precision_loss,
        reason = "milliseconds of a trial stay far below 2^52"
    )]
    let (ramp_s, end_s) = (
        (trial.ramp_ms as f64 + trial.warmup_cut_ms) / 1000.0,
        (trial.ramp_ms + trial.hold_ms) as f64 / 1000.0,
    );
    page.raw("<div class=\"panels\">\n");
    for ((name, unit, lines), most) in panels.iter().zip(most) {
        page.raw("<div><div class=\"panel\">");
        page.element("span", "", name);
        page.element("span", "", unit);
        page.raw("</div>\n");
        let title = format!("{name} through trial {}", trial.id);
        match charts::through_time(&title, &lines(trial), ramp_s, end_s, *most) {
            Some(svg) => page.raw(&svg),
            None => page.element("p", "class=\"none\"", "not recorded"),
        }
        page.raw("</div>\n");
    }
    page.raw("</div>\n");
    page.raw("</section>\n");
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn waiting(point: &crate::model::Point) -> f64 {
    point.waiting as f64
}

fn load(trial: &TrialAnalysis, of: fn(&crate::model::Point) -> Option<f64>) -> Line {
    let points = trial
        .series
        .load
        .iter()
        .map(|point| (point.t_ms / 1000.0, of(point)))
        .collect();
    Line {
        ink: Ink::First,
        points,
    }
}

fn counters(trial: &TrialAnalysis, ink: Ink, of: fn(&Sample) -> Option<f64>) -> Line {
    let samples = trial
        .series
        .counters
        .iter()
        .filter(|sample| sample.t_ms >= 0.0);
    Line {
        ink,
        points: samples
            .map(|sample| (sample.t_ms / 1000.0, of(sample)))
            .collect(),
    }
}
