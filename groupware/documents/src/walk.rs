//! Documents one after the other, as they are, for whoever takes all of them.

use std::ops::ControlFlow;

use groupware_store::Snapshot;

use crate::{DatabaseName, Document, DocumentError, Unid, keys};

/// Which document: its database and its name there.
pub type At = (DatabaseName, Unid);

/// A user's documents behind this one, or from the first on, in the order of their databases and names;
/// at most `most`.
///
/// # Errors
/// When the store can't be read, or one is damaged.
pub fn documents_after(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    after: Option<&At>,
    most: usize,
) -> Result<Vec<(At, Document)>, DocumentError> {
    let (mut from, to) = keys::documents();
    if let Some((database, unid)) = after {
        from = keys::document(database, unid);
        // The first key behind it.
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

/// A document as it is, if it is there.
///
/// # Errors
/// When the store can't be read, or it is damaged.
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
