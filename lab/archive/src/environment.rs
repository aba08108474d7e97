//! The environment of a trial: its starting state, the clocks, other programs,
//! and limits. Raw facts; values that change over time are in `monitor.csv`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The environment of a trial. Facts that could not be determined are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrialEnvironment {
    /// The state before the ramp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_state: Option<StartingState>,
    /// Two clocks over ramp and hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// The state of the machine before the system was started, and the time waited for an idle
    /// machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietGate>,
    /// Programs that are neither the lab nor the system, while the system started and was set up;
    /// the busiest three.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others_before: Vec<OtherProgram>,
    /// The same over ramp and hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others_during: Vec<OtherProgram>,
    /// Limits, and the highest use of each in ramp and hold.
    pub limits: LimitsReached,
    /// The agents that generated the load, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    /// The agent that ran the system, if the system ran on another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_agent: Option<Agent>,
    /// The environment of the system on that machine, over ramp and hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_host: Option<SystemHost>,
    /// Parts of the system on machines of their own, in starting order, without the part to which
    /// users connected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<SystemPart>,
}

impl TrialEnvironment {
    /// Returns the record of a part, and creates it if it is absent.
    pub fn part(&mut self, name: &str) -> &mut SystemPart {
        let at = self.parts.iter().position(|part| part.name == name);
        let at = at.unwrap_or_else(|| {
            self.parts.push(SystemPart {
                name: name.to_owned(),
                ..SystemPart::default()
            });
            self.parts.len() - 1
        });
        &mut self.parts[at]
    }
}

/// A part of a system on a machine of its own. Its counters are `NAME/system.*`, those of the machine `NAME/host.*`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemPart {
    /// The name of its last process.
    pub name: String,
    /// The agent that ran it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Its environment, over ramp and hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<SystemHost>,
    /// The state of its machine before the ramp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_state: Option<StartingState>,
}

/// The environment of a system on a remote machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemHost {
    /// The machine's cores.
    pub cores: u32,
    /// The cores that the system may use.
    pub system_cores: u32,
    /// Two clocks over ramp and hold.
    pub clocks: Clocks,
    /// Whether any process of the system was known there. If the server was not found, other programs are not
    /// listed, since the server would be one of them.
    pub knows_system: bool,
    /// Programs that are neither the agent nor the system, while the system started and was set up; the busiest
    /// three.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others_before: Vec<OtherProgram>,
    /// The same over ramp and hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others_during: Vec<OtherProgram>,
    /// Limits of the system and of that machine; those of the generator are absent.
    pub limits: LimitsReached,
}

impl Default for SystemHost {
    fn default() -> Self {
        Self {
            cores: 0,
            system_cores: 0,
            clocks: Clocks::default(),
            // Records without the field are of systems that were known.
            knows_system: true,
            others_before: Vec::new(),
            others_during: Vec::new(),
            limits: LimitsReached::default(),
        }
    }
}

/// A program that generated a part of the load, or ran the system, on any machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Its machine's name.
    pub host: String,
    /// Its program's version.
    pub version: String,
    /// Drawn by its machine's kernel at each start.
    pub boot_id: String,
    /// Its workers.
    pub workers: u32,
    /// Its part of the load, against the others' weights.
    pub weight: u32,
    /// The offset of its monotonic clock from the conductor's clock (positive if ahead), at the best
    /// measurement, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ms: Option<f64>,
    /// The maximum error of the offset at any time of the trial, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_ms: Option<f64>,
    /// The largest difference of two successive measurements of the offset beyond their bounds, ms.
    /// Clocks do not drift like that: one of them stood still, or was replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart_ms: Option<f64>,
    /// The drift of its clock against the conductor's clock, in millionths (positive if faster): the slope of the
    /// line through all measurements. `None` where the drift is smaller than the measurement error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
}

