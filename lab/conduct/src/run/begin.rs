//! The start of a run: restores what a killed run left, assigns cores, and opens the archive.

use std::collections::BTreeMap;

use lab_archive::{Manifest, Pinning, RunWriter};
use lab_host::cores::{self, Allotment};
use lab_host::journal::{Gone, restore};
use lab_machine::scratch::Work;
use lab_study::Secrets;
use lab_study::plan::Plan;

use crate::event::Event;
use crate::manifest::manifest;
use crate::request::RunRequest;
use crate::{ConductError, system};

/// The cores of single trials, of the halves of duets, and of the run as a whole.
pub(super) fn placed(
    request: &RunRequest,
    cores: &[u32],
    here: &Plan,
) -> (Allotment, Option<[Pinning; 2]>, Pinning) {
    let allotment = Allotment::new(cores, here);
    let halves = cores::halves(cores, &cores::siblings).filter(|_| request.plan.question.duet);
    let mut pinning = match &halves {
        Some(halves) => cores::both(halves),
        None => allotment.pinning(None),
    };
    if request.plan.every_trial().all(system::is_elsewhere) {
        not_pinned(&mut pinning);
    }
    (allotment, halves, pinning)
}

/// Restores what a killed run left changed.
pub(super) fn put_back(
    request: &RunRequest,
    events: &mut dyn FnMut(Event),
) -> Result<(), ConductError> {
    let left = restore(&request.state, Gone::Keep)?;
    for restored in left.restored {
        events(Event::Restored(restored));
    }
    for (path, pid) in left.cleared {
        events(Event::Cleared { path, pid });
    }
    for (path, value) in left.gone {
        events(Event::Gone { path, value });
    }
    Ok(())
}

/// A folder for trials in each storage of the plan.
pub(super) fn work(
    request: &RunRequest,
    here: &Plan,
) -> Result<BTreeMap<Option<String>, Work>, ConductError> {
    let mut work = BTreeMap::new();
    for trial in here.every_trial() {
        let storage = &trial.host.storage;
        if work.contains_key(storage) {
            continue;
        }
        let made = match storage {
            Some(folder) => Work::in_storage(folder, &request.out)?,
            None => Work::in_run(&request.out)?,
        };
        work.insert(storage.clone(), made);
    }
    Ok(work)
}

pub(super) fn open(
    request: &RunRequest,
    secrets: &Secrets,
    pinning: &Pinning,
) -> Result<RunWriter, ConductError> {
    let (manifest, plan) = head(request, secrets, pinning)?;
    let files = &request.loaded.files;
    let open = if request.resume {
        RunWriter::open_for_resume
    } else {
        RunWriter::create
    };
    Ok(open(&request.out, &manifest, &plan, files)?)
}

/// The manifest, and the plan as the archive keeps it.
pub(super) fn head(
    request: &RunRequest,
    secrets: &Secrets,
    pinning: &Pinning,
) -> Result<(Manifest, serde_json::Value), ConductError> {
    let mut manifest = manifest(&request.loaded, &request.plan, &request.out, pinning);
    manifest.overrides = secrets.shown_overrides(&request.overrides);
    Ok((manifest, written(secrets, &request.plan)?))
}

/// The cores that the archive lists: agents use their own.
pub(super) fn shown(pinning: &Pinning, request: &RunRequest) -> Pinning {
    let mut shown = pinning.clone();
    if request.generators.is_some() {
        shown.generator.clear();
        shown.shared = false;
    }
    shown
}

/// A plan as the archive keeps it.
pub(super) fn written(secrets: &Secrets, plan: &Plan) -> Result<serde_json::Value, ConductError> {
    let mut value = serde_json::to_value(plan).map_err(ConductError::Plan)?;
    secrets.mask_plan(&mut value);
    Ok(value)
}

/// An attached system has unknown cores.
pub(super) fn not_pinned(pinning: &mut Pinning) {
    pinning.system.clear();
    pinning.shared = false;
}
