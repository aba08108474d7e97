//! The waits of the system's threads, and their waits for a core, for each cell with a recording.

use std::collections::BTreeSet;

use lab_profile::bars::Bars;
use lab_profile::waits::scheduling::GroupLatency;
use lab_profile::waits::{ANY_CODE, Class, CodeWait, GroupTime, Per};

use crate::Analysis;
use crate::document::{Block, Cell, Column, Kind, Row, Section, Table};
use crate::flame::{Graph, Options};
use crate::format::{count, micros, ms, plural, shortened};
use crate::model::{CellScheduling, CellWaits};

/// The maximum number of cells and pairs of cells; all are in `result.json`.
const MOST_CELLS: usize = 12;
/// The maximum number of groups of threads.
const MOST_GROUPS: usize = 8;
/// The maximum number of waits, and of waits for work beside them.
const ROWS: (usize, usize) = (10, 3);
/// The maximum number of waits whose end is shown.
const MOST_ENDS: usize = 3;
/// The maximum number of frames of all flame graphs of the section together.
const MOST_FRAMES: usize = 1_000;
/// The maximum length of a function's name beside other columns in a terminal, and in a wide column.
const LETTERS: (usize, usize) = (34, 140);

const LEAD: &str = "Waits and times are those of the hold after warm-up, per transaction (per second without any). Threads that \
                    wait at the same time add up. Waits stand beside the response time; a wait is a part of it only if the thread \
                    served that request.";
const LEAD_SCHEDULING: &str = "How long threads that were ready to run waited for a core, over all valid trials. A dash stands \
                               where too few waits were recorded.";

/// `What threads wait for`.
pub(super) fn waits(analysis: &Analysis) -> Option<Section> {
    let all = &analysis.waiting.waits;
    if all.is_empty() {
        return None;
    }
    let shown = &all[..all.len().min(MOST_CELLS)];
    let mut blocks = vec![Block::Paragraph(LEAD.to_owned())];
    for cell in shown {
        let name = (analysis.cells.len() > 1).then_some(cell.label.as_str());
        blocks.extend(of_cell(cell, name, MOST_FRAMES / shown.len()));
    }
    for one in analysis.waiting.wait_differences.iter().take(MOST_CELLS) {
        blocks.extend(sentences(&one.sentences));
    }
    blocks.extend(left_out(all.len(), "more cell"));
    let pairs = analysis.waiting.wait_differences.len();
    blocks.extend(left_out(pairs, "more pair"));
    Some(Section::new("What threads wait for", blocks))
}

/// `Scheduling`.
pub(super) fn scheduling(analysis: &Analysis) -> Option<Section> {
    let (all, differences) = (
        &analysis.waiting.scheduling,
        &analysis.waiting.scheduling_differences,
    );
    if all.is_empty() && differences.iter().all(|one| one.sentences.is_empty()) {
        return None;
    }
    let mut blocks = Vec::new();
    if !all.is_empty() {
        let names_cells = analysis.cells.len() > 1;
        blocks.push(Block::Paragraph(LEAD_SCHEDULING.to_owned()));
        for cell in all.iter().take(MOST_CELLS) {
            let label = || Block::Paragraph(format!("At {}:", cell.label));
            blocks.extend(names_cells.then(label));
            blocks.push(Block::Table(latencies(cell)));
        }
    }
    for one in differences.iter().take(MOST_CELLS) {
        blocks.extend(sentences(&one.sentences));
    }
    blocks.extend(left_out(all.len(), "more cell"));
    blocks.extend(left_out(differences.len(), "more pair"));
    Some(Section::new("Scheduling", blocks))
}

fn left_out(all: usize, what: &str) -> Option<Block> {
    let more = all.saturating_sub(MOST_CELLS);
    let sentence = || format!("{} in result.json.", plural(more, what));
    (more > 0).then(|| Block::Paragraph(sentence()))
}

/// A sentence that sums up, and the sentences below it.
fn sentences(of: &[String]) -> Vec<Block> {
    let mut sentences = of.iter().cloned();
    let first = sentences.next().map(Block::Paragraph);
    let rest: Vec<String> = sentences.collect();
    let rest = (!rest.is_empty()).then_some(Block::List(rest));
    first.into_iter().chain(rest).collect()
}

