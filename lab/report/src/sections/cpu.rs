//! The CPU time of the system, by function, for each cell with a profile.

use lab_profile::Profile;

use crate::Analysis;
use crate::document::{Block, Cell, Column, Kind, Row, Section, Table};
use crate::flame::{Graph, Options};
use crate::format::{count, figure, list, ms, percent, plural, shortened};
use crate::model::{CpuProfile, FunctionTime, ThreadTime};

/// The maximum number of cells; all are in `result.json`.
const MOST_CELLS: usize = 12;
/// The maximum number of frames of all flame graphs of a page together, of about 300 bytes each.
const MOST_FRAMES: usize = 1_000;
/// Rows of each cell's table, with few cells and with many cells.
const ROWS: (usize, usize) = (10, 5);
/// The maximum number of cells with the longer table.
const FEW_CELLS: usize = 4;
/// The maximum number of rows of the reference tables, over all cells.
const MOST_FUNCTIONS: usize = 200;
/// The maximum length of a function's name beside four columns of figures in a terminal.
const LETTERS: usize = 38;
/// The maximum length of a function's name in a wide column.
const LETTERS_OF_LOOKUP: usize = 140;
/// The maximum number of named groups of threads.
const MOST_THREADS: usize = 6;
/// The minimum part of broken stacks, in percent, for a sentence on them.
const BROKEN_PERCENT: f64 = 5.0;

const LEAD: &str = "Samples of the call stacks of the system's threads over the hold after warm-up. Self is the \
                    function's own code, total also what it called. µs are CPU time per transaction.";

pub(super) fn cpu(analysis: &Analysis) -> Option<Section> {
    let all = &analysis.cpu_profiles;
    if all.is_empty() {
        return None;
    }
    let shown = &all[..all.len().min(MOST_CELLS)];
    let mut blocks = vec![Block::Paragraph(LEAD.to_owned())];
    for profile in shown {
        blocks.extend(of_cell(profile, shown.len(), analysis.cells.len() > 1));
    }
    if all.len() > shown.len() {
        blocks.push(Block::Paragraph(format!(
            "The profiles of {} are in result.json.",
            plural(all.len() - shown.len(), "more cell")
        )));
    }
    Some(Section::new("Where the CPU time goes", blocks))
}

fn of_cell(profile: &CpuProfile, cells: usize, names_cell: bool) -> Vec<Block> {
    let rows = if cells <= FEW_CELLS { ROWS.0 } else { ROWS.1 };
    let functions = &profile.functions;
    let first = &functions[..functions.len().min(rows)];
    let mut blocks = vec![
        Block::Paragraph(sentence(profile, names_cell)),
        Block::Table(table(profile, first, LETTERS)),
    ];
    let to_look_up = &functions[..functions.len().min(MOST_FUNCTIONS / cells)];
    if to_look_up.len() > first.len() {
        let summary = format!(
            "{} of {} with full names",
            to_look_up.len(),
            plural(profile.functions_sampled, "function")
        );
        blocks.push(Block::Fold(
            summary,
            table(profile, to_look_up, LETTERS_OF_LOOKUP),
        ));
    }
    let options = Options {
        width: "CPU time",
        name: format!("CPU time by call path, {}", profile.label),
        us_per_transaction: profile.us_per_transaction,
        most: MOST_FRAMES / cells,
    };
    blocks.push(Block::Flame(Graph::of(&profile.tree, &options, None)));
    blocks
}

/// The main results of the profile, in a sentence or two.
fn sentence(profile: &CpuProfile, names_cell: bool) -> String {
    let whole = match profile.us_per_transaction {
        Some(us) => format!("{} ms of CPU per transaction", ms(us / 1000.0)),
        None => "The CPU time".to_owned(),
    };
    let at = match names_cell {
        true => format!("At {}: ", profile.label),
        false => String::new(),
    };
    let from = format!(
        "{at}{whole}, by {} samples of {}.",
        count(profile.samples),
        plural(profile.trials, "trial")
    );
    let named = |one: &&FunctionTime| {
        let name = one.function.as_str();
        name != Profile::BROKEN && name != Profile::OTHER
    };
    let largest = profile.functions.iter().find(named);
    let largest = largest.map(|one| {
        let us = one
            .own_us
            .map_or_else(String::new, |us| format!(" ({} µs)", figure(us)));
        let name = shortened(&one.function, LETTERS_OF_LOOKUP);
        format!(
            "The function with the most CPU time of its own is {name}: {}{us}.",
            percent(one.own_percent)
        )
    });
    let broken = profile
        .functions
        .iter()
        .find(|one| one.function == Profile::BROKEN && one.total_percent >= BROKEN_PERCENT);
    let broken = broken.map(|one| {
        let part = percent(one.total_percent);
        format!("{part} is in stacks that couldn't be followed to the start of their thread.")
    });
    let sentences = [Some(from), largest, threads(&profile.threads), broken];
    sentences
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn table(profile: &CpuProfile, functions: &[FunctionTime], letters: usize) -> Table {
    let has_us = profile.us_per_transaction.is_some();
    let heads: &[&str] = match has_us {
        true => &["self %", "self µs", "total %", "total µs"],
        false => &["self %", "total %"],
    };
    let mut columns = vec![Column::new("function", Kind::Text)];
    columns.extend(heads.iter().map(|head| Column::new(*head, Kind::Number)));
    let row = |one: &FunctionTime| {
        let own = [Some(one.own_percent), one.own_us];
        let total = [Some(one.total_percent), one.total_us];
        let figures = own.into_iter().chain(total).flatten();
        let name = Cell::text(shortened(&one.function, letters));
        Row::new(
            std::iter::once(name)
                .chain(figures.map(|value| Cell::number(Some(value))))
                .collect(),
        )
    };
    Table::new(
        "CPU time by function",
        "function",
        columns,
        functions.iter().map(row).collect(),
    )
}

fn threads(groups: &[ThreadTime]) -> Option<String> {
    let one = |group: &ThreadTime| {
        let us = group
            .us
            .map_or_else(String::new, |us| format!(" ({} µs)", figure(us)));
        format!("{} {}{us}", group.group, percent(group.percent))
    };
    let named = &groups[..groups.len().min(MOST_THREADS)];
    let mut words: Vec<String> = named.iter().map(one).collect();
    let rest = &groups[named.len()..];
    if !rest.is_empty() {
        let sum: f64 = rest.iter().map(|group| group.percent).sum();
        words.push(format!(
            "{} {}",
            plural(rest.len(), "other group"),
            percent(sum)
        ));
    }
    let sentence = format!("By threads: {}.", list(&words));
    (!groups.is_empty()).then_some(sentence)
}
