//! The machine of a system, as files describe it: settings of its kernel, its cores, folders, and arguments of
//! programs.

use serde::{Deserialize, Serialize};

use crate::text_error::TextError;
use crate::units;

/// More cores than any machine has.
const MAX_CORES: u64 = 4096;
/// Longest value of a kernel setting: one page of the kernel.
const MAX_KERNEL_VALUE: usize = 4096;
/// Smallest size for each kind of file system: xfs requires 300 MiB.
const MIN_FILESYSTEM: u64 = 320_000_000;
/// Largest size for each kind on every machine: that of ext4 with its usual blocks.
const MAX_FILESYSTEM: u64 = 16_000_000_000_000;
/// The wake-up latency limit of cores, in microseconds: the kernel applies it while a process has the file open.
pub const CPU_LATENCY: &str = "/dev/cpu_dma_latency";
/// The kernel's default: `PM_QOS_CPU_LATENCY_DEFAULT_VALUE`, in microseconds.
const MAX_CPU_LATENCY: u64 = 2_000_000_000;
/// Longest text of mount options: one page of the kernel.
const MAX_OPTIONS: usize = 4095;
/// Mount options that select the mounted file system or make it read-only.
const OWN_OPTIONS: [&str; 8] = [
    "bind",
    "loop",
    "move",
    "offset",
    "rbind",
    "remount",
    "ro",
    "sizelimit",
];

/// Cores of a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cpus {
    /// Any cores, at least one.
    Count(u32),
    /// These cores, in order and without duplicates.
    List(Vec<u32>),
}

/// A file system that can be made for a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Filesystem {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

impl Filesystem {
    /// Its name in files, in the kernel, and of the program that makes it (`mkfs.NAME`).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }
}

/// Parses a kind of file system.
///
/// # Errors
/// When the kind is unknown.
pub fn filesystem(text: &str) -> Result<Filesystem, TextError> {
    let all = [Filesystem::Ext4, Filesystem::Xfs, Filesystem::Btrfs];
    units::one_named("file system", text, &all.map(|one| (one.name(), one)))
}

/// Parses the size of a file system for a trial.
///
/// # Errors
/// When the text is no size, or one that not every kind of file system can have.
pub fn filesystem_bytes(text: &str) -> Result<u64, TextError> {
    let refused = |message: &str| {
        let error = TextError::new(message, 0..text.len());
        error.help("write 320 MB to 16000 GB, such as `4 GB`")
    };
    match units::size(text, u64::MAX)? {
        ..MIN_FILESYSTEM => Err(refused("no kind of file system is sure to fit into that")),
        bytes if bytes > MAX_FILESYSTEM => Err(refused("not every file system can be that large")),
        bytes => Ok(bytes),
    }
}

/// Parses mount options, as after `mount -o`.
///
/// # Errors
/// When the text is invalid, or selects the mounted file system or makes it read-only.
pub fn mount_options(text: &str) -> Result<String, TextError> {
    let odd = |c: char| c.is_whitespace() || c.is_control();
    let mut parts = text.split(',');
    if text.len() > MAX_OPTIONS || text.contains(odd) || parts.clone().any(str::is_empty) {
        let error = TextError::new("these are no mount options", 0..text.len());
        return Err(error.help("write them as after `mount -o`: `noatime,nodiratime`"));
    }
    let is_own = |part: &&str| {
        let name = part.split('=').next().unwrap_or(part);
        OWN_OPTIONS.contains(&name)
    };
    match parts.find(is_own) {
        None => Ok(text.to_owned()),
        Some(own) => {
            let message = format!("`{own}` can't be among the mount options");
            let error = TextError::new(message, 0..text.len());
            Err(error.help("the trial's own file system is mounted, for writing"))
        }
    }
}

