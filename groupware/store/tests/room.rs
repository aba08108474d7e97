//! Space of deletions is returned to the disk: by itself while the writer is idle, or all at once.

use std::fs;
use std::path::Path;
use std::time::Duration;

use groupware_store::{Batch, OpenError, Store, StoreError, StoreOptions, compact};
use rusqlite::Connection;

fn length(folder: &Path) -> u64 {
    fs::metadata(folder.join("groupware.sqlite")).unwrap().len()
}

fn open(folder: &Path) -> Store {
    Store::open_sqlite(folder, StoreOptions::default()).unwrap()
}

/// About 40 MB of records, large and small, and as many that stay.
fn fill(store: &Store) {
    for number in 0..400_u32 {
        let mut batch = Batch::new();
        for partition in ["gone", "kept"] {
            batch.put(partition, number.to_be_bytes(), vec![7; 90_000]);
            batch.put(partition, [1, number as u8], vec![7; 300]);
        }
        store.commit_blocking(batch).unwrap();
    }
}

fn kept(store: &Store) -> usize {
    let mut count = 0;
    let read: Result<(), StoreError> = store.read(|snapshot| {
        snapshot.scan("kept", &[], None, usize::MAX, &mut |_, record| {
            assert!(record.value.iter().all(|byte| *byte == 7));
            count += 1;
            std::ops::ControlFlow::Continue(())
        })
    });
    read.unwrap();
    count
}

#[test]
fn the_file_gets_shorter_after_a_large_deletion_while_others_write() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    fill(&store);
    assert!(store.data_bytes().unwrap() > 70_000_000);
    let mut written = 0_u32;
    store.remove_in_slices("gone", b"", None).unwrap();
    // An occasional writer is not delayed.
    let is_short = async {
        loop {
            let mut batch = Batch::new();
            batch.put("busy", written.to_be_bytes(), "x");
            store.commit(batch).await.unwrap();
            written += 1;
            let all = store.data_bytes().unwrap().max(length(folder.path()));
            if all < 50_000_000 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let within =
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), is_short).await });
    assert!(
        within.is_ok(),
        "{} bytes after {written} commits",
        length(folder.path())
    );
    assert!(store.integrity().unwrap().is_empty());
    assert_eq!(kept(&store), 656);
    store.close_blocking();
}

/// A file of an earlier version: free pages can't be returned one by one.
fn of_an_older_version(folder: &Path) {
    let store = open(folder);
    fill(&store);
    store.close_blocking();
    drop(store);
    let old = Connection::open(folder.join("groupware.sqlite")).unwrap();
    old.execute_batch("PRAGMA journal_mode = delete; PRAGMA auto_vacuum = none; VACUUM")
        .unwrap();
    let mode: u32 = old
        .pragma_query_value(None, "auto_vacuum", |row| row.get(0))
        .unwrap();
    assert_eq!(mode, 0);
    drop(old);
    let store = open(folder);
    let mut batch = Batch::new();
    batch.delete_partition("gone");
    store.commit_blocking(batch).unwrap();
    store.close_blocking();
}

#[test]
fn an_old_file_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    of_an_older_version(folder.path());
    assert!(length(folder.path()) > 70_000_000);
    // The file of an interrupted compaction.
    let left = folder.path().join("groupware.sqlite.compact");
    fs::write(&left, "half").unwrap();
    let store = open(folder.path());
    let refused = compact(folder.path(), |_, _| {}).unwrap_err();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    store.close_blocking();
    drop(store);
    let told = std::sync::atomic::AtomicU64::new(0);
    let done = compact(folder.path(), |_, all| {
        told.store(all, std::sync::atomic::Ordering::Relaxed);
    });
    let done = done.unwrap();
    assert!(
        done.before_bytes > 70_000_000 && done.after_bytes < 45_000_000,
        "{done:?}"
    );
    assert_eq!(length(folder.path()), done.after_bytes);
    assert!(told.into_inner() > 30_000_000 && !left.exists());
    let store = open(folder.path());
    assert!(store.integrity().unwrap().is_empty());
    assert_eq!(kept(&store), 656);
    store.close_blocking();
    drop(store);
    let new = Connection::open(folder.path().join("groupware.sqlite")).unwrap();
    let mode: u32 = new
        .pragma_query_value(None, "auto_vacuum", |row| row.get(0))
        .unwrap();
    assert_eq!(mode, 2);
}
