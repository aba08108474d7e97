//! Tests of backups: concurrent writes, interruption at any point, damage, pruning, restore.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use groupware_backup::{
    BackupError, Forward, Manifest, ReplayError, Taken, change_logs, check, list, prune, restore,
    restore_at, take,
};
use groupware_content::{ContentHash, ContentStore};
use groupware_people::{Account, Credentials, UserName};
use groupware_store::{Batch, Store, StoreOptions};

/// A data folder with a user.
struct Data {
    folder: tempfile::TempDir,
    store: Store,
    content: ContentStore,
}

impl Data {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
        let content = ContentStore::open(folder.path()).unwrap();
        Self::of(folder, store, content)
    }

    /// Creates a data folder that keeps its changes.
    fn keeping() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions::default().changes(folder.path().join("changes"));
        let store = Store::open_sqlite(folder.path(), options).unwrap();
        let content = ContentStore::open_sparing(folder.path()).unwrap();
        Self::of(folder, store, content)
    }

    fn of(folder: tempfile::TempDir, store: Store, content: ContentStore) -> Self {
        let ada = Account::new(UserName::parse("ada").unwrap(), 0, Credentials::default());
        let mut batch = Batch::new();
        batch.put(
            "$accounts",
            b"ada".to_vec(),
            ada.stored(&Credentials::default()),
        );
        store.commit_blocking(batch).unwrap();
        Self {
            folder,
            store,
            content,
        }
    }

    /// Stores content and a reference to it, like that of an attachment.
    fn attach(&self, text: &[u8]) -> ContentHash {
        let mut file = self
            .content
            .create_whole("new", Some(text.len() as u64))
            .unwrap();
        file.append(text).unwrap();
        let pin = file.finish().unwrap();
        let mut batch = Batch::new();
        batch.put(
            "ada",
            reference(pin.hash()),
            (text.len() as u64).to_be_bytes().to_vec(),
        );
        self.store.commit_blocking(batch).unwrap();
        pin.hash()
    }

    fn detach(&self, hash: ContentHash) {
        let mut batch = Batch::new();
        batch.delete("ada", reference(hash));
        self.store.commit_blocking(batch).unwrap();
        let sweep = self
            .content
            .sweep_folder(hash.as_bytes()[0])
            .unwrap()
            .unwrap();
        sweep.finish().unwrap();
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn back_up(&self, to: &Path, name: &str, now_s: i64) -> Taken {
        take(self.path(), to, (name, now_s, "0.0.0")).unwrap()
    }
}

fn reference(hash: ContentHash) -> Vec<u8> {
    format!("d/c/{hash}/notes/0/Body/a").into_bytes()
}

/// Reads the pairs of counters in a restored folder.
fn counters(folder: &Path) -> (Vec<u8>, Vec<u8>) {
    let store = Store::open_sqlite(folder, StoreOptions::default()).unwrap();
    let get = |partition: &str| {
        let found = store.read(|snapshot| snapshot.get(partition, b"count"));
        let found: Result<_, groupware_store::StoreError> = found;
        found
            .unwrap()
            .map(|record| record.value.to_vec())
            .unwrap_or_default()
    };
    (get("a"), get("b"))
}

