//! Files and folders of backups: private, durable, hashed. This module doesn't know their contents.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use groupware_content::{ContentHash, ContentStore};
use groupware_documents::DocumentError;
use groupware_store::{FILE_NAME, OpenError, Store, StoreOptions};

use crate::BackupError;
use crate::manifest::{Manifest, Records, SCHEMA};

/// The size of a read in bytes.
const READ_BYTES: usize = 256 << 10;
/// The maximum size of a manifest in bytes.
const MANIFEST_BYTES: u64 = 1 << 20;
const MANIFEST: &str = "manifest.json";
/// The suffix of an unfinished backup, and of temporary folders.
pub(crate) const PARTIAL: &str = ".partial";

/// Returns the folder of the backups.
pub(crate) fn backups(folder: &Path) -> PathBuf {
    folder.join("backups")
}

/// Creates a folder that only its owner may access, and its missing parents, with durable names.
pub(crate) fn make_folder(folder: &Path) -> Result<(), BackupError> {
    let is_missing = |at: &&Path| !at.as_os_str().is_empty() && !at.exists();
    let missing = folder.ancestors().take_while(is_missing).count();
    let mut builder = DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(BackupError::io(folder))?;
    folder
        .ancestors()
        .skip(1)
        .take(missing)
        .try_for_each(sync_folder)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), BackupError> {
    let folder = match folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => folder,
    };
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(BackupError::io(folder))
}

/// Renames a folder durably.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), BackupError> {
    sync_folder(from)?;
    fs::rename(from, to).map_err(BackupError::io(to))?;
    sync_folder(to.parent().unwrap_or(Path::new("")))
}

/// Removes a folder with its contents, if it exists.
pub(crate) fn remove_folder(folder: &Path) -> Result<(), BackupError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(BackupError::io(folder)(error))
        }
        _ => Ok(()),
    }
}

fn create(file: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600).open(file)
}

/// Returns the length and hash of the records in a folder.
pub(crate) fn hash_records(folder: &Path) -> Result<Records, BackupError> {
    let file = folder.join(FILE_NAME);
    read_through(&file, |_| Ok(())).map_err(BackupError::io(&file))
}

/// Copies the records of one folder to another durably; returns the length and hash of the bytes read.
pub(crate) fn copy_records(from: &Path, to: &Path) -> Result<Records, BackupError> {
    let (from, to) = (from.join(FILE_NAME), to.join(FILE_NAME));
    let mut copy = create(&to).map_err(BackupError::io(&to))?;
    let records = read_through(&from, |bytes| copy.write_all(bytes));
    let records = records.map_err(BackupError::io(&from))?;
    copy.sync_all().map_err(BackupError::io(&to))?;
    Ok(records)
}

fn read_through(file: &Path, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<Records> {
    let mut file = File::open(file)?;
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; READ_BYTES]);
    let mut length = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => {
                hasher.update(&buffer[..read]);
                each(&buffer[..read])?;
                length += read as u64;
            }
        }
    }
    Ok(Records {
        bytes: length,
        blake3: hasher.finalize().to_hex().to_string(),
    })
}

pub(crate) fn write_manifest(folder: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    let file = folder.join(MANIFEST);
    let mut text = serde_json::to_vec_pretty(manifest).unwrap_or_default();
    text.push(b'\n');
    let written = create(&file).and_then(|mut file| {
        file.write_all(&text)?;
        file.sync_all()
    });
    written.map_err(BackupError::io(&file))
}

pub(crate) fn read_manifest(folder: &Path) -> Result<Manifest, BackupError> {
    let file = folder.join(MANIFEST);
    let mut text = Vec::new();
    let read = File::open(&file).and_then(|file| file.take(MANIFEST_BYTES).read_to_end(&mut text));
    read.map_err(BackupError::io(&file))?;
    let wrong = |why: String| BackupError::Manifest {
        file: file.clone(),
        why,
    };
    let manifest: Manifest =
        serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    match manifest.schema == SCHEMA {
        true => Ok(manifest),
        false => Err(wrong(format!(
            "its schema is {}, not {SCHEMA}",
            manifest.schema
        ))),
    }
}

/// The totals of what records refer to.
#[derive(Debug, Default)]
pub(crate) struct Referenced {
    pub(crate) users: u64,
    pub(crate) contents: u64,
    pub(crate) content_bytes: u64,
}

/// Opens the records of a folder, checks them if requested, and visits the content that they refer to, user by user,
/// with its length. The records file is not changed.
pub(crate) fn visit_content(
    folder: &Path,
    is_to_be_checked: bool,
    visit: &mut dyn FnMut(ContentHash, u64) -> Result<(), BackupError>,
) -> Result<Referenced, BackupError> {
    visit_with_records(folder, is_to_be_checked, &mut |_, hash, bytes| {
        visit(hash, bytes)
    })
}

/// A callback for content, by its hash and length, with the records that refer to it.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&Store, ContentHash, u64) -> Result<(), BackupError>;

