//! A server in a process of its own: its threads commit batches until it is stopped, and report the
//! results, one line each.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use groupware_postgres::{Database, OpenError, open};
use groupware_store::{Batch, Record, Store, StoreOptions};
use plimsoll_tests::relay::pause;

use crate::history::{Answer, batch, patient};

/// The number of threads that write independent batches, besides one that extends the chain.
const WRITERS: u32 = 3;
/// The size of each thread's own range of numbers.
const NUMBERS: u32 = 1 << 17;
/// The number of servers of one life with distinct numbers.
pub(crate) const MOST_FRONTS: u32 = u32::MAX / (NUMBERS * (WRITERS + 1));
/// The pause between two batches of a thread.
const REST: Duration = Duration::from_millis(2);
/// The pause after a temporary failure.
const RESPITE: Duration = Duration::from_millis(20);

/// The first number of a server.
pub(crate) fn first_of(front: u32) -> u32 {
    assert!(front < MOST_FRONTS, "one life has fewer servers");
    front * NUMBERS * (WRITERS + 1)
}

/// Runs until its input ends.
pub(crate) fn run(address: &str, first: &str) {
    let at = Database::parse(address).expect("an address");
    let first: u32 = first.parse().expect("a number");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            stop.store(true, Relaxed);
        });
        let Some(store) = opened(&at, &stop) else {
            return;
        };
        let (store, stop) = (&store, &stop);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let from = first + writer * NUMBERS;
                scope.spawn(move || write(store, from, stop));
            }
            scope.spawn(move || link(store, first + WRITERS * NUMBERS, stop));
        });
    });
}

/// Opens the store as soon as it is available.
fn opened(at: &Database, stop: &AtomicBool) -> Option<Store> {
    while !stop.load(Relaxed) {
        match open(at, &StoreOptions::default(), &patient()) {
            Ok(store) => return Some(store),
            // Another server that was opening it was killed, or is halted.
            Err(OpenError::Away { .. } | OpenError::InUse { .. }) => pause(RESPITE),
            Err(error) => panic!("{error:?}"),
        }
    }
    None
}

fn write(store: &Store, from: u32, stop: &AtomicBool) {
    for number in from..from + NUMBERS {
        if stop.load(Relaxed) {
            return;
        }
        match Answer::of(store.commit_blocking(batch(number))) {
            Answer::Stored => println!("stored {number}"),
            Answer::Refused => println!("refused {number}"),
            Answer::Unknown => println!("unknown {number}"),
            Answer::Conflict => println!("conflict {number}"),
            Answer::Failed(why) => println!("failed {number} {why}"),
        }
        pause(REST);
    }
}

/// Adds links to a chain that all servers extend: each reads the end and adds the next link, or none.
fn link(store: &Store, from: u32, stop: &AtomicBool) {
    let mut least = 0;
    for number in from..from + NUMBERS {
        if stop.load(Relaxed) {
            return;
        }
        pause(REST);
        let found = store.read(|snapshot| snapshot.get("chain", b"end"));
        let Ok(found) = found else {
            pause(RESPITE);
            continue;
        };
        let at = found.as_ref().map_or(0, end);
        if at < least {
            println!("behind {at} {least}");
        }
        least = least.max(at);
        match Answer::of(store.commit_blocking(next(found.as_ref(), at + 1, number))) {
            Answer::Stored => {
                least = at + 1;
                println!("linked {number} {least}");
            }
            Answer::Refused => println!("unlinked {number}"),
            Answer::Unknown => println!("open {number}"),
            Answer::Conflict => println!("outrun {number}"),
            Answer::Failed(why) => println!("failed {number} {why}"),
        }
    }
}

/// Returns the length of the chain.
pub(crate) fn end(record: &Record) -> u64 {
    u64::from_be_bytes((&*record.value).try_into().expect("eight bytes"))
}

/// Builds the batch for the next link. Nothing asserts that its place is free: the assert on the end covers that.
fn next(found: Option<&Record>, at: u64, number: u32) -> Batch {
    let mut batch = Batch::new();
    match found {
        Some(record) => batch.assert_revision("chain", b"end", record.revision),
        None => batch.assert_absent("chain", b"end"),
    };
    batch.put("chain", b"end", at.to_be_bytes().to_vec()).put(
        "links",
        at.to_be_bytes(),
        number.to_be_bytes().to_vec(),
    );
    batch
}
