//! Rebuilds a store's file without the free space that deletions have left in it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use super::connect::open_helper;
use super::open::{FILE_NAME, Found, identify, known_version};
use super::vacuum::for_copies;
use crate::lock::FolderLock;
use crate::{OpenError, StoreError, place};

/// The name of the new file until it replaces the old one.
const NEW_NAME: &str = "groupware.sqlite.compact";
/// The space that must stay free on the disk.
const SPARE_BYTES: u64 = 16 << 20;

/// The result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compacted {
    /// The length before, in bytes.
    pub before_bytes: u64,
    /// The length now, in bytes.
    pub after_bytes: u64,
}

/// Rebuilds the file of the store in a folder, which must not be in use. The new file is as long as its records, and a
/// server later returns deleted space to the disk. The old file is the store until the new one is durable and has its
/// name: an interruption changes nothing.
///
/// `told` receives the bytes written and the total, from a thread of its own.
///
/// # Errors
/// When the folder is in use, the disk has no room for a second file, or a disk operation fails.
pub fn compact(folder: &Path, told: impl Fn(u64, u64) + Sync) -> Result<Compacted, OpenError> {
    let (file, new) = (folder.join(FILE_NAME), folder.join(NEW_NAME));
    let io = |path: &Path| {
        let path = path.to_path_buf();
        move |source| OpenError::Io { path, source }
    };
    if !file.is_file() {
        let source = io::ErrorKind::NotFound.into();
        return Err(io(&file)(source));
    }
    let _lock = FolderLock::take(folder)?;
    // The file of an interrupted compaction.
    remove(&new).map_err(io(&new))?;
    let (before_bytes, needed_bytes) = settle(&file)?;
    let free_bytes = place::free(folder).map_err(io(folder))?.bytes;
    if free_bytes < needed_bytes + SPARE_BYTES {
        return Err(OpenError::NoRoom {
            folder: folder.to_path_buf(),
            needed_bytes: needed_bytes + SPARE_BYTES,
            free_bytes,
        });
    }
    // Created beforehand, because SQLite would create it with the rights of the umask.
    drop(place::open_file(&new).map_err(io(&new))?);
    if let Err(error) = copy(&file, &new, &|written| told(written, needed_bytes)) {
        let _ = remove(&new);
        return Err(error);
    }
    // SQLite does not sync a file that it creates this way.
    let synced = File::open(&new).and_then(|copy| copy.sync_all());
    synced.map_err(io(&new))?;
    let after_bytes = fs::metadata(&new).map_err(io(&new))?.len();
    // The log beside the old file is empty, and belongs to no other file.
    for suffix in ["-wal", "-shm"] {
        let mut beside = file.as_os_str().to_owned();
        beside.push(suffix);
        let beside = PathBuf::from(beside);
        remove(&beside).map_err(io(&beside))?;
    }
    place::sync_folder(folder).map_err(io(folder))?;
    fs::rename(&new, &file).map_err(io(&file))?;
    place::sync_folder(folder).map_err(io(folder))?;
    Ok(Compacted {
        before_bytes,
        after_bytes,
    })
}

/// Checkpoints the log into the file; returns the file's length then, and the length that is in use.
fn settle(file: &Path) -> Result<(u64, u64), OpenError> {
    let failed = |source| OpenError::Database {
        file: file.to_path_buf(),
        source,
    };
    let broken = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::Foreign {
            file: file.to_path_buf(),
        },
        _ => failed(StoreError::from(error)),
    };
    let connection = open_helper(file).map_err(failed)?;
    match identify(&connection).map_err(broken)? {
        Found::Ours(version) => known_version(file, version)?,
        Found::Empty | Found::Foreign => {
            return Err(OpenError::Foreign {
                file: file.to_path_buf(),
            });
        }
    }
    let busy: i64 = connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))
        .map_err(broken)?;
    if busy != 0 {
        // A backup is reading it.
        let folder = file.parent().unwrap_or(file).to_path_buf();
        return Err(OpenError::InUse { folder });
    }
    let number = |pragma| {
        let number = connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
        number.map(i64::unsigned_abs).map_err(broken)
    };
    let page_bytes = number("page_size")?;
    let (pages, free) = (number("page_count")?, number("freelist_count")?);
    Ok((pages * page_bytes, (pages - free) * page_bytes))
}

/// Writes all records to a new file, and reports its length meanwhile.
fn copy(file: &Path, new: &Path, told: &(impl Fn(u64) + Sync)) -> Result<(), OpenError> {
    let failed = |source| OpenError::Database {
        file: file.to_path_buf(),
        source,
    };
    let connection = open_helper(file).map_err(failed)?;
    let written = || fs::metadata(new).map_or(0, |about| about.len());
    let done = std::sync::Mutex::new(false);
    let ended = std::sync::Condvar::new();
    let copied = std::thread::scope(|scope| {
        let watching = std::thread::Builder::new().spawn_scoped(scope, || {
            let mut is_done = lock(&done);
            while !*is_done {
                told(written());
                let woken = ended.wait_timeout(is_done, PAUSE);
                is_done = woken.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            }
        });
        let copied = vacuum_into(&connection, new);
        *lock(&done) = true;
        ended.notify_all();
        // Without the thread, there is no progress report.
        drop(watching);
        copied
    });
    copied.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => OpenError::Io {
            path: new.to_path_buf(),
            source: io::ErrorKind::StorageFull.into(),
        },
        _ => failed(StoreError::from(error)),
    })
}

const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

fn lock(done: &std::sync::Mutex<bool>) -> std::sync::MutexGuard<'_, bool> {
    done.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn vacuum_into(connection: &Connection, new: &Path) -> rusqlite::Result<()> {
    let name = new
        .to_str()
        .ok_or(rusqlite::Error::InvalidPath(new.to_path_buf()))?;
    for_copies(connection)?;
    connection.execute("VACUUM INTO ?1", [name])?;
    Ok(())
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
