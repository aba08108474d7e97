//! Removes, now and then, what nothing refers to: expired uploads, files of uploads that were given
//! up, and content.

use std::collections::HashMap;
use std::error::Error;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use groupware_documents::{self as documents, Context, UploadId};
use groupware_store::CommitError;

use crate::AppState;

/// A file without a record may be of an upload that is just being begun, unless it is this old.
const ORPHAN_AGE: Duration = Duration::from_secs(3600);
/// How often it is tried to forget an upload before that is left to the next time.
const ROUNDS: u32 = 4;

/// The thread that sweeps; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Sweeper {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What went wrong, in words, is left to the next sweep.
struct Failed(String);

impl<E: Error> From<E> for Failed {
    fn from(error: E) -> Self {
        let mut words = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            words += &format!(": {error}");
            source = error.source();
        }
        Self(words)
    }
}

/// Counts failures, and tells the first one since a sweep without any: a disk that is broken would
/// fill the log otherwise.
struct Failures<'a> {
    state: &'a AppState,
    out: &'a mut dyn Write,
    /// Of this sweep.
    count: u32,
    is_told: bool,
}

impl<'a> Failures<'a> {
    fn new(state: &'a AppState, out: &'a mut dyn Write) -> Self {
        Self {
            state,
            out,
            count: 0,
            is_told: false,
        }
    }

    fn note(&mut self, result: Result<(), Failed>) {
        let Err(Failed(words)) = result else { return };
        self.count += 1;
        self.state.metrics.sweep_failures.inc();
        if !self.is_told {
            self.is_told = true;
            // Nobody may be there to read it.
            let _ = writeln!(
                self.out,
                "what nothing refers to can't be removed, and takes room until the next try: {words}"
            );
        }
    }

    /// A sweep is over.
    fn end(&mut self) {
        self.is_told &= self.count > 0;
        self.count = 0;
    }
}

impl Sweeper {
    /// Starts the thread. It sweeps at once, when no upload is under way yet, and then whenever the
    /// interval is over.
    pub(crate) fn start(state: AppState, interval: Duration) -> io::Result<Self> {
        let (stop, stopped) = sync_channel(0);
        let run = move || {
            let mut orphan_age = Duration::ZERO;
            let mut out = io::stderr();
            let mut failures = Failures::new(&state, &mut out);
            loop {
                sweep(&state, orphan_age, &mut failures, &|| {
                    stopped.recv_timeout(Duration::ZERO) != Err(RecvTimeoutError::Timeout)
                });
                failures.end();
                orphan_age = ORPHAN_AGE;
                if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("content-sweep".into());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(run)?),
        })
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of it was reported when it happened.
            let _ = thread.join();
        }
    }
}

fn sweep(
    state: &AppState,
    orphan_age: Duration,
    failures: &mut Failures<'_>,
    is_stopped: &dyn Fn() -> bool,
) {
    failures.note(sweep_uploads(state, orphan_age));
    for first in 0..=u8::MAX {
        if is_stopped() {
            return;
        }
        failures.note(sweep_content(state, first));
    }
}

/// Forgets uploads that expired, and removes the files of those that there is no record of.
fn sweep_uploads(state: &AppState, orphan_age: Duration) -> Result<(), Failed> {
    let now = state.now_s();
    let before = now - i64::try_from(orphan_age.as_secs()).unwrap_or(i64::MAX);
    // Listed before the records are read: what is begun meanwhile is not on the list.
    let files = state.content.upload_files()?.into_iter();
    let mut files: HashMap<String, i64> = files
        .map(|file| (file.name, unix_seconds(file.modified)))
        .collect();
    for mailbox in state.directory().keys() {
        let mut expired = Vec::new();
        state.store().read(|snapshot| {
            documents::uploads(snapshot, &mailbox, &mut |id, upload| {
                let written = files.get(id.as_str()).copied();
                if upload.has_expired(now, state.settings.upload_lifetime_s, written) {
                    expired.push(id);
                } else if upload.finished.is_none() {
                    files.remove(id.as_str());
                }
            })
        })?;
        for id in expired {
            give_up(state, &mailbox, &id)?;
            state.uploads.forget(&crate::tus::key(&mailbox, &id));
            files.insert(id.to_string(), i64::MIN);
        }
    }
    for (name, written) in files {
        if written <= before {
            state.content.remove_upload(&name)?;
        }
    }
    Ok(())
}

fn give_up(state: &AppState, mailbox: &str, id: &UploadId) -> Result<(), Failed> {
    for _ in 0..ROUNDS {
        let decision = state.store().read(|snapshot| {
            let context = Context {
                snapshot,
                who: documents::Who::owner(mailbox),
                now: state.now_s(),
                bits: 0,
                quota_bytes: u64::MAX,
            };
            documents::give_up(&context, id)
        })?;
        match state.store().commit_blocking(decision.batch) {
            Ok(_) => return Ok(()),
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Failed(format!(
        "upload {id} of {mailbox} keeps being changed"
    )))
}

/// Whoever registers meanwhile can refer to nothing but what is pinned.
fn sweep_content(state: &AppState, first: u8) -> Result<(), Failed> {
    let Some(mut sweep) = state.content.sweep_folder(first)? else {
        return Ok(());
    };
    if sweep.is_empty() {
        return Ok(());
    }
    for mailbox in state.directory().keys() {
        state.store().read(|snapshot| {
            documents::kept_content(snapshot, &mailbox, first, &mut |hash, bytes| {
                sweep.keep(hash, bytes);
            })
        })?;
    }
    sweep.finish()?;
    Ok(())
}

fn unix_seconds(moment: SystemTime) -> i64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use groupware_store::{Store, StoreOptions};

    use super::*;

    #[test]
    fn failures_are_counted_and_told_once_until_all_is_well() {
        let store = Store::memory(StoreOptions::default()).unwrap();
        let state = crate::server::state_for_tests(store);
        let mut out = Vec::new();
        let mut failures = Failures::new(&state, &mut out);
        let broken = || Err(Failed::from(io::Error::other("the disk is gone")));
        for results in [
            vec![broken(), broken(), Ok(())],
            vec![broken()],
            vec![Ok(())],
            vec![broken()],
        ] {
            results.into_iter().for_each(|result| failures.note(result));
            failures.end();
        }
        assert_eq!(state.metrics.sweep_failures.get(), 4);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            text.lines()
                .all(|line| line.ends_with(": the disk is gone"))
        );
    }
}
