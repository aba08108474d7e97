//! What surrounds a trial: the state it begins in, clocks, other programs, and what limits turned
//! away. It reads at both ends and subtracts; it judges nothing.

use std::path::Path;
use std::time::Duration;

use lab_archive::{Circumstances, Clocks, OtherProgram, StartingState, Throttled, Used};
use lab_host::clock::{Stopwatch, wall_ms};
use lab_machine::State;
use lab_monitor::{ListenFailures, Programs, Roots, Throttling};
use lab_study::plan::Plan;
use lab_study::{KernelSetting, Secrets, SystemSpec};

use crate::measuring::Peaks;
use crate::start::System;

/// Programs that a record names.
const BUSIEST: usize = 3;
/// The state that a trial begins in, as its machine tells it.
pub(crate) fn starting_state(
    state: State,
    system: &SystemSpec,
    secrets: &Secrets,
) -> StartingState {
    let State {
        data_bytes,
        data_files,
        kernel_release,
        kernel_settings,
        boot_id,
    } = state;
    StartingState {
        data_bytes,
        data_files,
        kernel_hash: hash(&(&kernel_release, &kernel_settings)),
        kernel_release,
        kernel_settings,
        configuration_hash: match secrets.is_empty() {
            true => hash(system),
            false => hash(&secrets.without(serde_json::to_value(system).unwrap_or_default())),
        },
        boot_id,
    }
}

/// Settings that trials of a plan touch.
pub(crate) fn touched(plan: &Plan) -> Vec<KernelSetting> {
    let all = plan.every_trial().flat_map(|trial| &trial.host.kernel);
    let mut touched: Vec<KernelSetting> = all.cloned().collect();
    touched.sort();
    touched.dedup();
    touched
}

/// Of the JSON that it becomes.
fn hash(value: &impl serde::Serialize) -> String {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    format!("blake3:{}", blake3::hash(&bytes).to_hex())
}

/// A look at all programs, from which their CPU is counted.
#[derive(Debug)]
pub(crate) struct Look {
    programs: Programs,
    watch: Stopwatch,
}

impl Look {
    pub(crate) fn now() -> Self {
        Self {
            programs: Programs::look(&Roots::default()),
            watch: Stopwatch::start(),
        }
    }

    /// The busiest since `earlier` that are neither the lab, nor below it, nor the system.
    pub(crate) fn others_since(&self, earlier: &Self, system: &[u32]) -> Vec<OtherProgram> {
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

/// What is read when the ramp begins; the rest of it when the hold is over.
#[derive(Debug)]
pub(crate) struct Surroundings {
    system: Option<u32>,
    look: Look,
    counts: Counts,
    wall_start_ms: i64,
    watch: Stopwatch,
}

/// Counters since the machine or the groups were made.
#[derive(Debug)]
struct Counts {
    listen: Option<ListenFailures>,
    generator: Option<Throttling>,
    system: Option<Throttling>,
    thermal: Option<u64>,
}

impl Counts {
    fn read(system: Option<u32>) -> Self {
        let roots = Roots::default();
        let throttling = |pid| lab_monitor::throttling(&roots, pid);
        Self {
            listen: lab_monitor::listen_failures(&roots),
            generator: throttling(std::process::id()),
            system: system.and_then(throttling),
            thermal: lab_monitor::thermal_throttles(&roots),
        }
    }
}

impl Surroundings {
    /// Reads before the ramp; `before` is the look before the system started.
    pub(crate) fn begin(before: &Look, system: &System, facts: &mut Circumstances) -> Self {
        let look = Look::now();
        facts.others_before = look.others_since(before, &system.processes());
        // Of a daemon the first process is gone; limits and groups are those of what it left.
        let own = system
            .counted()
            .is_some_and(|counted| counted.hold.is_some());
        let lives = |pid: &u32| !own || Path::new("/proc").join(pid.to_string()).exists();
        let system = system.processes().into_iter().find(lives);
        Self {
            system,
            look,
            counts: Counts::read(system),
            wall_start_ms: wall_ms(),
            watch: Stopwatch::start(),
        }
    }

    /// Reads after the hold, while the system still runs.
    pub(crate) fn end(self, system: &System, peaks: &Peaks, ports: u64, facts: &mut Circumstances) {
        let monotonic = self.watch.elapsed();
        facts.clocks = Some(Clocks {
            wall_start_ms: self.wall_start_ms,
            wall_end_ms: wall_ms(),
            monotonic_ms: monotonic.as_secs_f64() * 1e3,
        });
        facts.others_during = Look::now().others_since(&self.look, &system.processes());
        let (before, now) = (self.counts, Counts::read(self.system));
        let limits = &mut facts.limits;
        let roots = Roots::default();
        let files = |most, pid| used(most, lab_monitor::open_files_limit(&roots, pid));
        limits.generator_open_files = files(peaks.generator_files, std::process::id());
        limits.system_open_files = self.system.and_then(|pid| files(peaks.system_files, pid));
        limits.ports = used(peaks.ports, Some(ports).filter(|ports| *ports < u64::MAX));
        // Those of the machine that listens; of another one its counters tell.
        let listen = before.listen.zip(now.listen).filter(|_| system.is_here());
        limits.listen_overflows = listen.map(|(b, n)| n.overflows.saturating_sub(b.overflows));
        limits.listen_drops = listen.map(|(b, n)| n.drops.saturating_sub(b.drops));
        limits.generator_throttled = throttled(before.generator, now.generator);
        limits.system_throttled = throttled(before.system, now.system);
        let thermal = before.thermal.zip(now.thermal);
        limits.thermal_throttles = thermal.map(|(b, n)| n.saturating_sub(b));
    }
}

fn used(most: Option<f64>, limit: Option<u64>) -> Option<Used> {
    Some(Used {
        most: most? as u64,
        limit: limit?,
    })
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
    fn a_configuration_has_one_hash_and_another_has_another() {
        let at = |url: &str| {
            SystemSpec::Attach(lab_study::AttachSpec {
                url: url.to_owned(),
                ..Default::default()
            })
        };
        let (plain, other) = (at("http://a"), at("http://b"));
        assert_eq!(hash(&plain), hash(&plain.clone()));
        assert_ne!(hash(&plain), hash(&other));
        assert!(hash(&plain).starts_with("blake3:"));
    }

    #[test]
    fn what_is_unknown_at_either_end_is_unknown() {
        let some = Some(Throttling {
            periods: 5,
            held_back_us: 12_000,
        });
        let expected = Throttled { periods: 5, ms: 12 };
        assert_eq!(throttled(Some(Throttling::default()), some), Some(expected));
        assert_eq!(throttled(None, some), None);
        assert_eq!(used(None, Some(9)), None);
        assert_eq!(used(Some(3.0), Some(9)), Some(Used { most: 3, limit: 9 }));
    }
}
