//! The monitor against a made-up machine with known counters, and against this one.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lab_monitor::{
    FilesUsed, ListenFailures, Monitor, MonitorSpec, Programs, Roots, Throttling, listen_failures,
    thermal_throttles, throttling,
};

/// A machine in a folder.
struct Machine {
    dir: tempfile::TempDir,
}

const SECOND: Duration = Duration::from_secs(1);

impl Machine {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.dir.path().join(path);
        if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
        .unwrap();
    }

    fn roots(&self) -> Roots {
        Roots {
            proc: self.dir.path().join("proc"),
            sys: self.dir.path().join("sys"),
        }
    }

    /// Puts a disk 8:0 under the folder that the machine itself is in, whatever that is in truth.
    fn disk(&self) -> PathBuf {
        self.put("sys/devices/block/sda/dev", "8:0\n");
        let number = fs::metadata(self.dir.path()).unwrap().dev();
        let (major, minor) = (
            number >> 8 & 0xfff,
            number & 0xff | number >> 12 & 0xffff_ff00,
        );
        let link = self
            .dir
            .path()
            .join(format!("sys/dev/block/{major}:{minor}"));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(self.dir.path().join("sys/devices/block/sda"), link).unwrap();
        self.dir.path().to_path_buf()
    }

    fn process(&self, pid: u32, parent: u32, ticks: (u64, u64), io: (u64, u64), switches: u64) {
        let (user, system) = ticks;
        self.put(
            &format!("proc/{pid}/stat"),
            &format!("{pid} (a b) S {parent} 1 1 0 -1 0 0 0 0 0 {user} {system} 0 0 20 0 2 0 99 4096 256 0\n"),
        );
        let (read, write) = io;
        self.put(
            &format!("proc/{pid}/io"),
            &format!("rchar: 9\nwchar: 9\nsyscr: 9\nsyscw: 9\nread_bytes: {read}\nwrite_bytes: {write}\ncancelled_write_bytes: 0\n"),
        );
        self.put(
            &format!("proc/{pid}/task/{pid}/schedstat"),
            &format!("1000 {} {switches}\n", switches * 1_000_000),
        );
        self.put(&format!("proc/{pid}/fd/0"), "");
        self.put(&format!("proc/{pid}/fd/1"), "");
    }

    fn stat(&self, cpu: &str, ctxt: u64, forks: u64) {
        self.put(
            "proc/stat",
            &format!("cpu  {cpu}\ncpu0 {cpu}\nintr 1 2 3\nctxt {ctxt}\nbtime 1\nprocesses {forks}\nprocs_running 1\nprocs_blocked 0\n"),
        );
    }

    fn diskstats(&self, counters: &str) {
        let other = "8 16 sdb 9 9 9 9 9 9 9 9 9 9 9";
        self.put(
            "proc/diskstats",
            &format!("   {other}\n   8 0 sda {counters}\n"),
        );
    }

    fn pressure(&self, total: u64) {
        for what in ["cpu", "io", "memory"] {
            self.put(
                &format!("proc/pressure/{what}"),
                &format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n"),
            );
        }
    }

    fn network(&self, eth0: (u64, u64), lo: u64) {
        let line = |name: &str, received: u64, sent: u64| {
            format!("{name}: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n")
        };
        let text = [
            "header\n",
            "header\n",
            &line("lo", lo, lo),
            &line("eth0", eth0.0, eth0.1),
            &line("veth7", 7777, 7777),
        ];
        self.put("proc/net/dev", &text.concat());
    }

    fn tcp(&self, time_wait: u64, overflows: u64) {
        let text = format!("sockets: used 9\nTCP: inuse 7 orphan 0 tw {time_wait} alloc 8 mem 1\n");
        self.put("proc/net/sockstat", &text);
        let text = format!(
            "TcpExt: TW ListenOverflows ListenDrops\nTcpExt: 5 {overflows} {}\nIpExt: A\nIpExt: 1\n",
            2 * overflows
        );
        self.put("proc/net/netstat", &text);
    }

    fn memory(&self) {
        let text = fs::read_to_string("/proc/meminfo").unwrap();
        let known = [
            ("MemTotal", 8_000_000),
            ("SwapTotal", 2_000_000),
            ("MemAvailable", 4_194_304),
            ("Committed_AS", 1_048_576),
        ];
        let lines = text.lines().map(|line| {
            let name = line.split(':').next().unwrap();
            let kb = known.iter().find(|(known, _)| *known == name);
            kb.map_or_else(|| line.to_owned(), |(name, kb)| format!("{name}: {kb} kB"))
        });
        self.put("proc/meminfo", &lines.collect::<Vec<_>>().join("\n"));
    }
}

