//! The mapping from content to objects in the records, and the names of objects.

use std::sync::Arc;

use groupware_content::{ContentError, ContentHash, ObjectId};
use groupware_documents::{StoredObject, object};
use groupware_store::{Batch, Store};

use crate::bucket::Bucket;

/// The records, and the objects that they refer to.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    pub(crate) bucket: Arc<Bucket>,
    pub(crate) store: Store,
}

impl Index {
    /// The object with this content.
    pub(crate) fn find(&self, hash: ContentHash) -> Result<Option<StoredObject>, ContentError> {
        let found = self.store.read(|snapshot| object(snapshot, hash));
        found.map_err(unrecorded)
    }

    pub(crate) fn commit(&self, batch: Batch) -> Result<(), ContentError> {
        let committed = self.store.commit_blocking(batch);
        committed.map(drop).map_err(unrecorded)
    }
}

/// The folder of objects whose hash begins with this byte.
pub(crate) fn folder(first: u8) -> String {
    format!("content/{first:02x}")
}

/// The object's name in the store.
pub(crate) fn name(hash: ContentHash, id: ObjectId) -> String {
    format!("{}/{hash}-{id}", folder(hash.as_bytes()[0]))
}

/// Parses the last part of an object's name.
pub(crate) fn named(name: &str) -> Option<(ContentHash, ObjectId)> {
    let (hash, id) = name.split_once('-')?;
    Some((ContentHash::parse(hash)?, ObjectId::parse(id)?))
}

/// The records locate the content: without them, it is as unavailable as without the store.
fn unrecorded(error: impl std::error::Error + Send + Sync + 'static) -> ContentError {
    ContentError::Away(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        let (hash, id) = (ContentHash::of(b"x"), ObjectId::from_bits(7));
        let name = name(hash, id);
        let (folder, last) = name.rsplit_once('/').unwrap();
        assert_eq!(folder, super::folder(hash.as_bytes()[0]));
        assert_eq!(named(last), Some((hash, id)));
        for other in ["", "-", "x-y", &last[1..], &format!("{last}0")] {
            assert_eq!(named(other), None, "{other}");
        }
    }
}
