//! The runs of studies over time: a line per run, changes between them, and the times when figures changed.

use lab_history::{Change, History, Point, RunLine, Series, StudyHistory};

use crate::chart::{self, Across, Chart, Mark, Plot};
use crate::document::{
    Badge, Block, Card, Cell, Charts, Column, Content, Document, Kind, Role, Row, Section, Table,
    Tone,
};
use crate::format::{figure, list, plural, ratio_or_percent, times};
use crate::model::Outcome;

/// The document on runs over time. `link` returns a page's link to the report of a run, by its folder.
#[must_use]
pub fn history(history: &History, link: &dyn Fn(&str) -> String) -> Document {
    let runs: usize = history.studies.iter().map(|one| one.runs.len()).sum();
    let changes = |study: &StudyHistory| {
        study
            .series
            .iter()
            .map(|one| one.changes.len())
            .sum::<usize>()
    };
    let shown: usize = history.studies.iter().map(changes).sum();
    let studies = plural_of(history.studies.len(), "study", "studies");
    let mut sections: Vec<Section> = Vec::new();
    for study in &history.studies {
        sections.push(of_study(study, link));
        sections.extend(charts(study));
    }
    Document {
        kind: "Plimsoll runs",
        title: "Runs".to_owned(),
        origin: Vec::new(),
        verdict: Badge {
            text: match shown {
                0 => "No change is shown in any figure that decides.".to_owned(),
                shown => format!("{} in figures that decide.", plural(shown, "change")),
            },
            tone: if shown == 0 { Tone::Plain } else { Tone::Warn },
        },
        is_void: false,
        badges: Vec::new(),
        headline: format!("{} of {studies}.", plural(runs, "run")),
        load_lines: Vec::new(),
        findings: Vec::new(),
        sections,
        made_by: format!(
            "Changes by E-divisive with permutations (level {}, seed {}), over all figures of a study \
             that are beside each other; their intervals take the place as given.",
            history.level, history.seed
        ),
    }
}

fn plural_of(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn of_study(study: &StudyHistory, link: &dyn Fn(&str) -> String) -> Section {
    let title = match study.title == study.study {
        true => study.study.clone(),
        false => format!("{}: {}", study.study, study.title),
    };
    let mut blocks = vec![Block::Table(table(study, link))];
    let changed: Vec<String> = study
        .runs
        .iter()
        .filter_map(|run| changed(study, run))
        .collect();
    if !changed.is_empty() {
        blocks.push(Block::Paragraph(
            "Changed (≠) since the run before:".to_owned(),
        ));
        blocks.push(Block::List(changed));
    }
    let found: Vec<String> = study
        .series
        .iter()
        .flat_map(|one| sentences(study, one))
        .collect();
    if !found.is_empty() {
        blocks.push(Block::Paragraph("Figures that changed:".to_owned()));
        blocks.push(Block::List(found));
    }
    Section::new(title, blocks)
}

fn table(study: &StudyHistory, link: &dyn Fn(&str) -> String) -> Table {
    let names: Vec<&str> = study.runs.iter().map(|run| name(study, run)).collect();
    // A folder's name has the time, unless a user named the folder.
    let is_dated = names.iter().all(|name| is_time(name));
    let mut columns = vec![Column::new("run", Kind::Text)];
    if !is_dated {
        columns.push(Column::new("begun", Kind::Text));
    }
    let heads = ["valid", "verdict", "what decides"];
    columns.extend(heads.map(|head| Column::new(head, Kind::Text)));
    let any_changed = study.runs.iter().any(|run| !run.changed.is_empty());
    if any_changed {
        columns.push(Column::new("≠", Kind::Text));
    }
    let row = |(run, name): (&RunLine, &str)| {
        let mut cells = vec![Cell {
            link: Some(link(&run.folder)),
            ..Cell::text(name)
        }];
        if !is_dated {
            cells.push(Cell::text(begun(&run.started)));
        }
        cells.extend([
            Cell::text(format!("{}/{}", run.valid, run.planned)),
            Cell::outcome(run.verdict, tone(run)),
            Cell::text(decides(run)),
        ]);
        if any_changed {
            let mark = if run.changed.is_empty() { "" } else { "≠" };
            cells.push(Cell::text(mark));
        }
        Row::new(cells)
    };
    let rows = study.runs.iter().zip(names).map(row).collect();
    Table::new("Runs", "run", columns, rows)
}

/// The deciding measures, or the reason why there are none.
fn decides(run: &RunLine) -> String {
    match (&run.decisive, &run.why) {
        (Some(one), _) => format!("{} {}", short(one.measure), one.words),
        (None, Some((check, _))) => check.clone(),
        (None, None) => String::new(),
    }
}

/// `p95` for `p95 response`: a line is short.
fn short(measure: &str) -> &str {
    measure.strip_suffix(" response").unwrap_or(measure)
}

/// A folder's name without its study: the part that differs between runs.
fn name<'a>(study: &StudyHistory, run: &'a RunLine) -> &'a str {
    let rest = run.folder.strip_prefix(&study.study);
    let rest = rest.and_then(|rest| rest.strip_prefix('-'));
    rest.unwrap_or(&run.folder)
}

