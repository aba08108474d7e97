//! The journal of a run's changes to the machine, kernel settings and file systems: on disk before the first change,
//! removed after the last is restored. It knows no plans.
//!
//! `STATE/kernel/PID.json` (`PID-2.json` if that exists) stores the old values and is locked (flock) by the run that
//! wrote it for as long as that lives; the kernel frees the lock however the run ends. So an unlocked journal belongs
//! to a killed run, and the process that takes the lock restores the values. The boot id identifies journals from
//! before a reboot, which reset all settings; image files of file systems outlive it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::HostError;
pub use crate::changes::{Changes, Entry};
use crate::clock::{Stopwatch, pause};
use crate::machine::boot_id;
use crate::sysctl::{read, same, write};

/// Kernel settings only, which earlier versions restore as well.
const SETTINGS: &str = "plimsoll.kernel-journal/1";
/// With folders of file systems.
const SCHEMA: &str = "plimsoll.kernel-journal/2";
/// Longest wait for another run that starts or cleans up at the same time.
const TURN: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

#[derive(Debug, Serialize, Deserialize)]
struct Record {
    schema: String,
    pid: u32,
    boot: String,
    #[serde(flatten)]
    changes: Changes,
}

/// The oldest schema that can store such changes.
fn schema(changes: &Changes) -> &'static str {
    match changes.disks.is_empty() {
        true => SETTINGS,
        false => SCHEMA,
    }
}

/// A value that was restored for a run that could not do it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The file.
    pub path: String,
    /// The value found.
    pub found: String,
    /// The restored value.
    pub value: String,
    /// The process that had changed it.
    pub pid: u32,
}

/// The result of processing the journals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restoration {
    /// Restored values.
    pub restored: Vec<Restored>,
    /// Mount points of removed file systems, with the process that had made them.
    pub cleared: Vec<(PathBuf, u32)>,
    /// Files with settings of a run in progress, and folders of its file systems, with its process.
    pub held: Vec<(String, u32)>,
    /// Files that no longer exist, such as those of a removed network interface, with the values that can't be
    /// restored.
    pub gone: Vec<(String, String)>,
}

/// The treatment of values whose file no longer exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// They stay in the journal, in case the file reappears.
    Keep,
    /// They are dropped.
    Forget,
}

/// The journal of this process's changes. Dropped, the old values are restored.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    changes: Changes,
    /// Open, and therefore locked.
    _file: File,
    done: bool,
}

impl Journal {
    /// Writes it to the disk. A setting that a run in progress has changed is refused.
    pub fn begin(state: &Path, changes: impl Into<Changes>) -> Result<Self, HostError> {
        let changes = changes.into();
        let folder = Folder::open(state)?;
        let _turn = folder.turn()?;
        for other in folder.journals()? {
            for held in &other.record.changes.entries {
                let is_same = |mine: &Entry| mine.path == held.path;
                if changes.entries.iter().any(is_same) {
                    return Err(HostError::KernelBusy {
                        path: held.path.clone(),
                        pid: other.record.pid,
                    });
                }
            }
        }
        let record = Record {
            schema: schema(&changes).to_owned(),
            pid: std::process::id(),
            boot: boot_id().map_err(|source| folder.error(source))?,
            changes,
        };
        let (path, file) = folder
            .write(&record)
            .map_err(|source| folder.error(source))?;
        Ok(Self {
            path,
            changes: record.changes,
            _file: file,
            done: false,
        })
    }

    /// Restores the old values, the last change first.
    pub fn put_back(&self) -> Result<(), HostError> {
        let done = put_back(&self.changes.entries)?;
        match done.gone.first() {
            None => Ok(()),
            Some(entry) => Err(entry.failed(io::ErrorKind::NotFound.into())),
        }
    }

    /// Restores the old values, removes file systems, and removes the journal.
    pub fn finish(mut self) -> Result<(), HostError> {
        self.end()
    }

