//! A really full disk: a small tmpfs, which requires root to mount.

use groupware_store::{Batch, CommitError, Store, StoreError, StoreOptions};
use plimsoll_tests::tmpfs::Tmpfs;

fn put(store: &Store, number: u32, bytes: usize) -> Result<(), CommitError> {
    let mut batch = Batch::new();
    // Two records: neither may be there without the other.
    batch
        .put("p", number.to_be_bytes(), vec![1; bytes])
        .put("q", number.to_be_bytes(), "");
    store.commit_blocking(batch).map(drop)
}

fn there(store: &Store, number: u32) -> bool {
    let key = number.to_be_bytes();
    let (p, q) = store
        .read(|snapshot| {
            Ok::<_, StoreError>((
                snapshot.get("p", &key)?.is_some(),
                snapshot.get("q", &key)?.is_some(),
            ))
        })
        .unwrap();
    assert_eq!(p, q, "batch {number} is half there");
    p
}

fn check(store: &Store, acknowledged: &[u32], failed: &[u32]) {
    assert!(acknowledged.iter().all(|number| there(store, *number)));
    assert!(!failed.iter().any(|number| there(store, *number)));
}

#[test]
fn a_full_disk_fails_writes_keeps_reads_and_recovers() {
    fill(400, 50_000, StoreOptions::default());
}

/// Short values stay pending if the tree has no room.
#[test]
fn a_disk_too_full_for_what_waits_keeps_it() {
    fill(
        40_000,
        500,
        StoreOptions::default().pending_bytes(256 << 10),
    );
}

fn fill(most: u32, bytes: usize, options: StoreOptions) {
    let Some(disk) = Tmpfs::mount("8m") else {
        println!("SKIPPED: mounting a tmpfs is not permitted here");
        return;
    };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 3 << 20]).unwrap();
    let open = || Store::open_sqlite(&disk.path().join("data"), options.clone()).unwrap();
    let store = open();
    let (mut acknowledged, mut failed) = (Vec::new(), Vec::new());
    for number in 0..most {
        match put(&store, number, bytes) {
            Ok(()) => acknowledged.push(number),
            Err(CommitError::Full) => failed.push(number),
            Err(error) => panic!("{error}"),
        }
        if failed.len() == 5 {
            break;
        }
    }
    assert!(acknowledged.len() > 10, "{acknowledged:?}");
    assert_eq!(failed.len(), 5, "the disk is small enough to be filled");
    check(&store, &acknowledged, &failed);

    std::fs::remove_file(&ballast).unwrap();
    put(&store, most, bytes).unwrap();
    acknowledged.push(most);
    check(&store, &acknowledged, &failed);
    drop(store);
    check(&open(), &acknowledged, &failed);
}
