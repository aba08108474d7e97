//! Why the machine can't be as a study wants it.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use thiserror::Error;

/// Something of the machine could not be changed, put back, or told.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The kernel refused a value.
    #[error("the kernel setting {name} can't be set to `{value}`")]
    Kernel {
        /// As the study names it.
        name: String,
        /// What was to be written.
        value: String,
        /// Why.
        source: io::Error,
    },
    /// A run that is under way has changed the same kernel setting.
    #[error("{path} is set by a run that is under way (process {pid})")]
    KernelBusy {
        /// The file.
        path: String,
        /// That run's process.
        pid: u32,
    },
    /// A kernel setting could not be put back. Its journal stays.
    #[error("{path} can't be put back to `{value}`")]
    PutBack {
        /// The file.
        path: String,
        /// Its old value.
        value: String,
        /// Why.
        source: io::Error,
    },
    /// A file system could not be made for a trial.
    #[error("no {kind} can be made at {}: {message}", path.display())]
    Filesystem {
        /// Its kind.
        kind: &'static str,
        /// Where it was to be mounted.
        path: PathBuf,
        /// Which program failed, and what it said.
        message: String,
    },
    /// A file system that was made for a trial could not be taken away. Its journal stays.
    #[error("{} can't be taken away: {message}", path.display())]
    TakeAway {
        /// Where it is mounted, or its image.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The journal of what is changed of the machine can't be kept or read.
    #[error("the journal of kernel settings and file systems can't be used ({})", path.display())]
    Journal {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused to tell or set the cores of a thread.
    #[error("cannot share out the cores")]
    Cores(#[source] Errno),
    /// The kernel refused to raise the limit of open files.
    #[error("cannot raise the limit of open files")]
    OpenFiles(#[source] io::Error),
}