#[test]
fn a_backup_is_that_of_one_moment_while_others_write() {
    let data = Data::new();
    data.attach(b"first");
    let to = tempfile::tempdir().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(AtomicU64::new(0));
    let writer = {
        let (store, stop) = (data.store.clone(), Arc::clone(&stop));
        let acknowledged = Arc::clone(&acknowledged);
        std::thread::spawn(move || {
            let mut number = 0_u64;
            while !stop.load(Relaxed) {
                number += 1;
                let mut batch = Batch::new();
                for partition in ["a", "b"] {
                    batch.put(partition, b"count".to_vec(), number.to_be_bytes().to_vec());
                    batch.put(partition, format!("{number}").into_bytes(), vec![7; 3000]);
                }
                store.commit_blocking(batch).unwrap();
                acknowledged.store(number, Relaxed);
            }
            number
        })
    };
    let mut last = 0;
    for round in 0..5_i64 {
        let name = format!("backup-{round}");
        let hash = data.attach(format!("round {round}").as_bytes());
        while acknowledged.load(Relaxed) == last && !writer.is_finished() {
            std::thread::yield_now();
        }
        last = acknowledged.load(Relaxed);
        let taken = data.back_up(to.path(), &name, round);
        assert_eq!(
            (taken.new_contents, taken.manifest.users),
            (if round == 0 { 2 } else { 1 }, 1)
        );
        let restored = to.path().with_extension(&name);
        restore(to.path(), &taken.manifest, &restored).unwrap();
        let (a, b) = counters(&restored);
        assert_eq!(a, b, "a batch is there whole or not at all");
        let number = u64::from_be_bytes(a.try_into().unwrap());
        assert!(number >= last, "what was acknowledged before is in it");
        let content = ContentStore::open(&restored).unwrap();
        assert!(content.has(hash, 7));
        assert!(check(to.path(), &taken.manifest).unwrap().wrong.is_empty());
        fs::remove_dir_all(&restored).unwrap();
    }
    stop.store(true, Relaxed);
    assert!(writer.join().unwrap() > 0);
    assert_eq!(list(to.path()).unwrap().whole.len(), 5);
}

#[test]
fn one_that_was_cut_off_counts_for_nothing_and_goes() {
    let data = Data::new();
    let to = tempfile::tempdir().unwrap();
    let taken = data.back_up(to.path(), "1", 1);
    let partial = to.path().join("backups/2.partial");
    fs::create_dir(&partial).unwrap();
    fs::write(partial.join("groupware.sqlite"), "half").unwrap();
    let found = list(to.path()).unwrap();
    assert_eq!((found.whole.len(), found.incomplete.len()), (1, 1));
    assert_eq!(found.whole[0], taken.manifest);
    // After an interrupted restore, too.
    let restored = to.path().with_extension("restored");
    let half = to.path().with_extension("restored.partial");
    fs::create_dir(&half).unwrap();
    fs::write(half.join("groupware.sqlite"), "half").unwrap();
    data.back_up(to.path(), "1", 3);
    assert!(!partial.exists());
    let found = list(to.path()).unwrap().whole;
    assert_eq!(found.last().unwrap().name, "1-2", "a name is given once");
    restore(to.path(), &found[1], &restored).unwrap();
    assert!(!half.exists());
    let again = restore(to.path(), &found[1], &restored).unwrap_err();
    assert!(matches!(again, BackupError::NotEmpty(_)), "{again}");
    fs::remove_dir_all(restored).unwrap();
}

#[test]
fn damage_is_found_and_never_put_back() {
    let data = Data::new();
    let hash = data.attach(b"content");
    let to = tempfile::tempdir().unwrap();
    let manifest = data.back_up(to.path(), "1", 1).manifest;
    let restored = to.path().with_extension("restored");
    let name = hash.to_string();
    let file = to.path().join("content").join(&name[..2]).join(&name[2..]);
    fs::write(&file, b"CONTENT").unwrap();
    let wrong = check(to.path(), &manifest).unwrap().wrong;
    assert_eq!(wrong, [format!("content {hash} is damaged")]);
    let failed = restore(to.path(), &manifest, &restored).unwrap_err();
    assert!(matches!(failed, BackupError::Content { .. }), "{failed}");
    fs::remove_file(&file).unwrap();
    let wrong = check(to.path(), &manifest).unwrap().wrong;
    assert_eq!(wrong, [format!("content {hash} is missing")]);
    // The next backup copies it again.
    data.back_up(to.path(), "2", 2);
    assert!(check(to.path(), &manifest).unwrap().wrong.is_empty());

    let records = to.path().join("backups/1/groupware.sqlite");
    let mut bytes = fs::read(&records).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&records, bytes).unwrap();
    assert_eq!(check(to.path(), &manifest).unwrap().wrong.len(), 1);
    let failed = restore(to.path(), &manifest, &restored).unwrap_err();
    assert!(matches!(failed, BackupError::Records(_)), "{failed}");
    assert!(!restored.exists());
}

