//! The current trial in charts and tables: over time, by step, and examples of its errors.

use lab_analysis::format::{count, figure};
use lab_analysis::model::Times;
use lab_counts::ErrorCounts;
use lab_report::chart::{Across, Chart, Line, Plot, Series};
use lab_report::document::{Block, Cell, Column, Kind, Row, Table};
use lab_report::render::pieces;
use maud::{Markup, PreEscaped, html};

use crate::series::Stretch;
use crate::state::State;
use crate::trial::{Counted, Measure, PartCounted, Step, Trial};

/// A line of a chart: its label, its series, and its points.
type Drawn = (String, Series, Vec<(f64, Option<f64>)>);

/// A chart: its name, its unit, its lines, the most important last.
type Of = (String, &'static str, Vec<Drawn>);

/// The trial over time.
pub(super) fn charts(state: &State) -> Markup {
    let Some(trial) = &state.trial else {
        return html! {};
    };
    let cores = f64::from(state.manifest.environment.cores.max(1));
    let of_parts = trial.parts.iter().flat_map(of_part);
    let cards = of_load(trial).into_iter().chain(of_counters(trial, cores));
    let cards = cards.chain(of_parts);
    html! {
        h2 { "Through trial " (trial.id) }
        p.lead { "Seconds from the start of the ramp, which is shaded. " (places(trial)) }
        div.grid { @for (name, unit, lines) in cards { (card(trial, &name, unit, lines)) } }
    }
}

fn of_load(trial: &Trial) -> [Of; 3] {
    let (first, second, third) = (Series::First, Series::Second, Series::Published);
    let load = |of: &dyn Fn(&Stretch) -> Option<f64>| -> Vec<(f64, Option<f64>)> {
        let stretches = trial.load.stretches().iter();
        stretches.map(|one| (one.middle(), of(one))).collect()
    };
    let throughput = vec![
        drawn("failed", second, load(&Stretch::failed_per_s)),
        drawn("answered", first, load(&Stretch::answered_per_s)),
    ];
    let response = vec![
        drawn("p99", third, load(&|one| one.ms(0.99))),
        drawn("p95", second, load(&|one| one.ms(0.95))),
        drawn("median", first, load(&|one| one.ms(0.5))),
    ];
    let in_session = load(&|one| Some(f64::from(one.users)));
    let mut users = vec![drawn("users in a session", first, in_session)];
    if trial.load.stretches().iter().any(|one| one.waiting > 0) {
        let waiting = load(&|one| Some(one.waiting as f64));
        users.push(drawn(
            "sessions that wait for a connection",
            second,
            waiting,
        ));
    }
    [
        of("Throughput", "per s", throughput),
        of("Response time", "ms", response),
        of("Users", "", users),
    ]
}

fn drawn(words: &str, series: Series, points: Vec<(f64, Option<f64>)>) -> Drawn {
    (words.to_owned(), series, points)
}

fn of(name: &str, unit: &'static str, lines: Vec<Drawn>) -> Of {
    (name.to_owned(), unit, lines)
}

/// A counter over time from the ramp on, divided by `divide`.
fn course(counted: &Counted, at: usize, divide: f64) -> Vec<(f64, Option<f64>)> {
    let points = counted.course.of(at).filter(|(t, _)| *t >= 0.0);
    points
        .map(|(t, value)| (t, value.map(|value| value / divide)))
        .collect()
}

/// All counters of processes, each relative to its machine's cores; `cores` are those of the conducting machine.
fn of_counters(trial: &Trial, cores: f64) -> [Of; 3] {
    let system_cores = trial
        .system_cores
        .map_or(cores, |cores| f64::from(cores.max(1)));
    let (first, second, third) = (Series::First, Series::Second, Series::Published);
    let counter = |at: usize, divide: f64| course(&trial.counters, at, divide);
    let cpu = vec![
        drawn("generator", third, counter(2, cores)),
        drawn("system under test", second, counter(1, system_cores)),
        drawn("host", first, counter(0, 1.0)),
    ];
    let memory = vec![drawn("resident", first, counter(3, 1.0))];
    [
        of("CPU", "% of all cores", cpu),
        of("Memory of the system", "MB", memory),
        of("Disk and network", IO_UNIT, io(&trial.counters)),
    ]
}

/// The same for a part of the system, on its machine.
fn of_part(part: &PartCounted) -> [Of; 3] {
    let cores = part.cores.map_or(1.0, |cores| f64::from(cores.max(1)));
    let counter = |at: usize, divide: f64| course(&part.counted, at, divide);
    let name = pieces::plain(&part.name);
    let mut cpu = vec![drawn("host", Series::First, counter(0, 1.0))];
    // Without its cores, the reference is unknown.
    if part.cores.is_some() {
        cpu.insert(0, drawn(&name, Series::Second, counter(1, cores)));
    }
    let memory = vec![drawn("resident", Series::First, counter(3, 1.0))];
    [
        of(&format!("CPU, machine of {name}"), "% of all cores", cpu),
        of(&format!("Memory of {name}"), "MB", memory),
        of(
            &format!("Disk and network, machine of {name}"),
            IO_UNIT,
            io(&part.counted),
        ),
    ]
}

const IO_UNIT: &str = "transfers per s, KB per s";

fn io(counted: &Counted) -> Vec<Drawn> {
    vec![
        drawn("network", Series::Second, course(counted, 5, 1.0)),
        drawn("disk", Series::First, course(counted, 4, 1.0)),
    ]
}

/// The resolution of the charts.
fn places(trial: &Trial) -> String {
    let stretches = trial.load.stretches();
    let Some(first) = stretches.first() else {
        return String::new();
    };
    let length = lab_analysis::format::duration(first.end_ms - first.start_ms);
    format!("Each point stands for {length}, by all answers in it.")
}

fn card(trial: &Trial, name: &str, unit: &str, lines: Vec<Drawn>) -> Markup {
    let end = ((trial.ramp_ms + trial.hold_ms) as f64).max(trial.elapsed_ms) / 1e3;
    let words: Vec<(String, &str)> = lines
        .iter()
        .rev()
        .map(|(words, series, _)| (words.clone(), class(*series)))
        .collect();
    let lines: Vec<Line> = lines
        .into_iter()
        .map(|(_, series, points)| Line { series, points })
        .collect();
    let most = lines.iter().flat_map(Line::values).fold(0.0, f64::max);
    let across = Across::Time {
        end,
        counts_from: trial.ramp_ms as f64 / 1e3,
        most,
    };
    let title = format!("{name} through trial {}", trial.id);
    let plot = Plot::through_time(title, lines, across).filter(|_| end > 0.0);
    html! {
        section.card {
            h3 { (name) span.unit { (unit) } }
            @match plot {
                Some(plot) => (PreEscaped(pieces::chart(&Chart::Plot(plot)))),
                None => p.none { "nothing yet" },
            }
            ul.key { @for (words, class) in words { li { i class=(class) {} (words) } } }
        }
    }
}

fn class(series: Series) -> &'static str {
    match series {
        Series::First => "",
        Series::Second => "second",
        Series::Published => "published",
    }
}

