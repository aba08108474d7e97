//! The objects that hold content, where content is in an object store.
//!
//! ```text
//! $content/{ab}   o{hash}        the object with this content, and its length
//! $content/{ab}   b{hash}{id}    an object that is being put, or must be removed
//! $content        place          the place in an object store that has all of them
//! ```
//! `ab` is the first byte of the hash. An object is recorded as begun before its first byte is sent, and the
//! change that refers to its content turns that record into the object's own: an object without either can
//! never get a reference. A removal first replaces the record by a tombstone, under an assert. So the store
//! decides between a reference and a removal; neither clocks nor the order of requests to the object store
//! matter. Two puts never share a name: a late removal finds nothing.

use std::ops::ControlFlow;

use groupware_ids::{ContentHash, ObjectId, Placed};
use groupware_store::{Batch, Snapshot};

use crate::{DocumentError, Reason};

/// A name that no user can have.
const PARTITION: &str = "$content";
const PLACE: &[u8] = b"place";
/// The suffix of a place that may not have its name yet.
const NEW: &str = " new";
const OBJECT: u8 = b'o';
const BEGUN: u8 = b'b';
/// A tombstone in place of the time of the begin.
const TOMBSTONE: i64 = i64::MIN;
const ID_BYTES: usize = 16;
const HASH_BYTES: usize = 32;
const NUMBER_BYTES: usize = 8;

/// An object with content that may be referred to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// The content's hash.
    pub hash: ContentHash,
    /// The object's name.
    pub id: ObjectId,
    /// The content's length.
    pub bytes: u64,
    revision: u64,
}

/// An object that is being put, or must be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BegunObject {
    /// The hash of its future content.
    pub hash: ContentHash,
    /// The object's name.
    pub id: ObjectId,
    /// The object store's id of the multipart upload, if there is one.
    pub parts: Option<String>,
    since_s: i64,
    revision: u64,
}

impl BegunObject {
    /// Returns true for a tombstone: no reference is possible, so that it may be removed.
    pub fn is_tombstone(&self) -> bool {
        self.since_s == TOMBSTONE
    }

    /// Returns true if it was begun before this time, in seconds since 1970.
    pub fn is_older_than(&self, moment_s: i64) -> bool {
        self.since_s < moment_s
    }
}

/// Records that an object is about to be put.
pub fn begin_object((hash, id): (ContentHash, ObjectId), now_s: i64, parts: Option<&str>) -> Batch {
    let (partition, key) = (partition(hash.as_bytes()[0]), begun_key(hash, id));
    let mut batch = Batch::new();
    batch
        .assert_absent(&*partition, key.clone())
        .put(&*partition, key, begun_value(now_s, parts));
    batch
}

/// Returns the object with this content.
///
/// # Errors
/// If the store fails, or the record is damaged.
pub fn object(
    snapshot: &dyn Snapshot,
    hash: ContentHash,
) -> Result<Option<StoredObject>, DocumentError> {
    let key = object_key(hash);
    let record = snapshot.get(&partition(hash.as_bytes()[0]), &key)?;
    let read = record.map(|record| read_object(&key, &record.value, record.revision));
    read.transpose()
}

/// Makes a change refer to content in an object: the batch is committed only if the object stays.
/// Content in files needs nothing here.
///
/// # Errors
/// 503 if the object is being or was removed: the content must be sent again. If the store fails.
pub fn refer_to(
    snapshot: &dyn Snapshot,
    (hash, bytes): (ContentHash, u64),
    placed: Placed,
    batch: &mut Batch,
) -> Result<(), DocumentError> {
    if placed == Placed::InFile {
        return Ok(());
    }
    let known = object(snapshot, hash)?;
    let (partition, key) = (partition(hash.as_bytes()[0]), object_key(hash));
    match &known {
        // Rewritten, so that a concurrent removal conflicts.
        Some(known) => batch.assert_revision(&*partition, key.clone(), known.revision),
        None => batch.assert_absent(&*partition, key.clone()),
    };
    let value = match (placed, &known) {
        (Placed::New(id), _) => {
            let note = begun_key(hash, id);
            let begun = snapshot.get(&partition, &note)?.ok_or_else(lost)?;
            if read_begun(&note, &begun.value, begun.revision)?.is_tombstone() {
                return Err(lost());
            }
            batch
                .assert_revision(&*partition, note.clone(), begun.revision)
                .delete(&*partition, note);
            if let Some(known) = &known {
                let note = begun_key(hash, known.id);
                batch.put(&*partition, note, begun_value(TOMBSTONE, None));
            }
            object_value(id, bytes)
        }
        (_, Some(known)) => object_value(known.id, known.bytes),
        (_, None) => return Err(lost()),
    };
    batch.put(&*partition, key, value);
    Ok(())
}

