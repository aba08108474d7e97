//! Backups on a disk that forgets: one that has its name is there after every crash, whole, with all that it
//! refers to; one that was not finished is not taken for one.

mod common;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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

/// Data that lies elsewhere and grows by an attachment from one backup to the next.
struct Data {
    folder: tempfile::TempDir,
    store: Store,
    content: ContentStore,
}

impl Data {
    fn new() -> Self {
        let folder = scratch();
        let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
        let content = ContentStore::open(folder.path()).unwrap();
        let ada = Account::new(UserName::parse("ada").unwrap(), 0, Credentials::default());
        let mut batch = Batch::new();
        let stored = ada.stored(&Credentials::default());
        batch.put("$accounts", b"ada".to_vec(), stored);
        store.commit_blocking(batch).unwrap();
        Self {
            folder,
            store,
            content,
        }
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

/// What is wrong with backups of which these were finished, and not to be removed.
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
    let (data, folder) = (Data::new(), disk.path().join("some/backups"));
    let known: Mutex<Vec<String>> = Mutex::default();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in (1..).take_while(|_| !stop.load(Relaxed)) {
                data.grow(number);
                let name = format!("backup-{number:04}");
                let at = (&*name, number as i64, "0.0.0");
                take(data.folder.path(), &folder, at).unwrap();
                let mut names = known.lock().unwrap();
                names.push(name);
                let old = names.len().saturating_sub(KEPT);
                names.drain(..old);
                drop(names);
                prune(&folder, KEPT).unwrap();
            }
        });
        let outcome = crash_while(
            disk,
            (crashes, MOST_CALLS),
            || known.lock().unwrap().clone(),
            |image, known| verdict(&image.join("some/backups"), &known),
        );
        stop.store(true, Relaxed);
        outcome
    })
}

#[test]
fn finished_backups_survive() {
    survives(30, run);
}

/// Without the sync of a file, or of a folder, a backup that has its name isn't whole, or is gone: this test
/// finds it.
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
