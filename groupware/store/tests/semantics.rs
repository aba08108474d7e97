//! Behaviour of this crate's engines beyond the contract that all engines share.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use groupware_store::{CommitError, OpenError, Store, StoreOptions};
use plimsoll_tests::wait_until;
use tempfile::TempDir;

use crate::contract::{batch, get, keys};

mod memory {
    use groupware_store::{Store, StoreOptions};

    crate::contract::keeps_the_contract!(open);

    fn open() -> Option<(Store, ())> {
        Some((Store::memory(StoreOptions::default()).unwrap(), ()))
    }
}

mod sqlite {
    crate::contract::keeps_the_contract!(crate::semantics::fresh);
}

/// Each group is flushed into the tree at once.
mod flushed {
    use groupware_store::{Store, StoreOptions};
    use tempfile::TempDir;

    crate::contract::keeps_the_contract!(open);

    fn open() -> Option<(Store, TempDir)> {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::default().pending_bytes(1);
        let store = Store::open_sqlite(folder.path(), options).unwrap();
        Some((store, folder))
    }
}

mod remembered {
    use groupware_store::{Store, StoreOptions};
    use tempfile::TempDir;

    crate::contract::keeps_the_contract!(open);

    fn open() -> Option<(Store, TempDir)> {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::default().remember(b"", 1 << 20);
        let store = Store::open_sqlite(folder.path(), options).unwrap();
        Some((store, folder))
    }
}

/// An SQLite store in a folder of its own.
fn fresh() -> Option<(Store, TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    Some((open(folder.path()), folder))
}

fn open(folder: &Path) -> Store {
    Store::open_sqlite(folder, StoreOptions::default()).unwrap()
}

#[test]
fn while_the_writer_is_idle_a_commit_can_be_made_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Store::memory(StoreOptions::default()).unwrap();
    for store in [memory, open(folder.path())] {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let is_made_at_once = || {
            runtime.block_on(async {
                tokio::select! {
                    biased;
                    done = store.commit_here(batch(|b| _ = b.put("p", "a", "1"))) => done.is_ok(),
                    () = std::future::ready(()) => false,
                }
            })
        };
        // A new store's writer is still starting, and a caller then waits for it.
        wait_until(
            Duration::from_secs(60),
            "the writer is idle",
            is_made_at_once,
        );
        assert_eq!(get(&store, "p", "a").unwrap().value, "1");
    }
}

#[test]
fn the_writer_is_not_kept_out_by_those_who_write_in_its_place() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            for number in 0..200_u32 {
                let batch = batch(|b| _ = b.put("p", number.to_be_bytes(), "by the writer"));
                runtime.block_on(store.commit(batch)).unwrap();
            }
            is_done.store(true, Ordering::Relaxed);
        });
        for _ in 0..1_000_000 {
            if is_done.load(Ordering::Relaxed) {
                return;
            }
            store
                .commit_blocking(batch(|b| _ = b.put("q", "k", "here")))
                .unwrap();
        }
        assert!(
            is_done.load(Ordering::Relaxed),
            "the writer never came to write"
        );
    });
}

/// Copying the log back is the writer's work, also if other threads wrote it.
#[test]
fn a_log_that_others_wrote_is_copied_back() {
    const BATCHES: u32 = 72;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
    let put = |number: u32| {
        let value = vec![7; 1 << 20];
        let batch = batch(|b| _ = b.put("p", number.to_be_bytes(), value));
        store.commit_blocking(batch).unwrap();
    };
    (0..BATCHES).for_each(put);
    let database = folder.path().join("groupware.sqlite");
    let is_copied = || std::fs::metadata(&database).unwrap().len() > 60 << 20;
    wait_until(
        Duration::from_secs(120),
        "the log to be copied back",
        is_copied,
    );
    assert_eq!(store.stats().groups, u64::from(BATCHES));
}

#[test]
fn a_full_store_fails_what_does_not_fit_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let quota = StoreOptions::default().quota_bytes(1 << 20);
    full(&Store::open_sqlite(folder.path(), quota.clone()).unwrap());
    full(&Store::memory(quota).unwrap());
}

fn full(store: &Store) {
    store
        .commit_blocking(batch(|b| _ = b.put("p", "k", vec![1; 400 << 10])))
        .unwrap();
    let outcome = store.commit_blocking(batch(|b| {
        b.delete("p", "k")
            .put("p", "l", "")
            .put("p", "m", vec![2; 1 << 20]);
    }));
    assert!(matches!(outcome, Err(CommitError::Full)), "{outcome:?}");
    assert_eq!(keys(store, "p", "", None, 100), "k");
    // In one group, the batch that doesn't fit fails no other batch.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let (small, large, later) = runtime.block_on(async {
        tokio::join!(
            store.commit(batch(|b| _ = b.put("p", "s", "small"))),
            store.commit(batch(|b| _ = b.put("p", "m", vec![2; 1 << 20]))),
            store.commit(batch(|b| _ = b.put("p", "t", "small"))),
        )
    });
    small.unwrap();
    assert!(matches!(large, Err(CommitError::Full)), "{large:?}");
    later.unwrap();
    assert_eq!(keys(store, "p", "", None, 100), "k s t");
    // A deletion makes room.
    store
        .commit_blocking(batch(|b| _ = b.delete_partition("p")))
        .unwrap();
    store
        .commit_blocking(batch(|b| _ = b.put("p", "k", vec![3; 700 << 10])))
        .unwrap();
    assert_eq!(get(store, "p", "k").unwrap().value.len(), 700 << 10);
}

