//! The history of what clients write during a fault and the results that they get, and a check of
//! the stored records against it.

use std::time::Duration;

use groupware_postgres::PostgresOptions;
use groupware_store::{Batch, CommitError, Committed, Store, StoreError, counters};

use crate::support::few;

/// The results of a client's batches, by number.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) stored: Vec<u32>,
    pub(crate) refused: Vec<u32>,
    pub(crate) unknown: Vec<u32>,
}

/// The result of a batch.
#[derive(Debug)]
pub(crate) enum Answer {
    Stored,
    /// Not stored; a retry may succeed.
    Refused,
    /// Not known.
    Unknown,
    /// Not stored: an assert failed.
    Conflict,
    /// Not stored, for a permanent reason.
    Failed(String),
}

impl Answer {
    pub(crate) fn of(outcome: Result<Committed, CommitError>) -> Self {
        match outcome {
            Ok(_) => Self::Stored,
            Err(CommitError::Unknown(_)) => Self::Unknown,
            Err(CommitError::Store(StoreError::Away(_)) | CommitError::Full) => Self::Refused,
            Err(CommitError::Conflict { .. }) => Self::Conflict,
            Err(error) => Self::Failed(groupware_text::chain(&error)),
        }
    }
}

/// An atomic batch: two records in two partitions, and an addition to a common sum.
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

/// Returns the contradictions between the stored records and the reported results.
pub(crate) fn wrong(store: &Store, told: &[Outcomes]) -> Vec<String> {
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

pub(crate) fn patient() -> PostgresOptions {
    few().shared().patience(Duration::from_secs(20))
}
