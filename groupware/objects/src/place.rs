//! Checks that a place in an object store is the one with the content of these records.
//!
//! The sweep of another server's place would remove all content unknown to these records, and an empty place would lack
//! every attachment. So an object contains the place's name, and the records store it, too. The records store it first
//! and then confirm the object: an interrupted start resumes.

use groupware_documents::{ContentPlace, content_place, note_content_place};
use groupware_store::{CommitError, Store};

use crate::address::Address;
use crate::bucket::Bucket;
use crate::error::OpenError;

/// The object with the place's name.
pub(crate) const NAME: &str = "plimsoll-content";

pub(crate) fn check(
    store: &Store,
    (bucket, address): (&Bucket, &Address),
    bits: fn() -> u128,
) -> Result<(), OpenError> {
    let place = || address.to_string();
    let unusable = |source| OpenError::Unusable {
        place: place(),
        source,
    };
    loop {
        let known = store.read(content_place)?;
        let found = bucket.read_small(NAME).map_err(unusable)?;
        let found = found.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        match (known, found) {
            (Some(known), Some(found)) if known.name == found => {
                if known.is_set_up {
                    return Ok(());
                }
                note(store, found, true)?;
            }
            (known, Some(found)) => {
                let known = known.map_or_else(|| "none".to_owned(), |known| known.name);
                return Err(OpenError::Others {
                    place: place(),
                    found,
                    known,
                });
            }
            (Some(ContentPlace { name, is_set_up }), None) => match is_set_up {
                true => {
                    return Err(OpenError::Nothing {
                        place: place(),
                        known: name,
                    });
                }
                false => bucket
                    .put(NAME, format!("{name}\n").into_bytes())
                    .map_err(unusable)?,
            },
            (None, None) => note(store, format!("{:032x}", bits()), false)?,
        }
    }
}

/// Checks again if another server was faster.
fn note(store: &Store, name: String, is_set_up: bool) -> Result<(), OpenError> {
    let place = ContentPlace { name, is_set_up };
    let batch = store.read(|snapshot| note_content_place(snapshot, &place))?;
    match store.commit_blocking(batch) {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