/// The file of a kernel setting: `net.ipv4.tcp_autocorking`, `net/ipv4/conf/eth0.1/…` (as in sysctl: after a first
/// slash, dots are dots), or an absolute path.
///
/// # Errors
/// When it is no file under /proc/sys or /sys, nor [`CPU_LATENCY`].
pub fn kernel_path(name: &str) -> Result<String, TextError> {
    if name == CPU_LATENCY {
        return Ok(name.to_owned());
    }
    let refused = |message: &str| {
        TextError::new(message, 0..name.len()).help(
            "write `net.ipv4.tcp_autocorking`, or a path such as \
             `/sys/kernel/mm/transparent_hugepage/enabled`",
        )
    };
    let path = match name.find(['.', '/']) {
        Some(0) => name.to_owned(),
        Some(at) if name.as_bytes()[at] == b'.' => {
            // Swapped after a first dot: sysctl writes `eth0/1` for the interface eth0.1.
            let swap = |c: char| match c {
                '.' => '/',
                '/' => '.',
                c => c,
            };
            format!("/proc/sys/{}", name.chars().map(swap).collect::<String>())
        }
        Some(_) => format!("/proc/sys/{name}"),
        None => return Err(refused(&format!("`{name}` is no name of a kernel setting"))),
    };
    let rest = path
        .strip_prefix("/proc/sys/")
        .or_else(|| path.strip_prefix("/sys/"));
    let Some(rest) = rest else {
        return Err(refused(
            "a kernel setting is a file under /proc/sys or /sys, or /dev/cpu_dma_latency",
        ));
    };
    let odd = |part: &str| matches!(part, "" | "." | "..") || part.contains(char::is_control);
    if rest.split('/').any(odd) {
        return Err(refused(&format!("`{name}` is no name of a kernel setting")));
    }
    Ok(path)
}

/// Parses a value of [`CPU_LATENCY`]: microseconds.
///
/// # Errors
/// When the text is no whole number of them, or more than the kernel's default.
pub fn cpu_latency(text: &str) -> Result<String, TextError> {
    let microseconds = units::whole_number(text, 0..=MAX_CPU_LATENCY)?;
    Ok(microseconds.to_string())
}

/// Parses a value of a kernel setting: one line without its end.
///
/// # Errors
/// When the text is empty, or more than one line or one page.
pub fn kernel_value(text: &str) -> Result<String, TextError> {
    let value = text.trim();
    if value.is_empty() {
        let error = TextError::new("a kernel setting needs a value", 0..text.len());
        return Err(error.help("leave the setting out to keep what the machine has"));
    }
    if value.len() > MAX_KERNEL_VALUE || value.contains(|c: char| c.is_control() && c != '\t') {
        let message = "a kernel setting is one line of at most 4096 bytes";
        return Err(TextError::new(message, 0..text.len()));
    }
    Ok(value.to_owned())
}

/// Parses cores: `2`, `0-3`, `1,3`, `0,2-3`.
///
/// # Errors
/// When the text is neither a number of cores nor a list of them.
pub fn cpus(text: &str) -> Result<Cpus, TextError> {
    let text = text.trim();
    if !text.contains(['-', ',']) {
        let count = units::whole_number(text, 1..=MAX_CORES)?;
        return Ok(Cpus::Count(count as u32));
    }
    let wrong = || {
        let error = TextError::new(format!("`{text}` names no cores"), 0..text.len());
        error.help("write how many, such as `2`, or which, such as `0-3` or `1,3`")
    };
    let number = |text: &str| units::whole_number(text.trim(), 0..=MAX_CORES - 1);
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = number(first)
            .and_then(|first| Ok((first, number(last)?)))
            .map_err(|_| wrong())?;
        if first > last {
            return Err(wrong());
        }
        list.extend((first..=last).map(|core| core as u32));
    }
    list.sort_unstable();
    list.dedup();
    Ok(Cpus::List(list))
}

/// Parses an absolute path.
///
/// # Errors
/// When the path is relative.
pub fn whole_path(text: &str) -> Result<String, TextError> {
    if text.starts_with('/') && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    let error = TextError::new(format!("`{text}` is no whole path"), 0..text.len());
    Err(error.help("write a path that begins with `/`, such as `/mnt/fast`"))
}

/// Parses an argument of a program, or a variable of its environment.
///
/// # Errors
/// When the text contains a NUL.
pub fn argument(text: &str) -> Result<String, TextError> {
    match text.find('\0') {
        Some(at) => Err(TextError::new("no program takes a NUL", at..at + 1)),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
