//! The display preferences of users.

use groupware_store::{Batch, Snapshot, StoreError};

/// The key of the time zone's name in the user's partition.
const ZONE: &str = "set/zone";

/// Reads the name of the time zone that a user chose.
///
/// # Errors
/// The store's.
pub fn zone(snapshot: &dyn Snapshot, mailbox: &str) -> Result<Option<String>, StoreError> {
    let record = snapshot.get(mailbox, ZONE.as_bytes())?;
    Ok(record.and_then(|record| String::from_utf8(record.value.to_vec()).ok()))
}

/// Sets the name of the user's time zone.
pub fn choose_zone(mailbox: &str, name: &str) -> Batch {
    let mut batch = Batch::new();
    batch.put(mailbox, ZONE, name.to_owned());
    batch
}
