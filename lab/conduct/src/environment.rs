//! The environment of a trial, for its record: the initial state, clocks, other programs, and events at limits, on this
//! machine and on the system's. It judges nothing.

use lab_archive::{LimitsReached, StartingState, TrialEnvironment, Used};
use lab_machine::{HostReadings, ProgramSnapshot, used};
use lab_study::plan::Plan;
use lab_study::{KernelSetting, Secrets};

use crate::measuring::Peaks;
use crate::start::System;
use crate::stop::Stop;

/// The state at the start of a trial: the machine's report, with the hashes of its settings and of the system's.
pub(crate) fn starting_state(
    state: StartingState,
    system: &impl serde::Serialize,
    secrets: &Secrets,
) -> StartingState {
    StartingState {
        kernel_hash: hash(&(&state.kernel_release, &state.kernel_settings)),
        configuration_hash: match secrets.is_empty() {
            true => hash(system),
            false => hash(&secrets.without(serde_json::to_value(system).unwrap_or_default())),
        },
        ..state
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

/// The hash of its JSON.
fn hash(value: &impl serde::Serialize) -> String {
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    format!("blake3:{}", blake3::hash(&bytes).to_hex())
}

/// Readings at the start of the ramp; the others follow at the end of the hold.
#[derive(Debug)]
pub(crate) struct EnvironmentReadings(HostReadings);

impl EnvironmentReadings {
    /// Reads before the ramp; `before` is the snapshot before the system started.
    pub(crate) fn begin(before: &ProgramSnapshot, system: &mut System) -> Result<Self, Stop> {
        system.look_around()?;
        Ok(Self(HostReadings::begin(before, &system.processes())))
    }

    /// Reads after the hold, while the system still runs.
    pub(crate) fn end(
        self,
        system: &System,
        peaks: &Peaks,
        ports: u64,
        facts: &mut TrialEnvironment,
    ) {
        let here = self.0.end(&system.processes());
        facts.clocks = Some(here.clocks);
        facts.others_before = here.others_before;
        facts.others_during = here.others_during;
        // The agent of a remote host reports its listeners.
        let is_here = system.is_here();
        facts.limits = LimitsReached {
            generator_open_files: peaks.generator_files.map(used),
            system_open_files: peaks.system_files.map(used),
            machine_open_files: peaks.all_files.map(used),
            ports: of_limit(peaks.ports, Some(ports).filter(|ports| *ports < u64::MAX)),
            listen_overflows: here.limits.listen_overflows.filter(|_| is_here),
            listen_drops: here.limits.listen_drops.filter(|_| is_here),
            ..here.limits
        };
    }
}

/// The environment of a remote system, while it still runs.
pub(crate) fn read_remote(system: &mut System, facts: &mut TrialEnvironment) -> Result<(), Stop> {
    for (name, there) in system.parts.looked_around()? {
        facts.part(&name).host = there;
    }
    facts.system_host = system.looked_around()?;
    Ok(())
}

fn of_limit(most: Option<f64>, limit: Option<u64>) -> Option<Used> {
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
        assert_eq!(of_limit(None, Some(9)), None);
        let expected = Used { most: 3, limit: 9 };
        assert_eq!(of_limit(Some(3.0), Some(9)), Some(expected));
    }
}
