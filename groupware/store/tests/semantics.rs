//! What every engine must do, checked on both.

use std::fs::Permissions;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use groupware_store::{
    Batch, CommitError, MAX_KEY_BYTES, OpenError, Record, Snapshot, Store, StoreError,
    StoreOptions, counters,
};
use plimsoll_tests::wait_until;

/// Runs the test on a store of each kind.
fn on_both(test: impl Fn(Store)) {
    test(Store::memory(StoreOptions::default()).unwrap());
    let folder = tempfile::tempdir().unwrap();
    test(open(folder.path()));
}

fn open(folder: &Path) -> Store {
    Store::open_sqlite(folder, StoreOptions::default()).unwrap()
}

fn batch(build: impl FnOnce(&mut Batch)) -> Batch {
    let mut batch = Batch::new();
    build(&mut batch);
    batch
}

fn get(store: &Store, partition: &str, key: &str) -> Option<Record> {
    store
        .read(|snapshot| snapshot.get(partition, key.as_bytes()))
        .unwrap()
}

fn keys(store: &Store, partition: &str, from: &str, to: Option<&str>, limit: usize) -> String {
    store
        .read(|snapshot| scan(snapshot, partition, from, to, limit))
        .unwrap()
}

fn scan(
    snapshot: &dyn Snapshot,
    partition: &str,
    from: &str,
    to: Option<&str>,
    limit: usize,
) -> Result<String, StoreError> {
    let mut found = Vec::new();
    let to = to.map(str::as_bytes);
    snapshot.scan(partition, from.as_bytes(), to, limit, &mut |key, _| {
        found.push(String::from_utf8(key.to_vec()).unwrap());
        ControlFlow::Continue(())
    })?;
    Ok(found.join(" "))
}

#[test]
fn records_come_back_as_they_were_put() {
    on_both(|store| {
        let first = store
            .commit_blocking(batch(|b| {
                b.put("mail/ada", "k", "one")
                    .put("mail/ada", [0, 255], vec![0, 1, 2]);
            }))
            .unwrap();
        let record = get(&store, "mail/ada", "k").unwrap();
        assert_eq!(
            record,
            Record {
                value: "one".into(),
                revision: first.revision
            }
        );
        let second = store
            .commit_blocking(batch(|b| _ = b.put("mail/ada", "k", "")))
            .unwrap();
        assert!(second.revision > first.revision);
        assert_eq!(get(&store, "mail/ada", "k").unwrap().value, "");
        assert_eq!(get(&store, "mail/eve", "k"), None);
        assert_eq!(get(&store, "mail/ada", "j"), None);
        store
            .commit_blocking(batch(|b| _ = b.delete("mail/ada", "k")))
            .unwrap();
        assert_eq!(get(&store, "mail/ada", "k"), None);
        assert!(store.data_bytes().unwrap() > 0);
    });
}

#[test]
fn scans_are_ordered_bounded_and_stay_in_their_partition() {
    on_both(|store| {
        store
            .commit_blocking(batch(|b| {
                for key in ["c/2", "c/10", "a", "c/1", "d", ""] {
                    b.put("p", key, key);
                }
                b.put("o", "c/0", "").put("q", "c/3", "");
            }))
            .unwrap();
        assert_eq!(keys(&store, "p", "", None, 100), " a c/1 c/10 c/2 d");
        assert_eq!(keys(&store, "p", "c/", Some("c0"), 100), "c/1 c/10 c/2");
        assert_eq!(keys(&store, "p", "c/10", Some("c/2"), 100), "c/10");
        assert_eq!(keys(&store, "p", "c/", None, 2), "c/1 c/10");
        assert_eq!(keys(&store, "p", "d", Some("a"), 100), "");
        assert_eq!(keys(&store, "p", "a", None, 0), "");
        assert_eq!(keys(&store, "none", "", None, usize::MAX), "");
        let mut seen = 0;
        store
            .read(|snapshot| {
                snapshot.scan("p", b"", None, 100, &mut |_, _| {
                    seen += 1;
                    if seen == 2 {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                })
            })
            .unwrap();
        assert_eq!(seen, 2);
    });
}

#[test]
fn ranges_and_partitions_are_deleted() {
    on_both(|store| {
        store
            .commit_blocking(batch(|b| {
                for key in ["a", "b", "c", "d"] {
                    b.put("p", key, "").put("q", key, "");
                }
            }))
            .unwrap();
        store
            .commit_blocking(batch(|b| {
                b.delete_range("p", "b", "d").delete_range("p", "d", "a");
                b.delete_range("none", "a", "b");
            }))
            .unwrap();
        assert_eq!(keys(&store, "p", "", None, 100), "a d");
        // In order: what is put after the partition was emptied stays.
        store
            .commit_blocking(batch(|b| {
                b.put("p", "e", "").delete_partition("p").put("p", "f", "");
            }))
            .unwrap();
        assert_eq!(keys(&store, "p", "", None, 100), "f");
        assert_eq!(keys(&store, "q", "", None, 100), "a b c d");
    });
}

#[test]
fn additions_from_many_threads_all_count() {
    on_both(|store| {
        std::thread::scope(|scope| {
            for thread in 0..8_i64 {
                let store = &store;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let add = batch(|b| {
                            b.add("p", "sum", [1, -1, thread]);
                        });
                        store.commit_blocking(add).unwrap();
                    }
                });
            }
        });
        let sums = |key| get(&store, "p", key).map(|record| counters(&record.value).collect());
        assert_eq!(sums("sum"), Some(vec![400, -400, 50 * 28]));
        let edge = batch(|b| {
            b.put("p", "odd", "no number")
                .add("p", "odd", [i64::MAX])
                .add("p", "odd", [i64::MAX, 7])
                .add("p", "odd", []);
        });
        store.commit_blocking(edge).unwrap();
        assert_eq!(sums("odd"), Some(vec![i64::MAX, 7]));
    });
}

