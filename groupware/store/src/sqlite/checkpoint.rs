//! Copies pages from the log back into the database file without delaying writers.
//!
//! A log restarts only when a checkpoint has caught up with it, which never happens beside a busy writer. So a helper
//! thread copies the bulk while the writer continues, and repeats this until few pages are left. The writer then copies
//! those between two groups.

use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connect::{open_helper, page_bytes};
use crate::StoreError;

/// The log length at which the helper starts: 64 MiB. Larger logs save copies of pages that change often; page lookups
/// in smaller ones are faster.
const BEGIN_BYTES: u32 = 64 << 20;
/// The same where pages change only once, as in a large removal, so that waiting saves nothing. The copy is then small
/// enough that it doesn't delay the sync of a concurrent commit for long.
const BULK_BYTES: u32 = 4 << 20;
/// The maximum that the writer copies itself while callers wait.
const FINISH_BYTES: u32 = 1 << 20;
/// The number of rounds in which the helper tries to leave no more than that, before the writer copies the rest.
const ROUNDS: u32 = 8;
/// At this log length, 512 MiB, the writer copies everything although callers wait: the helper can't keep up.
const FORCE_BYTES: u32 = 512 << 20;
/// The growth of the log after which the writer does so again.
const FORCE_AGAIN_BYTES: u32 = 128 << 20;

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const RESTART: &str = "PRAGMA wal_checkpoint(RESTART)";

thread_local! {
    /// Pages in the log after this thread's last commit, until they are taken. The hook can only store it here, and is
    /// not called for a commit that wrote nothing.
    static LOG_PAGES: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Records the log's length after every commit of this connection, for [`written_log`] on the committing thread.
pub(super) fn watch_log(connection: &Connection) {
    connection.wal_hook(Some(|_, pages| {
        LOG_PAGES.set(Some(pages.unsigned_abs()));
        Ok(())
    }));
}

/// Pages in the log, if this thread's last commit wrote any.
pub(super) fn written_log() -> Option<u32> {
    LOG_PAGES.take()
}

/// The state of the log after a commit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Log {
    pub(super) pages: u32,
    /// The commit is one of many that change many pages, and rarely a page twice.
    pub(super) is_bulk: bool,
}

/// The state of the helper.
#[derive(Debug, Default)]
struct Help {
    is_running: AtomicBool,
    /// Pages of the log that the file also has.
    copied: AtomicU32,
}

pub(super) struct Checkpointer {
    help: Arc<Help>,
    /// The page size of the file.
    page_bytes: u32,
    /// The length of the log at the last check.
    seen_pages: Cell<u32>,
    /// The number of copies by the helper since the log was to restart.
    rounds: Cell<u32>,
    /// The length of the log when the writer last had to copy it.
    forced_pages: Cell<u32>,
    waker: Option<Arc<HelperWaker>>,
    helper: Option<JoinHandle<()>>,
}

/// Wakes the helper.
pub(super) struct HelperWaker {
    help: Arc<Help>,
    wake: SyncSender<()>,
}

impl HelperWaker {
    /// Starts a copy of the log, however short it is; if one is in progress, another one follows.
    pub(super) fn wake(&self) {
        self.help.is_running.store(true, Ordering::Release);
        let _ = self.wake.try_send(());
    }

    /// The same, unless a copy is in progress: the writer finishes the log between two runs of the helper.
    pub(super) fn wake_if_idle(&self) {
        if !self.help.is_running.load(Ordering::Acquire) {
            self.wake();
        }
    }
}

impl Checkpointer {
    pub(super) fn start(file: &Path) -> Result<Self, StoreError> {
        let connection = open_helper(file)?;
        let page_bytes = page_bytes(&connection)?;
        let help = Arc::new(Help::default());
        let (wake, woken) = sync_channel(1);
        let helper = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .spawn({
                let help = Arc::clone(&help);
                move || help.run(&connection, &woken)
            })
            .map_err(|error| StoreError::Thread(Arc::new(error)))?;
        Ok(Self {
            help: Arc::clone(&help),
            page_bytes,
            seen_pages: Cell::new(0),
            rounds: Cell::new(0),
            forced_pages: Cell::new(0),
            waker: Some(Arc::new(HelperWaker { help, wake })),
            helper: Some(helper),
        })
    }

