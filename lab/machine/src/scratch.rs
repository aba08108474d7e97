//! Folders for a trial's data, below the archive (`RUN/work/`) or in a folder that the study names: the trial is about
//! the disk of that file system, whereas `/tmp` may be in memory. Each trial has a fresh folder, removed with the
//! trial; the next run removes the remains of a killed run. If the study wants a file system for each trial, it is
//! mounted on the trial's folder, and its image lies beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use lab_host::disk::{Disk, DiskFacts};
use lab_study::FilesystemSpec;
use lab_study::plan::{Plan, Trial};
use nix::unistd::{AccessFlags, access};

use crate::error::MachineError;

/// The storage folders of a study that can't be used; one sentence each.
#[must_use]
pub fn check(plan: &Plan) -> Vec<String> {
    let storages = plan.every_trial().filter_map(|t| t.host.storage.as_deref());
    let problem = |path: &str| {
        let usable = fs::metadata(path).and_then(|meta| {
            if !meta.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
            Ok(access(path, AccessFlags::W_OK | AccessFlags::X_OK)?)
        });
        let said = |error| format!("the storage {path} can't be used: {error}");
        usable.err().map(said)
    };
    let distinct: BTreeSet<&str> = storages.collect();
    distinct.into_iter().filter_map(problem).collect()
}

/// The folders in which a plan makes file systems, by storage. The journal needs them before the first is made.
///
/// # Errors
/// When a folder can't be made.
pub fn disks(
    plan: &Plan,
    work: &BTreeMap<Option<String>, Work>,
) -> Result<Vec<PathBuf>, MachineError> {
    let made = plan
        .every_trial()
        .filter(|trial| trial.host.filesystem.is_some());
    let storages: BTreeSet<_> = made.map(|trial| &trial.host.storage).collect();
    let folders = storages.into_iter().map(|storage| work[storage].whole());
    folders.collect()
}

/// Makes each file system of a plan once, so that a file system which this machine refuses ends the run before its
/// first trial. The journal already has their folders.
///
/// # Errors
/// When a file system can't be made.
pub fn try_disks(plan: &Plan, work: &BTreeMap<Option<String>, Work>) -> Result<(), MachineError> {
    let hosts = plan.every_trial().map(|trial| &trial.host);
    let made = hosts.filter_map(|host| Some((&host.storage, host.filesystem.as_ref()?)));
    for (storage, spec) in made.collect::<BTreeSet<_>>() {
        Disk::try_out(spec, &work[storage].whole()?.join("try"))?;
    }
    Ok(())
}

/// `RUN/work`, removed with its content on drop.
#[derive(Debug)]
pub struct Work {
    dir: PathBuf,
}

impl Work {
    /// Opens it. The caller holds the lock of the archive, so no other process uses the folder.
    ///
    /// # Errors
    /// When the remains of a killed run can't be removed.
    pub fn in_run(run: &Path) -> Result<Self, MachineError> {
        Self::at(run.join("work"))
    }

    /// Opens one in a folder that the study names, under a name that only runs in this archive have.
    ///
    /// # Errors
    /// When the remains of a killed run can't be removed.
    pub fn in_storage(storage: &str, run: &Path) -> Result<Self, MachineError> {
        let run = fs::canonicalize(run).map_err(|source| MachineError::Scratch {
            path: run.to_path_buf(),
            source,
        })?;
        let hash = blake3::hash(run.as_os_str().as_encoded_bytes()).to_hex();
        Self::at(Path::new(storage).join(format!("plimsoll-{}", &hash[..16])))
    }

    /// Paths are absolute, since commands with other working folders receive them.
    fn at(dir: PathBuf) -> Result<Self, MachineError> {
        let whole = std::path::absolute(&dir);
        let whole = whole.map_err(|source| MachineError::Scratch { path: dir, source })?;
        let work = Self { dir: whole };
        work.clear()?;
        Ok(work)
    }

    fn clear(&self) -> Result<(), MachineError> {
        match fs::remove_dir_all(&self.dir) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(MachineError::Scratch {
                path: self.dir.clone(),
                source,
            }),
            _ => Ok(()),
        }
    }

    /// A fresh folder for one trial.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn trial(&self, id: u32) -> Result<Scratch, MachineError> {
        self.fresh(&format!("{id:03}"))
    }

    /// Makes one for this trial, on a file system of its own if the study wants that. `interrupt` aborts it.
    ///
    /// # Errors
    /// When the folder or file system can't be made.
    pub fn of(&self, trial: &Trial, interrupt: &AtomicBool) -> Result<Scratch, MachineError> {
        self.fresh_on(trial.host.filesystem.as_ref(), trial.id, interrupt)
    }

    /// Makes one for the trial of this number, on a file system as `spec` describes it.
    pub(crate) fn fresh_on(
        &self,
        spec: Option<&FilesystemSpec>,
        id: u32,
        interrupt: &AtomicBool,
    ) -> Result<Scratch, MachineError> {
        let Some(spec) = spec else {
            return self.trial(id);
        };
        let dir = self.whole()?.join(format!("{id:03}"));
        let stop = || interrupt.load(Ordering::Relaxed);
        let disk = Some(Disk::make(spec, &dir, &stop)?);
        let scratch = Scratch { dir, disk };
        fs::create_dir(scratch.data()).map_err(|source| MachineError::Scratch {
            path: scratch.data(),
            source,
        })?;
        Ok(scratch)
    }

    /// Its canonical path, without links; makes the folder if needed.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn whole(&self) -> Result<PathBuf, MachineError> {
        let whole = fs::create_dir_all(&self.dir).and_then(|()| fs::canonicalize(&self.dir));
        whole.map_err(|source| MachineError::Scratch {
            path: self.dir.clone(),
            source,
        })
    }

    /// A fresh folder for a system whose mailboxes are filled.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn filling(&self) -> Result<Scratch, MachineError> {
        self.fresh("filling")
    }

    /// The folder of a snapshot.
    #[must_use]
    pub fn snapshot(&self, number: usize) -> PathBuf {
        self.dir.join("snapshots").join(number.to_string())
    }

    fn fresh(&self, name: &str) -> Result<Scratch, MachineError> {
        let dir = self.dir.join(name);
        let create = || {
            match fs::remove_dir_all(&dir) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            fs::create_dir_all(dir.join("data"))
        };
        create().map_err(|source| MachineError::Scratch {
            path: dir.clone(),
            source,
        })?;
        Ok(Scratch { dir, disk: None })
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The next run in this archive removes what is left here.
        let _ = self.clear();
    }
}

