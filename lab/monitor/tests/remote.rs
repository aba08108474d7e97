//! Another machine's counters, from answers of node_exporter with known numbers.

use std::time::Duration;

use lab_monitor::{Monitor, MonitorSpec, NotAnExporter, Roots};

const SECOND: Duration = Duration::from_secs(1);

/// Returns an answer after this number of seconds of the same load.
fn answer(seconds: f64) -> String {
    let mut text = String::from("# HELP node_cpu_seconds_total Seconds the CPUs spent.\n");
    for (mode, share) in [
        ("user", 0.25),
        ("nice", 0.05),
        ("system", 0.1),
        ("softirq", 0.1),
        ("steal", 0.05),
        ("iowait", 0.2),
        ("idle", 0.25),
    ] {
        for cpu in 0..2 {
            let spent = 1000.0 + share * seconds;
            text += &format!("node_cpu_seconds_total{{cpu=\"{cpu}\",mode=\"{mode}\"}} {spent}\n");
        }
    }
    let mut metric = |name: &str, labels: &str, base: f64, rate: f64| {
        text += &format!("node_{name}{labels} {:e}\n", base + rate * seconds);
    };
    for device in ["vda", "vdb"] {
        let device = format!("{{device=\"{device}\"}}");
        metric("disk_reads_completed_total", &device, 5e6, 10.0);
        metric("disk_writes_completed_total", &device, 7e6, 40.0);
        metric("disk_read_bytes_total", &device, 1e9, 10_240.0);
        metric("disk_written_bytes_total", &device, 1e9, 102_400.0);
        metric("disk_io_time_seconds_total", &device, 99.0, 0.2);
        metric("disk_io_time_weighted_seconds_total", &device, 99.0, 0.5);
        metric("disk_reads_merged_total", &device, 0.0, 1.0);
        metric("disk_writes_merged_total", &device, 0.0, 1.0);
    }
    metric(
        "disk_writes_completed_total",
        "{device=\"dm-0\"}",
        0.0,
        999.0,
    );
    metric("memory_Committed_AS_bytes", "", 1_073_741_824.0, 0.0);
    metric("memory_MemTotal_bytes", "", 4_294_967_296.0, 0.0);
    metric("memory_MemAvailable_bytes", "", 2_147_483_648.0, 0.0);
    for (device, rate) in [("lo", 1024.0), ("eth0", 2048.0), ("veth1", 9e9)] {
        let device = format!("{{device=\"{device}\"}}");
        metric("network_receive_bytes_total", &device, 0.0, rate);
        metric("network_transmit_bytes_total", &device, 0.0, rate);
    }
    metric("context_switches_total", "", 1e9, 5000.0);
    metric("pressure_cpu_waiting_seconds_total", "", 3.0, 0.125);
    metric("sockstat_TCP_inuse", "", 12.0, 0.0);
    metric("sockstat_TCP_tw", "", 3.0, 0.0);
    metric("netstat_TcpExt_ListenOverflows", "", 0.0, 2.0);
    text
}

fn monitor() -> Monitor {
    Monitor::new(&MonitorSpec {
        data_dir: None,
        processes: vec![("generator".to_owned(), std::process::id())],
        holds: vec![],
        remote: true,
        roots: Roots::default(),
    })
}

fn get(monitor: &Monitor, row: &[Option<f64>], name: &str) -> Option<f64> {
    let column = monitor.columns().iter().position(|c| c == name);
    row[column.unwrap_or_else(|| panic!("no column {name}"))]
}

#[test]
fn known_answers_give_known_columns() {
    let mut monitor = monitor();
    monitor.take_remote(SECOND, &answer(0.0)).unwrap();
    let first = monitor.sample(SECOND);
    assert_eq!(
        get(&monitor, &first, "host.cpu_percent"),
        None,
        "no rate yet"
    );
    assert_eq!(
        get(&monitor, &first, "host.memory_available_mb"),
        Some(2048.0)
    );
    monitor.take_remote(3 * SECOND, &answer(2.0)).unwrap();
    let second = monitor.sample(3 * SECOND);
    for (name, expected) in [
        ("cpu_percent", 55.0),
        ("cpu_user_percent", 30.0),
        ("cpu_system_percent", 20.0),
        ("cpu_iowait_percent", 20.0),
        ("cpu_steal_percent", 5.0),
        ("disk_transfers_per_s", 100.0),
        ("disk_read_kb_per_s", 20.0),
        ("disk_write_kb_per_s", 200.0),
        ("disk_kb_per_s", 220.0),
        ("disk_merged_per_s", 4.0),
        ("disk_queue_length", 1.0),
        ("disk_busy_percent", 20.0),
        ("disk_service_ms", 4.0),
        ("memory_committed_mb", 1024.0),
        ("memory_committed_percent", 25.0),
        ("network_kb_per_s", 5.0),
        ("context_switches_per_s", 5000.0),
        ("pressure_cpu_some_percent", 12.5),
        ("tcp_sockets", 12.0),
        ("tcp_time_wait", 3.0),
        ("listen_overflows_per_s", 2.0),
    ] {
        let found = get(&monitor, &second, &format!("host.{name}"));
        let near = |v: f64| (v - expected).abs() < 1e-6 * expected;
        assert!(found.is_some_and(near), "{name}: {found:?}, not {expected}");
    }
    for name in [
        "scan_rate_pages_per_s",
        "pressure_io_some_percent",
        "listen_drops_per_s",
    ] {
        assert_eq!(
            get(&monitor, &second, &format!("host.{name}")),
            None,
            "not told"
        );
    }
    assert!(get(&monitor, &second, "generator_host.memory_available_mb").is_some());
}

#[test]
fn an_answer_that_fails_to_come_is_a_row_of_gaps() {
    let mut monitor = monitor();
    monitor.take_remote(SECOND, &answer(0.0)).unwrap();
    monitor.sample(SECOND);
    let without = monitor.sample(2 * SECOND);
    let columns = monitor.columns().to_vec();
    let remote = columns
        .iter()
        .zip(&without)
        .filter(|(c, _)| c.starts_with("host."));
    assert!(remote.clone().count() > 20);
    assert!(remote.clone().all(|(_, value)| value.is_none()));
    assert_eq!(
        monitor.take_remote(3 * SECOND, "<html>no</html>"),
        Err(NotAnExporter)
    );
    assert_eq!(
        monitor.take_remote(3 * SECOND, "go_goroutines 8\n"),
        Err(NotAnExporter)
    );
    monitor.take_remote(4 * SECOND, &answer(3.0)).unwrap();
    let after = monitor.sample(4 * SECOND);
    let rate = get(&monitor, &after, "host.context_switches_per_s");
    assert!(
        rate.is_some_and(|rate| (rate - 5000.0).abs() < 1e-6),
        "over the gap: {rate:?}"
    );
    // The exporter restarted.
    monitor.take_remote(5 * SECOND, &answer(0.0)).unwrap();
    let anew = monitor.sample(5 * SECOND);
    assert_eq!(get(&monitor, &anew, "host.context_switches_per_s"), None);
}
