//! What a plan says of loads that have fewer users than their workload needs.

use std::fmt::Write as _;

use lab_study::plan::Plan;
use lab_study::{Loaded, Workload};

/// Warnings, each with the line of the workload's file that it is about; empty where there are users enough.
pub(crate) fn too_few(loaded: &Loaded, plan: &Plan) -> String {
    let study = &loaded.study;
    let mut text = String::new();
    if study.populations.is_empty() {
        warn(&mut text, loaded, &study.workload, fewest(plan, None));
    }
    for (at, of) in study.populations.iter().enumerate() {
        warn(&mut text, loaded, &of.workload, fewest(plan, Some(at)));
    }
    text
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
