//! Trials that ran at the same time: the method of their comparison, and its limits.

use crate::Analysis;
use crate::document::{Block, Cell, Column, Kind, Row, Section, Table};
use crate::format::{list, ms, plural};
use crate::model::{Duet, DuetBlock};

const TOGETHER: &str = "Both variants ran at the same time, each with its own load generator, and both could \
                        use the same cores, on which their generators changed places five times a second: a \
                        core that was taken from them was taken from both.";
const APART: &str = "Both variants ran at the same time, each with its own load generator, on a half of this \
                     machine's cores each; which had which half was drawn by lot, in equal shares.";
const TOGETHER_THERE: &str = "Both variants ran at the same time, on the same cores of another machine: a core that \
                              was taken from them was taken from both. Each had its own load generator here; these \
                              changed places five times a second.";
const APART_THERE: &str = "Both variants ran at the same time, on another machine, on a half of its cores each; which \
                           had which half was drawn by lot, in equal shares. Each had its own load generator here.";
const HOW: &str = "A hold is cut \
                   into windows, and each window of the one variant is compared with the same window of \
                   the other: what disturbs both cancels (Bulej et al., “Duet Benchmarking: Improving \
                   Measurement Accuracy in the Cloud”, ICPE 2020). The mean over a block's windows is the \
                   block's value, and the block is the unit of all that is judged.";

const NOT_SAID: [&str; 3] = [
    "What it does not say: how fast either variant is, or how much it carries. All other figures of this \
     report are those of a machine that is shared with the other variant.",
    "What disturbs one variant more than the other does not cancel. It favours neither, since each has either \
     place in half of the blocks, and makes the intervals wider. So checks that fail because something outside \
     took the CPU only warn here.",
    "The variants share memory, caches, and the disk: one that uses much of these slows the other, and \
     their difference seems smaller than it would be with each alone.",
];

/// The maximum number of pairs; more are counted.
const MOST_LEFT_OUT: usize = 6;

/// The section, if the study asks for duets.
pub(super) fn duet(analysis: &Analysis) -> Option<Section> {
    let duet = analysis.duet.as_ref()?;
    let places = match (duet.together, duet.elsewhere) {
        (true, false) => TOGETHER,
        (false, false) => APART,
        (true, true) => TOGETHER_THERE,
        (false, true) => APART_THERE,
    };
    let mut blocks = vec![Block::Paragraph(format!("{places} {HOW}"))];
    blocks.extend(stayed(duet).map(Block::Paragraph));
    blocks.extend(crowded(duet).map(Block::Paragraph));
    blocks.extend(disturbed(duet).map(Block::Paragraph));
    blocks.extend(left_out(duet));
    blocks.extend(sides(duet).map(Block::Paragraph));
    if !duet.blocks.is_empty() {
        blocks.push(Block::Table(table(duet)));
    }
    blocks.push(Block::List(NOT_SAID.map(str::to_owned).to_vec()));
    Some(Section::new("Duet", blocks))
}

/// The verdicts that remain possible beside a disturbance.
fn disturbed(duet: &Duet) -> Option<String> {
    (duet.disturbed > 0).then(|| {
        format!(
            "In {} of {} something outside competed with both so much that neither trial would be a \
             measurement by itself. That inflates both times and hides a part of their difference: any \
             difference shown is real, and may be larger. Where more than one pair in ten was so \
             disturbed, nothing is called equal; mean response and throughput can be shown to be not \
             worse, with a bound that allows for what is hidden, and a quantile that the study doesn't \
             name decides nothing but a regression that it shows.",
            duet.disturbed,
            plural(duet.blocks.len(), "pair"),
        )
    })
}

/// Pairs that count on neither side, with their reasons.
fn left_out(duet: &Duet) -> Vec<Block> {
    if duet.left_out.is_empty() {
        return Vec::new();
    }
    let all = duet.blocks.len() + duet.left_out.len();
    let lead = format!(
        "{} of {} count on neither side. What the environment did to one side says nothing of the variants. A \
         system that failed counts against its variant in the answer, not in the figures.",
        duet.left_out.len(),
        plural(all, "pair")
    );
    let shown = duet.left_out.iter().take(MOST_LEFT_OUT);
    let mut lines: Vec<String> = shown
        .map(|one| format!("block {}: {}", one.block + 1, one.why))
        .collect();
    let more = duet.left_out.len().saturating_sub(MOST_LEFT_OUT);
    lines.extend((more > 0).then(|| format!("and {more} more")));
    vec![Block::Paragraph(lead), Block::List(lines)]
}

/// The note on generators that could not be moved.
fn stayed(duet: &Duet) -> Option<String> {
    (duet.stayed > 0).then(|| {
        format!(
            "In {} of {} the generators could not be moved, and kept their places: what took one core there \
             may have slowed one variant more than the other.",
            duet.stayed,
            plural(duet.blocks.len(), "pair"),
        )
    })
}

/// The consequences of contention between the trials.
fn crowded(duet: &Duet) -> Option<String> {
    (duet.crowded > 0).then(|| {
        format!(
            "In {} of {} both together took more than 70 % of the CPU of the cores that they shared, and \
             waited for each other. That hides a part of their difference, and whoever has more threads gets \
             more CPU; where more than one pair in ten was so crowded, nothing is called equal. Fewer users \
             leave room for both; `duet: apart` keeps each on a half of the cores.",
            duet.crowded,
            plural(duet.blocks.len(), "pair"),
        )
    })
}

/// The differences between the sides.
fn sides(duet: &Duet) -> Option<String> {
    let of_measure = |one: &crate::model::SideEffect| {
        format!("{} {}", one.metric.name(), one.metric.change(one.ratio))
    };
    let found: Vec<String> = duet.sides.iter().map(of_measure).collect();
    (!found.is_empty()).then(|| {
        format!(
            "Left place against right place, whichever variant ran there: {}. The comparisons are balanced for \
             this.",
            list(&found)
        )
    })
}

fn table(duet: &Duet) -> Table {
    let columns = [
        ("block", Kind::Number),
        ("a", Kind::Text),
        ("b", Kind::Text),
        ("a on the", Kind::Text),
        ("b began later by, ms", Kind::Number),
        ("windows", Kind::Number),
        ("b beside a", Kind::Number),
    ];
    let columns = columns.map(|(head, kind)| Column::new(head, kind)).to_vec();
    let rows = duet.blocks.iter().map(|block| row(duet, block)).collect();
    Table::new("Duets", "pair of trials", columns, rows)
}

fn row(duet: &Duet, block: &DuetBlock) -> Row {
    let side = if block.a_is_left { "left" } else { "right" };
    let change = block.ratio.map(|ratio| duet.metric.change(ratio));
    let change = change.map_or_else(
        || "–".to_owned(),
        |change| format!("{} {change}", duet.metric.name()),
    );
    let windows = match block.unpaired {
        0 => block.windows.to_string(),
        n => format!("{} ({n} without a partner)", block.windows),
    };
    let later = block.b_later_ms.map_or_else(|| "–".to_owned(), ms);
    let (a, b) = &block.labels;
    let sentence = format!(
        "block {}: {b} (trial {}) beside {a} (trial {}, on the {side}): {change}, over {windows} windows",
        block.block + 1,
        block.b,
        block.a
    );
    let texts = [
        (block.block + 1).to_string(),
        format!("{a} (trial {})", block.a),
        format!("{b} (trial {})", block.b),
        side.to_owned(),
        later,
        windows,
        change,
    ];
    Row {
        struck: false,
        muted: false,
        cells: texts.into_iter().map(Cell::text).collect(),
        sentence: Some(sentence),
    }
}