/// Each step's responses, errors, and times.
pub(super) fn steps(state: &State) -> Markup {
    let Some(trial) = &state.trial else {
        return html! {};
    };
    let heads = [
        "step", "answers", "errors", "mean", "p50", "p95", "p99", "max",
    ];
    let kind = |at: usize| if at == 0 { Kind::Text } else { Kind::Number };
    let columns = heads
        .iter()
        .enumerate()
        .map(|(at, head)| Column::new(*head, kind(at)));
    let rows = trial.steps.iter().chain(&trial.probe).map(row);
    let table = Table::new("Steps", "step", columns.collect(), rows.collect());
    html! {
        h2 { "Steps" }
        p.lead { "Answers and errors of the whole trial; times in ms as above." }
        (PreEscaped(pieces::blocks(&[Block::Table(table)])))
        (transactions(trial))
        (measures(trial))
    }
}

/// Named transactions, if the workload has any.
fn transactions(trial: &Trial) -> Markup {
    if trial.transactions.is_empty() {
        return html! {};
    }
    let figures = ["completed", "failed", "mean", "p50", "p95", "p99", "max"];
    let figures = figures.map(|head| Column::new(head, Kind::Number));
    let name = Column::new("transaction", Kind::Text);
    let columns = std::iter::once(name).chain(figures).collect();
    let rows = trial.transactions.iter().map(row).collect();
    let table = Table::new("Named transactions", "transaction", columns, rows);
    html! {
        h2 { "Named transactions" }
        p.lead { "Counts of the whole trial; times of completed ones in ms, without the think times within them, over the same time as above." }
        (PreEscaped(pieces::blocks(&[Block::Table(table)])))
    }
}

