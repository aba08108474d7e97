//! The results of loading a study.

use lab_language::Secrets;

use crate::model::Study;

/// A study with the files from which it was loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The validated study.
    pub study: Study,
    /// Name in the archive and content, byte for byte but for secrets, which are masked: `study.yaml`,
    /// `workload.yaml`, and the published figures.
    pub files: Vec<(String, Vec<u8>)>,
    /// The values to mask wherever they would be kept or shown.
    pub secrets: Secrets,
}
