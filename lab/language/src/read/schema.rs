//! The JSON Schemas for validating a workload's responses, each read and compiled once.

use lab_workload::{JsonSchema, MAX_SCHEMA_BYTES};

use super::attached::requests;
use super::files::{Files, open, read_all};
use crate::error::Problems;
use crate::file::WorkloadFile;
use lab_units::parts::{At, Scalar};

/// Reads all schemas that the workload's requests name; `None` if a problem was reported.
pub(super) fn read(
    file: &WorkloadFile,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Vec<JsonSchema>> {
    let mut all: Option<Vec<JsonSchema>> = Some(Vec::new());
    let mut tried: Vec<String> = Vec::new();
    for named in requests(file).filter_map(|request| request.schema()) {
        let name = named.text();
        if tried.contains(&name) {
            continue;
        }
        tried.push(name);
        match (&mut all, one(named, files, problems)) {
            (Some(all), Some(one)) => all.push(one),
            (all, _) => *all = None,
        }
    }
    all
}

fn one(named: &At<Scalar>, files: &dyn Files, problems: &mut Problems) -> Option<JsonSchema> {
    let name = named.text();
    let mut wrong = |message: String, help: &str| {
        let problem = named.span.first_line().problem(message, "named here");
        problems.push(problem.help(help));
    };
    if name.contains("{{") {
        let message = "a schema is named by its path alone: it is read before there are users";
        wrong(message.to_owned(), "write `schema: order.schema.json`");
        return None;
    }
    let bytes = open(named, files, problems)?;
    let parsed = read_all(&*bytes, MAX_SCHEMA_BYTES).and_then(|text| {
        JsonSchema::parse(&name, &text).map_err(|error| format!("no JSON Schema: {error}"))
    });
    parsed
        .map_err(|error| {
            let message = format!("`{name}`: {error}");
            let problem = named.span.first_line().problem(message, "named here");
            problems.push(problem.help("what a schema refers to is in it: nothing else is read"));
        })
        .ok()
}
