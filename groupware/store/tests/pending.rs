//! Pending changes: readers see no difference, whenever and however a store is left.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use groupware_store::{Batch, Op, Snapshot, Store, StoreError, StoreOptions, copy_records};
use proptest::prelude::*;
use tempfile::TempDir;

/// Longer values are written into the tree at once.
const LONG: usize = 9 << 10;

type Records = BTreeMap<(String, Vec<u8>), (u64, Vec<u8>)>;

fn open(folder: &Path, pending_bytes: usize) -> Store {
    let options = StoreOptions::default().pending_bytes(pending_bytes);
    Store::open_sqlite(folder, options).unwrap()
}

fn walked(store: &Store) -> Records {
    let all = store.read(|snapshot| {
        let mut all = Records::new();
        snapshot.walk(None, usize::MAX, &mut |partition, key, record| {
            let place = (partition.to_owned(), key.to_vec());
            all.insert(place, (record.revision, record.value.to_vec()));
            ControlFlow::Continue(())
        })?;
        Ok::<_, StoreError>(all)
    });
    all.unwrap()
}

/// The files as a crash at this moment leaves them; the writer, also its idle work, is paused for that.
fn left_by_a_crash(folder: &Path) -> TempDir {
    let names = ["groupware.sqlite", "groupware.sqlite-wal"];
    let read = || names.map(|name| fs::read(folder.join(name)).unwrap());
    let mut files = read();
    loop {
        let again = read();
        if again == files {
            break;
        }
        files = again;
    }
    let copy = tempfile::tempdir().unwrap();
    for (name, bytes) in names.iter().zip(files) {
        fs::write(copy.path().join(name), bytes).unwrap();
    }
    copy
}

fn rows(folder: &Path) -> i64 {
    let file = rusqlite::Connection::open(folder.join("groupware.sqlite")).unwrap();
    let count = "SELECT count(*) FROM pending";
    file.query_row(count, [], |row| row.get(0)).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Commit(Vec<Op>),
    Crash,
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    let partition = || (0..3_u8).prop_map(|it| format!("p{it}").into());
    let key = || (0..12_u8).prop_map(|it| vec![it]);
    let value = prop_oneof![
        6 => (any::<u8>(), 0..900_usize),
        1 => (any::<u8>(), LONG..LONG + 9),
    ];
    let value = value.prop_map(|(byte, length)| vec![byte; length].into());
    prop_oneof![
        8 => (partition(), key(), value)
            .prop_map(|(partition, key, value)| Op::Put { partition, key, value }),
        2 => (partition(), key()).prop_map(|(partition, key)| Op::Add {
            partition,
            key: [&[200], &key[..]].concat(),
            by: vec![1],
            start: vec![],
        }),
        4 => (partition(), key()).prop_map(|(partition, key)| Op::Delete { partition, key }),
        1 => (partition(), key(), key())
            .prop_map(|(partition, from, to)| Op::DeleteRange { partition, from, to }),
        1 => partition().prop_map(|partition| Op::DeletePartition { partition }),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => prop::collection::vec(op(), 1..6).prop_map(Step::Commit),
        1 => Just(Step::Crash),
        1 => Just(Step::Close),
    ]
}

