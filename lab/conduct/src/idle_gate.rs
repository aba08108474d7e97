//! The wait for an idle machine before a trial. The limits of the study's checks define idle; the caller defines the
//! maximum wait.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_archive::QuietGate;
use lab_host::clock::{Stopwatch, pause};
use lab_machine::ProgramSnapshot;
use lab_monitor::quiet::{IdleGate, Limits, Next, Seen, Watch};
use lab_study::model::checks::{self, MEMORY_PRESSURE, OTHER_PROGRAMS, STOLEN_CPU};

use crate::event::Event;
use crate::record::whole_ms;

/// Duration of an observation.
const OBSERVATION: Duration = Duration::from_secs(1);
/// Interval between two checks of the interrupt.
const STEP: Duration = Duration::from_millis(100);
/// Limit of I/O pressure: before any load, tasks that wait for a disk are other programs' or remains of the last trial.
const IO_PRESSURE_PERCENT: f64 = 10.0;
/// Limit of the disk's queue, for the same reason.
const DISK_QUEUE: f64 = 1.0;

/// Maximum wait for an idle machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdleWait {
    /// Maximum before a trial; zero skips the observation.
    pub trial: Duration,
    /// Maximum over all trials of a run.
    pub run: Duration,
}

impl IdleWait {
    /// Observes nothing, and waits for nothing.
    pub const NONE: Self = Self {
        trial: Duration::ZERO,
        run: Duration::ZERO,
    };
}

impl Default for IdleWait {
    fn default() -> Self {
        Self {
            trial: Duration::from_secs(120),
            run: Duration::from_secs(15 * 60),
        }
    }
}

/// Half of the limits that would make a trial invalid, since a machine isn't quieter during a trial than before it.
pub(crate) fn limits(set: &checks::Limits) -> Limits {
    let half = |limit| set.of(limit).invalid / 2.0;
    Limits {
        steal_percent: half(&STOLEN_CPU),
        others_percent: half(&OTHER_PROGRAMS),
        run_queue_percent: f64::INFINITY,
        memory_pressure_percent: set.of(&MEMORY_PRESSURE).warn,
        io_pressure_percent: IO_PRESSURE_PERCENT,
        disk_queue: DISK_QUEUE,
    }
}

/// Waits until the machine is idle, at most `max_wait`, and emits the causes. `None` when it was interrupted.
pub(crate) fn wait(
    limits: &Limits,
    max_wait: Duration,
    folder: &Path,
    events: &mut dyn FnMut(Event),
    interrupt: &AtomicBool,
) -> Option<QuietGate> {
    let clock = Stopwatch::start();
    let mut watch = Watch::new(std::process::id(), Some(folder));
    let mut gate = IdleGate::new(max_wait);
    let (mut at, mut programs) = (clock.elapsed(), ProgramSnapshot::now());
    watch.look(at);
    loop {
        while clock.elapsed() < at + OBSERVATION {
            if interrupt.load(Ordering::Relaxed) {
                return None;
            }
            pause(STEP);
        }
        let now = clock.elapsed();
        let seen = watch.look(now);
        let disturbed_by = limits.disturbances(&seen);
        let next = gate.look(now.saturating_sub(at), disturbed_by.is_empty());
        at = now;
        if next != Next::Wait {
            return Some(facts(next == Next::Quiet, &gate, &seen, disturbed_by));
        }
        let look = ProgramSnapshot::now();
        events(Event::Waiting {
            disturbed_by,
            programs: look.others_since(&programs, &[]),
            left: gate.left(),
        });
        programs = look;
    }
}

fn facts(quiet: bool, gate: &IdleGate, seen: &Seen, disturbed_by: Vec<String>) -> QuietGate {
    QuietGate {
        quiet,
        waited_ms: whole_ms(gate.waited()),
        disturbed_by,
        steal_percent: seen.steal_percent,
        others_percent: seen.others_percent,
        memory_pressure_percent: seen.memory_pressure_percent,
        io_pressure_percent: seen.io_pressure_percent,
        disk_queue: seen.disk_queue,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_limits_of_a_study_say_what_is_quiet() {
        let usual = limits(&checks::Limits::default());
        assert_eq!((usual.steal_percent, usual.others_percent), (5.0, 10.0));
        let set = checks::Set {
            warn: None,
            invalid: Some(40.0),
        };
        let lenient = checks::Limits(BTreeMap::from([("other_programs".to_owned(), set)]));
        assert_eq!(limits(&lenient).others_percent, 20.0);
    }

    #[test]
    fn a_wait_is_told_and_ends_with_patience_or_an_interrupt() {
        let never_quiet = Limits {
            disk_queue: -1.0,
            others_percent: -1.0,
            ..limits(&checks::Limits::default())
        };
        let interrupt = AtomicBool::new(false);
        let mut told = 0;
        let mut tell = |event: Event| {
            told += 1;
            assert!(matches!(event, Event::Waiting { .. }), "{event:?}");
        };
        let max_wait = Duration::from_millis(500);
        let folder = Path::new("/tmp");
        let gate = wait(&never_quiet, max_wait, folder, &mut tell, &interrupt).unwrap();
        assert!(!gate.quiet && gate.waited_ms >= 500, "{gate:?}");
        assert!(!gate.disturbed_by.is_empty() && told == 1, "{gate:?}");
        interrupt.store(true, Ordering::Relaxed);
        assert_eq!(
            wait(&never_quiet, max_wait, folder, &mut |_| (), &interrupt),
            None
        );
    }
}
