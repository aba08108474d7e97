//! Sweeps over records in memory, a folder, and an object store that stores only names.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use groupware_content::{ContentError, Segments};
use groupware_people::UserName;
use groupware_service::Settings;
use groupware_store::{Store, StoreOptions};

use super::*;

const LIFETIME_S: i64 = 1000;

struct Count(Arc<AtomicU32>);

impl SweepObserver for Count {
    fn failed(&self) {
        self.0.fetch_add(1, Relaxed);
    }

    fn forgotten(&self, _: &str, _: &UploadId) {}

    fn under_way(&self, _: &HashSet<String>) {}
}

/// One pass over all users covers all folders. With many users, one pass for each folder takes hours of CPU time.
#[test]
fn a_pass_over_all_users_does_for_all_folders() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let service = Service::start(store, Settings::default()).unwrap();
    let content = ContentStore::scratch().unwrap();
    for number in 0..100_u8 {
        let mut whole = content.create_whole(&format!("w{number}"), None).unwrap();
        whole.append(&[number]).unwrap();
        whole.finish().unwrap();
    }
    let kept = |content: &ContentStore| {
        let sweep = content.sweep_from(0, usize::MAX);
        sweep.unwrap().unwrap().unreferenced().count()
    };
    assert_eq!(kept(&content), 100);
    let count = Count(Arc::default());
    let times = (1, Duration::ZERO);
    let sweep = ContentSweep::new(service, content.clone(), times, count);
    let (last, swept) = sweep.sweep_content(0, &Stop::never());
    assert!(last == u8::MAX && swept.is_ok());
    assert_eq!(kept(&content), 0);
}

#[test]
fn the_first_sweep_takes_what_was_left_and_nothing_that_is_begun() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let service = Service::start(store, Settings::default()).unwrap();
    let content = ContentStore::scratch().unwrap();
    let begin = |name| drop(content.create_upload(name, 1).unwrap());
    begin("left");
    let count = Count(Arc::default());
    let times = (1, Duration::ZERO);
    let mut sweep = ContentSweep::new(service, content.clone(), times, count);
    // Its record is written later.
    begin("begun");
    let left_over = sweep.left_over.take().unwrap();
    assert!(sweep.sweep_uploads(&left_over).is_ok());
    let files = content.upload_files().unwrap().into_iter();
    assert_eq!(files.map(|file| file.name).collect::<Vec<_>>(), ["begun"]);
}

fn context(snapshot: &dyn Snapshot, bits: u128, now: i64) -> Context<'_> {
    Context {
        snapshot,
        who: documents::Principal::owner("ada"),
        now,
        bits,
        quota_bytes: u64::MAX,
    }
}

/// Records an upload with this start time and with these bits in its name.
fn begin(store: &Store, bits: u128, then: i64) -> UploadId {
    let database = documents::DatabaseName::parse("files").unwrap();
    let fields = documents::Fields::parse(b"{}").unwrap();
    let made = store.read(|snapshot| {
        documents::create(&context(snapshot, !bits, then), &database, fields.clone())
    });
    let made = made.unwrap();
    store.commit_blocking(made.batch).unwrap();
    let new = documents::NewUpload {
        place: documents::ItemPath {
            database,
            unid: made.outcome,
            item: documents::ItemName::parse("Body").unwrap(),
        },
        name: documents::FileName::parse("file").unwrap(),
        media_type: String::new(),
        length: 5,
        deferred: None,
        concat: None,
        is_segmented: true,
        metadata: String::new(),
    };
    let begun = store.read(|snapshot| documents::begin(&context(snapshot, bits, then), &new));
    let begun = begun.unwrap();
    store.commit_blocking(begun.batch).unwrap();
    begun.outcome
}

/// A service with one user.
fn of_ada(store: &Store) -> Service {
    let service = Service::start(store.clone(), Settings::default()).unwrap();
    let name = UserName::parse("ada").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let added = service.auth.accounts.add(name, String::new(), false, 0);
    let _ = { runtime }.build().unwrap().block_on(added).unwrap();
    service
}

/// An object store that stores only names.
#[derive(Debug, Default)]
struct Names {
    all: Mutex<HashSet<String>>,
    /// True if every removal fails.
    is_stuck: AtomicBool,
}

impl Segments for Names {
    fn put(
        &self,
        name: &str,
        _: &dyn Fn() -> Result<Vec<u8>, ContentError>,
    ) -> Result<(), ContentError> {
        self.all.lock().unwrap().insert(name.to_owned());
        Ok(())
    }

    fn read(
        &self,
        name: &str,
        _: Range<u64>,
        _: &mut dyn FnMut(&[u8]) -> Result<(), ContentError>,
    ) -> Result<(), ContentError> {
        Err(ContentError::Missing { path: name.into() })
    }

    fn has(&self, name: &str) -> Result<bool, ContentError> {
        Ok(self.all.lock().unwrap().contains(name))
    }

