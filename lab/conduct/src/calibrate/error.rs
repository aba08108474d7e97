//! Why the generator could not be calibrated.

use std::io;

use lab_archive::ArchiveError;
use lab_study::LoadError;
use lab_study::plan::PlanError;
use thiserror::Error;

use crate::error::ConductError;

/// The generator could not be calibrated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// The temporary folder for archives can't be made.
    #[error(transparent)]
    Folder(io::Error),
    /// The study with this program in it can't be read.
    #[error(transparent)]
    Study(Box<LoadError>),
    /// The study can't be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A run can't start or continue.
    #[error(transparent)]
    Conduct(#[from] ConductError),
    /// The archive of a run can't be read.
    #[error(transparent)]
    Archive(ArchiveError),
    /// The archive of a run is empty.
    #[error("no trial ran")]
    NoTrial,
    /// The null server did not start, or died.
    #[error("{0}")]
    SystemFailed(String),
    /// It was interrupted.
    #[error("interrupted")]
    Interrupted,
}
