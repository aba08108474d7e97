//! What clients write while something is done to the database, what they are told of it, and whether what is there
//! agrees with that.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use groupware_postgres::{Database, PostgresOptions};
use groupware_store::{Batch, CommitError, Store, StoreError, counters};
use plimsoll_tests::wait_until;

use crate::support::{few, store};

/// What a client was told of its batches, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) stored: Vec<u32>,
    pub(crate) refused: Vec<u32>,
    pub(crate) unknown: Vec<u32>,
}

/// A batch that is whole or not there: two records in two partitions, and one more in a sum that all add to.
pub(crate) fn batch(number: u32) -> Batch {
    let mut batch = Batch::new();
    let key = number.to_be_bytes();
    batch
        .assert_absent("left", key)
        .put("left", key, "")
        .put("right", key, "");
    batch.add("all", "sum", [1]);
    batch
}

/// Hands in batches with numbers from `first` on until it is told to stop.
fn write(store: &Store, first: u32, stop: &AtomicBool) -> Told {
    let mut told = Told::default();
    for number in first.. {
        if stop.load(Ordering::Relaxed) {
            return told;
        }
        match store.commit_blocking(batch(number)) {
            Ok(_) => told.stored.push(number),
            Err(CommitError::Unknown(_)) => told.unknown.push(number),
            Err(CommitError::Store(StoreError::Away(_))) => told.refused.push(number),
            Err(error) => panic!("{number}: {error:?}"),
        }
    }
    unreachable!("there are enough numbers")
}

/// Each writer has numbers of its own.
const NUMBERS: u32 = 1_000_000;

/// Has several threads write through several handles while something is done to them.
pub(crate) fn meanwhile(stores: &[Store], work: impl FnOnce()) -> Vec<Told> {
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

pub(crate) fn there(store: &Store, partition: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let read = store.read(|snapshot| {
        snapshot.scan(partition, b"", None, usize::MAX, &mut |key, _| {
            found.push(u32::from_be_bytes(key.try_into().unwrap()));
            std::ops::ControlFlow::Continue(())
        })
    });
    read.map_err(|error: StoreError| error).unwrap();
    found
}

/// What is wrong with what is there, by what was told.
pub(crate) fn wrong(store: &Store, told: &[Told]) -> Vec<String> {
    let (left, right) = (there(store, "left"), there(store, "right"));
    let sum = store.read(|snapshot| snapshot.get("all", b"sum")).unwrap();
    let sum = sum.map_or(0, |sum| counters(&sum.value).next().unwrap_or(0));
    let mut wrong = Vec::new();
    if left != right {
        wrong.push("a batch is half there".to_owned());
    }
    if usize::try_from(sum) != Ok(left.len()) {
        wrong.push(format!(
            "{} batches are there, and {sum} were added",
            left.len()
        ));
    }
    let is_there = |number: &u32| left.binary_search(number).is_ok();
    for told in told {
        let lost = told
            .stored
            .iter()
            .filter(|number| !is_there(number))
            .count();
        let kept = told
            .refused
            .iter()
            .filter(|number| is_there(number))
            .count();
        if lost + kept > 0 {
            wrong.push(format!(
                "{lost} were acknowledged and are gone, {kept} were refused and stay"
            ));
        }
    }
    wrong
}

pub(crate) fn count(told: &[Told]) -> (usize, usize, usize) {
    told.iter().fold((0, 0, 0), |sum, told| {
        let (stored, refused) = (sum.0 + told.stored.len(), sum.1 + told.refused.len());
        (stored, refused, sum.2 + told.unknown.len())
    })
}

pub(crate) fn stores(at: &Database, count: usize) -> Vec<Store> {
    (0..count).map(|_| store(at, &patient())).collect()
}

/// Groups committed so far, of all handles.
fn groups(stores: &[Store]) -> u64 {
    stores.iter().map(|store| store.stats().commits).sum()
}

pub(crate) fn after_more(stores: &[Store], commits: u64) {
    let before = groups(stores);
    let limit = Duration::from_secs(120);
    wait_until(limit, "more commits", || groups(stores) >= before + commits);
}

pub(crate) fn patient() -> PostgresOptions {
    few().shared().patience(Duration::from_secs(20))
}
