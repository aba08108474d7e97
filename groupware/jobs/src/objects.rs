//! Removes objects that nothing refers to, and objects whose put never completed.
//!
//! The records are authoritative. The sweep first marks an object's record as to be removed, asserting that it has no
//! new reference, and then removes the object. If a server dies in between, the next one continues at the mark.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::RangeInclusive;

use groupware_content::{ContentHash, ObjectId, Objects, Placed};
use groupware_documents::{
    self as documents, BegunObject, DocumentError, StoredObject, begun_of, forget_object,
    objects_of, refer_to, release_object, tombstone_object,
};
use groupware_service::Service;
use groupware_store::{Batch, CommitError};

use crate::failed::Failed;

/// The interval between two listings of all objects, to find those without a record: results of put requests that took
/// effect after they were abandoned, without a response.
pub(crate) const LOOK_AT_ALL_S: i64 = 24 * 3600;
/// The time after which a put counts as abandoned. One that isn't has to be sent again, and loses nothing.
const PUT_WITHIN_S: i64 = 3600;
/// The approximate number of objects to check in one pass over all users.
const OBJECTS_AT_ONCE: usize = 100_000;
/// The number of users read within one snapshot.
const USERS_AT_ONCE: usize = 64;

/// Sweeps the objects of content from this first byte of the hash on, as many as fit one pass over all users; returns
/// the last byte. If `all` is set, it also looks for objects without a record.
pub(crate) fn sweep(
    service: &Service,
    objects: &dyn Objects,
    (first, all): (u8, bool),
) -> (u8, Result<(), Failed>) {
    let mut kept = HashMap::new();
    for byte in first..=u8::MAX {
        match look(service, objects, (byte, all)) {
            Ok(found) => kept.extend(found.into_iter().map(|object| (object.hash, object))),
            Err(failed) => return (byte, Err(failed)),
        }
        if byte == u8::MAX || kept.len() >= OBJECTS_AT_ONCE {
            let released = release_unreferenced(service, objects, kept, first..=byte);
            return (byte, released);
        }
    }
    (u8::MAX, Ok(()))
}

/// Puts referenced content in an object, unless it is in one; returns true if it is in one now.
pub(crate) fn adopt(
    service: &Service,
    objects: &dyn Objects,
    file: &File,
    (hash, bytes): (ContentHash, u64),
) -> Result<bool, Failed> {
    let placed = objects.put(hash, file, bytes)?;
    if placed == Placed::Known {
        return Ok(true);
    }
    let mut batch = Batch::new();
    let store = service.store();
    store.read(|snapshot| refer_to(snapshot, (hash, bytes), placed, &mut batch))?;
    takes_effect(service, batch)
}

/// Removes the objects that can't be referred to any more; returns the others.
fn look(
    service: &Service,
    objects: &dyn Objects,
    (byte, all): (u8, bool),
) -> Result<Vec<StoredObject>, Failed> {
    // Listed before the records are read, so that objects put meanwhile are not on the list.
    let there = match all {
        true => objects.list(byte)?,
        false => Vec::new(),
    };
    let records = service.store().read(|snapshot| {
        Ok::<_, DocumentError>((objects_of(snapshot, byte)?, begun_of(snapshot, byte)?))
    });
    let (kept, begun) = records?;
    remove_unknown(objects, there, (&kept, &begun))?;
    clear_up(service, objects, begun)?;
    Ok(kept)
}

/// Removes objects without a record as begun or as the object of some content: they can never be referred to.
fn remove_unknown(
    objects: &dyn Objects,
    there: Vec<(ContentHash, ObjectId)>,
    (kept, begun): (&[StoredObject], &[BegunObject]),
) -> Result<(), Failed> {
    let known = kept.iter().map(|object| object.id);
    let known: HashSet<_> = known.chain(begun.iter().map(|object| object.id)).collect();
    for (hash, id) in there {
        if !known.contains(&id) {
            objects.remove(hash, id, None)?;
        }
    }
    Ok(())
}

/// Removes objects whose put never completed, and those that others have released.
fn clear_up(
    service: &Service,
    objects: &dyn Objects,
    begun: Vec<BegunObject>,
) -> Result<(), Failed> {
    let before = service.now_s().saturating_sub(PUT_WITHIN_S);
    for object in begun {
        let is_over = object.is_tombstone()
            || object.is_older_than(before) && takes_effect(service, tombstone_object(&object))?;
        if is_over {
            objects.remove(object.hash, object.id, object.parts.as_deref())?;
            takes_effect(service, forget_object(object.hash, object.id))?;
        }
    }
    Ok(())
}

fn release_unreferenced(
    service: &Service,
    objects: &dyn Objects,
    mut kept: HashMap<ContentHash, StoredObject>,
    folders: RangeInclusive<u8>,
) -> Result<(), Failed> {
    if kept.is_empty() {
        return Ok(());
    }
    // Each snapshot is short: it keeps the store from reclaiming space.
    for mailboxes in service.auth.directory().keys().chunks(USERS_AT_ONCE) {
        service.store().read(|snapshot| {
            mailboxes.iter().try_for_each(|mailbox| {
                documents::kept_content(snapshot, mailbox, &folders, &mut |hash, _| {
                    kept.remove(hash);
                })
            })
        })?;
    }
    for object in kept.values() {
        if takes_effect(service, release_object(object))? {
            objects.remove(object.hash, object.id, None)?;
            takes_effect(service, forget_object(object.hash, object.id))?;
        }
    }
    Ok(())
}

/// Commits a batch; returns false if it conflicts with another change.
fn takes_effect(service: &Service, batch: Batch) -> Result<bool, Failed> {
    match service.store().commit_blocking(batch) {
        Ok(_) => Ok(true),
        Err(CommitError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
