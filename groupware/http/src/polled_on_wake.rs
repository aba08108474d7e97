//! A future that is polled only on its own wake-up, not on every wake-up of its task.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Waits for a rare event, in a task that is woken often for other reasons: until the event, a poll
/// costs one load.
pub(crate) struct PolledOnWake<'a, F> {
    future: Pin<&'a mut F>,
    flag: Arc<WakeFlag>,
    /// Wakes through the bell.
    waker: Waker,
    /// The task that the bell wakes.
    task: Waker,
}

/// Set when the future must be polled.
struct WakeFlag {
    is_set: AtomicBool,
    task: Mutex<Waker>,
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_set.store(true, Ordering::Release);
        let task = self.woken().clone();
        task.wake();
    }
}

impl WakeFlag {
    fn woken(&self) -> MutexGuard<'_, Waker> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a, F: Future> PolledOnWake<'a, F> {
    pub(crate) fn new(future: Pin<&'a mut F>) -> Self {
        let bell = Arc::new(WakeFlag {
            is_set: AtomicBool::new(true),
            task: Mutex::new(Waker::noop().clone()),
        });
        Self {
            future,
            waker: Arc::clone(&bell).into(),
            flag: bell,
            task: Waker::noop().clone(),
        }
    }

    /// Registers the task that the bell wakes.
    fn belongs_to(&mut self, task: &Waker) {
        if !self.task.will_wake(task) {
            self.task.clone_from(task);
            self.flag.woken().clone_from(task);
        }
    }
}

impl<F: Future> Future for PolledOnWake<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // Before the check: a later wake-up then wakes this task.
        self.belongs_to(context.waker());
        let has_rung = &self.flag.is_set;
        if !has_rung.load(Ordering::Acquire) || !has_rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let Self { future, waker, .. } = &mut *self;
        future.as_mut().poll(&mut Context::from_waker(waker))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn it_is_polled_when_it_was_woken_and_wakes_whoever_polled_last() {
        let (polls, heard) = (Cell::new(0), RefCell::new(None));
        let future = pin!(poll_fn(|context| {
            polls.set(polls.get() + 1);
            *heard.borrow_mut() = Some(context.waker().clone());
            match polls.get() {
                3 => Poll::Ready("came"),
                _ => Poll::Pending,
            }
        }));
        let mut seldom = PolledOnWake::new(future);
        let (one, other) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
        let woken = || (one.0.load(Ordering::SeqCst), other.0.load(Ordering::SeqCst));
        let mut poll = |task: &Arc<Woken>| {
            let task = Waker::from(Arc::clone(task));
            Pin::new(&mut seldom).poll(&mut Context::from_waker(&task))
        };
        let ring = || heard.borrow().clone().unwrap().wake();
        // Polled once, to register its waker, and then no more.
        for _ in 0..3 {
            assert_eq!((poll(&one), polls.get()), (Poll::Pending, 1));
        }
        ring();
        assert_eq!((woken(), polls.get()), ((1, 0), 1));
        assert_eq!((poll(&one), polls.get()), (Poll::Pending, 2));
        assert_eq!((poll(&other), polls.get()), (Poll::Pending, 2));
        ring();
        assert_eq!(woken(), (1, 1));
        assert_eq!(poll(&other), Poll::Ready("came"));
    }
}