fn of_cell(cell: &CellWaits, name: Option<&str>, frames: usize) -> Vec<Block> {
    let summary = &cell.summary;
    let per = summary.per.word();
    let mut blocks = vec![Block::Paragraph(sentence(cell, name))];
    if !summary.groups.is_empty() {
        let of = format!("What threads spend their time on, {}", cell.label);
        let bars = Bars::of(&summary.groups, (of, format!("µs per {per}")), MOST_GROUPS);
        blocks.push(Block::Spent(bars));
        blocks.push(Block::Table(groups(&summary.groups)));
    }
    let all = &summary.waits;
    let (for_work, others): (Vec<&CodeWait>, Vec<&CodeWait>) =
        all.iter().partition(|one| one.is_for_work);
    let shown = others
        .iter()
        .take(ROWS.0)
        .chain(for_work.iter().take(ROWS.1));
    let shown: Vec<&CodeWait> = shown.copied().collect();
    if !shown.is_empty() {
        blocks.push(Block::Table(table(&shown, LETTERS.0)));
        let ends = others.iter().filter_map(|one| ended(one)).take(MOST_ENDS);
        let ends: Vec<String> = ends.collect();
        blocks.extend((!ends.is_empty()).then_some(Block::List(ends)));
    }
    if all.len() > shown.len() {
        let title = format!(
            "{} of {} with full names",
            all.len(),
            plural(summary.waits_found, "wait")
        );
        let all: Vec<&CodeWait> = all.iter().collect();
        blocks.push(Block::Fold(title, table(&all, LETTERS.1)));
    }
    if let Some(tree) = &summary.tree {
        let options = Options {
            name: format!("Waits by call path, {}", cell.label),
            width: "time off the CPU, waits for work left out",
            us_per_transaction: (summary.per == Per::Transaction).then_some(summary.tree_us),
            most: frames,
        };
        blocks.push(Block::Flame(Graph::of(tree, &options, None)));
    }
    blocks
}

/// The states of threads, in a sentence or two.
fn sentence(cell: &CellWaits, name: Option<&str>) -> String {
    let summary = &cell.summary;
    let at = name.map_or_else(String::new, |name| format!("At {name}: "));
    let sum = |of: fn(&GroupTime) -> f64| micros(summary.groups.iter().map(of).sum());
    let mut first = format!("{at}{} with recorded waits", plural(cell.trials, "trial"));
    if !summary.groups.is_empty() {
        first = format!(
            "{at}threads spent {} per {} on a CPU and {} ready, but without a core",
            sum(|group| group.on_cpu_us),
            summary.per.word(),
            sum(|group| group.no_core_us),
        );
    }
    let beside = cell.response_mean_ms.map_or_else(String::new, |mean| {
        format!("; the mean response took {} ms", ms(mean))
    });
    let longest = summary.waits.iter().find(|one| !one.is_for_work);
    let is_known = longest.is_some_and(|one| !one.function.starts_with('['));
    let of_known = if is_known { " of known code" } else { "" };
    let longest = longest.map_or_else(String::new, |one| {
        let place = match one.function.as_str() {
            ANY_CODE => String::new(),
            function => format!(" in {}", shortened(function, LETTERS.1)),
        };
        format!(
            " The longest wait{of_known}, those for work left out: {} per {} {}{place}.",
            micros(one.us),
            summary.per.word(),
            one.class.doing()
        )
    });
    format!("{first}{beside}.{longest}")
}

/// `92 % of the time of waits in under_the_lock was ended by http-* in handle.`
fn ended(of: &CodeWait) -> Option<String> {
    let first = of.wakers.first()?;
    let function = shortened(&of.function, LETTERS.1);
    Some(format!(
        "Waits in {function} ({}) were ended by {} ({:.0} % of their time, where it is known).",
        of.class.label(),
        shortened(&first.name, LETTERS.1),
        100.0 * first.part
    ))
}

