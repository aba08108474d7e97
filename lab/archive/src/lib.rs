//! The archive of a run on disk: its format, writer, and reader. It judges nothing.
//!
//! ```text
//! RUN/manifest.json            what ran: study, seed, speed, environment, versions
//! RUN/plan.json                the plan, as `lab-study` made it (opaque here)
//! RUN/files/…                  study, workload, and published files, byte for byte
//! RUN/events.jsonl             events and their times, one [`EventLine`] a line; for observers
//! RUN/trials/001/trial.json    raw facts of a trial; its presence marks the trial complete
//! RUN/trials/001/windows.jsonl one [`WindowLine`] a line
//! RUN/trials/001/steps.hlog    HdrHistogram interval log, V2 deflate, µs, tag `NN/outcome/kind`;
//!                              kinds: response, service, and the phases
//! RUN/trials/001/monitor.csv   `t_ms` and one column per counter; an empty field is a gap
//! RUN/trials/001/cpu.pb.gz    the CPU profile of the system, pprof; where one was recorded
//! RUN/trials/001/waits.pb.gz  the profile of its waits, pprof; likewise
//! RUN/trials/001/threads.csv  the time of its groups of threads, a line for each second and group; likewise
//! RUN/trials/001/latency.hlog the scheduling latency of its groups of threads, µs, tag = group; likewise
//! RUN/trials/001/asked.jsonl   counters that the system reported, where queried (opaque here)
//! RUN/trials/001/system.log    what the system under test printed: its first and its last 16 MiB
//! RUN/trials/001/system.NAME.log   the same of a part of it on another machine
//! RUN/trials/002.partial/      a trial under way, or one that a killed run left behind
//! ```
//!
//! `manifest.json` and `trial.json` also hold the size of the files that they stand for, so that a
//! file cut off at a line's end is noticed. Data is synced before the rename that publishes it.

pub mod environment;
pub mod error;
mod follow;
mod hlog;
mod log;
pub mod model;
mod monitor;
mod names;
mod profiled;
mod reader;
mod series;
mod sink;
mod waits;
mod warning;
mod wire;
mod writer;

pub use environment::{
    Agent, Clocks, LimitsReached, OtherProgram, QuietGate, StartingState, SystemHost, SystemPart,
    Throttled, TrialEnvironment, Used,
};
pub use error::ArchiveError;
pub use follow::{Follow, Growth};
pub use hlog::Interval;
pub use lab_profile::waits::scheduling::Latencies;
pub use log::{EventLine, EventLog, Happening};
pub use model::{
    ClockLine, DuetRecord, Environment, ErrorExample, GeneratorHealth, LatenessLine, Manifest,
    MeasureName, Pinning, PreparationCause, RawBaseline, SlowestLine, TrialEnd, TrialRecord,
    Unanswered, WindowLine,
};
pub use monitor::MonitorTable;
pub use profiled::{Frames, Profiled, SampledBlock, Waited};
pub use reader::{Run, TrialData};
pub use series::{Kind, Outcome, Series};
pub use waits::{ThreadsLine, Waits, groups_of};
pub use warning::Warning;
pub use writer::{RunWriter, TrialWriter};

/// Value of [`Manifest::schema`] that this version writes, and the only one that it reads.
pub const ARCHIVE_SCHEMA: &str = "plimsoll.archive/1";

/// Value of [`TrialRecord::schema`] that this version writes, and the only one that it reads.
pub const TRIAL_SCHEMA: &str = "plimsoll.trial/1";

/// Name of the probe in [`Manifest::steps`], where it is the last.
pub const PROBE: &str = "probe";

/// The setting of a trial's system that says whether its certificate was checked; only where it was
/// not, as [`UNCHECKED`].
pub const CERTIFICATES: &str = "certificates";
/// The value of [`CERTIFICATES`] if users accepted any certificate.
pub const UNCHECKED: &str = "not checked";

/// Prefix of the settings of a trial's system that name the machine of a part; the part's name follows.
pub const MACHINE_OF: &str = "machine of ";

/// The setting of a trial's system with the version of HTTP that its users requested; only where that
/// is not 1.1.
pub const HTTP: &str = "http";
