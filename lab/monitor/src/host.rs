//! Counters of the whole machine: read, then turned into rates.

use std::fs;
use std::path::Path;
use std::time::Duration;

use procfs::net::InterfaceDeviceStatus;
use procfs::{CpuTime, DiskStat, DiskStats, FromRead, FromReadSI, KernelStats, Meminfo, VmStat};

use crate::device::Device;
use crate::ledger::rate;
use crate::limits::{ListenFailures, listen_failures};
use crate::roots::Roots;

const KB: f64 = 1024.0;
const MB: f64 = 1024.0 * 1024.0;
/// `/proc/diskstats` counts sectors of 512 bytes, whatever the device has.
const SECTORS_PER_KB: f64 = 2.0;

/// Reads the machine's counters and remembers the last ones.
#[derive(Debug)]
pub(crate) struct Host {
    roots: Roots,
    device: Option<Device>,
    last: Counters,
}

/// The counters of one moment.
#[derive(Debug, Default)]
struct Counters {
    kernel: Option<KernelStats>,
    disk: Option<DiskStat>,
    memory: Option<Meminfo>,
    pages_scanned: Option<u64>,
    network_bytes: Option<u64>,
    /// Microseconds: cpu, io, memory.
    pressure: [Option<u64>; 3],
    tcp: TcpSockets,
    listen: Option<ListenFailures>,
}

impl Host {
    pub(crate) fn new(roots: &Roots, device: Option<Device>) -> Self {
        Self {
            roots: roots.clone(),
            device,
            last: Counters::default(),
        }
    }

    pub(crate) fn device(&self) -> Option<&str> {
        self.device.as_ref().map(|device| device.name.as_str())
    }

    /// Processes and threads made since boot, as of the last sample.
    pub(crate) fn forks(&self) -> Option<u64> {
        self.last.kernel.as_ref().map(|kernel| kernel.processes)
    }

    pub(crate) fn sample(&mut self, passed: Option<Duration>) -> HostRates {
        let now = self.read();
        let rates = HostRates::between(&self.last, &now, passed);
        self.last = now;
        rates
    }

    fn read(&self) -> Counters {
        let proc = &self.roots.proc;
        let pressure = |what| pressure_us(&proc.join("pressure").join(what));
        Counters {
            kernel: KernelStats::from_file(proc.join("stat"), procfs::current_system_info()).ok(),
            disk: self
                .device
                .as_ref()
                .and_then(|device| disk(&proc.join("diskstats"), device)),
            memory: Meminfo::from_file(proc.join("meminfo")).ok(),
            pages_scanned: pages_scanned(&proc.join("vmstat")),
            network_bytes: network_bytes(&self.roots),
            pressure: [pressure("cpu"), pressure("io"), pressure("memory")],
            tcp: tcp_sockets(&proc.join("net/sockstat")),
            listen: listen_failures(&self.roots),
        }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct TcpSockets {
    in_use: Option<u64>,
    time_wait: Option<u64>,
}

/// `TCP: inuse 5 orphan 0 tw 2 alloc 7 mem 1`
fn tcp_sockets(path: &Path) -> TcpSockets {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let words: Vec<&str> = line.unwrap_or_default().split_ascii_whitespace().collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1)?.parse().ok()
    };
    TcpSockets {
        in_use: after("inuse"),
        time_wait: after("tw"),
    }
}

fn disk(path: &Path, device: &Device) -> Option<DiskStat> {
    let DiskStats(disks) = DiskStats::from_file(path).ok()?;
    disks
        .into_iter()
        .find(|disk| disk.major == device.major && disk.minor == device.minor)
}

fn pages_scanned(path: &Path) -> Option<u64> {
    let VmStat(counters) = VmStat::from_file(path).ok()?;
    // `pgscan_anon` and `pgscan_file` split the same pages by kind.
    let names = [
        "pgscan_kswapd",
        "pgscan_direct",
        "pgscan_khugepaged",
        "pgscan_proactive",
    ];
    let found: Vec<u64> = names
        .iter()
        .filter_map(|name| u64::try_from(*counters.get(*name)?).ok())
        .collect();
    (!found.is_empty()).then(|| found.iter().sum())
}