struct Sampled {
    columns: Vec<String>,
    values: Vec<Option<f64>>,
}

impl Sampled {
    fn of(monitor: &mut Monitor, at: Duration) -> Self {
        let values = monitor.sample(at);
        let columns = monitor.columns().to_vec();
        assert_eq!(columns.len(), values.len());
        Self { columns, values }
    }

    fn get(&self, name: &str) -> Option<f64> {
        let column = self.columns.iter().position(|c| c == name);
        self.values[column.unwrap_or_else(|| panic!("no column {name}"))]
    }

    #[track_caller]
    fn check(&self, name: &str, expected: f64) {
        let found = self.get(name).unwrap_or_else(|| panic!("{name} is a gap"));
        assert!(
            (found - expected).abs() < 1e-9 * expected.abs().max(1.0),
            "{name}: {found}, not {expected}"
        );
    }
}

fn machine_at_first() -> (Machine, Monitor) {
    let machine = Machine::new();
    let data_dir = Some(machine.disk());
    machine.stat("100 10 50 800 20 5 5 10 0 0", 1000, 40);
    machine.diskstats("100 10 2000 5 200 20 4000 9 0 1000 5000");
    machine.put(
        "proc/vmstat",
        "nr_free_pages 5\npgscan_kswapd 100\npgscan_direct 10\npgscan_anon 90\n",
    );
    machine.pressure(1_000_000);
    machine.put("sys/class/net/eth0/device", "");
    machine.network((1000, 2000), 500);
    machine.tcp(3, 10);
    machine.memory();
    machine.process(50, 1, (10, 5), (0, 4096), 100);
    machine.process(60, 50, (20, 10), (0, 0), 200);
    machine.process(70, 60, (1, 1), (0, 0), 300);
    machine.process(80, 1, (999, 999), (9, 9), 9);
    let processes = vec![("system".to_owned(), 60), ("generator".to_owned(), 50)];
    let monitor = Monitor::new(&MonitorSpec {
        data_dir,
        processes,
        holds: vec![],
        remote: false,
        roots: machine.roots(),
    });
    (machine, monitor)
}

#[test]
fn the_first_sample_has_levels_and_no_rates() {
    let (_machine, mut monitor) = machine_at_first();
    assert_eq!(monitor.device(), Some("sda"));
    let first = Sampled::of(&mut monitor, SECOND);
    let levels: Vec<&str> = first
        .columns
        .iter()
        .zip(&first.values)
        .filter_map(|(column, value)| value.map(|_| column.as_str()))
        .collect();
    let of = |name: &str| {
        ["cpu_ms_total", "rss_mb", "threads", "open_files"].map(|c| format!("{name}.{c}"))
    };
    let mut expected: Vec<String> = ["committed_mb", "committed_percent", "available_mb"]
        .map(|c| format!("host.memory_{c}"))
        .into();
    expected.extend(["sockets", "time_wait"].map(|c| format!("host.tcp_{c}")));
    expected.extend(of("system"));
    expected.extend(of("generator"));
    assert_eq!(levels, expected);
    first.check("host.memory_committed_mb", 1024.0);
    first.check(
        "host.memory_committed_percent",
        100.0 * 1_048_576.0 / 10_000_000.0,
    );
    first.check("host.memory_available_mb", 4096.0);
}

