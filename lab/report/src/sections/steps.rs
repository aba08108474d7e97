//! Steps: their figures in each cell, and a bar for each; in a study of two factors and few steps, the
//! levels of the second beside each other.

use lab_plan::{Level, VARIANT};

use super::factors::{FEW_STEPS, levels_of_two};
use super::figures::{cell_heads, mean, measured, published_note, whole};
use super::published::{Entries, has_steps, published_text};
use crate::Analysis;
use crate::chart::{Bar, Bars, Chart, Mark};
use crate::document::{
    Block, Card, Charts, Content, Figure, FigureEntry, FigureRow, Figures, Part, Section,
};
use crate::format::{bare_level, bound, figure};
use crate::model::{CellSummary, StepSummary, TimesSummary};

/// The maximum number of cards of one section, so that people can read the page.
const MOST_CARDS: usize = 24;

/// Bars of a study that compares steps with each other: they are the answer there, and come before everything else.
pub(super) fn steps_first(analysis: &Analysis) -> Option<Section> {
    let cards = side_by_side(analysis)?;
    let blocks = vec![Block::Charts(charts(analysis, cards))];
    Some(Section::of_page("Per step", blocks))
}

/// Steps down, cells across; bars before them, unless they are at the top of the report.
pub(super) fn steps(analysis: &Analysis) -> Option<Section> {
    if analysis.cells.iter().all(|cell| cell.valid_trials == 0) {
        return None;
    }
    let mut blocks = Vec::new();
    if sides(analysis).is_none() {
        blocks.push(Block::Charts(charts(analysis, per_cell(analysis))));
    }
    let rows: Vec<FigureRow> = (0..analysis.study.steps.len())
        .map(|at| row(analysis, at))
        .collect();
    blocks.push(Block::Figures(measured(
        analysis,
        Figures {
            name: "Figures per step",
            of: "step",
            cells: cell_heads(analysis),
            parts: parts(analysis),
            published: published_note(analysis, &rows),
            rows,
        },
    )));
    Some(Section::new("Per step: mean and p95 response, ms", blocks))
}

/// Phases, in their order, as archives and results name them.
const PHASES: [&str; 6] = ["dns", "connect", "tls", "blocked", "wait", "receive"];

/// A figure of one of the times of a step's requests: its name, the time by its name in archives, and the statistic.
type TimeFigure = (&'static str, &'static str, fn(&TimesSummary) -> Option<f64>);

const EVENTS: [TimeFigure; 4] = [
    ("first: mean", "first_event", |times| mean(times.mean)),
    ("first: p95", "first_event", |times| mean(times.p95)),
    ("between: mean", "between_events", |times| mean(times.mean)),
    ("between: p95", "between_events", |times| mean(times.p95)),
];

/// Times of events, for steps whose requests listen for events.
pub(super) fn events(analysis: &Analysis) -> Option<Section> {
    let listens = |at: &usize| has_time(analysis, |step| step == *at, "first_event");
    let steps: Vec<usize> = (0..analysis.study.steps.len()).filter(listens).collect();
    if steps.is_empty() {
        return None;
    }
    let words = "An answer that is a stream of events counts once, with its response time to the last of \
                 them. The first is timed from where that begins, each other one from the one before.";
    let blocks = vec![
        Block::Paragraph(words.to_owned()),
        times(analysis, "Events per step", &steps, &EVENTS),
    ];
    Some(Section::of_page(
        "Events: time to the first, and between them, ms",
        blocks,
    ))
}

/// The parts of the time of requests: steps down, cells across. Archives of earlier versions lack them.
pub(super) fn phases(analysis: &Analysis) -> Option<Section> {
    let had = |phase: &&str| has_time(analysis, |_| true, phase);
    let of = |phase| -> TimeFigure { (phase, phase, |times| mean(times.mean)) };
    let phases: Vec<TimeFigure> = PHASES.into_iter().filter(had).map(of).collect();
    if phases.is_empty() {
        return None;
    }
    let steps: Vec<usize> = (0..analysis.study.steps.len()).collect();
    let words = "From the first byte sent to the first of the answer a user waits; then it receives the \
                 rest. Connect, tls, and dns are means of those requests alone that opened a connection.";
    let blocks = vec![
        Block::Paragraph(words.to_owned()),
        times(analysis, "Phases per step", &steps, &phases),
    ];
    Some(Section::of_page(
        "Where the time goes: mean of each phase, ms",
        blocks,
    ))
}

/// Returns true if valid trials have this time for one of the steps.
fn has_time(analysis: &Analysis, of: impl Fn(usize) -> bool, time: &str) -> bool {
    let valid = analysis.cells.iter().filter(|cell| cell.valid_trials > 0);
    let mut steps = valid.flat_map(|cell| cell.steps.iter().enumerate());
    steps.any(|(at, step)| of(at) && step.phases_ms.contains_key(time))
}

/// Figures of times: steps down, cells across.
fn times(analysis: &Analysis, name: &'static str, steps: &[usize], parts: &[TimeFigure]) -> Block {
    let row = |at: &usize| {
        let entry = |cell: &CellSummary| {
            let of = |(_, time, of): &TimeFigure| of(cell.steps.get(*at)?.phases_ms.get(*time)?);
            let figures = parts.iter().map(|part| Figure::new(of(part), figure));
            FigureEntry {
                figures: figures.collect(),
                bound: None,
                published: None,
            }
        };
        FigureRow {
            name: analysis.study.steps[*at].clone(),
            entries: analysis.cells.iter().map(entry).collect(),
            has_published: false,
        }
    };
    let part = |(name, ..): &TimeFigure| Part {
        name,
        is_detail: false,
    };
    let figures = Figures {
        name,
        of: "step",
        cells: cell_heads(analysis),
        parts: parts.iter().map(part).collect(),
        published: None,
        rows: steps.iter().map(row).collect(),
    };
    Block::Figures(measured(analysis, figures))
}

