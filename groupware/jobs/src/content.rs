//! Removes what nothing refers to: expired uploads, files of uploads that were given up, and content.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use groupware_content::{ContentStore, FolderSweep, Found};
use groupware_documents::{self as documents, Context, HeldUpload, Reason, Segment, UploadId};
use groupware_service::Service;
use groupware_store::CommitError;

use crate::failed::Failed;
use crate::objects;
use crate::runner::{Job, Stop};

/// A file without a record may be of an upload that is just being begun, unless it is this old.
const ORPHAN_AGE: Duration = Duration::from_secs(3600);
/// Content that all users are asked about at once, about: each pass over them costs as much as there are
/// users, and each name some 60 bytes of memory meanwhile.
const NAMES_AT_ONCE: usize = 100_000;
/// Users that are asked within one snapshot.
const USERS_AT_ONCE: usize = 64;
/// How often it is tried to forget an upload before that is left to the next time.
const ROUNDS: u32 = 4;

/// Who is told of what a sweep did.
pub trait SweepObserver: Send + 'static {
    /// Something could not be removed.
    fn failed(&self);

    /// An upload of this mailbox was given up.
    fn forgotten(&self, mailbox: &str, id: &UploadId);

    /// These are the names of all uploads that go on.
    fn under_way(&self, all: &HashSet<String>);
}

/// What of it is swept, where other servers sweep, too.
#[derive(Debug, Clone)]
pub enum Part {
    /// All.
    All,
    /// The data folder, and uploads that expired.
    Folder,
    /// What lies in an object store.
    Objects,
}

/// The sweep of content and uploads.
#[derive(Debug)]
pub struct ContentSweep<O> {
    /// Users, and the records of what they have.
    pub service: Service,
    /// What is swept.
    pub content: ContentStore,
    /// Time without a chunk after which an upload is given up.
    pub upload_lifetime_s: i64,
    /// How often it is swept.
    pub interval: Duration,
    /// Who is told of it.
    pub observer: O,
    part: Part,
    /// The files of uploads that were there before any could be begun, until the first sweep.
    left_over: Option<HashSet<String>>,
    told: Told,
    /// When all objects of an object store were last looked at.
    looked_at_all: Option<i64>,
}

impl<O> ContentSweep<O> {
    /// A sweep of this content, of uploads given up after so many seconds. Nobody may begin one yet: what has no
    /// record now is left of a server before.
    pub fn new(
        service: Service,
        content: ContentStore,
        (upload_lifetime_s, interval): (i64, Duration),
        observer: O,
    ) -> Self {
        // Another server's may be under way; what can't be listed now is found when it is old.
        let files = match content.is_shared() {
            true => Vec::new(),
            false => content.upload_files().unwrap_or_default(),
        };
        let left_over = files.into_iter().map(|file| file.name).collect();
        Self {
            service,
            content,
            upload_lifetime_s,
            interval,
            observer,
            part: Part::All,
            left_over: Some(left_over),
            told: Told::default(),
            looked_at_all: None,
        }
    }

    /// The same sweep of this part alone.
    #[must_use]
    pub fn of(self, part: Part) -> Self {
        Self { part, ..self }
    }
}

/// The first failure since a sweep without any is told, and no other: a disk that is broken would
/// fill the log otherwise.
#[derive(Debug, Default)]
struct Told {
    /// Failures of this sweep.
    count: u32,
    is_told: bool,
}

impl<O: SweepObserver> Job for ContentSweep<O> {
    const NAME: &'static str = "content-sweep";

    /// At once: a crash may have left much.
    fn first_pause(&self) -> Duration {
        Duration::ZERO
    }

    fn run(&mut self, stop: &Stop) -> Duration {
        if !matches!(self.part, Part::Objects) {
            self.sweep_folder(stop);
        }
        if !matches!(self.part, Part::Folder) {
            self.sweep_objects(stop);
        }
        self.end();
        self.interval
    }
}

impl<O: SweepObserver> ContentSweep<O> {
    fn note(&mut self, result: Result<(), Failed>, tell: &mut dyn FnMut(&str)) {
        let Err(Failed(words)) = result else { return };
        self.told.count += 1;
        self.observer.failed();
        if !self.told.is_told {
            self.told.is_told = true;
            tell(&words);
        }
    }