/// Numbers in responses, if the workload measures any.
fn measures(trial: &Trial) -> Markup {
    if trial.measures.is_empty() {
        return html! {};
    }
    let texts = ["measure", "step"].map(|head| Column::new(head, Kind::Text));
    let figures = ["numbers", "mean", "p50", "p95", "max"];
    let figures = figures.map(|head| Column::new(head, Kind::Number));
    let columns = texts.into_iter().chain(figures).collect();
    let rows = trial.measures.iter().map(|one| told(trial, one)).collect();
    let table = Table::new("Measures", "measure", columns, rows);
    html! {
        h2 { "Measures" }
        p.lead { "Numbers that answers told, each in its own unit; since when, as above." }
        (PreEscaped(pieces::blocks(&[Block::Table(table)])))
    }
}

fn told(trial: &Trial, measure: &Measure) -> Row {
    let name = match measure.unit.as_str() {
        "" => pieces::plain(&measure.name),
        unit => pieces::plain(&format!("{}, {unit}", measure.name)),
    };
    let step = trial.steps.get(usize::from(measure.step));
    let step = step.map_or_else(String::new, |step| pieces::plain(&step.name));
    // Thousandths are to numbers what µs are to ms.
    let values = Times::of(&measure.numbers);
    let mut cells = vec![
        Cell::text(name),
        Cell::text(step),
        whole(measure.numbers.len()),
    ];
    let figures = [values.mean, values.p50, values.p95, values.max];
    cells.extend(figures.map(Cell::number));
    Row::new(cells)
}

fn whole(n: u64) -> Cell {
    Cell {
        value: Some(n as f64),
        ..Cell::text(count(n))
    }
}

fn row(step: &Step) -> Row {
    let times = Times::of(&step.times);
    let mut cells = vec![
        Cell::text(pieces::plain(&step.name)),
        whole(step.ok),
        whole(step.failed()),
    ];
    let figures = [times.mean, times.p50, times.p95, times.p99, times.max];
    cells.extend(figures.map(Cell::number));
    Row::new(cells)
}

/// The number of failed requests, by class, and examples.
pub(super) fn errors(state: &State) -> Markup {
    let Some(trial) = state
        .trial
        .as_ref()
        .filter(|trial| trial.failed() > 0 || !trial.examples.is_empty())
    else {
        return html! {};
    };
    let mut all = ErrorCounts::default();
    for step in trial.steps.iter().chain(&trial.probe) {
        all += step.errors;
    }
    let counts: Vec<String> = all
        .iter()
        .map(|(class, n)| format!("{} {}", count(n), class.words()))
        .collect();
    let attempts = (trial.answered() + trial.failed()) as f64;
    let part = lab_stats::ratio(trial.failed() as f64 * 100.0, attempts);
    html! {
        h2 { "Errors" }
        p.lead {
            (counts.join(", "))
            @if let Some(part) = part { "; " (figure(part)) " % of the requests" }
        }
        ul.notes {
            @for one in &trial.examples {
                li {
                    (lab_analysis::format::duration(one.t_ms as f64)) " · " (pieces::plain(&one.step)) " · "
                    (one.class.words()) ": " code { (pieces::plain(&one.detail)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_process_has_the_cores_of_its_own_machine() {
        let system_of = |system_cores| {
            let mut trial = Trial::default();
            trial.system_cores = system_cores;
            let values = [Some(90.0), Some(800.0), Some(100.0), None, None, None];
            trial.counters.course.take(1000.0, &values);
            let [(_, _, cpu), ..] = of_counters(&trial, 2.0);
            let newest = |drawn: &Drawn| drawn.2.iter().find_map(|(_, value)| *value);
            [newest(&cpu[0]), newest(&cpu[1]), newest(&cpu[2])]
        };
        assert_eq!(system_of(None), [Some(50.0), Some(400.0), Some(90.0)]);
        assert_eq!(system_of(Some(16)), [Some(50.0), Some(50.0), Some(90.0)]);
    }

    #[test]
    fn a_part_has_charts_of_its_machine() {
        let mut trial = Trial::default();
        let part = trial.part("db");
        part.counted.course.take(1000.0, &[Some(40.0), Some(200.0)]);
        let names = |part: &PartCounted| of_part(part).map(|(name, ..)| name);
        let expected = [
            "CPU, machine of db",
            "Memory of db",
            "Disk and network, machine of db",
        ];
        assert_eq!(names(part), expected);
        let cpu = |part: &PartCounted| {
            let [(_, _, lines), ..] = of_part(part);
            let newest = |(words, _, points): &Drawn| Some((words.clone(), points.first()?.1?));
            lines.iter().filter_map(newest).collect::<Vec<_>>()
        };
        assert_eq!(cpu(part), [("host".to_owned(), 40.0)]);
        part.cores = Some(4);
        let both = [("db".to_owned(), 50.0), ("host".to_owned(), 40.0)];
        assert_eq!(cpu(part), both);
    }
}
