//! The barrier of two trials that run at the same time: their ramps start together, and their generators swap cores
//! meanwhile. It knows no load.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lab_archive::Pinning;
use lab_host::clock::Stopwatch;
use lab_host::cores;

use crate::measuring::EVENT_WAIT;
use crate::stop::Stop;

/// The interval of swaps: two within the shortest windows that are compared. A swap takes some system calls for a
/// handful of threads.
const SWAP_INTERVAL: Duration = Duration::from_millis(200);

/// The barrier, for the left trial and the right one.
#[derive(Debug)]
pub(crate) struct Barrier {
    sides: Mutex<[SlotState; 2]>,
    changed: Condvar,
    watch: Stopwatch,
}

/// The state of one trial.
#[derive(Debug, Clone, Copy, Default)]
struct SlotState {
    has_arrived: bool,
    /// It will not arrive.
    is_gone: bool,
    begun: Option<Duration>,
    /// The process of its generator, while it may be moved.
    generator: Option<u32>,
    /// Number of moves.
    swaps: u32,
}

/// The slot of one trial; dropped, the other trial no longer waits for it.
#[derive(Debug)]
pub(crate) struct Slot<'m> {
    barrier: &'m Barrier,
    side: usize,
}

impl Barrier {
    pub(crate) fn new() -> Self {
        Self {
            sides: Mutex::default(),
            changed: Condvar::new(),
            watch: Stopwatch::start(),
        }
    }

    /// The slots of the left and the right trial.
    pub(crate) fn slots(&self) -> [Slot<'_>; 2] {
        [0, 1].map(|side| Slot {
            barrier: self,
            side,
        })
    }

    /// Swaps the cores of both generators periodically, until one trial is gone. A system's threads stay near the
    /// thread that wakes them: without swaps either pair would have a core for seconds, and a disturbance of that core
    /// would affect one alone.
    pub(crate) fn swap_cores(&self, halves: &[Pinning; 2]) {
        let mut exchanged = false;
        loop {
            let waited = self
                .changed
                .wait_timeout_while(self.sides(), SWAP_INTERVAL, |sides| {
                    sides.iter().all(|side| !side.is_gone)
                });
            let (mut sides, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            if !waited.timed_out() {
                return;
            }
            let [Some(left), Some(right)] = sides.each_ref().map(|side| side.generator) else {
                continue;
            };
            exchanged = !exchanged;
            let [first, second] = if exchanged {
                [right, left]
            } else {
                [left, right]
            };
            let put = |process, half: &Pinning| cores::put_on(process, &half.generator);
            // If one has just ended, or may not be moved, the other stays on its intended cores.
            let both = put(first, &halves[0]).and_then(|()| put(second, &halves[1]));
            if both.is_ok() {
                for side in sides.iter_mut() {
                    side.swaps += 1;
                }
            }
        }
    }

    fn sides(&self) -> MutexGuard<'_, [SlotState; 2]> {
        // Plain flags: no update of them is ever incomplete.
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self, side: usize, how: impl FnOnce(&mut SlotState)) {
        how(&mut self.sides()[side]);
        self.changed.notify_all();
    }
}

impl Slot<'_> {
    pub(crate) fn is_left(&self) -> bool {
        self.side == 0
    }

    /// Waits until the other trial has arrived, or is gone: the setup time of its system is bounded elsewhere.
    pub(crate) fn meet(&self, is_given_up: impl Fn() -> bool) -> Result<(), Stop> {
        self.barrier.mark(self.side, |own| own.has_arrived = true);
        let mut sides = self.barrier.sides();
        loop {
            let other = sides[1 - self.side];
            if other.has_arrived || other.is_gone {
                return Ok(());
            }
            if is_given_up() {
                return Err(Stop::Interrupted);
            }
            let waited = self.barrier.changed.wait_timeout(sides, EVENT_WAIT);
            sides = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sets the process of its generator, which is moved from now on; with `None`, it stays.
    pub(crate) fn change_places(&self, generator: Option<u32>) {
        self.barrier
            .mark(self.side, |own| own.generator = generator);
    }

    /// The number of its moves.
    pub(crate) fn swaps(&self) -> u32 {
        self.barrier.sides()[self.side].swaps
    }

    /// Records the start of its ramp.
    pub(crate) fn begin(&self) {
        let now = self.barrier.watch.elapsed();
        self.barrier.mark(self.side, |own| own.begun = Some(now));
    }

    /// The delay of its ramp after the other's, in ms; `None` if one of them never started.
    pub(crate) fn later_ms(&self) -> Option<f64> {
        let sides = self.barrier.sides();
        let ms = |side: usize| Some(sides[side].begun?.as_secs_f64() * 1e3);
        Some(ms(self.side)? - ms(1 - self.side)?)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.barrier.mark(self.side, |own| own.is_gone = true);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use lab_host::clock::pause;

    #[test]
    fn both_begin_once_both_are_there() {
        let barrier = Barrier::new();
        let [left, right] = barrier.slots();
        let late = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| {
                left.meet(|| false).unwrap();
                assert!(late.load(Ordering::SeqCst), "it began alone");
                left.begin();
                left.later_ms()
            });
            while !barrier.sides()[0].has_arrived {
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

    /// Two processes in the place of generators: each is on either half in turn, never both on the same, and no move
    /// follows once one of them is gone.
    #[test]
    fn generators_change_places_until_one_is_gone() {
        let all = cores::allowed().unwrap();
        let [Some(first), Some(last)] = [all.first(), all.last()] else {
            panic!("no core")
        };
        let half = |core: &u32| Pinning {
            generator: vec![*core],
            system: vec![*core],
            shared: true,
        };
        let halves = [half(first), half(last)];
        let mut sleepers = [0; 2].map(|_| {
            let mut command = std::process::Command::new("sleep");
            command.arg("600").spawn().unwrap()
        });
        let barrier = Barrier::new();
        let slots = barrier.slots();
        std::thread::scope(|scope| {
            let changing = scope.spawn(|| barrier.swap_cores(&halves));
            for (slot, sleeper) in slots.iter().zip(&sleepers) {
                assert_eq!(slot.swaps(), 0);
                slot.change_places(Some(sleeper.id()));
            }
            while slots[0].swaps() < 3 {
                pause(Duration::from_millis(1));
            }
            let [left, right] = slots;
            // It is not moved from here on.
            left.change_places(None);
            let (count, places) = (left.swaps(), sleepers.each_ref().map(|one| place(one.id())));
            assert_eq!(count, right.swaps());
            let expected = match count % 2 {
                0 => [*first, *last],
                _ => [*last, *first],
            };
            assert_eq!(places, expected.map(|core| core.to_string()));
            drop(right);
            changing.join().unwrap();
            assert_eq!(left.swaps(), count);
        });
        for sleeper in &mut sleepers {
            sleeper.kill().unwrap();
            sleeper.wait().unwrap();
        }
    }

    /// The cores that a process may use, as the kernel reports them.
    fn place(process: u32) -> String {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let mut lines = status.lines();
        let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.unwrap().trim().to_owned()
    }

    #[test]
    fn nobody_waits_for_one_that_is_gone_or_when_it_is_given_up() {
        let barrier = Barrier::new();
        let [left, right] = barrier.slots();
        assert!(matches!(left.meet(|| true), Err(Stop::Interrupted)));
        drop(right);
        left.meet(|| true).unwrap();
        left.begin();
        assert_eq!(left.later_ms(), None);
    }
}