    fn remove(&self, name: &str) -> Result<(), ContentError> {
        if self.is_stuck.load(Relaxed) {
            return Err(ContentError::Away("it is away".into()));
        }
        self.all.lock().unwrap().remove(name);
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>, ContentError> {
        Ok(self.all.lock().unwrap().iter().cloned().collect())
    }
}

/// Puts a segment of an upload and adds it to the upload's record; returns its name.
fn keep(store: &Store, names: &Names, (id, bits): (&UploadId, u128), now: i64) -> String {
    let held = store.read(|snapshot| documents::held_upload(snapshot, "ada", id));
    let held = held.unwrap();
    let name = documents::segment_name(id, held.revision, bits);
    names.put(&name, &|| Ok(Vec::new())).unwrap();
    let kept = held.upload.segments.as_ref().map_or(0, Vec::len);
    let segment = Segment {
        bytes: 1,
        name: name.clone(),
    };
    let batch = documents::keep_segments(("ada", id), held, (kept, vec![segment]), now);
    store.commit_blocking(batch).unwrap();
    name
}

/// Creates a sweep of uploads that expire after [`LIFETIME_S`], for a service and an object store.
fn sweep(service: &Service, names: &Arc<Names>) -> ContentSweep<Count> {
    let content = ContentStore::scratch().unwrap();
    let content = content.with_segments(Arc::clone(names) as _);
    let times = (LIFETIME_S, Duration::ZERO);
    ContentSweep::new(service.clone(), content, times, Count(Arc::default()))
}

#[test]
fn an_upload_expires_after_its_last_segment_wherever_that_came() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let service = of_ada(&store);
    let names = Arc::new(Names::default());
    let now = service.now_s();
    let [old, active, empty] = [1, 2, 3].map(|bits| begin(&store, bits, now - 2 * LIFETIME_S));
    keep(&store, &names, (&old, 1), now - LIFETIME_S - 1);
    let kept = keep(&store, &names, (&active, 1), now);
    let sweep = sweep(&service, &names);
    let sweep = sweep.of(Part::Folder);
    for _ in 0..2 {
        assert!(sweep.sweep_uploads(&HashSet::new()).is_ok());
        let are_there = [&old, &active, &empty].map(|id| {
            let found = store.read(|snapshot| documents::upload(snapshot, "ada", id));
            found.is_ok()
        });
        assert_eq!(are_there, [false, true, false]);
        assert_eq!(names.list().unwrap(), std::slice::from_ref(&kept));
    }
}

#[test]
fn an_upload_that_went_on_since_it_was_looked_at_is_not_given_up() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let service = of_ada(&store);
    let names = Arc::new(Names::default());
    let now = service.now_s();
    let id = begin(&store, 1, now - 5000);
    let kept = keep(&store, &names, (&id, 1), now - 1);
    let sweep = sweep(&service, &names);
    assert_eq!(sweep.give_up("ada", &id).ok(), Some(None));
    assert_eq!(names.list().unwrap(), [kept]);
    assert!(
        store
            .read(|snapshot| documents::upload(snapshot, "ada", &id))
            .is_ok()
    );
}

#[test]
fn segments_that_cannot_be_removed_end_no_sweep() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let service = of_ada(&store);
    let names = Arc::new(Names::default());
    let then = service.now_s() - 5000;
    let both = [1, 2].map(|bits| begin(&store, bits, then));
    for id in &both {
        keep(&store, &names, (id, 1), then);
    }
    names.is_stuck.store(true, Relaxed);
    let sweep = sweep(&service, &names);
    assert!(sweep.sweep_uploads(&HashSet::new()).is_err());
    for id in &both {
        assert!(
            store
                .read(|snapshot| documents::upload(snapshot, "ada", id))
                .is_err()
        );
    }
    names.is_stuck.store(false, Relaxed);
    assert_eq!(names.list().unwrap().len(), 2);
    assert!(sweep.sweep_segments().is_ok());
    assert!(names.list().unwrap().is_empty());
}

#[test]
fn segments_stay_of_a_user_whom_another_server_has_registered() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let service = Service::start(store.clone(), Settings::default()).unwrap();
    of_ada(&store);
    assert!(service.auth.directory().is_empty());
    let names = Arc::new(Names::default());
    let id = begin(&store, 1, service.now_s());
    let kept = keep(&store, &names, (&id, 1), service.now_s());
    let sweep = sweep(&service, &names);
    assert!(sweep.sweep_segments().is_ok());
    assert_eq!(names.list().unwrap(), [kept]);
}

#[test]
fn a_segment_is_removed_once_no_server_can_list_it_any_more() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let service = of_ada(&store);
    let names = Arc::new(Names::default());
    let id = begin(&store, 1, service.now_s());
    let first = store.read(|snapshot| documents::held_upload(snapshot, "ada", &id));
    let first = first.unwrap().revision;
    let put = |revision, bits| {
        let name = documents::segment_name(&id, revision, bits);
        names.put(&name, &|| Ok(Vec::new())).unwrap();
        name
    };
    let lost = put(first, 7);
    let listed = keep(&store, &names, (&id, 1), service.now_s());
    let second = store.read(|snapshot| documents::held_upload(snapshot, "ada", &id));
    let may_be_listed = put(second.unwrap().revision, 8);
    let of_none = documents::segment_name(&UploadId::from_bits(99), first, 1);
    for name in [&of_none, "of-others"] {
        names.put(name, &|| Ok(Vec::new())).unwrap();
    }
    let sweep = sweep(&service, &names);
    assert!(sweep.sweep_segments().is_ok());
    let left: HashSet<String> = names.list().unwrap().into_iter().collect();
    let expected = [listed, may_be_listed, "of-others".to_owned()];
    assert_eq!(left, HashSet::from(expected));
    assert!(!left.contains(&lost));
}

#[test]
fn failures_are_counted_and_told_once_until_all_is_well() {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let service = Service::start(store, Settings::default()).unwrap();
    let content = ContentStore::scratch().unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let times = (1, Duration::ZERO);
    let mut sweep = ContentSweep::new(service, content, times, Count(Arc::clone(&count)));
    let mut told = Vec::new();
    let broken = || Err(Failed::from(std::io::Error::other("the disk is gone")));
    for results in [
        vec![broken(), broken(), Ok(())],
        vec![broken()],
        vec![Ok(())],
        vec![broken()],
    ] {
        for result in results {
            sweep.note(result, &mut |words| told.push(words.to_owned()));
        }
        sweep.end();
    }
    assert_eq!(count.load(Relaxed), 4);
    assert_eq!(told, ["the disk is gone", "the disk is gone"]);
}