/// `20261121-081500`.
fn is_time(name: &str) -> bool {
    name.len() == 15
        && name
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// `2026-11-21 08:15` of an RFC 3339 time.
fn begun(started: &str) -> String {
    started
        .chars()
        .take(16)
        .collect::<String>()
        .replace('T', " ")
}

fn tone(run: &RunLine) -> Tone {
    match run.outcome {
        _ if run.is_unfinished => Tone::Warn,
        Outcome::Ok => Tone::Good,
        Outcome::ThresholdFailed | Outcome::CouldNotTell => Tone::Warn,
        Outcome::TooFewValidTrials
        | Outcome::SearchNotFinished
        | Outcome::SystemFailed
        | Outcome::PreparationFailed
        | Outcome::Regression => Tone::Bad,
    }
}

/// The changes since the run before, in a sentence.
fn changed(study: &StudyHistory, run: &RunLine) -> Option<String> {
    let of = |text: &str| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            text.to_owned()
        }
    };
    let each = run.changed.iter();
    let each = each.map(|one| format!("{} {} → {}", one.what, of(&one.a), of(&one.b)));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("{}: {}", name(study, run), each.join(", ")))
}

fn sentences(study: &StudyHistory, series: &Series) -> Vec<String> {
    let sentence = |change: &Change| {
        let interval = change.interval.map_or_else(String::new, |(low, high)| {
            format!(" ({} to {})", ratio_or_percent(low), ratio_or_percent(high))
        });
        let run = &study.runs[change.run];
        let along: Vec<String> = run.changed.iter().map(|one| one.what.to_owned()).collect();
        let along = match along.is_empty() {
            true => String::new(),
            false => format!("; {} changed with it", list(&along)),
        };
        format!(
            "{}: {} of {} is {}, {}{interval}, {} → {} {}, p = {}{along}",
            name(study, run),
            series.measure,
            series.cell,
            if change.is_better { "better" } else { "worse" },
            ratio_or_percent(change.ratio),
            figure(change.before),
            figure(change.after),
            series.unit,
            times(change.p),
        )
    };
    series.changes.iter().map(sentence).collect()
}

/// Each figure over the runs that have it; only a page has room for it.
fn charts(study: &StudyHistory) -> Option<Section> {
    let cards: Vec<Card> = study
        .series
        .iter()
        .filter(|series| series.points.len() > 1)
        .map(card)
        .collect();
    if cards.is_empty() {
        return None;
    }
    let charts = Charts {
        lead: "Runs from left to right, oldest first; bands are intervals over a run's trials, and the \
               second line is the mean between changes."
            .to_owned(),
        key: vec![
            (Mark::First, "a run".to_owned()),
            (Mark::Second, "mean between changes".to_owned()),
            (Mark::Band, "95 % interval".to_owned()),
        ],
        cards,
    };
    Some(Section {
        role: Role::Page,
        ..Section::new(
            format!("Trends of {}", study.study),
            vec![Block::Charts(charts)],
        )
    })
}

fn card(series: &Series) -> Card {
    let title = format!("{}, {}", series.measure, series.cell);
    let badge = series.changes.last().map(|change| Badge {
        text: format!(
            "{} {}",
            if change.is_better { "better" } else { "worse" },
            ratio_or_percent(change.ratio)
        ),
        tone: if change.is_better {
            Tone::Good
        } else {
            Tone::Bad
        },
    });
    let x = |point: &Point| f64::from(u32::try_from(point.run + 1).unwrap_or(u32::MAX));
    let points = || series.points.iter().map(|point| (x(point), point));
    let line = |series, points| chart::Line { series, points };
    let mean = points().map(|(x, point)| (x, mean(series, point)));
    let value = points().map(|(x, point)| (x, Some(point.value.mean)));
    let lines = vec![
        line(chart::Series::Second, mean.collect()),
        line(chart::Series::First, value.collect()),
    ];
    let band = |(x, point): (f64, &Point)| (x, point.value.low, point.value.high);
    let plot = Plot {
        band: points().map(band).collect(),
        dots: points().map(|(x, point)| (x, point.value.mean)).collect(),
        ..Plot::new(title.clone(), Across::Numbers, lines)
    };
    Card {
        title,
        unit: series.unit.to_owned(),
        badge,
        content: Content::Chart(Some(Chart::Plot(plot)), ""),
    }
}

/// The mean of the segment that contains a point; none if nothing changes.
fn mean(series: &Series, point: &Point) -> Option<f64> {
    let mut changes = series.changes.iter().rev();
    let since = changes.find(|change| change.run <= point.run);
    let first = || series.changes.first().map(|change| change.before);
    since.map(|change| change.after).or_else(first)
}
