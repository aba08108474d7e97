//! A background pool for long work apart from the event loops: searches, sorts, pages far into a list, large messages.
//! A few tasks run at once, each on its own thread of lower priority, so that small requests don't wait for large ones.
//!
//! The pool doesn't know the work. The amount of work for one request is bounded by the code that does it.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use groupware_net::{FairSemaphore, Gauge};
use rustix::process::setpriority_process;
use tokio::sync::oneshot;

use crate::caller::Caller;

/// The maximum number of tasks at once. A user, or a foreign address, may have one of them.
const AT_ONCE: usize = 4;
/// The nice value: such a thread gets a tenth of the time of a thread that competes for the same core.
const BEHIND_OTHERS: i32 = 10;

/// The slots of the background pool.
#[derive(Debug)]
pub struct BlockingPool(FairSemaphore);

impl Default for BlockingPool {
    fn default() -> Self {
        Self(FairSemaphore::new(AT_ONCE))
    }
}

impl BlockingPool {
    /// Returns the current use of the slots.
    pub fn gauge(&self) -> Gauge {
        self.0.gauge()
    }

    /// Runs work in one of the caller's slots and waits for it. The caller's permit is released meanwhile.
    pub async fn work<T: Send + 'static>(
        &self,
        caller: &Caller,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        let source = caller.source();
        let done = async {
            let turn = self.0.take(&source, 1).await;
            // The thread continues after its caller has gone, so it holds the slot.
            run_detached(move || {
                let done = catch_unwind(AssertUnwindSafe(work));
                drop(turn);
                done
            })
            .await
        };
        let done = caller.yield_until(done).await;
        done.unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Runs detached work on a new thread of lower priority, or on this one if the system can't start a thread.
pub fn spawn_background(work: impl FnOnce() + Send + 'static) {
    let work = Arc::new(Mutex::new(Some(work)));
    let theirs = Arc::clone(&work);
    let take = |work: &Mutex<Option<_>>| work.lock().unwrap_or_else(PoisonError::into_inner).take();
    let started = std::thread::Builder::new()
        .name("aside".to_owned())
        .spawn(move || {
            // If that isn't permitted, the work runs at normal priority.
            let _ = setpriority_process(None, BEHIND_OTHERS);
            if let Some(work) = take(&theirs) {
                work();
            }
        });
    if started.is_err()
        && let Some(work) = take(&work)
    {
        work();
    }
}

/// Runs work that must not block asynchronous tasks on a new thread of lower priority, and waits for it.
///
/// # Errors
/// When the system can't start a thread, or the work panics.
pub async fn run_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let (done, waits) = oneshot::channel();
    std::thread::Builder::new()
        .name("aside".to_owned())
        .spawn(move || {
            let _ = setpriority_process(None, BEHIND_OTHERS);
            // The receiver may be gone.
            let _ = done.send(work());
        })?;
    waits.await.map_err(io::Error::other)
}

/// Runs work like [`spawn_background`], and waits for it.
async fn run_detached<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, waits) = oneshot::channel();
    spawn_background(move || {
        // The receiver may be gone.
        let _ = done.send(work());
    });
    waits
        .await
        .expect("the thread sends what comes of it, panics too")
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[tokio::test]
    async fn it_is_done_on_another_thread_and_panics_are_the_callers() {
        let aside = BlockingPool::default();
        let caller = Caller::internal();
        let here = std::thread::current().id();
        let there = aside.work(&caller, || std::thread::current().id()).await;
        assert_ne!(here, there);
        let caught = tokio::spawn(async move {
            let aside = BlockingPool::default();
            aside
                .work(&Caller::internal(), || panic!("as it may"))
                .await
        });
        assert!(caught.await.unwrap_err().is_panic());
        assert_eq!(aside.0.free(), AT_ONCE);
    }

    #[tokio::test]
    async fn a_client_has_one_turn_and_leaves_the_others_theirs() {
        let aside = BlockingPool::default();
        let (greedy, other) = (
            Caller::at(IpAddr::from([192, 0, 2, 1])),
            Caller::at(IpAddr::from([192, 0, 2, 2])),
        );
        let (go, wait) = std::sync::mpsc::sync_channel::<()>(1);
        let first = aside.work(&greedy, move || wait.recv().is_ok());
        let second = aside.work(&greedy, || ());
        let (mut first, mut second) = (Box::pin(first), Box::pin(second));
        tokio::select! {
            biased;
            _ = &mut first => panic!("it waits for a word"),
            () = &mut second => panic!("it has no turn yet"),
            () = aside.work(&other, || ()) => {}
        }
        go.send(()).unwrap();
        assert!(first.await);
        second.await;
    }
}
