//! Making a backup, and removing old ones.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use groupware_content::{ContentError, ContentHash, ContentStore};

use crate::BackupError;
use crate::files::{
    backups, copy_content, hash_records, make_folder, remove_folder, rename, visit_content,
    write_manifest,
};
use crate::look::{PARTIAL, names};
use crate::manifest::{Manifest, SCHEMA};

/// What a backup came to.
#[derive(Debug, Clone)]
pub struct Taken {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Pieces of content that no backup before had.
    pub new_contents: u64,
    /// Bytes of these.
    pub new_bytes: u64,
}

/// Keeps a second process from writing into a folder of backups.
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

/// Backs up the data in a folder, which a server may be using, under a name that tells the moment
/// `now_s`, in seconds since 1970. `version` is the program's.
///
/// # Errors
/// See [`BackupError`]; then there is no backup of this name.
pub fn take(
    data: &Path,
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
    let live = ContentStore::open(data)?;
    // Before the records: all content that they refer to is there until this goes.
    let hold = live.hold()?;
    groupware_store::copy_records(data, &partial)?;
    let kept = ContentStore::open(folder)?;
    let (mut new_contents, mut new_bytes) = (0, 0);
    let referenced = visit_content(&partial, true, &mut |hash, bytes| {
        if kept.has(hash, bytes) {
            return Ok(());
        }
        new_contents += 1;
        new_bytes += bytes;
        let file = match live.read(hash) {
            Err(ContentError::Missing { .. }) => None,
            file => Some(file?),
        };
        copy_content((file, data), &kept, (hash, bytes))
    })?;
    drop(hold);
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

/// A folder for backups: one that has some, or a new or empty one.
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

/// Two backups of one second have two names.
fn free_name(all: &Path, name: &str) -> String {
    let mut free = name.to_owned();
    let mut number = 2;
    while all.join(&free).exists() {
        free = format!("{name}-{number}");
        number += 1;
    }
    free
}

/// Removes all but the newest backups, then the content that none of these refers to. How many
/// backups went.
///
/// # Errors
/// See [`BackupError`]. What was not removed is whole.
pub fn prune(folder: &Path, keep: usize) -> Result<usize, BackupError> {
    let all = backups(folder);
    let _lock = Lock::take(folder)?;
    remove_partial(&all)?;
    let mut names = names(&all)?;
    let gone: Vec<String> = names.drain(..names.len().saturating_sub(keep)).collect();
    for name in &gone {
        // Without its name first: half of it is no backup.
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
