//! The shared set-up of several modules' tests: a front, and started uploads.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use groupware_content::{
    ContentError, ContentHash, ContentStore, ObjectId, Objects, Placed, ReadAt, Segments,
};
use groupware_documents::{self as documents, Context, NewUpload, Principal, UploadId};
use groupware_http::{Owner, Streams};
use groupware_people::{Account, Credentials, UserName};
use groupware_runtime::Caller;
use groupware_service::{Service, Settings};
use groupware_store::{Batch, Snapshot, Store};

use crate::front::Tus;
use crate::open::OpenUploads;

pub(crate) const NOW: i64 = 1;

/// Returns the front of a server over these records.
pub(crate) fn front(store: &Store, content: ContentStore) -> Tus {
    Tus {
        service: Service::start(store.clone(), Settings::default()).unwrap(),
        uploads: Arc::new(OpenUploads::new(content.clone())),
        content,
        streams: Arc::new(Streams::new()),
        attachment_bytes: 1 << 30,
        body_within: Duration::from_secs(60),
        lifetime_s: 1,
    }
}

pub(crate) fn owner() -> Owner {
    let account = Account::new(UserName::parse("ada").unwrap(), 0, Credentials::default());
    Owner::of(&account, Caller::internal())
}

pub(crate) fn context(snapshot: &dyn Snapshot, bits: u128) -> Context<'_> {
    Context {
        snapshot,
        who: Principal::owner("ada"),
        now: NOW,
        bits,
        quota_bytes: u64::MAX,
    }
}

/// Records an upload of one byte with these bits in its name and its bytes in a file.
pub(crate) fn begin(store: &Store, bits: u128) -> UploadId {
    begin_as(store, bits, |_| {})
}

/// Records an upload with changes.
pub(crate) fn begin_as(store: &Store, bits: u128, change: impl FnOnce(&mut NewUpload)) -> UploadId {
    let mut new = new_upload(store, bits);
    change(&mut new);
    let begun = store.read(|snapshot| documents::begin(&context(snapshot, bits), &new));
    let begun = begun.unwrap();
    commit(store, begun.batch);
    begun.outcome
}

/// An upload to a new document, whose name is made from other bits than these.
pub(crate) fn new_upload(store: &Store, bits: u128) -> NewUpload {
    let database = documents::DatabaseName::parse("files").unwrap();
    let fields = documents::Fields::parse(b"{}").unwrap();
    let made = store
        .read(|snapshot| documents::create(&context(snapshot, !bits), &database, fields.clone()));
    let made = made.unwrap();
    commit(store, made.batch);
    NewUpload {
        place: documents::ItemPath {
            database,
            unid: made.outcome,
            item: documents::ItemName::parse("Body").unwrap(),
        },
        name: documents::FileName::parse("file").unwrap(),
        media_type: String::new(),
        length: 1,
        deferred: None,
        concat: None,
        is_segmented: false,
        metadata: String::new(),
    }
}

/// Commits on a thread without asynchronous tasks, since it may have to wait for others.
fn commit(store: &Store, batch: Batch) {
    let committed =
        thread::scope(|scope| scope.spawn(|| store.commit_blocking(batch)).join().unwrap());
    committed.unwrap();
}

/// An object store in memory.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    pub(crate) segments: Mutex<BTreeMap<String, Vec<u8>>>,
    /// The stored content.
    pub(crate) content: Mutex<Vec<Vec<u8>>>,
    /// The barrier at which the next puts, and reads of segments, meet before they end.
    pub(crate) together: Mutex<Option<Arc<Barrier>>>,
    /// The number of segment reads after which the store is unavailable.
    pub(crate) away_from: Mutex<Option<u32>>,
    /// The number of started segment reads.
    pub(crate) reads: AtomicU32,
    /// The number of segment look-ups.
    pub(crate) looks: AtomicU32,
}

impl Bucket {
    fn wait(&self) {
        let together = self.together.lock().unwrap().clone();
        if let Some(together) = together {
            together.wait();
        }
    }

    fn check(&self) -> Result<(), ContentError> {
        let away_from = *self.away_from.lock().unwrap();
        match away_from.is_some_and(|reads| self.reads.load(Relaxed) >= reads) {
            true => Err(ContentError::Away("it is away".into())),
            false => Ok(()),
        }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.segments.lock().unwrap().keys().cloned().collect()
    }
}

impl Segments for Bucket {
    fn put(
        &self,
        name: &str,
        read: &dyn Fn() -> Result<Vec<u8>, ContentError>,
    ) -> Result<(), ContentError> {
        self.wait();
        self.check()?;
        let bytes = read()?;
        let before = self.segments.lock().unwrap().insert(name.to_owned(), bytes);
        assert_eq!(before, None, "a name is given once");
        Ok(())
    }

    fn read(
        &self,
        name: &str,
        span: Range<u64>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), ContentError>,
    ) -> Result<(), ContentError> {
        self.check()?;
        self.reads.fetch_add(1, Relaxed);
        self.wait();
        let found = self.segments.lock().unwrap().get(name).cloned();
        let missing = || ContentError::Missing { path: name.into() };
        let bytes = found.ok_or_else(missing)?;
        take(&bytes[span.start as usize..span.end as usize])
    }

    fn has(&self, name: &str) -> Result<bool, ContentError> {
        self.check()?;
        self.looks.fetch_add(1, Relaxed);
        Ok(self.segments.lock().unwrap().contains_key(name))
    }

    fn remove(&self, name: &str) -> Result<(), ContentError> {
        self.segments.lock().unwrap().remove(name);
        Ok(())
    }

    fn list(&self) -> Result<Vec<String>, ContentError> {
        Ok(self.names())
    }
}

impl Objects for Bucket {
    fn put(&self, _: ContentHash, file: &File, bytes: u64) -> Result<Placed, ContentError> {
        self.wait();
        self.check()?;
        let mut content = vec![0; bytes as usize];
        file.read_exact_at(&mut content, 0).unwrap();
        self.content.lock().unwrap().push(content);
        Ok(Placed::InFile)
    }

    fn read(&self, _: ContentHash, _: (u64, u64)) -> Result<Option<Box<dyn ReadAt>>, ContentError> {
        Ok(None)
    }

    fn remove(&self, _: ContentHash, _: ObjectId, _: Option<&str>) -> Result<(), ContentError> {
        Ok(())
    }

    fn list(&self, _: u8) -> Result<Vec<(ContentHash, ObjectId)>, ContentError> {
        Ok(Vec::new())
    }
}