fn lost() -> DocumentError {
    DocumentError::refused(
        Reason::Again,
        "The content was taken for given up and removed meanwhile: send it again.",
    )
}

/// Returns all objects with content whose hash begins with this byte.
///
/// # Errors
/// If the store fails, or a record is damaged.
pub fn objects_of(snapshot: &dyn Snapshot, first: u8) -> Result<Vec<StoredObject>, DocumentError> {
    all(snapshot, (first, OBJECT), read_object)
}

/// Returns all objects that are being put or must be removed, with content whose hash begins with this byte.
///
/// # Errors
/// If the store fails, or a record is damaged.
pub fn begun_of(snapshot: &dyn Snapshot, first: u8) -> Result<Vec<BegunObject>, DocumentError> {
    all(snapshot, (first, BEGUN), read_begun)
}

/// Marks an unreferenced object for removal. Conflicts with a concurrent reference.
pub fn release_object(object: &StoredObject) -> Batch {
    let partition = partition(object.hash.as_bytes()[0]);
    let (key, note) = (object_key(object.hash), begun_key(object.hash, object.id));
    let mut batch = Batch::new();
    batch
        .assert_revision(&*partition, key.clone(), object.revision)
        .delete(&*partition, key)
        .put(&*partition, note, begun_value(TOMBSTONE, None));
    batch
}

/// Marks an object for removal whose put did not finish. Conflicts if it did meanwhile.
pub fn tombstone_object(begun: &BegunObject) -> Batch {
    let partition = partition(begun.hash.as_bytes()[0]);
    let note = begun_key(begun.hash, begun.id);
    let mut batch = Batch::new();
    batch
        .assert_revision(&*partition, note.clone(), begun.revision)
        .put(
            &*partition,
            note,
            begun_value(TOMBSTONE, begun.parts.as_deref()),
        );
    batch
}

/// Removes the record of an object that was removed.
pub fn forget_object(hash: ContentHash, id: ObjectId) -> Batch {
    let mut batch = Batch::new();
    batch.delete(partition(hash.as_bytes()[0]), begun_key(hash, id));
    batch
}

/// A place in an object store, by its configured name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentPlace {
    /// The name.
    pub name: String,
    /// Whether the place itself is marked with the name. Until then it is empty.
    pub is_set_up: bool,
}

/// Returns the place of the content of these records.
///
/// # Errors
/// If the store fails.
pub fn content_place(snapshot: &dyn Snapshot) -> Result<Option<ContentPlace>, DocumentError> {
    let record = snapshot.get(PARTITION, PLACE)?;
    Ok(record.map(|record| {
        let text = String::from_utf8_lossy(&record.value);
        ContentPlace {
            name: text.trim_end_matches(NEW).to_owned(),
            is_set_up: !text.ends_with(NEW),
        }
    }))
}

/// Records that place; conflicts with a concurrent record of another.
///
/// # Errors
/// If the store fails.
pub fn note_content_place(
    snapshot: &dyn Snapshot,
    place: &ContentPlace,
) -> Result<Batch, DocumentError> {
    let mut batch = Batch::new();
    match snapshot.get(PARTITION, PLACE)? {
        Some(record) => batch.assert_revision(PARTITION, PLACE, record.revision),
        None => batch.assert_absent(PARTITION, PLACE),
    };
    let end = if place.is_set_up { "" } else { NEW };
    batch.put(PARTITION, PLACE, format!("{}{end}", place.name));
    Ok(batch)
}

/// Removes the records of the place, and of all objects in it.
pub fn forget_all_objects() -> Batch {
    let mut batch = Batch::new();
    batch.delete_partition(PARTITION);
    for first in 0..=u8::MAX {
        batch.delete_partition(partition(first));
    }
    batch
}

fn partition(first: u8) -> String {
    format!("{PARTITION}/{first:02x}")
}

fn object_key(hash: ContentHash) -> Vec<u8> {
    [&[OBJECT][..], hash.as_bytes()].concat()
}

fn begun_key(hash: ContentHash, id: ObjectId) -> Vec<u8> {
    [&[BEGUN][..], hash.as_bytes(), &id.bits().to_be_bytes()].concat()
}