#[test]
fn a_failed_assert_changes_nothing_and_names_itself() {
    on_both(|store| {
        let old = store
            .commit_blocking(batch(|b| _ = b.put("p", "k", "1")))
            .unwrap()
            .revision;
        let new = store
            .commit_blocking(batch(|b| _ = b.put("p", "k", "2")))
            .unwrap()
            .revision;
        let conflict = |build: fn(&mut Batch, u64), revision, expected: usize| {
            let outcome = store.commit_blocking(batch(|b| {
                build(b, revision);
                b.put("p", "k", "changed").put("q", "k", "changed");
            }));
            let Err(CommitError::Conflict { index }) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!(index, expected);
        };
        conflict(|b, _| _ = b.assert_absent("p", "k"), old, 0);
        conflict(
            |b, _| _ = b.assert_exists("p", "k").assert_exists("q", "k"),
            old,
            1,
        );
        conflict(|b, old| _ = b.assert_revision("p", "k", old), old, 0);
        conflict(|b, old| _ = b.assert_revision("p", "none", old), old, 0);
        assert_eq!(get(&store, "p", "k").unwrap().value, "2");
        assert_eq!(get(&store, "q", "k"), None);
        store
            .commit_blocking(batch(|b| {
                b.assert_absent("q", "k")
                    .assert_exists("p", "k")
                    .assert_revision("p", "k", new);
                b.put("p", "k", "3");
            }))
            .unwrap();
        assert_eq!(get(&store, "p", "k").unwrap().value, "3");
        assert_eq!(store.stats().commits, 3);
        assert_eq!(store.stats().conflicts, 4);
    });
}

#[test]
fn while_the_writer_is_idle_a_commit_can_be_made_at_once() {
    on_both(|store| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let put = batch(|b| _ = b.put("p", "a", "1"));
        let at_once = runtime.block_on(async {
            tokio::select! {
                biased;
                done = store.commit_here(put) => done.is_ok(),
                () = std::future::ready(()) => false,
            }
        });
        assert!(at_once);
        assert_eq!(get(&store, "p", "a").unwrap().value, "1");
    });
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

/// Copying the log back is the writer's work, also where others have done the writing.
#[test]
fn a_log_that_others_wrote_is_copied_back() {
    const BATCHES: u32 = 40;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
    let put = |number: u32| {
        let value = vec![7; 1 << 20];
        let batch = batch(|b| _ = b.put("p", number.to_be_bytes(), value));
        store.commit_blocking(batch).unwrap();
    };
    (0..BATCHES).for_each(put);
    let database = folder.path().join("groupware.sqlite");
    let is_copied = || std::fs::metadata(&database).unwrap().len() > 30 << 20;
    wait_until(
        Duration::from_secs(120),
        "the log to be copied back",
        is_copied,
    );
    assert_eq!(store.stats().groups, u64::from(BATCHES));
}

