//! Skipped steps: which, which lists were empty, and whether the load has too few users.

use super::facts::Facts;
use crate::format::{count, plural_count};
use crate::sums::Counts;

/// Describes the most skipped step, its empty lists, and how many others there are, after a semicolon; empty if none
/// was skipped.
pub(super) fn told(facts: &Facts<'_>, counts: &Counts) -> String {
    let skipped = |name: &String| counts.steps.get(name).map_or(0, |sum| sum.skipped);
    let steps = facts.study.workload.steps.iter();
    let steps = steps.map(|name| (name, skipped(name)));
    let steps: Vec<(&String, u64)> = steps.filter(|(_, skipped)| *skipped > 0).collect();
    // If one causes others, the first of them has the reason.
    let most = steps.iter().reduce(|most, one| match one.1 > most.1 {
        true => one,
        false => most,
    });
    let Some((name, skipped)) = most else {
        return String::new();
    };
    let which = match steps.len() {
        1 => format!("; “{name}”"),
        _ => format!("; above all “{name}” ({})", count(*skipped)),
    };
    which + &wanting(facts, name)
}

/// Describes a step's empty lists, and their sources if the plan has them.
fn wanting(facts: &Facts<'_>, step: &str) -> String {
    let needs = facts.study.workload.needs.iter();
    let of_step: Vec<String> = needs
        .filter(|need| need.step == step)
        .map(|need| {
            let from = need.from.iter().map(|name| format!("“{name}”"));
            let from: Vec<String> = from.collect();
            match from.is_empty() {
                true => format!("`{}`", need.variable),
                false => format!("`{}`, which {} fills", need.variable, from.join(" or ")),
            }
        })
        .collect();
    match of_step.is_empty() {
        true => String::new(),
        false => format!(": nothing was left in {}", of_step.join(", or in ")),
    }
}

/// Returns the advice for a load with fewer users than its workload needs; `None` if it has enough.
pub(super) fn too_few(facts: &Facts<'_>) -> Option<String> {
    let workload = &facts.study.workload;
    let load = &facts.planned.load;
    let alone = (workload.least_users, load.users, String::new());
    let each = workload.populations.iter().zip(&load.mix);
    let each = each.map(|(outline, population)| {
        let of = format!(" of “{}”", population.name);
        (outline.least_users, population.users, of)
    });
    let mut all = [alone].into_iter().chain(each);
    let (least, users, of) = all.find(|(least, users, _)| users < least)?;
    let users = plural_count(u64::from(users), "user");
    Some(format!(
        "The workload{of} needs {least} users (`least_users`), and the load has {users}, who come into each \
         other's way: give it as many."
    ))
}
