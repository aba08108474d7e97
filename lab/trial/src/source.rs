//! The plan of an archive: what its trials are judged by.

use std::collections::BTreeSet;

use lab_archive::Run;
use lab_plan::{Plan, Question, SCHEMA};

use crate::error::ReportError;

/// The plan that the run was made by.
///
/// # Errors
/// See [`ReportError`]: it can't be used.
pub fn plan(run: &Run) -> Result<Plan, ReportError> {
    let schema = run.plan.get("schema").and_then(serde_json::Value::as_str);
    match schema {
        Some(known) if known != SCHEMA => Err(ReportError::Version(known.to_owned())),
        _ => serde_json::from_value(run.plan.clone()).map_err(ReportError::Plan),
    }
}

/// The session's steps in session order; a name that occurs several times is one step here.
#[must_use]
pub fn step_names(question: &Question) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let steps = question.workload.steps.iter();
    steps
        .filter(|name| seen.insert(name.as_str()))
        .cloned()
        .collect()
}