    /// A sweep is over.
    fn end(&mut self) {
        self.told = Told {
            count: 0,
            is_told: self.told.is_told && self.told.count > 0,
        };
    }

    fn sweep_folder(&mut self, stop: &Stop) {
        let left_over = self.left_over.take().unwrap_or_default();
        let swept = self.sweep_uploads(&left_over);
        self.note(swept, &mut warn);
        let mut next = Some(0);
        while let Some(first) = next.filter(|_| !stop.is_asked()) {
            let (last, swept) = self.sweep_content(first, stop);
            self.note(swept, &mut warn);
            next = last.checked_add(1);
        }
    }

    /// Forgets uploads that expired, and removes the files of those that there is no record of.
    fn sweep_uploads(&self, left_over: &HashSet<String>) -> Result<(), Failed> {
        let now = self.service.now_s();
        let before = now - i64::try_from(ORPHAN_AGE.as_secs()).unwrap_or(i64::MAX);
        // Listed before the records are read: what is begun meanwhile is not on the list.
        let files = self.content.upload_files()?.into_iter();
        let mut files: HashMap<String, i64> = files
            .map(|file| (file.name, unix_seconds(file.modified)))
            .collect();
        let mut under_way = HashSet::new();
        for mailboxes in self.service.auth.directory().keys().chunks(USERS_AT_ONCE) {
            let mut expired = Vec::new();
            self.service.store().read(|snapshot| {
                mailboxes.iter().try_for_each(|mailbox| {
                    documents::uploads(snapshot, mailbox, &mut |id, HeldUpload { upload, .. }| {
                        let written = files.get(id.as_str()).copied();
                        if upload.has_expired(now, self.upload_lifetime_s, written) {
                            expired.push((Arc::clone(mailbox), id));
                        } else if upload.finished.is_none() {
                            files.remove(id.as_str());
                            under_way.insert(id.to_string());
                        }
                    })
                })
            })?;
            for (mailbox, id) in expired {
                self.give_up(&mailbox, &id)?;
                self.observer.forgotten(&mailbox, &id);
                files.insert(id.to_string(), i64::MIN);
            }
        }
        if matches!(self.part, Part::Folder) {
            self.observer.under_way(&under_way);
        }
        for (name, written) in files {
            if written <= before || left_over.contains(&name) {
                self.content.remove_upload(&name)?;
            }
        }
        Ok(())
    }

