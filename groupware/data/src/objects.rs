//! Opens the object store for the attachments of these records.

use std::sync::Arc;

use groupware_content::ContentStore;
use groupware_documents::content_place;
use groupware_objects::{Address, Credentials, ObjectStorage, OpenError};
use groupware_runtime::random;
use groupware_store::Store;

use crate::error::DataError;

/// An object store for the content of attachments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPlace {
    /// The address.
    pub address: Address,
    /// The credentials.
    pub credentials: Credentials,
}

/// Attaches the configured object store; rejects settings without the one that holds attachments.
pub(crate) fn attach(
    store: &Store,
    content: ContentStore,
    place: Option<&ObjectPlace>,
) -> Result<(ContentStore, Option<Arc<ObjectStorage>>), DataError> {
    let Some(place) = place else {
        refuse_to_forget(store)?;
        return Ok((content, None));
    };
    if place.address.is_plain_and_far() {
        tracing::warn!(
            address = %place.address,
            "attachments go over the network unencrypted: the object store's endpoint is http"
        );
    }
    let bits = || u128::from_le_bytes(random::bytes());
    let shelf = ObjectStorage::open(store, (&place.address, &place.credentials), bits)?;
    tracing::info!(
        address = %place.address,
        server = shelf.server(),
        "attachments are in an object store"
    );
    let content = content.with_objects(Arc::clone(&shelf) as _);
    Ok((content, Some(shelf)))
}

/// Rejects a start without the object store that holds attachments.
pub(crate) fn refuse_to_forget(store: &Store) -> Result<(), DataError> {
    match store.read(content_place).map_err(OpenError::from)? {
        Some(known) if known.is_set_up => Err(DataError::ObjectsElsewhere(known.name)),
        _ => Ok(()),
    }
}
