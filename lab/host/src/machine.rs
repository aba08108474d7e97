//! Facts about this machine: for the archive, and for the limits that a plan must fit.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lab_archive::{Environment, Pinning};
use lab_monitor::{Roots, mount_of};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::statvfs::statvfs;
use procfs::{FromRead, Meminfo};

/// The limits of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most open files of one process.
    pub open_files: u64,
    /// Ports for outgoing connections to one server.
    pub ports: u64,
    /// Memory available without swapping.
    pub memory_bytes: u64,
    /// Free space in the run's folder.
    pub disk_bytes: u64,
}

impl Limits {
    /// Reads them. An unreadable limit is unlimited.
    pub fn read(run: &Path) -> Self {
        let open_files = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(_, hard)| hard);
        Self {
            open_files,
            ports: ports().unwrap_or(u64::MAX),
            memory_bytes: memory().and_then(|m| m.mem_available).unwrap_or(u64::MAX),
            disk_bytes: free_bytes(run).unwrap_or(u64::MAX),
        }
    }
}

/// The random id that the kernel generates at each boot.
///
/// # Errors
/// When the kernel doesn't report it.
pub fn boot_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// Returns true if the owner of this process is root.
pub fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

/// Ports for outgoing connections.
pub fn ports() -> Option<u64> {
    port_count(&fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok()?)
}

/// Number of open files of this process.
pub fn own_open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Number of ports in a range given by two numbers.
fn port_count(range: &str) -> Option<u64> {
    let mut ends = range.split_ascii_whitespace().map(str::parse::<u64>);
    let (first, last) = (ends.next()?.ok()?, ends.next()?.ok()?);
    (last + 1).checked_sub(first)
}

fn memory() -> Option<Meminfo> {
    Meminfo::from_file("/proc/meminfo").ok()
}

/// Space for this user in the folder, or in its nearest existing parent.
pub fn free_bytes(dir: &Path) -> Option<u64> {
    let found = statvfs(&existing(dir)?).ok()?;
    Some(
        found
            .blocks_available()
            .saturating_mul(found.fragment_size()),
    )
}

/// The nearest existing folder at or above `dir`, as an absolute path.
fn existing(dir: &Path) -> Option<PathBuf> {
    let dir = std::path::absolute(dir).ok()?;
    dir.ancestors().find_map(|dir| fs::canonicalize(dir).ok())
}

/// Raises the limit of open files of this process, and of the system under test, to the hard limit.
pub fn raise_open_files() -> io::Result<()> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(())
}

/// The description of the machine for the archive; `run` is the folder of the data.
pub fn environment(run: &Path, pinning: Pinning) -> Environment {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Environment {
        kernel: kernel.trim().to_owned(),
        cpu: cpu_model(&cpuinfo),
        cores: cores(&cpuinfo),
        memory_mb: memory().map_or(0, |m| m.mem_total >> 20),
        os: os_name(&release),
        data_filesystem: filesystem(run).unwrap_or_else(unknown),
        plimsoll_version: env!("CARGO_PKG_VERSION").to_owned(),
        pinning,
    }
}

/// Cores of this machine.
#[must_use]
pub fn cores_here() -> u32 {
    cores(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default())
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn cpu_model(cpuinfo: &str) -> String {
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    // 64-bit Arm only reports numbers.
    let arm = || Some(format!("CPU part {}", field("CPU part")?));
    field("model name").or_else(arm).unwrap_or_else(unknown)
}

fn cores(cpuinfo: &str) -> u32 {
    let count = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn os_name(release: &str) -> String {
    let line = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    line.map_or_else(unknown, |name| name.trim_matches('"').to_owned())
}

/// The file system that contains the folder.
pub fn filesystem(dir: &Path) -> Option<String> {
    let mounts = lab_monitor::mounts(&Roots::default()).ok()?;
    mount_of(&mounts, &existing(dir)?).map(|mount| mount.kind.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_kernel_parse() {
        assert_eq!(port_count("32768\t60999\n"), Some(28_232));
        assert_eq!(port_count("5 4"), Some(0));
        assert_eq!(port_count("9 4"), None);
        assert_eq!(port_count("x"), None);
        let cpuinfo = "processor\t: 0\nmodel name\t: A: fast CPU\n\nprocessor\t: 1\n";
        assert_eq!(
            (cpu_model(cpuinfo), cores(cpuinfo)),
            ("A: fast CPU".to_owned(), 2)
        );
        assert_eq!(
            cpu_model("processor : 0\nCPU part\t: 0xd0c\n"),
            "CPU part 0xd0c"
        );
        assert_eq!(cpu_model(""), "unknown");
        assert_eq!(os_name("NAME=x\nPRETTY_NAME=\"An OS 1\"\n"), "An OS 1");
    }

    #[test]
    fn this_machine_has_facts() {
        let pinning = Pinning {
            generator: vec![0],
            system: vec![0],
            shared: true,
        };
        let facts = environment(Path::new("not/there"), pinning);
        assert!(facts.cores > 0 && facts.memory_mb > 0 && !facts.kernel.is_empty());
        assert_ne!(facts.data_filesystem, "unknown");
        assert_eq!(filesystem(Path::new("/proc/self")).as_deref(), Some("proc"));
        let limits = Limits::read(Path::new("not/there"));
        assert!(limits.open_files > 0 && limits.disk_bytes > 0 && limits.memory_bytes > 0);
    }

    #[test]
    fn the_limit_of_open_files_is_raised() {
        raise_open_files().unwrap();
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
        assert_eq!(soft, hard);
    }
}