#[test]
fn records_and_revisions_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..3 {
        let store = open(folder.path());
        for key in 0..50 {
            let put = batch(|b| _ = b.put("p", format!("{round}-{key}"), "x"));
            let revision = store.commit_blocking(put).unwrap().revision;
            assert!(revision > last, "revisions only grow");
            last = revision;
        }
    }
    let store = open(folder.path());
    assert_eq!(keys(&store, "p", "", None, 1000).split(' ').count(), 150);
}

#[test]
fn a_folder_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let second = Store::open_sqlite(folder.path(), StoreOptions::default());
    assert!(matches!(second, Err(OpenError::InUse { .. })), "{second:?}");
    drop(store);
    open(folder.path());
}

#[test]
fn foreign_and_newer_files_are_refused_and_left_alone() {
    let refuse = |prepare: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("groupware.sqlite");
        prepare(&file);
        let before = std::fs::read(&file).unwrap();
        let error = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap_err();
        assert_eq!(std::fs::read(&file).unwrap(), before, "{error}");
        error
            .to_string()
            .replace(&file.display().to_string(), "FILE")
    };
    let text =
        refuse(&|file| std::fs::write(file, "not a database at all, but long".repeat(99)).unwrap());
    assert_eq!(text, "FILE is not a Plimsoll database");
    let sql = |sql: &'static str| {
        move |file: &Path| {
            rusqlite::Connection::open(file)
                .unwrap()
                .execute_batch(sql)
                .unwrap()
        }
    };
    let text = refuse(&sql("CREATE TABLE songs(title)"));
    assert_eq!(text, "FILE is not a Plimsoll database");
    let text = refuse(&sql(
        "PRAGMA application_id = 1347176781; PRAGMA user_version = 7",
    ));
    assert_eq!(
        text,
        "FILE has schema version 7, and this program knows versions up to 3"
    );
}

/// Up to version 1, large values were stored in their records.
#[test]
fn a_file_of_the_first_version_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    store
        .commit_blocking(batch(|b| _ = b.put("p", "small", "value")))
        .unwrap();
    drop(store);
    rusqlite::Connection::open(folder.path().join("groupware.sqlite"))
        .unwrap()
        .execute_batch(
            "DROP TABLE large_values; DROP TABLE pending; PRAGMA user_version = 1;
             INSERT INTO records VALUES ('p', CAST('old' AS BLOB), 1, zeroblob(5000));",
        )
        .unwrap();
    // A read-only open leaves it alone.
    let file = folder.path().join("groupware.sqlite");
    let before = std::fs::read(&file).unwrap();
    let look = || Store::open_sqlite(folder.path(), StoreOptions::default().as_it_is());
    let error = look().unwrap_err();
    assert!(
        matches!(error, OpenError::Older { found: 1, .. }),
        "{error}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let store = open(folder.path());
    assert_eq!(get(&store, "p", "small").unwrap().value, "value");
    assert_eq!(get(&store, "p", "old").unwrap().value, vec![0; 5000]);
    store
        .commit_blocking(batch(|b| {
            b.put("p", "old", vec![1; 5000])
                .put("p", "new", vec![2; 5000]);
        }))
        .unwrap();
    assert_eq!(get(&store, "p", "old").unwrap().value, vec![1; 5000]);
    assert_eq!(keys(&store, "p", "", None, 9), "new old small");
    store
        .commit_blocking(batch(|b| _ = b.delete("p", "old")))
        .unwrap();
    assert_eq!(get(&store, "p", "new").unwrap().value, vec![2; 5000]);
    assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    drop(store);
    look().unwrap();
}

#[test]
fn a_store_that_is_not_there_is_not_made_by_looking() {
    let folder = tempfile::tempdir().unwrap();
    let look = || Store::open_sqlite(folder.path(), StoreOptions::default().as_it_is());
    let file = folder.path().join("groupware.sqlite");
    assert!(matches!(look(), Err(OpenError::Database { .. })));
    assert!(!file.exists());
    std::fs::write(&file, "").unwrap();
    assert!(matches!(look(), Err(OpenError::Foreign { .. })));
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
}

/// The mode of a file or folder, without its kind.
fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn nobody_else_reads_a_store() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("a/b");
    let files = [
        "groupware.sqlite",
        "groupware.sqlite-wal",
        "groupware.sqlite-shm",
        "lock",
    ];
    let store = open(&folder);
    let one = batch(|batch| _ = batch.put("p", "k", ""));
    store.commit_blocking(one).unwrap();
    assert_eq!([mode(&parent.path().join("a")), mode(&folder)], [0o700; 2]);
    assert_eq!(files.map(|file| mode(&folder.join(file))), [0o600; 4]);
    drop(store);
    // As an older version created it, in a folder that an administrator opened to a group.
    let rights = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode));
    rights(&folder.join(files[0]), 0o644).unwrap();
    rights(&folder, 0o750).unwrap();
    let store = open(&folder);
    assert_eq!(mode(&folder), 0o750);
    assert_eq!(
        files[..3].iter().map(|file| mode(&folder.join(file))).max(),
        Some(0o600)
    );
    drop(store);
}
