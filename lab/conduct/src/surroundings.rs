//! What surrounds a trial, as its record has it: the state it begins in, clocks, other programs, and what limits turned
//! away, on this machine and on the system's. It judges nothing.

use lab_archive::{
    Circumstances, Clocks, LimitsReached, OtherProgram, StartingState, SystemHost, Throttled, Used,
};
use lab_machine::{Look, State, Surrounded, Surroundings};
use lab_monitor::FilesUsed;
use lab_study::plan::Plan;
use lab_study::{KernelSetting, Secrets};

use crate::measuring::Peaks;
use crate::start::System;
use crate::stop::Stop;

/// The state that a trial begins in, as its machine tells it.
pub(crate) fn starting_state(
    state: State,
    system: &impl serde::Serialize,
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
    let all = plan.every_trial().flat_map(|trial| {
        let parts = trial.parts.iter().map(|part| &part.host);
        parts.chain([&trial.host]).flat_map(|host| &host.kernel)
    });
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

/// What is read when the ramp begins; the rest of it when the hold is over.
#[derive(Debug)]
pub(crate) struct Around(Surroundings);

impl Around {
    /// Reads before the ramp; `before` is the look before the system started.
    pub(crate) fn begin(before: &Look, system: &mut System) -> Result<Self, Stop> {
        system.look_around()?;
        Ok(Self(Surroundings::begin(before, &system.processes())))
    }

    /// Reads after the hold, while the system still runs.
    pub(crate) fn end(self, system: &System, peaks: &Peaks, ports: u64, facts: &mut Circumstances) {
        let here = self.0.end(&system.processes());
        facts.clocks = Some(clocks(&here));
        let limits = &mut facts.limits;
        limits.generator_open_files = peaks.generator_files.map(files);
        limits.system_open_files = peaks.system_files.map(files);
        limits.machine_open_files = peaks.all_files.map(files);
        limits.ports = used(peaks.ports, Some(ports).filter(|ports| *ports < u64::MAX));
        // Those of the machine that listens; of another one its agent tells.
        let is_here = system.is_here();
        limits.listen_overflows = here.listen_overflows.filter(|_| is_here);
        limits.listen_drops = here.listen_drops.filter(|_| is_here);
        limits.generator_throttled = here.own_throttled.map(throttled);
        limits.system_throttled = here.system_throttled.map(throttled);
        limits.thermal_throttles = here.thermal_throttles;
        facts.others_before = others(here.others_before);
        facts.others_during = others(here.others_during);
    }
}

/// What surrounded the system on its machine, while it still runs, where that is another one.
pub(crate) fn there(system: &mut System, facts: &mut Circumstances) -> Result<(), Stop> {
    for (name, there) in system.parts.looked_around()? {
        facts.part(&name).host = there.map(host);
    }
    facts.system_host = system.looked_around()?.map(host);
    Ok(())
}

/// What surrounded processes on another machine.
fn host(there: Surrounded) -> SystemHost {
    let files = |of: lab_machine::Files| Used {
        most: of.open,
        limit: of.limit,
    };
    SystemHost {
        cores: there.cores,
        system_cores: there.system_cores,
        clocks: clocks(&there),
        knows_system: there.knows_system,
        limits: LimitsReached {
            system_open_files: there.system_files.map(files),
            machine_open_files: there.all_files.map(files),
            listen_overflows: there.listen_overflows,
            listen_drops: there.listen_drops,
            system_throttled: there.system_throttled.map(throttled),
            thermal_throttles: there.thermal_throttles,
            ..LimitsReached::default()
        },
        others_before: others(there.others_before),
        others_during: others(there.others_during),
    }
}

fn clocks(around: &Surrounded) -> Clocks {
    Clocks {
        wall_start_ms: around.wall_start_ms,
        wall_end_ms: around.wall_end_ms,
        monotonic_ms: around.monotonic_ms,
    }
}

pub(crate) fn others(seen: Vec<lab_machine::Other>) -> Vec<OtherProgram> {
    let other = |one: lab_machine::Other| OtherProgram {
        name: one.name,
        cpu_percent: one.cpu_percent,
    };
    seen.into_iter().map(other).collect()
}

fn throttled(of: lab_machine::Throttled) -> Throttled {
    Throttled {
        periods: of.periods,
        ms: of.ms,
    }
}

fn files(of: FilesUsed) -> Used {
    Used {
        most: of.open,
        limit: of.limit,
    }
}

fn used(most: Option<f64>, limit: Option<u64>) -> Option<Used> {
    Some(Used {
        most: most? as u64,
        limit: limit?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_one_hash_and_another_has_another() {
        let at = |url: &str| {
            lab_study::SystemSpec::Attach(lab_study::AttachSpec {
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
        assert_eq!(used(None, Some(9)), None);
        assert_eq!(used(Some(3.0), Some(9)), Some(Used { most: 3, limit: 9 }));
    }
}