#[test]
fn known_counters_give_known_host_rates() {
    let (machine, mut monitor) = machine_at_first();
    monitor.sample(SECOND);
    machine.stat("180 30 90 830 40 10 10 20 0 0", 1500, 40);
    machine.diskstats("150 20 2100 8 250 30 4800 19 0 1400 6600");
    machine.put(
        "proc/vmstat",
        "pgscan_kswapd 300\npgscan_direct 20\npgscan_anon 900\n",
    );
    machine.pressure(1_500_000);
    machine.network((2024, 3024), 2548);
    machine.tcp(5, 14);
    let second = Sampled::of(&mut monitor, 3 * SECOND);
    // 210 ticks: user 80 + nice 20, system 40 + irq 5 + softirq 5, steal 10, iowait 20, idle 30.
    second.check("host.cpu_percent", 100.0 * 160.0 / 210.0);
    second.check("host.cpu_user_percent", 100.0 * 100.0 / 210.0);
    second.check("host.cpu_system_percent", 100.0 * 50.0 / 210.0);
    second.check("host.cpu_iowait_percent", 100.0 * 20.0 / 210.0);
    second.check("host.cpu_steal_percent", 100.0 * 10.0 / 210.0);
    second.check("host.disk_transfers_per_s", 50.0);
    second.check("host.disk_read_kb_per_s", 25.0);
    second.check("host.disk_write_kb_per_s", 200.0);
    second.check("host.disk_kb_per_s", 225.0);
    second.check("host.disk_merged_per_s", 10.0);
    second.check("host.disk_queue_length", 0.8);
    second.check("host.disk_busy_percent", 20.0);
    second.check("host.disk_service_ms", 4.0);
    second.check("host.scan_rate_pages_per_s", 105.0);
    second.check("host.network_kb_per_s", 2.0);
    second.check("host.context_switches_per_s", 250.0);
    second.check("host.pressure_cpu_some_percent", 25.0);
    second.check("host.pressure_io_some_percent", 25.0);
    second.check("host.pressure_memory_some_percent", 25.0);
    second.check("host.tcp_sockets", 7.0);
    second.check("host.tcp_time_wait", 5.0);
    second.check("host.listen_overflows_per_s", 2.0);
    second.check("host.listen_drops_per_s", 4.0);
    let idle = Sampled::of(&mut monitor, 4 * SECOND);
    idle.check("host.disk_transfers_per_s", 0.0);
    assert_eq!(
        idle.get("host.disk_service_ms"),
        None,
        "no transfer has no service time"
    );
    assert_eq!(idle.get("host.cpu_percent"), None, "no tick passed");
}

#[test]
fn trees_are_summed_and_named_processes_count_for_themselves() {
    let (machine, mut monitor) = machine_at_first();
    let first = Sampled::of(&mut monitor, SECOND);
    let tick_ms = 1000.0 / procfs::ticks_per_second() as f64;
    let page_mb = procfs::page_size() as f64 / 1048576.0;
    first.check("system.cpu_ms_total", 32.0 * tick_ms);
    first.check("generator.cpu_ms_total", 15.0 * tick_ms);
    first.check("system.rss_mb", 512.0 * page_mb);
    first.check("system.threads", 4.0);
    first.check("system.open_files", 4.0);
    first.check("generator.open_files", 2.0);

    machine.process(60, 50, (30, 15), (2048, 4096), 240);
    machine.process(70, 60, (6, 1), (0, 4096), 300);
    let second = Sampled::of(&mut monitor, 3 * SECOND);
    let percent = |ticks: f64| ticks * tick_ms / 1000.0 / 2.0 * 100.0;
    second.check("system.cpu_percent", percent(20.0));
    second.check("system.cpu_user_percent", percent(15.0));
    second.check("system.cpu_system_percent", percent(5.0));
    second.check("system.read_kb_per_s", 1.0);
    second.check("system.write_kb_per_s", 4.0);
    second.check("system.context_switches_per_s", 20.0);
    second.check("generator.cpu_percent", 0.0);
    // 40 switches of the simulated thread have 40 ms of waiting.
    second.check("system.run_queue_percent", 2.0);
}