#[test]
fn a_snapshot_does_not_move() {
    on_both(|store| {
        store
            .commit_blocking(batch(|b| _ = b.put("p", "a", "1")))
            .unwrap();
        store
            .read(|snapshot| {
                let before = snapshot.get("p", b"a")?;
                store
                    .commit_blocking(batch(|b| _ = b.put("p", "a", "2").put("p", "b", "")))
                    .unwrap();
                assert_eq!(snapshot.get("p", b"a")?, before);
                assert_eq!(scan(snapshot, "p", "", None, 100)?, "a");
                assert_eq!(get(&store, "p", "a").unwrap().value, "2");
                Ok::<_, StoreError>(())
            })
            .unwrap();
    });
}

#[test]
fn what_is_too_large_is_refused() {
    on_both(|store| {
        let long = vec![b'k'; MAX_KEY_BYTES + 1];
        let outcome = store.commit_blocking(batch(|b| _ = b.put("p", long, "")));
        assert!(matches!(outcome, Err(CommitError::TooLarge)), "{outcome:?}");
    });
}

#[test]
fn a_closed_store_refuses_to_write_and_still_reads() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    on_both(|store| {
        store
            .commit_blocking(batch(|b| _ = b.put("p", "k", "1")))
            .unwrap();
        runtime.block_on(async {
            let (waiting, ()) = tokio::join!(
                store.commit(batch(|b| _ = b.put("p", "l", "1"))),
                store.close()
            );
            waiting.unwrap();
            let late = store.commit(batch(|b| _ = b.put("p", "m", "1"))).await;
            assert!(matches!(late, Err(CommitError::Closed)), "{late:?}");
            store.close().await;
        });
        assert_eq!(keys(&store, "p", "", None, 100), "k l");
    });
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
    // In one group, the batch that doesn't fit takes no other down with it.
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
    // Deleting makes room.
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
        "FILE has schema version 7, and this program knows versions up to 2"
    );
}

/// Up to version 1, large values lay in their records.
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
            "DROP TABLE large_values; PRAGMA user_version = 1;
             INSERT INTO records VALUES ('p', CAST('old' AS BLOB), 1, zeroblob(5000));",
        )
        .unwrap();
    // Who only wants to look leaves it alone.
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

/// The rights of a file or folder, without its kind.
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
    // As an older version made it, within a folder that somebody opened to a group.
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

#[test]
fn values_are_shown_where_they_lie() {
    on_both(|store| {
        store
            .commit_blocking(batch(|b| {
                b.put("p", "a", "one")
                    .put("p", "b", vec![7; 5000])
                    .put("p", "c", "three");
            }))
            .unwrap();
        let mut found = Vec::new();
        let browsed = store.read(|snapshot| {
            snapshot.browse("p", b"a", None, 2, &mut |key, value| {
                found.push((key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            })
        });
        browsed.unwrap();
        let expected = [(&b"a"[..], b"one".to_vec()), (b"b", vec![7; 5000])];
        assert_eq!(found, expected.map(|(key, value)| (key.to_vec(), value)));
    });
}

#[test]
fn many_records_go_some_at_a_time() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    on_both(|store| {
        let commit = |batch| runtime.block_on(store.commit(batch)).unwrap();
        for from in (0..3000).step_by(1000) {
            commit(batch(|batch| {
                for number in from..from + 1000 {
                    batch.put("p", format!("k{number:04}"), "value");
                }
            }));
        }
        commit(batch(|batch| {
            for number in 0..5 {
                batch.put("p", format!("large{number}"), vec![7; 700 << 10]);
            }
            batch
                .put("p", "a", "")
                .put("p", "z", "")
                .put("q", "k0000", "");
        }));
        let groups = store.stats().groups;
        let gone = store.remove_in_slices("p", b"k", Some(b"m"));
        runtime.block_on(gone).unwrap();
        assert_eq!(keys(&store, "p", "", None, usize::MAX), "a z");
        assert_eq!(keys(&store, "q", "", None, usize::MAX), "k0000");
        // Six of 500 each, the last of which takes in large ones, and the rest of these by two.
        let slices = store.stats().groups - groups;
        assert!((7..=10).contains(&slices), "{slices}");
        runtime
            .block_on(store.remove_in_slices("p", b"", None))
            .unwrap();
        runtime
            .block_on(store.remove_in_slices("p", b"", None))
            .unwrap();
        assert_eq!(keys(&store, "p", "", None, usize::MAX), "");
    });
}
