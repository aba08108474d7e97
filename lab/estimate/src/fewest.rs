//! Warns about loads with fewer users than their workload needs, and about steps that are always skipped.

use std::fmt::Write as _;

use lab_study::plan::{LoadKind, Plan};
use lab_study::{Loaded, Workload};

/// Warnings, each with its line of the workload's file; empty if there are none.
#[must_use]
pub fn warnings(loaded: &Loaded, plan: &Plan) -> String {
    let study = &loaded.study;
    let mut text = String::new();
    if study.populations.is_empty() {
        warn(&mut text, loaded, &study.workload, fewest(plan, None));
        let arrives = |kind| matches!(kind, LoadKind::Arrival { .. });
        let arrives = plan.every_trial().any(|trial| arrives(trial.load.kind));
        starved(&mut text, loaded, &study.workload, (plan.seed, "", arrives));
    }
    let first = plan.every_trial().next();
    let mix = first.map_or(&[][..], |trial| &trial.load.mix);
    for ((at, of), population) in study.populations.iter().enumerate().zip(mix) {
        warn(&mut text, loaded, &of.workload, fewest(plan, Some(at)));
        let arrives = matches!(population.kind, LoadKind::Arrival { .. });
        let draws = (plan.seed, population.name.as_str(), arrives);
        starved(&mut text, loaded, &of.workload, draws);
    }
    retired(&mut text, plan);
    text
}

/// Limits of checks that are no longer judged.
fn retired(text: &mut String, plan: &Plan) {
    for (key, why) in plan.question.checks.retired() {
        let _ = writeln!(text, "warning: `{key}` under `checks` is ignored: {why}");
    }
}

/// Steps that will be skipped whatever the server answers.
fn starved(
    text: &mut String,
    loaded: &Loaded,
    workload: &Workload,
    (seed, population, arrives): (u64, &str, bool),
) {
    for one in workload.starved(seed, population, arrives) {
        let (step, variable) = (&one.need.step, &one.need.variable);
        let place = place(loaded, &workload.name, &format!("step: {step}"));
        let from: Vec<String> = one
            .need
            .from
            .iter()
            .map(|step| format!("“{step}”"))
            .collect();
        let _ = writeln!(
            text,
            "warning: {place}: the step “{step}” will be skipped in {} of its rounds, whatever the server \
             answers: nothing is left in `{variable}`, which {} fills. Fill it before each round, read it by \
             `pick({variable})`, which leaves it there, or do the step only `when` there is one",
            part(one.part),
            from.join(" or ")
        );
    }
}

/// At least a per cent of something, in words.
fn part(part: f64) -> String {
    match part * 100.0 {
        percent if percent < 1.0 => "less than 1 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// The fewest users of any trial, or of a population in any.
fn fewest(plan: &Plan, population: Option<usize>) -> Option<u32> {
    let searched = plan.search.as_ref();
    let least = searched.map(|search| search.find.min_users);
    let users = plan.every_trial().filter_map(|trial| match population {
        None => Some(least.unwrap_or(trial.load.users)),
        Some(at) => trial.load.mix.get(at).map(|one| one.users),
    });
    users.min()
}

fn warn(text: &mut String, loaded: &Loaded, workload: &Workload, fewest: Option<u32>) {
    let Some(fewest) = fewest else { return };
    let users = match fewest {
        1 => "1 user".to_owned(),
        count => format!("{count} users"),
    };
    if workload.least_users > fewest {
        let place = place(loaded, &workload.name, "least_users:");
        let needed = workload.least_users;
        let _ = writeln!(
            text,
            "warning: {place}: the workload needs {needed} users, and the smallest load has {users}: \
             expect steps that are skipped or fail"
        );
        return;
    }
    let farthest = workload.farthest_neighbour();
    if let Some(places) = farthest.filter(|places| *places >= u64::from(fewest)) {
        let place = place(loaded, &workload.name, &format!("neighbour({places})"));
        let _ = writeln!(
            text,
            "warning: {place}: `neighbour({places})` is no other user than a nearer one, or the user \
             itself, where a load has {users}: it needs {} or more",
            places + 1
        );
    }
}

/// A workload, and the first line of its file with this text outside of comments.
fn place(loaded: &Loaded, workload: &str, part: &str) -> String {
    let head = format!("workload: {workload}");
    let files = loaded.files.iter().skip(1);
    let texts = files.filter_map(|(_, bytes)| std::str::from_utf8(bytes).ok());
    let is_head = |text: &&str| text.lines().any(|line| line.trim_end() == head);
    let mut found = texts.filter(is_head);
    let has = |line: &str| line.contains(part) && !line.trim_start().starts_with('#');
    let at = found.next().and_then(|text| text.lines().position(has));
    match at {
        Some(at) => format!("workload “{workload}”, line {}", at + 1),
        None => format!("workload “{workload}”"),
    }
}
