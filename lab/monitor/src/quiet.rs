//! Checks whether a machine is idle, and controls the wait for it. It reads no clock and does not sleep:
//! the caller does both.

use std::path::Path;
use std::time::Duration;

use crate::{Monitor, MonitorSpec, Roots, thermal_throttles};

/// Successive looks that must be idle after a disturbance: a pause between two disturbances doesn't count.
const IN_A_ROW: u32 = 3;
/// The name of the own processes in the monitor's columns.
const OWN: &str = "own";

/// Activity of the machine between two looks, without the own processes; `None` where the kernel has no data.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seen {
    /// CPU that the hypervisor gave to others; 100 = all cores.
    pub steal_percent: Option<f64>,
    /// CPU that other programs used; 100 = all cores.
    pub others_percent: Option<f64>,
    /// Time in which the own threads were runnable without a core; 100 = one thread all the time.
    pub run_queue_percent: Option<f64>,
    /// Time in which some task waited for memory.
    pub memory_pressure_percent: Option<f64>,
    /// Time in which some task waited for a disk.
    pub io_pressure_percent: Option<f64>,
    /// Requests that the disk had waiting or under way, on average.
    pub disk_queue: Option<f64>,
    /// Times that a core lowered its frequency for heat.
    pub throttles: Option<f64>,
}

/// Up to how much of each a machine is quiet, in the units of [`Seen`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Limit of [`Seen::steal_percent`].
    pub steal_percent: f64,
    /// Limit of [`Seen::others_percent`].
    pub others_percent: f64,
    /// Limit of [`Seen::run_queue_percent`].
    pub run_queue_percent: f64,
    /// Limit of [`Seen::memory_pressure_percent`].
    pub memory_pressure_percent: f64,
    /// Limit of [`Seen::io_pressure_percent`].
    pub io_pressure_percent: f64,
    /// Limit of [`Seen::disk_queue`].
    pub disk_queue: f64,
}

