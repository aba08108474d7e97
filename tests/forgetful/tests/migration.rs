//! A store of an older version, migrated on a disk that forgets, with a crash at every call of the migration: whichever
//! version is there afterwards, it has all the data of the older one and opens as usual.

mod common;

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{Verdict, scratch, survives};
use groupware_store::{Batch, Store, StoreOptions};
use plimsoll_forgetful::{Crash, Mounted};

const FILE: &str = "groupware.sqlite";
/// Records of the older store; some have large values in separate rows.
const RECORDS: u64 = 200;

/// The statements that turn a store into one of the previous version, or of the version before that.
const OLDER: [&str; 2] = [
    "DROP TABLE pending; PRAGMA user_version = 2",
    "DROP TABLE large_values; DROP TABLE pending; PRAGMA user_version = 1",
];

/// The number of batches acknowledged since the older store was complete; `None` until it is.
type Known = Arc<Mutex<Option<u64>>>;

fn open(folder: &Path) -> Store {
    let options = StoreOptions::default().pending_bytes(1 << 10);
    Store::open_sqlite(folder, options).expect("an older store opens")
}

/// Returns the database file of a store of an older version.
fn older(version: &str) -> Vec<u8> {
    let folder = scratch();
    let store = open(folder.path());
    let large = version.contains("= 2");
    for number in 0..RECORDS {
        let bytes = if large && number.is_multiple_of(50) {
            20_000
        } else {
            100
        };
        let mut batch = Batch::new();
        batch.put("older", number.to_be_bytes(), vec![number as u8; bytes]);
        store.commit_blocking(batch).expect("a batch is committed");
    }
    store.close_blocking();
    drop(store);
    let file = folder.path().join(FILE);
    let connection = rusqlite::Connection::open(&file).expect("a closed store can be opened");
    connection.execute_batch(version).expect("tables go");
    drop(connection);
    fs::read(&file).expect("a database can be read")
}

/// Writes the older store to the disk, durably.
fn lay(folder: &Path, database: &[u8]) {
    let _not_there_yet = fs::remove_dir_all(folder);
    fs::create_dir(folder).expect("a folder can be made");
    let file = folder.join(FILE);
    fs::write(&file, database).expect("a database can be laid");
    let synced = [
        file.as_path(),
        folder,
        folder.parent().expect("it is below a disk"),
    ];
    for path in synced {
        let opened = File::open(path).expect("what was laid can be opened");
        opened.sync_all().expect("what was laid can be synced");
    }
}

/// Migrates the store and writes a little, over and over.
fn bring_up_to_date(folder: &Path, database: &[u8], known: &Known, stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        lay(folder, database);
        *known.lock().unwrap() = Some(0);
        let store = open(folder);
        for number in 0..4_u64 {
            let mut batch = Batch::new();
            batch.put("later", number.to_be_bytes(), vec![1; 700]);
            store.commit_blocking(batch).expect("a batch is committed");
            *known.lock().unwrap() = Some(number + 1);
        }
        store.close_blocking();
        drop(store);
        *known.lock().unwrap() = None;
    }
}

/// Returns the numbers in a partition whose records are all whole.
fn numbers(store: &Store, partition: &str) -> Result<Vec<u64>, String> {
    let mut numbers = Vec::new();
    let scanned = store.read(|snapshot| {
        snapshot.scan(partition, &[], None, usize::MAX, &mut |key, record| {
            let number = u64::from_be_bytes(key.try_into().expect("eight bytes"));
            let byte = if partition == "older" {
                number as u8
            } else {
                1
            };
            if record.value.iter().all(|value| *value == byte) {
                numbers.push(number);
            }
            ControlFlow::Continue(())
        })
    });
    scanned.map_err(|error| format!("{partition}: {error}"))?;
    Ok(numbers)
}

fn verdict(folder: &Path, known: Option<u64>) -> Verdict {
    let Some(acknowledged) = known else {
        return Ok(());
    };
    let store = Store::open_sqlite(folder, StoreOptions::default());
    let store = store.map_err(|error| format!("it doesn't open: {error}"))?;
    let faults = store.integrity().map_err(|error| error.to_string())?;
    if !faults.is_empty() {
        return Err(format!("damaged: {}", faults.join("; ")));
    }
    let older = numbers(&store, "older")?;
    if !older.iter().copied().eq(0..RECORDS) {
        return Err(format!("of {RECORDS} records {} are there", older.len()));
    }
    let later = numbers(&store, "later")?.len() as u64;
    match later < acknowledged {
        true => Err(format!("{acknowledged} was acknowledged, {later} is there")),
        false => Ok(()),
    }
}

/// Crashes at nearly every call while a store of this version is migrated again and again. The images are checked after
/// the end: SQLite opens files under one lock of the whole program, and holds it at some crashes.
fn run(disk: &Mounted, crashes: u64, version: &str) -> (u64, Option<String>) {
    let folder = disk.path().join("data");
    let database = older(version);
    let known: Known = Arc::default();
    let (stop, below) = (AtomicBool::new(false), scratch());
    let images: Vec<Crash<Option<u64>>> = thread::scope(|scope| {
        scope.spawn(|| bring_up_to_date(&folder, &database, &known, &stop));
        let mut taken = disk.crashes(crashes, 2, below.path());
        let images = std::iter::from_fn(|| taken.next(|| *known.lock().unwrap())).collect();
        stop.store(true, Relaxed);
        images
    });
    let met = images.iter().filter(|crash| crash.known.is_some()).count();
    assert!(met * 2 > images.len(), "{met} crashes met the older store");
    let wrong = images.iter().filter_map(|crash| {
        let wrong = verdict(&crash.folder.join("data"), crash.known).err()?;
        Some(format!("before call {}: {wrong}", crash.call))
    });
    let wrong: Vec<String> = wrong.collect();
    (wrong.len() as u64, wrong.into_iter().next())
}

#[test]
fn a_store_of_the_version_before_survives_being_brought_up_to_date() {
    survives(150, |disk, crashes| run(disk, crashes, OLDER[0]));
}

#[test]
fn a_store_of_the_first_version_survives_being_brought_up_to_date() {
    survives(150, |disk, crashes| run(disk, crashes, OLDER[1]));
}
