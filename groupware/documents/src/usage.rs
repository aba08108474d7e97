//! The usage of a user's documents and uploads, and the number of documents in each database.

use std::collections::BTreeMap;

use groupware_store::{Op, Snapshot, StoreError};
use serde::{Deserialize, Serialize};

use crate::{DatabaseName, DocumentError, Reason, keys, limits};

/// The usage of a user's documents and uploads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Fields, attachments, and the announced length of pending uploads. Equal content counts each
    /// time: deduplication must not reveal the content of others.
    pub bytes: u64,
    /// Upload records.
    #[serde(default)]
    pub uploads: u64,
    /// The number of documents by database; a missing one has none.
    #[serde(default)]
    pub documents: BTreeMap<String, u64>,
}

/// Usage with its revision; `None` if there was no record.
#[derive(Debug, Clone, Default)]
pub(crate) struct HeldUsage {
    pub(crate) usage: Usage,
    pub(crate) revision: Option<u64>,
}

pub(crate) fn load(snapshot: &dyn Snapshot, mailbox: &str) -> Result<HeldUsage, DocumentError> {
    let Some(record) = snapshot.get(mailbox, keys::USAGE)? else {
        return Ok(HeldUsage::default());
    };
    let usage = serde_json::from_slice(&record.value)
        .map_err(|error| DocumentError::corrupt(keys::USAGE, error))?;
    Ok(HeldUsage {
        usage,
        revision: Some(record.revision),
    })
}

/// Returns the bytes of a user's documents and uploads; 0 if the record can't be parsed.
///
/// # Errors
/// Errors of the store.
pub fn stored_bytes(snapshot: &dyn Snapshot, mailbox: &str) -> Result<u64, StoreError> {
    let record = snapshot.get(mailbox, keys::USAGE)?;
    let usage = record.and_then(|record| serde_json::from_slice::<Usage>(&record.value).ok());
    Ok(usage.map_or(0, |usage| usage.bytes))
}

/// Returns the new value of [`stored_bytes`] if an operation of a batch changes it.
pub fn stored_bytes_after(op: &Op) -> Option<u64> {
    let Op::Put { key, value, .. } = op else {
        return None;
    };
    let usage = (**key == *keys::USAGE).then(|| serde_json::from_slice::<Usage>(value));
    Some(usage?.ok()?.bytes)
}

/// Returns the bytes that a user may still store.
///
/// # Errors
/// Errors of the store.
pub fn room(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    quota_bytes: u64,
) -> Result<u64, DocumentError> {
    let held = load(snapshot, mailbox)?;
    Ok(quota_bytes.saturating_sub(held.usage.bytes))
}

impl Usage {
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers always serialise to memory")
    }

    /// Replaces the old size by the new one.
    ///
    /// # Errors
    /// 507 if it is larger and exceeds the quota.
    pub(crate) fn change(
        &mut self,
        before: u64,
        after: u64,
        quota_bytes: u64,
    ) -> Result<(), DocumentError> {
        self.bytes = self.bytes.saturating_sub(before).saturating_add(after);
        if after > before && self.bytes > quota_bytes {
            return Err(no_room());
        }
        Ok(())
    }

    /// Counts a document more or less.
    ///
    /// # Errors
    /// 507 if there are too many.
    pub(crate) fn count(
        &mut self,
        database: &DatabaseName,
        is_new: bool,
    ) -> Result<(), DocumentError> {
        let name = database.as_str();
        if !is_new {
            let left = self.documents.get(name).map_or(0, |count| count - 1);
            match left {
                0 => self.documents.remove(name),
                left => self.documents.insert(name.to_owned(), left),
            };
            return Ok(());
        }
        *self.documents.entry(name.to_owned()).or_default() += 1;
        if self.documents.len() > limits::DATABASES {
            return Err(DocumentError::refused(
                Reason::OverQuota,
                "There are too many databases.",
            ));
        }
        if self.documents.values().sum::<u64>() > limits::DOCUMENTS {
            return Err(DocumentError::refused(
                Reason::OverQuota,
                "There are too many documents.",
            ));
        }
        Ok(())
    }
}

pub(crate) fn no_room() -> DocumentError {
    DocumentError::refused(
        Reason::OverQuota,
        "This would take more than your share of the disk.",
    )
}
