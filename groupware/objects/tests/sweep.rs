//! The sweep removes unreferenced content and keeps referenced content; a late commit is rejected.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use groupware_content::{ContentError, ContentHash, ContentStore, ObjectId, Objects, Placed};
use groupware_documents::{
    self as documents, BegunObject, Context, DatabaseName, Decision, DocumentError, Fields,
    FileName, ItemName, NewAttachment, Principal, UploadId, begin_object, begun_of, forget_object,
    objects_of, refer_to,
};
use groupware_jobs::{ContentSweep, Jobs, SweepObserver};
use groupware_objects::ObjectStorage;
use groupware_people::{NewUser, UserName};
use groupware_service::{Service, Settings};
use groupware_store::{Batch, Store};
use plimsoll_tests::objects::ObjectServer;
use plimsoll_tests::wait_until;

use crate::support::{content, file, keep, memory, open, put, read};

const LIMIT: Duration = Duration::from_secs(120);

/// A store with a user, and a place for content.
struct World {
    server: ObjectServer,
    store: Store,
    service: Service,
    shelf: Arc<ObjectStorage>,
}

struct Quiet;

impl SweepObserver for Quiet {
    fn under_way(&self, _: &HashSet<String>) {}

    fn failed(&self) {}

    fn forgotten(&self, _: &str, _: &UploadId) {}
}

