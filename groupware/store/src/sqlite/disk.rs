//! How much room the disk has for more.
//!
//! On a full disk nothing can be removed: a removal is written down like any change, and the log can't be copied into
//! a database that can't grow, so that no part of it is free again. A little room is kept for that.
//!
//! A thread of its own looks, so that a disk that answers nothing holds up nobody who asks. While there is no room, it
//! has the log copied back again and again: only a copy of all of it makes the database's file shorter, and one that
//! somebody reads or writes meanwhile is none.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::checkpoint::Bell;
use crate::place::{Free, free};

/// So much is kept: the log may get half as long before it is copied back, and the database grow by as much then.
const KEPT_BYTES: u64 = 128 << 20;
/// Of a small disk, such a part of it.
const KEPT_PART: u64 = 4;
/// A disk that was found to have no room for more has some again from this part of what is kept on, lest it is said
/// with every change.
const AGAIN_PART: u64 = 4;
/// How often is looked, and where there is plenty: nobody uses that up meanwhile.
const OFTEN: Duration = Duration::from_millis(250);
const SELDOM: Duration = Duration::from_secs(5);
const PLENTY_BYTES: u64 = 4 << 30;
/// Where nothing has changed on a disk without room, the log is copied back every so many looks: where it can't be, all
/// that could be is copied each time.
const RING_LOOKS: u32 = 40;
/// Of a disk that doesn't say.
const UNKNOWN: u64 = u64::MAX;

/// What a disk has for more, as it was seen last. Nothing is known of one that isn't watched.
#[derive(Debug)]
pub(super) struct DiskRoom {
    room: Arc<AtomicU64>,
    /// The thread ends with it. It isn't waited for: the disk may hang.
    _end: Option<SyncSender<()>>,
}

impl DiskRoom {
    pub(super) fn unwatched() -> Self {
        Self {
            room: Arc::new(AtomicU64::new(UNKNOWN)),
            _end: None,
        }
    }

    /// Of the disk that a folder lies on, where what wakes the checkpoints' helper is this.
    pub(super) fn watch(folder: &Path, bell: Weak<Bell>) -> Self {
        let mut watched = Watched {
            folder: folder.to_path_buf(),
            room: Arc::new(AtomicU64::new(UNKNOWN)),
            bell,
            rung_at: UNKNOWN,
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
            // What is never looked at again isn't believed.
            room.store(UNKNOWN, Relaxed);
        }
        Self { room, _end: end }
    }

    /// Whether there is no room for more.
    pub(super) fn is_used_up(&self) -> bool {
        self.room.load(Relaxed) == 0
    }
}

struct Watched {
    folder: PathBuf,
    room: Arc<AtomicU64>,
    bell: Weak<Bell>,
    /// What was free when the bell was rung last, and how often was looked since.
    rung_at: u64,
    looks: u32,
}

impl Watched {
    fn wait(&self) -> Duration {
        match self.room.load(Relaxed) {
            PLENTY_BYTES.. => SELDOM,
            _ => OFTEN,
        }
    }

    /// Looks, and says when the room for more is used up, and when there is some again.
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

    /// Has the log copied back, if that may do what it didn't do before.
    fn ring(&mut self, free: u64) {
        self.looks += 1;
        if free == self.rung_at && self.looks < RING_LOOKS {
            return;
        }
        (self.rung_at, self.looks) = (free, 0);
        if let Some(bell) = self.bell.upgrade() {
            bell.ring_if_idle();
        }
    }
}

/// What there is for more on a disk that had nothing for it, or had.
fn left(disk: &Free, was_short: bool) -> u64 {
    if disk.of == 0 {
        // A file system that doesn't say how large it is doesn't say what is free, either.
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
        // Once it was short, a quarter more is wanted.
        assert_eq!(left(160 * MIB, TIB, true), 0);
        assert_eq!(left(161 * MIB, TIB, true), 33 * MIB);
        // A small one.
        assert_eq!(left(26 * MIB, 100 * MIB, false), MIB);
        assert_eq!(left(25 * MIB, 100 * MIB, false), 0);
        // One that says nothing of itself.
        assert_eq!(left(0, 0, false), UNKNOWN);
    }
}
