//! The stored form of documents: it stays the same byte for byte, and older forms are still read.

use std::ops::ControlFlow;

use groupware_documents::{
    Access, Context, DatabaseName, Decision, DocumentError, Fields, FileName, ItemName, ItemPath,
    ListQuery, NewAttachment, NewUpload, Principal, Seen, Unid, access, attach, begin, create,
    databases, document, finish, grant, list, uploads,
};
use groupware_ids::{ContentHash, Placed};
use groupware_store::{Batch, Store, StoreError, StoreOptions};
use plimsoll_tests::stored;

/// 2026-01-01T00:00:00Z.
const NOW: i64 = 1_767_225_600;

struct World {
    store: Store,
    changes: u32,
}

impl World {
    /// Decides on ada's documents, and commits.
    fn change<T>(
        &mut self,
        user: &str,
        decide: impl FnOnce(&Context<'_>) -> Result<Decision<T>, DocumentError>,
    ) -> T {
        self.changes += 1;
        let who = Principal {
            user,
            since: NOW - 60,
            mailbox: "ada",
        };
        let decided = self.store.read(|snapshot| {
            decide(&Context {
                snapshot,
                who,
                now: NOW + i64::from(self.changes),
                bits: u128::from(self.changes) << 100,
                quota_bytes: 1 << 30,
            })
        });
        let decision = decided.unwrap();
        self.store.commit_blocking(decision.batch).unwrap();
        decision.outcome
    }
}

fn database() -> DatabaseName {
    DatabaseName::parse("Plans.nsf").unwrap()
}

fn upload(unid: &Unid, name: &str) -> NewUpload {
    NewUpload {
        place: ItemPath {
            database: database(),
            unid: unid.clone(),
            item: ItemName::parse("files").unwrap(),
        },
        name: FileName::parse(name).unwrap(),
        media_type: "video/x".into(),
        length: 5,
        deferred: None,
        concat: None,
        is_segmented: false,
        metadata: "filename YQ==".into(),
    }
}

/// A granted database with documents of two authors, an attachment, and uploads.
fn world() -> World {
    let mut world = World {
        store: Store::memory(StoreOptions::default()).unwrap(),
        changes: 0,
    };
    let fields = |text: &str| Fields::parse(text.as_bytes()).unwrap();
    let first = fields(r#"{"@form": "Memo", "Title": "\"é\"", "n": 1.50, "deep": [{"a": null}]}"#);
    let first = world.change("ada", |context| create(context, &database(), first));
    let to = Access::parse(br#"{"readers": ["*"], "authors": ["bob"]}"#).unwrap();
    let known = |_: &str| Ok(Some(NOW - 60));
    world.change("ada", |context| grant(context, &database(), to, &known));
    let second = fields("{}");
    world.change("bob", |context| create(context, &database(), second));
    let file = NewAttachment {
        item: ItemName::parse("Body").unwrap(),
        name: FileName::parse("a b%é.txt").unwrap(),
        media_type: "text/plain".into(),
        bytes: 3,
        hash: ContentHash::of(b"abc"),
        placed: Placed::InFile,
    };
    let place = (&database(), &first);
    world.change("ada", |context| {
        attach(context, place, &[file], &Seen::default())
    });
    world.change("ada", |context| {
        begin(context, &upload(&first, "under way"))
    });
    let whole = world.change("ada", |context| begin(context, &upload(&first, "whole")));
    let hash = ContentHash::of(b"whole");
    world.change("ada", |context| {
        finish(context, &whole, (hash, Placed::InFile), None)
    });
    world
}

/// All records of these partitions.
fn rows(store: &Store, partitions: &[&str]) -> Vec<stored::Row> {
    let mut rows = Vec::new();
    let read: Result<(), StoreError> = store.read(|snapshot| {
        for partition in partitions {
            snapshot.browse(partition, b"", None, usize::MAX, &mut |key, value| {
                rows.push(((*partition).to_owned(), key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    });
    read.unwrap();
    rows
}

/// A store with the records of the snapshot.
fn restored() -> Store {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let mut batch = Batch::new();
    for (partition, key, value) in stored::rows(include_str!("snapshots/stored__records.snap")) {
        batch.put(partition, key, value);
    }
    store.commit_blocking(batch).unwrap();
    store
}

#[test]
fn what_is_stored_stays_as_it_is() {
    insta::assert_snapshot!("records", stored::lines(&rows(&world().store, &["ada"])));
}

#[test]
fn what_was_stored_is_read() {
    let store = restored();
    let unids: Vec<Unid> = rows(&store, &["ada"])
        .iter()
        .filter_map(|(_, key, _)| std::str::from_utf8(key).unwrap().strip_prefix("d/d/plans/"))
        .map(|unid| Unid::parse(unid).unwrap())
        .collect();
    let owner = Principal::owner("ada");
    let read: Result<String, DocumentError> = store.read(|snapshot| {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap() + "\n";
        let mut read = text(databases(snapshot, "ada")?);
        read += &text(access(snapshot, owner, &database(), &|_| Ok(Some(0)))?);
        let query = ListQuery::parse([])?;
        read += &text(list(snapshot, owner, &database(), &query)?.body);
        for unid in &unids {
            let (body, version) = document(snapshot, owner, (&database(), unid), None)?;
            read += &format!("{} {}", version.modified, text(body));
        }
        uploads(snapshot, "ada", &mut |id, held| {
            read += &format!("{id} {:?}\n", held.upload);
        })?;
        Ok(read)
    });
    insta::assert_snapshot!("read", read.unwrap());
}
