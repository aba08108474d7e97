//! Errors of an archive. This module knows no exit codes and prints nothing.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// An archive could not be written, resumed, or read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The system refused a read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system refused a write; a full disk ends here. Finished trials are untouched.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The folder has no manifest, so no run began in it.
    #[error("{} is not the archive of a run: it has no manifest.json", path.display())]
    NotAnArchive {
        /// The folder.
        path: PathBuf,
    },
    /// The folder of a new run is not empty.
    #[error("{} is not empty; choose another folder, or resume the run in it", path.display())]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// Another process is writing this archive.
    #[error("{} is being written by another run", path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
    },
    /// A file holds something that the format does not allow.
    #[error("{}{} is damaged: {problem}", path.display(), at_line(*line))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// 1-based line, where the format has lines.
        line: Option<u64>,
        /// The problem.
        problem: String,
    },
    /// A file is not as long as the archive says.
    #[error("{} is damaged: it has {found} bytes and should have {expected}", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Bytes written at the time.
        expected: u64,
        /// Bytes now.
        found: u64,
    },
    /// The format is of another version than this program reads.
    #[error("{} has format {found:?}; this version of plimsoll reads {known:?}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: String,
        /// The version that this program reads.
        known: &'static str,
    },
    /// The inputs of a resume differ from those of the run.
    #[error("{} cannot be resumed: its {what} is {archived}, now it is {now}", path.display())]
    Different {
        /// The folder.
        path: PathBuf,
        /// The input that differs.
        what: &'static str,
        /// In the archive.
        archived: String,
        /// Now.
        now: String,
    },
    /// A text given for a resume differs from the run's.
    #[error(
        "{} cannot be resumed: line {line} of {file} was {archived}, now it is {now}",
        path.display()
    )]
    Rewritten {
        /// The folder.
        path: PathBuf,
        /// The file, as the archive names it.
        file: String,
        /// The first line that differs, from 1.
        line: usize,
        /// In the archive, in quotes; `missing` where the file was shorter.
        archived: String,
        /// Now, likewise.
        now: String,
    },
    /// A file or plan given for a resume has changed since the run began.
    #[error("{} cannot be resumed: {what} has changed since", path.display())]
    Changed {
        /// The folder.
        path: PathBuf,
        /// The file or plan that has changed.
        what: String,
    },
    /// The trial is already complete.
    #[error("trial {id} is already complete in {}", path.display())]
    TrialComplete {
        /// The run's folder.
        path: PathBuf,
        /// The trial.
        id: u32,
    },
    /// A file name that would leave the archive.
    #[error("{name:?} cannot be the name of a file in an archive")]
    Name {
        /// As given.
        name: String,
    },
    /// A record that the format cannot hold (a row without its header, a count beyond 2^63).
    #[error("cannot write {}: {problem}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
    },
}

fn at_line(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(", line {line}"))
}

impl ArchiveError {
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Read { path, source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_path_buf();
        move |source| Self::Write { path, source }
    }

    pub(crate) fn damaged(path: &Path, line: Option<u64>, problem: impl ToString) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            line,
            problem: problem.to_string(),
        }
    }

    pub(crate) fn unwritable(path: &Path, problem: impl ToString) -> Self {
        Self::Unwritable {
            path: path.to_path_buf(),
            problem: problem.to_string(),
        }
    }
}
