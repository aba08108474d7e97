//! The law of group commit, for any engine: for any batches from any threads, through one or several handles of a
//! store, the outcome equals that of applying them one after another in the order of their revisions.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use groupware_store::{
    Assert, Batch, CommitError, Form, Numbered, Op, Store, StoreError, counters,
};
use proptest::prelude::*;

type Model = BTreeMap<(String, Vec<u8>), (u64, Vec<u8>)>;

/// A generated batch. Revisions aren't known beforehand, so an assert on one names "the one that this thread last
/// wrote".
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    asserts: Vec<(Kind, u8, u8)>,
    ops: Vec<(Change, u8, u8)>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Absent,
    Exists,
    Mine,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Put(u8),
    Add(i64),
    /// Starts with this value if there is no record.
    AddFrom(i64),
    /// Writes a numbered record.
    Number(bool),
    Delete,
    Range,
    Partition,
}

/// Batches for at most this many threads.
pub(crate) fn drafts(threads: usize) -> impl Strategy<Value = Vec<Vec<Draft>>> {
    let kind = prop_oneof![Just(Kind::Absent), Just(Kind::Exists), Just(Kind::Mine)];
    let change = prop_oneof![
        6 => any::<u8>().prop_map(Change::Put),
        3 => (-9..9_i64).prop_map(Change::Add),
        2 => (-9..9_i64).prop_map(Change::AddFrom),
        3 => any::<bool>().prop_map(Change::Number),
        2 => Just(Change::Delete),
        1 => Just(Change::Range),
        1 => Just(Change::Partition),
    ];
    let draft = (
        prop::collection::vec((kind, 0..2_u8, 0..4_u8), 0..2),
        prop::collection::vec((change, 0..2_u8, 0..4_u8), 0..4),
    );
    let draft = draft.prop_map(|(asserts, ops)| Draft { asserts, ops });
    prop::collection::vec(prop::collection::vec(draft, 1..12), 1..=threads)
}

fn partition(number: u8) -> String {
    format!("p{number}")
}

fn build(draft: &Draft, mine: u64) -> Batch {
    let mut batch = Batch::new();
    for &(kind, place, key) in &draft.asserts {
        match kind {
            Kind::Absent => batch.assert_absent(partition(place), [key]),
            Kind::Exists => batch.assert_exists(partition(place), [key]),
            Kind::Mine => batch.assert_revision(partition(place), [key], mine),
        };
    }
    for &(change, place, key) in &draft.ops {
        match change {
            // Some are so large that they are stored apart from their record.
            Change::Put(value) => {
                let bytes = if value % 4 == 0 { 5000 } else { 1 };
                batch.put(partition(place), [key], vec![value; bytes])
            }
            Change::Add(by) => batch.add(partition(place), [key], [1, by]),
            Change::AddFrom(by) => batch.add_from(partition(place), [key], [5, 5], [1, by]),
            Change::Number(is_wide) => {
                let counter = bytes::Bytes::copy_from_slice(&[key]);
                // Its key is also put and deleted by others.
                let made = Numbered::default()
                    .number((counter.clone(), 0), 0, Form::Ring(4))
                    .bytes(if is_wide { b"wide" } else { b"" });
                let value = Numbered::new(vec![7; if is_wide { 5000 } else { 1 }])
                    .number((counter.clone(), 0), 0, Form::Bytes)
                    .number((counter, 1), 1, Form::Decimal);
                batch.put_numbered(partition(place), made, value)
            }
            Change::Delete => batch.delete(partition(place), [key]),
            Change::Range => batch.delete_range(partition(place), [key], [key + 2]),
            Change::Partition => batch.delete_partition(partition(place)),
        };
    }
    batch
}

/// The log of one thread: its batches in order, each with its outcome.
pub(crate) type Log = Vec<(Batch, Result<u64, usize>)>;

