//! What a trial's reader must know besides its figures, as facts: who reports puts them into words.

use serde::{Deserialize, Serialize};

/// One of them. What it is about, and is recorded elsewhere in the trial, is not said again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Noted {
    /// The system was attached to, and is on whatever cores it is.
    NotPinned,
    /// The generator and the system share a core.
    SharedCore,
    /// Threads of the system had left its cores, and were put back before the ramp.
    PutBack {
        /// How many.
        threads: u64,
        /// The system's cores, such as `2-3`.
        cores: String,
    },
    /// The kernel made something else of a setting.
    KernelMade {
        /// The setting.
        name: String,
        /// As the study has it.
        wanted: String,
        /// As it was during the trial.
        in_force: String,
    },
    /// The latency of the cores was not the study's: another program wants less.
    LatencyAsked {
        /// The setting.
        name: String,
        /// As the study has it.
        wanted: String,
        /// As it was during the trial.
        in_force: String,
    },
    /// The load was driven by the agents that the trial's circumstances name.
    DrivenByAgents,
    /// The system ran on the machine of the agent that the trial's circumstances name.
    RanElsewhere {
        /// Its part of this name did; all of it unless said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<String>,
    },
    /// The system's agent found no process that listens there and that it may watch.
    NotWatched {
        /// Where users come to.
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
        /// Why the last of them is; empty where none came in time.
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
    /// The kernel does not tell how long the generator waited for a core.
    WaitsUnknown,
    /// The end of its time cut the sequence.
    SequenceCut {
        /// Sessions begun.
        begun: u64,
        /// Sessions planned.
        sessions: u64,
    },
    /// What became of requests that took long.
    RequestTimeout {
        /// The longest that one may take, in µs.
        after_us: u64,
        /// Whether such a step has a bound instead of times; it is an error otherwise.
        bounds: bool,
    },
    /// The study asks for a profile, and none could be taken.
    NotProfiled {
        /// Why.
        problem: String,
    },
    /// A newer version noted it, and this one can't say what it is.
    #[serde(other)]
    Newer,
}

impl Noted {
    /// The texts that somebody wrote, who may have written a secret. A part's name is none: the trial's
    /// circumstances have it as it is, and it is looked up there.
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
        let noted: Vec<Noted> = serde_json::from_str(written).unwrap();
        assert_eq!(noted, [Noted::SharedCore, Noted::Newer]);
    }
}