/// The folder of one trial, removed on drop.
#[derive(Debug)]
pub struct Scratch {
    dir: PathBuf,
    /// The mounted file system.
    disk: Option<Disk>,
}

impl Scratch {
    /// Facts of the file system made for it.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskFacts> {
        self.disk.as_ref().map(Disk::facts)
    }

    /// A folder on the disk that is not only the trial's: its parent, if it has a file system of its own.
    #[must_use]
    pub fn on_disk(&self) -> &Path {
        match (&self.disk, self.dir.parent()) {
            (Some(_), Some(below)) => below,
            _ => &self.dir,
        }
    }

    /// Removes it, when it is no longer used; returns a sentence if something remains.
    ///
    /// # Errors
    /// When its file system can't be removed.
    pub fn close(mut self) -> Result<Option<String>, MachineError> {
        if let Some(disk) = self.disk.take() {
            disk.take_away()?;
            return Ok(None);
        }
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Ok(Some(format!(
                "the trial's data in {} can't be removed: {error}; remove it yourself",
                self.dir.display()
            ))),
            _ => Ok(None),
        }
    }

    /// Its path.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.dir
    }

    /// The folder for the system's data.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// A file beside the data folder.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The list of users for the preparation commands.
    #[must_use]
    pub fn users(&self) -> PathBuf {
        self.file("users")
    }

    /// Bytes and number of the files in the data folder; files that vanish meanwhile are not counted.
    #[must_use]
    pub fn data_size(&self) -> (u64, u64) {
        size_below(&self.data())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A file system of its own is removed with its content.
        if self.disk.is_none() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

pub(crate) fn size_below(dir: &Path) -> (u64, u64) {
    let Ok(entries) = fs::read_dir(dir) else {
        return (0, 0);
    };
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => size_below(&entry.path()),
        Ok(meta) => (meta.len(), 1),
        Err(_) => (0, 0),
    };
    let sizes = entries.flatten().map(size);
    sizes.fold((0, 0), |(bytes, files), (b, f)| (bytes + b, files + f))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_has_a_folder_for_each_archive_and_keeps_nothing() {
        let (run, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let storage = tempfile::tempdir().unwrap();
        let path = storage.path().to_str().unwrap();
        let work = Work::in_storage(path, run.path()).unwrap();
        let elsewhere = Work::in_storage(path, other.path()).unwrap();
        let scratch = (work.trial(1).unwrap(), elsewhere.trial(1).unwrap());
        assert!(scratch.0.data().starts_with(storage.path()));
        assert_ne!(scratch.0.data(), scratch.1.data());
        std::mem::forget(scratch.0);
        let again = Work::in_storage(path, run.path()).unwrap();
        assert_eq!(
            fs::read_dir(storage.path()).unwrap().count(),
            1,
            "a killed run's is removed"
        );
        drop((work, again, scratch.1, elsewhere));
        assert_eq!(fs::read_dir(storage.path()).unwrap().count(), 0);
    }

    #[test]
    fn whoever_runs_in_another_folder_finds_what_is_told_of_a_relative_one() {
        let here = std::env::current_dir().unwrap();
        let run = tempfile::tempdir_in(&here).unwrap();
        let relative = run.path().strip_prefix(&here).unwrap();
        let scratch = Work::in_run(relative).unwrap().trial(1).unwrap();
        assert_eq!(scratch.users(), run.path().join("work/001/users"));
    }

    #[test]
    fn data_that_can_not_be_removed_is_told() {
        let run = tempfile::tempdir().unwrap();
        let work = Work::in_run(run.path()).unwrap();
        assert_eq!(work.trial(1).unwrap().close().unwrap(), None);
        let scratch = work.trial(2).unwrap();
        fs::remove_dir_all(run.path().join("work")).unwrap();
        fs::write(run.path().join("work"), "in its place").unwrap();
        let said = scratch.close().unwrap().unwrap();
        assert!(said.contains("work/002 can't be removed"), "{said}");
        let gone = work.trial(3);
        assert!(gone.is_err());
    }

    #[test]
    fn each_trial_has_a_fresh_folder_and_nothing_stays() {
        let run = tempfile::tempdir().unwrap();
        fs::create_dir_all(run.path().join("work/007/data")).unwrap();
        let work = Work::in_run(run.path()).unwrap();
        assert!(
            !run.path().join("work").exists(),
            "a killed run's folder is removed"
        );
        let scratch = work.trial(7).unwrap();
        fs::create_dir(scratch.data().join("deep")).unwrap();
        fs::write(scratch.data().join("deep/file"), [0; 300]).unwrap();
        fs::write(scratch.data().join("file"), [0; 30]).unwrap();
        assert_eq!(scratch.data_size(), (330, 2));
        let again = work.trial(7).unwrap();
        assert_eq!(again.data_size(), (0, 0));
        drop(again);
        assert!(!run.path().join("work/007").exists());
        drop(work);
        assert!(!run.path().join("work").exists());
    }
}
