//! The environment of a system on its machine: other programs, the wall clock, and events at limits. It reads at both
//! ends and subtracts; it judges nothing.

use std::path::Path;
use std::time::Duration;

use lab_archive::{Clocks, LimitsReached, OtherProgram, SystemHost, Throttled, Used};
use lab_host::clock::{Stopwatch, wall_ms};
use lab_host::machine;
use lab_monitor::{FilesUsed, ListenFailures, Programs, Roots, Throttling};

/// Most programs in a record.
const BUSIEST: usize = 3;

/// A snapshot of all programs, the baseline for their CPU time.
#[derive(Debug)]
pub struct ProgramSnapshot {
    programs: Programs,
    watch: Stopwatch,
}

impl ProgramSnapshot {
    /// Takes a snapshot.
    #[must_use]
    pub fn now() -> Self {
        Self {
            programs: Programs::look(&Roots::default()),
            watch: Stopwatch::start(),
        }
    }

    /// The busiest programs since `earlier`, except this program, its descendants, and the system.
    #[must_use]
    pub fn others_since(&self, earlier: &Self, system: &[u32]) -> Vec<OtherProgram> {
        let passed = earlier.watch.elapsed().saturating_sub(self.watch.elapsed());
        let own: Vec<u32> = system.iter().copied().chain([std::process::id()]).collect();
        let busiest = self
            .programs
            .busiest(&earlier.programs, passed, &own, BUSIEST);
        let other = |program: lab_monitor::Program| OtherProgram {
            name: program.name,
            cpu_percent: program.cpu_percent,
        };
        busiest.into_iter().map(other).collect()
    }
}

/// Readings at the start of the ramp; the others follow at the end of the hold.
#[derive(Debug)]
pub struct HostReadings {
    system: Option<u32>,
    others_before: Vec<OtherProgram>,
    programs: ProgramSnapshot,
    counts: Counts,
    wall_start_ms: i64,
    watch: Stopwatch,
}

/// Counters since the machine or the groups were made.
#[derive(Debug)]
struct Counts {
    listen: Option<ListenFailures>,
    own: Option<Throttling>,
    system: Option<Throttling>,
    thermal: Option<u64>,
}

impl Counts {
    fn read(system: Option<u32>) -> Self {
        let roots = Roots::default();
        let throttling = |pid| lab_monitor::throttling(&roots, pid);
        Self {
            listen: lab_monitor::listen_failures(&roots),
            own: throttling(std::process::id()),
            system: system.and_then(throttling),
            thermal: lab_monitor::thermal_throttles(&roots),
        }
    }
}

impl HostReadings {
    /// Reads before the ramp; `before` is the snapshot before the system started.
    #[must_use]
    pub fn begin(before: &ProgramSnapshot, system: &[u32]) -> Self {
        let look = ProgramSnapshot::now();
        // The first process of a daemon has ended; limits and groups are those of the remaining ones.
        let lives = |pid: &u32| Path::new("/proc").join(pid.to_string()).exists();
        let first = system.iter().copied().find(lives);
        Self {
            system: first,
            others_before: look.others_since(before, system),
            programs: look,
            counts: Counts::read(first),
            wall_start_ms: wall_ms(),
            watch: Stopwatch::start(),
        }
    }

    /// Reads after the hold, while the system still runs. Open files are absent: the reader of counters adds them.
    /// The generator's quota is that of this process.
    #[must_use]
    pub fn end(self, system: &[u32]) -> SystemHost {
        let monotonic = self.watch.elapsed();
        let cores = machine::cores_here();
        let wall_end_ms = wall_ms();
        let (before, now) = (self.counts, Counts::read(self.system));
        let listen = before.listen.zip(now.listen);
        let thermal = before.thermal.zip(now.thermal);
        SystemHost {
            cores,
            system_cores: cores,
            clocks: Clocks {
                wall_start_ms: self.wall_start_ms,
                wall_end_ms,
                monotonic_ms: monotonic.as_secs_f64() * 1e3,
            },
            knows_system: !system.is_empty(),
            others_before: self.others_before,
            others_during: ProgramSnapshot::now().others_since(&self.programs, system),
            limits: LimitsReached {
                listen_overflows: listen.map(|(b, n)| n.overflows.saturating_sub(b.overflows)),
                listen_drops: listen.map(|(b, n)| n.drops.saturating_sub(b.drops)),
                generator_throttled: throttled(before.own, now.own),
                system_throttled: throttled(before.system, now.system),
                thermal_throttles: thermal.map(|(b, n)| n.saturating_sub(b)),
                ..LimitsReached::default()
            },
        }
    }
}

/// Open files against their limit, as the archive records them.
#[must_use]
pub fn used(files: FilesUsed) -> Used {
    Used {
        most: files.open,
        limit: files.limit,
    }
}

fn throttled(before: Option<Throttling>, now: Option<Throttling>) -> Option<Throttled> {
    let (before, now) = before.zip(now)?;
    let held_back = Duration::from_micros(now.held_back_us.saturating_sub(before.held_back_us));
    Some(Throttled {
        periods: now.periods.saturating_sub(before.periods),
        ms: u64::try_from(held_back.as_millis()).unwrap_or(u64::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_at_either_end_is_unknown() {
        let some = Some(Throttling {
            periods: 5,
            held_back_us: 12_000,
        });
        let expected = Throttled { periods: 5, ms: 12 };
        assert_eq!(throttled(Some(Throttling::default()), some), Some(expected));
        assert_eq!(throttled(None, some), None);
    }

    #[test]
    fn the_first_process_that_lives_has_the_limits() {
        let (gone, own) = (4_194_304, std::process::id());
        let before = ProgramSnapshot::now();
        let begun = HostReadings::begin(&before, &[gone, own]);
        assert_eq!(begun.system, Some(own));
        let around = begun.end(&[gone, own]);
        assert!(
            around.cores > 0 && around.clocks.monotonic_ms >= 0.0,
            "{around:?}"
        );
        assert_eq!(HostReadings::begin(&before, &[gone]).system, None);
    }
}
