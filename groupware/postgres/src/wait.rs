//! Blocking waits on a thread that may already run an event loop, where no second one may start:
//! the thread sleeps until another one has finished.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use crate::clock::Deadline;

struct Sleeper(Thread);

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until a future that other threads drive is ready; `None` after the time limit.
pub(crate) fn wait<F: Future>(future: F, most: Duration) -> Option<F::Output> {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Sleeper(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
        return Some(done);
    }
    let deadline = Deadline::after(most);
    loop {
        std::thread::park_timeout(deadline.left());
        match future.as_mut().poll(&mut context) {
            Poll::Ready(done) => return Some(done),
            Poll::Pending if deadline.is_over() => return None,
            Poll::Pending => {}
        }
    }
}

/// Starts a future whose result is not needed.
pub(crate) fn begin<F: Future>(future: F) {
    let mut context = Context::from_waker(Waker::noop());
    let _ = pin!(future).poll(&mut context);
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_thread_of_an_event_loop_can_wait_for_others() {
        let (done, waits) = oneshot::channel();
        let other = std::thread::spawn(move || done.send(7));
        assert_eq!(wait(waits, Duration::from_secs(60)), Some(Ok(7)));
        other.join().unwrap().unwrap();
        let (_never, waits) = oneshot::channel::<()>();
        assert_eq!(wait(waits, Duration::from_millis(1)), None);
    }
}
