//! The records of an archive: raw facts only, so that every figure can be recomputed from them.
//!
//! Times are milliseconds on the trial's clock: 0 is the start of the ramp, monotonic.

use std::collections::BTreeMap;

use lab_counts::{ErrorClass, StepCounts, WindowCounts};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Profiled, TrialEnvironment, Waited, Warning};

/// `manifest.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// `plimsoll.archive/1`.
    pub schema: String,
    /// Name of the study.
    pub study: String,
    /// Its title.
    pub title: String,
    /// Hash of the study file's bytes, in hex, prefixed by the algorithm (`sha256:…`;
    /// runs of earlier versions have `blake3:…`).
    pub file_hash: String,
    /// The seed used.
    pub seed: u64,
    /// The speed used; 1 is real time.
    pub speed: f64,
    /// `--set` overrides, as given.
    pub overrides: Vec<(String, String)>,
    /// When the run began, RFC 3339.
    pub started: String,
    /// The machine and how it was shared out.
    pub environment: Environment,
    /// Names of the step histograms: tag number → step name. The probe, if any, is the last, `probe`.
    pub steps: Vec<String>,
    /// Names of the transactions, by the number in their tags. Empty in archives of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transactions: Vec<String>,
    /// Further numbers in the answers of the steps, in the order of the steps and of their measures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measures: Vec<MeasureName>,
    /// Files kept under `files/`, the study first, then the workload.
    pub files: Vec<String>,
}

/// A number in the answers of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasureName {
    /// Index into [`Manifest::steps`].
    pub step: u16,
    /// Its name.
    pub name: String,
    /// Its unit; empty for a plain number.
    pub unit: String,
}

impl Manifest {
    /// Returns the measure of a step at this place.
    #[must_use]
    pub fn measure(&self, step: u16, place: u16) -> Option<&MeasureName> {
        let mut of_step = self.measures.iter().filter(|one| one.step == step);
        of_step.nth(usize::from(place))
    }
}

/// The machine at the start of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The kernel release (`uname -r`).
    pub kernel: String,
    /// The model name of the first CPU.
    pub cpu: String,
    /// The number of online CPUs.
    pub cores: u32,
    /// The total memory, in MiB.
    pub memory_mb: u64,
    /// The distribution, from os-release.
    pub os: String,
    /// The file system under the data directory (`ext4`, `tmpfs` …).
    pub data_filesystem: String,
    /// The version of this program.
    pub plimsoll_version: String,
    /// The cores of the generator and the system.
    pub pinning: Pinning,
}

/// The cores of the generator and the system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pinning {
    /// The cores of the load generator.
    pub generator: Vec<u32>,
    /// The cores of the system under test.
    pub system: Vec<u32>,
    /// Whether both share cores.
    pub shared: bool,
}

/// `trial.json`: the raw facts of one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// `plimsoll.trial/1`.
    pub schema: String,
    /// As in the plan.
    pub id: u32,
    /// The trial of the plan that this one repeats, because that was no measurement for a reason outside
    /// system and generator; its id is beyond the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_of: Option<u32>,
    /// The trial that ran at the same time, where two did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duet: Option<DuetRecord>,
    /// When the ramp began, RFC 3339.
    pub started: String,
    /// How the trial ended.
    pub end: TrialEnd,
    /// Length of the ramp as planned.
    pub ramp_ms: u64,
    /// Length of the hold as planned.
    pub hold_ms: u64,
    /// True time from the start of the ramp to the end of the hold.
    pub elapsed_ms: u64,
    /// Time that provisioning users took.
    pub provision_ms: u64,
    /// Time that setup took.
    pub setup_ms: u64,
    /// Transactions and errors of the setup.
    pub setup_transactions: u64,
    /// Errors of the setup.
    pub setup_errors: u64,
    /// Up to 20 examples of errors, in the order seen.
    pub error_examples: Vec<ErrorExample>,
    /// Requests that had no answer at the end of the hold, and sessions that had arrived and waited
    /// for a connection; they are in no other figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unanswered: Option<Unanswered>,
    /// The measured speed of the disk alone with the data of the sessions, where the study asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawBaseline>,
    /// How the profile in `cpu.pb.gz` was made, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profiled>,
    /// How the waits of the system's threads were recorded, where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waited>,
    /// The resources that the generator used during the hold.
    pub generator: GeneratorHealth,
    /// Size of the system's data before the ramp.
    pub start_data_bytes: u64,
    /// The environment of the trial.
    #[serde(default, rename = "circumstances")]
    pub environment: TrialEnvironment,
    /// Settings the system was started with, for the reader.
    pub system_settings: BTreeMap<String, String>,
    /// Warnings for the reader.
    #[serde(rename = "noted", default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Remarks of the programs that ran the system, or made its settings: how it ended, what was padded …
    /// Earlier versions recorded all warnings here.
    pub notes: Vec<String>,
}

