//! The plan of an archive, which defines how its trials are judged.

use std::collections::BTreeSet;

use lab_archive::Run;
use lab_plan::{Plan, Question, SCHEMA};

use crate::error::ReportError;

/// Returns the plan of the run.
///
/// # Errors
/// See [`ReportError`]: the plan is unusable.
pub fn plan(run: &Run) -> Result<Plan, ReportError> {
    let schema = run.plan.get("schema").and_then(serde_json::Value::as_str);
    match schema {
        Some(known) if known != SCHEMA => Err(ReportError::Version(known.to_owned())),
        _ => serde_json::from_value(run.plan.clone()).map_err(ReportError::Plan),
    }
}

/// Returns the session's steps in session order; a repeated name is one step here.
#[must_use]
pub fn step_names(question: &Question) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let steps = question.workload.steps.iter();
    steps
        .filter(|name| seen.insert(name.as_str()))
        .cloned()
        .collect()
}
