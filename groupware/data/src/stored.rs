//! Opens what a server keeps: records by their engine, attachments in a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_objects::Shelf;
use groupware_postgres::PostgresOptions;
use groupware_service::Folders;
use groupware_store::{
    CHANGES_FOLDER, FolderLock, Forms, Store, StoreOptions, claim_forms, is_half_transferred,
};

use crate::error::DataError;
use crate::folder_id;
use crate::objects::{self, ObjectPlace};
use crate::place::Data;

/// Sessions that read, besides one for each thread that serves connections: long reads have threads of their
/// own.
const MORE_READERS: usize = 8;
/// Most of them: a database's server has a hundred for everybody, unless it is told otherwise.
const MOST_READERS: usize = 64;

/// Memory for records of calendars that are in use: those of some thousand users.
const CALENDAR_BYTES: usize = 96 << 20;

/// The forms of records that this program reads, and those that it writes. What the version before can't read gets the
/// next number; it is read first, and written one release later, so that each version may be beside the one before it.
///
/// 1 is what there was before anybody said. Since 2, events and lines of their lists are short, the names of notices say
/// when they came, calendars hold what was brought as it came, and content may be in an object store.
pub(crate) const FORMS: Forms = Forms {
    reads: 2,
    writes: 2,
};

/// What is opened, and how.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// Where the records are, and what is beside them.
    pub data: &'a Data,
    /// Where attachments are, if not in the folder.
    pub objects: Option<&'a ObjectPlace>,
    /// Whether the folder is this server's alone, and others over the same database have theirs.
    pub is_own: bool,
    /// Whether a folder has a log of changes.
    pub keeps_changes: bool,
    /// A commit that takes so long is told in the log.
    pub slow_commit: Duration,
    /// Threads that serve connections, each of which reads.
    pub threads: usize,
}

/// The records, the attachments, and what keeps others out of the folder where the store doesn't.
#[derive(Debug)]
pub struct Stored {
    /// The records.
    pub store: Store,
    /// The attachments.
    pub content: ContentStore,
    /// Where finished content is put, if not in the folder.
    pub objects: Option<Arc<Shelf>>,
    /// Keeps others out.
    pub folder: Option<FolderLock>,
    /// The folder among those of other servers, where each has its own.
    pub folders: Option<Folders>,
}

/// Where a data folder has its log of changes.
pub fn changes(folder: &Path) -> PathBuf {
    folder.join(CHANGES_FOLDER)
}

/// Opens it for a server.
///
/// # Errors
/// See [`DataError`].
pub fn open(opening: &Opening<'_>) -> Result<Stored, DataError> {
    let data = opening.data;
    let mut options = StoreOptions::default().slow_commit(opening.slow_commit);
    if let Data::Folder(folder) = data {
        options = options.remember(groupware_service::calendar::PREFIX, CALENDAR_BYTES);
        if opening.keeps_changes {
            options = options.changes(changes(folder));
        }
    }
    let mut stored = open_data((data, opening.is_own), options, opening.threads)?;
    if stored.store.read(is_half_transferred)? {
        return Err(DataError::HalfCopied(data.to_string()));
    }
    claim_forms(&stored.store, FORMS)?;
    let (store, place) = (&stored.store, opening.objects);
    (stored.content, stored.objects) = objects::attach(store, stored.content, place)?;
    Ok(stored)
}

/// The same, whether it is a copy that isn't finished or not.
fn open_data(
    (data, is_own): (&Data, bool),
    options: StoreOptions,
    threads: usize,
) -> Result<Stored, DataError> {
    Ok(match data {
        // The store's lock on the folder is for both.
        Data::Folder(folder) => {
            let is_sparing = options.changes.is_some();
            Stored {
                store: Store::open_sqlite(folder, options)?,
                content: match is_sparing {
                    true => ContentStore::open_sparing(folder)?,
                    false => ContentStore::open(folder)?,
                },
                objects: None,
                folder: None,
                folders: None,
            }
        }
        Data::Memory => Stored {
            store: Store::memory(options)?,
            content: ContentStore::scratch()?,
            objects: None,
            folder: None,
            folders: None,
        },
        Data::Postgres { database, folder } => {
            refuse_records(folder)?;
            let lock = match is_own {
                true => FolderLock::take(folder)?,
                false => FolderLock::share(folder)?,
            };
            let readers = (threads + MORE_READERS).min(MOST_READERS);
            let how = PostgresOptions::default().readers(readers).shared();
            let how = how.forms(FORMS);
            let store = groupware_postgres::open(database, &options, &how)?;
            let (content, folders) = open_folder(&store, folder, is_own)?;
            Stored {
                store,
                content,
                objects: None,
                folder: Some(lock),
                folders,
            }
        }
    })
}

/// The folder beside records in a database: this server's own, or that of all.
fn open_folder(
    store: &Store,
    folder: &Path,
    is_own: bool,
) -> Result<(ContentStore, Option<Folders>), DataError> {
    if !is_own {
        folder_id::check(store, folder)?;
        return Ok((ContentStore::open_shared(folder)?, None));
    }
    let content = ContentStore::open(folder)?;
    let name = folder_id::own(store, (folder, content.has_any()?))?;
    Ok((content, Some(Folders::new(store.clone(), &name))))
}

/// Records that lie in a folder are not to be forgotten there: what a server shows would be without them.
fn refuse_records(folder: &Path) -> Result<(), DataError> {
    match folder.join(groupware_store::FILE_NAME).exists() {
        true => Err(DataError::TwoStores(folder.to_owned())),
        false => Ok(()),
    }
}
