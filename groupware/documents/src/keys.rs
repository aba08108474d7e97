//! The keys of documents in their owner's partition.
//!
//! ```text
//! d/d/{database}/{unid}               the document; its revision guards all that is derived
//! d/l/{database}/{modified}/{unid}    derived: the document's line in the list, rendered JSON
//! d/c/{hash}/{database}/{unid}/{item}/{file}   derived: a reference to content, and its length
//! d/u/{id}                            a pending or recently finished upload
//! d/a/{database}                      the users with access to the database, and the time of the grant
//! d/g                                 rewritten by the first grant of a database
//! d/q                                 the bytes of all of it, and the number of documents
//! ```
//! Names have no slash in them. Every key starts with `d/`.

use std::ops::RangeInclusive;

use groupware_ids::ContentHash;

use crate::{DatabaseName, Unid, UploadId};

/// One past the last key of a family: `/` + 1.
const AFTER_SLASH: char = '0';

/// All records of documents and uploads of a user: first key, and first key after them.
pub const ALL: (&[u8], &[u8]) = (b"d/", b"d0");

pub(crate) const USAGE: &[u8] = b"d/q";

/// Decisions on the number of granted databases assert this record's revision, so that it doesn't change concurrently.
pub(crate) const GRANTS: &[u8] = b"d/g";

pub(crate) fn document(database: &DatabaseName, unid: &Unid) -> Vec<u8> {
    format!("d/d/{database}/{unid}").into_bytes()
}

/// Returns the document of a key.
pub(crate) fn document_of(key: &[u8]) -> Option<(DatabaseName, Unid)> {
    let name = std::str::from_utf8(key.strip_prefix(b"d/d/")?).ok()?;
    let (database, unid) = name.split_once('/')?;
    Some((DatabaseName::parse(database).ok()?, Unid::parse(unid).ok()?))
}

/// All documents of a user.
pub(crate) fn documents() -> (Vec<u8>, Vec<u8>) {
    family("d/d")
}

pub(crate) fn line(database: &DatabaseName, modified: i64, unid: &Unid) -> Vec<u8> {
    let mut key = lines_from(database, modified);
    key.push(b'/');
    key.extend_from_slice(unid.as_str().as_bytes());
    key
}

/// The first key of the list at or after a time.
pub(crate) fn lines_from(database: &DatabaseName, modified: i64) -> Vec<u8> {
    // Sorts by time, even before 1970.
    let order = modified.cast_unsigned() ^ (1 << 63);
    format!("d/l/{database}/{order:016X}").into_bytes()
}

/// First key after the list.
pub(crate) fn lines_end(database: &DatabaseName) -> Vec<u8> {
    format!("d/l/{database}{AFTER_SLASH}").into_bytes()
}

pub(crate) fn all_lines() -> (Vec<u8>, Vec<u8>) {
    family("d/l")
}

/// Key of a reference. `rest` names the attachment within the user's documents.
pub(crate) fn content(hash: ContentHash, rest: &str) -> Vec<u8> {
    format!("d/c/{hash}/{rest}").into_bytes()
}

/// All references to content whose hash begins with one of these bytes.
pub(crate) fn content_within(folders: &RangeInclusive<u8>) -> (Vec<u8>, Vec<u8>) {
    let (first, last) = (folders.start(), folders.end());
    let end = match last.checked_add(1) {
        Some(next) => format!("d/c/{next:02x}"),
        None => format!("d/c{AFTER_SLASH}"),
    };
    (format!("d/c/{first:02x}").into_bytes(), end.into_bytes())
}

pub(crate) fn all_content() -> (Vec<u8>, Vec<u8>) {
    family("d/c")
}

/// The hash in a reference's key.
pub(crate) fn hash_of(key: &[u8]) -> Option<ContentHash> {
    let text = std::str::from_utf8(key.get(4..68)?).ok()?;
    ContentHash::parse(text)
}

pub(crate) fn upload(id: &UploadId) -> Vec<u8> {
    format!("d/u/{id}").into_bytes()
}

pub(crate) fn uploads() -> (Vec<u8>, Vec<u8>) {
    family("d/u")
}

pub(crate) fn access(database: &DatabaseName) -> Vec<u8> {
    format!("d/a/{database}").into_bytes()
}

pub(crate) fn all_access() -> (Vec<u8>, Vec<u8>) {
    family("d/a")
}

fn family(prefix: &str) -> (Vec<u8>, Vec<u8>) {
    (
        format!("{prefix}/").into_bytes(),
        format!("{prefix}{AFTER_SLASH}").into_bytes(),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_sort_by_their_moment(a: i64, b: i64) {
            let database = DatabaseName::parse("notes").unwrap();
            let unid = Unid::from_bits(7);
            let (x, y) = (line(&database, a, &unid), line(&database, b, &unid));
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
            prop_assert!(x < lines_end(&database) && x >= lines_from(&database, a));
        }

        #[test]
        fn references_lie_in_the_range_of_their_first_byte(bytes: [u8; 32]) {
            let hash = ContentHash::from_bytes(bytes);
            let key = content(hash, "notes/0/Body/a.txt");
            let (from, to) = content_within(&(bytes[0]..=bytes[0]));
            prop_assert!(from <= key && key < to);
            prop_assert_eq!(hash_of(&key), Some(hash));
        }
    }
}
