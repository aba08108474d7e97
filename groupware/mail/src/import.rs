//! Messages that come into a mailbox as if they had come earlier: nobody sends them, nothing is added
//! to them, and no quota is asked.

use std::sync::Arc;

use bytes::Bytes;
use groupware_store::{Batch, Snapshot};

use crate::mailbox::Changes;
use crate::{Entry, Folder, MailError, Unid};

/// A message to import.
#[derive(Debug, Clone)]
pub struct Imported {
    /// The message, which is kept byte for byte.
    pub message: Bytes,
    /// When it came, microseconds since 1970.
    pub received_us: i64,
    /// Tells it apart from others of that moment.
    pub random: u128,
}

/// Puts messages into a folder of a mailbox.
///
/// # Errors
/// The store's.
pub fn import(
    snapshot: &dyn Snapshot,
    (mailbox, folder): (&str, Folder),
    messages: impl Iterator<Item = Imported>,
) -> Result<Batch, MailError> {
    let mailbox: Arc<str> = mailbox.into();
    let mut changes = Changes::new(snapshot);
    for new in messages {
        let unid = Unid::new(new.received_us, new.random);
        let entry = Entry::of(&new.message, new.received_us);
        changes.insert(&mailbox, folder, unid, &entry, &new.message);
    }
    changes.into_batch()
}
