//! Lists backups, and checks them to the last byte.

use std::fs;
use std::path::Path;

use groupware_content::{ContentStore, Found};

use crate::BackupError;
use crate::files::{PARTIAL, backups, hash_records, read_manifest, visit_content};
use crate::manifest::Manifest;

/// The backups in a folder.
#[derive(Debug, Clone, Default)]
pub struct Backups {
    /// The complete backups, oldest first.
    pub whole: Vec<Manifest>,
    /// The names of backups that were not finished or are being made: not usable.
    pub incomplete: Vec<String>,
}

/// The result of a check of a backup.
#[derive(Debug, Clone)]
pub struct BackupCheck {
    /// The backup.
    pub manifest: Manifest,
    /// The problems found, a sentence each.
    pub wrong: Vec<String>,
}

/// Returns all names, in the order of time.
pub(crate) fn names(all: &Path) -> Result<Vec<String>, BackupError> {
    let io = BackupError::io(all);
    let entries = match fs::read_dir(all) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = all.parent().unwrap_or(all);
            return Err(BackupError::NoBackup(folder.to_path_buf()));
        }
        Err(error) => return Err(io(error)),
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    Ok(names)
}

/// Lists the backups in a folder.
///
/// # Errors
/// When the folder has none, or a manifest can't be read.
pub fn list(folder: &Path) -> Result<Backups, BackupError> {
    let all = backups(folder);
    let mut found = Backups::default();
    for name in names(&all)? {
        match name.ends_with(PARTIAL) {
            true => found.incomplete.push(name),
            false => found.whole.push(read_manifest(&all.join(name))?),
        }
    }
    found
        .whole
        .sort_by(|a, b| (a.taken_s, &a.name).cmp(&(b.taken_s, &b.name)));
    Ok(found)
}

/// Reads a backup to the last byte. Checks that the records are sound and those that the backup was made with, and that
/// all content is present and correct.
///
/// # Errors
/// If there is no such backup, or a file operation fails.
pub fn check(folder: &Path, manifest: &Manifest) -> Result<BackupCheck, BackupError> {
    let of = backups(folder).join(&manifest.name);
    let mut look = BackupCheck {
        manifest: manifest.clone(),
        wrong: Vec::new(),
    };
    if hash_records(&of)? != manifest.records {
        let file = of.join(groupware_store::FILE_NAME);
        look.wrong.push(BackupError::Records(file).to_string());
        return Ok(look);
    }
    let content = ContentStore::open(folder)?;
    let mut wrong = Vec::new();
    let visited = visit_content(&of, true, &mut |hash, bytes| {
        match content.verify(hash, bytes)? {
            Found::Whole => {}
            Found::Nothing => wrong.push(format!("content {hash} is missing")),
            Found::Damaged => wrong.push(format!("content {hash} is damaged")),
        }
        Ok(())
    });
    match visited {
        Ok(_) => {}
        Err(error @ BackupError::Damaged(_)) => look.wrong.push(error.to_string()),
        Err(error) => return Err(error),
    }
    look.wrong.append(&mut wrong);
    Ok(look)
}
