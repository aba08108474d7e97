//! Tests of `machine`.

use super::*;

#[track_caller]
fn check(name: &str, expected: Option<&str>) {
    assert_eq!(kernel_path(name).ok().as_deref(), expected, "{name}");
}

#[test]
fn kernel_settings_have_names_and_paths() {
    check("vm.swappiness", Some("/proc/sys/vm/swappiness"));
    check("vm/swappiness", Some("/proc/sys/vm/swappiness"));
    check("/proc/sys/vm/swappiness", Some("/proc/sys/vm/swappiness"));
    check(
        "net.ipv4.conf.eth0/1.rp_filter",
        Some("/proc/sys/net/ipv4/conf/eth0.1/rp_filter"),
    );
    check(
        "net/ipv4/conf/eth0.1/rp_filter",
        Some("/proc/sys/net/ipv4/conf/eth0.1/rp_filter"),
    );
    check("/sys/kernel/mm/ksm/run", Some("/sys/kernel/mm/ksm/run"));
    check("/dev/cpu_dma_latency", Some("/dev/cpu_dma_latency"));
    for wrong in [
        "",
        "vm",
        ".",
        "/etc/passwd",
        "/dev/sda",
        "/proc/sysrq-trigger",
        "/proc/sys/",
        "/proc/sys/../sysrq-trigger",
        "/sys//x",
        "vm..swappiness",
        "vm/../../sysrq-trigger",
        "vm.//.//.x",
        "vm.a\nb",
    ] {
        check(wrong, None);
    }
}

#[test]
fn cores_are_a_number_or_a_list() {
    assert_eq!(cpus("2").unwrap(), Cpus::Count(2));
    assert_eq!(cpus("0-3").unwrap(), Cpus::List(vec![0, 1, 2, 3]));
    assert_eq!(cpus("3-3").unwrap(), Cpus::List(vec![3]));
    assert_eq!(cpus("4, 0-1,1").unwrap(), Cpus::List(vec![0, 1, 4]));
    for wrong in ["", "0", "-1", "3-1", "1,", "a", "1-b", "0-5000", "99999"] {
        assert!(cpus(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn file_systems_are_of_a_kind_and_a_size() {
    assert_eq!(filesystem(" xfs ").unwrap(), Filesystem::Xfs);
    let error = filesystem("ext3").unwrap_err();
    assert_eq!(error.help.as_deref(), Some("did you mean `ext4`?"));
    assert_eq!(filesystem_bytes("4 GB").unwrap(), 4_000_000_000);
    assert_eq!(filesystem_bytes("320 MB").unwrap(), MIN_FILESYSTEM);
    for wrong in ["", "4", "300 MB", "17000 GB", "1e30 GB", "-4 GB", "much"] {
        assert!(filesystem_bytes(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn mount_options_say_how_and_not_what() {
    assert_eq!(mount_options("noatime").unwrap(), "noatime");
    let two = "data=journal,commit=30";
    assert_eq!(mount_options(two).unwrap(), two);
    // Another name with the start of a refused one.
    assert!(mount_options("rodir,looped=1").is_ok());
    for wrong in [
        "",
        ",",
        "noatime,",
        "no atime",
        "a\nb",
        "loop",
        "noatime,loop=/dev/loop0",
        "ro",
        "remount",
        "offset=4096",
    ] {
        assert!(mount_options(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn kernel_values_are_one_line() {
    assert_eq!(kernel_value(" 4096 1\t2 ").unwrap(), "4096 1\t2");
    assert!(kernel_value(" ").is_err());
    assert!(kernel_value("1\n2").is_err());
    assert!(kernel_value(&"1".repeat(4097)).is_err());
}

#[test]
fn what_cores_may_take_to_wake_is_microseconds() {
    assert_eq!(cpu_latency(" 0 ").unwrap(), "0");
    assert_eq!(cpu_latency("2000000000").unwrap(), "2000000000");
    for wrong in ["", "-1", "soon", "0x10", "2000000001"] {
        assert!(cpu_latency(wrong).is_err(), "{wrong}");
    }
}
