//! Unmodified documents in order, for callers that read all of them.

use std::ops::ControlFlow;

use groupware_store::Snapshot;

use crate::{DatabaseName, Document, DocumentError, Unid, keys};

/// A document: its database and its id there.
pub type At = (DatabaseName, Unid);

/// Returns a user's documents after this one, or from the first on, in the order of their databases
/// and ids; at most `most`.
///
/// # Errors
/// If the store can't be read, or a document is damaged.
pub fn documents_after(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    after: Option<&At>,
    most: usize,
) -> Result<Vec<(At, Document)>, DocumentError> {
    let (mut from, to) = keys::documents();
    if let Some((database, unid)) = after {
        from = keys::document(database, unid);
        // The first key after it.
        from.push(0);
    }
    let (mut found, mut failure) = (Vec::new(), None);
    snapshot.scan(mailbox, &from, Some(&to), most, &mut |key, record| {
        let decoded = keys::document_of(key)
            .ok_or_else(|| DocumentError::corrupt(key, "no name"))
            .and_then(|at| Ok((at, Document::decode(key, &record.value)?)));
        match decoded {
            Ok(document) => {
                found.push(document);
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failure.map_or(Ok(found), Err)
}

/// Returns an unmodified document, if it exists.
///
/// # Errors
/// If the store can't be read, or the document is damaged.
pub fn find(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    (database, unid): (&DatabaseName, &Unid),
) -> Result<Option<Document>, DocumentError> {
    let key = keys::document(database, unid);
    let record = snapshot.get(mailbox, &key)?;
    record
        .map(|record| Document::decode(&key, &record.value))
        .transpose()
}
