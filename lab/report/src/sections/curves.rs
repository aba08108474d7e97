//! Curves over a factor: users, another number, the rate of arrivals, the scalability law.

use lab_plan::Level;

use super::factors::FEW_STEPS;
use super::figures::mean;
use super::published::Entries;
use crate::Analysis;
use crate::chart::{Across, Chart, Line, Mark, Plot, Series};
use crate::document::{Block, Card, Charts, Content, Section};
use crate::format::{figure, times};
use crate::model::{Arrivals, CellSummary, Estimate, Scaling, StepSummary, UslPoint, Verdict};

/// The minimum number of levels for a curve.
const LEAST_LEVELS: usize = 3;

fn section(title: String, lead: &str, key: &[(Mark, &str)], cards: Vec<Card>) -> Section {
    let key = key.iter().map(|(mark, words)| (*mark, (*words).to_owned()));
    let charts = Charts {
        lead: lead.to_owned(),
        key: key.collect(),
        cards,
    };
    Section::of_page(title, vec![Block::Charts(charts)])
}

/// A card with lines against `across`, in `unit`; `None` without a line of ours.
fn card(name: &str, across: &str, unit: &str, lines: Vec<Line>) -> Option<Card> {
    let mut ours = lines.iter().filter(|line| line.series != Series::Published);
    if ours.all(Line::is_empty) {
        return None;
    }
    let may_be_log = across != USERS && across != ARRIVALS;
    let plot = Plot::against_levels(format!("{name} against {across}"), lines, may_be_log)?;
    Some(Card {
        title: name.to_owned(),
        unit: unit.to_owned(),
        badge: None,
        content: Content::Chart(Some(Chart::Plot(plot)), ""),
    })
}

const USERS: &str = "users";
const ARRIVALS: &str = "the rate of arrivals";

/// A line in the order of its horizontal axis.
fn line(series: Series, points: impl Iterator<Item = (f64, Option<f64>)>) -> Line {
    let mut points: Vec<_> = points.collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    Line { series, points }
}

/// Response, throughput, CPU, and disk against the number of users, if that alone varies.
pub(super) fn against_users(analysis: &Analysis) -> Option<Section> {
    let valid = analysis.cells.iter().filter(|cell| cell.valid_trials > 0);
    let distinct: std::collections::BTreeSet<u32> = valid.map(|cell| cell.users).collect();
    if distinct.len() < 2 || analysis.study.factors != [USERS] {
        return None;
    }
    let ours = |series, of: &dyn Fn(&CellSummary) -> Option<f64>| {
        let cells = analysis.cells.iter();
        line(series, cells.map(|cell| (f64::from(cell.users), of(cell))))
    };
    let published = |columns: &[&str]| {
        let entries = Entries::of(analysis, columns, None);
        let value = |at| entries.at(at).and_then(|entry| entry.published);
        let cells = analysis.cells.iter().enumerate();
        let points = cells.filter(|_| entries.any());
        line(
            Series::Published,
            points.map(|(at, cell)| (f64::from(cell.users), value(at))),
        )
    };
    let response = vec![
        ours(Series::Second, &|cell| mean(cell.response_ms.p95)),
        ours(Series::First, &|cell| mean(cell.response_ms.mean)),
        published(&["response_mean_ms", "response_ms"]),
    ];
    let throughput = vec![
        ours(Series::First, &|cell| mean(cell.throughput_per_s)),
        published(&["average_tps", "throughput_per_s"]),
    ];
    let host = |name: &str| {
        let of = |cell: &CellSummary| cell.host.get(name).copied().flatten();
        vec![ours(Series::First, &of), published(&[name])]
    };
    let cards = [
        card("Response", USERS, "ms", response),
        card("Throughput", USERS, "transactions per s", throughput),
        card("CPU of the host", USERS, "%", host("cpu_percent")),
        card(
            "Disk transfers",
            USERS,
            "per s",
            host("disk_transfers_per_s"),
        ),
        card("Network", USERS, "KB per s", host("network_kb_per_s")),
        card("Memory available", USERS, "MB", host("memory_available_mb")),
    ];
    let mut key = vec![
        (Mark::First, "here (response: mean)"),
        (Mark::Second, "here, p95"),
    ];
    let note = analysis.speed_note().filter(|_| analysis.has_published());
    let lead = note.map_or_else(String::new, |note| format!("Published figures: {note}."));
    if analysis.has_published() {
        key.push((Mark::Published, "published"));
    }
    let cards = cards.into_iter().flatten().collect();
    Some(section("Against users".to_owned(), &lead, &key, cards))
}