fn object_value(id: ObjectId, bytes: u64) -> Vec<u8> {
    [&id.bits().to_be_bytes()[..], &bytes.to_be_bytes()].concat()
}

fn begun_value(since_s: i64, parts: Option<&str>) -> Vec<u8> {
    [
        &since_s.to_be_bytes()[..],
        parts.unwrap_or_default().as_bytes(),
    ]
    .concat()
}

fn read_object(key: &[u8], value: &[u8], revision: u64) -> Result<StoredObject, DocumentError> {
    let read = || {
        let hash = key.get(1..)?.try_into().ok()?;
        let (id, bytes) = value.split_first_chunk::<ID_BYTES>()?;
        Some(StoredObject {
            hash: ContentHash::from_bytes(hash),
            id: ObjectId::from_bits(u128::from_be_bytes(*id)),
            bytes: u64::from_be_bytes(bytes.try_into().ok()?),
            revision,
        })
    };
    read().ok_or_else(|| DocumentError::corrupt(key, "no object is named"))
}

fn read_begun(key: &[u8], value: &[u8], revision: u64) -> Result<BegunObject, DocumentError> {
    let read = || {
        let (hash, id) = key.get(1..)?.split_first_chunk::<HASH_BYTES>()?;
        let (since, parts) = value.split_first_chunk::<NUMBER_BYTES>()?;
        let parts = std::str::from_utf8(parts).ok()?;
        Some(BegunObject {
            hash: ContentHash::from_bytes(*hash),
            id: ObjectId::from_bits(u128::from_be_bytes(id.try_into().ok()?)),
            parts: (!parts.is_empty()).then(|| parts.to_owned()),
            since_s: i64::from_be_bytes(*since),
            revision,
        })
    };
    read().ok_or_else(|| DocumentError::corrupt(key, "no object is named"))
}

/// Parses a record: its key, its value, and its revision.
type Read<T> = fn(&[u8], &[u8], u64) -> Result<T, DocumentError>;

