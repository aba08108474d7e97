//! The files whose content a workload's requests send, each read once.

use std::io;

use lab_workload::{Attached, MAX_ATTACHED_BYTES};

use super::choice;
use super::files::{Files, open};
use crate::error::Problems;
use crate::file::{RequestFile, WorkloadFile};
use lab_units::parts::{At, Scalar};

/// Reads all files that the workload's requests send; `None` if a problem was reported.
pub(super) fn read(
    file: &WorkloadFile,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Vec<Attached>> {
    let mut all: Option<Vec<Attached>> = Some(Vec::new());
    let mut tried: Vec<String> = Vec::new();
    let mut left = MAX_ATTACHED_BYTES;
    for named in requests(file).flat_map(|request| request.files()) {
        let name = named.text();
        if tried.contains(&name) {
            continue;
        }
        tried.push(name);
        let one = one(named, files, left, problems);
        left -= one.as_ref().map_or(0, |one| one.length);
        match (&mut all, one) {
            (Some(all), Some(one)) => all.push(one),
            (all, _) => *all = None,
        }
    }
    all
}

/// Returns all requests of a workload with more than a line.
pub(super) fn requests(file: &WorkloadFile) -> impl Iterator<Item = &RequestFile> {
    let session = choice::leaves(&file.session.steps.value);
    let steps = file.setup.iter().chain(session);
    let requests = steps.flat_map(|step| step.value.requests());
    requests.chain(file.probe.as_ref().map(|probe| &probe.only))
}

fn one(
    named: &At<Scalar>,
    files: &dyn Files,
    most: u64,
    problems: &mut Problems,
) -> Option<Attached> {
    let name = named.text();
    let place = named.span.first_line();
    if name.contains("{{") {
        let message = "a file is named by its path alone: it is read before there are users";
        let help = "let each session do one of several steps (`one_of`), each with its own file";
        problems.push(place.problem(message, "this path").help(help));
        return None;
    }
    let bytes = open(named, files, problems)?;
    let read = Attached::read(&name, &*bytes, most);
    read.map_err(|error| {
        let message = match error.kind() {
            io::ErrorKind::FileTooLarge => format!(
                "with `{name}` the files that requests carry have more than {} MiB",
                MAX_ATTACHED_BYTES >> 20
            ),
            _ => format!("`{name}` can't be read: {error}"),
        };
        problems.push(place.problem(message, "named here"));
    })
    .ok()
}
