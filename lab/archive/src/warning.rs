//! Warnings about a trial besides its figures, as facts; the reports put them into words.

use serde::{Deserialize, Serialize};

/// A warning. It does not repeat facts that are recorded elsewhere in the trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Warning {
    /// The system was attached to, so its cores were not chosen by the lab.
    NotPinned,
    /// The generator and the system share a core.
    SharedCore,
    /// Threads of the system had left its cores, and were moved back before the ramp.
    PutBack {
        /// How many.
        threads: u64,
        /// The system's cores, such as `2-3`.
        cores: String,
    },
    /// The kernel changed the value of a setting.
    KernelMade {
        /// The setting.
        name: String,
        /// As the study has it.
        wanted: String,
        /// As it was during the trial.
        in_force: String,
    },
    /// The latency of the cores was not the study's: another program requests less.
    LatencyAsked {
        /// The setting.
        name: String,
        /// As the study has it.
        wanted: String,
        /// As it was during the trial.
        in_force: String,
    },
    /// The agents in the trial's circumstances generated the load.
    DrivenByAgents,
    /// The system ran on the machine of the agent in the trial's circumstances.
    RanElsewhere {
        /// The name of its part; `None` for the whole system.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<String>,
    },
    /// The system's agent found no process that listens there and that it may watch.
    NotWatched {
        /// The port that users connect to.
        port: u16,
    },
    /// Answers of the system's node_exporter are missing.
    ExporterMissed {
        /// Its host and port.
        server: String,
        /// How often it was asked.
        asked: u64,
        /// How many answers are missing.
        missing: u64,
        /// The reason for the last missing answer; empty for a timeout.
        problem: String,
    },
    /// The hold was too short to judge the generator by its CPU.
    HoldTooShort,
    /// The generator's CPU was read over too little of the hold to judge it by.
    HardlyRead {
        /// From the first to the last reading.
        read_ms: u64,
        /// Length of the hold.
        held_ms: u64,
    },
    /// The kernel does not report how long the generator waited for a core.
    WaitsUnknown,
    /// The sequence was truncated at its deadline.
    SequenceCut {
        /// Sessions begun.
        begun: u64,
        /// Sessions planned.
        sessions: u64,
    },
    /// How requests beyond the timeout were counted.
    RequestTimeout {
        /// The timeout of a request, in µs.
        after_us: u64,
        /// Whether such a step has a bound instead of times; otherwise the request is an error.
        bounds: bool,
    },
    /// The study asks for a profile, and none could be recorded.
    NotProfiled {
        /// Why.
        problem: String,
    },
    /// The script failed the test (`test.fail`).
    TestFailed {
        /// The reason that it gave first.
        reason: String,
    },
    /// Values of a check or a metric of the script are in no figure of it: they don't fit, or its name was unknown
    /// before the trial.
    NotCounted {
        /// The name; of a check, with the prefix `check: `.
        name: String,
        /// How many.
        values: u64,
    },
    /// A warning of a newer version, unknown to this one.
    #[serde(other)]
    Newer,
}

impl Warning {
    /// Returns the texts written by users or other programs, which may contain a secret. A part's name is excluded: the
    /// trial's circumstances have it unmasked, and it is looked up there.
    pub fn texts(&mut self) -> Vec<&mut String> {
        match self {
            Self::KernelMade {
                name,
                wanted,
                in_force,
            }
            | Self::LatencyAsked {
                name,
                wanted,
                in_force,
            } => vec![name, wanted, in_force],
            Self::ExporterMissed {
                server, problem, ..
            } => vec![server, problem],
            Self::NotProfiled { problem } => vec![problem],
            Self::TestFailed { reason } => vec![reason],
            Self::NotCounted { name, .. } => vec![name],
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_newer_version_noted_does_not_end_the_reading() {
        let written = r#"[{"what":"shared_core"},{"what":"full_moon","phase":[1,{"x":2}]}]"#;
        let noted: Vec<Warning> = serde_json::from_str(written).unwrap();
        assert_eq!(noted, [Warning::SharedCore, Warning::Newer]);
    }
}
