//! Opens a server's data: records by their engine, attachments in a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use groupware_content::ContentStore;
use groupware_objects::ObjectStorage;
use groupware_postgres::PostgresOptions;
use groupware_store::{
    CHANGES_FOLDER, FolderLock, Forms, Store, StoreOptions, claim_forms, is_half_transferred,
};

use crate::error::DataError;
use crate::folder_id;
use crate::objects::{self, ObjectPlace};
use crate::place::Data;

/// The number of reading sessions in addition to one for each thread that serves connections: long reads have their own
/// threads.
const MORE_READERS: usize = 8;
/// The maximum number of reading sessions: a database server allows a hundred in total by default.
const MOST_READERS: usize = 64;

/// The cache size for records of calendars in bytes: enough for those of some thousand users.
const CALENDAR_BYTES: usize = 96 << 20;

/// The forms of records that this program reads and writes. A change that the previous version can't read gets the next
/// number. It is read first, and written one release later, so that each version can run beside the one before it.
///
/// 1 is the form before forms were recorded. Since 2, events and lines of their lists are short, the names of iTIP
/// messages contain their time of receipt, calendars store imported objects unchanged, and content may be in an object
/// store. Since 3, unfinished uploads may list segments in an object store: a version that reads 2 would drop the list.
pub(crate) const FORMS: Forms = Forms {
    reads: 3,
    writes: 2,
};
/// The forms if uploads have segments.
const WITH_SEGMENTS: Forms = Forms { writes: 3, ..FORMS };

/// The data to open, and how.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// The place of the records and of the data beside them.
    pub data: &'a Data,
    /// The object store of the attachments, if not in the folder.
    pub objects: Option<&'a ObjectPlace>,
    /// True if a folder keeps a change log.
    pub keeps_changes: bool,
    /// The duration from which a slow commit is logged.
    pub slow_commit: Duration,
    /// The number of threads that serve connections, each of which reads.
    pub threads: usize,
}

/// The opened records and attachments, and a lock on the folder if the store has none.
#[derive(Debug)]
pub struct Stored {
    /// The records.
    pub store: Store,
    /// The attachments.
    pub content: ContentStore,
    /// The store of finished content, if not in the folder.
    pub objects: Option<Arc<ObjectStorage>>,
    /// The lock on the folder.
    pub folder: Option<FolderLock>,
}

impl Opening<'_> {
    fn is_one_of_several(&self) -> bool {
        matches!(self.data, Data::Postgres { .. })
    }

    /// Returns true if unfinished uploads are in an object store as segments.
    fn has_segments(&self) -> bool {
        self.is_one_of_several() && self.objects.is_some()
    }

    fn forms(&self) -> Forms {
        match self.has_segments() {
            true => WITH_SEGMENTS,
            false => FORMS,
        }
    }
}

/// Returns the folder of the change log in a data folder.
pub fn changes(folder: &Path) -> PathBuf {
    folder.join(CHANGES_FOLDER)
}

/// Opens the data for a server.
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
    let mut stored = open_data(opening, options)?;
    if stored.store.read(is_half_transferred)? {
        return Err(DataError::HalfCopied(data.to_string()));
    }
    claim_forms(&stored.store, opening.forms())?;
    let (store, content, place) = (&stored.store, stored.content, opening.objects);
    (stored.content, stored.objects) = objects::attach(store, content, place)?;
    if let Some(shelf) = stored.objects.as_ref().filter(|_| opening.has_segments()) {
        stored.content = stored.content.with_segments(Arc::clone(shelf) as _);
    }
    Ok(stored)
}

/// Opens the data, even if it is an unfinished copy.
fn open_data(opening: &Opening<'_>, options: StoreOptions) -> Result<Stored, DataError> {
    Ok(match opening.data {
        // The store's lock on the folder covers both.
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
            }
        }
        Data::Memory => Stored {
            store: Store::memory(options)?,
            content: ContentStore::scratch()?,
            objects: None,
            folder: None,
        },
        Data::Postgres { database, folder } => {
            refuse_records(folder)?;
            let lock = FolderLock::share(folder)?;
            let readers = (opening.threads + MORE_READERS).min(MOST_READERS);
            let how = PostgresOptions::default().readers(readers).shared();
            let how = how.forms(opening.forms());
            let store = groupware_postgres::open(database, &options, &how)?;
            let content = open_folder(&store, folder, opening.objects.is_some())?;
            Stored {
                store,
                content,
                objects: None,
                folder: Some(lock),
            }
        }
    })
}

/// Opens the folder beside records in a database: the shared one, or any if shared content is in an object store.
fn open_folder(store: &Store, folder: &Path, has_objects: bool) -> Result<ContentStore, DataError> {
    if !has_objects {
        objects::refuse_to_forget(store)?;
        folder_id::check(store, folder)?;
        return Ok(ContentStore::open_shared(folder)?);
    }
    let content = ContentStore::open_shared(folder)?;
    folder_id::check_any(store, (folder, content.has_any()?))?;
    Ok(content)
}

/// Rejects a folder with records: a server over the database would ignore them.
fn refuse_records(folder: &Path) -> Result<(), DataError> {
    match folder.join(groupware_store::FILE_NAME).exists() {
        true => Err(DataError::TwoStores(folder.to_owned())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use groupware_objects::{Address, Credentials};
    use groupware_postgres::Database;
    use groupware_store::written_forms;

    use super::*;

    /// A version that would drop the segments of an upload is rejected, both beside and after these servers.
    #[test]
    fn only_servers_that_list_segments_write_their_form() {
        let postgres = Data::Postgres {
            database: Database::parse("postgres://plimsoll@127.0.0.1/plimsoll").unwrap(),
            folder: PathBuf::from("data"),
        };
        let place = ObjectPlace {
            address: Address::parse("s3://attachments/site?region=eu-west-3").unwrap(),
            credentials: Credentials::new("key", "secret", None),
        };
        let opening = |data, objects| Opening {
            data,
            objects,
            keeps_changes: false,
            slow_commit: Duration::from_secs(1),
            threads: 1,
        };
        let before = Forms {
            reads: 2,
            writes: 2,
        };
        for (data, objects, is_open_to_it) in [
            (&postgres, Some(&place), false),
            (&postgres, None, true),
            (&Data::Memory, Some(&place), true),
        ] {
            let store = Store::memory(StoreOptions::default()).unwrap();
            let forms = opening(data, objects).forms();
            claim_forms(&store, forms).unwrap();
            assert_eq!(store.read(written_forms).unwrap(), forms.writes);
            assert_eq!(claim_forms(&store, before).is_ok(), is_open_to_it);
        }
    }
}
