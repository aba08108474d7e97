//! Checks that a user's records of documents are consistent, and collects the content that they refer to.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};

use groupware_ids::ContentHash;
use groupware_store::{ReadError, Record, Snapshot};

use crate::mailbox::derived;
use crate::{Document, DocumentError, HeldUpload, Usage, keys, upload, usage};

/// The result of a check of a user's records.
#[derive(Debug, Default)]
pub struct Found {
    /// The documents.
    pub documents: u64,
    /// The defects, one sentence each.
    pub wrong: Vec<String>,
    /// The content that documents refer to, with its length and one reference.
    pub content: BTreeMap<ContentHash, (u64, String)>,
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// Checks all documents, uploads, and derived records of a user. Holds a user's derived records in
/// memory.
///
/// # Errors
/// If the store can't be read.
pub fn check(snapshot: &dyn Snapshot, mailbox: &str) -> Result<Found, DocumentError> {
    let mut found = Found::default();
    let mut expected = Records::new();
    let mut counted = Usage::default();
    scan(snapshot, mailbox, keys::documents(), &mut |key, record| {
        if let Err(error) = check_document(
            mailbox,
            key,
            record,
            (&mut found, &mut expected, &mut counted),
        ) {
            found.wrong.push(sentence(mailbox, &error));
        }
    })?;
    let uploads = upload::uploads(snapshot, mailbox, &mut |_, HeldUpload { upload, .. }| {
        counted.uploads += 1;
        counted.bytes += upload.finished.map_or(upload.length, |_| 0);
    });
    match uploads {
        Ok(()) => {}
        Err(error @ DocumentError::Unreadable(ReadError::Store(_))) => return Err(error),
        Err(error) => found.wrong.push(sentence(mailbox, &error)),
    }
    for family in [keys::all_lines(), keys::all_content()] {
        scan(snapshot, mailbox, family, &mut |key, record| {
            let text = String::from_utf8_lossy(key);
            match expected.remove(key) {
                Some(value) if value == record.value => {}
                Some(_) => found.wrong.push(format!(
                    "{mailbox}: record {text} does not fit its document"
                )),
                None => found
                    .wrong
                    .push(format!("{mailbox}: record {text} belongs to no document")),
            }
        })?;
    }
    for key in expected.keys() {
        let text = String::from_utf8_lossy(key);
        found
            .wrong
            .push(format!("{mailbox}: record {text} is missing"));
    }
    check_usage(snapshot, mailbox, &counted, &mut found)?;
    Ok(found)
}

fn check_document(
    mailbox: &str,
    key: &[u8],
    record: &Record,
    (found, expected, counted): (&mut Found, &mut Records, &mut Usage),
) -> Result<(), DocumentError> {
    let (database, unid) = keys::document_of(key).ok_or_else(|| unreadable(key))?;
    let document = Document::decode(key, &record.value)?;
    found.documents += 1;
    counted.bytes += document.bytes();
    *counted.documents.entry(database.to_string()).or_default() += 1;
    for attachment in &document.attachments {
        let (item, name) = (&attachment.item, &attachment.name);
        let known = found.content.entry(attachment.hash).or_insert_with(|| {
            let by = format!("{mailbox}: {database}/{unid}/{item}/{name}");
            (attachment.bytes, by)
        });
        if known.0 != attachment.bytes {
            let (hash, by) = (attachment.hash, &known.1);
            found.wrong.push(format!(
                "{mailbox}: {database}/{unid}/{item}/{name} and {by} refer to content {hash} with \
                 different lengths"
            ));
        }
    }
    expected.extend(derived(mailbox, &database, &unid, &document));
    Ok(())
}

fn check_usage(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    counted: &Usage,
    found: &mut Found,
) -> Result<(), DocumentError> {
    match usage::load(snapshot, mailbox) {
        Ok(held) if held.usage == *counted => {}
        Ok(held) => found.wrong.push(format!(
            "{mailbox}: {} bytes and {} documents are recorded as used; there are {} and {}",
            held.usage.bytes,
            held.usage.documents.values().sum::<u64>(),
            counted.bytes,
            found.documents,
        )),
        Err(error @ DocumentError::Unreadable(ReadError::Store(_))) => return Err(error),
        Err(error) => found.wrong.push(sentence(mailbox, &error)),
    }
    Ok(())
}

/// Visits the content that a user's documents refer to, limited to hashes that begin with one of these bytes.
///
/// # Errors
/// If the store can't be read, or a reference is damaged: nothing may be swept then.
pub fn kept_content(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folders: &RangeInclusive<u8>,
    keep: &mut dyn FnMut(&ContentHash, u64),
) -> Result<(), DocumentError> {
    references(snapshot, mailbox, keys::content_within(folders), keep)
}

/// Visits all content that a user's documents refer to, with its length, in the order of the
/// hashes; once per reference.
///
/// # Errors
/// As [`kept_content`].
pub fn all_content(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    keep: &mut dyn FnMut(&ContentHash, u64),
) -> Result<(), DocumentError> {
    references(snapshot, mailbox, keys::all_content(), keep)
}

fn references(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    range: (Vec<u8>, Vec<u8>),
    keep: &mut dyn FnMut(&ContentHash, u64),
) -> Result<(), DocumentError> {
    let mut damaged = None;
    scan(snapshot, mailbox, range, &mut |key, record| {
        let bytes = record.value[..].try_into().map(u64::from_be_bytes);
        match (keys::hash_of(key), bytes) {
            (Some(hash), Ok(bytes)) => keep(&hash, bytes),
            _ => damaged = Some(unreadable(key)),
        }
    })?;
    damaged.map_or(Ok(()), Err)
}

fn scan(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    (from, to): (Vec<u8>, Vec<u8>),
    visit: &mut dyn FnMut(&[u8], &Record),
) -> Result<(), DocumentError> {
    snapshot.scan(mailbox, &from, Some(&to), usize::MAX, &mut |key, record| {
        visit(key, &record);
        ControlFlow::Continue(())
    })?;
    Ok(())
}

fn unreadable(key: &[u8]) -> DocumentError {
    DocumentError::corrupt(key, "its key or value is damaged")
}

fn sentence(mailbox: &str, error: &DocumentError) -> String {
    format!("{mailbox}: {error}")
}
