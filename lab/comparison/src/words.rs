//! What is known of the spread between runs, in words.

use lab_analysis::format::{percent, plural};
use lab_analysis::model::{Comparison, RunSpread, SpreadBasis};

use crate::given::Runs;

/// How far runs of one build spread, where that is most among what decides; `None` without a verdict.
pub(crate) fn between_runs(runs: &Runs<'_>, comparisons: &[Comparison]) -> Option<String> {
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
        SpreadBasis::Assumed => assumed(&spread, &size, name),
    })
}

fn earlier(runs: &Runs<'_>) -> String {
    match runs.earlier().count() {
        0 => String::new(),
        n => format!(", {n} of them earlier ones"),
    }
}

fn assumed(spread: &RunSpread, size: &str, name: &str) -> String {
    let too_few = match spread.runs {
        0 => "no run has another of its build beside it".to_owned(),
        n => format!("{} of one build are too few to tell", plural(n, "run")),
    };
    format!(
        "How far runs of one build differ from one another is not known: {too_few}. The intervals \
         assume that it is as far as blocks of a run do, {size} in {name}; if runs on this machine differ \
         more, a difference may be the run's and not the build's. More runs of a build tell: \
         plimsoll compare A A2 A3 -- B B2 B3."
    )
}
