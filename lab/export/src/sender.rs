//! A thread that sends frames from an archive to a destination, at its own pace. Each destination has one, so that none
//! waits for another.
//!
//! A temporarily rejected batch is retried until it is accepted, or until the deadline; meanwhile nothing more is read
//! from the archive. So memory never holds more than a batch, whatever the receiver does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::clock;
use crate::destination::{Destination, Target};
use crate::error::SendError;
use crate::figure::Frame;
use crate::post::{BatchOutcome, Post};
use crate::source::Source;

/// Interval between two reads of the archive.
const LOOK: Duration = Duration::from_secs(2);
/// Figures of a batch, give or take a frame.
const BATCH: usize = if cfg!(test) { 200 } else { 1000 };
/// The first wait before a retry; each further one is twice as long, up to the last.
const WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Interval between two checks of the caller's cancellation.
const GLANCE: Duration = Duration::from_millis(50);

/// A thread that sends.
#[derive(Debug)]
pub struct Sender {
    thread: JoinHandle<Result<Sent, SendError>>,
    until: Arc<Until>,
}

/// The result of sending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// Figures that the destination accepted.
    pub figures: u64,
    /// Figures that it did not accept.
    pub missing: u64,
    /// The first reason.
    pub why: Option<String>,
}

/// The deadline; `None` while the run is in progress.
#[derive(Debug, Default)]
struct Until {
    end: Mutex<Option<Instant>>,
    bell: Condvar,
}

impl Until {
    fn get(&self) -> Option<Instant> {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, end: Instant) {
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
        self.bell.notify_all();
    }

    /// Waits for this time, or until the deadline is set or moved.
    fn wait(&self, time: Duration) {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.bell.wait_timeout(end, time);
    }

    fn is_over(&self) -> bool {
        self.get().is_some_and(|end| clock::now() >= end)
    }
}

impl Sender {
    /// Checks whether the destination accepts figures; returns its message, or the problem, if it does not. A file
    /// always accepts.
    ///
    /// # Errors
    /// [`SendError::Authorities`].
    pub fn ask(destination: &Destination) -> Result<Option<String>, SendError> {
        if matches!(destination.place, Target::File(_)) {
            return Ok(None);
        }
        Ok(match Post::new(destination)?.send(&[])? {
            BatchOutcome::Taken | BatchOutcome::But(..) => None,
            BatchOutcome::Refused(why) | BatchOutcome::NotNow(why, _) => Some(why),
        })
    }

    /// Starts to send. The thread calls `begin` first, which may lower its priority.
    ///
    /// # Errors
    /// [`SendError::File`], [`SendError::Authorities`], [`SendError::Thread`].
    pub fn start(
        destination: &Destination,
        source: Source,
        begin: fn(),
    ) -> Result<Self, SendError> {
        let until = Arc::new(Until::default());
        let sending = Sending {
            post: Post::new(destination)?,
            source,
            until: Arc::clone(&until),
            sent: Sent::default(),
        };
        let thread = std::thread::Builder::new()
            .name("export".to_owned())
            .spawn(move || {
                begin();
                sending.send()
            })
            .map_err(SendError::Thread)?;
        Ok(Self { thread, until })
    }

    /// The archive is complete: sends the rest, for `patience` at most, or until `enough` is set.
    ///
    /// # Errors
    /// [`SendError`], at any time.
    pub fn finish(self, patience: Duration, enough: &AtomicBool) -> Result<Sent, SendError> {
        self.until.set(clock::now() + patience);
        let mut has_enough = false;
        while !self.thread.is_finished() {
            if !has_enough && enough.load(Ordering::Relaxed) {
                has_enough = true;
                self.until.set(clock::now());
            }
            std::thread::park_timeout(GLANCE);
        }
        match self.thread.join() {
            Ok(sent) => sent,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

struct Sending {
    post: Post,
    source: Source,
    until: Arc<Until>,
    sent: Sent,
}

impl Sending {
    fn send(mut self) -> Result<Sent, SendError> {
        loop {
            // Data that arrives after this is read once more.
            let is_last = self.until.get().is_some();
            while let Some((batch, figures)) = self.batch()? {
                self.deliver(&batch, figures)?;
            }
            if is_last {
                self.post.close()?;
                return Ok(self.sent);
            }
            self.until.wait(LOOK);
        }
    }

    /// The next frames, and the number of their figures.
    fn batch(&mut self) -> Result<Option<(Vec<Frame>, u64)>, SendError> {
        let (mut frames, mut figures) = (Vec::new(), 0);
        while figures < BATCH
            && let Some(frame) = self.source.frame()?
        {
            figures += frame.figures.len();
            frames.push(frame);
        }
        Ok((!frames.is_empty()).then_some((frames, figures as u64)))
    }

    fn deliver(&mut self, frames: &[Frame], figures: u64) -> Result<(), SendError> {
        let mut wait = WAIT;
        // After the deadline the rest is only counted.
        while !(self.until.is_over() && self.sent.why.is_some()) {
            match self.post.send(frames)? {
                BatchOutcome::Taken => {
                    self.sent.figures += figures;
                    return Ok(());
                }
                BatchOutcome::But(rejected, why) => {
                    let rejected = rejected.min(figures);
                    self.sent.figures += figures - rejected;
                    self.misses(rejected, why);
                    return Ok(());
                }
                BatchOutcome::Refused(why) => {
                    self.misses(figures, why);
                    return Ok(());
                }
                BatchOutcome::NotNow(why, _) if self.until.is_over() => {
                    self.misses(figures, why);
                    return Ok(());
                }
                BatchOutcome::NotNow(_, asked) => {
                    let rest = asked.unwrap_or(wait);
                    let left = self.until.get().map(|end| end - clock::now());
                    self.until.wait(rest.min(left.unwrap_or(LONGEST_WAIT)));
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
        self.sent.missing += figures;
        Ok(())
    }

    fn misses(&mut self, figures: u64, why: String) {
        self.sent.missing += figures;
        self.sent.why.get_or_insert(why);
    }
}

#[cfg(test)]
mod tests;
