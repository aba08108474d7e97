//! Whether a data folder is the one in which a database's attachments are.
//!
//! Servers over one database have one folder, on one machine or on a file system that several of them mount. One
//! with another folder would miss every attachment that it didn't take in itself. So the folder has a name in a
//! file, and the database knows it.
//!
//! Where attachments and uploads under way are in an object store, each server may have any folder, once the one folder has
//! no attachments left. From then on none is the database's: a server of a version that took its folder for that of all
//! would begin files for uploads that lie elsewhere.

use std::fs;
use std::io;
use std::path::Path;

use groupware_runtime::random;
use groupware_store::{Batch, CommitError, Store, StoreError};

use crate::error::DataError;
use crate::first_line;

/// The file with the folder's name.
const FILE: &str = "folder-id";
const PARTITION: &str = "$server";
const KEY: &str = "folder";
/// Since this is there, no attachment lies in a folder. It has the name of the one that was the database's before.
const OWN: &str = "own-folders";
/// The database's folder since then: no folder is called that, so that programs refuse each that know nothing of this.
const NONE: &str = "each-server-has-its-own";
/// Longest name that is read.
const MAX_BYTES: usize = 100;

/// Refuses a folder beside which another may have attachments: any other than the database's, unless none has any.
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

/// Refuses a folder that isn't the database's, which the first one is.
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

/// A record's text and its revision.
fn get(store: &Store, key: &str) -> Result<Option<(String, u64)>, StoreError> {
    let record = store.read(|snapshot| snapshot.get(PARTITION, key.as_bytes()))?;
    Ok(record.map(|record| {
        let text = String::from_utf8_lossy(&record.value).into_owned();
        (text, record.revision)
    }))
}

/// From now on each server has its own folder, and none is the database's. Where another server was faster, it has noted
/// the same.
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

/// Where another server was faster, its folder is the one.
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

/// Gives the folder a name, unless another server has been faster.
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
        // As whoever restores the folder from elsewhere is told to do.
        fs::write(other.path().join(FILE), &name).unwrap();
        check(&store, other.path()).unwrap();
        // Another store that was copied into is of the same folder, and one that is new takes any.
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
        // Its attachments are elsewhere by now.
        check_any(&store, (one.path(), false)).unwrap();
        for _ in 0..2 {
            check_any(&store, (other.path(), false)).unwrap();
        }
        // One that has attachments is still no other than the first.
        assert!(check_any(&store, (other.path(), true)).is_err());
        check_any(&store, (one.path(), true)).unwrap();
        // A program that takes a folder for that of all is refused with each, the first, too.
        for folder in [&one, &other] {
            let refused = check(&store, folder.path()).unwrap_err();
            assert!(refused.is_configuration(), "{refused}");
        }
        fs::write(other.path().join(FILE), NONE).unwrap();
        assert!(check(&store, other.path()).is_err());
    }
}
