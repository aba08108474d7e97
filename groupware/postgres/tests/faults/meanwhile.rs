//! Clients that write through handles of this process during a fault.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use groupware_postgres::Database;
use groupware_store::Store;
use plimsoll_tests::wait_until;

use crate::history::{Answer, Outcomes, batch, patient};
use crate::support::store;

/// Commits batches with numbers from `first` on until it is stopped.
fn write(store: &Store, first: u32, stop: &AtomicBool) -> Outcomes {
    let mut told = Outcomes::default();
    for number in first.. {
        if stop.load(Ordering::Relaxed) {
            return told;
        }
        match Answer::of(store.commit_blocking(batch(number))) {
            Answer::Stored => told.stored.push(number),
            Answer::Unknown => told.unknown.push(number),
            Answer::Refused => told.refused.push(number),
            Answer::Conflict => panic!("{number}: nobody else has this number"),
            Answer::Failed(why) => panic!("{number}: {why}"),
        }
    }
    unreachable!("there are enough numbers")
}

/// Each writer has numbers of its own.
const NUMBERS: u32 = 1_000_000;

/// Runs several threads that write through several handles during a fault.
pub(crate) fn meanwhile(stores: &[Store], work: impl FnOnce()) -> Vec<Outcomes> {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..)
            .zip(stores.iter().cycle().take(8))
            .map(|(at, store)| {
                let stop = &stop;
                scope.spawn(move || write(store, at * NUMBERS, stop))
            })
            .collect();
        work();
        stop.store(true, Ordering::Relaxed);
        let told = writers.into_iter().map(|writer| writer.join().unwrap());
        told.collect()
    })
}

pub(crate) fn count(told: &[Outcomes]) -> (usize, usize, usize) {
    told.iter().fold((0, 0, 0), |sum, told| {
        let (stored, refused) = (sum.0 + told.stored.len(), sum.1 + told.refused.len());
        (stored, refused, sum.2 + told.unknown.len())
    })
}

pub(crate) fn stores(at: &Database, count: usize) -> Vec<Store> {
    (0..count).map(|_| store(at, &patient())).collect()
}

/// The groups committed so far by all handles.
fn groups(stores: &[Store]) -> u64 {
    stores.iter().map(|store| store.stats().commits).sum()
}

pub(crate) fn after_more(stores: &[Store], commits: u64) {
    let before = groups(stores);
    let limit = Duration::from_secs(120);
    wait_until(limit, "more commits", || groups(stores) >= before + commits);
}
