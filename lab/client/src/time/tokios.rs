//! Time as tokio has it, for tests that have no engine.

use std::cell::RefCell;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::{Nanos, Time, Timer, nanos};

#[derive(Clone)]
pub(crate) struct TokioTime(Instant);

pub(crate) struct TokioTimer {
    zero: Instant,
    due: RefCell<Option<Pin<Box<Sleep>>>>,
}

impl TokioTime {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }
}

impl Time for TokioTime {
    type Timer = TokioTimer;

    fn now(&self) -> Nanos {
        nanos(self.0.elapsed())
    }

    fn timer(&self) -> TokioTimer {
        TokioTimer {
            zero: self.0,
            due: RefCell::default(),
        }
    }
}

impl Timer for TokioTimer {
    fn set(&self, due: Nanos) {
        let at = self.zero + Duration::from_nanos(due);
        *self.due.borrow_mut() = Some(Box::pin(sleep_until(at)));
    }

    fn poll_fired(&self, cx: &Context<'_>) -> Poll<()> {
        let mut due = self.due.borrow_mut();
        let sleep = due.as_mut().map(Pin::as_mut);
        let mut cx = Context::from_waker(cx.waker());
        sleep.map_or(Poll::Pending, |sleep| sleep.poll(&mut cx))
    }
}
