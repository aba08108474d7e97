//! Cached records never differ from the engine's.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use groupware_store::{
    Batch, CommitError, Form, Numbered, Record, Snapshot, Store, StoreError, StoreOptions,
};
use proptest::prelude::*;
use tempfile::TempDir;

const PARTITIONS: [&str; 3] = ["ada", "bob", "eve"];
const ALL: (&[u8], &[u8]) = (b"c/", b"c0");

/// A small cache, so that records are also evicted.
fn options() -> StoreOptions {
    StoreOptions::default().remember(b"c/", 256 << 10)
}

fn on_disk() -> (Store, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    (
        Store::open_sqlite(folder.path(), options()).unwrap(),
        folder,
    )
}

#[derive(Debug, Clone)]
enum Step {
    Put(usize, u8, usize),
    Add(usize, u8, i64),
    AddFrom(usize, u8, i64),
    /// A numbered record; its key contains the number, too, or not.
    Number(usize, u8, bool),
    Delete(usize, u8),
    DeleteRange(usize, u8, u8),
    DeletePartition(usize),
    Refused(usize, u8),
    /// Outside the cached prefix.
    Elsewhere(usize, u8),
    Get(usize, u8),
    Scan(usize, u8, u8, usize),
    /// Several reads of one reader.
    Walk(Vec<(usize, u8)>),
}

fn step() -> impl Strategy<Value = Step> {
    let (who, key) = (0..PARTITIONS.len(), 0..8_u8);
    let at = (who.clone(), key.clone());
    prop_oneof![
        4 => (who.clone(), key.clone(), prop_oneof![Just(3_usize), Just(2000), Just(20_000)])
            .prop_map(|(who, key, bytes)| Step::Put(who, key, bytes)),
        1 => (who.clone(), key.clone(), -9..9_i64).prop_map(|(who, key, by)| Step::Add(who, key, by)),
        1 => (who.clone(), key.clone(), -9..9_i64)
            .prop_map(|(who, key, by)| Step::AddFrom(who, key, by)),
        2 => (who.clone(), key.clone(), any::<bool>())
            .prop_map(|(who, key, is_named)| Step::Number(who, key, is_named)),
        2 => at.clone().prop_map(|(who, key)| Step::Delete(who, key)),
        1 => (who.clone(), key.clone(), key.clone())
            .prop_map(|(who, from, to)| Step::DeleteRange(who, from, to)),
        1 => who.clone().prop_map(Step::DeletePartition),
        1 => at.clone().prop_map(|(who, key)| Step::Refused(who, key)),
        1 => at.clone().prop_map(|(who, key)| Step::Elsewhere(who, key)),
        3 => at.clone().prop_map(|(who, key)| Step::Get(who, key)),
        4 => (who, key.clone(), key, 0..9_usize)
            .prop_map(|(who, from, to, limit)| Step::Scan(who, from, to, limit)),
        2 => prop::collection::vec(at, 1..6).prop_map(Step::Walk),
    ]
}

fn key(number: u8) -> Vec<u8> {
    format!("c/{number}").into_bytes()
}

/// The batch of a step that changes something.
fn batch(step: &Step) -> Option<Batch> {
    let mut batch = Batch::new();
    match *step {
        Step::Put(who, number, bytes) => {
            batch.put(PARTITIONS[who], key(number), vec![number; bytes])
        }
        Step::Add(who, number, by) => batch.add(PARTITIONS[who], key(number), [1, by]),
        Step::AddFrom(who, number, by) => {
            batch.add_from(PARTITIONS[who], key(number), [2, 2], [1, by])
        }
        Step::Number(who, number, is_named) => {
            let counter = (bytes::Bytes::from(key(number)), 0);
            let value = Numbered::new("is ").number(counter.clone(), 0, Form::Decimal);
            let name = match is_named {
                true => Numbered::new("c/").number(counter, 0, Form::Decimal),
                false => Numbered::new(key(number)),
            };
            batch.put_numbered(PARTITIONS[who], name, value)
        }
        Step::Delete(who, number) => batch.delete(PARTITIONS[who], key(number)),
        Step::DeleteRange(who, from, to) => batch.delete_range(PARTITIONS[who], key(from), key(to)),
        Step::DeletePartition(who) => batch.delete_partition(PARTITIONS[who]),
        Step::Refused(who, number) => {
            batch.assert_exists("nobody", "never");
            batch.put(PARTITIONS[who], key(number), "refused")
        }
        Step::Elsewhere(who, number) => batch.put(PARTITIONS[who], [b'd', number], "d"),
        Step::Get(..) | Step::Scan(..) | Step::Walk(_) => return None,
    };
    Some(batch)
}

type Seen = Vec<(Vec<u8>, Record)>;

fn scan(
    snapshot: &dyn Snapshot,
    partition: &str,
    (from, to): (&[u8], &[u8]),
    limit: usize,
) -> Result<Seen, StoreError> {
    let mut seen = Seen::new();
    snapshot.scan(partition, from, Some(to), limit, &mut |key, record| {
        seen.push((key.to_vec(), record));
        ControlFlow::Continue(())
    })?;
    Ok(seen)
}

