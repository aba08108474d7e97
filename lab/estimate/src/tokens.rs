//! The lines of a plan on OAuth 2 tokens.

use std::fmt::Write as _;

use lab_study::plan::{Plan, Trial};
use lab_study::{Study, Workload};

/// The step, owner, and number of tokens in the largest trial, for each workload; empty without tokens.
pub(crate) fn tokens(study: &Study, plan: &Plan) -> String {
    let mut text = String::new();
    if study.populations.is_empty() {
        describe(&mut text, &study.workload, plan, |trial| {
            (trial.load.users, None)
        });
    }
    for (at, population) in study.populations.iter().enumerate() {
        describe(&mut text, &population.workload, plan, |trial| {
            let of = trial.load.mix.get(at);
            (of.map_or(0, |of| of.users), of)
        });
    }
    text
}

/// The tokens of one workload; `load` gives its users and its population in a trial.
fn describe<'a>(
    text: &mut String,
    workload: &Workload,
    plan: &'a Plan,
    load: impl Fn(&'a Trial) -> (u32, Option<&'a lab_study::plan::Population>),
) {
    let (Some(tokens), Some(step)) = (&workload.tokens, workload.session.steps.last()) else {
        return;
    };
    let Some(trial) = plan.every_trial().max_by_key(|trial| load(trial).0) else {
        return;
    };
    let (users, population) = load(trial);
    let name = population.map_or(step.name.clone(), |of| of.step(&step.name));
    let (whom, first) = match tokens.is_shared() {
        true => ("worker thread", "1 for each thread".to_owned()),
        false => ("user", users.to_string()),
    };
    let predicted = trial.prediction.iter().flat_map(|of| &of.steps);
    let further = predicted.filter(|of| of.name == name);
    let further = further.filter_map(|of| of.range).next();
    let _ = write!(
        text,
        "tokens of OAuth 2 by the step “{name}”, one for each {whom}:\n  {first} in the setup of the largest trial"
    );
    let _ = match further {
        Some(range) => writeln!(
            text,
            ", {:.0} to {:.0} more as they expire",
            range.low, range.high
        ),
        None => writeln!(text, ", more as they expire"),
    };
}
