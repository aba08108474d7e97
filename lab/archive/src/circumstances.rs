//! What surrounded a trial, besides its load: the state it began in, the clock, other programs,
//! and limits. Raw facts; what changes over time is in `monitor.csv`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What surrounded a trial. What was not found out is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Circumstances {
    /// What the trial began with, before its ramp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_state: Option<StartingState>,
    /// Two clocks over ramp and hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
    /// What was seen of the machine before the system was started, and how long a quiet one was waited
    /// for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet: Option<QuietGate>,
    /// Programs that are neither the lab nor the system, while the system started and was set up;
    /// the busiest three.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others_before: Vec<OtherProgram>,
    /// The same over ramp and hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others_during: Vec<OtherProgram>,
    /// Limits, and how near ramp and hold came to them.
    pub limits: LimitsReached,
    /// Who drove the load, where agents did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<Agent>,
    /// Who had the system, where that ran on another machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_agent: Option<Agent>,
    /// What surrounded the system on that machine, over ramp and hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_host: Option<SystemHost>,
    /// Parts of the system on machines of their own, in the order in which they were started; those that users came to
    /// are not among them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<SystemPart>,
}

impl Circumstances {
    /// What is recorded of a part; begun with its name.
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
    /// That of its last process.
    pub name: String,
    /// Who had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// What surrounded it, over ramp and hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<SystemHost>,
    /// What the trial began with there, before its ramp.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_state: Option<StartingState>,
}

/// What surrounded a system on a machine that did not conduct.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemHost {
    /// The machine's cores.
    pub cores: u32,
    /// Those that the system may use.
    pub system_cores: u32,
    /// Two clocks over ramp and hold.
    pub clocks: Clocks,
    /// Whether any process of the system was known there: of a server that was not found, no other programs are told,
    /// since it would be one of them.
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
            // Records that say nothing of it are of systems that were known.
            knows_system: true,
            others_before: Vec::new(),
            others_during: Vec::new(),
            limits: LimitsReached::default(),
        }
    }
}

/// A program that drove a part of the load, or had the system, wherever it ran.
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
    /// How much more its monotonic clock read than that of the machine that conducted, where that was
    /// known best, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset_ms: Option<f64>,
    /// The offset was off by no more, ms; the most at any time of the trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_ms: Option<f64>,
    /// What two measurements of the offset, one after the other, were apart beyond their bounds, ms; the
    /// most of the trial. Clocks do not part like that: one of them stood still, or was another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart_ms: Option<f64>,
    /// How much faster its clock went than that of the machine that conducted, in millionths: the slope of the
    /// line through all measurements. `None` where these say less than what is unknown of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_ppm: Option<f64>,
}

/// The wait for a quiet machine before a trial.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QuietGate {
    /// Whether the machine was quiet in the end; else patience was over.
    pub quiet: bool,
    /// How long it was waited for.
    pub waited_ms: u64,
    /// What disturbed at the last look, each in words with its limit; empty of a quiet machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disturbed_by: Vec<String>,
    /// CPU that the hypervisor gave to others at the last look; 100 = all cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_percent: Option<f64>,
    /// CPU that other programs used at the last look; 100 = all cores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
    /// Time in which some task waited for memory at the last look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_pressure_percent: Option<f64>,
    /// Time in which some task waited for a disk at the last look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_pressure_percent: Option<f64>,
    /// Requests that the disk had waiting or under way at the last look, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_queue: Option<f64>,
}

/// The state that a trial began in. Trials of one cell should begin in the same one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartingState {
    /// Size of the files in the system's data folder, after setup.
    pub data_bytes: u64,
    /// How many files those are.
    pub data_files: u64,
    /// `uname -r`.
    pub kernel_release: String,
    /// Kernel settings by name (`net.ipv4.tcp_rmem`, or a path): those that the study touches, and
    /// a fixed list of those that matter to a server. Settings that are not there are left out.
    pub kernel_settings: BTreeMap<String, String>,
    /// Hash of all of these, `blake3:…`.
    pub kernel_hash: String,
    /// Hash of the system's configuration (program, arguments, environment, files), `blake3:…`;
    /// what differs by trial in any case, such as a port, is not in it.
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
    /// What the monotonic clock counted between the same two moments, ms. Where the calendar's
    /// clock counted otherwise, it was set or slewed, or the machine was suspended.
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

/// Limits, and how near ramp and hold came to them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitsReached {
    /// Open files of the generator: those of the process that came nearest its own limit, when it did. Records of
    /// before have the sum over all its processes against the limit of one, as [`Used::is_sum`] tells of some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_open_files: Option<Used>,
    /// The same of the system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_open_files: Option<Used>,
    /// Open files of all processes of this machine, where the kernel limits them (`fs.file-max`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_open_files: Option<Used>,
    /// Ports for outgoing connections of this machine. The number used is an upper bound: files
    /// that the generator opened for its load, and connections of all that wait for their end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Used>,
    /// Connections that a full queue of a listener on this machine turned away (`ListenOverflows`).
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
    /// The most at any sample.
    pub most: u64,
    /// The limit.
    pub limit: u64,
}

impl Used {
    /// Whether it can only be what several had, each under a limit of its own.
    #[must_use]
    pub fn is_sum(self) -> bool {
        self.most > self.limit
    }
}

/// What a CPU quota took away.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// Periods in which the quota ran out (`nr_throttled`).
    pub periods: u64,
    /// Time that its processes were held back, over all cores.
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
