//! Which functions take more or less CPU time in one cell than in another.

use std::collections::HashMap;

use lab_profile::Key;

use crate::Analysis;
use crate::document::{Block, Section};
use crate::flame::{Graph, Options};
use crate::format::plural;
use crate::model::ProfileDifference;

/// The maximum number of pairs of cells; all are in `result.json`.
const MOST_PAIRS: usize = 12;
/// The maximum number of frames of all flame graphs of the section together.
const MOST_FRAMES: usize = 1_000;

const LEAD: &str = "The profiles of two variants, paired by block: own code of functions, functions with what they call, \
                    and call paths, tested together. A function is named where its difference is beyond noise. \
                    Where a function and its callers all differ, only the most specific one is named. This section explains \
                    differences; it does not change the verdict or the exit code.";

/// `What differs`.
pub(super) fn differences(analysis: &Analysis) -> Option<Section> {
    let all = &analysis.profile_differences;
    if all.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Paragraph(LEAD.to_owned())];
    let shown = all.len().min(MOST_PAIRS);
    blocks.extend(
        all[..shown]
            .iter()
            .flat_map(|one| of_pair(one, MOST_FRAMES / shown)),
    );
    let more = all.len().saturating_sub(MOST_PAIRS);
    if more > 0 {
        let pairs = plural(more, "more pair");
        blocks.push(Block::Paragraph(format!(
            "The differences of {pairs} of cells are in result.json."
        )));
    }
    Some(Section::new("What differs", blocks))
}

fn of_pair(of: &ProfileDifference, frames: usize) -> Vec<Block> {
    let mut sentences = of.sentences.iter().cloned();
    let whole = sentences.next().map(Block::Paragraph);
    let list: Vec<String> = sentences.collect();
    let list = (!list.is_empty()).then_some(Block::List(list));
    whole
        .into_iter()
        .chain(list)
        .chain(graph(of, frames))
        .collect()
}

/// The calls of both cells; paths with a difference beyond noise are coloured. `None` if there is none.
fn graph(of: &ProfileDifference, most: usize) -> Option<Block> {
    let tree = of.tree.as_ref()?;
    let largest = of
        .paths
        .iter()
        .map(|path| path.us.abs())
        .fold(0.0, f64::max);
    let by_path: HashMap<Vec<&str>, f64> = of
        .paths
        .iter()
        .map(|one| {
            (
                one.path.iter().map(String::as_str).collect(),
                one.us / largest,
            )
        })
        .collect();
    let difference = |path: &[&Key]| {
        let names: Vec<&str> = path.iter().map(|key| key.name.as_str()).collect();
        by_path.get(&names).copied()
    };
    let options = Options {
        width: "CPU time",
        name: format!("CPU time of {} against {}: what differs", of.b, of.a),
        us_per_transaction: Some(f64::midpoint(of.cpu.us_a, of.cpu.us_b)),
        most,
    };
    Some(Block::Flame(Graph::of(tree, &options, Some(&difference))))
}