/// Returns all records of a kind.
fn all<T>(
    snapshot: &dyn Snapshot,
    (first, kind): (u8, u8),
    read: Read<T>,
) -> Result<Vec<T>, DocumentError> {
    let mut found = Vec::new();
    let mut wrong = None;
    let mut visit = |key: &[u8], record: groupware_store::Record| {
        match read(key, &record.value, record.revision) {
            Ok(one) => found.push(one),
            Err(error) => wrong = Some(error),
        }
        match wrong {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    };
    snapshot.scan(
        &partition(first),
        &[kind],
        Some(&[kind + 1]),
        usize::MAX,
        &mut visit,
    )?;
    match wrong {
        None => Ok(found),
        Some(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use groupware_store::{CommitError, Store, StoreOptions};
    use proptest::prelude::*;

    use super::*;

    struct World(Store);

    impl World {
        fn new() -> Self {
            Self(Store::memory(StoreOptions::default()).unwrap())
        }

        fn commit(&self, batch: Batch) -> bool {
            match self.0.commit_blocking(batch) {
                Ok(_) => true,
                Err(CommitError::Conflict { .. }) => false,
                Err(error) => panic!("{error}"),
            }
        }

        fn decide(&self, hash: ContentHash, placed: Placed) -> Result<Batch, u16> {
            let mut batch = Batch::new();
            let read = self
                .0
                .read(|snapshot| refer_to(snapshot, (hash, 7), placed, &mut batch));
            read.map(|()| batch).map_err(|error| error.status())
        }

        fn begin(&self, hash: ContentHash, bits: u128, now_s: i64) -> Placed {
            let id = ObjectId::from_bits(bits);
            assert!(self.commit(begin_object((hash, id), now_s, Some("parts"))));
            Placed::New(id)
        }

        fn kept(&self, hash: ContentHash) -> Option<StoredObject> {
            self.0.read(|snapshot| object(snapshot, hash)).unwrap()
        }

        fn begun(&self, hash: ContentHash) -> Vec<BegunObject> {
            let first = hash.as_bytes()[0];
            self.0.read(|snapshot| begun_of(snapshot, first)).unwrap()
        }
    }

    #[test]
    fn what_was_begun_is_referred_to_or_given_up_and_never_both() {
        let (world, hash) = (World::new(), ContentHash::of(b"x"));
        assert!(world.decide(hash, Placed::InFile).unwrap().is_empty());
        assert_eq!(world.decide(hash, Placed::Known), Err(503));
        // One reference precedes the tombstone, the other follows it.
        let (first, second) = (world.begin(hash, 1, 5), world.begin(hash, 2, 5));
        let all = world.begun(hash);
        assert!(
            all.iter()
                .all(|it| !it.is_tombstone() && it.is_older_than(6))
        );
        assert!(all.iter().all(|it| !it.is_older_than(5)));
        assert_eq!(all[0].parts.as_deref(), Some("parts"));
        assert!(world.commit(world.decide(hash, first).unwrap()));
        assert!(!world.commit(tombstone_object(&all[0])));
        let late = world.decide(hash, second).unwrap();
        assert!(world.commit(tombstone_object(&all[1])));
        assert!(!world.commit(late));
        assert_eq!(world.decide(hash, second), Err(503));
        let doomed = world.begun(hash);
        assert!(doomed.len() == 1 && doomed[0].is_tombstone());
        assert_eq!(doomed[0].parts.as_deref(), Some("parts"));
        assert!(world.commit(forget_object(hash, doomed[0].id)));
        assert_eq!(world.decide(hash, second), Err(503));
        assert!(world.begun(hash).is_empty());
        let kept = world.kept(hash).unwrap();
        assert_eq!(
            (kept.hash, kept.id, kept.bytes),
            (hash, ObjectId::from_bits(1), 7)
        );
    }

    #[test]
    fn what_is_referred_to_meanwhile_is_not_released() {
        let (world, hash) = (World::new(), ContentHash::of(b"x"));
        let placed = world.begin(hash, 1, 5);
        assert!(world.commit(world.decide(hash, placed).unwrap()));
        let seen = world.kept(hash).unwrap();
        let known = world.decide(hash, Placed::Known).unwrap();
        assert!(world.commit(known));
        assert!(!world.commit(release_object(&seen)));
        // In the reverse order.
        let late = world.decide(hash, Placed::Known).unwrap();
        let seen = world.kept(hash).unwrap();
        assert!(world.commit(release_object(&seen)));
        assert!(!world.commit(late));
        assert_eq!(world.decide(hash, Placed::Known), Err(503));
        assert!(world.kept(hash).is_none() && world.begun(hash)[0].is_tombstone());
    }

    #[test]
    fn the_last_object_with_the_same_content_counts_and_the_one_before_is_to_go() {
        let (world, hash) = (World::new(), ContentHash::of(b"x"));
        for bits in [1, 2] {
            let placed = world.begin(hash, bits, 5);
            assert!(world.commit(world.decide(hash, placed).unwrap()));
        }
        assert_eq!(world.kept(hash).unwrap().id, ObjectId::from_bits(2));
        let begun = world.begun(hash);
        assert!(begun.len() == 1 && begun[0].is_tombstone());
        assert_eq!(begun[0].id, ObjectId::from_bits(1));
    }

    #[test]
    fn the_place_is_known_before_it_is_set_up() {
        let world = World::new();
        let known = || world.0.read(content_place).unwrap();
        assert_eq!(known(), None);
        for is_set_up in [false, true] {
            let place = ContentPlace {
                name: "abc".to_owned(),
                is_set_up,
            };
            let note = world
                .0
                .read(|snapshot| note_content_place(snapshot, &place));
            assert!(world.commit(note.unwrap()));
            assert_eq!(known(), Some(place));
        }
    }

    proptest! {
        #[test]
        fn records_come_back(hash: [u8; 32], bits: u128, number: u64, since: i64, parts in "[ -~]{0,20}") {
            let (hash, id) = (ContentHash::from_bytes(hash), ObjectId::from_bits(bits));
            let kept = read_object(&object_key(hash), &object_value(id, number), 3).unwrap();
            prop_assert_eq!((kept.hash, kept.id, kept.bytes), (hash, id, number));
            let value = begun_value(since, Some(&parts));
            let begun = read_begun(&begun_key(hash, id), &value, 3).unwrap();
            prop_assert_eq!((begun.hash, begun.id, begun.since_s), (hash, id, since));
            prop_assert_eq!(begun.parts.unwrap_or_default(), parts);
        }

        #[test]
        fn no_record_panics(key: Vec<u8>, value: Vec<u8>) {
            let _ = read_object(&key, &value, 1);
            let _ = read_begun(&key, &value, 1);
        }
    }
}
