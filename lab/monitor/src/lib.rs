//! Samples counters of the host and of processes from `/proc`. It judges no trial; [`quiet`] decides
//! whether a machine is idle enough to begin one.
//!
//! It reads no clock: the caller passes a sample's time, and rates are between it and the sample before. A
//! counter that can't be read (an old kernel, a container, a process that ended) is a gap, never
//! an error: the measurement continues without it.
//!
//! # What the columns mean
//!
//! | column | meaning |
//! |---|---|
//! | `host.cpu_percent` | time not idle and not waiting for a disk; 100 = all cores busy |
//! | `host.cpu_user_percent`, `…system…` | user with nice; system with interrupts |
//! | `host.cpu_iowait_percent`, `…steal…` | as the kernel counts them |
//! | `host.disk_transfers_per_s` | reads and writes completed by the device under the data folder |
//! | `host.disk_{read,write}_kb_per_s`, `host.disk_kb_per_s` | 1 KB = 1024 bytes |
//! | `host.disk_merged_per_s` | requests merged with another before they reached the device |
//! | `host.disk_queue_length` | mean number of requests waiting or under way |
//! | `host.disk_busy_percent` | time with at least one request under way |
//! | `host.disk_service_ms` | busy time ÷ transfers, `svctm` of sar; a gap without transfers |
//! | `host.memory_committed_mb` | `Committed_AS`; the percentage is of memory and swap, `%commit` of sar |
//! | `host.memory_available_mb` | `MemAvailable` |
//! | `host.scan_rate_pages_per_s` | pages scanned for reclaim, by any thread |
//! | `host.network_kb_per_s` | received and sent by devices; loopback traffic counts once |
//! | `host.context_switches_per_s` | of all cores |
//! | `host.pressure_*_some_percent` | time in which some task waited for it |
//! | `host.tcp_sockets`, `host.tcp_time_wait` | open now; waiting for their end now |
//! | `host.listen_overflows_per_s`, `…drops…` | connections rejected by a listener's full queue, or by a listener |
//! | `host.cpu_others_percent` | CPU of all programs except the processes below; 100 = all cores |
//! | `generator_host.*` | this machine, if `host.*` is another machine (from node_exporter, see below, or an agent) |
//! | `NAME.cpu_percent` … | of the process and its descendants; 100 = one core |
//! | `NAME.cpu_ms_total` | user and system time since the processes began |
//! | `NAME.rss_mb` | resident memory; pages shared within the tree count more than once |
//! | `NAME.{read,write}_kb_per_s` | to and from storage, as the kernel charges it |
//! | `NAME.threads`, `NAME.open_files` | now |
//! | `NAME.context_switches_per_s` | times that a thread got a core |
//! | `NAME.run_queue_percent` | time that its threads were runnable without a core; 100 = one thread all the time |

mod cpu;
mod device;
pub mod exporter;
mod files;
mod hold;
mod host;
mod ledger;
mod limits;
mod listener;
mod mounts;
mod others;
mod process;
pub mod quiet;
mod remote;
mod roots;
mod stat;
mod tree;

use std::path::PathBuf;
use std::time::Duration;

pub use cpu::CpuTime;
pub use files::FilesUsed;
pub use hold::{Hold, groups_below};
pub use limits::{ListenFailures, Throttling, listen_failures, thermal_throttles, throttling};
pub use listener::{Listener, listener};
pub use mounts::{Mount, mount_of, mounts};
pub use others::{Program, Programs};
pub use remote::NotAnExporter;
pub use roots::Roots;

use crate::files::AllFiles;
use crate::host::{Host, HostRates};
use crate::process::Process;
use crate::remote::Remote;
use crate::tree::ProcessTable;

/// Column of the programs outside the processes.
const OTHERS: &str = "cpu_others_percent";

/// The processes and devices to sample.
#[derive(Debug, Clone, Default)]
pub struct MonitorSpec {
    /// A folder; the disk columns are of the device under it. `None` leaves them gaps.
    pub data_dir: Option<PathBuf>,
    /// Processes by the name of their columns. A process below another one of these
    /// counts for itself only.
    pub processes: Vec<(String, u32)>,
    /// Selectors of further processes than those below the first one, by the name of their columns.
    pub holds: Vec<(String, Hold)>,
    /// The `host.` columns are of a remote machine, whose answers [`Monitor::take_remote`] receives;
    /// the columns of this machine are `generator_host.` then.
    pub remote: bool,
    /// The location of the kernel's files.
    pub roots: Roots,
}

