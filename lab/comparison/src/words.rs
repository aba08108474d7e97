//! The spread between runs, in words.

use lab_analysis::format::{percent, plural};
use lab_analysis::model::{Comparison, RunSpread, SpreadBasis};
use lab_stats::verdict::LEAST_BLOCKS;

use crate::inputs::Runs;

/// Whether blocks are paired, and why; `None` without a verdict.
pub(crate) fn pairing(runs: &Runs<'_>, comparisons: &[Comparison], paired: bool) -> Option<String> {
    if !comparisons.iter().any(|one| one.verdict.is_some()) {
        return None;
    }
    Some(match runs.one_seed() {
        Some(seed) if paired => format!(
            "Paired by block: all runs have seed {seed}, so in the same block users wait and choose alike, and \
             what that does to both sides drops out."
        ),
        Some(_) if runs.has_one_twice() => {
            "Not paired: a run beside itself tells nothing of its noise.".to_owned()
        }
        Some(_) => format!(
            "Not paired, though the runs have one seed: a pair needs {LEAST_BLOCKS} blocks that all runs have."
        ),
        None => "Not paired: the runs have different seeds, so users wait and choose differently, and that is in \
                 the intervals."
            .to_owned(),
    })
}

/// The largest spread between runs of one build among the deciding measures; `None` without a verdict.
pub(crate) fn between_runs(
    runs: &Runs<'_>,
    comparisons: &[Comparison],
    paired: bool,
) -> Option<String> {
    let judged = |one: &&Comparison| one.decides && one.verdict.is_some();
    let told = comparisons.iter().filter(judged);
    let told = told.filter_map(|one| Some((one, one.run_spread?)));
    let (one, spread) = told.max_by(|x, y| x.1.deviation.total_cmp(&y.1.deviation))?;
    let name = one.metric.name();
    let size = percent(spread.deviation * 100.0);
    let size = match one.metric.is_rate() {
        true => size.replace('%', "points"),
        false => size,
    };
    Some(match spread.told_by {
        SpreadBasis::Runs => format!(
            "Runs of one build spread by {size} in {name} (standard deviation; {} tell{}): the \
             intervals take that in.",
            plural(spread.runs, "run"),
            earlier(runs),
        ),
        SpreadBasis::Assumed => assumed(&spread, &size, name, paired),
    })
}

fn earlier(runs: &Runs<'_>) -> String {
    match runs.earlier().count() {
        0 => String::new(),
        n => format!(", {n} of them earlier ones"),
    }
}

fn assumed(spread: &RunSpread, size: &str, name: &str, paired: bool) -> String {
    let beside = if paired {
        " beside what the plan draws"
    } else {
        ""
    };
    let too_few = match spread.runs {
        0 => "no run has another of its build beside it".to_owned(),
        n => format!("{} of one build are too few to tell", plural(n, "run")),
    };
    format!(
        "How far runs of one build differ from one another is not known: {too_few}. The intervals \
         assume that it is as far as blocks of a run do{beside}, {size} in {name}; if runs on this machine differ \
         more, a difference may be the run's and not the build's. More runs of a build tell: \
         plimsoll compare A A2 A3 -- B B2 B3."
    )
}
