//! Removes what nothing refers to: expired uploads, files of uploads that were given up, and content.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use groupware_content::{ContentStore, FolderSweep, Found};
use groupware_documents::{self as documents, Context, UploadId};
use groupware_service::{Folders, OtherFolders, Service};
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
/// The file of an upload whose name says no folder's mark, as none did once, may lie in any. Who doesn't have it gives
/// the upload up after so many lifetimes since it began: it may have had chunks for longer than one.
pub(crate) const LIFETIMES_ELSEWHERE: i64 = 4;
/// How often it is tried to forget an upload before that is left to the next time.
const ROUNDS: u32 = 4;

/// Who is told of what a sweep did.
pub trait SweepObserver: Send + 'static {
    /// Something could not be removed.
    fn failed(&self);

    /// An upload of this mailbox was given up.
    fn forgotten(&self, mailbox: &str, id: &UploadId);
}

/// What of it is swept, where other servers sweep, too.
#[derive(Debug, Clone)]
pub enum Part {
    /// All.
    All,
    /// The data folder, which is this server's own.
    Folder(Folders),
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
        if !matches!(self.part, Part::Folder(_)) {
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

    /// The folders of other servers: when the uploads there were written last, only those know.
    fn elsewhere(&self, now: i64) -> Result<OtherFolders, Failed> {
        Ok(match &self.part {
            Part::Folder(folders) => folders.others(now, self.upload_lifetime_s)?,
            Part::All | Part::Objects => OtherFolders::default(),
        })
    }

    /// How long an upload lives after its last chunk, or after it began where that isn't known.
    fn lifetime_s(&self, id: &UploadId, elsewhere: &OtherFolders, has_file: bool) -> i64 {
        let may_be_anywhere = match &self.part {
            Part::Folder(folders) => !has_file && !folders.is_here(id) && !elsewhere.had(id),
            Part::All | Part::Objects => false,
        };
        match may_be_anywhere {
            true => self.upload_lifetime_s.saturating_mul(LIFETIMES_ELSEWHERE),
            false => self.upload_lifetime_s,
        }
    }

    /// Forgets uploads that expired, and removes the files of those that there is no record of.
    fn sweep_uploads(&self, left_over: &HashSet<String>) -> Result<(), Failed> {
        let now = self.service.now_s();
        let elsewhere = self.elsewhere(now)?;
        let before = now - i64::try_from(ORPHAN_AGE.as_secs()).unwrap_or(i64::MAX);
        // Listed before the records are read: what is begun meanwhile is not on the list.
        let files = self.content.upload_files()?.into_iter();
        let mut files: HashMap<String, i64> = files
            .map(|file| (file.name, unix_seconds(file.modified)))
            .collect();
        for mailboxes in self.service.auth.directory().keys().chunks(USERS_AT_ONCE) {
            let mut expired = Vec::new();
            self.service.store().read(|snapshot| {
                mailboxes.iter().try_for_each(|mailbox| {
                    documents::uploads(snapshot, mailbox, &mut |id, upload| {
                        if elsewhere.have(&id) {
                            return;
                        }
                        let written = files.get(id.as_str()).copied();
                        let lifetime_s = self.lifetime_s(&id, &elsewhere, written.is_some());
                        if upload.has_expired(now, lifetime_s, written) {
                            expired.push((Arc::clone(mailbox), id));
                        } else if upload.finished.is_none() {
                            files.remove(id.as_str());
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
            })?;
            match self.service.store().commit_blocking(decision.batch) {
                Ok(_) => return Ok(()),
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Failed(format!(
            "upload {id} of {mailbox} keeps being changed"
        )))
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
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

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

    #[test]
    fn uploads_in_the_folders_of_other_servers_are_theirs_to_give_up() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let [own, other] = ["own", "other"].map(|name| Folders::new(store.clone(), name));
        let service = of_ada(&store);
        other.note("10.0.0.2:8340", service.now_s()).unwrap();
        let here = begin(&store, own.marked(7), 1);
        let there = begin(&store, other.marked(7), 1);
        let content = ContentStore::scratch().unwrap();
        let count = Count(Arc::default());
        let sweep = ContentSweep::new(service, content, (1, Duration::ZERO), count);
        let sweep = sweep.of(Part::Folder(own.clone()));
        let is_there = |id: &UploadId| {
            let found = store.read(|snapshot| documents::upload(snapshot, "ada", id));
            found.is_ok()
        };
        assert!(sweep.sweep_uploads(&HashSet::new()).is_ok());
        assert!(!is_there(&here) && is_there(&there));
        // Its server is gone for good.
        other.note("10.0.0.2:8340", 1).unwrap();
        assert!(sweep.sweep_uploads(&HashSet::new()).is_ok());
        assert!(!is_there(&there));
    }

    #[test]
    fn an_upload_without_a_mark_is_given_up_by_who_has_its_file() {
        const LIFETIME_S: i64 = 1000;
        let store = Store::memory(StoreOptions::default()).unwrap();
        let service = of_ada(&store);
        let [own, other] = ["own", "other"].map(|name| {
            let folders = Folders::new(store.clone(), name);
            let content = ContentStore::scratch().unwrap();
            let times = (LIFETIME_S, Duration::ZERO);
            let count = Count(Arc::default());
            let sweep = ContentSweep::new(service.clone(), content, times, count);
            sweep.of(Part::Folder(folders))
        });
        let ago = |lifetimes: i64| service.now_s() - lifetimes * LIFETIME_S;
        let begin = |bits, lifetimes| begin(&store, bits, ago(lifetimes));
        let (old, lost) = (begin(u128::MAX / 3, 2), begin(u128::MAX / 5, 2));
        let older = begin(u128::MAX / 7, LIFETIMES_ELSEWHERE + 1);
        drop(own.content.create_upload(old.as_str(), 5).unwrap());
        let are_there = || {
            let ids = [&old, &lost, &older];
            ids.map(|id| {
                let found = store.read(|snapshot| documents::upload(snapshot, "ada", id));
                found.is_ok()
            })
        };
        // Something came in just now, which the other one can't know.
        assert!(other.sweep_uploads(&HashSet::new()).is_ok());
        assert_eq!(are_there(), [true, true, false]);
        assert!(own.sweep_uploads(&HashSet::new()).is_ok());
        assert_eq!(are_there(), [true, true, false]);
        let file = own.content.folder().join(old.as_str());
        let last = UNIX_EPOCH + Duration::from_secs(ago(2).unsigned_abs());
        std::fs::File::options()
            .write(true)
            .open(file)
            .unwrap()
            .set_modified(last)
            .unwrap();
        assert!(other.sweep_uploads(&HashSet::new()).is_ok());
        assert_eq!(are_there(), [true, true, false]);
        assert!(own.sweep_uploads(&HashSet::new()).is_ok());
        assert_eq!(are_there(), [false, true, false]);
        assert!(own.content.upload_files().unwrap().is_empty());
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