    fn give_up(&self, mailbox: &str, id: &UploadId) -> Result<(), Failed> {
        for _ in 0..ROUNDS {
            let decision = self.service.store().read(|snapshot| {
                let context = Context {
                    snapshot,
                    who: documents::Who::owner(mailbox),
                    now: self.service.now_s(),
                    bits: 0,
                    quota_bytes: u64::MAX,
                };
                documents::give_up(&context, id)
            });
            let decision = match decision {
                // Another server was faster.
                Err(error) if error.reason() == Some(Reason::NotFound) => return Ok(()),
                decision => decision?,
            };
            match self.service.store().commit_blocking(decision.batch) {
                Ok(_) => return self.remove_segments(&decision.outcome),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failed(format!(
            "upload {id} of {mailbox} keeps being changed"
        )))
    }

    fn remove_segments(&self, segments: &[Segment]) -> Result<(), Failed> {
        let Some(store) = self.content.segments() else {
            return Ok(());
        };
        for segment in segments {
            store.remove(&segment.name)?;
        }
        Ok(())
    }

    /// Removes the segments that no upload has: a server that put one ended before it was listed, or before it was
    /// removed.
    fn sweep_segments(&self) -> Result<(), Failed> {
        let Some(store) = self.content.segments() else {
            return Ok(());
        };
        // Listed before the records are read: what is put meanwhile is not on the list.
        let mut names: HashSet<String> = store.list()?.into_iter().collect();
        let mut revisions = HashMap::new();
        for mailboxes in self.service.auth.directory().keys().chunks(USERS_AT_ONCE) {
            self.service.store().read(|snapshot| {
                mailboxes.iter().try_for_each(|mailbox| {
                    documents::uploads(snapshot, mailbox, &mut |id, held| {
                        for segment in held.upload.segments.iter().flatten() {
                            names.remove(&segment.name);
                        }
                        revisions.insert(id, held.revision);
                    })
                })
            })?;
        }
        for name in names {
            let Some((id, then)) = documents::segment_of(&name) else {
                continue;
            };
            // Whoever put it at this revision may yet list it.
            if revisions.get(&id).is_none_or(|now| then < *now) {
                store.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Sweeps the folders from this one on, as many as all users are asked about at once, and says which
    /// was the last of them. Whoever registers meanwhile can refer to nothing but what is pinned.
    fn sweep_content(&self, first: u8, stop: &Stop) -> (u8, Result<(), Failed>) {
        match self.content.sweep_from(first, NAMES_AT_ONCE) {
            Ok(Some(sweep)) => (*sweep.folders().end(), self.sweep_folders(sweep, stop)),
            // Another one is under way: that one does it.
            Ok(None) => (u8::MAX, Ok(())),
            Err(error) => (first, Err(error.into())),
        }
    }

    /// The same for what lies in an object store.
    fn sweep_objects(&mut self, stop: &Stop) {
        let Some(objects) = self.content.objects().cloned() else {
            return;
        };
        let now = self.service.now_s();
        let is_due = |last| now.saturating_sub(last) >= objects::LOOK_AT_ALL_S;
        let all = self.looked_at_all.is_none_or(is_due);
        if all {
            let swept = self.sweep_segments();
            self.note(swept, &mut warn);
        }
        let mut next = Some(0);
        while let Some(first) = next {
            if stop.is_asked() {
                return;
            }
            let (last, swept) = match self.content.hold_alone() {
                Ok(Some(_alone)) => objects::sweep(&self.service, &*objects, (first, all)),
                // A backup copies what is there now.
                Ok(None) => return,
                Err(error) => (first, Err(error.into())),
            };
            let has_failed = swept.is_err();
            self.note(swept, &mut warn);
            // A store that is away now is so for the rest, too.
            if has_failed {
                return;
            }
            next = last.checked_add(1);
        }
        if all {
            self.looked_at_all = Some(now);
        }
    }

    fn sweep_folders(&self, mut sweep: FolderSweep, stop: &Stop) -> Result<(), Failed> {
        if sweep.is_empty() {
            return Ok(());
        }
        let folders = sweep.folders();
        // A snapshot holds back what the store may clear up: none is kept for long.
        for mailboxes in self.service.auth.directory().keys().chunks(USERS_AT_ONCE) {
            self.service.store().read(|snapshot| {
                mailboxes.iter().try_for_each(|mailbox| {
                    documents::kept_content(snapshot, mailbox, &folders, &mut |hash, bytes| {
                        sweep.keep(hash, bytes);
                    })
                })
            })?;
        }
        let moved = self.move_to_objects(&mut sweep, stop);
        sweep.finish()?;
        moved
    }

    /// Has content that came before there was an object store lie there, too; its file goes with this sweep.
    fn move_to_objects(&self, sweep: &mut FolderSweep, stop: &Stop) -> Result<(), Failed> {
        let Some(objects) = self.content.objects() else {
            return Ok(());
        };
        let all: Vec<_> = sweep.referenced().collect();
        for (hash, bytes) in all {
            if stop.is_asked() {
                return Ok(());
            }
            // What is damaged stays, to be found where it is.
            if self.content.verify(hash, bytes)? == Found::Whole {
                let file = self.content.read(hash)?;
                if objects::adopt(&self.service, &**objects, &file, (hash, bytes))? {
                    sweep.let_go(&hash);
                }
            }
        }
        Ok(())
    }
}

fn warn(cause: &str) {
    let message = "what nothing refers to can't be removed, and takes room until the next try";
    tracing::warn!(cause, "{message}");
}

fn unix_seconds(moment: SystemTime) -> i64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use groupware_content::{ContentError, Segments};
    use groupware_people::UserName;
    use groupware_service::Settings;
    use groupware_store::{Snapshot, Store, StoreOptions};

    use super::*;

    struct Count(Arc<AtomicU32>);

    impl SweepObserver for Count {
        fn failed(&self) {
            self.0.fetch_add(1, Relaxed);
        }

        fn forgotten(&self, _: &str, _: &UploadId) {}

        fn under_way(&self, _: &HashSet<String>) {}
    }

    /// All users are asked once, not once for each folder: with many of both, that takes hours of a core.
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
        // Its record comes later.
        begin("begun");
        let left_over = sweep.left_over.take().unwrap();
        assert!(sweep.sweep_uploads(&left_over).is_ok());
        let files = content.upload_files().unwrap().into_iter();
        assert_eq!(files.map(|file| file.name).collect::<Vec<_>>(), ["begun"]);
    }

    fn context(snapshot: &dyn Snapshot, bits: u128, now: i64) -> Context<'_> {
        Context {
            snapshot,
            who: documents::Who::owner("ada"),
            now,
            bits,
            quota_bytes: u64::MAX,
        }
    }

    /// Records an upload that began then, with these bits in its name.
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

    /// An object store that has names alone.
    #[derive(Debug, Default)]
    struct Names(Mutex<HashSet<String>>);

    impl Segments for Names {
        fn put(&self, name: &str, _: Vec<u8>) -> Result<(), ContentError> {
            self.0.lock().unwrap().insert(name.to_owned());
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

        fn remove(&self, name: &str) -> Result<(), ContentError> {
            self.0.lock().unwrap().remove(name);
            Ok(())
        }

        fn list(&self) -> Result<Vec<String>, ContentError> {
            Ok(self.0.lock().unwrap().iter().cloned().collect())
        }
    }

    /// Puts a segment of an upload, and lists it in the record; its name.
    fn keep(store: &Store, names: &Names, (id, bits): (&UploadId, u128), now: i64) -> String {
        let held = store.read(|snapshot| documents::held_upload(snapshot, "ada", id));
        let held = held.unwrap();
        let name = documents::segment_name(id, held.revision, bits);
        names.put(&name, Vec::new()).unwrap();
        let kept = held.upload.segments.as_ref().map_or(0, Vec::len);
        let segment = Segment {
            bytes: 1,
            name: name.clone(),
        };
        let batch = documents::keep_segments(("ada", id), held, (kept, vec![segment]), now);
        store.commit_blocking(batch).unwrap();
        name
    }

    #[test]
    fn an_upload_expires_after_its_last_segment_wherever_that_came() {
        const LIFETIME_S: i64 = 1000;
        let store = Store::memory(StoreOptions::default()).unwrap();
        let service = of_ada(&store);
        let names = Arc::new(Names::default());
        let content = ContentStore::scratch().unwrap();
        let content = content.with_segments(Arc::clone(&names) as _);
        let now = service.now_s();
        let [old, active, empty] = [1, 2, 3].map(|bits| begin(&store, bits, now - 2 * LIFETIME_S));
        keep(&store, &names, (&old, 1), now - LIFETIME_S - 1);
        let kept = keep(&store, &names, (&active, 1), now);
        let count = Count(Arc::default());
        let sweep = ContentSweep::new(service, content, (LIFETIME_S, Duration::ZERO), count);
        let sweep = sweep.of(Part::Folder);
        for _ in 0..2 {
            assert!(sweep.sweep_uploads(&HashSet::new()).is_ok());
            let are_there = [&old, &active, &empty].map(|id| {
                let found = store.read(|snapshot| documents::upload(snapshot, "ada", id));
                found.is_ok()
            });
            assert_eq!(are_there, [false, true, false]);
            assert_eq!(names.list().unwrap(), [kept.clone()]);
        }
    }

    #[test]
    fn a_segment_is_removed_once_no_server_can_list_it_any_more() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let service = of_ada(&store);
        let names = Arc::new(Names::default());
        let content = ContentStore::scratch().unwrap();
        let content = content.with_segments(Arc::clone(&names) as _);
        let id = begin(&store, 1, service.now_s());
        let first = store.read(|snapshot| documents::held_upload(snapshot, "ada", &id));
        let first = first.unwrap().revision;
        let put = |revision, bits| {
            let name = documents::segment_name(&id, revision, bits);
            names.put(&name, Vec::new()).unwrap();
            name
        };
        let lost = put(first, 7);
        let listed = keep(&store, &names, (&id, 1), service.now_s());
        let second = store.read(|snapshot| documents::held_upload(snapshot, "ada", &id));
        let may_be_listed = put(second.unwrap().revision, 8);
        let of_none = documents::segment_name(&UploadId::from_bits(99), first, 1);
        for name in [&of_none, "of-others"] {
            names.put(name, Vec::new()).unwrap();
        }
        let count = Count(Arc::default());
        let sweep = ContentSweep::new(service, content, (1000, Duration::ZERO), count);
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
}