/// The wait for an idle machine before a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuietGate {
    /// Whether the machine was idle in the end; otherwise the maximum wait was over.
    pub quiet: bool,
    /// The time waited.
    pub waited_ms: u64,
    /// The disturbances at the last check, each in words with its limit; empty for an idle machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disturbed_by: Vec<String>,
    /// CPU that the hypervisor gave to others at the last check; 100 = all cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_percent: Option<f64>,
    /// CPU that other programs used at the last check; 100 = all cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// Time in which some task waited for memory at the last check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_pressure_percent: Option<f64>,
    /// Time in which some task waited for a disk at the last check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_pressure_percent: Option<f64>,
    /// Average number of requests that the disk had waiting or under way at the last check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_queue: Option<f64>,
}

/// The state that a trial began in. Trials of one cell should begin in the same one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartingState {
    /// Size of the files in the system's data folder, after setup.
    pub data_bytes: u64,
    /// The number of files.
    pub data_files: u64,
    /// `uname -r`.
    pub kernel_release: String,
    /// Kernel settings by name (`net.ipv4.tcp_rmem`, or a path): the settings that the study changes, and
    /// a fixed list of settings relevant to a server. Absent settings are skipped.
    pub kernel_settings: BTreeMap<String, String>,
    /// Hash of all of these, `blake3:…`.
    pub kernel_hash: String,
    /// Hash of the system's configuration (program, arguments, environment, files), `blake3:…`,
    /// without values that differ by trial in any case, such as a port.
    pub configuration_hash: String,
    /// Drawn by the kernel at each start of the machine.
    pub boot_id: String,
}

/// Two clocks, read together at both ends of ramp and hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Clocks {
    /// The calendar's clock at the start of the ramp, ms since 1970.
    pub wall_start_ms: i64,
    /// The calendar's clock at the end, ms since 1970.
    pub wall_end_ms: i64,
    /// The duration between the same two moments on the monotonic clock, ms. If the calendar's
    /// clock shows another duration, it was set or slewed, or the machine was suspended.
    pub monotonic_ms: f64,
}

/// CPU that a program used, all processes of its name together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OtherProgram {
    /// Its name, as `ps` shows it; at most 15 characters.
    pub name: String,
    /// 100 = one core.
    pub cpu_percent: f64,
}

/// Limits, and the highest use of each in ramp and hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsReached {
    /// Open files of the generator process that was nearest to its own limit, at that time. Earlier records
    /// have the sum over all processes against the limit of one; [`Used::is_sum`] detects some of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_open_files: Option<Used>,
    /// The same of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_open_files: Option<Used>,
    /// Open files of all processes of this machine, where the kernel limits them (`fs.file-max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_open_files: Option<Used>,
    /// Ports for outgoing connections of this machine. The number used is an upper bound: files
    /// that the generator opened for its load, and all connections that wait for their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Used>,
    /// Connections rejected by the full queue of a listener on this machine (`ListenOverflows`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_overflows: Option<u64>,
    /// Connections that any listener on this machine dropped (`ListenDrops`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen_drops: Option<u64>,
    /// CPU quota of the control groups that the generator is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_throttled: Option<Throttled>,
    /// CPU quota of the control groups that the system is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_throttled: Option<Throttled>,
    /// Times that a core lowered its frequency for heat (`core_throttle_count`), over all cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thermal_throttles: Option<u64>,
}

/// How much of a limit was used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Used {
    /// The maximum over all samples.
    pub most: u64,
    /// The limit.
    pub limit: u64,
}

impl Used {
    /// Returns true if the use can only be a sum over several processes, each with a limit of its own.
    #[must_use]
    pub fn is_sum(self) -> bool {
        self.most > self.limit
    }
}

/// The effect of a CPU quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Periods in which the quota ran out (`nr_throttled`).
    pub periods: u64,
    /// Time that its processes were throttled, over all cores.
    pub ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_says_nothing_of_it_is_of_a_system_that_was_known() {
        let host: SystemHost = serde_json::from_str("{}").unwrap();
        assert!(host.knows_system);
    }
}
