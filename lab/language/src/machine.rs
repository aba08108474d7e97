//! The machine that a system runs on, as files name it: settings of its kernel, its cores, folders, and arguments
//! of programs.

use serde::{Deserialize, Serialize};

use crate::text_error::TextError;
use crate::units;

/// More cores than any machine has.
const MAX_CORES: u64 = 4096;
/// Longest value of a kernel setting: what one page of the kernel's takes.
const MAX_KERNEL_VALUE: usize = 4096;

/// Cores of a system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cpus {
    /// So many, at least one.
    Count(u32),
    /// These, in order and each once.
    List(Vec<u32>),
}

/// The file that a kernel setting names: `net.ipv4.tcp_autocorking`, `net/ipv4/conf/eth0.1/…`
/// (as sysctl has it: after a first slash, dots are dots), or a whole path.
///
/// # Errors
/// What is no file under /proc/sys or /sys.
pub fn kernel_path(name: &str) -> Result<String, TextError> {
    let refused = |message: &str| {
        TextError::new(message, 0..name.len()).help(
            "write `net.ipv4.tcp_autocorking`, or a path such as \
             `/sys/kernel/mm/transparent_hugepage/enabled`",
        )
    };
    let path = match name.find(['.', '/']) {
        Some(0) => name.to_owned(),
        Some(at) if name.as_bytes()[at] == b'.' => {
            // The other way round below a dot: sysctl writes `eth0/1` for the interface eth0.1.
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
            "a kernel setting is a file under /proc/sys or /sys",
        ));
    };
    let odd = |part: &str| matches!(part, "" | "." | "..") || part.contains(char::is_control);
    if rest.split('/').any(odd) {
        return Err(refused(&format!("`{name}` is no name of a kernel setting")));
    }
    Ok(path)
}

/// What is to be in a kernel setting: one line without its end.
///
/// # Errors
/// Nothing, and what is more than one line or one page.
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

/// Cores: `2`, `0-3`, `1,3`, `0,2-3`.
///
/// # Errors
/// What is neither a number of cores nor a list of them.
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

/// A path that begins at the root.
///
/// # Errors
/// Any other.
pub fn whole_path(text: &str) -> Result<String, TextError> {
    if text.starts_with('/') && !text.contains(char::is_control) {
        return Ok(text.to_owned());
    }
    let error = TextError::new(format!("`{text}` is no whole path"), 0..text.len());
    Err(error.help("write a path that begins with `/`, such as `/mnt/fast`"))
}

/// An argument of a program, or a variable of its environment.
///
/// # Errors
/// A text with a NUL in it.
pub fn argument(text: &str) -> Result<String, TextError> {
    match text.find('\0') {
        Some(at) => Err(TextError::new("no program takes a NUL", at..at + 1)),
        None => Ok(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
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
        for wrong in [
            "",
            "vm",
            ".",
            "/etc/passwd",
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
    fn kernel_values_are_one_line() {
        assert_eq!(kernel_value(" 4096 1\t2 ").unwrap(), "4096 1\t2");
        assert!(kernel_value(" ").is_err());
        assert!(kernel_value("1\n2").is_err());
        assert!(kernel_value(&"1".repeat(4097)).is_err());
    }
}