#[test]
fn work_of_nobody_known_is_of_others() {
    let (machine, mut monitor) = machine_at_first();
    monitor.sample(SECOND);
    // 70 ticks of work, 20 of them the system's and 5 the generator's.
    machine.stat("140 20 60 800 20 10 10 90 0 0", 1000, 40);
    machine.process(60, 50, (30, 20), (0, 0), 240);
    machine.process(50, 1, (15, 5), (0, 4096), 100);
    let second = Sampled::of(&mut monitor, 3 * SECOND);
    let tick_s = 1.0 / procfs::ticks_per_second() as f64;
    second.check("host.cpu_others_percent", 45.0 * tick_s / 2.0 * 100.0);
    // The kernel may count more for processes than for the machine.
    machine.process(60, 50, (90, 20), (0, 0), 240);
    let third = Sampled::of(&mut monitor, 4 * SECOND);
    third.check("host.cpu_others_percent", 0.0);
}

#[test]
fn programs_are_told_by_name_without_the_ones_that_are_known() {
    let (machine, _) = machine_at_first();
    let before = Programs::look(&machine.roots());
    machine.process(60, 50, (500, 500), (0, 0), 1);
    machine.process(80, 1, (1000, 1008), (9, 9), 9);
    let stat = |pid: u32, name: &str, parent: u32, own: u64, ended: u64| {
        let line = format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 0 0 0 0 0 {own} 0 {ended} 0 20 0 2 0 7 4096 256 0\n"
        );
        machine.put(&format!("proc/{pid}/stat"), &line);
    };
    stat(81, "cc (1)", 80, 30, 0);
    let between = Programs::look(&machine.roots());
    let second = Duration::from_secs_f64(100.0 / procfs::ticks_per_second() as f64);
    let busiest = |now: &Programs, before: &Programs| {
        let programs = now.busiest(before, second, &[50], 3);
        programs
            .into_iter()
            .map(|p| (p.name, p.cpu_percent.round()))
            .collect::<Vec<_>>()
    };
    let expected = [("cc (1)", 30.0), ("a b", 10.0)].map(|(name, ticks)| (name.to_owned(), ticks));
    assert_eq!(busiest(&between, &before), expected);
    // The compiler ends after twelve more ticks, and another one runs for five.
    machine.remove("proc/81");
    machine.put(
        "proc/80/stat",
        "80 (make) S 1 1 1 0 -1 0 0 0 0 0 1000 1008 47 0 20 0 2 0 99 4096 256 0\n",
    );
    let last = Programs::look(&machine.roots());
    assert_eq!(busiest(&last, &between), [("make".to_owned(), 17.0)]);
    assert_eq!(busiest(&Programs::default(), &last), []);
    // A build tool dies with a compiler below it, whose old work the first process then counts.
    let first = |ended: u64| {
        machine.put(
            "proc/1/stat",
            &format!("1 (init) S 0 1 1 0 -1 0 0 0 0 0 5 0 {ended} 0 20 0 2 0 1 4096 256 0\n"),
        );
    };
    first(0);
    stat(82, "cc", 80, 4000, 0);
    let before = Programs::look(&machine.roots());
    machine.remove("proc/80");
    machine.remove("proc/82");
    first(4000 + 1000 + 1008 + 47 + 20);
    let after = Programs::look(&machine.roots());
    assert_eq!(busiest(&after, &before), [("init".to_owned(), 20.0)]);
}

