//! Where two trials that run at the same time wait for each other, so that their ramps begin together.
//! It knows no load.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab_host::clock::Stopwatch;

use crate::measuring::LOOK;
use crate::start::Stop;

/// The place, for the left trial and the right one.
#[derive(Debug)]
pub(crate) struct Meeting {
    sides: Mutex<[Stand; 2]>,
    changed: Condvar,
    watch: Stopwatch,
}

/// How far one of them is.
#[derive(Debug, Clone, Copy, Default)]
struct Stand {
    is_there: bool,
    /// It will not come.
    is_gone: bool,
    begun: Option<Duration>,
}

/// One of the two; when it is dropped, nobody waits for it any more.
#[derive(Debug)]
pub(crate) struct Seat<'m> {
    meeting: &'m Meeting,
    side: usize,
}

impl Meeting {
    pub(crate) fn new() -> Self {
        Self {
            sides: Mutex::default(),
            changed: Condvar::new(),
            watch: Stopwatch::start(),
        }
    }

    /// That of the left trial, and that of the right one.
    pub(crate) fn seats(&self) -> [Seat<'_>; 2] {
        [0, 1].map(|side| Seat {
            meeting: self,
            side,
        })
    }

    fn sides(&self) -> MutexGuard<'_, [Stand; 2]> {
        // Plain marks: nothing is half done in them.
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, side: usize, how: impl FnOnce(&mut Stand)) {
        how(&mut self.sides()[side]);
        self.changed.notify_all();
    }
}

impl Seat<'_> {
    pub(crate) fn is_left(&self) -> bool {
        self.side == 0
    }

    /// Waits until the other one is there, too, or will never be: how long its system takes to be set up
    /// is bounded elsewhere.
    pub(crate) fn meet(&self, is_given_up: impl Fn() -> bool) -> Result<(), Stop> {
        self.meeting.mark(self.side, |own| own.is_there = true);
        let mut sides = self.meeting.sides();
        loop {
            let other = sides[1 - self.side];
            if other.is_there || other.is_gone {
                return Ok(());
            }
            if is_given_up() {
                return Err(Stop::Interrupted);
            }
            let waited = self.meeting.changed.wait_timeout(sides, LOOK);
            sides = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Its ramp begins now.
    pub(crate) fn begin(&self) {
        let now = self.meeting.watch.elapsed();
        self.meeting.mark(self.side, |own| own.begun = Some(now));
    }

    /// How much later than the other's its ramp began, in ms; `None` where one of them never did.
    pub(crate) fn later_ms(&self) -> Option<f64> {
        let sides = self.meeting.sides();
        let ms = |side: usize| Some(sides[side].begun?.as_secs_f64() * 1e3);
        Some(ms(self.side)? - ms(1 - self.side)?)
    }
}

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.meeting.mark(self.side, |own| own.is_gone = true);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use lab_host::clock::pause;

    #[test]
    fn both_begin_once_both_are_there() {
        let meeting = Meeting::new();
        let [left, right] = meeting.seats();
        let late = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                left.meet(|| false).unwrap();
                assert!(late.load(Ordering::SeqCst), "it began alone");
                left.begin();
                left.later_ms()
            });
            while !meeting.sides()[0].is_there {
                pause(Duration::from_millis(1));
            }
            late.store(true, Ordering::SeqCst);
            right.meet(|| false).unwrap();
            right.begin();
            waiting.join().unwrap();
        });
        let (a, b) = (left.later_ms().unwrap(), right.later_ms().unwrap());
        assert!((a + b).abs() < 1e-9 && left.is_left() && !right.is_left());
    }

    #[test]
    fn nobody_waits_for_one_that_is_gone_or_when_it_is_given_up() {
        let meeting = Meeting::new();
        let [left, right] = meeting.seats();
        assert!(matches!(left.meet(|| true), Err(Stop::Interrupted)));
        drop(right);
        left.meet(|| true).unwrap();
        left.begin();
        assert_eq!(left.later_ms(), None);
    }
}
