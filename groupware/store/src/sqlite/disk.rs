//! The room that the disk has for more records.
//!
//! On a full disk, nothing can be removed: a removal is logged like any change. The log can't be copied into a database
//! that can't grow, so no part of it becomes free. A small reserve is kept for that.
//!
//! A separate thread checks the disk, so that a hanging disk delays no caller. While there is no room, it repeatedly
//! starts copies of the log: only a complete copy makes the database file shorter, and readers and writers can prevent
//! one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::checkpoint::HelperWaker;
use crate::place::{Free, free};

/// The reserve: the log may grow to half of it before it is copied back, and the database then by as much.
const KEPT_BYTES: u64 = 128 << 20;
/// The reserve of a small disk, as a fraction of its size.
const KEPT_PART: u64 = 4;
/// A disk without room has room again once this fraction of the reserve is free besides, so that not every
/// change is logged.
const AGAIN_PART: u64 = 4;
/// The intervals of the checks. The longer one applies while there is more room than can be used up meanwhile.
const OFTEN: Duration = Duration::from_millis(250);
const SELDOM: Duration = Duration::from_secs(5);
const PLENTY_BYTES: u64 = 4 << 30;
/// If nothing has changed on a disk without room, the log is copied back only every this many checks: an incomplete
/// copy repeats its work each time.
const RING_LOOKS: u32 = 40;
/// The room of a disk that reports no size.
const UNKNOWN: u64 = u64::MAX;

/// The disk's room at the last check. Unknown for a disk that isn't watched.
#[derive(Debug)]
pub(super) struct DiskRoom {
    room: Arc<AtomicU64>,
    /// The thread ends with it. It isn't joined, because the disk may hang.
    _end: Option<SyncSender<()>>,
}

impl DiskRoom {
    pub(super) fn unwatched() -> Self {
        Self {
            room: Arc::new(AtomicU64::new(UNKNOWN)),
            _end: None,
        }
    }

    /// Watches the disk of a folder; `bell` wakes the checkpoint helper.
    pub(super) fn watch(folder: &Path, bell: Weak<HelperWaker>) -> Self {
        let mut watched = DiskWatcher {
            folder: folder.to_path_buf(),
            room: Arc::new(AtomicU64::new(UNKNOWN)),
            waker: bell,
            woken_at: UNKNOWN,
            looks: 0,
        };
        watched.look();
        let room = Arc::clone(&watched.room);
        let (end, ended) = sync_channel::<()>(0);
        let watch = move || {
            while ended.recv_timeout(watched.wait()) == Err(RecvTimeoutError::Timeout) {
                watched.look();
            }
        };
        let thread = std::thread::Builder::new().name("store-room".into());
        let end = thread.spawn(watch).is_ok().then_some(end);
        if end.is_none() {
            // The last value is stale once there are no more checks.
            room.store(UNKNOWN, Relaxed);
        }
        Self { room, _end: end }
    }

    /// Returns true if there is no room for more.
    pub(super) fn is_used_up(&self) -> bool {
        self.room.load(Relaxed) == 0
    }
}

struct DiskWatcher {
    folder: PathBuf,
    room: Arc<AtomicU64>,
    waker: Weak<HelperWaker>,
    /// The free space when the bell was last rung, and the number of checks since.
    woken_at: u64,
    looks: u32,
}

impl DiskWatcher {
    fn wait(&self) -> Duration {
        match self.room.load(Relaxed) {
            PLENTY_BYTES.. => SELDOM,
            _ => OFTEN,
        }
    }

    /// Checks the disk, and logs when the room is used up and when there is some again.
    fn look(&mut self) {
        let Ok(disk) = free(&self.folder) else {
            return;
        };
        let was_short = self.room.load(Relaxed) == 0;
        let room = left(&disk, was_short);
        self.room.store(room, Relaxed);
        let free = disk.bytes;
        match (was_short, room == 0) {
            (false, true) => tracing::error!(
                free,
                "the disk is nearly full: what takes more room is refused"
            ),
            (true, false) => tracing::warn!(free, "the disk has room again"),
            _ => {}
        }
        if room == 0 {
            self.ring(free);
        }
    }

    /// Starts a copy of the log if it may now achieve more than before.
    fn ring(&mut self, free: u64) {
        self.looks += 1;
        if free == self.woken_at && self.looks < RING_LOOKS {
            return;
        }
        (self.woken_at, self.looks) = (free, 0);
        if let Some(bell) = self.waker.upgrade() {
            bell.wake_if_idle();
        }
    }
}

/// The room above the reserve, given whether the disk was short of it.
fn left(disk: &Free, was_short: bool) -> u64 {
    if disk.of == 0 {
        // A file system that reports no size doesn't report the free space, either.
        return UNKNOWN;
    }
    let kept = KEPT_BYTES.min(disk.of / KEPT_PART);
    let most = if was_short { kept / AGAIN_PART } else { 0 };
    let left = disk.bytes.saturating_sub(kept);
    if left > most { left } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_disk_is_kept() {
        let left = |bytes, of, was_short| left(&Free { bytes, of }, was_short);
        const MIB: u64 = 1 << 20;
        const TIB: u64 = 1 << 40;
        assert_eq!(left(TIB, TIB, false), TIB - KEPT_BYTES);
        assert_eq!(left(129 * MIB, TIB, false), MIB);
        assert_eq!(left(128 * MIB, TIB, false), 0);
        assert_eq!(left(0, TIB, false), 0);
        // Once it was short, a quarter more is needed.
        assert_eq!(left(160 * MIB, TIB, true), 0);
        assert_eq!(left(161 * MIB, TIB, true), 33 * MIB);
        // A small disk.
        assert_eq!(left(26 * MIB, 100 * MIB, false), MIB);
        assert_eq!(left(25 * MIB, 100 * MIB, false), 0);
        // A disk that reports no size.
        assert_eq!(left(0, 0, false), UNKNOWN);
    }
}