#[test]
fn the_process_nearest_its_own_limit_counts() {
    let (machine, mut monitor) = machine_at_first();
    let limit = |pid: u32, soft: u64| {
        let line = format!("Max open files  {soft}  20000  files\n");
        let text = format!("Limit  Soft Limit  Hard Limit  Units\n{line}");
        machine.put(&format!("proc/{pid}/limits"), &text);
    };
    let open = |pid: u32, fd: u32| machine.put(&format!("proc/{pid}/fd/{fd}"), "");
    let used = |open, limit| Some(FilesUsed { open, limit });
    monitor.sample(SECOND);
    assert_eq!(monitor.nearest_files("system"), None, "no limit is told");
    assert_eq!(monitor.all_files(), None);
    limit(60, 4);
    limit(70, 4);
    open(60, 2);
    open(70, 2);
    machine.put("proc/sys/fs/file-nr", "900 0 1000\n");
    monitor.sample(2 * SECOND);
    // Six in all, of which each may have some.
    assert_eq!(monitor.nearest_files("system"), used(3, 4));
    assert_eq!(monitor.nearest_files("generator"), None);
    assert_eq!(monitor.nearest_files("nobody"), None);
    assert_eq!(monitor.all_files(), used(900, 1000));
    for fd in 3..10 {
        open(60, fd);
    }
    machine.remove("proc/70/fd/2");
    limit(60, 20);
    machine.put("proc/sys/fs/file-nr", "100 0 1000\n");
    monitor.sample(3 * SECOND);
    assert_eq!(
        monitor.nearest_files("system"),
        used(3, 4),
        "it was nearest"
    );
    assert_eq!(monitor.all_files(), used(900, 1000));
    limit(60, 10);
    open(60, 10);
    monitor.sample(4 * SECOND);
    assert_eq!(monitor.nearest_files("system"), used(10, 10));
    let (machine, mut monitor) = machine_at_first();
    machine.put("proc/sys/fs/file-nr", "900 0 9223372036854775807\n");
    monitor.sample(SECOND);
    assert_eq!(monitor.all_files(), None, "no limit to speak of");
}

#[test]
fn limits_are_read_where_the_kernel_tells_them() {
    let (machine, _) = machine_at_first();
    let roots = machine.roots();
    let failures = ListenFailures {
        overflows: 10,
        drops: 20,
    };
    assert_eq!(listen_failures(&roots), Some(failures));
    assert_eq!(throttling(&roots, 60), None);
    machine.put("proc/60/cgroup", "2:memory:/x\n0::/a/b\n");
    assert_eq!(throttling(&roots, 60), None);
    machine.put("sys/fs/cgroup/cpu.stat", "usage_usec 5\n");
    machine.put(
        "sys/fs/cgroup/a/cpu.stat",
        "nr_periods 9\nnr_throttled 2\nthrottled_usec 3000\n",
    );
    machine.put(
        "sys/fs/cgroup/a/b/cpu.stat",
        "nr_periods 9\nnr_throttled 1\nthrottled_usec 500\n",
    );
    let both = Throttling {
        periods: 3,
        held_back_us: 3500,
    };
    assert_eq!(throttling(&roots, 60), Some(both));
    machine.put("proc/60/cgroup", "2:cpu,cpuacct:/a\n0::/\n");
    machine.put(
        "sys/fs/cgroup/cpu,cpuacct/a/cpu.stat",
        "nr_throttled 4\nthrottled_time 5000000\n",
    );
    let first_version = Throttling {
        periods: 4,
        held_back_us: 5000,
    };
    assert_eq!(throttling(&roots, 60), Some(first_version));
    assert_eq!(thermal_throttles(&roots), None);
    for (core, count) in [(0, 3), (1, 4)] {
        let path = format!("sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_count");
        machine.put(&path, &format!("{count}\n"));
    }
    assert_eq!(thermal_throttles(&roots), Some(7));
}

#[test]
fn children_come_and_go_without_a_fall_in_the_sums() {
    let (machine, mut monitor) = machine_at_first();
    let tick_ms = 1000.0 / procfs::ticks_per_second() as f64;
    monitor.sample(SECOND);
    machine.remove("proc/70");
    machine.process(90, 60, (4, 0), (0, 0), 10);
    machine.stat("100 10 50 800 20 5 5 10 0 0", 1000, 41);
    let second = Sampled::of(&mut monitor, 2 * SECOND);
    second.check("system.cpu_ms_total", 36.0 * tick_ms);
    second.check("system.context_switches_per_s", 10.0);
    machine.remove("proc/60");
    let third = Sampled::of(&mut monitor, 3 * SECOND);
    for column in [
        "cpu_percent",
        "cpu_ms_total",
        "rss_mb",
        "threads",
        "open_files",
    ] {
        assert_eq!(
            third.get(&format!("system.{column}")),
            None,
            "the process has ended"
        );
    }
    third.check("generator.cpu_percent", 0.0);
}