/// Samples one host and some of its processes.
#[derive(Debug)]
pub struct Monitor {
    columns: Vec<String>,
    host: Host,
    table: ProcessTable,
    names: Vec<String>,
    processes: Vec<Process>,
    roots: Roots,
    files: AllFiles,
    remote: Option<Remote>,
    previous: Option<Duration>,
}

impl Monitor {
    /// Finds the device and names the columns; reads no counter yet.
    #[must_use]
    pub fn new(spec: &MonitorSpec) -> Self {
        let device = spec
            .data_dir
            .as_deref()
            .and_then(|dir| device::under(&spec.roots, dir));
        let hold_of = |name: &String| {
            let hold = spec.holds.iter().find(|(of, _)| of == name);
            hold.map(|(_, hold)| hold.clone())
        };
        let roots = spec.processes.iter().map(|(name, pid)| {
            // No process has an id beyond i32; such a one is never found.
            (i32::try_from(*pid).unwrap_or(-1), hold_of(name))
        });
        let named = |host: &str, names: &[&str]| -> Vec<String> {
            names.iter().map(|name| format!("{host}.{name}")).collect()
        };
        let own = if spec.remote {
            "generator_host"
        } else {
            "host"
        };
        let mut columns = Vec::new();
        if spec.remote {
            columns.extend(named("host", &HostRates::COLUMNS));
        }
        columns.extend(named(own, &HostRates::COLUMNS));
        columns.extend(named(own, &[OTHERS]));
        for (name, _) in &spec.processes {
            columns.extend(
                process::COLUMNS
                    .iter()
                    .map(|column| format!("{name}.{column}")),
            );
        }
        Self {
            columns,
            host: Host::new(&spec.roots, device),
            table: ProcessTable::new(spec.roots.clone(), roots.collect()),
            names: spec.processes.iter().map(|one| one.0.clone()).collect(),
            processes: (0..spec.processes.len()).map(Process::new).collect(),
            roots: spec.roots.clone(),
            files: AllFiles::default(),
            remote: spec.remote.then(Remote::default),
            previous: None,
        }
    }

    /// Records the answer of the remote node_exporter at `at`, on the clock of the
    /// samples. The next sample has it; further samples have gaps until the next answer.
    ///
    /// # Errors
    /// [`NotAnExporter`]: the answer has none of the exporter's metrics.
    pub fn take_remote(&mut self, at: Duration, answer: &str) -> Result<(), NotAnExporter> {
        match &mut self.remote {
            Some(remote) => remote.take(at, answer),
            None => Ok(()),
        }
    }

    /// Names of the columns, in the order of [`Monitor::sample`]'s values.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Name of the block device under the data folder, if there is one (`vda`, `nvme0n1`).
    #[must_use]
    pub fn device(&self) -> Option<&str> {
        self.host.device()
    }

    /// Returns the open files of the process of this name that was nearest to its own limit, and the
    /// time. A sum over processes would be meaningless, since each has a limit for itself.
    #[must_use]
    pub fn nearest_files(&self, name: &str) -> Option<FilesUsed> {
        let at = self.names.iter().position(|one| one == name)?;
        self.processes.get(at)?.nearest_files()
    }

    /// The most that all processes of this machine had open at any sample (`fs.file-nr`); `None` where the kernel
    /// sets no limit.
    #[must_use]
    pub fn all_files(&self) -> Option<FilesUsed> {
        self.files.nearest()
    }

    /// Reads everything once. `at` is the time of the sample on any monotonic clock, later than
    /// the one before; rates are gaps in the first sample.
    pub fn sample(&mut self, at: Duration) -> Vec<Option<f64>> {
        let passed = self
            .previous
            .and_then(|previous| at.checked_sub(previous))
            .filter(|passed| !passed.is_zero());
        self.previous = Some(at);
        let mut values = Vec::with_capacity(self.columns.len());
        values.extend(self.remote.iter_mut().flat_map(Remote::sample));
        let host = self.host.sample(passed);
        values.extend(host.values());
        let others = values.len();
        values.push(host.work_percent);
        self.table.refresh(self.host.forks());
        self.files.add(&self.roots);
        for process in &mut self.processes {
            let sampled = process.sample(&self.table, passed);
            let cpu = sampled[process::CPU_PERCENT];
            // The kernel counts the machine in ticks and a process in nanoseconds.
            values[others] = values[others]
                .zip(cpu)
                .map(|(all, own)| (all - own).max(0.0));
            values.extend(sampled);
        }
        // One tick of the kernel's count may be longer than a short sample.
        values[others] = values[others]
            .map(|percent| percent / host.cores as f64)
            .filter(|percent| percent.is_finite())
            .map(|percent| percent.min(100.0));
        values
    }
}
