//! How a trial's system was sampled for its profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the call stacks of user code are unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Frames {
    /// By the frame pointers that the code keeps.
    Pointers,
    /// By copies of the stacks and the unwind tables of the files.
    Copies,
}

/// How the profile `cpu.pb.gz` of a trial was recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profiled {
    /// The mean number of samples per second of a core.
    pub rate: f64,
    /// How stacks were unwound.
    pub frames: Frames,
    /// The number of cores that were sampled.
    pub cores: u32,
    /// Samples of the system.
    pub samples: u64,
    /// The expected number of samples: the system's CPU time × the rate.
    pub expected: f64,
    /// Records that the kernel dropped, of all programs on these cores.
    pub lost: u64,
    /// The number of times the kernel paused sampling to save CPU time.
    pub throttled: u64,
    /// Records that were read, of all programs on these cores; the kernel dropped `lost` more.
    #[serde(default)]
    pub records: u64,
    /// Samples whose stacks reach the start of their thread.
    pub whole: u64,
    /// Samples whose innermost function has a name.
    pub named: u64,
    /// Samples whose stacks were dropped because there were too many different ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub other_samples: u64,
    /// The CPU time of the system while it was sampled, in ms.
    pub cpu_ms: f64,
    /// The seconds of the trial's clock without sampling, for comparison.
    pub off_seconds: Vec<u32>,
    /// CPU time with and without sampling, by block of the hold.
    pub blocks: Vec<SampledBlock>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A part of the hold, one sixth of which was not sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SampledBlock {
    /// The start of the block on the trial's clock, in ms.
    pub from_ms: f64,
    /// The start of the part without sampling on the trial's clock, in ms.
    pub off_from_ms: f64,
    /// The time with sampling, in ms.
    pub on_ms: f64,
    /// The CPU time of the system during `on_ms`, in ms.
    pub on_cpu_ms: f64,
    /// The time without sampling, in ms.
    pub off_ms: f64,
    /// The CPU time of the system during `off_ms`, in ms.
    pub off_cpu_ms: f64,
}

/// How the waits of a trial's system were recorded, in `waits.pb.gz`, `threads.csv`, and `latency.hlog`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waited {
    /// The level of the recording. 0: time on the CPU and without a core; 1: and the kernel functions that threads
    /// sleep in; 3: and the stacks of switches.
    pub level: u8,
    /// Switches of the system's threads that were recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub switches: u64,
    /// Intervals off the CPU whose stack was recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stacks: u64,
    /// Intervals off the CPU whose end was recorded: when the thread was woken, and by which code.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wakings: u64,
    /// The sampling interval of stacks at the end of the hold: one of this many switches had its stack recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub one_of: u64,
    /// The time in which switches were recorded, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_ms: Option<f64>,
    /// Slices of a tenth of a second in which switches were recorded; present if there were too many to record all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<u64>,
    /// Records that the kernel dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// The CPU time of the threads while the system was sampled, as the scheduler counts it, in ms.
    pub on_cpu_ms: f64,
    /// The same CPU time from the records of switches, in ms; present if all were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_on_cpu_ms: Option<f64>,
    /// What was not recorded, and why, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
