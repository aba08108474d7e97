//! The question of a study, as the plan keeps it for the code that judges the run.

use std::time::Duration;

use lab_plan::{
    Abort, PopulationOutline, Question, SessionOutline, SharedOutline, StepOutline, TagOutline,
    WorkloadOutline,
};
use lab_workload::{Lease, Need, SharedKind, SharedState, Step, Workload, step_of};

use crate::extent::milliseconds;
use crate::model::{Cell, Study, Threshold};

/// The question of a study at a speed; or which of its settings makes no sense in a cell.
pub(crate) fn question(study: &Study, speed: f64) -> Result<Question, String> {
    let workload = &study.workload;
    let populations = populations(study);
    Ok(Question {
        about: study.about.clone(),
        matrix: study.matrix.clone(),
        cells: study.cells.clone(),
        trials: study.trials,
        repeats: study.repeats,
        order: study.order,
        control: study.control,
        duet: study.duet,
        apart: study.apart,
        pairing: study.pairing.clone(),
        smallest_difference: study.smallest_difference,
        decides: study.decides,
        thresholds: study.thresholds.clone(),
        abort_on: study.abort_on.iter().map(|one| abort(one, speed)).collect(),
        checks: study.checks.clone(),
        profile: study.profile.clone(),
        published: study.published.clone(),
        workload: WorkloadOutline {
            name: names(study),
            sha256: study.workload_sha256.clone(),
            steps: match populations.is_empty() {
                true => step_names("", workload),
                false => populations
                    .iter()
                    .flat_map(|one| one.steps.clone())
                    .collect(),
            },
            probe: workloads(study)
                .iter()
                .any(|(_, workload)| workload.probe.is_some()),
            sessions: match populations.is_empty() {
                true => sessions(study)?,
                false => Vec::new(),
            },
            least_users: match populations.is_empty() {
                true => workload.least_users,
                false => 0,
            },
            populations,
            tags: tags(study),
            transactions: transactions(study),
            needs: needs(study),
            unseeded_steps: unseeded_steps(study),
            shared: shared(study),
        },
    })
}

fn abort((when, lasts): &(Threshold, Duration), speed: f64) -> Abort {
    Abort {
        when: when.clone(),
        for_ms: milliseconds(*lasts, speed).max(1),
    }
}

/// The names of all that is done, each once.
fn names(study: &Study) -> String {
    let mut names = vec![study.workload.name.as_str()];
    for of in &study.populations {
        if !names.contains(&of.workload.name.as_str()) {
            names.push(&of.workload.name);
        }
    }
    names.join(", ")
}

fn populations(study: &Study) -> Vec<PopulationOutline> {
    let names = study.cell_template.load.populations();
    let each = names
        .zip(&study.populations)
        .map(|(name, of)| PopulationOutline {
            name: name.to_owned(),
            workload: of.workload.name.clone(),
            steps: step_names(name, &of.workload),
            least_users: of.workload.least_users,
        });
    each.collect()
}

fn step_names(population: &str, workload: &Workload) -> Vec<String> {
    let steps = workload.session.steps.iter();
    steps.map(|step| step_of(population, &step.name)).collect()
}

/// All workloads, each with the name of its population; of one workload alone an empty name.
fn workloads(study: &Study) -> Vec<(&str, &Workload)> {
    let names = study.cell_template.load.populations();
    let of_populations = names.zip(study.populations.iter().map(|of| &*of.workload));
    let mut each: Vec<(&str, &Workload)> = of_populations.collect();
    if each.is_empty() {
        each.push(("", &study.workload));
    }
    each
}

/// The steps whose requests the seed doesn't fix, in all populations.
fn unseeded_steps(study: &Study) -> Vec<String> {
    let of = |(population, workload): (&str, &Workload)| {
        let steps = workload.unseeded_steps().into_iter();
        let named = steps.map(|step| step_of(population, &step));
        named.collect::<Vec<_>>()
    };
    workloads(study).into_iter().flat_map(of).collect()
}