/// Cost against a number that varies alone, other than users: a chart per step.
pub(super) fn against_level(analysis: &Analysis) -> Option<Section> {
    let [factor] = analysis.study.factors.as_slice() else {
        return None;
    };
    let steps = &analysis.study.steps;
    if factor == USERS || steps.len() > FEW_STEPS || levels(analysis, factor) < LEAST_LEVELS {
        return None;
    }
    let of_step = |series, at: usize, of: fn(&StepSummary) -> Option<Estimate>| {
        let point = |cell: &CellSummary| {
            let x = number(cell.cell.get(factor)?)?;
            Some((x, mean(cell.steps.get(at).and_then(of))))
        };
        line(series, analysis.cells.iter().filter_map(point))
    };
    let cards = steps.iter().enumerate().filter_map(|(at, step)| {
        let lines = vec![
            of_step(Series::Second, at, |step| step.response_ms.p95),
            of_step(Series::First, at, |step| step.response_ms.mean),
        ];
        card(step, factor, "ms", lines)
    });
    let lead = "Mean and p95 response of each step. Less is better.";
    let key = [(Mark::First, "mean"), (Mark::Second, "p95")];
    let title = format!("Against {factor}");
    Some(section(title, lead, &key, cards.collect()))
}

/// The number of executed levels of the factor; none if any is no number.
fn levels(analysis: &Analysis, factor: &str) -> usize {
    let cells = analysis.cells.iter();
    let levels: Option<Vec<f64>> = cells
        .map(|cell| cell.cell.get(factor).and_then(number))
        .collect();
    let mut levels = levels.unwrap_or_default();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels.len()
}

#[expect(clippy::cast_precision_loss, reason = "levels stay far below 2^52")]
fn number(level: &Level) -> Option<f64> {
    match level {
        Level::Int(value) => Some(*value as f64),
        Level::Float(value) => Some(*value),
        Level::Text(_) | Level::Bool(_) => None,
    }
}

/// The scalability law with its band, the trials, and the peak.
pub(super) fn scaling(analysis: &Analysis) -> Option<Section> {
    let usl = analysis.usl.as_ref()?;
    let mut key = vec![(Mark::First, "the law"), (Mark::Band, "its 95 % band")];
    if usl.peak_users.is_some() {
        key.push((Mark::Second, "its peak"));
    }
    let in_card = |title: &str, unit: &str, content| Card {
        title: title.to_owned(),
        unit: unit.to_owned(),
        badge: None,
        content,
    };
    let chart = Content::Chart(Some(Chart::Plot(law(usl))), "");
    let cards = vec![
        in_card("Throughput", "transactions per s, against users", chart),
        in_card("The law's figures", "", Content::Facts(law_facts(usl))),
    ];
    let lead = "The universal scalability law, X(N) = γN ÷ (1 + α(N − 1) + βN(N − 1)), fitted to the \
                valid trials; a dot is a trial.";
    let title = "How throughput scales".to_owned();
    Some(section(title, lead, &key, cards))
}

fn law(usl: &Scaling) -> Plot {
    let points = || usl.points.iter();
    let curve = line(
        Series::First,
        points().map(|point| (point.users, Some(point.law_per_s.mean))),
    );
    let most_users = points().map(|point| point.users).fold(1.0, f64::max);
    let band = |point: &UslPoint| (point.users, point.law_per_s.low, point.law_per_s.high);
    let name = "Throughput against users with the fitted law".to_owned();
    Plot {
        band: points().map(band).collect(),
        dots: points()
            .filter_map(|point| Some((point.users, point.measured_per_s?)))
            .collect(),
        mark: mean(usl.peak_users).filter(|peak| *peak <= most_users),
        ..Plot::new(name, Across::Numbers, vec![curve])
    }
}