/// Runs the read of a step.
fn read(snapshot: &dyn Snapshot, step: &Step) -> Result<Seen, StoreError> {
    let get = |&(who, number): &(usize, u8)| {
        let key = key(number);
        let found = snapshot.get(PARTITIONS[who], &key)?;
        Ok(found.map(|found| (key, found)))
    };
    match step {
        Step::Get(who, number) => Ok(get(&(*who, *number))?.into_iter().collect()),
        Step::Scan(who, from, to, limit) => {
            let range = (&key(*from)[..], &key(*to)[..]);
            scan(snapshot, PARTITIONS[*who], range, *limit)
        }
        Step::Walk(gets) => {
            let found = gets
                .iter()
                .map(get)
                .collect::<Result<Vec<_>, StoreError>>()?;
            Ok(found.into_iter().flatten().collect())
        }
        _ => scan(snapshot, PARTITIONS[0], ALL, usize::MAX),
    }
}

fn law(store: &Store, steps: &[Step]) -> Result<(), TestCaseError> {
    for step in steps {
        if let Some(batch) = batch(step) {
            let outcome = store.commit_blocking(batch);
            let is_conflict = matches!(outcome, Err(CommitError::Conflict { .. }));
            prop_assert!(outcome.is_ok() || is_conflict);
        }
        let seen = store.look(|snapshot| read(snapshot, step)).unwrap();
        let there = store.read(|snapshot| read(snapshot, step)).unwrap();
        prop_assert_eq!(seen, there, "{:?}", step);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn what_is_seen_is_what_is_there(steps in prop::collection::vec(step(), 1..80)) {
        law(&Store::memory(options()).unwrap(), &steps)?;
        let (store, _folder) = on_disk();
        law(&store, &steps)?;
    }
}

const MEMBERS: [&str; 6] = ["m0", "m1", "m2", "m3", "m4", "m5"];
const EACH: i64 = 100;
const MOVES: usize = 300;

fn amount(snapshot: &dyn Snapshot, member: &str) -> Result<(i64, u64), StoreError> {
    let record = snapshot
        .get(member, b"c/amount")?
        .expect("everybody has one");
    let text = std::str::from_utf8(&record.value).unwrap();
    Ok((text.trim().parse().unwrap(), record.revision))
}

fn open_accounts(store: &Store) {
    let mut batch = Batch::new();
    for member in MEMBERS {
        batch.put(member, "c/amount", EACH.to_string());
    }
    store.commit_blocking(batch).unwrap();
}

/// Moves an amount from one account to another, and retries on conflicts.
fn move_around(store: &Store, seed: usize) {
    for turn in 0..MOVES {
        let number = seed * 7 + turn * 5;
        let (from, to) = (MEMBERS[number % 6], MEMBERS[(number / 6 + 1 + number) % 6]);
        if from == to {
            continue;
        }
        loop {
            let decided = store.look(|snapshot| {
                Ok::<_, StoreError>((amount(snapshot, from)?, amount(snapshot, to)?))
            });
            let ((left, left_at), (right, right_at)) = decided.unwrap();
            let mut batch = Batch::new();
            batch.assert_revision(from, "c/amount", left_at);
            batch.assert_revision(to, "c/amount", right_at);
            // Some are so long that they are stored apart from their record.
            let width = if turn % 3 == 0 { 900 } else { 4 };
            batch.put(from, "c/amount", format!("{:width$}", left - 1));
            batch.put(to, "c/amount", format!("{:width$}", right + 1));
            match store.commit_blocking(batch) {
                Ok(committed) => {
                    let (_, seen) = store.look(|snapshot| amount(snapshot, from)).unwrap();
                    assert!(seen >= committed.revision, "what is acknowledged is seen");
                    break;
                }
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// No reader sees half of a move, whichever accounts are cached at that moment.
fn nothing_is_half_visible(store: &Store) {
    open_accounts(store);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut looks = 0_usize;
                    while !is_over.load(Ordering::Relaxed) || looks < 100 {
                        looks += 1;
                        let sum = store.look(|snapshot| {
                            let mut sum = 0;
                            for number in 0..MEMBERS.len() {
                                let member = MEMBERS[(number + looks * (reader + 1)) % 6];
                                if number == 3 && looks.is_multiple_of(4) {
                                    // This key is not cached: from here on, the engine serves the reads.
                                    snapshot.get(member, format!("x{looks}").as_bytes())?;
                                }
                                sum += amount(snapshot, member)?.0;
                            }
                            Ok::<_, StoreError>(sum)
                        });
                        assert_eq!(sum.unwrap(), EACH * 6);
                    }
                })
            })
            .collect();
        let writers: Vec<_> = (0..3)
            .map(|seed| scope.spawn(move || move_around(store, seed)))
            .collect();
        let written: Vec<_> = writers.into_iter().map(|it| it.join()).collect();
        is_over.store(true, Ordering::Relaxed);
        for done in written {
            done.unwrap();
        }
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

#[test]
fn nothing_is_half_visible_in_memory() {
    nothing_is_half_visible(&Store::memory(options()).unwrap());
}

#[test]
fn nothing_is_half_visible_on_sqlite() {
    let (store, _folder) = on_disk();
    nothing_is_half_visible(&store);
}

/// The first reader needs no engine, either.
#[test]
fn what_is_written_is_remembered_where_nobody_has_read() {
    let (store, _folder) = on_disk();
    let mut batch = Batch::new();
    batch.put("ada", "c/e", "new").put("ada", "d", "not kept");
    store.commit_blocking(batch).unwrap();
    let found: Result<_, StoreError> = store.look(|snapshot| snapshot.get("ada", b"c/e"));
    assert_eq!(&found.unwrap().unwrap().value[..], b"new");
    let stats = store.stats();
    assert_eq!((stats.looks, stats.looks_remembered), (1, 1));
    let absent: Result<_, StoreError> = store.look(|snapshot| snapshot.get("ada", b"c/f"));
    assert!(absent.unwrap().is_none());
    assert_eq!(store.stats().looks_remembered, 1);
}
