//! Finds and removes what is unreferenced: content, and files of abandoned uploads.
//!
//! Works on some folders at a time. Their files are listed, then the caller passes all references
//! as of a time after the listing, then the rest is removed, unless it was pinned since before the
//! listing. Content with a record committed after that time had a pin.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::hold::Hold;
use crate::pins::{SharedPins, lock};
use crate::process_locks::{Locked, Moment, last_change};
use crate::spared::spare;
use crate::tail::with_tail;
use crate::{ContentError, ContentHash, ContentStore};

/// A sweep of some of the 256 folders. Dropping it removes nothing.
#[derive(Debug)]
pub struct FolderSweep {
    store: ContentStore,
    pins: SharedPins,
    folders: RangeInclusive<u8>,
    /// The files, each with the length of the content if it is referenced.
    files: HashMap<ContentHash, Option<u64>>,
    /// The start of the sweep, and the folders with pins of other processes at that time, if there are other processes.
    others: Option<(Moment, Vec<u8>)>,
}

/// `None` if there are no other processes.
type Right = Option<Locked>;

/// The result of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Removed files.
    pub removed: u64,
    /// Files whose upload tail was cut off.
    pub trimmed: u64,
}

/// A file of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadFile {
    /// The upload's name.
    pub name: String,
    /// The time of its last write.
    pub modified: SystemTime,
}

impl ContentStore {
    /// Lists the content whose hash begins with this byte; `None` if another sweep is running. The
    /// list is in memory: a 256th of the store's names.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn sweep_folder(&self, first: u8) -> Result<Option<FolderSweep>, ContentError> {
        self.sweep_from(first, 0)
    }

    /// Lists the content whose hash begins with this byte, then further folders in order, until the
    /// list has this many names: the caller collects references for as many as fit into memory.
    /// `None` if another sweep is running.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn sweep_from(&self, first: u8, names: usize) -> Result<Option<FolderSweep>, ContentError> {
        if !lock(self.pins()).begin_sweep(first..=u8::MAX) {
            return Ok(None);
        }
        let mut sweep = FolderSweep {
            store: self.clone(),
            pins: self.pins().clone(),
            folders: first..=first,
            files: HashMap::new(),
            others: self.others_pin(first)?,
        };
        for folder in first..=u8::MAX {
            sweep.files.extend(self.names(folder)?);
            sweep.folders = first..=folder;
            if sweep.files.len() >= names {
                break;
            }
        }
        Ok(Some(sweep))
    }

    /// Returns the time, and the folders from this one on in which other processes have pins.
    fn others_pin(&self, first: u8) -> Result<Option<(Moment, Vec<u8>)>, ContentError> {
        let Some(among) = self.among() else {
            return Ok(None);
        };
        let pinned = || {
            let now = among.moment()?;
            let mut pinned = Vec::new();
            for folder in first..=u8::MAX {
                if among.is_pinned(folder)? {
                    pinned.push(folder);
                }
            }
            Ok((now, pinned))
        };
        let pinned = pinned().map_err(|error| ContentError::of(self.uploads(), error));
        pinned.map(Some)
    }

    /// Lists the content of a folder, without references.
    fn names(&self, first: u8) -> Result<Vec<(ContentHash, Option<u64>)>, ContentError> {
        let mut names = Vec::new();
        let folder = self.folder_of(first);
        let io = |error| ContentError::of(&folder, error);
        for entry in fs::read_dir(&folder).map_err(io)? {
            let name = entry.map_err(io)?.file_name();
            let hash = name.to_str().map(|rest| format!("{first:02x}{rest}"));
            let hash = hash.and_then(|text| ContentHash::parse(&text));
            names.extend(hash.map(|hash| (hash, None)));
        }
        Ok(names)
    }

    /// Lists the files of uploads, pending or abandoned.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn upload_files(&self) -> Result<Vec<UploadFile>, ContentError> {
        let io = |error| ContentError::of(self.uploads(), error);
        let mut files = Vec::new();
        for entry in fs::read_dir(self.uploads()).map_err(io)? {
            let entry = entry.map_err(io)?;
            // A file that was removed meanwhile needs no sweep.
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            if let (Ok(modified), Ok(name)) = (modified, entry.file_name().into_string()) {
                files.push(UploadFile { name, modified });
            }
        }
        Ok(files)
    }

    /// Returns the time of the last write of an upload's file; `None` if it is missing.
    pub fn upload_modified(&self, name: &str) -> Option<SystemTime> {
        let path: PathBuf = self.path_of_upload(name).ok()?;
        fs::metadata(path).ok()?.modified().ok()
    }
}

