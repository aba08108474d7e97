//! Counters of one process and its descendants, summed.

use std::fs;
use std::path::Path;
use std::time::Duration;

use procfs::FromRead;
use procfs::process::Io;

use crate::files::{FilesUsed, Fullest};
use crate::ledger::{Ledger, rate};
use crate::stat::Stat;
use crate::tree::ProcessTable;

/// Columns of a process, without its name.
pub(crate) const COLUMNS: [&str; 11] = [
    "cpu_percent",
    "cpu_user_percent",
    "cpu_system_percent",
    "cpu_ms_total",
    "rss_mb",
    "read_kb_per_s",
    "write_kb_per_s",
    "threads",
    "open_files",
    "context_switches_per_s",
    "run_queue_percent",
];

/// Index of `cpu_percent`.
pub(crate) const CPU_PERCENT: usize = 0;

/// One process with its descendants, and their counters so far.
#[derive(Debug)]
pub(crate) struct Process {
    /// Its place among the roots of the table.
    root: usize,
    user: Ledger<(i32, u64)>,
    system: Ledger<(i32, u64)>,
    read: Ledger<(i32, u64)>,
    write: Ledger<(i32, u64)>,
    switches: Ledger<i32>,
    queued: Ledger<i32>,
    files: Fullest,
    last: Totals,
}

/// Sums over the tree since the processes began.
#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    user_ticks: Option<u64>,
    system_ticks: Option<u64>,
    read_bytes: Option<u64>,
    write_bytes: Option<u64>,
    switches: Option<u64>,
    queued_ns: Option<u64>,
}

impl Process {
    pub(crate) fn new(root: usize) -> Self {
        Self {
            root,
            user: Ledger::default(),
            system: Ledger::default(),
            read: Ledger::default(),
            write: Ledger::default(),
            switches: Ledger::default(),
            queued: Ledger::default(),
            files: Fullest::default(),
            last: Totals::default(),
        }
    }

    pub(crate) fn sample(
        &mut self,
        table: &ProcessTable,
        passed: Option<Duration>,
    ) -> [Option<f64>; COLUMNS.len()] {
        let proc = table.proc();
        let tree = table.tree(self.root);
        let stats: Vec<(i32, Stat)> = tree
            .into_iter()
            .filter_map(|pid| Some((pid, Stat::read(proc, pid)?)))
            .collect();
        if !table.lives(self.root, &stats) {
            return [None; COLUMNS.len()];
        }
        let before = self.last;
        let now = self.totals(proc, &stats);
        self.last = now;
        let ticks_per_s = procfs::ticks_per_second() as f64;
        let percent = |b, n| rate(b, n, passed).map(|ticks| 100.0 * ticks / ticks_per_s);
        let user = percent(before.user_ticks, now.user_ticks);
        let system = percent(before.system_ticks, now.system_ticks);
        let ticks = now
            .user_ticks
            .zip(now.system_ticks)
            .map(|(user, system)| user + system);
        let sum = |f: fn(&Stat) -> u64| stats.iter().map(|(_, stat)| f(stat)).sum::<u64>() as f64;
        let kb = |b, n| rate(b, n, passed).map(|bytes| bytes / 1024.0);
        [
            user.zip(system).map(|(user, system)| user + system),
            user,
            system,
            ticks.map(|ticks| 1000.0 * ticks as f64 / ticks_per_s),
            Some(sum(|s| s.rss_pages) * procfs::page_size() as f64 / (1024.0 * 1024.0)),
            kb(before.read_bytes, now.read_bytes),
            kb(before.write_bytes, now.write_bytes),
            Some(sum(|s| s.threads)),
            self.files.add(proc, &stats).map(|open| open as f64),
            rate(before.switches, now.switches, passed),
            // Nanoseconds per second ÷ 10⁷ = percent.
            rate(before.queued_ns, now.queued_ns, passed).map(|ns| ns / 1e7),
        ]
    }

    /// See [`crate::Monitor::nearest_files`].
    pub(crate) fn nearest_files(&self) -> Option<FilesUsed> {
        self.files.nearest()
    }

    fn totals(&mut self, proc: &Path, stats: &[(i32, Stat)]) -> Totals {
        let key = |(pid, stat): &(i32, Stat)| (*pid, stat.started);
        let io: Option<Vec<_>> = stats
            .iter()
            .map(|s| Some((key(s), storage(proc, s.0)?)))
            .collect();
        let scheduled = scheduled(proc, stats);
        let scheduled = scheduled.as_deref();
        Totals {
            user_ticks: Some(
                self.user
                    .update(stats.iter().map(|s| (key(s), s.1.user_ticks))),
            ),
            system_ticks: Some(
                self.system
                    .update(stats.iter().map(|s| (key(s), s.1.system_ticks))),
            ),
            read_bytes: io
                .as_ref()
                .map(|io| self.read.update(io.iter().map(|(k, (r, _))| (*k, *r)))),
            write_bytes: io
                .as_ref()
                .map(|io| self.write.update(io.iter().map(|(k, (_, w))| (*k, *w)))),
            switches: scheduled.map(|threads| {
                let counts = threads.iter().map(|t| (t.thread, t.switches));
                self.switches.update(counts)
            }),
            queued_ns: scheduled.map(|threads| {
                let times = threads.iter().map(|t| (t.thread, t.queued_ns));
                self.queued.update(times)
            }),
        }
    }
}

/// Bytes read from and written to storage.
fn storage(proc: &Path, pid: i32) -> Option<(u64, u64)> {
    let io = Io::from_file(proc.join(pid.to_string()).join("io")).ok()?;
    Some((io.read_bytes, io.write_bytes))
}

/// The scheduler's counters of a thread since its start.
#[derive(Debug, Clone, Copy)]
struct Scheduled {
    thread: i32,
    /// Runnable without a core.
    queued_ns: u64,
    /// Times that it got a core.
    switches: u64,
}

/// The second and third number of each thread's `schedstat`. `status` counts the switches of the
/// main thread only and is ten times as long.
fn scheduled(proc: &Path, stats: &[(i32, Stat)]) -> Option<Vec<Scheduled>> {
    let mut found = Vec::new();
    for (pid, _) in stats {
        let tasks = fs::read_dir(proc.join(pid.to_string()).join("task")).ok()?;
        for task in tasks.flatten() {
            let thread = task.file_name();
            let Some(thread) = thread.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A thread may end between the two reads.
            let Ok(text) = fs::read_to_string(task.path().join("schedstat")) else {
                continue;
            };
            let mut numbers = text.split_ascii_whitespace().skip(1).map(str::parse);
            if let (Some(Ok(queued_ns)), Some(Ok(switches))) = (numbers.next(), numbers.next()) {
                found.push(Scheduled {
                    thread,
                    queued_ns,
                    switches,
                });
            }
        }
    }
    (!found.is_empty()).then_some(found)
}