/// The records without their revisions, which differ between two stores.
fn contents(store: &Store) -> BTreeMap<(String, Vec<u8>), Vec<u8>> {
    let all = walked(store).into_iter();
    all.map(|(place, (_, value))| (place, value)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn it_is_as_if_there_was_nothing_between(
        steps in prop::collection::vec(step(), 1..40),
        pending_bytes in prop_oneof![Just(1_usize), 500..20_000_usize],
    ) {
        let model = Store::memory(StoreOptions::default()).unwrap();
        let mut folder = tempfile::tempdir().unwrap();
        let mut store = open(folder.path(), pending_bytes);
        for step in steps {
            match step {
                Step::Commit(ops) => {
                    let batch = || {
                        let mut batch = Batch::new();
                        batch.ops = ops.clone();
                        batch
                    };
                    model.commit_blocking(batch()).unwrap();
                    store.commit_blocking(batch()).unwrap();
                }
                Step::Crash => {
                    // When the second one is committed, the work after the first is done: the writer is idle.
                    store.commit_patiently(Batch::new()).unwrap();
                    store.commit_patiently(Batch::new()).unwrap();
                    let before = walked(&store);
                    let copy = left_by_a_crash(folder.path());
                    drop(store);
                    store = open(copy.path(), pending_bytes);
                    folder = copy;
                    prop_assert_eq!(walked(&store), before);
                }
                Step::Close => {
                    let before = walked(&store);
                    drop(store);
                    prop_assert_eq!(rows(folder.path()), 0);
                    store = open(folder.path(), pending_bytes);
                    prop_assert_eq!(walked(&store), before);
                }
            }
            prop_assert_eq!(contents(&store), contents(&model));
        }
        let scans = |store: &Store| store.read(|snapshot| {
            let mut seen = Vec::new();
            for limit in [1, 3, 100] {
                for from in 0..13_u8 {
                    for to in [None, Some(vec![from + 4])] {
                        let to = to.as_deref();
                        snapshot.browse("p1", &[from], to, limit, &mut |key, value| {
                            seen.push((key.to_vec(), value.to_vec()));
                            ControlFlow::Continue(())
                        })?;
                        let key = seen.last().map(|(key, _)| key.clone()).unwrap_or_default();
                        let got = snapshot.get("p1", &key)?;
                        seen.push((key, got.map(|it| it.value.to_vec()).unwrap_or_default()));
                    }
                }
            }
            Ok::<_, StoreError>(seen)
        }).unwrap();
        prop_assert_eq!(scans(&store), scans(&model));
        prop_assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
        drop(store);
        let store = open(folder.path(), pending_bytes);
        prop_assert_eq!(contents(&store), contents(&model));
        prop_assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    }
}

/// During many writes and flushes, a reader sees the state at its start.
#[test]
fn a_reader_sees_one_moment_through_many_flushes() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 3000);
    let write = |round: u32| {
        let mut batch = Batch::new();
        for key in 0..8_u8 {
            batch.put(
                format!("p{}", round % 5),
                [key],
                round.to_be_bytes().to_vec(),
            );
        }
        if round.is_multiple_of(7) {
            batch.delete("p3", [2]);
        }
        store.commit_blocking(batch).unwrap();
    };
    let all = |snapshot: &dyn Snapshot| {
        let mut all = Vec::new();
        snapshot.walk(None, usize::MAX, &mut |partition, key, record| {
            all.push((partition.to_owned(), key.to_vec(), record));
            ControlFlow::Continue(())
        })?;
        Ok::<_, StoreError>(all)
    };
    (0..50).for_each(write);
    let read = store.read(|snapshot| {
        let before = all(snapshot)?;
        for round in 50..400 {
            write(round);
            if round % 50 == 0 {
                assert_eq!(all(snapshot)?, before);
                // A new reader sees the current state.
                assert_ne!(store.read(all)?, before);
            }
        }
        assert_eq!(all(snapshot)?, before);
        Ok::<_, StoreError>(())
    });
    read.unwrap();
}