/// Bytes that devices received and sent. Loopback counts once, since each of its bytes is sent and
/// received here; virtual devices beside real ones carry bytes that are already counted.
fn network_bytes(roots: &Roots) -> Option<u64> {
    let InterfaceDeviceStatus(all) =
        InterfaceDeviceStatus::from_file(roots.proc.join("net/dev")).ok()?;
    let loopback = all.get("lo").map_or(0, |lo| lo.sent_bytes);
    let real = |name: &str| {
        roots
            .sys
            .join("class/net")
            .join(name)
            .join("device")
            .exists()
    };
    let any_real = all.keys().any(|name| real(name));
    let others = all
        .values()
        .filter(|d| d.name != "lo" && (!any_real || real(&d.name)));
    Some(loopback + others.map(|d| d.recv_bytes + d.sent_bytes).sum::<u64>())
}

fn pressure_us(path: &Path) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let some = text.lines().find(|line| line.starts_with("some "))?;
    procfs::parse_pressure_record(some)
        .ok()
        .map(|record| record.total)
}

/// The `host.` columns of one sample, in their order.
#[derive(Debug)]
pub(crate) struct HostRates {
    cpu: [Option<f64>; 5],
    disk: DiskRates,
    memory: [Option<f64>; 3],
    rest: [Option<f64>; 6],
    /// Sockets, sockets in TIME_WAIT, overflows and drops per second.
    tcp: [Option<f64>; 4],
    /// All work but that of the hypervisor for others; 100 = one core.
    pub(crate) work_percent: Option<f64>,
    pub(crate) cores: usize,
}

#[derive(Debug, Default)]
struct DiskRates {
    transfers: Option<f64>,
    read_kb: Option<f64>,
    write_kb: Option<f64>,
    merged: Option<f64>,
    queue: Option<f64>,
    busy_percent: Option<f64>,
    service_ms: Option<f64>,
}

impl HostRates {
    pub(crate) const COLUMNS: [&'static str; 26] = [
        "cpu_percent",
        "cpu_user_percent",
        "cpu_system_percent",
        "cpu_iowait_percent",
        "cpu_steal_percent",
        "disk_transfers_per_s",
        "disk_read_kb_per_s",
        "disk_write_kb_per_s",
        "disk_kb_per_s",
        "disk_merged_per_s",
        "disk_queue_length",
        "disk_busy_percent",
        "disk_service_ms",
        "memory_committed_mb",
        "memory_committed_percent",
        "memory_available_mb",
        "scan_rate_pages_per_s",
        "network_kb_per_s",
        "context_switches_per_s",
        "pressure_cpu_some_percent",
        "pressure_io_some_percent",
        "pressure_memory_some_percent",
        "tcp_sockets",
        "tcp_time_wait",
        "listen_overflows_per_s",
        "listen_drops_per_s",
    ];

    pub(crate) fn values(&self) -> [Option<f64>; Self::COLUMNS.len()] {
        let [cpu, user, system, iowait, steal] = self.cpu;
        let d = &self.disk;
        let kb = d.read_kb.zip(d.write_kb).map(|(read, write)| read + write);
        let [committed, committed_percent, available] = self.memory;
        let [scan, network, switches, stall_cpu, stall_io, stall_memory] = self.rest;
        let [sockets, time_wait, overflows, drops] = self.tcp;
        [
            cpu,
            user,
            system,
            iowait,
            steal,
            d.transfers,
            d.read_kb,
            d.write_kb,
            kb,
            d.merged,
            d.queue,
            d.busy_percent,
            d.service_ms,
            committed,
            committed_percent,
            available,
            scan,
            network,
            switches,
            stall_cpu,
            stall_io,
            stall_memory,
            sockets,
            time_wait,
            overflows,
            drops,
        ]
    }

