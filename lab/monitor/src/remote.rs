//! Counters of a remote machine from Prometheus' node_exporter, in the columns of a host.
//!
//! | column | metric of node_exporter |
//! |---|---|
//! | `cpu_*_percent` | `node_cpu_seconds_total`, all cores, by mode |
//! | `disk_*` | `node_disk_*_total`, all devices but partitions, loop, ram, dm, md; busy is that of the busiest |
//! | `memory_*` | `node_memory_{Committed_AS,MemTotal,SwapTotal,MemAvailable}_bytes` |
//! | `scan_rate_pages_per_s` | `node_vmstat_pgscan_*`, which is off by default |
//! | `network_kb_per_s` | `node_network_{receive,transmit}_bytes_total`, loopback once, without virtual devices |
//! | `context_switches_per_s` | `node_context_switches_total` |
//! | `pressure_*_some_percent` | `node_pressure_*_waiting_seconds_total` |
//! | `tcp_*`, `listen_*` | `node_sockstat_TCP_{inuse,tw}`, `node_netstat_TcpExt_Listen*` |
//!
//! A metric that an exporter lacks is a gap.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::exporter::{Sample, samples};
use crate::host::HostRates;

const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * 1024.0;
/// Most devices of a remote machine that are read; no machine has as many.
const MAX_DEVICES: usize = 1000;

/// An answer that no node_exporter gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnExporter;

impl std::fmt::Display for NotAnExporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer has none of the metrics of node_exporter")
    }
}

impl std::error::Error for NotAnExporter {}

/// The other machine's columns, from its last two answers.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    last: Option<(Duration, Counters)>,
    fresh: Option<[Option<f64>; HostRates::COLUMNS.len()]>,
}

/// The counters of one answer: sums by our names, and those of devices.
#[derive(Debug, Default)]
struct Counters {
    sums: BTreeMap<&'static str, f64>,
    disks: BTreeMap<String, Disk>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Disk {
    transfers: f64,
    read_bytes: f64,
    written_bytes: f64,
    merged: f64,
    weighted_s: f64,
    busy_s: f64,
}

impl Remote {
    /// Records the answer of the moment `at`.
    pub(crate) fn take(&mut self, at: Duration, text: &str) -> Result<(), NotAnExporter> {
        let now = Counters::read(text);
        if now.sums.is_empty() {
            return Err(NotAnExporter);
        }
        let before = self.last.take();
        let passed = before
            .as_ref()
            .and_then(|(before, _)| at.checked_sub(*before))
            .filter(|passed| !passed.is_zero());
        let empty = Counters::default();
        let old = before.as_ref().map_or(&empty, |(_, old)| old);
        self.fresh = Some(columns(old, &now, passed));
        self.last = Some((at, now));
        Ok(())
    }

    /// The columns of the last answer, once; gaps until there is another.
    pub(crate) fn sample(&mut self) -> [Option<f64>; HostRates::COLUMNS.len()] {
        self.fresh.take().unwrap_or([None; _])
    }
}

impl Counters {
    fn read(text: &str) -> Self {
        let mut counters = Self::default();
        for sample in samples(text).filter(|s| s.value.is_finite()) {
            let Some(rest) = sample.name.strip_prefix("node_") else {
                continue;
            };
            if let Some(what) = rest.strip_prefix("disk_") {
                counters.disk(what, &sample);
            } else if let Some(name) = sum_of(rest, &sample) {
                *counters.sums.entry(name).or_default() += sample.value;
            }
        }
        counters
    }