    /// The helper's bell, while it exists.
    pub(super) fn bell(&self) -> Weak<HelperWaker> {
        self.waker.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// Returns true if the log is long enough for work. Called after each commit.
    pub(super) fn wants_tending(&self, log: Log) -> bool {
        self.note_length(log.pages);
        let is_long = log.pages >= self.pages(BEGIN_BYTES)
            || log.is_bulk && self.left(log.pages) >= self.pages(BULK_BYTES);
        is_long && !self.is_helped() || self.must_force(log.pages)
    }

    /// The number of pages that hold this many bytes.
    pub(super) fn pages_of(&self, bytes: u64) -> u32 {
        u32::try_from(bytes.div_ceil(self.page_bytes.into())).unwrap_or(u32::MAX)
    }

    fn pages(&self, bytes: u32) -> u32 {
        bytes / self.page_bytes
    }

    /// A log that became shorter has restarted: none of it is copied yet.
    fn note_length(&self, log_pages: u32) {
        let copied = self.help.copied.load(Ordering::Relaxed);
        if log_pages < self.seen_pages.replace(log_pages) || log_pages < copied {
            self.help.copied.store(0, Ordering::Relaxed);
            self.rounds.set(0);
        }
    }

    /// Pages of the log that the file doesn't have.
    fn left(&self, log_pages: u32) -> u32 {
        log_pages.saturating_sub(self.help.copied.load(Ordering::Relaxed))
    }

    fn is_helped(&self) -> bool {
        self.help.is_running.load(Ordering::Acquire)
    }

    /// A long reader, such as a backup, keeps the log from restarting. Then writers wait for a copy, in vain, only now
    /// and then.
    fn must_force(&self, log_pages: u32) -> bool {
        let last = self.forced_pages.get();
        let last = if log_pages < last { 0 } else { last };
        let again = last.saturating_add(self.pages(FORCE_AGAIN_BYTES));
        log_pages >= self.pages(FORCE_BYTES).max(again)
    }

    /// Starts a copy of the log, however short it is; if one is in progress, another one follows.
    pub(super) fn begin(&self) {
        if let Some(bell) = &self.waker {
            bell.wake();
        }
    }

    /// Called by the writer between groups.
    pub(super) fn tend(&self, writer: &Connection, log: Log) {
        if !self.wants_tending(log) {
            return;
        }
        if self.must_force(log.pages) {
            self.forced_pages.set(log.pages);
            self.finish(writer, RESTART);
        } else if log.pages < self.pages(BEGIN_BYTES) {
            self.begin();
        } else if self.left(log.pages) <= self.pages(FINISH_BYTES) || self.rounds.get() >= ROUNDS {
            self.finish(writer, PASSIVE);
        } else {
            self.rounds.set(self.rounds.get() + 1);
            self.begin();
        }
    }

    fn finish(&self, writer: &Connection, pragma: &str) {
        self.rounds.set(0);
        match checkpoint(writer, pragma) {
            Ok(Some(copied)) => self.help.copied.store(copied, Ordering::Relaxed),
            Ok(None) => {}
            Err(error) => note_failure(error),
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.waker.take());
        if let Some(helper) = self.helper.take() {
            let _ = helper.join();
        }
    }
}

impl Help {
    fn run(&self, connection: &Connection, woken: &Receiver<()>) {
        let mut has_failed = false;
        while woken.recv().is_ok() {
            self.is_running.store(true, Ordering::Release);
            let copied = checkpoint(connection, PASSIVE);
            if let Ok(Some(copied)) = copied {
                self.copied.store(copied, Ordering::Relaxed);
            }
            // On a full disk, this is retried repeatedly.
            let failed_before = std::mem::replace(&mut has_failed, copied.is_err());
            if let (false, Err(error)) = (failed_before, copied) {
                note_failure(error);
            }
            self.is_running.store(false, Ordering::Release);
        }
    }
}

/// Returns how many pages of the log the file has then, unless another checkpoint is running. A checkpoint that fails,
/// for example on a full disk, leaves everything in the log, where it is safe and readable; the next one tries again.
fn checkpoint(connection: &Connection, pragma: &str) -> rusqlite::Result<Option<u32>> {
    let copied = connection.query_row(pragma, [], |row| row.get::<_, i64>(2));
    copied.map(|copied| u32::try_from(copied).ok())
}

fn note_failure(error: rusqlite::Error) {
    let error = StoreError::from(error);
    tracing::warn!(
        cause = groupware_text::chain(&error),
        "the log can't be copied into the database"
    );
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_tests::wait_until;

    use super::*;
    use crate::sqlite::connect::PAGE_BYTES;

    /// A database with a log, whose writer reports the log's length after each commit.
    struct Written {
        _folder: tempfile::TempDir,
        writer: Connection,
        checkpointer: Checkpointer,
    }

    impl Written {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("file");
            let writer = Connection::open(&file).unwrap();
            let tune = format!(
                "PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = wal;
                PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = off;
                CREATE TABLE t (value BLOB)"
            );
            writer.execute_batch(&tune).unwrap();
            watch_log(&writer);
            let checkpointer = Checkpointer::start(&file).unwrap();
            Self {
                _folder: folder,
                writer,
                checkpointer,
            }
        }

        /// Commits this many bytes and runs the checkpointer; returns the log's length before that.
        fn commit(&self, bytes: u32, is_bulk: bool) -> u32 {
            let insert = "INSERT INTO t VALUES (zeroblob(?1))";
            self.writer.execute(insert, [bytes]).unwrap();
            let pages = written_log().unwrap();
            self.checkpointer.tend(&self.writer, Log { pages, is_bulk });
            pages
        }

        /// A reader that keeps its snapshot of this moment.
        fn reader(&self) -> Connection {
            let reader = open_helper(Path::new(self.writer.path().unwrap())).unwrap();
            reader.execute_batch("BEGIN").unwrap();
            let count = "SELECT count(*) FROM t";
            let count: i64 = reader.query_row(count, [], |row| row.get(0)).unwrap();
            assert_eq!(count, 1);
            reader
        }

        /// Waits until the helper is idle; returns how many pages of the log the file has.
        fn copied(&self) -> u32 {
            let help = &self.checkpointer.help;
            wait_until(Duration::from_secs(120), "the helper is done", || {
                !help.is_running.load(Ordering::Acquire)
            });
            help.copied.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn the_helper_copies_what_is_much_and_the_writer_the_last_of_it() {
        let written = Written::new();
        written.commit(BEGIN_BYTES - (512 << 10), false);
        assert_eq!(written.copied(), 0);
        let reader = written.reader();
        let long = written.commit(768 << 10, false);
        let copied = written.copied();
        let finish = FINISH_BYTES / PAGE_BYTES;
        assert!(copied > 4000 && copied < long && long <= copied + finish);
        reader.execute_batch("COMMIT").unwrap();
        let longer = written.commit(8 << 10, false);
        let help = &written.checkpointer.help;
        assert!(!help.is_running.load(Ordering::Acquire));
        assert_eq!(written.copied(), longer);
        // The log restarts, and later pages are not copied.
        assert!(written.commit(8 << 10, false) < 10);
        assert_eq!(written.copied(), 0);
    }

    #[test]
    fn of_very_many_changes_a_little_is_copied_at_a_time() {
        let written = Written::new();
        written.commit(3 << 20, true);
        assert_eq!(written.copied(), 0);
        written.commit(2 << 20, false);
        assert_eq!(written.copied(), 0);
        let long = written.commit(8 << 10, true);
        assert_eq!(written.copied(), long);
        // All of it is in the file, so the log restarts by itself.
        assert!(written.commit(8 << 10, true) < 10);
        assert_eq!(written.copied(), 0);
    }

    /// A reader of an old state keeps the log from restarting, and no writer waits for that.
    #[test]
    fn a_reader_keeps_the_log() {
        let written = Written::new();
        written.commit(1 << 20, false);
        let reader = written.reader();
        let mut long = written.commit(BEGIN_BYTES, false);
        for _ in 0..ROUNDS + 4 {
            assert!(written.copied() < long);
            long = written.commit(8 << 10, false);
        }
        reader.execute_batch("COMMIT").unwrap();
        // The first commit has the rest copied, and the next ones find little to do.
        for _ in 0..ROUNDS + 2 {
            written.commit(8 << 10, false);
            written.copied();
        }
        assert!(written.commit(8 << 10, false) < 100);
    }
}
