//! Wakes a worker at the earliest of its timers, with the kernel's timerfd. In tests of the schedule the simulation
//! sets the clock to the next alarm instead of waiting for it.
//!
//! It holds one time, and doesn't know the waiting task.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use lab_client::Nanos;

/// The alarm of one worker.
pub(crate) enum Alarm {
    Timerfd(AsyncFd<Descriptor>),
    #[cfg(test)]
    Simulated(std::rc::Rc<crate::simulation::time::Alarm>),
}

pub(crate) struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Alarm {
    /// Creates an alarm that is not set. Must be called within a tokio runtime, or within the simulation.
    #[expect(
        deprecated,
        reason = "the newer constructor is unsafe; what it asks holds: the descriptor is owned here \
                  and never exchanged"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        #[cfg(test)]
        if let Some(alarm) = crate::simulation::time::alarm() {
            return Ok(Self::Simulated(alarm));
        }
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let fd = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        let fd = AsyncFd::with_interest(Descriptor(fd), Interest::READABLE)?;
        Ok(Self::Timerfd(fd))
    }

    /// Sets the alarm to fire in `left`, in place of any earlier setting.
    pub(crate) fn set(&self, left: Nanos) -> io::Result<()> {
        match self {
            Self::Timerfd(fd) => {
                // Zero would disarm the timer.
                let left = TimeSpec::nanoseconds(i64::try_from(left.max(1)).unwrap_or(i64::MAX));
                let once = Expiration::OneShot(left);
                fd.get_ref().0.set(once, TimerSetTimeFlags::empty())?;
            }
            #[cfg(test)]
            Self::Simulated(alarm) => alarm.set(left),
        }
        Ok(())
    }

    /// Waits until the alarm fires.
    pub(crate) async fn rung(&self) -> io::Result<()> {
        match self {
            // The descriptor isn't read: setting it again also resets its readiness.
            Self::Timerfd(fd) => fd.readable().await?.clear_ready(),
            #[cfg(test)]
            Self::Simulated(alarm) => alarm.rung().await,
        }
        Ok(())
    }
}