/// Like [`visit_content`], with the records.
pub(crate) fn visit_with_records(
    folder: &Path,
    is_to_be_checked: bool,
    visit: Visit<'_>,
) -> Result<Referenced, BackupError> {
    let store = match Store::open_sqlite(folder, StoreOptions::default().as_it_is()) {
        Err(OpenError::Older { .. }) => return visit_older(folder, is_to_be_checked, visit),
        opened => opened?,
    };
    if is_to_be_checked && let Some(wrong) = store.integrity()?.into_iter().next() {
        return Err(BackupError::Damaged(wrong));
    }
    let users = store.read(|snapshot| {
        groupware_people::load(snapshot, groupware_people::Users::new("localhost"))
    });
    let users = users.map_err(|error| BackupError::Damaged(error.to_string()))?;
    let mut referenced = Referenced::default();
    for user in users.keys() {
        referenced.users += 1;
        let mut content = Vec::new();
        let mut keep = |hash: &ContentHash, bytes| content.push((*hash, bytes));
        let read: Result<(), DocumentError> =
            store.read(|snapshot| groupware_documents::all_content(snapshot, &user, &mut keep));
        read.map_err(|error| BackupError::Damaged(error.to_string()))?;
        content.dedup();
        for (hash, bytes) in content {
            referenced.contents += 1;
            referenced.content_bytes += bytes;
            visit(&store, hash, bytes)?;
        }
    }
    close(store, folder);
    Ok(referenced)
}

/// Like [`visit_with_records`] for records of an earlier version, which aren't changed either: a copy is upgraded.
fn visit_older(
    folder: &Path,
    is_to_be_checked: bool,
    visit: Visit<'_>,
) -> Result<Referenced, BackupError> {
    let mut copy = folder.as_os_str().to_owned();
    copy.push(format!(".{}{PARTIAL}", std::process::id()));
    let copy = PathBuf::from(copy);
    remove_folder(&copy)?;
    make_folder(&copy)?;
    let visited = copy_records(folder, &copy)
        .and_then(|_| bring_up_to_date(&copy))
        .and_then(|()| visit_with_records(&copy, is_to_be_checked, visit));
    remove_folder(&copy)?;
    visited
}

/// Upgrades records of an earlier version.
pub(crate) fn bring_up_to_date(folder: &Path) -> Result<(), BackupError> {
    close(Store::open_sqlite(folder, StoreOptions::default())?, folder);
    Ok(())
}

fn close(store: Store, folder: &Path) {
    store.close_blocking();
    drop(store);
    // A trace of opening the records.
    let _ = fs::remove_file(folder.join("lock"));
}

/// Removes the object store from records: the content is in files beside them.
pub(crate) fn forget_objects(folder: &Path) -> Result<(), BackupError> {
    let store = Store::open_sqlite(folder, StoreOptions::default().as_it_is())?;
    if place_of_content(&store)?.is_some() {
        let forgotten = store.commit_blocking(groupware_documents::forget_all_objects());
        forgotten.map_err(|error| BackupError::Damaged(error.to_string()))?;
    }
    close(store, folder);
    Ok(())
}

/// Marks the records as restored: otherwise numbers assigned after their moment would be assigned again.
pub(crate) fn note_restored(folder: &Path) -> Result<(), BackupError> {
    let store = Store::open_sqlite(folder, StoreOptions::default().as_it_is())?;
    store.commit_blocking(groupware_mail::restored::note())?;
    close(store, folder);
    Ok(())
}

/// Returns the name of the object store with the content of these records, if it is in one.
pub(crate) fn place_of_content(store: &Store) -> Result<Option<String>, BackupError> {
    let place = store.read(groupware_documents::content_place);
    let place = place.map_err(|error| BackupError::Damaged(error.to_string()))?;
    Ok(place
        .filter(|place| place.is_set_up)
        .map(|place| place.name))
}

/// Copies content, if it exists, to a store, and checks it by its hash.
pub(crate) fn copy_content(
    (content, from_folder): (Option<impl Read>, &Path),
    to: &ContentStore,
    (hash, bytes): (ContentHash, u64),
) -> Result<(), BackupError> {
    let missing = || BackupError::Content {
        hash,
        folder: from_folder.to_path_buf(),
    };
    let file = content.ok_or_else(missing)?;
    let (mut file, mut buffer) = (file.take(bytes), vec![0; READ_BYTES]);
    // No two copies run at once: the folder is locked.
    let name = &hash.to_string()[..];
    to.remove_upload(name)?;
    let mut copy = to.create_whole(name, Some(bytes))?;
    loop {
        match file
            .read(&mut buffer)
            .map_err(BackupError::io(from_folder))?
        {
            0 => break,
            read => copy.append(&buffer[..read])?,
        }
    }
    // Damaged content is stored under its own hash, which nothing refers to.
    let pin = copy.finish()?;
    match pin.hash() == hash {
        true => Ok(()),
        false => Err(missing()),
    }
}
