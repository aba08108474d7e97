//! The change log brings a copy of any moment forward to every later moment.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use groupware_store::{
    Batch, CommitError, Form, Numbered, OpenError, ReplayError, Replayed, Store, StoreError,
    StoreOptions, copy_records, replay, segments,
};

const PARTITIONS: [&str; 3] = ["a", "b", "counters"];
const ALWAYS: i64 = i64::MAX;

type Records = BTreeMap<(String, Vec<u8>), (u64, Vec<u8>)>;

/// A store with a log, and its records after each commit.
struct StoredLog {
    folder: tempfile::TempDir,
    store: Option<Store>,
    then: Vec<Records>,
}

fn open(folder: &Path) -> Result<Store, OpenError> {
    let options = StoreOptions::default().changes(folder.join("changes"));
    Store::open_sqlite(folder, options)
}

fn records(store: &Store) -> Records {
    let mut found = Records::new();
    let read: Result<(), StoreError> = store.read(|snapshot| {
        for partition in PARTITIONS {
            snapshot.scan(partition, &[], None, usize::MAX, &mut |key, record| {
                let at = (partition.to_owned(), key.to_vec());
                found.insert(at, (record.revision, record.value.to_vec()));
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    });
    read.unwrap();
    found
}

/// Puts, additions, and removals of every kind, some of large values.
fn batch(number: u64) -> Batch {
    let bytes = if number.is_multiple_of(5) { 5000 } else { 50 };
    let (mut batch, value) = (Batch::new(), vec![number as u8; bytes]);
    batch
        .put("a", (number % 40).to_be_bytes(), value.clone())
        .put("b", number.to_be_bytes(), value)
        .add("counters", "count", [1, number as i64])
        .add_from("counters", "from", [number as i64], [1]);
    let last = || (bytes::Bytes::from_static(b"from"), 0);
    let name = Numbered::new("ring/").number(last(), 0, Form::Ring(8));
    let text = Numbered::default().number(last(), 1, Form::Decimal);
    batch.put_numbered("counters", name, text);
    match number % 11 {
        3 => batch.delete("a", (number / 2 % 40).to_be_bytes()),
        5 => batch.delete_range("b", 0_u64.to_be_bytes(), (number / 2).to_be_bytes()),
        7 => batch.delete_partition("a"),
        _ => &mut batch,
    };
    batch
}

impl StoredLog {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).unwrap();
        Self {
            folder,
            store: Some(store),
            then: Vec::new(),
        }
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&mut self, count: u64) {
        for _ in 0..count {
            let number = self.then.len() as u64 + 1;
            self.store().commit_blocking(batch(number)).unwrap();
            self.then.push(records(self.store()));
        }
    }

    fn close(&mut self) {
        let store = self.store.take().unwrap();
        store.close_blocking();
    }

    fn reopen(&mut self) {
        self.close();
        self.store = Some(open(self.path()).unwrap());
    }

    fn copy(&self) -> tempfile::TempDir {
        let to = tempfile::tempdir().unwrap();
        copy_records(self.path(), to.path()).unwrap();
        to
    }

    /// The time of each commit, in microseconds since 1970.
    fn times(&self) -> Vec<i64> {
        let files = segments(&self.path().join("changes")).unwrap();
        let groups = files.iter().flat_map(|file| file.groups().unwrap());
        groups.map(|group| group.unwrap().time_us).collect()
    }

    fn forward(&self, copy: &Path, until_us: i64) -> Result<Replayed, ReplayError> {
        replay(copy, &self.path().join("changes"), until_us, &mut |_| {})
    }
}

/// The records in a folder, brought forward or not.
fn found(folder: &Path) -> Records {
    let store = Store::open_sqlite(folder, StoreOptions::default()).unwrap();
    let found = records(&store);
    assert_eq!(store.integrity().unwrap(), Vec::<String>::new());
    store.close_blocking();
    found
}

#[test]
fn a_copy_is_brought_to_every_later_moment() {
    let mut kept = StoredLog::new();
    let before = kept.copy();
    kept.write(30);
    let within = kept.copy();
    kept.write(20);
    kept.reopen();
    kept.write(10);
    let times = kept.times();
    assert_eq!(times.len(), 60);
    assert!(times.is_sorted_by(|one, next| one < next));
    for until in [0, 1, 11, 29, 30, 44, 59] {
        let copy = tempfile::tempdir().unwrap();
        copy_records(before.path(), copy.path()).unwrap();
        // The moment itself, and any before the next.
        let moment = times[until] + i64::from(until % 2 == 0 && until < 59);
        let replayed = kept.forward(copy.path(), moment).unwrap();
        assert_eq!(replayed.groups, until as u64 + 1);
        assert_eq!(replayed.last_us, Some(times[until]));
        assert_eq!(replayed.is_cut, until < 59);
        assert_eq!(found(copy.path()), kept.then[until], "{until}");
    }
    let copy = kept.copy_of(within.path());
    let late = kept.forward(copy.path(), times[28]).unwrap_err();
    assert!(matches!(late, ReplayError::Later), "{late}");
    assert_eq!(kept.forward(within.path(), times[29]).unwrap().groups, 0);
    assert_eq!(found(within.path()), kept.then[29]);
    let whole = kept.copy_of(before.path());
    kept.forward(whole.path(), ALWAYS).unwrap();
    assert_eq!(found(whole.path()), *kept.then.last().unwrap());
    // Records that were brought forward belong to no log.
    let again = kept.forward(whole.path(), ALWAYS).unwrap_err();
    assert!(matches!(again, ReplayError::Foreign(_)), "{again}");
}

impl StoredLog {
    fn copy_of(&self, folder: &Path) -> tempfile::TempDir {
        let to = tempfile::tempdir().unwrap();
        copy_records(folder, to.path()).unwrap();
        to
    }
}

/// The state after a stop between the log's sync and the commit: the log has one more group.
#[test]
fn what_was_logged_and_not_committed_counts_for_nothing() {
    let mut kept = StoredLog::new();
    let base = kept.copy();
    kept.write(7);
    kept.close();
    let file = kept.path().join("groupware.sqlite");
    let records_of_seven = fs::read(&file).unwrap();
    kept.store = Some(open(kept.path()).unwrap());
    kept.write(1);
    kept.close();
    fs::write(&file, &records_of_seven).unwrap();
    kept.then.pop();
    kept.store = Some(open(kept.path()).unwrap());
    assert_eq!(records(kept.store()), kept.then[6]);
    assert_eq!(kept.times().len(), 7);
    kept.write(3);
    let copy = kept.copy_of(base.path());
    assert_eq!(kept.forward(copy.path(), ALWAYS).unwrap().groups, 10);
    assert_eq!(found(copy.path()), kept.then[9]);
    // Also half a group.
    kept.close();
    let last = segments(&kept.path().join("changes"))
        .unwrap()
        .pop()
        .unwrap();
    let mut bytes = fs::read(&last.path).unwrap();
    bytes.extend([7; 33]);
    fs::write(&last.path, &bytes).unwrap();
    kept.store = Some(open(kept.path()).unwrap());
    kept.write(2);
    kept.forward(base.path(), ALWAYS).unwrap();
    assert_eq!(found(base.path()), kept.then[11]);
}

#[test]
fn records_of_an_earlier_moment_do_not_cut_the_log() {
    let mut kept = StoredLog::new();
    kept.write(3);
    kept.close();
    let file = kept.path().join("groupware.sqlite");
    let old = fs::read(&file).unwrap();
    kept.store = Some(open(kept.path()).unwrap());
    kept.write(2);
    kept.close();
    fs::write(&file, &old).unwrap();
    let ahead = open(kept.path()).unwrap_err();
    assert!(matches!(ahead, OpenError::LogAhead { .. }), "{ahead}");
    assert_eq!(kept.times().len(), 5);
}

#[test]
fn a_gap_ends_a_log() {
    let mut kept = StoredLog::new();
    let first = kept.copy();
    kept.write(3);
    kept.close();
    let unlogged = Store::open_sqlite(kept.path(), StoreOptions::default()).unwrap();
    unlogged.commit_blocking(batch(50)).unwrap();
    unlogged.close_blocking();
    drop(unlogged);
    let between = kept.copy();
    kept.store = Some(open(kept.path()).unwrap());
    let second = kept.copy();
    kept.write(4);
    // Each log has its own groups.
    assert_eq!(kept.forward(first.path(), ALWAYS).unwrap().groups, 3);
    assert_eq!(found(first.path()), kept.then[2]);
    let foreign = kept.forward(between.path(), ALWAYS).unwrap_err();
    assert!(matches!(foreign, ReplayError::Foreign(_)), "{foreign}");
    let copy = kept.copy_of(second.path());
    assert_eq!(kept.forward(copy.path(), ALWAYS).unwrap().groups, 4);
    assert_eq!(found(copy.path()), kept.then[6]);
    // The required files are gone.
    let files = segments(&kept.path().join("changes")).unwrap();
    fs::remove_file(&files.last().unwrap().path).unwrap();
    kept.reopen();
    kept.write(1);
    let foreign = kept.forward(second.path(), ALWAYS).unwrap_err();
    assert!(matches!(foreign, ReplayError::Foreign(_)), "{foreign}");
}

/// Files of 16 MiB follow each other; without the first of them, the groups before the second can't be reached.
#[test]
fn a_log_of_many_files_is_read_through_them() {
    let kept = StoredLog::new();
    let base = kept.copy();
    let large = |number: u8| {
        let mut batch = Batch::new();
        batch.put("a", [number], vec![number; 6 << 20]);
        batch
    };
    for number in 0..9 {
        kept.store().commit_blocking(large(number)).unwrap();
    }
    let later = kept.copy();
    kept.store().commit_blocking(large(9)).unwrap();
    let folder = kept.path().join("changes");
    let files = segments(&folder).unwrap();
    assert_eq!(files.len(), 4, "{files:?}");
    let copy = kept.copy_of(base.path());
    assert_eq!(kept.forward(copy.path(), ALWAYS).unwrap().groups, 10);
    assert_eq!(found(copy.path()), records(kept.store()));
    let mut bytes = fs::read(&files[1].path).unwrap();
    bytes[1 << 20] ^= 1;
    fs::write(&files[1].path, &bytes).unwrap();
    let copy = kept.copy_of(base.path());
    let damaged = kept.forward(copy.path(), ALWAYS).unwrap_err();
    assert!(matches!(damaged, ReplayError::Damaged(_)), "{damaged}");
    fs::remove_file(&files[0].path).unwrap();
    let gap = kept.forward(base.path(), ALWAYS).unwrap_err();
    assert!(matches!(gap, ReplayError::Gap(_)), "{gap}");
    // A later copy needs fewer groups.
    assert_eq!(kept.forward(later.path(), ALWAYS).unwrap().groups, 1);
    assert_eq!(found(later.path()), records(kept.store()));
}

#[test]
fn what_conflicts_is_not_logged_and_what_comes_together_is_logged_together() {
    let kept = StoredLog::new();
    let base = kept.copy();
    let writers = (0..8_u64).map(|writer| {
        let store = kept.store().clone();
        std::thread::spawn(move || {
            let mut conflicts = 0;
            for number in 0..50_u64 {
                let mut batch = batch(writer * 100 + number);
                if number % 3 == 0 {
                    batch.assert_exists("b", "nothing");
                }
                match store.commit_blocking(batch) {
                    Ok(_) => {}
                    Err(CommitError::Conflict { .. }) => conflicts += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            conflicts
        })
    });
    let writers: Vec<_> = writers.collect();
    let conflicts: u64 = writers.into_iter().map(|one| one.join().unwrap()).sum();
    assert_eq!(conflicts, 8 * 17);
    let replayed = kept.forward(base.path(), ALWAYS).unwrap();
    assert_eq!(replayed.batches, 8 * 50 - conflicts);
    assert_eq!(found(base.path()), records(kept.store()));
}
