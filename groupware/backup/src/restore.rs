//! Putting a backup back: a new data folder from it.

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

/// What was put back.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The backup.
    pub manifest: Manifest,
    /// Pieces of content that were copied.
    pub contents: u64,
    /// Bytes of these.
    pub content_bytes: u64,
}

/// Where a restore goes on behind its backup: by the changes that a data folder has kept.
#[derive(Debug, Clone, Copy)]
pub struct Forward<'a> {
    /// The data folder, or what is left of it: the folders `changes`, `content`, and `spared`.
    pub data: &'a Path,
    /// To which moment, in microseconds since 1970.
    pub until_us: i64,
}

/// Makes a data folder from a backup, all of it checked by hashes on the way. The folder must not be
/// there, or be empty, and has its name when it is whole: a restore that was cut off leaves
/// `{to}.partial`, which the next one removes. Its records say that they were put back, for the server that starts on
/// them ([`groupware_mail::restored`]).
///
/// # Errors
/// See [`BackupError`]; then there is no data folder of this name.
pub fn restore(folder: &Path, manifest: &Manifest, to: &Path) -> Result<Restored, BackupError> {
    let partial = begin(to)?;
    copy(folder, manifest, &partial)?;
    finish(folder, manifest, (&partial, to), &[])
}

/// The same, brought forward to a later moment. Of the backups, the newest that was there at that moment
/// is taken. `told` hears how many bytes of the changes were gone through.
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
            // Begun before that moment, and copied after it.
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

/// A folder to restore into, which has no name yet.
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

/// Copies the content that the records refer to, from the backups or wherever else it is, and gives the
/// folder its name.
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
    // Behind the changes that were gone through, among which an earlier note may have been taken away.
    note_restored(partial)?;
    sync_folder(partial)?;
    // A name that is free, or an empty folder's.
    rename(partial, to)?;
    Ok(Restored {
        manifest: manifest.clone(),
        contents: referenced.contents,
        content_bytes: referenced.content_bytes,
    })
}

/// Where content may be besides the backups.
enum ContentAt {
    Content(ContentStore),
    Spared(Spared),
}

/// Opens content where it is; `None` if it is nowhere.
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
