//! States kept to begin trials from: the system is provisioned and filled once for each state that
//! trials begin in, it is ended as it should be, and the folder of that state is
//! kept. Each trial of that state, the first one too, begins with a copy of it.
//!
//! Snapshots lie in the work folder of their storage and go with it, however the run ends.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lab_machine::scratch::{Scratch, Work};
use lab_study::Keep;

use crate::ConductError;
use crate::start::UserExtra;

/// The snapshots of a run.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    kept: Mutex<BTreeMap<String, Snapshot>>,
    alone: Mutex<()>,
}

#[derive(Debug)]
struct Snapshot {
    dir: PathBuf,
    /// What the users of this state sign in with.
    users: UserExtra,
}

impl Snapshots {
    /// For who looks for a snapshot and makes it: two trials at the same time make it once.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, state: &str) -> bool {
        self.kept().contains_key(state)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Snapshot>> {
        // One is put in whole or not at all.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the data of a system that has ended.
    pub(crate) fn keep(
        &self,
        state: String,
        folder: &str,
        (work, filled): (&Work, &Scratch),
        users: UserExtra,
    ) -> Result<(), ConductError> {
        let mut kept = self.kept();
        let dir = work.snapshot(kept.len());
        let moved = dir
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| fs::rename(below(filled, folder), &dir));
        moved.map_err(|source| failed(&dir, source))?;
        kept.insert(state, Snapshot { dir, users });
        Ok(())
    }

    /// Puts a copy in the data folder of a trial, and gives what its users sign in with. The copy is
    /// on the disk, so that the trial does not begin beside its writing.
    pub(crate) fn restore(
        &self,
        state: &str,
        keep: &Keep,
        scratch: &Scratch,
    ) -> Result<UserExtra, ConductError> {
        let kept = self.kept();
        let Some(snapshot) = kept.get(state) else {
            return Ok(UserExtra::new());
        };
        let folder = below(scratch, &keep.folder);
        copy(&snapshot.dir, &folder).map_err(|source| failed(&folder, source))?;
        Ok(snapshot.users.clone())
    }
}

/// A folder within the data of a trial; `.` is all of it.
fn below(scratch: &Scratch, folder: &str) -> PathBuf {
    match folder {
        "." => scratch.data(),
        folder => scratch.data().join(folder),
    }
}

fn failed(path: &Path, source: io::Error) -> ConductError {
    ConductError::Scratch {
        path: path.to_path_buf(),
        source,
    }
}

/// Copies a folder with all in it; the kernel shares the blocks where the file system can.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
            File::open(&target)?.sync_all()?;
        }
    }
    File::open(to)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trial_begins_with_a_copy_and_leaves_the_snapshot_alone() {
        let run = tempfile::tempdir().unwrap();
        let work = Work::in_run(run.path()).unwrap();
        let filled = work.filling().unwrap();
        fs::create_dir(filled.data().join("deep")).unwrap();
        fs::write(filled.data().join("deep/file"), "content").unwrap();
        let users = vec![vec![("password".to_owned(), "secret".to_owned())]];
        let snapshots = Snapshots::default();
        let keep = Keep {
            folder: ".".to_owned(),
            alike: None,
        };
        snapshots
            .keep("a".to_owned(), ".", (&work, &filled), users.clone())
            .unwrap();
        drop(filled);
        assert!(snapshots.has("a") && !snapshots.has("b"));
        for id in 1..3 {
            let trial = work.trial(id).unwrap();
            assert_eq!(snapshots.restore("a", &keep, &trial).unwrap(), users);
            let file = trial.data().join("deep/file");
            assert_eq!(fs::read_to_string(&file).unwrap(), "content");
            fs::write(file, "changed").unwrap();
        }
        drop(work);
        assert_eq!(fs::read_dir(run.path()).unwrap().count(), 0);
    }
}