fn has_errors(analysis: &Analysis) -> bool {
    analysis.cells.iter().any(|cell| cell.errors > 0)
}

fn parts(analysis: &Analysis) -> Vec<Part> {
    let part = |name, is_detail| Part { name, is_detail };
    let mut parts = vec![part("n", true), part("mean", false), part("p95", false)];
    if has_errors(analysis) {
        parts.push(part("errors", true));
    }
    parts
}

fn row(analysis: &Analysis, at: usize) -> FigureRow {
    let name = &analysis.study.steps[at];
    let published = Entries::of_step(analysis, name);
    let with_errors = has_errors(analysis);
    let entry = |(place, cell): (usize, &CellSummary)| {
        let step = cell.steps.get(at);
        let of = |of: fn(&StepSummary) -> Option<f64>| Figure::new(step.and_then(of), figure);
        let mut figures = vec![
            of(|step| step.transactions),
            of(|step| mean(step.response_ms.mean)),
            of(|step| mean(step.response_ms.p95)),
        ];
        if with_errors {
            let errors = step.and_then(|step| step.errors_per_trial);
            figures.push(Figure::new(errors, whole));
        }
        let known = step.and_then(|step| step.bound.as_ref());
        FigureEntry {
            figures,
            bound: known.map(|known| Figure {
                text: bound(known),
                value: Some(known.time_limit_ms),
            }),
            published: published.beside(place),
        }
    };
    FigureRow {
        name: name.clone(),
        entries: analysis.cells.iter().enumerate().map(entry).collect(),
        has_published: published.any(),
    }
}

fn charts(analysis: &Analysis, cards: Vec<Card>) -> Charts {
    let mut lead =
        "Mean response of each step in ms, with a whisker to p95. Less is better.".to_owned();
    if let Some(note) = analysis.speed_note().filter(|_| analysis.has_published()) {
        lead.push_str(&format!(" Published means: {note}."));
    }
    let mut key = vec![
        (Mark::Bar, "mean".to_owned()),
        (Mark::Second, "p95".to_owned()),
    ];
    if has_steps(analysis) {
        let words = "published mean; an arrow at the edge: off the scale";
        key.push((Mark::PublishedAt, words.to_owned()));
    }
    Charts { lead, key, cards }
}

/// A card per cell with a valid trial, all on one scale.
fn per_cell(analysis: &Analysis) -> Vec<Card> {
    let cells = analysis.cells.iter().enumerate();
    let valid = cells.filter(|(_, cell)| cell.valid_trials > 0);
    let bars = valid.take(MOST_CARDS).map(|(at, cell)| {
        let steps = cell.steps.iter();
        let bars: Vec<Bar> = steps.map(|step| bar(analysis, at, step)).collect();
        (cell, bars)
    });
    let bars: Vec<(&CellSummary, Vec<Bar>)> = bars.collect();
    let most_ms = Bars::scale(bars.iter().flat_map(|(_, bars)| bars));
    let card = |(cell, bars): (&CellSummary, Vec<Bar>)| {
        let name = format!("Response per step at {}", cell.label);
        let unit = format!("bar: 0 to {} ms", figure(most_ms));
        bars_card(&cell.label, unit, Bars::new(name, bars, most_ms))
    };
    bars.into_iter().map(card).collect()
}

fn bars_card(title: &str, unit: String, bars: Option<Bars>) -> Card {
    Card {
        title: title.to_owned(),
        unit,
        badge: None,
        content: Content::Chart(bars.map(Chart::Bars), "no responses"),
    }
}

/// The bar of a step in the cell at an index.
fn bar(analysis: &Analysis, at: usize, step: &StepSummary) -> Bar {
    let published = Entries::of_step(analysis, &step.name);
    let entry = published.at(at);
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

/// The factor down the page and the factor within a card, each with its levels.
type Sides<'a> = [(&'a str, Vec<&'a Level>); 2];

fn sides(analysis: &Analysis) -> Option<Sides<'_>> {
    let (first, second) = levels_of_two(analysis)?;
    let [down, across] = analysis.study.factors.as_slice() else {
        return None;
    };
    let (first, second) = ((down.as_str(), first), (across.as_str(), second));
    // Variants are compared within a card.
    let sides = match first.0 == VARIANT {
        true => [second, first],
        false => [first, second],
    };
    let steps = analysis.study.steps.len();
    (steps <= FEW_STEPS && sides[0].1.len() * steps <= MOST_CARDS).then_some(sides)
}

/// The levels of one factor beside each other, a card per level of the other and step.
fn side_by_side(analysis: &Analysis) -> Option<Vec<Card>> {
    let [(down, rows), (across, columns)] = sides(analysis)?;
    let mut cards = Vec::new();
    for row in &rows {
        for (at, step) in analysis.study.steps.iter().enumerate() {
            let bars = columns.iter().filter_map(|column| {
                let is_of = |cell: &CellSummary| {
                    cell.cell.get(down) == Some(*row) && cell.cell.get(across) == Some(*column)
                };
                let place = analysis.cells.iter().position(is_of)?;
                let step = analysis.cells[place].steps.get(at)?;
                Some(Bar {
                    name: bare_level(across, column),
                    ..bar(analysis, place, step)
                })
            });
            let bars: Vec<Bar> = bars.collect();
            let most_ms = Bars::scale(&bars);
            let title = format!("{step} · {}", bare_level(down, row));
            let unit = format!("ms; bar: 0 to {}", figure(most_ms));
            let made = Bars::new(format!("Response: {title}"), bars, most_ms);
            cards.push(bars_card(&title, unit, made));
        }
    }
    Some(cards)
}
