//! How a trial's system was sampled for its profile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How call stacks of user code are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Frames {
    /// By the frame pointers that the code keeps.
    Pointers,
    /// By copies of the stacks and the unwind tables of the files.
    Copies,
}

/// How the profile `cpu.pb.gz` of a trial was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profiled {
    /// Samples a second of a core, on average.
    pub rate: f64,
    /// How stacks were found.
    pub frames: Frames,
    /// Cores that were sampled.
    pub cores: u32,
    /// Samples of the system.
    pub samples: u64,
    /// The expected number of samples: the system's CPU time × the rate.
    pub expected: f64,
    /// Records that the kernel dropped, of all programs on these cores.
    pub lost: u64,
    /// Times that the kernel held sampling up to save CPU time.
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
    /// CPU time of the system while it was sampled.
    pub cpu_ms: f64,
    /// Seconds of the trial's clock in which it wasn't sampled, for comparison.
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
    /// When it began, on the trial's clock.
    pub from_ms: f64,
    /// Start of the part without sampling, on the trial's clock.
    pub off_from_ms: f64,
    /// Time with sampling.
    pub on_ms: f64,
    /// CPU time of the system in it.
    pub on_cpu_ms: f64,
    /// Time without.
    pub off_ms: f64,
    /// CPU time of the system in it.
    pub off_cpu_ms: f64,
}

/// How the waits of a trial's system were recorded, in `waits.pb.gz`, `threads.csv`, and `latency.hlog`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Waited {
    /// 0: time on the CPU and without a core; 1: and the kernel functions that threads sleep in; 3: and the stacks of
    /// switches.
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
    /// At the end of the hold one of so many switches had its stack recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub one_of: u64,
    /// Time in which switches were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded_ms: Option<f64>,
    /// Slices of a tenth of a second in which switches were recorded, where there were too many to record all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<u64>,
    /// Records that the kernel dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
    /// CPU time of the threads while the system was sampled, as the scheduler counts it.
    pub on_cpu_ms: f64,
    /// The same by the records of switches, where all were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_on_cpu_ms: Option<f64>,
    /// What wasn't recorded, and why, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}