#[test]
fn old_backups_go_with_what_only_they_have() {
    let data = Data::new();
    let (old, kept) = (data.attach(b"old"), data.attach(b"kept"));
    let to = tempfile::tempdir().unwrap();
    data.back_up(to.path(), "1", 1);
    data.detach(old);
    assert!(!data.content.has(old, 3), "the sweep took it from the data");
    data.back_up(to.path(), "2", 2);
    data.back_up(to.path(), "3", 3);
    assert_eq!(prune(to.path(), 2).unwrap(), 1);
    let content = ContentStore::open(to.path()).unwrap();
    assert!(!content.has(old, 3) && content.has(kept, 4));
    let left = list(to.path()).unwrap().whole;
    assert_eq!(left.len(), 2);
    for manifest in left {
        assert!(check(to.path(), &manifest).unwrap().wrong.is_empty());
    }
    assert_eq!(prune(to.path(), 2).unwrap(), 0);
}

#[test]
fn nothing_is_swept_while_a_backup_copies() {
    let data = Data::new();
    let hash = data.attach(b"held");
    // Like a backup in another process: a separate store on the same folder.
    let other = ContentStore::open(data.path()).unwrap();
    let hold = other.hold().unwrap();
    data.detach(hash);
    assert!(data.content.has(hash, 4));
    drop(hold);
    let sweep = data
        .content
        .sweep_folder(hash.as_bytes()[0])
        .unwrap()
        .unwrap();
    assert_eq!(sweep.finish().unwrap().removed, 1);
}

#[test]
fn foreign_folders_are_left_alone() {
    let data = Data::new();
    let to = tempfile::tempdir().unwrap();
    fs::write(to.path().join("letter.txt"), "mine").unwrap();
    let refused = take(data.path(), to.path(), ("1", 1, "0")).unwrap_err();
    assert!(matches!(refused, BackupError::Foreign(_)), "{refused}");
    let empty = tempfile::tempdir().unwrap();
    let refused = take(empty.path(), &to.path().join("new"), ("1", 1, "0")).unwrap_err();
    assert!(matches!(refused, BackupError::NoData(_)), "{refused}");
    assert!(!to.path().join("new").exists());
    assert!(matches!(list(empty.path()), Err(BackupError::NoBackup(_))));
}

/// Makes a backup, then adds and removes content: each later moment is restored with its content.
#[test]
fn a_backup_is_brought_to_any_later_moment() {
    let data = Data::keeping();
    let first = data.attach(b"first");
    let to = tempfile::tempdir().unwrap();
    let taken = data.back_up(to.path(), "1", 1);
    let now_us = || change_logs(data.path()).unwrap().last().unwrap().to_us;
    let before = now_us();
    let second = data.attach(b"second");
    let with_second = now_us();
    data.detach(first);
    let without_first = now_us();
    data.detach(second);
    assert!(
        !data.content.has(second, 6),
        "the sweep took it from its place"
    );
    let late = data.back_up(to.path(), "2", 2);
    let third = data.attach(b"third");
    let end = now_us();
    let backups = list(to.path()).unwrap().whole;
    let mut bytes = 0;
    for (name, until_us, has, by) in [
        ("before", before, vec![first], "1"),
        ("second", with_second, vec![first, second], "1"),
        ("without", without_first, vec![second], "1"),
        ("between", end - 1, vec![], "2"),
        ("end", end + 1_000_000, vec![third], "2"),
    ] {
        let restored = to.path().with_extension(name);
        let forward = Forward {
            data: data.path(),
            until_us,
        };
        // The second backup is skipped if it is too late.
        let done = restore_at(to.path(), &backups, &restored, forward, &mut |told| {
            bytes = told
        });
        let (done, replayed) = done.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(done.manifest.name, by, "{name}");
        assert_eq!(replayed.is_cut, until_us < end, "{name}");
        let content = ContentStore::open(&restored).unwrap();
        for (hash, length) in [(first, 5), (second, 6), (third, 5)] {
            assert_eq!(content.has(hash, length), has.contains(&hash), "{name}");
        }
        fs::remove_dir_all(&restored).unwrap();
    }
    assert!(bytes > 0);
    assert_eq!(late.manifest.contents, 0);
    // Content that only kept changes refer to is missing: the restore fails as a whole.
    let lost = data.path().join("spared").join(second.to_string());
    fs::remove_file(lost).unwrap();
    let restored = to.path().with_extension("lost");
    let forward = Forward {
        data: data.path(),
        until_us: with_second,
    };
    let failed = restore_at(to.path(), &backups, &restored, forward, &mut |_| {}).unwrap_err();
    assert!(matches!(failed, BackupError::Content { .. }), "{failed}");
    assert!(!restored.exists());
    // A backup of another folder.
    let other = Data::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let foreign = [other.back_up(elsewhere.path(), "1", 1).manifest];
    let failed = restore_at(elsewhere.path(), &foreign, &restored, forward, &mut |_| {});
    let failed = failed.unwrap_err();
    assert!(
        matches!(failed, BackupError::Replay(ReplayError::Foreign(_))),
        "{failed}"
    );
    let _ = fs::remove_dir_all(restored.with_extension("lost.partial"));
    assert_eq!(taken.manifest.contents, 1);
}

