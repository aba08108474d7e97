//! What loading a study gives.

use lab_language::Secrets;

use crate::model::Study;

/// A study with the files that it was made of.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The validated study.
    pub study: Study,
    /// Name in the archive and content, byte for byte but for secrets, which are masked: `study.yaml`,
    /// `workload.yaml`, and the published figures.
    pub files: Vec<(String, Vec<u8>)>,
    /// What is to be masked wherever it would be kept or shown.
    pub secrets: Secrets,
}