impl FolderSweep {
    /// Returns true if there is nothing to sweep.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Records a reference to this content, with its length.
    pub fn keep(&mut self, hash: &ContentHash, bytes: u64) {
        if let Some(kept) = self.files.get_mut(hash) {
            *kept = Some(bytes);
        }
    }

    /// The referenced content, with its length.
    pub fn referenced(&self) -> impl Iterator<Item = (ContentHash, u64)> {
        let files = self.files.iter();
        files.filter_map(|(hash, kept)| Some((*hash, (*kept)?)))
    }

    /// Removes the reference to content that is stored elsewhere, too.
    pub fn let_go(&mut self, hash: &ContentHash) {
        if let Some(kept) = self.files.get_mut(hash) {
            *kept = None;
        }
    }

    /// The unreferenced content.
    pub fn unreferenced(&self) -> impl Iterator<Item = &ContentHash> {
        let files = self.files.iter();
        files.filter_map(|(hash, kept)| kept.is_none().then_some(hash))
    }

    /// Removes unreferenced content, and cuts off tails that crashes have left. The tail stays
    /// while an upload has the same file: it is its proof.
    ///
    /// Removes nothing while there is a [`Hold`] on the store.
    ///
    /// # Errors
    /// Errors of the disk; the next sweep does the rest.
    pub fn finish(self) -> Result<Swept, ContentError> {
        let mut swept = Swept::default();
        let Some(_alone) = Hold::none_other(&self.store)? else {
            return Ok(swept);
        };
        for (hash, kept) in &self.files {
            // Pinning waits meanwhile, for the removal of one name.
            let pins = lock(&self.pins);
            if pins.was_pinned(hash) {
                continue;
            }
            let path = self.store.path_of(*hash);
            let io = |error| ContentError::of(&path, error);
            let Some(_right) = self.right(hash, &path).map_err(io)? else {
                continue;
            };
            match kept {
                None => {
                    match self.store.spared() {
                        Some(spared) => spare(&path, &spared.join(hash.to_string())),
                        None => fs::remove_file(&path),
                    }
                    .map_err(io)?;
                    swept.removed += 1;
                }
                Some(bytes) => {
                    let found = fs::metadata(&path).map_err(io)?;
                    if found.nlink() == 1 && found.len() == with_tail(*bytes) {
                        let file = File::options().write(true).open(&path).map_err(io)?;
                        file.set_len(*bytes).map_err(io)?;
                        swept.trimmed += 1;
                    }
                }
            }
        }
        Ok(swept)
    }

    /// Takes the lock for removing content, if no other process has pinned it at any time since the sweep
    /// began; none can until this is dropped. A process that finds existing content touches it.
    fn right(&self, hash: &ContentHash, path: &Path) -> io::Result<Option<Right>> {
        let (Some(among), Some((began, pinned))) = (self.store.among(), &self.others) else {
            return Ok(Some(None));
        };
        let first = hash.as_bytes()[0];
        if pinned.contains(&first) {
            return Ok(None);
        }
        let Some(locked) = among.remove(first)? else {
            return Ok(None);
        };
        let is_old = last_change(path)? < *began;
        Ok(is_old.then_some(Some(locked)))
    }

    /// The first bytes of the hashes in these folders.
    pub fn folders(&self) -> RangeInclusive<u8> {
        self.folders.clone()
    }
}

impl Drop for FolderSweep {
    fn drop(&mut self) {
        lock(&self.pins).end_sweep();
    }
}
