//! Converts plans of archives that an earlier version wrote into the present form.
//!
//! A plan of version 1 lacks the criteria by which a run is judged. They are in the study and the workload
//! as written, which the archive keeps. This is the only module that loads them again.

use std::io;

use lab_language::{Files, LoadError};
use lab_plan::SCHEMA;
use serde_json::Value;

use crate::plan::question;
use crate::read::load_archived;

/// The form that has no question.
const WITHOUT_QUESTION: &str = "plimsoll.plan/1";

/// Why a plan could not be brought to the present form.
#[derive(Debug, thiserror::Error)]
pub enum ArchivedError {
    /// The archive holds no study file.
    #[error("the archive holds no study file")]
    NoStudy,
    /// The archived study or workload does not load.
    #[error("the archived study can't be loaded")]
    Study(#[source] Box<LoadError>),
    /// The archived study makes no sense in one of its cells.
    #[error("the archived study can't be planned: {0}")]
    Question(String),
    /// The question can't be serialized.
    #[error("what the archived study asks can't be written down")]
    Form(#[source] serde_json::Error),
}

/// An archive's plan in the present form, from the plan, the kept files (the study first), and the
/// overrides that the archive has. One that is in this form, or in none that is known here, stays as
/// it is.
///
/// # Errors
/// See [`ArchivedError`].
pub fn present_plan(
    mut plan: Value,
    files: &[(String, Vec<u8>)],
    overrides: &[(String, String)],
) -> Result<Value, ArchivedError> {
    if plan.get("schema").and_then(Value::as_str) != Some(WITHOUT_QUESTION) {
        return Ok(plan);
    }
    let (name, _) = files.first().ok_or(ArchivedError::NoStudy)?;
    let loaded = load_archived(name, &Archived(files), overrides)
        .map_err(|error| ArchivedError::Study(Box::new(error)))?;
    let mut question = question(&loaded.study, 1.0).map_err(ArchivedError::Question)?;
    // Thresholds that are implied today weren't when the run was made.
    question.thresholds.retain(|threshold| !threshold.implied);
    plan["question"] = serde_json::to_value(question).map_err(ArchivedError::Form)?;
    plan["schema"] = SCHEMA.into();
    Ok(plan)
}

/// Files of an archive. It keeps them flat and under its own names: the study first, then the
/// workload, then published files under theirs.
struct Archived<'a>(&'a [(String, Vec<u8>)]);

impl Files for Archived<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, io::Error> {
        let by_name = self
            .0
            .iter()
            .find(|(name, _)| base_name(name) == base_name(path));
        // A study names its workload by the name it had outside; a study names only one YAML file.
        let is_yaml = path.ends_with(".yaml") || path.ends_with(".yml");
        let workload = self.0.get(1).filter(|_| is_yaml);
        by_name
            .or(workload)
            .map(|(_, bytes)| bytes.clone())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not in the archive"))
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}