    /// A journal whose values can't be restored stays, for another attempt.
    fn end(&mut self) -> Result<(), HostError> {
        if !self.done {
            self.done = true;
            let cleared = self.changes.clear();
            self.put_back().and(cleared)?;
            remove(&self.path)?;
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Reached during an error or a panic; the next run, which finds the journal, restores what remains.
        let _ = self.end();
    }
}

/// Restores what killed runs left changed, and removes their file systems.
///
/// # Errors
/// When a journal can't be read, values can't be written, or file systems are in use; the journal then stays. A missing
/// file is no error, since it would block all later runs.
pub fn restore(state: &Path, gone: Gone) -> Result<Restoration, HostError> {
    let mut done = Restoration::default();
    if !state.join("kernel").exists() {
        return Ok(done);
    }
    let folder = Folder::open(state)?;
    let _turn = folder.turn()?;
    let boot = boot_id().map_err(|source| folder.error(source))?;
    for journal in folder.journals()? {
        let Record { pid, changes, .. } = &journal.record;
        let Changes { entries, disks } = changes;
        if journal.lock.is_none() {
            let files = entries.iter().map(|entry| entry.path.clone());
            let folders = disks.iter().map(|folder| folder.display().to_string());
            done.held
                .extend(files.chain(folders).map(|path| (path, *pid)));
            continue;
        }
        let cleared = changes.clear();
        let mut is_done = true;
        if journal.record.boot == boot {
            let looked = put_back(entries)?;
            for (entry, found) in looked.changed {
                done.restored.push(Restored {
                    path: entry.restore.clone(),
                    found,
                    value: entry.old.clone(),
                    pid: *pid,
                });
            }
            is_done = looked.gone.is_empty() || gone == Gone::Forget;
            let lost = |entry: &Entry| (entry.restore.clone(), entry.old.clone());
            done.gone.extend(looked.gone.into_iter().map(lost));
        }
        let cleared = cleared?.into_iter().map(|path| (path, *pid));
        done.cleared.extend(cleared);
        if is_done {
            remove(&journal.path)?;
        }
    }
    Ok(done)
}

/// The result of restoring values.
struct PutBack<'a> {
    /// Changed values, with the values found.
    changed: Vec<(&'a Entry, String)>,
    /// Values whose file no longer exists.
    gone: Vec<&'a Entry>,
}

/// Restores values, the last change first. A failure of one does not prevent the others.
fn put_back(entries: &[Entry]) -> Result<PutBack<'_>, HostError> {
    let (mut changed, mut gone) = (Vec::new(), Vec::new());
    let mut failure = None;
    for entry in entries.iter().rev() {
        let path = &entry.restore;
        let done = read(path).and_then(|found| {
            if same(&found, &entry.old) {
                return Ok(None);
            }
            write(path, &entry.old).map(|()| Some(found))
        });
        match done {
            Ok(Some(found)) => changed.push((entry, found)),
            Ok(None) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => gone.push(entry),
            Err(error) => {
                failure.get_or_insert_with(|| entry.failed(error));
            }
        }
    }
    match failure {
        None => Ok(PutBack { changed, gone }),
        Some(error) => Err(error),
    }
}

/// Removes a file durably.
fn remove(path: &Path) -> Result<(), HostError> {
    let folder = path.parent().unwrap_or(path);
    let removed = fs::remove_file(path).and_then(|()| File::open(folder)?.sync_all());
    removed.map_err(|source| HostError::Journal {
        path: path.to_path_buf(),
        source,
    })
}

/// `STATE/kernel`.
struct Folder(PathBuf);

/// A journal in the folder.
struct Found {
    path: PathBuf,
    record: Record,
    /// The lock, unless a run in progress has it.
    lock: Option<File>,
}

impl Folder {
    fn open(state: &Path) -> Result<Self, HostError> {
        let folder = Self(state.join("kernel"));
        folder.make().map_err(|source| folder.error(source))?;
        Ok(folder)
    }

    /// Makes the folder and its missing parents durably.
    fn make(&self) -> io::Result<()> {
        // A relative path is based on the working folder.
        let folder = std::path::absolute(&self.0)?;
        let missing = folder.ancestors().take_while(|at| !at.exists()).count();
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&folder)?;
        for above in folder.ancestors().skip(1).take(missing) {
            File::open(above)?.sync_all()?;
        }
        Ok(())
    }

    fn error(&self, source: io::Error) -> HostError {
        HostError::Journal {
            path: self.0.clone(),
            source,
        }
    }

    /// Keeps other processes from starting or cleaning up meanwhile.
    fn turn(&self) -> Result<File, HostError> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let file = options
            .open(self.0.join("lock"))
            .map_err(|source| self.error(source))?;
        let began = Stopwatch::start();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if began.elapsed() < TURN => pause(LOOK),
                Err(TryLockError::WouldBlock) => {
                    return Err(self.error(io::ErrorKind::ResourceBusy.into()));
                }
                Err(TryLockError::Error(source)) => return Err(self.error(source)),
            }
        }
    }

    /// Writes a journal under another name, locks it, and renames it: it is never visible half written, nor unlocked
    /// while its run lives.
    fn write(&self, record: &Record) -> io::Result<(PathBuf, File)> {
        let draft = self.0.join(format!("{}.draft", record.pid));
        let mut file = File::create(&draft)?;
        file.lock()?;
        let mut text = serde_json::to_vec_pretty(record)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.sync_all()?;
        let path = self.free(record.pid)?;
        fs::rename(&draft, &path)?;
        File::open(&self.0)?.sync_all()?;
        Ok((path, file))
    }

    /// An unused name. A process has two journals if it has two systems at a time, and in a container a killed process
    /// may have had the same number. The turn prevents a race for the name.
    fn free(&self, pid: u32) -> io::Result<PathBuf> {
        let names = (2..).map(|more| format!("{pid}-{more}.json"));
        for name in std::iter::once(format!("{pid}.json")).chain(names) {
            let path = self.0.join(name);
            if !path.try_exists()? {
                return Ok(path);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// All journals, with the locks of abandoned ones.
    fn journals(&self) -> Result<Vec<Found>, HostError> {
        let mut found = Vec::new();
        let entries = fs::read_dir(&self.0).map_err(|source| self.error(source))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|end| end == "json") {
                found.extend(self::found(&path)?);
            }
        }
        Ok(found)
    }
}

