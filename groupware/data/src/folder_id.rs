//! Checks that a data folder is the one with a database's attachments.
//!
//! Servers over one database share one folder, on one machine or on a file system that several of them mount. A server
//! with another folder would miss all attachments that other servers receive. So the folder has an identifier in a
//! file, and the database knows it.
//!
//! With attachments and unfinished uploads in an object store, each server may have any folder, once the shared folder
//! has no attachments left. From then on the database has none: an older server, which takes its folder for the shared
//! one, would create files for uploads that are in the object store.

use std::fs;
use std::io;
use std::path::Path;

use groupware_runtime::random;
use groupware_store::{Batch, CommitError, Store, StoreError};

use crate::error::DataError;
use crate::first_line;

/// The file with the folder's identifier.
const FILE: &str = "folder-id";
const PARTITION: &str = "$server";
const KEY: &str = "folder";
/// The key that exists once no folder has attachments. Its value is the identifier of the database's former folder.
const OWN: &str = "own-folders";
/// The database's folder from then on. No folder has this identifier: programs unaware of `OWN` reject every folder.
const NONE: &str = "each-server-has-its-own";
/// The maximum length of an identifier in bytes.
const MAX_BYTES: usize = 100;

/// Rejects any folder but the database's, unless no folder has attachments.
pub(crate) fn check_any(
    store: &Store,
    (folder, has_content): (&Path, bool),
) -> Result<(), DataError> {
    match (get(store, OWN)?, has_content) {
        (None, _) => check(store, folder)?,
        (Some((first, _)), true) => {
            let found = found(folder)?;
            if found.as_deref() != Some(&*first) {
                return Err(other(folder, first, found));
            }
        }
        (Some(_), false) => {}
    }
    if has_content {
        tracing::warn!(
            "attachments lie in this folder still, and move to the object store: until they have, and this server was \
             started again, servers with other folders are refused"
        );
        return Ok(());
    }
    note_own(store)
}

/// Rejects a folder that isn't the database's. The first folder becomes the database's.
pub(crate) fn check(store: &Store, folder: &Path) -> Result<(), DataError> {
    loop {
        let known = get(store, KEY)?.map(|(known, _)| known);
        match (known, found(folder)?) {
            (Some(known), Some(found)) if known == found => return Ok(()),
            (Some(known), found) => return Err(other(folder, known, found)),
            (None, Some(found)) => note(store, (KEY, &found))?,
            (None, None) => make(folder).map_err(|source| DataError::FolderId {
                file: folder.join(FILE),
                source,
            })?,
        }
    }
}

fn found(folder: &Path) -> Result<Option<String>, DataError> {
    read(folder).map_err(|source| DataError::FolderId {
        file: folder.join(FILE),
        source,
    })
}

fn other(folder: &Path, known: String, found: Option<String>) -> DataError {
    DataError::OtherFolder {
        folder: folder.to_owned(),
        known,
        found,
    }
}

/// Reads a record's text and its revision.
fn get(store: &Store, key: &str) -> Result<Option<(String, u64)>, StoreError> {
    let record = store.read(|snapshot| snapshot.get(PARTITION, key.as_bytes()))?;
    Ok(record.map(|record| {
        let text = String::from_utf8_lossy(&record.value).into_owned();
        (text, record.revision)
    }))
}

/// Records that each server has its own folder, and the database none. A concurrent server has recorded the same.
fn note_own(store: &Store) -> Result<(), DataError> {
    let Some((first, revision)) = get(store, KEY)?.filter(|(first, _)| first != NONE) else {
        return Ok(());
    };
    let mut batch = Batch::new();
    batch
        .assert_revision(PARTITION, KEY, revision)
        .put(PARTITION, OWN, first)
        .put(PARTITION, KEY, NONE);
    match store.commit_blocking(batch) {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Records the folder. If another server was faster, its folder stays recorded.
fn note(store: &Store, (key, found): (&str, &str)) -> Result<(), CommitError> {
    let mut batch = Batch::new();
    batch
        .assert_absent(PARTITION, key)
        .put(PARTITION, key, found.to_owned());
    match store.commit_blocking(batch) {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn read(folder: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(folder.join(FILE)) {
        Ok(text) => {
            let name = text.trim();
            let is_name = (1..=MAX_BYTES).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
            match is_name {
                true => Ok(Some(name.to_owned())),
                false => Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "it has no name of letters and digits in it",
                )),
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Creates the folder's identifier, unless another server has just done so.
fn make(folder: &Path) -> io::Result<()> {
    let name = format!("{:032x}", u128::from_le_bytes(random::bytes()));
    first_line::write(&folder.join(FILE), &name).map(drop)
}

#[cfg(test)]
mod tests {
    use groupware_store::StoreOptions;

    use super::*;

    #[test]
    fn a_database_has_one_folder() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for _ in 0..2 {
            check(&store, one.path()).unwrap();
        }
        let name = fs::read_to_string(one.path().join(FILE)).unwrap();
        let refused = check(&store, other.path()).unwrap_err();
        let words = refused.to_string();
        assert!(refused.is_configuration(), "{words}");
        assert!(words.contains(name.trim()), "{words}");
        // The documented procedure for a folder restored from elsewhere.
        fs::write(other.path().join(FILE), &name).unwrap();
        check(&store, other.path()).unwrap();
        // A store that records were copied to has the same folder, and a new store takes any.
        let new = Store::memory(StoreOptions::default()).unwrap();
        check(&new, one.path()).unwrap();
        fs::write(one.path().join(FILE), "no/name").unwrap();
        assert!(check(&store, one.path()).is_err());
        let count = fs::read_dir(one.path()).unwrap().count();
        assert_eq!(count, 1, "no leftovers");
    }

    #[test]
    fn any_folder_will_do_once_no_attachment_lies_in_one() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let [one, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        check(&store, one.path()).unwrap();
        for _ in 0..2 {
            check_any(&store, (one.path(), true)).unwrap();
        }
        for has_content in [true, false] {
            let refused = check_any(&store, (other.path(), has_content));
            assert!(matches!(refused, Err(DataError::OtherFolder { .. })));
        }
        // Its attachments are now in the object store.
        check_any(&store, (one.path(), false)).unwrap();
        for _ in 0..2 {
            check_any(&store, (other.path(), false)).unwrap();
        }
        // A folder with attachments must still be the first one.
        assert!(check_any(&store, (other.path(), true)).is_err());
        check_any(&store, (one.path(), true)).unwrap();
        // A program that takes its folder for the shared one is rejected with each folder, even the first.
        for folder in [&one, &other] {
            let refused = check(&store, folder.path()).unwrap_err();
            assert!(refused.is_configuration(), "{refused}");
        }
        fs::write(other.path().join(FILE), NONE).unwrap();
        assert!(check(&store, other.path()).is_err());
    }
}
