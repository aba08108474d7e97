//! The study as archived: loaded from the bytes that the run was made with, not from today's files.

use std::collections::BTreeSet;
use std::io;

use lab_archive::Run;
use lab_study::model::Study;
use lab_study::{Files, load_study};

use crate::error::ReportError;

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

/// Loads the study that the run was made with, overrides included.
pub(crate) fn study(run: &Run) -> Result<Study, ReportError> {
    let (name, _) = run.files.first().ok_or(ReportError::NoStudy)?;
    let loaded = load_study(name, &Archived(&run.files), &run.manifest.overrides)
        .map_err(|error| ReportError::Study(Box::new(error)))?;
    Ok(loaded.study)
}

/// The session's steps in session order; a name that occurs several times is one step here.
pub(crate) fn step_names(study: &Study) -> Vec<String> {
    let mut seen = BTreeSet::new();
    study
        .workload
        .session
        .steps
        .iter()
        .filter(|step| seen.insert(step.name.as_str()))
        .map(|step| step.name.clone())
        .collect()
}