/// The journal in a file; `None` if its run has just ended.
fn found(path: &Path) -> Result<Option<Found>, HostError> {
    let error = |source: io::Error| HostError::Journal {
        path: path.to_path_buf(),
        source,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(error(e)),
    };
    let lock = match file.try_lock() {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(e)) => return Err(error(e)),
    };
    // Removed between open and lock.
    if file.metadata().map_err(error)?.nlink() == 0 {
        return Ok(None);
    }
    let record: Record = serde_json::from_reader(&file).map_err(|e| error(e.into()))?;
    if ![SETTINGS, SCHEMA].contains(&record.schema.as_str()) {
        let message = format!(
            "its form is {}, and this version knows {SETTINGS} and {SCHEMA}",
            record.schema
        );
        return Err(error(io::Error::other(message)));
    }
    Ok(Some(Found {
        path: path.to_path_buf(),
        record,
        lock: lock.then_some(file),
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A file in place of a kernel setting.
    fn setting(dir: &Path, name: &str, value: &str) -> Entry {
        let path = dir.join(name);
        fs::write(&path, value).unwrap();
        let path = path.to_str().unwrap().to_owned();
        Entry {
            restore: path.clone(),
            path,
            old: value.to_owned(),
        }
    }

    fn leave(journal: Journal) {
        // As after a kill: the lock is released, the file stays.
        let mut journal = journal;
        journal.done = true;
    }

    #[test]
    fn no_journal_takes_anothers_place() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| setting(dir.path(), name, "1"));
        let state = dir.path().join("state");
        // One remains from a process of the same number, and two are locked at once.
        leave(Journal::begin(&state, vec![a.clone()]).unwrap());
        let held = [&b, &c].map(|one| Journal::begin(&state, vec![one.clone()]).unwrap());
        for one in [&a, &b, &c] {
            write(&one.path, "0").unwrap();
        }
        for journal in held {
            journal.finish().unwrap();
        }
        restore(&state, Gone::Keep).unwrap();
        for one in [&a, &b, &c] {
            assert_eq!(read(&one.path).unwrap(), "1", "{one:?}");
        }
    }

    #[test]
    fn a_journal_puts_back_and_goes() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (
            setting(dir.path(), "a", "1"),
            setting(dir.path(), "b", "x y"),
        );
        let state = dir.path().join("state");
        let journal = Journal::begin(&state, vec![a.clone(), b.clone()]).unwrap();
        assert_eq!(fs::read_dir(state.join("kernel")).unwrap().count(), 2);
        write(&a.path, "0").unwrap();
        write(&b.path, "z").unwrap();
        journal.put_back().unwrap();
        assert_eq!(
            (read(&a.path).unwrap(), read(&b.path).unwrap()),
            ("1".into(), "x y".into())
        );
        write(&a.path, "0").unwrap();
        drop(journal);
        assert_eq!(read(&a.path).unwrap(), "1");
        assert_eq!(restore(&state, Gone::Keep).unwrap(), Restoration::default());
        assert_eq!(fs::read_dir(state.join("kernel")).unwrap().count(), 1);
    }

    #[test]
    fn what_a_dead_run_left_is_put_back_and_what_a_live_one_holds_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (setting(dir.path(), "a", "1"), setting(dir.path(), "b", "5"));
        let state = dir.path().join("state");
        let journal = Journal::begin(&state, vec![a.clone()]).unwrap();
        write(&a.path, "0").unwrap();
        let pid = std::process::id();
        let held = restore(&state, Gone::Keep).unwrap();
        assert_eq!(held.held, [(a.path.clone(), pid)]);
        assert_eq!(read(&a.path).unwrap(), "0", "a live run's setting stays");
        let refused = Journal::begin(&state, vec![b, a.clone()]).unwrap_err();
        assert!(matches!(refused, HostError::KernelBusy { .. }), "{refused}");
        leave(journal);
        let done = restore(&state, Gone::Keep).unwrap().restored;
        let expected = Restored {
            path: a.path.clone(),
            found: "0".into(),
            value: "1".into(),
            pid,
        };
        assert_eq!(done, [expected]);
        assert_eq!(read(&a.path).unwrap(), "1");
    }

    /// The remains of a file system whose making was interrupted before the mount.
    fn image(folder: &Path) -> PathBuf {
        fs::create_dir_all(folder.join("001")).unwrap();
        let image = folder.join("001.image");
        fs::write(&image, "written in part").unwrap();
        image
    }

    #[test]
    fn file_systems_of_a_dead_run_are_taken_away_after_a_restart_too() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let folder = fs::canonicalize(dir.path()).unwrap().join("work");
        let made = || Changes {
            entries: Vec::new(),
            disks: vec![folder.clone(), dir.path().join("none")],
        };
        let pid = std::process::id();
        let left = image(&folder);
        let journal = Journal::begin(&state, made()).unwrap();
        let held = restore(&state, Gone::Keep).unwrap().held;
        assert_eq!(held[0], (folder.to_str().unwrap().to_owned(), pid));
        assert!(left.exists(), "a live run's stays");
        journal.finish().unwrap();
        assert!(!left.exists() && !folder.exists());
        for boot_then in [boot_id().unwrap(), "an earlier one".to_owned()] {
            image(&folder);
            leave(Journal::begin(&state, made()).unwrap());
            let path = state.join(format!("kernel/{pid}.json"));
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(SCHEMA), "{text}");
            fs::write(&path, text.replace(&boot_id().unwrap(), &boot_then)).unwrap();
            let done = restore(&state, Gone::Keep).unwrap();
            assert_eq!(done.cleared, [(folder.join("001"), pid)]);
            assert!(!folder.exists() && !path.exists());
        }
        // A version that only knows settings is not affected.
        let a = setting(dir.path(), "a", "1");
        let journal = Journal::begin(&state, vec![a]).unwrap();
        let text = fs::read_to_string(state.join(format!("kernel/{pid}.json"))).unwrap();
        assert!(text.contains(SETTINGS) && !text.contains("disks"), "{text}");
        journal.finish().unwrap();
    }

    #[test]
    fn journals_from_before_a_restart_put_nothing_back() {
        let dir = tempfile::tempdir().unwrap();
        let a = setting(dir.path(), "a", "1");
        let state = dir.path().join("state");
        leave(Journal::begin(&state, vec![a.clone()]).unwrap());
        write(&a.path, "0").unwrap();
        let path = state.join(format!("kernel/{}.json", std::process::id()));
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(&boot_id().unwrap(), "an earlier one")).unwrap();
        assert_eq!(restore(&state, Gone::Keep).unwrap(), Restoration::default());
        assert_eq!(read(&a.path).unwrap(), "0");
        assert!(!path.exists());
    }

    #[test]
    fn a_value_that_can_not_be_put_back_keeps_its_journal_and_the_others_are_put_back() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (setting(dir.path(), "a", "1"), setting(dir.path(), "b", "2"));
        let state = dir.path().join("state");
        leave(Journal::begin(&state, vec![a.clone(), b.clone()]).unwrap());
        write(&a.path, "0").unwrap();
        fs::remove_file(&b.path).unwrap();
        fs::create_dir(&b.path).unwrap();
        let error = restore(&state, Gone::Keep).unwrap_err();
        assert!(matches!(error, HostError::PutBack { .. }), "{error}");
        assert_eq!(read(&a.path).unwrap(), "1");
        fs::remove_dir(&b.path).unwrap();
        fs::write(&b.path, "9").unwrap();
        assert_eq!(restore(&state, Gone::Keep).unwrap().restored.len(), 1);
        assert_eq!(read(&b.path).unwrap(), "2");
    }

    #[test]
    fn a_setting_that_is_gone_is_told_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (setting(dir.path(), "a", "1"), setting(dir.path(), "b", "2"));
        let state = dir.path().join("state");
        let journal = Journal::begin(&state, vec![a.clone(), b.clone()]).unwrap();
        write(&a.path, "0").unwrap();
        fs::remove_file(&b.path).unwrap();
        let error = journal.put_back().unwrap_err();
        assert!(matches!(error, HostError::PutBack { .. }), "{error}");
        leave(journal);
        write(&a.path, "0").unwrap();
        let done = restore(&state, Gone::Keep).unwrap();
        assert_eq!(done.gone, [(b.path.clone(), "2".to_owned())]);
        assert_eq!(
            (done.restored.len(), read(&a.path).unwrap()),
            (1, "1".into())
        );
        // It may reappear.
        fs::write(&b.path, "9").unwrap();
        assert_eq!(restore(&state, Gone::Keep).unwrap().restored.len(), 1);
        assert_eq!(read(&b.path).unwrap(), "2");
        leave(Journal::begin(&state, vec![b.clone()]).unwrap());
        fs::remove_file(&b.path).unwrap();
        assert_eq!(restore(&state, Gone::Forget).unwrap().gone.len(), 1);
        let nothing = Restoration::default();
        assert_eq!(restore(&state, Gone::Keep).unwrap(), nothing);
    }

    /// Events of a run with changed settings.
    #[derive(Debug, Clone)]
    enum Happens {
        /// A setting is changed, for another cell; a new run starts if none is in progress.
        Change(usize, String),
        /// All are restored between two trials.
        PutBack,
        /// The run ends.
        Finish,
        /// It is killed.
        Kill,
        /// It is killed after it restored so many.
        KillWhilePuttingBack(usize),
        /// Another process restores what killed runs left changed.
        Restore,
    }

    fn happens() -> impl Strategy<Value = Happens> {
        prop_oneof![
            4 => (0..FIRST.len(), "[0-9]{2}[ 0-9][0-9]").prop_map(|(at, to)| Happens::Change(at, to)),
            1 => Just(Happens::PutBack),
            1 => Just(Happens::Finish),
            1 => Just(Happens::Kill),
            1 => (0..FIRST.len()).prop_map(Happens::KillWhilePuttingBack),
            1 => Just(Happens::Restore),
        ]
    }

    /// All as long as the values written over them: a plain file, unlike a kernel's, keeps the rest of a longer value.
    const FIRST: [&str; 3] = ["1234", "40\t6", "none"];

    fn are_first(entries: &[Entry]) -> bool {
        let is_first = |(entry, first): (&Entry, _)| same(&read(&entry.path).unwrap(), first);
        entries.iter().zip(FIRST).all(is_first)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]
        /// Whatever happens, the files have their first values in the end.
        #[test]
        fn the_first_values_come_back(all in prop::collection::vec(happens(), 1..16)) {
            let dir = tempfile::tempdir().unwrap();
            let state = dir.path().join("state");
            let entries: Vec<Entry> = (0..).zip(FIRST)
                .map(|(at, first): (u32, _)| setting(dir.path(), &at.to_string(), first))
                .collect();
            let mut under_way: Option<Journal> = None;
            for one in all {
                match (one, under_way.take()) {
                    (Happens::Change(at, to), journal) => {
                        let journal = journal.unwrap_or_else(|| {
                            // A run first restores what others left changed, then reads the old values.
                            restore(&state, Gone::Keep).unwrap();
                            let now = entries.iter().map(|entry| Entry {
                                old: read(&entry.path).unwrap(),
                                ..entry.clone()
                            });
                            Journal::begin(&state, now.collect::<Vec<_>>()).unwrap()
                        });
                        write(&entries[at].path, &to).unwrap();
                        under_way = Some(journal);
                    }
                    (Happens::PutBack, Some(journal)) => {
                        journal.put_back().unwrap();
                        prop_assert!(are_first(&entries));
                        under_way = Some(journal);
                    }
                    (Happens::Finish, Some(journal)) => {
                        journal.finish().unwrap();
                        prop_assert!(are_first(&entries));
                    }
                    (Happens::Kill, Some(journal)) => leave(journal),
                    (Happens::KillWhilePuttingBack(many), Some(journal)) => {
                        put_back(&journal.changes.entries[FIRST.len() - many..]).unwrap();
                        leave(journal);
                    }
                    (Happens::Restore, journal) => {
                        let done = restore(&state, Gone::Keep).unwrap();
                        prop_assert!(journal.is_none() || done.restored.is_empty());
                        prop_assert!(journal.is_some() || are_first(&entries));
                        under_way = journal;
                    }
                    (_, None) => {}
                }
            }
            drop(under_way);
            restore(&state, Gone::Keep).unwrap();
            prop_assert!(are_first(&entries));
            if let Ok(left) = fs::read_dir(state.join("kernel")) {
                prop_assert_eq!(left.count(), 1, "the lock alone is left");
            }
        }
    }
}
