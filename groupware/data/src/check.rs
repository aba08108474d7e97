//! Checks a whole store: that the records are consistent, and that the content is correct to the last byte.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use groupware_content::{ContentError, ContentHash, ContentStore, Found};
use groupware_documents::{DocumentError, content_place};
use groupware_mail::MailError;
use groupware_postgres::{OpenError as DatabaseError, PostgresOptions};
use groupware_store::{
    FolderLock, OpenError, ReadError, Store, StoreError, StoreOptions, is_half_transferred,
    written_forms,
};

use crate::error::DataError;
use crate::objects::{self, ObjectPlace};
use crate::place::Data;
use crate::stored::FORMS;

/// The results of a check.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Checked {
    /// The number of users.
    pub users: usize,
    /// The number of messages in the users' mailboxes.
    pub messages: u64,
    /// The size of these in bytes; a message in several mailboxes counts for each.
    pub message_bytes: u64,
    /// The number of the users' documents.
    pub documents: u64,
    /// The number of contents that documents refer to.
    pub contents: usize,
    /// The size of these in bytes, all of which were read.
    pub bytes: u64,
    /// The number of contents without references: a running server removes them.
    pub unreferenced: usize,
    /// The problems found, a sentence each.
    pub wrong: Vec<String>,
}

/// Formats the counts in two lines.
impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} users, {} documents, {} messages with {} bytes",
            self.users, self.documents, self.messages, self.message_bytes
        )?;
        write!(
            f,
            "{} pieces of content with {} bytes, {} that nothing refers to",
            self.contents, self.bytes, self.unreferenced
        )
    }
}

/// Why a store could not be checked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// There is no store.
    #[error("there is no data folder {0}")]
    NoFolder(String),
    /// The data folder can't be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The database can't be opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The records can't be read.
    #[error("cannot read the store")]
    Store(#[from] StoreError),
    /// The accounts can't be read.
    #[error("cannot read the accounts: {0}")]
    Accounts(String),
    /// The content can't be read.
    #[error("cannot read the content")]
    Content(#[from] ContentError),
    /// The object store can't be used.
    #[error(transparent)]
    Objects(Box<DataError>),
}

/// Checks a store, which no server may be using, and its attachments. It changes nothing, so it rejects a store that a
/// server would have to upgrade first. Data in memory is not checked.
pub fn check(folder: &Path) -> Result<Checked, CheckError> {
    check_data(&Data::Folder(folder.into()), None)
}

/// Like [`check`] for data in any place, with or without an object store for attachments.
pub fn check_data(data: &Data, place: Option<&ObjectPlace>) -> Result<Checked, CheckError> {
    let Some(folder) = data.folder() else {
        return Ok(Checked::default());
    };
    if !folder.is_dir() {
        return Err(CheckError::NoFolder(folder.display().to_string()));
    }
    let options = StoreOptions::default().as_it_is();
    let mut held = None;
    let store = match data {
        Data::Postgres { database, folder } => {
            held = Some(FolderLock::take(folder)?);
            groupware_postgres::open(database, &options, &PostgresOptions::default())?
        }
        _ => Store::open_sqlite(folder, options)?,
    };
    let is_set_up = store
        .read(content_place)
        .is_ok_and(|known| known.is_some_and(|it| it.is_set_up));
    // Before a server has set it up, the object store is empty.
    let place = place.filter(|_| is_set_up);
    let (content, _) = objects::attach(&store, ContentStore::open(folder)?, place)
        .map_err(|error| CheckError::Objects(Box::new(error)))?;
    let directory = store.read(|snapshot| {
        groupware_people::load(snapshot, groupware_people::Users::new("localhost"))
    });
    let directory = directory.map_err(|error| CheckError::Accounts(error.to_string()))?;
    let mut checked = Checked {
        wrong: store.integrity()?,
        ..Checked::default()
    };
    if store.read(is_half_transferred)? {
        let words = "a copy of another store into this one is not finished";
        checked.wrong.push(words.to_owned());
    }
    checked.wrong.extend(newer(&store));
    let mut referenced = BTreeMap::new();
    let users = directory.keys();
    checked.users = users.len();
    check_mail(&store, &users, &mut checked)?;
    for user in users {
        let found = store.read(|snapshot| groupware_documents::check(snapshot, &user));
        let found = found.map_err(|error| match error {
            DocumentError::Unreadable(ReadError::Store(error)) => CheckError::Store(error),
            // Other errors are findings.
            other => CheckError::Accounts(other.to_string()),
        })?;
        checked.documents += found.documents;
        checked.wrong.extend(found.wrong);
        for (hash, (bytes, by)) in found.content {
            referenced.entry(hash).or_insert((bytes, by));
        }
    }
    check_content(&content, &referenced, &mut checked)?;
    store.close_blocking();
    drop(held);
    Ok(checked)
}

/// Checks that each message has its bytes, and that the message counts of each mailbox are correct.
fn check_mail(store: &Store, users: &[Arc<str>], checked: &mut Checked) -> Result<(), CheckError> {
    let mut found = groupware_mail::Found::default();
    for user in users {
        let looked = store.read(|snapshot| found.look(snapshot, user));
        match looked {
            Ok(()) => {}
            Err(MailError::Unreadable(ReadError::Store(error))) => return Err(error.into()),
            Err(error) => found.wrong.push(format!("{user}: {error}")),
        }
    }
    store.read(|snapshot| found.look_at_shared(snapshot))?;
    (checked.messages, checked.message_bytes) = (found.messages, found.bytes);
    checked.wrong.append(&mut found.wrong);
    Ok(())
}

/// Returns the reason why records may be unreadable: a newer version has written them.
fn newer(store: &Store) -> Option<String> {
    match store.read(written_forms) {
        Ok(found) if found <= FORMS.reads => None,
        Ok(found) => Some(format!(
            "a later version has written to the records: they have forms up to {found}, and this program reads \
             forms up to {}",
            FORMS.reads
        )),
        Err(error) => Some(error.to_string()),
    }
}

fn check_content(
    content: &ContentStore,
    referenced: &BTreeMap<ContentHash, (u64, String)>,
    checked: &mut Checked,
) -> Result<(), CheckError> {
    for (hash, (bytes, by)) in referenced {
        checked.contents += 1;
        checked.bytes += bytes;
        match content.verify(*hash, *bytes) {
            Ok(Found::Whole) => {}
            Ok(Found::Nothing) => checked
                .wrong
                .push(format!("{by}: its content {hash} is missing")),
            Ok(Found::Damaged) => checked
                .wrong
                .push(format!("{by}: its content {hash} is damaged")),
            Err(error) => {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                let cause = cause.unwrap_or_else(|| error.to_string());
                let wrong = format!("{by}: its content {hash} can't be read: {cause}");
                checked.wrong.push(wrong);
            }
        }
    }
    for first in 0..=u8::MAX {
        if let Some(folder) = content.sweep_folder(first)? {
            let unreferenced = folder.unreferenced();
            checked.unreferenced += unreferenced
                .filter(|hash| !referenced.contains_key(hash))
                .count();
        }
        if let Some(objects) = content.objects() {
            let there = objects.list(first)?;
            checked.unreferenced += there
                .iter()
                .filter(|(hash, _)| !referenced.contains_key(hash))
                .count();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_makes_no_store() {
        let folder = tempfile::tempdir().unwrap();
        let failed = check(folder.path()).unwrap_err();
        assert!(matches!(failed, CheckError::Open(_)), "{failed}");
        assert!(!folder.path().join("groupware.sqlite").exists());
        assert!(!folder.path().join("content").exists());
    }
}