/// A trial's part in a duet: the trial that ran at the same time, and the cores of both.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DuetRecord {
    /// The number of the other trial in the archive.
    pub partner: u32,
    /// Whether this trial has the first place: the first half of the cores, if each trial has its own half.
    pub left: bool,
    /// The cores of this trial's generator and system.
    pub pinning: Pinning,
    /// Whether these are the cores of both trials; otherwise each had half of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
    /// The number of times the two generators changed places.
    #[serde(default, skip_serializing_if = "is_none")]
    pub exchanges: u32,
    /// The delay of this trial's ramp after the other's, in ms; absent if one of them never started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later_ms: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum TrialEnd {
    /// The trial ran to the end of its hold.
    Complete,
    /// The system under test failed: did not start, or died.
    SystemFailed {
        /// The failure, with the last lines of its output.
        message: String,
    },
    /// The preparation failed. The trial offered no load, so it gives no information about the system under load.
    PreparationFailed {
        /// The failed step, and its error.
        message: String,
        /// Where the cause lies.
        cause: PreparationCause,
    },
    /// A generator process ended early; a part of the load was missing.
    GeneratorFailed {
        /// The process, how it ended, and its last output.
        message: String,
    },
    /// An agent with a part of the load, or the connection to it, was lost; a part of the load was missing.
    AgentLost {
        /// The agent, and the symptoms of the loss.
        message: String,
    },
    /// The study's `abort_on` or a script ended the trial early.
    Aborted {
        /// The violated limit, and the time.
        message: String,
    },
}

/// Why a trial could not be prepared. A failure of the lab itself (a full disk, say) ends the run instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreparationCause {
    /// The system rejected a request of the preparation, or didn't answer it.
    System,
    /// A command of the study failed, or a request of it can't be written.
    Study,
}

/// New files written to the disk that holds the system's data, chunk by chunk, each synced before the
/// next: a pass before the sessions, and one after.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawBaseline {
    /// Files of a pass.
    pub files: u64,
    /// Bytes of a file.
    pub file_bytes: u64,
    /// Bytes of a chunk but, perhaps, the last.
    pub chunk_bytes: u64,
    /// How long each pass took.
    pub passes_ms: Vec<f64>,
}

/// Requests in progress at the end of the hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Unanswered {
    /// The number of requests.
    pub count: u64,
    /// The time since the planned send of the oldest request, in ms.
    pub oldest_ms: f64,
}

/// A failed request, as an example.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorExample {
    /// The time on the trial's clock, in ms.
    pub t_ms: u64,
    /// The step.
    pub step: String,
    /// The class of the error.
    pub class: ErrorClass,
    /// The status and the first bytes of the response, or the cause.
    pub detail: String,
    /// The id of the trace that the request started, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// The resources and the delays of the generator during the hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GeneratorHealth {
    /// The number of worker threads.
    pub workers: u32,
    /// CPU time of the workers ÷ (hold × workers), 0…1.
    ///
    /// `null` if the kernel does not report it, or too little of the hold was observed.
    pub cpu_fraction: Option<f64>,
    /// Time the workers waited for a CPU (`/proc/PID/task/TID/schedstat`) ÷ (hold × workers), 0…1.
    ///
    /// `null` if the kernel does not report it, or too little of the hold was observed.
    pub run_queue_delay_fraction: Option<f64>,
    /// The maximum CPU fraction of a worker, or of all workers that share a core, in any five seconds (or the hold, if
    /// shorter).
    ///
    /// `null` if the kernel does not report it, or too little of the hold was observed.
    pub cpu_fraction_max: Option<f64>,
    /// The workers' nice value, from −20 (highest priority) to 19 (lowest).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i64>,
    /// The peak resident memory of the generator's process, in MB.
    pub rss_mb_max: f64,
}

/// One line of `clocks.jsonl`: the measured offset of an agent's monotonic clock. The clock is queried each
/// second; a line is written when another measurement becomes the best of the last 64.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockLine {
    /// When, on the trial's clock; before its 0 with a minus.
    pub t_ms: f64,
    /// The agent.
    pub agent: String,
    /// The offset of its clock from the conductor's clock, positive if ahead.
    pub offset_ms: f64,
    /// The maximum error of the offset.
    pub bound_ms: f64,
}

/// One line of `windows.jsonl`: counts of one window, all workers merged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowLine {
    /// Start on the trial's clock.
    pub start_ms: f64,
    /// End on the trial's clock, as planned.
    pub end_ms: f64,
    /// The time at which the generator actually delivered the window, on the trial's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over_ms: Option<f64>,
    /// Counts over all steps.
    #[serde(flatten)]
    pub counts: WindowCounts,
    /// Lateness of sends, in µs. Its histogram is in `steps.hlog` under tag `lateness`.
    pub lateness: LatenessLine,
    /// Steps that had something to count; keyed by the tag number of `manifest.steps`.
    pub steps: BTreeMap<u16, StepCounts>,
    /// Transactions that had something to count; keyed by their place in `manifest.transactions`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub transactions: BTreeMap<u16, StepCounts>,
    /// The slowest of its requests that began a trace and met their `expect`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowest: Option<SlowestLine>,
}

/// A slow request that is to be found in the system's traces.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowestLine {
    /// The tag number of its step.
    pub step: u16,
    /// Its response time.
    pub response_ms: f64,
    /// Id of the trace that it began, in hex.
    pub trace: String,
}

/// Lateness of the sends of a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatenessLine {
    /// Sends.
    pub count: u64,
    /// Sum, µs.
    pub sum_us: u64,
    /// Largest, µs.
    pub max_us: u64,
}
