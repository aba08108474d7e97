//! Kept states for the start of trials: the system is provisioned and filled once for each initial state, then stopped
//! regularly, and the folder of that state is kept. Each trial of that state, including the first one, starts with a
//! copy of it.
//!
//! Snapshots lie in the work folder of their storage and are removed with it, however the run ends.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lab_machine::scratch::{Scratch, Work};
use lab_study::Keep;

use crate::ConductError;
use crate::start::UserExtra;

/// The snapshots of a run.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    stored: Mutex<BTreeMap<String, Snapshot>>,
    alone: Mutex<()>,
}

#[derive(Debug)]
struct Snapshot {
    dir: PathBuf,
    /// The sign-in variables of the users of this state.
    users: UserExtra,
}

impl Snapshots {
    /// Locks the search for a snapshot and its making: two trials at the same time make it once.
    pub(crate) fn alone(&self) -> MutexGuard<'_, ()> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, state: &str) -> bool {
        self.kept().contains_key(state)
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<String, Snapshot>> {
        // An insertion is never incomplete.
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the data of an ended system.
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

    /// Copies a snapshot to the data folder of a trial, and returns its users' sign-in variables. The copy is synced,
    /// so that its writing does not overlap with the trial.
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
        copy(&snapshot.dir, &folder)?;
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

/// Copies a folder with its content, and syncs it: owners, modes, times, and links stay as they are, since servers
/// reject a folder with other owners or modes. Sockets and pipes are omitted: the process that listens there recreates
/// them. The kernel shares the blocks if the file system can.
fn copy(from: &Path, to: &Path) -> Result<(), ConductError> {
    let here = |source| failed(to, source);
    fs::create_dir_all(to).map_err(here)?;
    for entry in fs::read_dir(from).map_err(|source| failed(from, source))? {
        let entry = entry.map_err(|source| failed(from, source))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(|source| failed(&path, source))?;
        if kind.is_dir() {
            copy(&path, &target)?;
        } else if kind.is_symlink() {
            copy_link(&path, &target).map_err(|source| failed(&target, source))?;
        } else if kind.is_file() {
            fs::copy(&path, &target)
                .and_then(|_| make_alike(&path, &target))
                .map_err(|source| failed(&target, source))?;
        }
    }
    // After its content: the mode may forbid writing.
    make_alike(from, to).map_err(here)
}

fn copy_link(from: &Path, to: &Path) -> io::Result<()> {
    symlink(fs::read_link(from)?, to)?;
    own(&fs::symlink_metadata(from)?, to)
}

/// Copies the metadata of a file or folder, and syncs it.
fn make_alike(from: &Path, to: &Path) -> io::Result<()> {
    let model = fs::metadata(from)?;
    let file = File::open(to)?;
    own(&model, to)?;
    // A change of the owner clears some mode bits.
    file.set_permissions(model.permissions())?;
    let times = FileTimes::new().set_accessed(model.accessed()?);
    file.set_times(times.set_modified(model.modified()?))?;
    file.sync_all()
}

fn own(model: &fs::Metadata, to: &Path) -> io::Result<()> {
    let now = fs::symlink_metadata(to)?;
    if (now.uid(), now.gid()) == (model.uid(), model.gid()) {
        return Ok(());
    }
    lchown(to, Some(model.uid()), Some(model.gid()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

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

    #[test]
    fn a_copy_is_what_a_server_left_but_for_its_sockets() {
        let dir = tempfile::tempdir().unwrap();
        let (left, to) = (dir.path().join("left"), dir.path().join("to"));
        fs::create_dir_all(left.join("records")).unwrap();
        fs::write(left.join("records/0001"), "content").unwrap();
        symlink("nowhere", left.join("current")).unwrap();
        let _listens = UnixListener::bind(left.join("socket")).unwrap();
        let modes = [("records/0001", 0o440), ("records", 0o500)];
        for (name, mode) in modes {
            fs::set_permissions(left.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        if fs::metadata(&left).unwrap().uid() == 0 {
            for name in ["records/0001", "records", "current"] {
                lchown(left.join(name), Some(1234), Some(5678)).unwrap();
            }
        }
        copy(&left, &to).unwrap();
        assert_eq!(
            fs::read_to_string(to.join("records/0001")).unwrap(),
            "content"
        );
        let link = fs::read_link(to.join("current")).unwrap();
        assert_eq!(link, Path::new("nowhere"));
        for name in ["records/0001", "records", "current", ""] {
            let of = |side: &Path| {
                let is = fs::symlink_metadata(side.join(name)).unwrap();
                let time = (!is.is_symlink()).then(|| is.modified().unwrap());
                (is.uid(), is.gid(), is.mode(), time)
            };
            assert_eq!(of(&left), of(&to), "{name}");
        }
        assert!(!to.join("socket").exists());
        // Otherwise only root can remove the content.
        for side in [&left, &to] {
            fs::set_permissions(side.join("records"), fs::Permissions::from_mode(0o700)).unwrap();
        }
    }
}
