//! What users have chosen of how things are shown to them.

use groupware_store::{Batch, Snapshot, StoreError};

/// The key of the zone's name in the user's partition.
const ZONE: &str = "set/zone";

/// The name of the time zone that a user chose.
///
/// # Errors
/// The store's.
pub fn zone(snapshot: &dyn Snapshot, mailbox: &str) -> Result<Option<String>, StoreError> {
    let record = snapshot.get(mailbox, ZONE.as_bytes())?;
    Ok(record.and_then(|record| String::from_utf8(record.value.to_vec()).ok()))
}

/// Makes the zone of this name the user's.
pub fn choose_zone(mailbox: &str, name: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(mailbox, ZONE, name.to_owned());
    batch
}