/// Converts the records of a backup to an earlier version with this SQL.
fn make_older(folder: &Path, manifest: &Manifest, by: &str) {
    let of = folder.join("backups").join(&manifest.name);
    let file = of.join("groupware.sqlite");
    // The earlier version had no pending changes.
    let store = Store::open_sqlite(&of, StoreOptions::default()).unwrap();
    store.close_blocking();
    drop(store);
    rusqlite::Connection::open(&file)
        .unwrap()
        .execute_batch(&format!(
            "{by}; DROP TABLE pending; PRAGMA journal_mode = DELETE;"
        ))
        .unwrap();
    let bytes = fs::read(&file).unwrap();
    let mut older = manifest.clone();
    older.records.bytes = bytes.len() as u64;
    older.records.blake3 = blake3::hash(&bytes).to_hex().to_string();
    fs::write(
        of.join("manifest.json"),
        serde_json::to_vec(&older).unwrap(),
    )
    .unwrap();
}

#[test]
fn backups_of_earlier_versions_are_read_and_put_back() {
    read_and_put_back("PRAGMA user_version = 2");
    read_and_put_back("DROP TABLE large_values; PRAGMA user_version = 1");
}

fn read_and_put_back(older_by: &str) {
    let data = Data::new();
    let first = data.attach(b"first");
    let to = tempfile::tempdir().unwrap();
    let older = data.back_up(to.path(), "20260101T000000Z", 1).manifest;
    make_older(to.path(), &older, older_by);
    let second = data.attach(b"second");
    data.back_up(to.path(), "20260102T000000Z", 2);
    data.detach(first);
    data.back_up(to.path(), "20260103T000000Z", 3);
    let older = list(to.path()).unwrap().whole.remove(0);
    let file = to.path().join("backups/20260101T000000Z/groupware.sqlite");
    let before = fs::read(&file).unwrap();
    assert_eq!(
        check(to.path(), &older).unwrap().wrong,
        Vec::<String>::new()
    );
    let restored = to.path().with_extension("older");
    assert_eq!(restore(to.path(), &older, &restored).unwrap().contents, 1);
    Store::open_sqlite(&restored, StoreOptions::default().as_it_is()).unwrap();
    fs::remove_dir_all(&restored).unwrap();
    // Its content stays as long as the backup.
    let kept = || ContentStore::open(to.path()).unwrap();
    fs::rename(
        to.path().join("backups/20260101T000000Z"),
        to.path().join("backups/20260104T000000Z"),
    )
    .unwrap();
    assert_eq!(prune(to.path(), 2).unwrap(), 1);
    assert!(kept().has(first, 5) && kept().has(second, 6));
    let file = to.path().join("backups/20260104T000000Z/groupware.sqlite");
    assert_eq!(fs::read(&file).unwrap(), before);
    let left = fs::read_dir(to.path().join("backups")).unwrap().count();
    assert_eq!(left, 2, "nothing is left behind");
}
