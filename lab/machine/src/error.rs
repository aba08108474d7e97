//! Why a machine can't do what a trial needs.

use std::io;
use std::path::PathBuf;

use lab_host::HostError;

/// Why a trial ends early.
#[derive(Debug)]
pub enum Failed {
    /// The system failed; with its last lines.
    System(String),
    /// The connection to the machine was lost, or the machine.
    Lost(String),
    /// The conductor requested it.
    Interrupted,
    /// No other trial could run, either.
    Fatal(MachineError),
}

/// A machine that can't be used for trials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// A change to the machine can't be made or undone.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The conducting program could not be started for its own server.
    #[error("cannot start {}", path.display())]
    Program {
        /// The program.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An agent refuses a request of a study to its machine, or can't do it.
    #[error("{agent} can't run the system: {why}")]
    Refused {
        /// The agent.
        agent: String,
        /// In words.
        why: String,
    },
    /// An agent could not undo its changes to its machine.
    #[error("{agent} could not leave its machine as it was: {why}")]
    Left {
        /// The agent.
        agent: String,
        /// In words.
        why: String,
    },
    /// Another agent process uses the folder.
    #[error("another agent has systems here, and keeps what it changes in {}: end it, or have this one keep that in a \
             folder of its own", path.display())]
    Taken {
        /// The folder.
        path: PathBuf,
    },
    /// The data of a trial is still there; in words.
    #[error("{0}")]
    Unremoved(String),
    /// A folder for a trial's data could not be made or removed.
    #[error("cannot use {} for a trial's data", path.display())]
    Scratch {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl From<MachineError> for Failed {
    fn from(error: MachineError) -> Self {
        Self::Fatal(error)
    }
}
