//! The state of a machine at the start of a trial. It changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use lab_archive::StartingState;
use lab_host::machine::boot_id;
use lab_host::sysctl;
use lab_study::{CPU_LATENCY, KernelSetting};

use crate::scratch::size_below;

/// Settings that affect a server: scheduler, memory, network, clocks, frequency. Some don't exist on every machine.
const KERNEL_SETTINGS: [&str; 30] = [
    "/proc/sys/fs/file-max",
    "/proc/sys/fs/nr_open",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/pid_max",
    "/proc/sys/kernel/sched_autogroup_enabled",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/net/core/default_qdisc",
    "/proc/sys/net/core/netdev_max_backlog",
    "/proc/sys/net/core/rmem_max",
    "/proc/sys/net/core/somaxconn",
    "/proc/sys/net/core/wmem_max",
    "/proc/sys/net/ipv4/ip_local_port_range",
    "/proc/sys/net/ipv4/tcp_autocorking",
    "/proc/sys/net/ipv4/tcp_congestion_control",
    "/proc/sys/net/ipv4/tcp_fin_timeout",
    "/proc/sys/net/ipv4/tcp_max_syn_backlog",
    "/proc/sys/net/ipv4/tcp_rmem",
    "/proc/sys/net/ipv4/tcp_slow_start_after_idle",
    "/proc/sys/net/ipv4/tcp_tw_reuse",
    "/proc/sys/net/ipv4/tcp_wmem",
    "/proc/sys/vm/dirty_background_bytes",
    "/proc/sys/vm/dirty_background_ratio",
    "/proc/sys/vm/dirty_bytes",
    "/proc/sys/vm/dirty_ratio",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/swappiness",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    "/sys/kernel/mm/transparent_hugepage/enabled",
];

/// The state of this machine, with the data in a folder, and the settings that a study touches. Hashes are empty.
#[must_use]
pub fn starting_state<'s>(
    data: &Path,
    touched: impl Iterator<Item = &'s KernelSetting>,
) -> StartingState {
    let (data_bytes, data_files) = size_below(data);
    StartingState {
        data_bytes,
        data_files,
        kernel_release: text("/proc/sys/kernel/osrelease"),
        kernel_settings: kernel_settings(touched),
        boot_id: boot_id().unwrap_or_default(),
        ..StartingState::default()
    }
}

fn kernel_settings<'s>(
    touched: impl Iterator<Item = &'s KernelSetting>,
) -> BTreeMap<String, String> {
    let touched = touched.filter(|setting| is_of_kernel(&setting.path));
    let touched = touched.map(|setting| (setting.name.clone(), setting.path.as_str()));
    let fixed = KERNEL_SETTINGS.map(|path| (name(path), path));
    touched
        .chain(fixed)
        .filter_map(|(name, path)| Some((name, sysctl::read(path).ok()?)))
        .collect()
}

/// A remote conductor may read no other files.
fn is_of_kernel(path: &str) -> bool {
    let whole = fs::canonicalize(path);
    path == CPU_LATENCY
        || whole.is_ok_and(|whole| whole.starts_with("/proc/sys") || whole.starts_with("/sys"))
}

/// The name of a file below `/proc/sys` has dots.
fn name(path: &str) -> String {
    let setting = path.strip_prefix("/proc/sys/");
    setting.map_or_else(|| path.to_owned(), |setting| setting.replace('/', "."))
}

fn text(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_by_their_usual_names_and_each_is_listed_once() {
        assert_eq!(name("/proc/sys/net/core/somaxconn"), "net.core.somaxconn");
        let thp = "/sys/kernel/mm/transparent_hugepage/enabled";
        assert_eq!(name(thp), thp);
        assert!(KERNEL_SETTINGS.is_sorted());
    }

    #[test]
    fn no_other_file_is_read() {
        let setting = |path: &str| KernelSetting {
            name: "x".to_owned(),
            path: path.to_owned(),
            value: String::new(),
        };
        for path in [
            "/etc/hostname",
            "/proc/sys/../../etc/hostname",
            "/proc/self/environ",
        ] {
            assert!(
                !kernel_settings([setting(path)].iter()).contains_key("x"),
                "{path}"
            );
        }
        let known = setting("/proc/sys/kernel/osrelease");
        assert!(kernel_settings([known].iter()).contains_key("x"));
    }
}
