//! The archive's manifest of a run.

use std::path::Path;

use lab_archive::{ARCHIVE_SCHEMA, Manifest, MeasureName, PROBE, Pinning};
use lab_host::clock::calendar;
use lab_host::machine;
use lab_study::plan::Plan;
use lab_study::{Loaded, Study, Workload};
use lab_workload::Step;
use sha2::{Digest, Sha256};

/// The manifest of a run in the folder `out`; the caller adds the overrides.
pub(crate) fn manifest(loaded: &Loaded, plan: &Plan, out: &Path, pinning: &Pinning) -> Manifest {
    Manifest {
        schema: ARCHIVE_SCHEMA.to_owned(),
        study: plan.study.clone(),
        title: plan.title.clone(),
        file_hash: file_hash(loaded),
        seed: plan.seed,
        speed: plan.speed,
        overrides: Vec::new(),
        started: calendar(),
        environment: machine::environment(out, pinning.clone()),
        steps: step_names(plan),
        transactions: plan.question.workload.transactions.clone(),
        measures: measures(&loaded.study),
        files: loaded.files.iter().map(|(name, _)| name.clone()).collect(),
    }
}

/// The hash of the study file for a run's manifest.
#[must_use]
pub fn file_hash(loaded: &Loaded) -> String {
    let study_file = loaded.files.first().map_or(&[][..], |(_, bytes)| bytes);
    format!("sha256:{}", hex::encode(Sha256::digest(study_file)))
}

/// The measures of the responses of all steps, by the driver's step numbers.
fn measures(study: &Study) -> Vec<MeasureName> {
    let mut each: Vec<&Workload> = study.populations.iter().map(|of| &*of.workload).collect();
    if each.is_empty() {
        each.push(&study.workload);
    }
    let steps = each.iter().flat_map(|of| &of.session.steps);
    let of_step = |(number, step): (u16, &Step)| -> Vec<MeasureName> {
        let named = step.measures.iter().map(|measure| MeasureName {
            step: number,
            name: measure.name.clone(),
            unit: measure.unit.clone(),
        });
        named.collect()
    };
    (0u16..).zip(steps).flat_map(of_step).collect()
}

/// Names by the driver's step numbers: the steps, then the probe.
fn step_names(plan: &Plan) -> Vec<String> {
    let workload = &plan.question.workload;
    let probe = workload.probe.then(|| PROBE.to_owned());
    workload.steps.iter().cloned().chain(probe).collect()
}
