//! Limits of the machine and of processes, and counts of rejected connections and throttling. All
//! values are read at once; no state is kept.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::roots::Roots;

/// Connections that listeners on this machine did not take, since it started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListenFailures {
    /// For a full queue (`ListenOverflows`).
    pub overflows: u64,
    /// For whatever reason, a full queue included (`ListenDrops`).
    pub drops: u64,
}

/// Reads them from `/proc/net/netstat`; `None` where the kernel does not report them.
#[must_use]
pub fn listen_failures(roots: &Roots) -> Option<ListenFailures> {
    let text = fs::read_to_string(roots.proc.join("net/netstat")).ok()?;
    // Two lines for each protocol: names, then numbers.
    let mut lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("TcpExt:"))
        .map(str::split_ascii_whitespace);
    let counts: HashMap<&str, &str> = lines.next()?.zip(lines.next()?).collect();
    let count = |name: &str| counts.get(name)?.parse().ok();
    Some(ListenFailures {
        overflows: count("ListenOverflows")?,
        drops: count("ListenDrops")?,
    })
}

/// Files that a process may open at once: its soft limit.
pub(crate) fn open_files_limit(proc: &Path, pid: i32) -> Option<u64> {
    let text = fs::read_to_string(proc.join(pid.to_string()).join("limits")).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Throttling by the CPU quotas of a process's control groups since their creation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which a quota ran out.
    pub periods: u64,
    /// Time that processes were held back, over all cores.
    pub held_back_us: u64,
}

/// Sums `cpu.stat` over the control group of a process and all above it, since the quota of any
/// of them holds. `None` where no such file is there.
#[must_use]
pub fn throttling(roots: &Roots, pid: u32) -> Option<Throttling> {
    let text = fs::read_to_string(roots.proc.join(pid.to_string()).join("cgroup")).ok()?;
    let (base, below) = cpu_group(&roots.sys.join("fs/cgroup"), &text)?;
    let group = base.join(below.trim_start_matches('/'));
    let above = group.ancestors().take_while(|dir| dir.starts_with(&base));
    let mut found = None;
    for stat in above.filter_map(|dir| fs::read_to_string(dir.join("cpu.stat")).ok()) {
        let count = |name: &str| {
            let mut words = stat.lines().filter_map(|line| line.split_once(' '));
            words
                .find(|(n, _)| *n == name)?
                .1
                .trim()
                .parse::<u64>()
                .ok()
        };
        // Version 1 counts nanoseconds.
        let us = count("throttled_usec").or_else(|| Some(count("throttled_time")? / 1000));
        if let Some(periods) = count("nr_throttled") {
            let sum = found.get_or_insert(Throttling::default());
            sum.periods += periods;
            sum.held_back_us += us.unwrap_or(0);
        }
    }
    found
}

/// Returns the folder of the control groups with a CPU quota, and the group's path: a line of
/// `/proc/PID/cgroup` is `ID:CONTROLLERS:PATH`; version 2 has no controllers.
fn cpu_group<'a>(root: &Path, lines: &'a str) -> Option<(PathBuf, &'a str)> {
    let mut groups = lines.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let own = groups
        .clone()
        .find(|(controllers, _)| controllers.split(',').any(|name| name == "cpu"));
    if let Some((controllers, path)) = own {
        return Some((root.join(controllers), path));
    }
    let (_, path) = groups.find(|(controllers, _)| controllers.is_empty())?;
    Some((root.to_path_buf(), path))
}

/// Times that a core lowered its frequency for heat since the machine started, over all cores.
#[must_use]
pub fn thermal_throttles(roots: &Roots) -> Option<u64> {
    let mut found = None;
    for core in fs::read_dir(roots.sys.join("devices/system/cpu"))
        .ok()?
        .flatten()
    {
        let path = core.path().join("thermal_throttle/core_throttle_count");
        if let Some(count) = fs::read_to_string(path)
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok())
        {
            *found.get_or_insert(0) += count;
        }
    }
    found
}