/// Concurrent readers and a writer: sums that only change together are read together.
#[test]
fn what_is_changed_together_is_seen_together() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 2000);
    let write = |round: i64| {
        let mut batch = Batch::new();
        batch
            .add("a", "sum", [1])
            .add("b", "sum", [1])
            .put("c", round.to_be_bytes(), vec![7; 200])
            .put("d", "long", vec![round as u8; LONG]);
        store.commit_blocking(batch).unwrap();
    };
    write(0);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    let read = store.read(|snapshot| {
                        let value = |it, key: &[u8]| {
                            let found = snapshot.get(it, key)?;
                            Ok::<_, StoreError>(found.unwrap().value)
                        };
                        let (a, b) = (value("a", b"sum")?, value("b", b"sum")?);
                        assert_eq!(a, b);
                        let mut count = 0_i64;
                        snapshot.browse("c", b"", None, usize::MAX, &mut |_, _| {
                            count += 1;
                            ControlFlow::Continue(())
                        })?;
                        assert_eq!(a, count.to_le_bytes().to_vec());
                        assert_eq!(value("d", b"long")?[0], (count - 1) as u8);
                        Ok::<_, StoreError>(())
                    });
                    read.unwrap();
                }
            });
        }
        (1..600).for_each(write);
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// A reader of a crashed store sees all of it and leaves it unchanged.
#[test]
fn who_only_looks_writes_nothing_into_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1 << 20);
    let mut batch = Batch::new();
    batch.put("p", "k", "value");
    store.commit_blocking(batch).unwrap();
    let copy = left_by_a_crash(folder.path());
    assert_eq!(rows(copy.path()), 1);
    let options = StoreOptions::default().as_it_is();
    let look = Store::open_sqlite(copy.path(), options).unwrap();
    assert_eq!(contents(&look).len(), 1);
    drop(look);
    assert_eq!(rows(copy.path()), 1);
    drop(open(copy.path(), 1 << 20));
    assert_eq!(rows(copy.path()), 0);
    // An unreadable row is not skipped.
    drop(store);
    let store = open(copy.path(), 1 << 20);
    let mut batch = Batch::new();
    batch.put("p", "l", "value");
    store.commit_blocking(batch).unwrap();
    let damaged = left_by_a_crash(copy.path());
    let file = rusqlite::Connection::open(damaged.path().join("groupware.sqlite")).unwrap();
    file.execute("UPDATE pending SET changes = x'0001'", [])
        .unwrap();
    drop(file);
    let error = Store::open_sqlite(damaged.path(), StoreOptions::default()).unwrap_err();
    let cause = std::error::Error::source(&error).and_then(std::error::Error::source);
    let cause = cause.map(ToString::to_string).unwrap_or_default();
    assert!(
        cause.contains("the changes of group 1 are damaged"),
        "{cause}"
    );
}

/// Backups from before this table existed are read as they are.
#[test]
fn a_file_of_the_second_version_is_read_as_it_is_and_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 1 << 20);
    let mut batch = Batch::new();
    batch.put("p", "k", "value").put("p", "long", vec![7; LONG]);
    store.commit_blocking(batch).unwrap();
    let before = walked(&store);
    drop(store);
    let file = folder.path().join("groupware.sqlite");
    let old = rusqlite::Connection::open(&file).unwrap();
    old.execute_batch("DROP TABLE pending; PRAGMA user_version = 2")
        .unwrap();
    drop(old);
    let bytes = fs::read(&file).unwrap();
    let look = Store::open_sqlite(folder.path(), StoreOptions::default().as_it_is()).unwrap();
    assert_eq!(walked(&look), before);
    assert_eq!(look.integrity().unwrap(), Vec::<String>::new());
    drop(look);
    let copy = tempfile::tempdir().unwrap();
    copy_records(folder.path(), copy.path()).unwrap();
    assert_eq!(fs::read(&file).unwrap(), bytes);
    for folder in [folder.path(), copy.path()] {
        let store = open(folder, 1);
        assert_eq!(walked(&store), before);
        let mut batch = Batch::new();
        batch.put("p", "k", "later");
        store.commit_blocking(batch).unwrap();
        assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    }
}

/// However small the groups are, their rows are deleted as fast as they are added.
#[test]
fn rows_of_small_groups_do_not_pile_up() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), 64 << 10);
    for number in 0..6000_u32 {
        let mut batch = Batch::new();
        batch.put("p", number.to_be_bytes(), "x");
        store.commit_blocking(batch).unwrap();
    }
    let most = rows(folder.path());
    assert!(most < 2000, "{most}");
}