impl Limits {
    /// Returns the exceeded limits, each in words: `other programs use 31 % of all cores (quiet: 10 %)`.
    #[must_use]
    pub fn disturbances(&self, seen: &Seen) -> Vec<String> {
        let of_cores = |what: &str, found: f64, limit: f64| {
            format!("{what} {found:.0} % of all cores (quiet: {limit} %)")
        };
        let of_time = |what: &str, found: f64, limit: f64| {
            format!("{what} {found:.0} % of the time (quiet: {limit} %)")
        };
        let over = |found: Option<f64>, limit: f64| {
            found
                .filter(|found| *found > limit)
                .map(|found| (found, limit))
        };
        let steal = over(seen.steal_percent, self.steal_percent);
        let others = over(seen.others_percent, self.others_percent);
        let queued = over(seen.run_queue_percent, self.run_queue_percent);
        let memory = over(seen.memory_pressure_percent, self.memory_pressure_percent);
        let io = over(seen.io_pressure_percent, self.io_pressure_percent);
        let disk = over(seen.disk_queue, self.disk_queue);
        let heat = over(seen.throttles, 0.0);
        [
            steal.map(|(n, limit)| of_cores("the hypervisor takes", n, limit)),
            others.map(|(n, limit)| of_cores("other programs use", n, limit)),
            queued.map(|(n, limit)| of_time("own threads wait for a core", n, limit)),
            memory.map(|(n, limit)| of_time("tasks wait for memory", n, limit)),
            io.map(|(n, limit)| of_time("tasks wait for a disk", n, limit)),
            disk.map(|(n, limit)| format!("{n:.1} requests wait for the disk (quiet: {limit})")),
            heat.map(|(n, _)| format!("cores lowered their frequency for heat {n:.0} times")),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// Looks at a machine now and then.
#[derive(Debug)]
pub struct Watch {
    monitor: Monitor,
    roots: Roots,
    throttles: Option<u64>,
}

impl Watch {
    /// Excludes process `own` and its descendants; the disk is the one under `folder`.
    #[must_use]
    pub fn new(own: u32, folder: Option<&Path>) -> Self {
        let spec = MonitorSpec {
            processes: vec![(OWN.to_owned(), own)],
            data_dir: folder.map(Path::to_path_buf),
            ..MonitorSpec::default()
        };
        Self {
            monitor: Monitor::new(&spec),
            roots: spec.roots,
            throttles: None,
        }
    }

    /// Returns the activity since the last look; the first look only stores values. `now` is on any clock that
    /// doesn't step.
    pub fn look(&mut self, now: Duration) -> Seen {
        let values = self.monitor.sample(now);
        let of = |name: &str| {
            let at = self.monitor.columns().iter().position(|one| one == name);
            at.and_then(|at| values[at])
        };
        let throttles = thermal_throttles(&self.roots);
        let since = self.throttles.zip(throttles);
        self.throttles = throttles;
        Seen {
            steal_percent: of("host.cpu_steal_percent"),
            others_percent: of("host.cpu_others_percent"),
            run_queue_percent: of(&format!("{OWN}.run_queue_percent")),
            memory_pressure_percent: of("host.pressure_memory_some_percent"),
            io_pressure_percent: of("host.pressure_io_some_percent"),
            disk_queue: of("host.disk_queue_length"),
            throttles: since.map(|(before, now)| now.saturating_sub(before) as f64),
        }
    }
}

/// The action after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Begin: the machine is quiet.
    Quiet,
    /// Begin despite the disturbance: the maximum wait is over.
    Unquiet,
    /// Look again.
    Wait,
}

/// Waits for an idle period, up to a maximum. A machine that is idle at the first look is accepted;
/// otherwise it must be idle three times in a row.
#[derive(Debug, Clone, Copy)]
pub struct IdleGate {
    max_wait: Duration,
    waited: Duration,
    looks: u32,
    in_a_row: u32,
    disturbed: bool,
}

impl IdleGate {
    /// With a maximum wait of 0, the first look is the last.
    #[must_use]
    pub fn new(max_wait: Duration) -> Self {
        Self {
            max_wait,
            waited: Duration::ZERO,
            looks: 0,
            in_a_row: 0,
            disturbed: false,
        }
    }

    /// Records a look of this duration.
    pub fn look(&mut self, lasted: Duration, is_quiet: bool) -> Next {
        self.looks += 1;
        self.in_a_row = if is_quiet { self.in_a_row + 1 } else { 0 };
        self.disturbed |= !is_quiet;
        // The first look is not a wait: it happens in any case.
        if self.looks > 1 {
            self.waited += lasted;
        }
        if is_quiet && (!self.disturbed || self.in_a_row >= IN_A_ROW) {
            Next::Quiet
        } else if self.waited >= self.max_wait {
            Next::Unquiet
        } else {
            Next::Wait
        }
    }

    /// The time waited, without the first look.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// The maximum remaining wait.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.max_wait.saturating_sub(self.waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        steal_percent: 5.0,
        others_percent: 10.0,
        run_queue_percent: f64::INFINITY,
        memory_pressure_percent: 1.0,
        io_pressure_percent: 10.0,
        disk_queue: 1.0,
    };

    #[test]
    fn what_disturbs_is_said_with_its_limit_and_the_unknown_disturbs_nobody() {
        assert!(LIMITS.disturbances(&Seen::default()).is_empty());
        let near = Seen {
            steal_percent: Some(5.0),
            others_percent: Some(9.9),
            run_queue_percent: Some(900.0),
            throttles: Some(0.0),
            ..Seen::default()
        };
        assert!(LIMITS.disturbances(&near).is_empty());
        let loud = Seen {
            steal_percent: Some(6.0),
            others_percent: Some(31.2),
            run_queue_percent: None,
            memory_pressure_percent: Some(2.0),
            io_pressure_percent: Some(40.0),
            disk_queue: Some(3.25),
            throttles: Some(4.0),
        };
        let said = [
            "the hypervisor takes 6 % of all cores (quiet: 5 %)",
            "other programs use 31 % of all cores (quiet: 10 %)",
            "tasks wait for memory 2 % of the time (quiet: 1 %)",
            "tasks wait for a disk 40 % of the time (quiet: 10 %)",
            "3.2 requests wait for the disk (quiet: 1)",
            "cores lowered their frequency for heat 4 times",
        ];
        assert_eq!(LIMITS.disturbances(&loud), said);
    }

    /// Returns the outcome of looks of a second each, and their number.
    fn after(patience_s: u64, looks: impl IntoIterator<Item = bool>) -> (Next, usize, Duration) {
        let mut gate = IdleGate::new(Duration::from_secs(patience_s));
        let mut number = 0;
        for is_quiet in looks {
            number += 1;
            let next = gate.look(Duration::from_secs(1), is_quiet);
            if next != Next::Wait {
                return (next, number, gate.waited());
            }
        }
        (Next::Wait, number, gate.waited())
    }

    #[test]
    fn a_quiet_machine_costs_one_look_and_a_loud_one_all_patience() {
        let secs = Duration::from_secs;
        assert_eq!(after(120, [true]), (Next::Quiet, 1, secs(0)));
        assert_eq!(after(120, [false; 500]), (Next::Unquiet, 121, secs(120)));
        assert_eq!(after(0, [false; 500]), (Next::Unquiet, 1, secs(0)));
        assert_eq!(after(0, [true; 500]), (Next::Quiet, 1, secs(0)));
    }

    #[test]
    fn a_pause_between_two_disturbances_is_no_quiet_stretch() {
        let looks = [false, true, true, false, true, true, true];
        let (next, number, waited) = after(120, looks);
        assert_eq!((next, number), (Next::Quiet, 7));
        assert_eq!(waited, Duration::from_secs(6));
        let every_other = (0..500).map(|n| n % 2 == 1);
        assert_eq!(after(20, every_other).0, Next::Unquiet);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let mut watch = Watch::new(std::process::id(), Some(Path::new("/tmp")));
        assert_eq!(watch.look(Duration::ZERO).others_percent, None);
        let seen = watch.look(Duration::from_secs(1));
        // Every disturbance is described in words.
        let said = LIMITS.disturbances(&seen);
        assert!(said.iter().all(|text| !text.is_empty()), "{said:?}");
    }
}