impl World {
    fn new() -> Option<Self> {
        let server = ObjectServer::start()?;
        let store = memory();
        let service = Service::start(store.clone(), Settings::default()).unwrap();
        let user = NewUser {
            name: UserName::parse("ada").unwrap(),
            app_password: None,
            pad_bytes: 0,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let registered = service.auth.accounts.register(vec![user], 0);
        runtime.unwrap().block_on(registered).unwrap();
        let shelf = open(&server, server.address(), &store).unwrap();
        Some(Self {
            server,
            store,
            service,
            shelf,
        })
    }

    /// Sweeps repeatedly, starting with a look at all objects.
    fn sweep(&self) -> Jobs {
        self.sweep_with(ContentStore::scratch().unwrap())
    }

    /// The same, with a folder of files in addition.
    fn sweep_with(&self, files: ContentStore) -> Jobs {
        let content = files.with_objects(Arc::clone(&self.shelf) as _);
        let times = (3600, Duration::from_millis(20));
        let sweep = ContentSweep::new(self.service.clone(), content, times, Quiet);
        let mut jobs = Jobs::default();
        jobs.start(sweep).unwrap();
        jobs
    }

    fn change<T>(
        &self,
        bits: u128,
        decide: impl FnOnce(&Context<'_>) -> Result<Decision<T>, DocumentError>,
    ) -> T {
        let decided = self.store.read(|snapshot| {
            decide(&Context {
                snapshot,
                who: Principal::owner("ada"),
                now: 1,
                bits,
                quota_bytes: 1 << 30,
            })
        });
        let Decision { batch, outcome } = decided.unwrap();
        self.store.commit_blocking(batch).unwrap();
        outcome
    }

    /// Attaches content to a new document.
    fn attach(&self, bits: u128, (hash, bytes): (ContentHash, usize), placed: Placed) {
        let database = DatabaseName::parse("notes").unwrap();
        let fields = Fields::parse(b"{}").unwrap();
        let unid = self.change(bits << 64, |context| {
            documents::create(context, &database, fields)
        });
        let file = NewAttachment {
            item: ItemName::parse("Body").unwrap(),
            name: FileName::parse("a").unwrap(),
            media_type: String::new(),
            bytes: bytes as u64,
            hash,
            placed,
        };
        self.change(bits, |context| {
            documents::attach(
                context,
                (&database, &unid),
                &[file],
                &documents::Seen::default(),
            )
        });
    }

    fn begun(&self) -> Vec<BegunObject> {
        let all = (0..=u8::MAX).flat_map(|first| {
            let begun = self.store.read(|snapshot| begun_of(snapshot, first));
            begun.unwrap()
        });
        all.collect()
    }

    /// The number of objects whose content may be referenced.
    fn kept(&self) -> usize {
        let all = (0..=u8::MAX).map(|first| {
            let kept = self.store.read(|snapshot| objects_of(snapshot, first));
            kept.unwrap().len()
        });
        all.sum()
    }

    fn there(&self) -> usize {
        let all = (0..=u8::MAX).map(|first| self.shelf.list(first).unwrap().len());
        all.sum()
    }

    /// Makes all uploads in progress look that old.
    fn age(&self) {
        for begun in self.begun() {
            let mut batch = forget_object(begun.hash, begun.id);
            self.store.commit_blocking(batch).unwrap();
            batch = begin_object((begun.hash, begun.id), 0, begun.parts.as_deref());
            self.store.commit_blocking(batch).unwrap();
        }
    }
}

#[test]
fn what_a_document_refers_to_stays_and_the_rest_goes() {
    let Some(world) = World::new() else { return };
    let all: Vec<_> = (0..12).map(|seed| content(seed, 3000)).collect();
    for (number, content) in all.iter().enumerate() {
        let (hash, placed) = put(&world.shelf, content).unwrap();
        match number % 3 {
            0 => world.attach(number as u128 + 1, (hash, 3000), placed),
            // As after the removal of its document.
            1 => keep(&world.store, hash, 3000, placed).unwrap(),
            // In progress.
            _ => {}
        }
    }
    assert_eq!(
        (world.kept(), world.begun().len(), world.there()),
        (8, 4, 12)
    );
    let _sweeping = world.sweep();
    wait_until(LIMIT, "what nothing refers to", || {
        world.kept() == 4 && world.there() == 8
    });
    for (number, content) in all.iter().enumerate() {
        let hash = ContentHash::of(content);
        match number % 3 {
            0 => assert!(read(&world.shelf, hash, 0, 3000) == *content),
            1 => assert!(world.shelf.read(hash, (0, 1)).unwrap().is_none()),
            _ => {}
        }
    }
    assert_eq!(world.begun().len(), 4);
    // Equal content is put during the sweep: in either order, it exists at the end.
    for (number, content) in all.iter().enumerate().skip(1).step_by(3) {
        let (hash, placed) = put(&world.shelf, content).unwrap();
        world.attach(100 + number as u128, (hash, 3000), placed);
        assert!(read(&world.shelf, hash, 0, 3000) == *content);
    }
}

#[test]
fn a_put_that_was_given_up_is_removed_and_nobody_refers_to_it_any_more() {
    let Some(world) = World::new() else { return };
    let (hash, placed) = put(&world.shelf, b"given up").unwrap();
    // Only parts of another one were uploaded.
    let empty = world.server.kept_bytes();
    let cut = content(9, 9 << 20);
    let failed = world
        .shelf
        .put(ContentHash::of(b"of two parts"), &file(&cut), 17 << 20);
    assert!(matches!(failed, Err(ContentError::Io { .. })), "{failed:?}");
    assert!(world.server.kept_bytes() >= empty + (8 << 20));
    assert_eq!(world.begun().len(), 2);
    world.age();
    let late = {
        let mut batch = Batch::new();
        let read = world
            .store
            .read(|snapshot| refer_to(snapshot, (hash, 8), placed, &mut batch));
        read.unwrap();
        batch
    };
    let _sweeping = world.sweep();
    wait_until(LIMIT, "what was begun to be forgotten", || {
        world.begun().is_empty()
    });
    assert_eq!(world.there(), 0);
    assert!(
        world.server.kept_bytes() < empty + (1 << 20),
        "parts are left"
    );
    // Decided before, or now.
    assert!(world.store.commit_blocking(late).is_err());
    let mut batch = Batch::new();
    let refused = world
        .store
        .read(|snapshot| refer_to(snapshot, (hash, 8), placed, &mut batch));
    assert_eq!(refused.unwrap_err().status(), 503);
}

#[test]
fn what_no_record_knows_is_removed_and_what_others_put_there_is_not() {
    let Some(world) = World::new() else { return };
    let (hash, placed) = put(&world.shelf, b"forgotten").unwrap();
    let Placed::New(id) = placed else {
        panic!("{placed:?}")
    };
    // As if the upload arrived after the cleanup.
    let forget = forget_object(hash, id);
    world.store.commit_blocking(forget).unwrap();
    let kept = put(&world.shelf, b"kept").unwrap();
    world.attach(1, (kept.0, 4), kept.1);
    let other = ObjectId::from_bits(1);
    assert!(world.shelf.remove(hash, other, None).is_ok());
    assert_eq!(world.there(), 2);
    let _sweeping = world.sweep();
    wait_until(LIMIT, "the unknown object", || world.there() == 1);
    assert!(read(&world.shelf, kept.0, 0, 4) == b"kept");
}

#[test]
fn what_came_before_moves_to_the_objects() {
    let Some(world) = World::new() else { return };
    let files = ContentStore::scratch().unwrap();
    let all: Vec<_> = [100, 9 << 20].map(|bytes| content(11, bytes)).into();
    for (number, content) in all.iter().enumerate() {
        let mut whole = files.create_whole("w", None).unwrap();
        whole.append(content).unwrap();
        let pin = whole.finish().unwrap();
        assert_eq!(pin.placed(), Placed::InFile);
        let of = (pin.hash(), content.len());
        world.attach(number as u128 + 1, of, pin.placed());
    }
    let _sweeping = world.sweep_with(files.clone());
    for content in &all {
        let hash = ContentHash::of(content);
        wait_until(LIMIT, "the file to go", || files.read(hash).is_err());
        assert!(read(&world.shelf, hash, 0, content.len()) == *content);
    }
    assert_eq!((world.kept(), world.there()), (2, 2));
}