/// The state that users share, in all populations.
fn shared(study: &Study) -> Vec<SharedOutline> {
    let mut shared: Vec<SharedOutline> = Vec::new();
    for (population, workload) in workloads(study) {
        for one in &workload.shared {
            let at = shared.iter().position(|known| known.name == one.name);
            let at = at.unwrap_or_else(|| {
                shared.push(SharedOutline {
                    name: one.name.clone(),
                    kind: kind(one),
                    puts: Vec::new(),
                    takes: Vec::new(),
                });
                shared.len() - 1
            });
            let outline = &mut shared[at];
            let is_leased = one.pool().is_some_and(|(_, lease)| lease == Lease::Session);
            for (place, step) in workload.session.steps.iter().enumerate() {
                let leases = place == 0 && is_leased;
                let name = || step_of(population, &step.name);
                if step.put().is_some_and(|put| put.queue == one.name) {
                    outline.puts.push(name());
                }
                if leases || step.take().is_some_and(|take| take.queue == one.name) {
                    outline.takes.push(name());
                }
            }
        }
    }
    shared
}

fn kind(one: &SharedState) -> lab_plan::SharedKind {
    match one.kind {
        SharedKind::Counter { .. } => lab_plan::SharedKind::Counter,
        SharedKind::Queue { .. } => lab_plan::SharedKind::Queue,
        SharedKind::Pool { .. } => lab_plan::SharedKind::Pool,
    }
}

/// The response data that the steps need, in all populations.
fn needs(study: &Study) -> Vec<Need> {
    let mut needs = Vec::new();
    for (population, workload) in workloads(study) {
        needs.extend(workload.needs().into_iter().map(|need| Need {
            step: step_of(population, &need.step),
            ..need
        }));
    }
    needs
}

/// The tags of all steps, whatever population does them.
fn tags(study: &Study) -> Vec<TagOutline> {
    let mut tags: Vec<TagOutline> = Vec::new();
    for (population, workload) in workloads(study) {
        for step in &workload.session.steps {
            for tag in &step.tags {
                let name = step_of(population, &step.name);
                match tags.iter_mut().find(|one| one.name == *tag) {
                    Some(found) => found.steps.push(name),
                    None => tags.push(TagOutline {
                        name: tag.clone(),
                        steps: vec![name],
                    }),
                }
            }
        }
    }
    tags
}

/// The transactions of all populations.
fn transactions(study: &Study) -> Vec<String> {
    let of = |(population, workload): (&str, &Workload)| {
        let names = workload.session.transaction_names();
        let named = names.map(|name| step_of(population, name));
        named.collect::<Vec<_>>()
    };
    workloads(study).into_iter().flat_map(of).collect()
}

/// One for each set of parameters that a cell has.
fn sessions(study: &Study) -> Result<Vec<SessionOutline>, String> {
    let mut sessions: Vec<SessionOutline> = Vec::new();
    for cell in &study.cells {
        let parameters = study.cell_template.parameters.parameters(cell);
        let parameters = parameters.map_err(|error| error.to_string())?;
        if !sessions.iter().any(|one| one.parameters == parameters) {
            let workload = study.workload_with(&parameters);
            let workload = workload.map_err(|error| error.to_string())?;
            sessions.push(session(parameters, &workload));
        }
    }
    Ok(sessions)
}

fn session(parameters: Cell, workload: &Workload) -> SessionOutline {
    SessionOutline {
        parameters,
        pace_s: workload.session.pace.map(|pace| pace.as_secs_f64()),
        steps: steps(&workload.session.steps),
        transfer: workload.transfer.clone(),
    }
}

/// Each step with the requests that count as it; of a list, the maximum number.
fn steps(steps: &[Step]) -> Vec<StepOutline> {
    let mut requests = vec![0; steps.len()];
    for (at, step) in steps.iter().enumerate() {
        for sent in step.sends() {
            if let Some(counted) = requests.get_mut(at + sent.counts_as) {
                *counted += u64::from(sent.at_most);
            }
        }
    }
    let each = steps.iter().zip(requests);
    let outline = each.map(|(step, requests)| StepOutline {
        name: step.name.clone(),
        wait_s: step.wait.mean().as_secs_f64(),
        repeat: step.repeat,
        requests,
        share: step.chance.map_or(1.0, |chance| chance.to - chance.from),
    });
    outline.collect()
}