fn law_facts(usl: &Scaling) -> Vec<(&'static str, String)> {
    let with_ends = |one: Estimate| {
        let end = |end: Option<f64>| end.map_or_else(|| "open".to_owned(), times);
        format!(
            "{} ({} to {})",
            times(one.mean),
            end(one.low),
            end(one.high)
        )
    };
    let peak = match (usl.peak_users, usl.peak_per_s) {
        (Some(users), Some(per_s)) => {
            format!("{} users, {} per s", with_ends(users), figure(per_s))
        }
        _ => "none shown: β's interval holds 0".to_owned(),
    };
    vec![
        ("γ, one user, per s", with_ends(usl.gamma_per_s)),
        ("α, contention", with_ends(usl.alpha)),
        ("β, coherence", format!("{:.2e}", usl.beta.mean)),
        ("peak", peak),
        ("scatter", format!("{} %", times(usl.scatter * 100.0))),
    ]
}

/// A cell whose sessions arrive independently (open model).
struct Arriving<'a> {
    cell: &'a CellSummary,
    arrivals: Arrivals,
    /// Requests per second, means over valid trials.
    offered_per_s: Option<f64>,
    delivered_per_s: Option<f64>,
}

fn arriving<'a>(analysis: &Analysis, cell: &'a CellSummary) -> Option<Arriving<'a>> {
    let arrivals = cell.arrivals?;
    let trials = analysis
        .trials
        .iter()
        .filter(|trial| cell.is_of(trial) && trial.verdict == Verdict::Valid);
    let rates = trials.filter_map(|trial| Some((trial.offered_per_s?, trial.delivered_per_s?)));
    let (offered, delivered): (Vec<f64>, Vec<f64>) = rates.unzip();
    let mean = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
    Some(Arriving {
        cell,
        arrivals,
        offered_per_s: mean(&offered),
        delivered_per_s: mean(&delivered),
    })
}

/// Offered and delivered load, if sessions arrive independently at two rates or more.
pub(super) fn arrivals(analysis: &Analysis) -> Option<Section> {
    let cells = analysis.cells.iter();
    let cells: Vec<Arriving<'_>> = cells.filter_map(|cell| arriving(analysis, cell)).collect();
    let mut rates: Vec<f64> = cells.iter().map(|it| it.arrivals.planned_per_s).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    // Several cells with one rate would overlap.
    if rates.len() < 2 || rates.len() < cells.len() {
        return None;
    }
    let of = |series, of: fn(&Arriving<'_>) -> Option<f64>| {
        let cells = cells.iter();
        line(series, cells.map(|it| (it.arrivals.planned_per_s, of(it))))
    };
    let load = vec![
        of(Series::Second, |it| it.offered_per_s),
        of(Series::First, |it| it.delivered_per_s),
    ];
    let sessions = vec![
        of(Series::Second, |it| Some(it.arrivals.planned_per_s)),
        of(Series::First, |it| Some(it.arrivals.arrived_per_s)),
    ];
    let times = vec![
        of(Series::Second, |it| mean(it.cell.service_ms?.p95)),
        of(Series::First, |it| mean(it.cell.response_ms.p95)),
    ];
    let cards = [
        card("Requests offered and delivered", ARRIVALS, "per s", load),
        card("Sessions planned and arrived", ARRIVALS, "per s", sessions),
        card("p95 response and service", ARRIVALS, "ms", times),
    ];
    let lead = "Sessions planned per second along the bottom.";
    let key = [
        (Mark::First, "delivered, response"),
        (Mark::Second, "offered, service"),
    ];
    let title = "Against the rate of arrivals".to_owned();
    let cards = cards.into_iter().flatten().collect();
    Some(section(title, lead, &key, cards))
}