    fn disk(&mut self, what: &str, sample: &Sample<'_>) {
        let Some(device) = sample.label("device").filter(|name| is_disk(name)) else {
            return;
        };
        if self.disks.len() >= MAX_DEVICES && !self.disks.contains_key(device) {
            return;
        }
        let disk = self.disks.entry(device.to_owned()).or_default();
        let field = match what {
            "reads_completed_total" | "writes_completed_total" => &mut disk.transfers,
            "read_bytes_total" => &mut disk.read_bytes,
            "written_bytes_total" => &mut disk.written_bytes,
            "reads_merged_total" | "writes_merged_total" => &mut disk.merged,
            "io_time_weighted_seconds_total" => &mut disk.weighted_s,
            "io_time_seconds_total" => &mut disk.busy_s,
            _ => return,
        };
        *field += sample.value;
    }
}

/// Devices that others are made of, or that are none.
fn is_disk(name: &str) -> bool {
    let others = ["loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd"];
    !others.iter().any(|prefix| name.starts_with(prefix))
}

/// The sum that a sample belongs to, by the rest of its name.
fn sum_of(rest: &str, sample: &Sample<'_>) -> Option<&'static str> {
    const SAME: [&str; 12] = [
        "memory_Committed_AS_bytes",
        "memory_MemTotal_bytes",
        "memory_SwapTotal_bytes",
        "memory_MemAvailable_bytes",
        "context_switches_total",
        "pressure_cpu_waiting_seconds_total",
        "pressure_io_waiting_seconds_total",
        "pressure_memory_waiting_seconds_total",
        "sockstat_TCP_inuse",
        "sockstat_TCP_tw",
        "netstat_TcpExt_ListenOverflows",
        "netstat_TcpExt_ListenDrops",
    ];
    match rest {
        "cpu_seconds_total" => match sample.label("mode")? {
            "user" | "nice" => Some("user"),
            "system" | "irq" | "softirq" => Some("system"),
            "iowait" => Some("iowait"),
            "steal" => Some("steal"),
            "idle" => Some("idle"),
            _ => None,
        },
        // Loopback traffic is received and sent by the same machine.
        "network_receive_bytes_total" => is_network(sample.label("device")?, false),
        "network_transmit_bytes_total" => is_network(sample.label("device")?, true),
        _ if rest.starts_with("vmstat_pgscan_") => {
            let split_by_kind = rest.ends_with("_anon") || rest.ends_with("_file");
            (!split_by_kind).then_some("scanned")
        }
        _ => SAME.into_iter().find(|name| *name == rest),
    }
}

fn is_network(device: &str, sent: bool) -> Option<&'static str> {
    let virtual_ones = [
        "veth", "docker", "br-", "virbr", "cali", "flannel", "tap", "tun",
    ];
    let counts = match device {
        "lo" => sent,
        _ => !virtual_ones.iter().any(|prefix| device.starts_with(prefix)),
    };
    counts.then_some("network")
}

/// The columns of [`HostRates::COLUMNS`], in their order.
fn columns(
    before: &Counters,
    now: &Counters,
    passed: Option<Duration>,
) -> [Option<f64>; HostRates::COLUMNS.len()] {
    let level = |name: &str| now.sums.get(name).copied();
    let grown = |name: &str| growth(before.sums.get(name).copied(), level(name));
    let rate = |name: &str| Some(grown(name)? / passed?.as_secs_f64());
    let parts = ["user", "system", "steal", "iowait", "idle"].map(grown);
    let all: f64 = parts.iter().flatten().sum();
    let percent = |part: Option<f64>| Some(100.0 * part?).filter(|_| all > 0.0).map(|p| p / all);
    let [user, system, steal, iowait, _] = parts;
    let busy = user.zip(system).map(|(u, s)| u + s + steal.unwrap_or(0.0));
    let disk = disks(before, now, passed);
    let committed = level("memory_Committed_AS_bytes");
    let memory = level("memory_MemTotal_bytes")
        .map(|total| total + level("memory_SwapTotal_bytes").unwrap_or(0.0));
    let stall = |what: &str| {
        let seconds = rate(&format!("pressure_{what}_waiting_seconds_total"))?;
        Some((100.0 * seconds).min(100.0))
    };
    let [transfers, read, write, merged, queue, busy_percent, service] = disk;
    [
        percent(busy),
        percent(user),
        percent(system),
        percent(iowait),
        percent(steal),
        transfers,
        read,
        write,
        read.zip(write).map(|(read, write)| read + write),
        merged,
        queue,
        busy_percent,
        service,
        committed.map(|bytes| bytes / MB),
        committed
            .zip(memory.filter(|all| *all > 0.0))
            .map(|(bytes, all)| 100.0 * bytes / all),
        level("memory_MemAvailable_bytes").map(|bytes| bytes / MB),
        rate("scanned"),
        rate("network").map(|bytes| bytes / KB),
        rate("context_switches_total"),
        stall("cpu"),
        stall("io"),
        stall("memory"),
        level("sockstat_TCP_inuse"),
        level("sockstat_TCP_tw"),
        rate("netstat_TcpExt_ListenOverflows"),
        rate("netstat_TcpExt_ListenDrops"),
    ]
    .map(|value| value.filter(|v| v.is_finite()))
}

/// Transfers, KB read and written, merged, queue, busy percent of the busiest, ms per transfer.
fn disks(before: &Counters, now: &Counters, passed: Option<Duration>) -> [Option<f64>; 7] {
    let Some(passed) = passed.map(|passed| passed.as_secs_f64()) else {
        return [None; 7];
    };
    let pairs: Vec<(&Disk, &Disk)> = now
        .disks
        .iter()
        .filter_map(|(name, now)| Some((before.disks.get(name)?, now)))
        .collect();
    if pairs.is_empty() {
        return [None; 7];
    }
    let each = |of: fn(&Disk) -> f64| {
        let grown = pairs.iter().map(|(b, n)| growth(Some(of(b)), Some(of(n))));
        grown.map(|grown| Some(grown? / passed)).collect::<Vec<_>>()
    };
    let sum = |of| each(of).into_iter().sum::<Option<f64>>();
    let transfers = sum(|d| d.transfers);
    let busy = sum(|d| d.busy_s);
    let busiest = each(|d| d.busy_s).into_iter().flatten().reduce(f64::max);
    [
        transfers,
        sum(|d| d.read_bytes).map(|bytes| bytes / KB),
        sum(|d| d.written_bytes).map(|bytes| bytes / KB),
        sum(|d| d.merged),
        sum(|d| d.weighted_s),
        busiest.map(|share| (100.0 * share).min(100.0)),
        busy.zip(transfers.filter(|n| *n > 0.0))
            .map(|(busy, n)| 1000.0 * busy / n),
    ]
}

/// A counter that fell was reset.
fn growth(before: Option<f64>, now: Option<f64>) -> Option<f64> {
    Some(now? - before?).filter(|growth| *growth >= 0.0)
}
