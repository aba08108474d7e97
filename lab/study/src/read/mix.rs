//! The populations of a load: their settings as templates, each with its place, and their workloads.

use lab_language::settings::{Settings, note};
use lab_language::{Problems, check_short_name};
use lab_workload::{MAX_POPULATIONS, SharedKind, SharedState, Step, Workload};

use super::kinds::{rated, replayed};
use super::parameters;
use crate::file::{At, PopulationFile, Scalar, StudyFile};
use crate::kinds::KindTemplate;
use crate::mix::{MixTemplate, PopulationTemplate};
use crate::model::StudyWorkload;

/// The names of the workloads of a load's populations, as written, in their order.
pub(super) fn workloads(file: &StudyFile) -> impl Iterator<Item = &At<Scalar>> {
    let populations = file.load.value.mix.iter().flat_map(|mix| &mix.value);
    populations.map(|one| one.value.workload.as_ref().unwrap_or(&file.workload))
}

/// Reports invalid names of populations, and a workload that no population uses.
pub(super) fn check_names(file: &StudyFile, problems: &mut Problems) {
    let Some(mix) = &file.load.value.mix else {
        return;
    };
    let mut names: Vec<String> = Vec::new();
    for one in &mix.value {
        let at = &one.value.population;
        check_short_name("population", at, problems);
        let name = at.text();
        if names.contains(&name) {
            let message = format!("two populations are named `{name}`");
            problems.push(at.span.problem(message, "the second one"));
        }
        names.push(name);
    }
    let own = file.workload.text();
    if !mix.value.is_empty() && workloads(file).all(|one| one.text() != own) {
        let message = format!("no population does the workload `{own}`");
        let mut problem = file.workload.span.problem(message, "here");
        problem.help =
            Some("name the workload of one of them here, and leave it out there".to_owned());
        problems.push(problem);
    }
}

/// Notes shared names that two populations declare differently, and queues that no step puts into or no step takes
/// from.
pub(super) fn check_shared(
    file: &StudyFile,
    workload: &Workload,
    populations: &[StudyWorkload],
    problems: &mut Problems,
) {
    let mut all: Vec<(&At<Scalar>, &Workload)> = workloads(file)
        .zip(populations)
        .map(|(at, of)| (at, &*of.workload))
        .collect();
    if all.is_empty() {
        all.push((&file.workload, workload));
    }
    let mut known: Vec<&SharedState> = Vec::new();
    for (at, workload) in &all {
        for one in &workload.shared {
            let name = &one.name;
            let message = match known.iter().find(|of| of.name == *name) {
                Some(of) => (!of.is_as(one)).then(|| {
                    format!(
                        "two populations share `{name}`, and their workloads say it differently"
                    )
                }),
                None => {
                    known.push(one);
                    one_sided(one, &all)
                }
            };
            if let Some(message) = message {
                problems.push(at.span.first_line().problem(message, "this workload"));
            }
        }
    }
}

/// Returns the error for a queue of which one side is missing.
fn one_sided(one: &SharedState, all: &[(&At<Scalar>, &Workload)]) -> Option<String> {
    let (name, SharedKind::Queue { .. }) = (&one.name, &one.kind) else {
        return None;
    };
    let steps = || all.iter().flat_map(|(_, of)| &of.session.steps);
    let puts = |step: &Step| step.put().is_some_and(|put| put.queue == *name);
    let takes = |step: &Step| step.take().is_some_and(|take| take.queue == *name);
    match (steps().any(puts), steps().any(takes)) {
        (true, true) => None,
        (false, _) => Some(format!("nobody puts anything into the queue `{name}`")),
        (true, false) => Some(format!("nobody takes anything from the queue `{name}`")),
    }
}

/// Returns the populations, `None` when a problem was noted. `shared` is their common load, if the load has one.
pub(super) fn template(
    file: &StudyFile,
    at: &At<Vec<At<PopulationFile>>>,
    shared: Option<KindTemplate>,
    workloads: &[StudyWorkload],
    settings: &mut Settings<'_>,
) -> Option<MixTemplate> {
    if at.value.is_empty() || at.value.len() > MAX_POPULATIONS {
        let message = format!("a load has 1 to {MAX_POPULATIONS} populations");
        let help =
            "write `mix: [{ population: readers, share: 80 }, { population: writers, share: 20 }]`";
        return note(&at.span, &message, help, settings);
    }
    let shares = shared.is_some();
    let populations = at.value.iter().zip(workloads);
    let populations: Vec<Option<PopulationTemplate>> = populations
        .map(|(one, workload)| population(file, one, workload, (shares, settings)))
        .collect();
    Some(MixTemplate {
        shared: shared.map(Box::new),
        populations: populations.into_iter().collect::<Option<_>>()?,
    })
}

fn population(
    file: &StudyFile,
    at: &At<PopulationFile>,
    workload: &StudyWorkload,
    (shares, settings): (bool, &mut Settings<'_>),
) -> Option<PopulationTemplate> {
    let one = &at.value;
    let own = one.users.as_ref().map(|users| &users.span);
    let own = own.or(one.timeline.as_ref().map(|timeline| &timeline.span));
    let own = own.or(one.arrival.as_ref().map(|arrival| &arrival.span));
    let parameters = parameters::of_population(file, &one.parameters, &workload.file, settings);
    let (share, own) = match (shares, &one.share, own) {
        (true, Some(share), _) => (Some(settings.required("share", share)?), None),
        (true, None, Some(own)) => {
            let message = "the populations share the users or the rate of the load";
            let help = "write `share: 20` here; or leave `users`, `arrival`, and `stages` out of the \
                        load, and give each population its own";
            return note(own, message, help, settings);
        }
        (true, None, None) => {
            let help = "write `share: 20`: a part in relation to the other shares";
            return note(
                &at.span,
                "a population needs a `share` of the load",
                help,
                settings,
            );
        }
        (false, Some(share), _) => {
            let message =
                "there is nothing to share: the load has no `users`, `arrival`, or `stages`";
            let help = "write `users: 1000` beside `mix`, or `users: 200` here";
            return note(&share.span, message, help, settings);
        }
        (false, None, None) => {
            let message = "a population needs `users`, `arrival`, or `timeline`";
            let help = "write `users: 100` or `arrival: { rate: 10/s }`; or, with `users: 1000` beside \
                        `mix`, `share: 20`";
            return note(&at.span, message, help, settings);
        }
        (false, None, Some(_)) => (None, Some(own_load(one, workload, settings)?)),
    };
    let after = match &one.after {
        Some(after) if share.is_some() || one.timeline.is_some() => {
            let message = "`after` belongs to a population with `users` or `arrival` of its own";
            let help = "leave it out; or give each population `users` or an `arrival` of its own, and the load none";
            return note(&after.span, message, help, settings);
        }
        after => settings.optional("after", after.as_ref())?,
    };
    Some(PopulationTemplate {
        after,
        name: one.population.text(),
        workload: workload.workload.name.clone(),
        share,
        own,
        parameters: parameters?,
    })
}

fn own_load(
    one: &PopulationFile,
    workload: &StudyWorkload,
    settings: &mut Settings<'_>,
) -> Option<KindTemplate> {
    if let Some(timeline) = &one.timeline {
        return replayed(timeline, one.arrival.as_ref(), &workload.workload, settings);
    }
    match (&one.users, &one.arrival) {
        (Some(users), _) => settings.required("users", users).map(KindTemplate::Users),
        (None, Some(arrival)) => rated(arrival, settings),
        (None, None) => None,
    }
}
