//! The log of changes on a disk that forgets: after every crash, it leads from an empty store to all that the records
//! have, and lacks nothing that was acknowledged.

mod common;

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use common::{CONTROL, MOST_CALLS, Verdict, crash_while, is_found_out, scratch, survives};
use groupware_store::{
    Batch, FILE_NAME, OpenError, Store, StoreError, StoreOptions, copy_records, replay,
};
use plimsoll_forgetful::{Lie, Mounted, seed};

const WRITERS: u64 = 3;
const PARTITION: &str = "records";

type Records = Vec<(Vec<u8>, u64, Vec<u8>)>;

fn open(folder: &Path) -> Result<Store, OpenError> {
    let options = StoreOptions::default().pending_bytes(8 << 10);
    let options = options.changes(folder.join("changes"));
    Store::open_sqlite(folder, options)
}

/// A record of the writer's own that replaces the previous one; every seventh is large.
fn batch(writer: u64, number: u64) -> Batch {
    let bytes = if number.is_multiple_of(7) { 9000 } else { 90 };
    let key = |number: u64| [writer.to_be_bytes(), number.to_be_bytes()].concat();
    let mut batch = Batch::new();
    batch
        .put(PARTITION, key(number), vec![number as u8; bytes])
        .delete(PARTITION, key(number.saturating_sub(5)))
        .add(PARTITION, writer.to_be_bytes(), [1]);
    batch
}

fn records(store: &Store) -> Result<Records, String> {
    let mut found = Records::new();
    let read: Result<(), StoreError> = store.read(|snapshot| {
        snapshot.scan(PARTITION, &[], None, usize::MAX, &mut |key, record| {
            found.push((key.to_vec(), record.revision, record.value.to_vec()));
            ControlFlow::Continue(())
        })
    });
    read.map_err(|error| error.to_string())?;
    Ok(found)
}

/// The number of batches of each writer, by the records.
fn counted(records: &Records) -> Vec<u64> {
    let of = |writer: u64| {
        let key = writer.to_be_bytes();
        let found = records.iter().find(|(at, ..)| at[..] == key);
        found.map_or(0, |(.., value)| {
            groupware_store::counters(value).next().unwrap_or_default() as u64
        })
    };
    (0..WRITERS).map(of).collect()
}

/// Returns what is wrong with records and log after a crash at which `known` was acknowledged.
fn verdict(data: &Path, base: &Path, known: &[u64]) -> Verdict {
    let store = open(data).map_err(|error| format!("it doesn't open: {error}"))?;
    let there = records(&store)?;
    for (writer, (there, known)) in counted(&there).iter().zip(known).enumerate() {
        if there < known {
            return Err(format!(
                "writer {writer}: {known} acknowledged, {there} there"
            ));
        }
    }
    // Changes after a crash are appended to the log.
    let later = store.commit_blocking(batch(WRITERS, 1));
    later.map_err(|error| format!("it takes no writes: {error}"))?;
    let there = records(&store)?;
    store.close_blocking();
    drop(store);
    let forward = scratch();
    let copied = fs::copy(base.join(FILE_NAME), forward.path().join(FILE_NAME));
    copied.map_err(|error| error.to_string())?;
    let replayed = replay(forward.path(), &data.join("changes"), i64::MAX, &mut |_| {});
    replayed.map_err(|error| format!("the log can't be gone through: {error}"))?;
    let forward = Store::open_sqlite(forward.path(), StoreOptions::default());
    let forward = forward.map_err(|error| error.to_string())?;
    let led_to = records(&forward)?;
    forward.close_blocking();
    match led_to == there {
        true => Ok(()),
        false => Err(format!(
            "the log leads to {:?}, the records are at {:?}",
            counted(&led_to),
            counted(&there)
        )),
    }
}

fn run(disk: &Mounted, crashes: u64) -> (u64, Option<String>) {
    let (folder, base) = (disk.path().join("data"), scratch());
    let store = open(&folder).expect("a store opens");
    copy_records(&folder, base.path()).expect("it can be copied");
    let known = Mutex::new(vec![0; WRITERS as usize]);
    let stop = AtomicBool::new(false);
    let outcome = thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (store, known, stop) = (&store, &known, &stop);
            scope.spawn(move || {
                for number in (1..).take_while(|_| !stop.load(Relaxed)) {
                    match store.commit_blocking(batch(writer, number)) {
                        Ok(_) => known.lock().unwrap()[writer as usize] = number,
                        Err(error) => panic!("writer {writer}, batch {number}: {error}"),
                    }
                }
            });
        }
        let outcome = crash_while(
            disk,
            (crashes, MOST_CALLS),
            || known.lock().unwrap().clone(),
            |image, known| verdict(&image.join("data"), base.path(), &known),
        );
        stop.store(true, Relaxed);
        outcome
    });
    store.close_blocking();
    outcome
}

#[test]
fn the_log_leads_to_the_records_after_every_crash() {
    survives(100, run);
}

/// Without its sync, the log lacks acknowledged changes: this test detects it.
#[test]
fn a_log_that_is_not_synced_is_found_out() {
    is_found_out(seed(2), Lie::Files(".changes".to_owned()), CONTROL, run);
}
