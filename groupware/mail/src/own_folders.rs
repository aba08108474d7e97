//! The stored form of the owner's own folders.

use std::ops::ControlFlow;

use groupware_store::Snapshot;
use serde::{Deserialize, Serialize};

use crate::{MailError, Unid, keys};

/// A folder of the owner's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnFolder {
    /// Its id in keys and paths.
    pub unid: Unid,
    /// Its displayed name.
    pub name: String,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    name: String,
}

/// Returns the owner's own folders, newest first.
///
/// # Errors
/// Errors of the store.
pub fn own(snapshot: &dyn Snapshot, mailbox: &str) -> Result<Vec<OwnFolder>, MailError> {
    let (from, to) = keys::FOLDERS;
    let (mut found, mut failure) = (Vec::new(), None);
    snapshot.scan(
        mailbox,
        from,
        Some(to),
        usize::MAX,
        &mut |key, record| match decode(key, &record.value) {
            Ok(folder) => {
                found.push(folder);
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        },
    )?;
    failure.map_or(Ok(found), Err)
}

fn decode(key: &[u8], value: &[u8]) -> Result<OwnFolder, MailError> {
    let unid = keys::unid_of(key).ok_or_else(|| MailError::corrupt(key, "no name"))?;
    let Stored { name } =
        serde_json::from_slice(value).map_err(|error| MailError::corrupt(key, error))?;
    Ok(OwnFolder { unid, name })
}

/// The stored form of a folder.
pub(crate) fn stored(name: &str) -> Vec<u8> {
    let name = name.to_owned();
    serde_json::to_vec(&Stored { name }).expect("a text serialises to memory")
}
