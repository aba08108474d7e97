//! Reading documents, and the one place that writes them.
//!
//! A document's list line, its references to content, and its part of the usage are functions of
//! the document. Only this module writes and removes them, under an assert on the document's
//! revision: a decision on an older state conflicts and is repeated.

use std::sync::Arc;

use groupware_store::{Batch, Snapshot};

use crate::context::Context;
use crate::usage::{self, HeldUsage};
use crate::{DatabaseName, Document, DocumentError, Unid, access, domino, keys};

/// A document with its revision.
#[derive(Debug, Clone)]
pub(crate) struct HeldDocument {
    pub(crate) document: Document,
    pub(crate) revision: u64,
}

/// Reads a document that must exist.
///
/// # Errors
/// 404 if it isn't.
pub(crate) fn require(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    database: &DatabaseName,
    unid: &Unid,
) -> Result<HeldDocument, DocumentError> {
    let key = keys::document(database, unid);
    let record = snapshot
        .get(mailbox, &key)?
        .ok_or_else(|| DocumentError::not_found("There is no such document."))?;
    Ok(HeldDocument {
        document: Document::decode(&key, &record.value)?,
        revision: record.revision,
    })
}

/// A batch under construction, of one user's documents.
pub(crate) struct Changes {
    partition: Arc<str>,
    batch: Batch,
    quota_bytes: u64,
    before: HeldUsage,
    pub(crate) usage: usage::Usage,
}

impl Changes {
    /// Starts changes of a database that a user other than its owner may have decided on. They
    /// conflict once the grant that allowed them is changed or revoked.
    ///
    /// # Errors
    /// 403 for other users without a grant.
    pub(crate) fn in_database(
        context: &Context<'_>,
        database: &DatabaseName,
    ) -> Result<Self, DocumentError> {
        let mut changes = Self::new(context)?;
        if !context.who.is_owner() {
            let mailbox = context.who.mailbox;
            let revision = access::grant_revision(context.snapshot, mailbox, database)?;
            let (partition, key) = (Arc::clone(&changes.partition), keys::access(database));
            changes.batch.assert_revision(partition, key, revision);
        }
        Ok(changes)
    }

    /// Starts changes that only the owner may decide on.
    pub(crate) fn new(context: &Context<'_>) -> Result<Self, DocumentError> {
        let before = usage::load(context.snapshot, context.who.mailbox)?;
        Ok(Self {
            partition: context.who.mailbox.into(),
            batch: Batch::new(),
            quota_bytes: context.quota_bytes,
            usage: before.usage.clone(),
            before,
        })
    }

    /// Replaces `old` by `new`, or removes `old` if there is no `new`.
    ///
    /// # Errors
    /// 507 if the owner's quota is exhausted.
    pub(crate) fn replace(
        &mut self,
        (database, unid): (&DatabaseName, &Unid),
        old: Option<&HeldDocument>,
        new: Option<&Document>,
    ) -> Result<(), DocumentError> {
        let partition = &self.partition;
        let key = keys::document(database, unid);
        let old_document = old.map(|held| &held.document);
        match old {
            Some(held) => {
                self.batch
                    .assert_revision(Arc::clone(partition), key.clone(), held.revision)
            }
            None => self.batch.assert_absent(Arc::clone(partition), key.clone()),
        };
        match new {
            Some(document) => self
                .batch
                .put(Arc::clone(partition), key, document.encode()),
            None => self.batch.delete(Arc::clone(partition), key),
        };
        let derive = |document| derived(partition, database, unid, document);
        let before = old_document.map_or_else(Vec::new, derive);
        let after = new.map_or_else(Vec::new, derive);
        for (gone, _) in &before {
            if !after.iter().any(|(kept, _)| kept == gone) {
                self.batch.delete(Arc::clone(partition), gone.clone());
            }
        }
        for record in after {
            if !before.contains(&record) {
                self.batch.put(Arc::clone(partition), record.0, record.1);
            }
        }
        if old.is_some() != new.is_some() {
            self.usage.count(database, new.is_some())?;
        }
        let bytes = |document: Option<&Document>| document.map_or(0, Document::bytes);
        self.change_usage(bytes(old_document), bytes(new))
    }

    /// Counts bytes other than those of documents.
    ///
    /// # Errors
    /// 507 if the owner's quota is exhausted.
    pub(crate) fn change_usage(&mut self, before: u64, after: u64) -> Result<(), DocumentError> {
        self.usage.change(before, after, self.quota_bytes)
    }

    /// Writes a record of another kind, which must have this revision, or not exist.
    pub(crate) fn put(&mut self, key: Vec<u8>, revision: Option<u64>, value: Option<Vec<u8>>) {
        let partition = &self.partition;
        match revision {
            Some(revision) => {
                self.batch
                    .assert_revision(Arc::clone(partition), key.clone(), revision)
            }
            None => self.batch.assert_absent(Arc::clone(partition), key.clone()),
        };
        match value {
            Some(value) => self.batch.put(Arc::clone(partition), key, value),
            None => self.batch.delete(Arc::clone(partition), key),
        };
    }

    /// The finished batch. An unchanged usage record is not written, such as when an upload becomes
    /// an attachment, so that a user's uploads don't conflict.
    pub(crate) fn into_batch(mut self) -> Batch {
        if self.usage != self.before.usage {
            let value = self.usage.encode();
            self.put(keys::USAGE.to_vec(), self.before.revision, Some(value));
        }
        self.batch
    }
}

/// The records derived from a document.
pub(crate) fn derived(
    mailbox: &str,
    database: &DatabaseName,
    unid: &Unid,
    document: &Document,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut records = Vec::with_capacity(1 + document.attachments.len());
    records.push((
        keys::line(database, document.modified, unid),
        domino::line(mailbox, database, unid, document),
    ));
    for attachment in &document.attachments {
        let (item, name) = (&attachment.item, &attachment.name);
        let rest = format!("{database}/{unid}/{item}/{name}");
        records.push((
            keys::content(attachment.hash, &rest),
            attachment.bytes.to_be_bytes().to_vec(),
        ));
    }
    records
}