#[test]
fn each_missing_or_damaged_file_is_a_gap() {
    let files = [
        "stat",
        "diskstats",
        "meminfo",
        "vmstat",
        "net/dev",
        "net/netstat",
        "net/sockstat",
        "pressure/io",
        "60/io",
        "60/stat",
        "60/task",
        "60/fd",
    ];
    for file in files {
        for damage in [
            None,
            Some(""),
            Some("some\n"),
            Some("x (\n"),
            Some("\u{0}\u{1} ( ) 5\n"),
        ] {
            let (machine, mut monitor) = machine_at_first();
            monitor.sample(SECOND);
            let path = format!("proc/{file}");
            machine.remove(&path);
            if let Some(text) = damage {
                machine.put(&path, text);
            }
            let sampled = Sampled::of(&mut monitor, 2 * SECOND);
            let gaps = sampled.values.iter().filter(|v| v.is_none()).count();
            let usual = 2; // No tick, no transfer.
            assert!(
                gaps >= usual && gaps < sampled.values.len() - 5,
                "{file} {damage:?}: {gaps} gaps"
            );
        }
    }
}

#[test]
fn nothing_at_all_is_all_gaps() {
    let machine = Machine::new();
    let spec = MonitorSpec {
        data_dir: Some(machine.dir.path().join("none")),
        processes: vec![("system".to_owned(), u32::MAX)],
        holds: vec![],
        remote: false,
        roots: machine.roots(),
    };
    let mut monitor = Monitor::new(&spec);
    for at in [SECOND, SECOND, 2 * SECOND] {
        assert!(monitor.sample(at).iter().all(Option::is_none));
    }
}

/// A child in a process group of its own; the group is ended with the test.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-9", "--", &group]).status();
        let _ = self.0.wait();
    }
}

fn this_machine(processes: Vec<(String, u32)>) -> Monitor {
    let data_dir = Some(Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf());
    Monitor::new(&MonitorSpec {
        data_dir,
        processes,
        holds: vec![],
        remote: false,
        roots: Roots::default(),
    })
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "waits for real counters with a deadline"
)]
fn this_machine_has_numbers() {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "(while :; do :; done) & wait"])
        .stdin(Stdio::null())
        .process_group(0);
    let shell = Group(shell.spawn().unwrap());
    let pid = shell.0.id();
    let mut monitor = this_machine(vec![
        ("system".to_owned(), pid),
        ("generator".to_owned(), std::process::id()),
    ]);
    let began = Instant::now();
    monitor.sample(Duration::ZERO);
    // The busy loop is a grandchild of this test and a child of the shell.
    let sampled = loop {
        let at = began.elapsed();
        assert!(
            at < Duration::from_secs(120),
            "the child's loop never counted"
        );
        let sampled = Sampled::of(&mut monitor, at);
        if sampled
            .get("system.cpu_ms_total")
            .is_some_and(|ms| ms >= 200.0)
        {
            break sampled;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    for column in [
        "host.memory_available_mb",
        "host.network_kb_per_s",
        "generator.rss_mb",
        "generator.open_files",
    ] {
        assert!(sampled.get(column).is_some_and(|v| v >= 0.0), "{column}");
    }
    assert!(sampled.get("system.threads").is_some_and(|n| n >= 2.0));
    for (column, value) in sampled.columns.iter().zip(&sampled.values) {
        if column.starts_with("host.") && column.ends_with("percent") {
            assert!(
                value.is_none_or(|v| (0.0..=100.0).contains(&v)),
                "{column} {value:?}"
            );
        }
    }
}
