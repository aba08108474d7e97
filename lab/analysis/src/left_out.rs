//! Blocks of a duet that count on neither side, with the reason. This module reads each trial by itself, before the
//! peer of an invalid trial becomes invalid as well.

use std::collections::BTreeMap;

use lab_plan::{Plan, Trial};
use lab_trial::checks::first_line;
use lab_trial::format::plural;

use crate::model::{Answer, Check, CheckOutcome, LeftOut, TrialAnalysis};
use crate::sample::Fate;

/// Planned pairs without an attempt in which both trials are valid. Empty without duets.
pub(crate) fn left_out(plan: &Plan, trials: &[TrialAnalysis]) -> Vec<LeftOut> {
    if !plan.question.duet {
        return Vec::new();
    }
    let pairs = plan.trials.chunks_exact(2);
    pairs
        .filter_map(|pair| of_pair([&pair[0], &pair[1]], plan, trials))
        .collect()
}

fn of_pair(pair: [&Trial; 2], plan: &Plan, trials: &[TrialAnalysis]) -> Option<LeftOut> {
    let attempts = |planned: &Trial| -> Vec<&TrialAnalysis> {
        let of = trials.iter().filter(|trial| trial.planned() == planned.id);
        of.collect()
    };
    let [left, right] = pair.map(attempts);
    let partner = |one: &TrialAnalysis| one.duet.as_ref().map(|duet| duet.partner);
    let counts = left.iter().any(|a| {
        let b = right.iter().find(|b| partner(a) == Some(b.id));
        b.is_some_and(|b| [*a, b].iter().all(|one| Fate::of(one) == Fate::Valid))
    });
    if counts {
        return None;
    }
    let fates = [&left, &right].map(|attempts| {
        let each: Vec<Fate> = attempts.iter().map(|one| Fate::of(one)).collect();
        // A valid attempt whose peer was invalid has another attempt after it, or is the last.
        match each.last() {
            Some(_) => Fate::of_attempts(&each),
            None => Fate::NotRun,
        }
    });
    let fate = graver(fates);
    let mut last = [left.last(), right.last()].into_iter().flatten();
    let why = last
        .find(|one| Fate::of(one) == fate)
        .map_or_else(|| fate.name().to_owned(), |one| words(one, fate));
    Some(LeftOut {
        block: pair[0].block,
        label: lab_trial::format::cell_label(&plan.question, &pair[0].cell),
        fate,
        why,
    })
}

/// The fate that best explains why a pair doesn't count.
fn graver(fates: [Fate; 2]) -> Fate {
    let order = [
        Fate::Died,
        Fate::Aborted,
        Fate::NotStarted,
        Fate::Invalid,
        Fate::Disturbed,
        Fate::NotRun,
    ];
    let found = order.into_iter().find(|one| fates.contains(one));
    // Both have a valid attempt, but not the same one: an outside disturbance hit the other side each time.
    found.unwrap_or(Fate::Disturbed)
}

/// `trial 7 (new) is disturbed: other programs: 43 % (limit 20 %)`.
fn words(trial: &TrialAnalysis, fate: Fate) -> String {
    let failed = |check: &&Check| check.outcome == CheckOutcome::Invalid;
    let check = trial.checks.iter().find(failed);
    let what = match (&trial.system_failure, check) {
        (Some(message), _) => first_line(message).to_owned(),
        (None, Some(check)) => {
            let title = check.id.title();
            format!("{}: {title}: {}", fate.name(), check.evidence)
        }
        (None, None) => fate.name().to_owned(),
    };
    format!("trial {} ({}): {what}", trial.name(), trial.label)
}

/// Adds the number of skipped pairs to an answer: `2 of 16 pairs count on neither side: 2 disturbed from outside.`
pub(crate) fn add_to(answer: &mut Option<Answer>, left_out: &[LeftOut], plan: &Plan) {
    let Some(answer) = answer.as_mut().filter(|_| !left_out.is_empty()) else {
        return;
    };
    let mut counts: BTreeMap<Fate, usize> = BTreeMap::new();
    for one in left_out {
        *counts.entry(one.fate).or_default() += 1;
    }
    let each = counts
        .iter()
        .map(|(fate, n)| format!("{n} {}", fate.name()));
    answer.sentence.push_str(&format!(
        " {} of {} count on neither side: {}.",
        left_out.len(),
        plural(plan.trials.len() / 2, "pair"),
        each.collect::<Vec<_>>().join(", ")
    ));
}