/// The time of groups of threads by use; columns without values are skipped.
fn groups(all: &[GroupTime]) -> Table {
    let shown = &all[..all.len().min(MOST_GROUPS)];
    let blocked = || shown.iter().filter_map(|group| group.blocked_us.as_ref());
    let classes: BTreeSet<Class> = blocked()
        .flat_map(|blocked| blocked.iter().filter(|(_, us)| **us > 0.0))
        .map(|(class, _)| *class)
        .collect();
    let is_shown = |class: &Class| classes.contains(class) && !class.is_waiting_for_work();
    let classes: Vec<Class> = Class::ALL.into_iter().filter(is_shown).collect();
    let has_unknown = shown.iter().any(|group| group.unknown_us > 0.5);
    let heads = ["threads", "on CPU", "no core"].into_iter();
    let heads = heads
        .chain(classes.iter().map(|class| match class {
            // Terminals have 80 columns for all of them.
            Class::LockOrCondition => "lock or cond.",
            class => class.label(),
        }))
        .chain(blocked().next().map(|_| "for work"))
        .chain(has_unknown.then_some("blocked"));
    let mut columns = vec![Column::new("threads, µs", Kind::Text)];
    columns.extend(heads.map(|head| Column::new(head, Kind::Number)));
    let row = |group: &GroupTime| {
        let of = |class: &Class| group.blocked_us.as_ref()?.get(class).copied();
        let first = [group.threads, group.on_cpu_us, group.no_core_us];
        let for_work = Class::ALL
            .iter()
            .filter(|class| class.is_waiting_for_work());
        let for_work = group
            .blocked_us
            .as_ref()
            .map(|_| for_work.filter_map(of).sum::<f64>());
        let figures = first
            .into_iter()
            .map(Some)
            .chain(classes.iter().map(of))
            .chain(blocked().next().map(|_| for_work))
            .chain(has_unknown.then_some(Some(group.unknown_us)));
        let name = Cell::text(shortened(&group.group, LETTERS.0));
        Row::new(
            std::iter::once(name)
                .chain(figures.map(Cell::number))
                .collect(),
        )
    };
    let rows = shown.iter().map(row).collect();
    Table::new("Time of threads", "group of threads", columns, rows)
}

fn table(waits: &[&CodeWait], letters: usize) -> Table {
    let is_wide = letters > LETTERS.0;
    let mut columns = vec![
        Column::new("function", Kind::Text),
        Column::new("waits for", Kind::Text),
        Column::new("µs", Kind::Number),
        Column::new("waits", Kind::Number),
    ];
    if is_wide {
        columns.push(Column::new("threads", Kind::Text));
        columns.push(Column::new("ended by", Kind::Text));
    }
    let row = |one: &&CodeWait| {
        let mut cells = vec![
            Cell::text(shortened(&one.function, letters)),
            Cell::text(one.class.label()),
            Cell::number(Some(one.us)),
            Cell::number(Some(one.count)),
        ];
        if is_wide {
            let wakers: Vec<String> = one
                .wakers
                .iter()
                .map(|waker| format!("{} ({:.0} %)", waker.name, 100.0 * waker.part))
                .collect();
            cells.push(Cell::text(one.groups.join(", ")));
            cells.push(Cell::text(wakers.join(", ")));
        }
        Row::new(cells).muted(one.is_for_work)
    };
    let rows = waits.iter().map(row).collect();
    Table::new("Waits by function", "wait", columns, rows)
}

fn latencies(cell: &CellScheduling) -> Table {
    let heads = ["waits", "p50 µs", "p90 µs", "p99 µs", "max µs"];
    let mut columns = vec![Column::new("threads", Kind::Text)];
    columns.extend(heads.map(|head| Column::new(head, Kind::Number)));
    let row = |one: &GroupLatency| {
        let waits = Cell {
            value: Some(one.count as f64),
            ..Cell::text(count(one.count))
        };
        let times = [one.p50_us, one.p90_us, one.p99_us, one.max_us];
        let cells = [Cell::text(shortened(&one.group, LETTERS.0)), waits];
        Row::new(cells.into_iter().chain(times.map(Cell::number)).collect())
    };
    let rows = cell.groups.iter().take(MOST_GROUPS).map(row).collect();
    Table::new("Scheduling latency", "group of threads", columns, rows)
}
