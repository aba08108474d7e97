//! Several processes over one folder: locks on what each works on.
//!
//! Each resource that only one process may work on, or that must not be removed, is a byte of one
//! file, which is locked. The system holds the locks: they end with their process in any case, and
//! a paused process keeps them. No clock is needed, and nothing has to be cleaned up.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::stat::futimens;
use nix::sys::time::TimeSpec;

/// Bytes below this one stand for the folders of content, by the first byte of their hashes; those
/// above it for uploads.
pub(crate) const UPLOADS: u64 = 1 << 16;

/// The file whose bytes are locked.
#[derive(Debug)]
pub(crate) struct ProcessLocks {
    pub(crate) path: PathBuf,
}

/// A byte that is locked until this is dropped.
#[derive(Debug)]
pub(crate) struct Locked(#[expect(dead_code, reason = "held, not used")] File);

/// A time by the clock of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(i64, i64);

impl ProcessLocks {
    pub(crate) fn open(path: PathBuf) -> io::Result<Self> {
        let among = Self { path };
        among.file()?;
        Ok(among)
    }

    fn file(&self) -> io::Result<File> {
        let mut options = File::options();
        let options = options.create(true).truncate(false).read(true).write(true);
        options.mode(0o600).open(&self.path)
    }

    pub(crate) fn lock(&self, at: u64, kind: libc::c_int) -> io::Result<Option<Locked>> {
        let file = self.file()?;
        match fcntl(&file, FcntlArg::F_OFD_SETLK(&byte(at, kind))) {
            Ok(_) => Ok(Some(Locked(file))),
            Err(Errno::EAGAIN | Errno::EACCES) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if another process has locked a byte.
    pub(crate) fn is_locked(&self, at: u64) -> io::Result<bool> {
        let mut found = byte(at, libc::F_WRLCK);
        fcntl(&self.file()?, FcntlArg::F_OFD_GETLK(&mut found))?;
        Ok(i32::from(found.l_type) != libc::F_UNLCK)
    }

    /// Prevents the removal of content whose hash begins with this byte. Waits for a removal in progress.
    pub(crate) fn pin(&self, first: u8) -> io::Result<Locked> {
        let file = self.file()?;
        let lock = byte(first.into(), libc::F_RDLCK);
        loop {
            match fcntl(&file, FcntlArg::F_OFD_SETLKW(&lock)) {
                Ok(_) => return Ok(Locked(file)),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns true if a process prevents the removal of that content.
    pub(crate) fn is_pinned(&self, first: u8) -> io::Result<bool> {
        self.is_locked(first.into())
    }

    /// Takes the lock for removals; `None` while a process prevents them.
    pub(crate) fn remove(&self, first: u8) -> io::Result<Option<Locked>> {
        self.lock(first.into(), libc::F_WRLCK)
    }

    /// Returns the current time.
    pub(crate) fn moment(&self) -> io::Result<Moment> {
        let file = self.file()?;
        touch(&file)?;
        changed(&file.metadata()?)
    }
}

fn byte(at: u64, kind: libc::c_int) -> libc::flock {
    let short = |number: libc::c_int| i16::try_from(number).unwrap_or_default();
    libc::flock {
        l_type: short(kind),
        l_whence: short(libc::SEEK_SET),
        l_start: i64::try_from(at).unwrap_or(i64::MAX - 1),
        l_len: 1,
        l_pid: 0,
    }
}

/// Updates a file's times to mark it as used: a sweep notices the change.
pub(crate) fn touch(file: &File) -> io::Result<()> {
    Ok(futimens(file, &TimeSpec::UTIME_NOW, &TimeSpec::UTIME_NOW)?)
}

fn changed(of: &fs::Metadata) -> io::Result<Moment> {
    Ok(Moment(of.ctime(), of.ctime_nsec()))
}

/// Returns the time of a file's last change, touch, or link.
pub(crate) fn last_change(path: &Path) -> io::Result<Moment> {
    changed(&fs::metadata(path)?)
}
