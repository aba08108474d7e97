//! Why a run can't start or continue. A failed system under test is none of these.

use std::io;
use std::path::PathBuf;

use lab_archive::ArchiveError;
use lab_driver::DriverError;
use lab_host::HostError;
use lab_machine::MachineError;
use thiserror::Error;

use crate::preflight::Problem;

/// A run could not start or continue. Finished trials stay in the archive.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConductError {
    /// The plan exceeds this machine's limits.
    #[error("this machine can't run the plan:\n{}", list(problems))]
    Preflight {
        /// At least one.
        problems: Vec<Problem>,
    },
    /// Settings of the study that can't be applied on this machine, found before anything started.
    #[error("the study can't be run here:\n{}", list(problems))]
    Settings {
        /// At least one, each a sentence with its cause.
        problems: Vec<String>,
    },
    /// Attached systems of the study that can't be reached, found before anything started.
    #[error("{}", problems.join("\n"))]
    Unreachable {
        /// At least one, each a sentence with what to do.
        problems: Vec<String>,
    },
    /// The thread that reads a remote host's counters could not be started.
    #[error("the thread that hears another machine could not be started")]
    Scraper(#[source] io::Error),
    /// A change to the machine can't be made or undone.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The archive can't be written or resumed.
    #[error("the archive failed")]
    Archive(#[from] ArchiveError),
    /// The load generator could not start, or failed.
    #[error("the load generator failed")]
    Driver(#[from] DriverError),
    /// The load generator ended before the end of its hold.
    #[error("the load generator ended before its hold")]
    DriverEnded,
    /// The program of the system under test could not be started.
    #[error("cannot start {}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder for a trial's data could not be made or removed.
    #[error("cannot use {} for a trial's data", path.display())]
    Scratch {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The plan has no JSON form: a defect of this program.
    #[error("the plan can't be written")]
    Plan(#[source] serde_json::Error),
    /// The plan needs something that this version can't do.
    #[error("{0}")]
    Unsupported(String),
}

impl From<MachineError> for ConductError {
    fn from(error: MachineError) -> Self {
        match error {
            MachineError::Host(error) => Self::Host(error),
            MachineError::Program { path, source } => Self::Program { path, source },
            MachineError::Scratch { path, source } => Self::Scratch { path, source },
            error => Self::Unsupported(error.to_string()),
        }
    }
}

fn list(problems: &[impl std::fmt::Display]) -> String {
    problems
        .iter()
        .map(|problem| format!("- {problem}"))
        .collect::<Vec<_>>()
        .join("\n")
}
