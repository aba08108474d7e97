//! Runs jobs, each on its own thread, so that a long sweep delays no other.

use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Work that runs repeatedly.
pub trait Job: Send + 'static {
    /// The name of its thread.
    const NAME: &'static str;

    /// Returns the time until the first run.
    fn first_pause(&self) -> Duration;

    /// Runs once, or until `stop` is requested; returns the time until the next run.
    fn run(&mut self, stop: &Stop) -> Duration;
}

/// The receiver of a job's stop request.
#[derive(Debug)]
pub struct Stop(Receiver<()>);

impl Stop {
    /// Returns true if the job is to stop.
    pub fn is_asked(&self) -> bool {
        self.comes_within(Duration::ZERO)
    }

    /// Creates a stop request that is never sent.
    #[cfg(test)]
    pub(crate) fn never() -> Self {
        let (stop, stopped) = sync_channel(0);
        // The channel stays open and empty.
        std::mem::forget(stop);
        Self(stopped)
    }

    fn comes_within(&self, pause: Duration) -> bool {
        self.0.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)
    }
}

/// The running jobs; dropping them stops them.
#[derive(Default)]
pub struct Jobs {
    stops: Vec<SyncSender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Jobs {
    /// Starts a job.
    ///
    /// # Errors
    /// When the system can't start a thread.
    pub fn start<J: Job>(&mut self, mut job: J) -> io::Result<()> {
        let (stop, stopped) = sync_channel(0);
        let stopped = Stop(stopped);
        let run = move || {
            let mut pause = job.first_pause();
            while !stopped.comes_within(pause) {
                pause = job.run(&stopped);
            }
        };
        let thread = std::thread::Builder::new()
            .name(J::NAME.into())
            .spawn(run)?;
        self.stops.push(stop);
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stops.clear();
        for thread in self.threads.drain(..) {
            // A panic was already reported.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports that it runs, and then waits for the stop request.
    struct Endless(SyncSender<u32>, u32);

    impl Job for Endless {
        const NAME: &'static str = "endless";

        fn first_pause(&self) -> Duration {
            Duration::ZERO
        }

        fn run(&mut self, stop: &Stop) -> Duration {
            self.1 += 1;
            let _ = self.0.send(self.1);
            if self.1 > 2 {
                while !stop.comes_within(Duration::from_millis(1)) {}
            }
            Duration::ZERO
        }
    }

    #[test]
    fn jobs_run_again_and_again_and_end_with_their_runner() {
        let (said, heard) = sync_channel(10);
        let mut jobs = Jobs::default();
        jobs.start(Endless(said, 0)).unwrap();
        assert_eq!(
            (heard.recv(), heard.recv(), heard.recv()),
            (Ok(1), Ok(2), Ok(3))
        );
        drop(jobs);
        assert!(heard.recv().is_err());
    }
}