    fn between(before: &Counters, now: &Counters, passed: Option<Duration>) -> Self {
        let kernels = before.kernel.as_ref().zip(now.kernel.as_ref());
        let disks = before.disk.as_ref().zip(now.disk.as_ref());
        // Stalled µs per second ÷ 10⁴ = percent.
        let stall = |i: usize| {
            rate(before.pressure[i], now.pressure[i], passed).map(|r| (r / 1e4).min(100.0))
        };
        let switches = |k: &Option<KernelStats>| k.as_ref().map(|kernel| kernel.ctxt);
        let work = |k: &Option<KernelStats>| k.as_ref().map(|kernel| work(&kernel.total));
        let listen = |count: fn(&ListenFailures) -> u64| {
            let of = |c: &Counters| c.listen.as_ref().map(count);
            rate(of(before), of(now), passed)
        };
        Self {
            cpu: kernels.map_or([None; 5], |(b, n)| cpu(&b.total, &n.total)),
            disk: disks
                .zip(passed)
                .map_or_else(DiskRates::default, |((b, n), t)| disk_rates(b, n, t)),
            memory: now.memory.as_ref().map_or([None; 3], memory),
            rest: [
                rate(before.pages_scanned, now.pages_scanned, passed),
                rate(before.network_bytes, now.network_bytes, passed).map(|bytes| bytes / KB),
                rate(switches(&before.kernel), switches(&now.kernel), passed),
                stall(0),
                stall(1),
                stall(2),
            ],
            tcp: [
                now.tcp.in_use.map(|n| n as f64),
                now.tcp.time_wait.map(|n| n as f64),
                listen(|l| l.overflows),
                listen(|l| l.drops),
            ],
            work_percent: rate(work(&before.kernel), work(&now.kernel), passed)
                .map(|ticks| 100.0 * ticks / procfs::ticks_per_second() as f64),
            cores: now
                .kernel
                .as_ref()
                .map_or(0, |kernel| kernel.cpu_time.len()),
        }
    }
}

/// Ticks that this machine's programs and interrupts used; time of guests is within user and nice.
fn work(cpu: &CpuTime) -> u64 {
    let or0 = |n: Option<u64>| n.unwrap_or(0);
    cpu.user + cpu.nice + cpu.system + or0(cpu.irq) + or0(cpu.softirq)
}

/// Busy, user, system, iowait, steal in percent of all time that the kernel counted between the
/// two; its own sum, so that a tickless or hot-plugged core does no harm.
fn cpu(before: &CpuTime, now: &CpuTime) -> [Option<f64>; 5] {
    let parts = |c: &CpuTime| {
        let or0 = |n: Option<u64>| n.unwrap_or(0);
        let system = c.system + or0(c.irq) + or0(c.softirq);
        [c.user + c.nice, system, or0(c.iowait), or0(c.steal), c.idle]
    };
    let (before, now) = (parts(before), parts(now));
    // The kernel's idle and iowait may step back by a tick.
    let spent: Vec<u64> = now
        .iter()
        .zip(before)
        .map(|(n, b)| n.saturating_sub(b))
        .collect();
    let all: u64 = spent.iter().sum();
    if all == 0 {
        return [None; 5];
    }
    let percent = |ticks: u64| Some(100.0 * ticks as f64 / all as f64);
    let busy = spent[0] + spent[1] + spent[3];
    [
        percent(busy),
        percent(spent[0]),
        percent(spent[1]),
        percent(spent[2]),
        percent(spent[3]),
    ]
}

fn disk_rates(before: &DiskStat, now: &DiskStat, passed: Duration) -> DiskRates {
    let per_second = |f: fn(&DiskStat) -> u64| rate(Some(f(before)), Some(f(now)), Some(passed));
    let transfers = per_second(|d| d.reads + d.writes);
    // ms per second ÷ 10 = percent; the kernel may count a tick beyond the interval.
    let busy_ms = per_second(|d| d.time_in_progress).map(|ms| ms.min(1000.0));
    DiskRates {
        transfers,
        read_kb: per_second(|d| d.sectors_read).map(|n| n / SECTORS_PER_KB),
        write_kb: per_second(|d| d.sectors_written).map(|n| n / SECTORS_PER_KB),
        merged: per_second(|d| d.merged + d.writes_merged),
        queue: per_second(|d| d.weighted_time_in_progress).map(|ms| ms / 1e3),
        busy_percent: busy_ms.map(|ms| ms / 10.0),
        service_ms: busy_ms
            .zip(transfers)
            .filter(|(_, n)| *n > 0.0)
            .map(|(ms, n)| ms / n),
    }
}

fn memory(now: &Meminfo) -> [Option<f64>; 3] {
    let committed = now.committed_as as f64;
    let all = (now.mem_total + now.swap_total) as f64;
    [
        Some(committed / MB),
        (all > 0.0).then(|| 100.0 * committed / all),
        now.mem_available.map(|bytes| bytes as f64 / MB),
    ]
}
