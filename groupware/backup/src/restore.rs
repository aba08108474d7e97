//! Restores a backup to a new data folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use groupware_content::{ContentError, ContentHash, ContentStore, Spared};
use groupware_store::{CHANGES_FOLDER, ReplayError, Replayed, replay};

use crate::BackupError;
use crate::files::{
    backups, bring_up_to_date, copy_content, copy_records, make_folder, note_restored,
    remove_folder, rename, sync_folder, visit_content,
};
use crate::manifest::Manifest;

/// The result of a restore.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The backup.
    pub manifest: Manifest,
    /// The number of contents copied.
    pub contents: u64,
    /// The size of this content in bytes.
    pub content_bytes: u64,
}

/// The changes, kept by a data folder, that a restore applies after its backup.
#[derive(Debug, Clone, Copy)]
pub struct Forward<'a> {
    /// The data folder, or what is left of it: the folders `changes`, `content`, and `spared`.
    pub data: &'a Path,
    /// The moment to restore, in microseconds since 1970.
    pub until_us: i64,
}

/// Makes a data folder from a backup, all of it checked by hashes. The folder must be missing or empty. It gets its
/// name once it is complete: an interrupted restore leaves `{to}.partial`, which the next one removes. Its records are
/// marked as restored, for the server that starts on them ([`groupware_mail::restored`]).
///
/// # Errors
/// See [`BackupError`]; then there is no data folder of this name.
pub fn restore(folder: &Path, manifest: &Manifest, to: &Path) -> Result<Restored, BackupError> {
    let partial = begin(to)?;
    copy(folder, manifest, &partial)?;
    finish(folder, manifest, (&partial, to), &[])
}

/// Like [`restore`], brought forward to a later moment, from the newest backup that existed at that moment. `told`
/// receives the number of bytes of changes that were read.
///
/// # Errors
/// See [`BackupError`]; then there is no data folder of this name.
pub fn restore_at(
    folder: &Path,
    backups: &[Manifest],
    to: &Path,
    forward: Forward<'_>,
    told: &mut dyn FnMut(u64),
) -> Result<(Restored, Replayed), BackupError> {
    let Forward { data, until_us } = forward;
    let changes = data.join(CHANGES_FOLDER);
    for manifest in backups.iter().rev() {
        let partial = begin(to)?;
        copy(folder, manifest, &partial)?;
        match replay(&partial, &changes, until_us, told) {
            // This backup was begun before that moment, and its records were copied after it.
            Err(ReplayError::Later) => {}
            Err(error) => {
                remove_folder(&partial)?;
                return Err(error.into());
            }
            Ok(replayed) => {
                let kept = [
                    ContentAt::Content(ContentStore::open(data)?),
                    ContentAt::Spared(Spared::of(data)),
                ];
                let restored = finish(folder, manifest, (&partial, to), &kept)?;
                return Ok((restored, replayed));
            }
        }
        remove_folder(&partial)?;
    }
    Err(BackupError::NoBackup(folder.to_path_buf()))
}

/// Creates a folder with a temporary name to restore into.
fn begin(to: &Path) -> Result<PathBuf, BackupError> {
    let is_empty = match fs::read_dir(to) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
        Err(error) => return Err(BackupError::io(to)(error)),
    };
    if !is_empty {
        return Err(BackupError::NotEmpty(to.to_path_buf()));
    }
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    remove_folder(&partial)?;
    make_folder(&partial)?;
    Ok(partial)
}

/// Copies the records of a backup.
fn copy(folder: &Path, manifest: &Manifest, partial: &Path) -> Result<(), BackupError> {
    let of = backups(folder).join(&manifest.name);
    if copy_records(&of, partial)? != manifest.records {
        remove_folder(partial)?;
        return Err(BackupError::Records(of.join(groupware_store::FILE_NAME)));
    }
    Ok(())
}

/// Copies the content that the records refer to, from the backups or any other place that has it, and renames the
/// folder to its final name.
fn finish(
    folder: &Path,
    manifest: &Manifest,
    (partial, to): (&Path, &Path),
    elsewhere: &[ContentAt],
) -> Result<Restored, BackupError> {
    bring_up_to_date(partial)?;
    let (kept, content) = (ContentStore::open(folder)?, ContentStore::open(partial)?);
    let referenced = visit_content(partial, true, &mut |hash, bytes| {
        if content.has(hash, bytes) {
            return Ok(());
        }
        let file = open_content(&kept, elsewhere, hash)?;
        copy_content((file, folder), &content, (hash, bytes))
    })?;
    // After the changes are applied: they may have removed an earlier mark.
    note_restored(partial)?;
    sync_folder(partial)?;
    // The name is free, or that of an empty folder.
    rename(partial, to)?;
    Ok(Restored {
        manifest: manifest.clone(),
        contents: referenced.contents,
        content_bytes: referenced.content_bytes,
    })
}

/// A place other than the backups that may have content.
enum ContentAt {
    Content(ContentStore),
    Spared(Spared),
}

/// Opens content in the first place that has it; `None` if no place has it.
fn open_content(
    kept: &ContentStore,
    elsewhere: &[ContentAt],
    hash: ContentHash,
) -> Result<Option<File>, BackupError> {
    let mut found = kept.read(hash);
    for place in elsewhere {
        if !matches!(found, Err(ContentError::Missing { .. })) {
            break;
        }
        found = match place {
            ContentAt::Content(content) => content.read(hash),
            ContentAt::Spared(spared) => spared.read(hash),
        };
    }
    match found {
        Err(ContentError::Missing { .. }) => Ok(None),
        found => Ok(Some(found?)),
    }
}
