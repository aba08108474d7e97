//! What users share with each other: counters.

use lab_workload::{SharedKind, SharedState, Workload};

use super::names::{called_at, unknown_name};
use super::request::Compiler;
use super::variable;
use crate::error::Problems;
use crate::file::{At, SharedFile, Table};
use crate::node::Node;
use crate::units;

/// Most things that users of a workload share.
const MAX_SHARED: usize = 100;
/// The highest number that a counter begins with.
const MAX_FROM: u64 = 1_000_000_000_000_000;

/// What a file's users share; `None` when a problem was noted.
pub(super) fn read(
    table: &Table<At<SharedFile>>,
    compiler: &mut Compiler,
) -> Option<Vec<SharedState>> {
    let mut all = Some(Vec::new());
    for (name, file) in table.iter() {
        let of = variable::check(name, compiler.problems)
            .then(|| kind(file, compiler))
            .flatten();
        match (&mut all, of) {
            (Some(all), Some(kind)) if all.len() < MAX_SHARED => all.push(SharedState {
                name: name.value.clone(),
                kind,
            }),
            (Some(_), Some(_)) => {
                let message = format!("users share {MAX_SHARED} things at most");
                let problem = name.span.problem(message, "the first one too many");
                compiler.problems.push(problem);
                return None;
            }
            (all, _) => *all = None,
        }
    }
    all
}

fn kind(file: &At<SharedFile>, compiler: &mut Compiler) -> Option<SharedKind> {
    let Some(counter) = &file.value.counter else {
        let message = "it is not said what is shared";
        let problem = file.span.first_line().problem(message, "here");
        let help = "a counter is `{ counter: { from: 1 } }`";
        compiler.problems.push(problem.help(help));
        return None;
    };
    let from = match &counter.value.from {
        Some(from) => {
            compiler.setting("from", from, |text| units::whole_number(text, 0..=MAX_FROM))?
        }
        None => 1,
    };
    Some(SharedKind::Counter { from })
}

/// Notes a problem where a template takes a number of a counter that doesn't exist, or where a variable of `user:` takes
/// one. False when a problem was noted.
pub(super) fn check_counters(root: &Node, workload: &Workload, problems: &mut Problems) -> bool {
    let counters = workload.shared.iter().map(|one| match one.kind {
        SharedKind::Counter { .. } => one.name.as_str(),
    });
    let counters: Vec<&str> = counters.collect();
    let mut of_users = Vec::new();
    for (_, template) in &workload.user {
        template.counters(&mut of_users);
    }
    if let Some(name) = of_users.first() {
        let message = "a variable of `user:` takes no number of a counter";
        let help = "users come by their own numbers: `index`; take the counter's in a step";
        let problem = called_at(root, name, &["next"]).problem(message, "taken here");
        problems.push(problem.help(help));
        return false;
    }
    let used = workload.counters();
    let unknown = used.iter().find(|name| !counters.contains(&name.as_str()));
    let Some(name) = unknown else {
        return true;
    };
    let (message, mut help) = unknown_name("counter", name, &counters);
    if counters.is_empty() {
        help =
            format!("say what users share: `shared: {{ {name}: {{ counter: {{ from: 1 }} }} }}`");
    }
    let problem = called_at(root, name, &["next"]).problem(message, "taken here");
    problems.push(problem.help(help));
    false
}
