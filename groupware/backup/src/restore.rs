//! Putting a backup back: a new data folder from it.

use std::fs;
use std::path::{Path, PathBuf};

use groupware_content::ContentStore;

use crate::BackupError;
use crate::files::{
    backups, copy_content, copy_records, make_folder, remove_folder, rename, sync_folder,
    visit_content,
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

/// Makes a data folder from a backup, all of it checked by hashes on the way. The folder must not be
/// there, or be empty, and has its name when it is whole: a restore that was cut off leaves
/// `{to}.partial`, which the next one removes.
///
/// # Errors
/// See [`BackupError`]; then there is no data folder of this name.
pub fn restore(folder: &Path, manifest: &Manifest, to: &Path) -> Result<Restored, BackupError> {
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
    let of = backups(folder).join(&manifest.name);
    if copy_records(&of, &partial)? != manifest.records {
        remove_folder(&partial)?;
        return Err(BackupError::Records(of.join(groupware_store::FILE_NAME)));
    }
    let (kept, content) = (ContentStore::open(folder)?, ContentStore::open(&partial)?);
    let referenced = visit_content(
        &partial,
        true,
        &mut |hash, bytes| match content.has(hash, bytes) {
            true => Ok(()),
            false => copy_content((&kept, folder), &content, (hash, bytes)),
        },
    )?;
    sync_folder(&partial)?;
    // A name that is free, or an empty folder's.
    rename(&partial, to)?;
    Ok(Restored {
        manifest: manifest.clone(),
        contents: referenced.contents,
        content_bytes: referenced.content_bytes,
    })
}
