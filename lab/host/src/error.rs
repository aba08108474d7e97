//! Why the machine can't be set up for a study.

use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use thiserror::Error;

/// A change, restoration, or query of the machine failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// The kernel refused a value.
    #[error("the kernel setting {name} can't be set to `{value}`")]
    Kernel {
        /// The setting's name in the study.
        name: String,
        /// The value to write.
        value: String,
        /// Why.
        source: io::Error,
    },
    /// A run in progress has changed the same kernel setting.
    #[error("{path} is set by a run that is under way (process {pid})")]
    KernelBusy {
        /// The file.
        path: String,
        /// That run's process.
        pid: u32,
    },
    /// A kernel setting could not be restored. Its journal stays.
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
        /// Its mount point.
        path: PathBuf,
        /// The program that failed, and its output.
        message: String,
    },
    /// A file system that was made for a trial could not be removed. Its journal stays.
    #[error("{} can't be taken away: {message}", path.display())]
    TakeAway {
        /// Its mount point, or its image.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// The journal of changes to the machine can't be written or read.
    #[error("the journal of kernel settings and file systems can't be used ({})", path.display())]
    Journal {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused to report or set the cores of a thread.
    #[error("cannot share out the cores")]
    Cores(#[source] Errno),
    /// The kernel refused to raise the limit of open files.
    #[error("cannot raise the limit of open files")]
    OpenFiles(#[source] io::Error),
}
