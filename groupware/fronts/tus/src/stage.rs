//! What the tests of several modules set up: a front, and uploads that were begun.

use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_documents::{self as documents, Context, UploadId, Who};
use groupware_http::{Owner, Streams};
use groupware_people::{Account, Credentials, UserName};
use groupware_runtime::Caller;
use groupware_service::{Folders, Service, Settings};
use groupware_store::{Snapshot, Store};

use crate::front::Tus;
use crate::open::OpenUploads;

pub(crate) const NOW: i64 = 1;

/// Of a server whose folder is called "own".
pub(crate) fn front(store: &Store, content: ContentStore) -> Tus {
    Tus {
        service: Service::start(store.clone(), Settings::default()).unwrap(),
        uploads: Arc::new(OpenUploads::new(content.clone())),
        folders: Some(Folders::new(store.clone(), "own")),
        passing: Arc::new(Streams::new()),
        content,
        streams: Arc::new(Streams::new()),
        attachment_bytes: 1,
        body_within: Duration::ZERO,
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
        who: Who::owner("ada"),
        now: NOW,
        bits,
        quota_bytes: u64::MAX,
    }
}

/// Records an upload of one byte with these bits in its name.
pub(crate) fn begin(store: &Store, bits: u128) -> UploadId {
    let database = documents::DatabaseName::parse("files").unwrap();
    let fields = documents::Fields::parse(b"{}").unwrap();
    let made = store
        .read(|snapshot| documents::create(&context(snapshot, !bits), &database, fields.clone()));
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
        length: 1,
        deferred: None,
        concat: None,
        metadata: String::new(),
    };
    let begun = store.read(|snapshot| documents::begin(&context(snapshot, bits), &new));
    let begun = begun.unwrap();
    store.commit_blocking(begun.batch).unwrap();
    begun.outcome
}