pub(crate) fn run(stores: &[Store], drafts: &[Vec<Draft>]) -> Vec<Log> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = drafts
            .iter()
            .zip([Way::Writer, Way::Here].into_iter().cycle())
            .zip(stores.iter().cycle())
            .map(|((drafts, way), store)| scope.spawn(move || one_thread(store, drafts, way)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

/// The thread that writes a thread's batches.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// The store's writer.
    Writer,
    /// The thread itself, if no other thread writes.
    Here,
}

fn one_thread(store: &Store, drafts: &[Draft], way: Way) -> Log {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let commit = |batch| match way {
        Way::Writer => runtime.block_on(store.commit(batch)),
        Way::Here => store.commit_blocking(batch),
    };
    let mut mine = 0;
    let mut log = Log::new();
    for draft in drafts {
        let batch = build(draft, mine);
        let outcome = match commit(batch.clone()) {
            Ok(committed) => {
                mine = committed.revision;
                Ok(mine)
            }
            Err(CommitError::Conflict { index }) => Err(index),
            Err(error) => panic!("{error}"),
        };
        log.push((batch, outcome));
    }
    log
}

fn first_failed(model: &Model, batch: &Batch) -> Option<usize> {
    batch.asserts.iter().position(|assert| {
        let (partition, key) = assert.target();
        let found = model
            .get(&(partition.to_owned(), key.to_vec()))
            .map(|record| record.0);
        !match assert {
            Assert::Absent { .. } => found.is_none(),
            Assert::Exists { .. } => found.is_some(),
            Assert::Revision { revision, .. } => found == Some(*revision),
        }
    })
}

fn apply(model: &mut Model, batch: &Batch, revision: u64) {
    for op in &batch.ops {
        match op {
            Op::Put {
                partition,
                key,
                value,
            } => {
                model.insert(
                    (partition.to_string(), key.clone()),
                    (revision, value.to_vec()),
                );
            }
            Op::PutNumbered {
                partition,
                key,
                value,
            } => {
                let filled = |numbered: &Numbered| {
                    let number = |gap: &groupware_store::Gap| {
                        let at = (partition.to_string(), gap.counter.to_vec());
                        let sums = model.get(&at).map(|(_, value)| counters(value));
                        let sum = sums.and_then(|mut sums| sums.nth(gap.index as usize));
                        sum.unwrap_or(0) - i64::from(gap.behind)
                    };
                    let numbers: Vec<i64> = numbered.gaps().iter().map(number).collect();
                    numbered.filled(&numbers)
                };
                let (key, value) = (filled(key), filled(value));
                model.insert((partition.to_string(), key), (revision, value));
            }
            Op::Add {
                partition,
                key,
                by,
                start,
            } => {
                let start = start.iter().flat_map(|it| it.to_le_bytes());
                let (_, value) = model
                    .entry((partition.to_string(), key.clone()))
                    .and_modify(|record| record.0 = revision)
                    .or_insert((revision, start.collect()));
                let mut sums: Vec<_> = counters(value).collect();
                sums.resize(sums.len().max(by.len()), 0);
                sums.iter_mut().zip(by).for_each(|(sum, by)| *sum += by);
                *value = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
            }
            Op::Delete { partition, key } => {
                model.remove(&(partition.to_string(), key.clone()));
            }
            Op::DeleteRange {
                partition,
                from,
                to,
            } => {
                model.retain(|(p, key), _| **p != **partition || key < from || key >= to);
            }
            Op::DeletePartition { partition } => model.retain(|(p, _), _| **p != **partition),
        }
    }
}

fn contents(store: &Store) -> Model {
    let mut all = Model::new();
    store
        .read(|snapshot| {
            for place in (0..2).map(partition) {
                snapshot.scan(&place, b"", None, usize::MAX, &mut |key, record| {
                    let value = (record.revision, record.value.to_vec());
                    all.insert((place.clone(), key.to_vec()), value);
                    ControlFlow::Continue(())
                })?;
            }
            Ok::<_, StoreError>(())
        })
        .unwrap();
    all
}

/// Replays the commits in the order of their revisions. Every commit's asserts must hold there, and each thread's own
/// order must be kept. Each conflict must have had a moment, between its thread's commits before and after it, at which
/// its assert failed. The end state must be the same.
pub(crate) fn check(store: &Store, logs: &[Log]) -> Result<(), TestCaseError> {
    let mut commits: Vec<(u64, &Batch)> = Vec::new();
    for (batch, outcome) in logs.iter().flatten() {
        if let Ok(revision) = outcome {
            commits.push((*revision, batch));
        }
    }
    commits.sort_by_key(|(revision, _)| *revision);
    let mut states = vec![(0, Model::new())];
    for (revision, batch) in commits {
        let (last, model) = states.last().unwrap();
        prop_assert!(revision > *last, "each batch has its own revision");
        prop_assert_eq!(first_failed(model, batch), None);
        let mut next = model.clone();
        apply(&mut next, batch, revision);
        states.push((revision, next));
    }
    for log in logs {
        check_thread(log, &states)?;
    }
    prop_assert_eq!(&contents(store), &states.last().unwrap().1);
    Ok(())
}

fn check_thread(log: &Log, states: &[(u64, Model)]) -> Result<(), TestCaseError> {
    let mut after = 0;
    for (at, (batch, outcome)) in log.iter().enumerate() {
        match outcome {
            Ok(revision) => {
                prop_assert!(*revision > after, "a thread's commits keep their order");
                after = *revision;
            }
            Err(index) => {
                let before = log[at..].iter().find_map(|(_, outcome)| outcome.ok());
                let before = before.unwrap_or(u64::MAX);
                let possible = states
                    .iter()
                    .filter(|(revision, _)| (after..before).contains(revision))
                    .any(|(_, model)| first_failed(model, batch) == Some(*index));
                prop_assert!(possible, "assert {} fails in some state of its time", index);
            }
        }
    }
    Ok(())
}
