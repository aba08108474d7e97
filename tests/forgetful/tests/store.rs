//! The store on a disk that forgets: everything acknowledged is there after every crash, and no batch is there in part.

mod common;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;

use common::{CONTROL, MOST_CALLS, Verdict, crash_while, disk, is_found_out, scratch, survives};
use groupware_store::{Batch, CommitError, Store, StoreError, StoreOptions};
use nix::errno::Errno;
use plimsoll_forgetful::{Call, Fault, Lie, Mounted, seed};

const WRITERS: u64 = 3;

/// Per writer, the number of the last acknowledged batch.
type Known = Arc<Mutex<Vec<u64>>>;

/// Little may be pending for the tree, so that most crashes find a write to it under way.
fn open(folder: &Path) -> Store {
    let options = StoreOptions::default().pending_bytes(8 << 10);
    Store::open_sqlite(folder, options).expect("a store opens after a crash")
}

/// Three records and a counter, atomically; the previous record is removed. Every seventh is large.
fn batch(writer: u64, number: u64) -> Batch {
    let bytes = if number.is_multiple_of(7) {
        30_000
    } else {
        200
    };
    let mut batch = Batch::new();
    for part in ["left", "middle", "right"] {
        let partition = format!("{part}-{writer}");
        batch.put(
            partition.as_str(),
            number.to_be_bytes(),
            vec![number as u8; bytes],
        );
        if number > 1 {
            batch.delete(partition.as_str(), (number - 1).to_be_bytes());
        }
    }
    batch.add("counters", writer.to_be_bytes(), vec![1]);
    batch
}

fn write(store: &Store, known: &Known, stop: &AtomicBool, writer: u64) {
    for number in 1.. {
        if stop.load(Relaxed) {
            return;
        }
        match store.commit_blocking(batch(writer, number)) {
            Ok(_) => known.lock().unwrap()[writer as usize] = number,
            Err(CommitError::Closed) => return,
            Err(error) => panic!("writer {writer}, batch {number}: {error}"),
        }
    }
}

/// Returns the batch that a partition shows, if its value is right.
fn shown(store: &Store, part: &str, writer: u64) -> Result<u64, String> {
    let partition = format!("{part}-{writer}");
    let mut numbers = Vec::new();
    let scanned = store.read(|snapshot| {
        snapshot.scan(&partition, &[], None, 10, &mut |key, record| {
            let number = u64::from_be_bytes(key.try_into().expect("eight bytes"));
            let is_whole = record.value.iter().all(|byte| *byte == number as u8);
            numbers.push((number, is_whole));
            ControlFlow::Continue(())
        })
    });
    scanned.map_err(|error: StoreError| format!("{partition}: {error}"))?;
    match numbers[..] {
        [] => Ok(0),
        [(number, true)] => Ok(number),
        _ => Err(format!("{partition}: {numbers:?}")),
    }
}

/// Returns what is wrong with a store after a crash at which this was known.
fn verdict(folder: &Path, known: &[u64]) -> Verdict {
    let store = match Store::open_sqlite(folder, StoreOptions::default()) {
        Ok(store) => store,
        Err(error) => return Err(format!("it doesn't open: {error}")),
    };
    let faults = store.integrity().map_err(|error| error.to_string())?;
    if !faults.is_empty() {
        return Err(format!("damaged: {}", faults.join("; ")));
    }
    for writer in 0..WRITERS {
        let left = shown(&store, "left", writer)?;
        let middle = shown(&store, "middle", writer)?;
        let right = shown(&store, "right", writer)?;
        if left != middle || middle != right {
            return Err(format!(
                "writer {writer}: in part: {left}, {middle}, {right}"
            ));
        }
        let counted = counted(&store, writer);
        if counted != left {
            return Err(format!(
                "writer {writer}: {left} is shown, {counted} are counted"
            ));
        }
        let acknowledged = known[writer as usize];
        if left < acknowledged {
            return Err(format!(
                "writer {writer}: {acknowledged} was acknowledged, {left} is there"
            ));
        }
    }
    Ok(())
}

fn counted(store: &Store, writer: u64) -> u64 {
    let record = store
        .read(|snapshot| snapshot.get("counters", &writer.to_be_bytes()))
        .expect("a store reads after a crash");
    record.map_or(0, |record| {
        groupware_store::counters(&record.value)
            .next()
            .unwrap_or_default() as u64
    })
}

/// Writes to this disk while it crashes; returns the number of bad images and the first fault.
fn run(disk: &Mounted, crashes: u64) -> (u64, Option<String>) {
    let folder = disk.path().join("data");
    let store = open(&folder);
    let known: Known = Arc::new(Mutex::new(vec![0; WRITERS as usize]));
    let stop = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, known, stop) = (&store, &known, &stop);
            scope.spawn(move || write(store, known, stop, writer));
        }
        let outcome = crash_while(
            disk,
            (crashes, MOST_CALLS),
            || known.lock().unwrap().clone(),
            |image, known| verdict(&image.join("data"), &known),
        );
        stop.store(true, Relaxed);
        outcome
    });
    store.close_blocking();
    outcome
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_is_there_in_part() {
    survives(150, run);
}

/// Without the log's sync, acknowledged batches are lost: this test detects it.
#[test]
fn a_log_that_is_not_synced_is_found_out() {
    is_found_out(seed(2), Lie::Files("-wal".to_owned()), CONTROL, run);
}

#[test]
fn a_folder_that_is_not_synced_is_found_out() {
    is_found_out(seed(3), Lie::Folders("/".to_owned()), CONTROL, run);
}

/// A disk that refuses a write or a sync now and then: each batch is acknowledged or refused, and acknowledged batches
/// are there.
#[test]
fn errors_of_the_disk_lose_nothing() {
    let (mut refused, mut crashed) = (0, 0);
    let first = seed(0);
    for round in first..first + 24 {
        let Some(disk) = disk(round) else {
            return;
        };
        let call = [Call::Write, Call::Sync][round as usize % 2];
        let errno = [Errno::EIO, Errno::ENOSPC][round as usize / 2 % 2];
        let folder = disk.path().join("data");
        let store = open(&folder);
        disk.fail(Fault {
            call,
            after: 3 + round * 5 % 241,
            times: 1 + round % 3,
            errno: errno as i32,
        });
        let mut known = vec![0; WRITERS as usize];
        for number in 1..60 {
            match store.commit_blocking(batch(0, number)) {
                Ok(_) => known[0] = number,
                Err(_) => {
                    refused += 1;
                    break;
                }
            }
        }
        disk.heal();
        let image = scratch();
        disk.crash(image.path());
        crashed += 1;
        verdict(&image.path().join("data"), &known)
            .unwrap_or_else(|wrong| panic!("round {round}, {call:?}, {errno}: {wrong}"));
        store.close_blocking();
        drop(store);
    }
    assert!(refused > 8, "{refused} of {crashed} rounds met the fault");
}

#[test]
fn a_store_reads_and_writes_here_as_anywhere() {
    let Some(disk) = disk(0) else {
        return;
    };
    let store = open(&disk.path().join("data"));
    store.commit_blocking(batch(0, 1)).unwrap();
    assert_eq!(shown(&store, "left", 0), Ok(1));
    store.close_blocking();
}
