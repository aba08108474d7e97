//! The study as archived: loaded from the bytes that the run was made with, not from today's files.

use std::io;

use lab_archive::Run;
use lab_study::model::Study;
use lab_study::{Files, load_study};

use super::ReportError;

/// Files of an archive, found by their last component: the archive keeps them flat.
struct Archived<'a>(&'a [(String, Vec<u8>)]);

impl Files for Archived<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, io::Error> {
        let wanted = base_name(path);
        self.0
            .iter()
            .find(|(name, _)| base_name(name) == wanted)
            .map(|(_, bytes)| bytes.clone())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not in the archive"))
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Loads the study that the run was made with, overrides included.
pub(super) fn study(run: &Run) -> Result<Study, ReportError> {
    let (name, _) = run.files.first().ok_or(ReportError::NoStudy)?;
    let loaded = load_study(name, &Archived(&run.files), &run.manifest.overrides)
        .map_err(|error| ReportError::Study(Box::new(error)))?;
    Ok(loaded.study)
}
