//! Time as a client sees it: a clock to read, and timers to set. The owner of the schedule provides both.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// A point or a span of time on a worker's clock, in nanoseconds.
pub type Nanos = u64;

/// A duration in nanoseconds, at most [`u64::MAX`].
#[must_use]
pub fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// A worker's clock, and the source of its timers. Cheap to clone.
pub trait Time: Clone + 'static {
    /// The type of its timers.
    type Timer: Timer + 'static;

    /// Returns the nanoseconds since the clock's 0.
    fn now(&self) -> Nanos;

    /// Returns a timer that is not set.
    fn timer(&self) -> Self::Timer;
}

/// One timer, of one task.
pub trait Timer {
    /// Sets the timer to fire at `due`, in place of any earlier setting.
    fn set(&self, due: Nanos);

    /// Returns ready once the timer has fired; otherwise the task is woken when it fires.
    fn poll_fired(&self, cx: &Context<'_>) -> Poll<()>;
}

/// Returns ready with `None` once the deadline has fired.
pub(crate) fn or_late<T>(
    deadline: &impl Timer,
    cx: &Context<'_>,
    found: Poll<T>,
) -> Poll<Option<T>> {
    match found {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => deadline.poll_fired(cx).map(|()| None),
    }
}

/// Returns the future's output, unless the deadline fires first.
pub(crate) async fn within<F: Future>(deadline: &impl Timer, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let found = future.as_mut().poll(cx);
        or_late(deadline, cx, found)
    })
    .await
}

#[cfg(test)]
pub(crate) mod tokios;
