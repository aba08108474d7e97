//! Moves pages from the log back into the database file without making writers wait for it.
//!
//! A log starts over only when a checkpoint has caught up with it, and one that runs beside a
//! busy writer never does. So a helper thread copies the bulk while the writer goes on, and then
//! the writer, between two groups, copies the few pages that came meanwhile.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::Connection;

use super::connect::{PAGE_BYTES, open_helper};
use crate::StoreError;

/// A log of 32 MiB is copied back. Larger logs save copies of pages that change often; smaller
/// ones are faster to look up pages in.
const BEGIN_PAGES: u32 = pages(32 << 20);
/// A log of 512 MiB is copied back whoever waits: the helper can't keep up.
const FORCE_PAGES: u32 = pages(512 << 20);

/// After that, each time that it has grown by so much.
const FORCE_AGAIN_PAGES: u32 = pages(128 << 20);

const IDLE: u8 = 0;
const RUNNING: u8 = 1;
const CAUGHT_UP: u8 = 2;

const fn pages(bytes: u32) -> u32 {
    bytes / PAGE_BYTES
}

thread_local! {
    /// Pages in the log after this thread's last commit, until they are taken. The hook has no other
    /// place to put it, and is not called for a commit that wrote nothing.
    static LOG_PAGES: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Has the log's length noted after every commit of this connection, for [`written_log`] on the
/// thread that commits.
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

pub(super) struct Checkpointer {
    state: Arc<AtomicU8>,
    /// The length of the log when it was last to be copied back whoever waits.
    forced_pages: Cell<u32>,
    wake: Option<SyncSender<()>>,
    helper: Option<JoinHandle<()>>,
}

impl Checkpointer {
    pub(super) fn start(file: &Path) -> Result<Self, StoreError> {
        let connection = open_helper(file)?;
        let state = Arc::new(AtomicU8::new(IDLE));
        let (wake, woken) = sync_channel(1);
        let helper = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .spawn({
                let state = Arc::clone(&state);
                move || help(&connection, &woken, &state)
            })
            .map_err(|error| StoreError::Thread(Arc::new(error)))?;
        Ok(Self {
            state,
            forced_pages: Cell::new(0),
            wake: Some(wake),
            helper: Some(helper),
        })
    }

    /// Whether the log is so long that there is something to do.
    pub(super) fn wants_tending(&self, log_pages: u32) -> bool {
        log_pages >= BEGIN_PAGES && self.state.load(Ordering::Acquire) != RUNNING
            || self.must_force(log_pages)
    }

    /// A reader that goes on for long, such as a backup, keeps the log from starting over: then
    /// writers wait for it, in vain, only every now and then.
    fn must_force(&self, log_pages: u32) -> bool {
        let last = self.forced_pages.get();
        let last = if log_pages < last { 0 } else { last };
        log_pages >= FORCE_PAGES.max(last.saturating_add(FORCE_AGAIN_PAGES))
    }

    /// Has the helper copy the log back, however short it is, unless it is at it.
    pub(super) fn begin(&self) {
        if self.state.load(Ordering::Acquire) == RUNNING {
            return;
        }
        self.state.store(RUNNING, Ordering::Release);
        if let Some(wake) = &self.wake {
            let _ = wake.try_send(());
        }
    }

    /// Called by the writer between groups.
    pub(super) fn tend(&self, writer: &Connection, log_pages: u32) {
        if !self.wants_tending(log_pages) {
            return;
        }
        if self.must_force(log_pages) {
            self.forced_pages.set(log_pages);
            checkpoint(writer, "PRAGMA wal_checkpoint(RESTART)");
            return;
        }
        match self.state.load(Ordering::Acquire) {
            IDLE => self.begin(),
            CAUGHT_UP => {
                checkpoint(writer, "PRAGMA wal_checkpoint(PASSIVE)");
                self.state.store(IDLE, Ordering::Release);
            }
            _ => {}
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(helper) = self.helper.take() {
            let _ = helper.join();
        }
    }
}

fn help(connection: &Connection, woken: &Receiver<()>, state: &AtomicU8) {
    while woken.recv().is_ok() {
        checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)");
        state.store(CAUGHT_UP, Ordering::Release);
    }
}

/// A checkpoint that fails, on a full disk say, leaves everything in the log, where it is safe
/// and readable; the next one tries again.
fn checkpoint(connection: &Connection, pragma: &str) {
    if let Err(error) = connection.query_row(pragma, [], |row| row.get::<_, i64>(0)) {
        let error = StoreError::from(error);
        tracing::warn!(
            cause = groupware_text::chain(&error),
            "the log can't be copied into the database"
        );
    }
}
