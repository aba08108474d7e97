//! Makes backups, and removes old ones.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use groupware_content::{ContentError, ContentHash, ContentStore};
use groupware_objects::{Address, Credentials, ObjectStorage};
use groupware_store::Store;

use crate::BackupError;
use crate::check::names;
use crate::files::{
    PARTIAL, backups, copy_content, forget_objects, hash_records, make_folder, place_of_content,
    remove_folder, rename, visit_content, visit_with_records, write_manifest,
};
use crate::manifest::{Manifest, SCHEMA};

/// The result of a backup.
#[derive(Debug, Clone)]
pub struct Taken {
    /// The backup's manifest.
    pub manifest: Manifest,
    /// The number of contents that no earlier backup had.
    pub new_contents: u64,
    /// The size of this content in bytes.
    pub new_bytes: u64,
}

/// A lock against other processes that write into the same folder of backups.
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not used")] File);

impl Lock {
    pub(crate) fn take(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join("lock");
        let mut options = File::options();
        let options = options.create(true).truncate(false).write(true);
        let file = options.mode(0o600).open(&path);
        let file = file.map_err(BackupError::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(BackupError::Busy(folder.to_path_buf())),
            Err(TryLockError::Error(error)) => Err(BackupError::io(&path)(error)),
        }
    }
}

/// An object store, and the credentials for it.
pub type ObjectPlace<'a> = (&'a Address, &'a Credentials);

/// Backs up the data in a folder, which a server may be using, under a name with the moment `now_s`, in seconds since
/// 1970. `version` is the program's.
///
/// # Errors
/// See [`BackupError`]; then there is no backup of this name.
pub fn take(data: &Path, folder: &Path, as_of: (&str, i64, &str)) -> Result<Taken, BackupError> {
    take_from((data, None), folder, as_of)
}

/// Like [`take`], with attachments that may be in an object store. The backup and the restored data have them in files.
///
/// # Errors
/// As [`take`].
pub fn take_from(
    (data, place): (&Path, Option<ObjectPlace<'_>>),
    folder: &Path,
    (name, now_s, version): (&str, i64, &str),
) -> Result<Taken, BackupError> {
    if !data.join(groupware_store::FILE_NAME).is_file() {
        return Err(BackupError::NoData(data.to_path_buf()));
    }
    let all = prepare(folder)?;
    let _lock = Lock::take(folder)?;
    remove_partial(&all)?;
    let name = free_name(&all, name);
    let partial = all.join(format!("{name}{PARTIAL}"));
    make_folder(&partial)?;
    let mut live = Live {
        content: ContentStore::open(data)?,
        place,
        is_looked_up: false,
    };
    // Before the records are copied: the hold preserves all content that they refer to.
    let hold = live.content.hold()?;
    groupware_store::copy_records(data, &partial)?;
    let kept = ContentStore::open(folder)?;
    let (mut new_contents, mut new_bytes) = (0, 0);
    let referenced = visit_with_records(&partial, true, &mut |records, hash, bytes| {
        live.look_up(records)?;
        if kept.has(hash, bytes) {
            return Ok(());
        }
        new_contents += 1;
        new_bytes += bytes;
        let content = match live.content.content(hash, (0, bytes)) {
            Err(ContentError::Missing { .. }) => None,
            content => Some(content?.reader(bytes)),
        };
        copy_content((content, data), &kept, (hash, bytes))
    })?;
    drop((live, hold));
    forget_objects(&partial)?;
    let manifest = Manifest {
        schema: SCHEMA.to_owned(),
        name: name.clone(),
        taken_s: now_s,
        plimsoll: version.to_owned(),
        users: referenced.users,
        contents: referenced.contents,
        content_bytes: referenced.content_bytes,
        records: hash_records(&partial)?,
    };
    write_manifest(&partial, &manifest)?;
    rename(&partial, &all.join(&name))?;
    Ok(Taken {
        manifest,
        new_contents,
        new_bytes,
    })
}

/// The content of the data folder that a server uses.
struct Live<'a> {
    content: ContentStore,
    place: Option<ObjectPlace<'a>>,
    is_looked_up: bool,
}

impl Live<'_> {
    /// Reads from the records, once, whether content is in an object store.
    fn look_up(&mut self, records: &Store) -> Result<(), BackupError> {
        if self.is_looked_up {
            return Ok(());
        }
        self.is_looked_up = true;
        let Some(name) = place_of_content(records)? else {
            return Ok(());
        };
        let place = self.place.ok_or(BackupError::Elsewhere(name))?;
        // The backup puts no object, so it generates no identifiers.
        let shelf = ObjectStorage::open(records, place, || 0)?;
        self.content = self.content.clone().with_objects(shelf);
        Ok(())
    }
}

/// Prepares a folder for backups: one with backups, or a new or empty one.
fn prepare(folder: &Path) -> Result<PathBuf, BackupError> {
    let all = backups(folder);
    if !all.is_dir() {
        let is_empty = fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none());
        if !is_empty {
            return Err(BackupError::Foreign(folder.to_path_buf()));
        }
        make_folder(&all)?;
    }
    Ok(all)
}

fn remove_partial(all: &Path) -> Result<(), BackupError> {
    for name in names(all)?
        .into_iter()
        .filter(|name| name.ends_with(PARTIAL))
    {
        remove_folder(&all.join(name))?;
    }
    Ok(())
}

/// Returns a free name: two backups within one second have different names.
fn free_name(all: &Path, name: &str) -> String {
    let mut free = name.to_owned();
    let mut number = 2;
    while all.join(&free).exists() {
        free = format!("{name}-{number}");
        number += 1;
    }
    free
}

/// Removes all but the newest backups, then the content that none of them refers to. Returns the number of removed
/// backups.
///
/// # Errors
/// See [`BackupError`]. The backups that remain are complete.
pub fn prune(folder: &Path, keep: usize) -> Result<usize, BackupError> {
    let all = backups(folder);
    let _lock = Lock::take(folder)?;
    remove_partial(&all)?;
    let mut names = names(&all)?;
    let gone: Vec<String> = names.drain(..names.len().saturating_sub(keep)).collect();
    for name in &gone {
        // Renamed first: a partly removed folder is no backup.
        let partial = all.join(format!("{name}{PARTIAL}"));
        rename(&all.join(name), &partial)?;
        remove_folder(&partial)?;
    }
    if gone.is_empty() {
        return Ok(0);
    }
    let mut referenced: HashMap<ContentHash, u64> = HashMap::new();
    for name in &names {
        visit_content(&all.join(name), false, &mut |hash, bytes| {
            referenced.insert(hash, bytes);
            Ok(())
        })?;
    }
    let kept = ContentStore::open(folder)?;
    for first in 0..=u8::MAX {
        if let Some(mut sweep) = kept.sweep_folder(first)? {
            let found: Vec<ContentHash> = sweep.unreferenced().copied().collect();
            for hash in &found {
                if let Some(bytes) = referenced.get(hash) {
                    sweep.keep(hash, *bytes);
                }
            }
            sweep.finish()?;
        }
    }
    Ok(gone.len())
}
