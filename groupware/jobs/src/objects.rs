//! Removes objects that nothing refers to, and those whose put has never come to an end.
//!
//! The records are the arbiter: an object's record is taken away under an assert that nobody has referred to it since
//! it was read, and only then is the object removed. Who dies in between leaves a record that says so to the next one.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::ops::RangeInclusive;

use groupware_content::{ContentHash, ObjectId, Objects, Placed};
use groupware_documents::{
    self as documents, BegunObject, DocumentError, KeptObject, begun_of, doom_object,
    forget_object, objects_of, refer_to, release_object,
};
use groupware_service::Service;
use groupware_store::{Batch, CommitError};

use crate::failed::Failed;

/// How often the object store is asked for all objects that it has, to find those that no record knows: what a
/// request put there that was answered to nobody, and came after it was given up.
pub(crate) const LOOK_AT_ALL_S: i64 = 24 * 3600;
/// A put that takes longer is taken for given up. One that isn't has to be sent again, and loses nothing.
const PUT_WITHIN_S: i64 = 3600;
/// Objects that all users are asked about at once, about.
const OBJECTS_AT_ONCE: usize = 100_000;
/// Users that are asked within one snapshot.
const USERS_AT_ONCE: usize = 64;

/// Sweeps the objects of content whose hash begins with this byte, and what follows, as many as all users are asked
/// about at once; which byte was the last. Looks also for objects that no record knows, if it is to.
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

/// Puts content that something refers to in an object, unless it is in one; whether it is now.
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

/// Removes what can't be referred to any more; the objects that can.
fn look(
    service: &Service,
    objects: &dyn Objects,
    (byte, all): (u8, bool),
) -> Result<Vec<KeptObject>, Failed> {
    // Asked for before the records are read: what is put meanwhile is not on the list.
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

/// Whatever isn't noted as begun, nor as the object of some content, can never be referred to.
fn remove_unknown(
    objects: &dyn Objects,
    there: Vec<(ContentHash, ObjectId)>,
    (kept, begun): (&[KeptObject], &[BegunObject]),
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

/// Removes what was begun and has never come to an end, and what others have released.
fn clear_up(
    service: &Service,
    objects: &dyn Objects,
    begun: Vec<BegunObject>,
) -> Result<(), Failed> {
    let before = service.now_s().saturating_sub(PUT_WITHIN_S);
    for object in begun {
        let is_over = object.is_doomed()
            || object.is_older_than(before) && takes_effect(service, doom_object(&object))?;
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
    mut kept: HashMap<ContentHash, KeptObject>,
    folders: RangeInclusive<u8>,
) -> Result<(), Failed> {
    if kept.is_empty() {
        return Ok(());
    }
    // A snapshot holds back what the store may clear up: none is kept for long.
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

/// Whether a change was still what it was decided to be when its turn came.
fn takes_effect(service: &Service, batch: Batch) -> Result<bool, Failed> {
    match service.store().commit_blocking(batch) {
        Ok(_) => Ok(true),
        Err(CommitError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
