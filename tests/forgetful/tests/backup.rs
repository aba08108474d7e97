//! Backups on a disk that forgets: a named backup is there after every crash, whole, with all that it refers to; an
//! unfinished one is not taken for a backup.
//!
//! The backups are made in a process of their own. A crash blocks the file system call that is under way, and SQLite
//! makes some calls under a lock of the whole process; the check of the image would wait for that lock in vain.

mod common;

use std::io::{BufRead, BufReader, Write, stdin};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::thread;

use common::{Control, Verdict, crash_while, is_found_out, scratch, survives};
use groupware_backup::{check, list, prune, restore, take};
use groupware_content::ContentStore;
use groupware_people::{Account, Credentials, UserName};
use groupware_store::{Batch, Store, StoreOptions};
use plimsoll_forgetful::{Lie, Mounted, seed};

/// A backup makes some hundreds of calls.
const MOST_CALLS: u64 = 300;
const KEPT: usize = 3;

/// The folders of the maker's data and of its backups.
const DATA: &str = "PLIMSOLL_TEST_DATA";
const BACKUPS: &str = "PLIMSOLL_TEST_BACKUPS";

/// Data that grows by an attachment from one backup to the next.
struct Data {
    store: Store,
    content: ContentStore,
}

impl Data {
    fn new(folder: &Path) -> Self {
        let options = StoreOptions::default().pending_bytes(8 << 10);
        let store = Store::open_sqlite(folder, options).unwrap();
        let content = ContentStore::open(folder).unwrap();
        let ada = Account::new(UserName::parse("ada").unwrap(), 0, Credentials::default());
        let mut batch = Batch::new();
        let stored = ada.stored(&Credentials::default());
        batch.put("$accounts", b"ada".to_vec(), stored);
        store.commit_blocking(batch).unwrap();
        Self { store, content }
    }

    fn grow(&self, number: u64) {
        let text = format!("content {number} ").repeat(2000);
        let mut file = self.content.create_whole("new", None).unwrap();
        file.append(text.as_bytes()).unwrap();
        let pin = file.finish().unwrap();
        let reference = format!("d/c/{}/notes/0/Body/a", pin.hash());
        let mut batch = Batch::new();
        let bytes = (text.len() as u64).to_be_bytes();
        batch.put("ada", reference.into_bytes(), bytes.to_vec());
        self.store.commit_blocking(batch).unwrap();
    }
}

/// Makes backups, reports each, and waits for the reply before it removes old ones; until it is killed or the reader is
/// gone.
#[test]
#[ignore = "a helper of the other tests"]
fn makes_backups() {
    let (Some(data), Some(backups)) = (std::env::var_os(DATA), std::env::var_os(BACKUPS)) else {
        return;
    };
    let (folder, backups) = (PathBuf::from(data), PathBuf::from(backups));
    let data = Data::new(&folder);
    let mut answers = stdin().lines();
    for number in 1.. {
        data.grow(number);
        let name = format!("backup-{number:04}");
        take(&folder, &backups, (&*name, number as i64, "0.0.0")).unwrap();
        println!("finished={name}");
        match answers.next() {
            Some(Ok(_)) => prune(&backups, KEPT).unwrap(),
            _ => break,
        };
    }
}

/// The process that makes backups; it ends on drop.
struct Maker {
    process: Child,
    _data: tempfile::TempDir,
}

impl Maker {
    fn start(backups: &Path) -> (Self, ChildStdin, ChildStdout) {
        let data = scratch();
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "makes_backups"])
            .env(DATA, data.path())
            .env(BACKUPS, backups)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (told, said) = (process.stdin.take(), process.stdout.take());
        let maker = Self {
            process,
            _data: data,
        };
        (maker, told.unwrap(), said.unwrap())
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Records which backups are finished and not to be removed, until their maker ends.
fn note(known: &Mutex<Vec<String>>, (mut to, from): (ChildStdin, ChildStdout)) {
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        let Some((_, name)) = line.split_once("finished=") else {
            continue;
        };
        let mut names = known.lock().unwrap();
        names.push(name.to_owned());
        let old = names.len().saturating_sub(KEPT);
        names.drain(..old);
        drop(names);
        if writeln!(to, "noted").is_err() {
            break;
        }
    }
}

/// Returns what is wrong with backups of which these were finished and not to be removed.
fn verdict(folder: &Path, known: &[String]) -> Verdict {
    if known.is_empty() && !folder.exists() {
        return Ok(());
    }
    let there = match list(folder) {
        Ok(there) => there.whole,
        Err(_) if known.is_empty() => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    for name in known {
        if !there.iter().any(|manifest| manifest.name == *name) {
            return Err(format!("{name} was finished, and isn't there"));
        }
    }
    for manifest in &there {
        let looked = check(folder, manifest).map_err(|error| error.to_string())?;
        if !looked.wrong.is_empty() {
            return Err(format!("{}: {:?}", manifest.name, looked.wrong));
        }
    }
    let Some(newest) = there.last() else {
        return Ok(());
    };
    let to = scratch();
    let restored = restore(folder, newest, &to.path().join("data"));
    restored.map(drop).map_err(|error| error.to_string())
}

fn run(disk: &Mounted, crashes: u64) -> (u64, Option<String>) {
    let known: Mutex<Vec<String>> = Mutex::default();
    thread::scope(|scope| {
        let (maker, to, from) = Maker::start(&disk.path().join("some/backups"));
        scope.spawn(|| note(&known, (to, from)));
        let outcome = crash_while(
            disk,
            (crashes, MOST_CALLS),
            || known.lock().unwrap().clone(),
            |image, known| verdict(&image.join("some/backups"), &known),
        );
        drop(maker);
        assert!(!known.lock().unwrap().is_empty(), "no backup was finished");
        outcome
    })
}

#[test]
fn finished_backups_survive() {
    survives(30, run);
}

/// Without the sync of a file, or of a folder, a named backup isn't whole, or is gone: this test detects it.
#[test]
fn a_sync_left_out_is_found_out() {
    let control = Control {
        crashes: 16,
        by_chance: 2,
    };
    for lie in [
        Lie::Files("/backups/".to_owned()),
        Lie::Folders("/backups".to_owned()),
        Lie::Folders("/some".to_owned()),
    ] {
        is_found_out(seed(2), lie, control, run);
    }
}
