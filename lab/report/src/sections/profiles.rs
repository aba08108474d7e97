//! Which functions take more or less CPU time in one cell than in another.

use crate::Analysis;
use crate::document::{Block, Section};
use crate::format::plural;
use crate::model::ProfileDifference;

/// Pairs of cells that are shown; all are in `result.json`.
const MOST_PAIRS: usize = 12;

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
    blocks.extend(all.iter().take(MOST_PAIRS).flat_map(of_pair));
    let more = all.len().saturating_sub(MOST_PAIRS);
    if more > 0 {
        let pairs = plural(more, "more pair");
        blocks.push(Block::Paragraph(format!(
            "The differences of {pairs} of cells are in result.json."
        )));
    }
    Some(Section::new("What differs", blocks))
}

fn of_pair(of: &ProfileDifference) -> Vec<Block> {
    let mut sentences = of.sentences.iter().cloned();
    let whole = sentences.next().map(Block::Paragraph);
    let list: Vec<String> = sentences.collect();
    let list = (!list.is_empty()).then_some(Block::List(list));
    whole.into_iter().chain(list).collect()
}
