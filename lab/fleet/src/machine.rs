//! What an agent reports about its machine and its own workers.

use std::fs;

use crate::message::Beat;

/// How the driver names the threads of its workers.
const WORKER: &str = "users-";

/// Returns the kernel's random id of this boot.
pub(crate) fn boot_id() -> String {
    text("/proc/sys/kernel/random/boot_id")
}

/// Returns the machine's name.
pub(crate) fn host() -> String {
    text("/proc/sys/kernel/hostname")
}

/// Returns the machine's memory.
pub(crate) fn memory_mb() -> u64 {
    number_of(&text("/proc/meminfo"), "MemTotal:").unwrap_or(0) / 1024
}

/// Returns the cores that this process may run on.
#[must_use]
pub fn own_cores() -> Vec<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(nix::unistd::Pid::from_raw(0)) else {
        return Vec::new();
    };
    let may = |core: &usize| set.is_set(*core).unwrap_or(false);
    (0..CpuSet::count()).filter(may).collect()
}

/// Raises the limit of open files to the maximum: each user has a connection.
pub(crate) fn raise_open_files() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A refused limit shows up as failed connections.
        let _refused = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Returns the resource use of this process's workers so far.
pub(crate) fn beat() -> Beat {
    let mut workers: Vec<(i32, (u64, Option<u64>))> = Vec::new();
    for task in fs::read_dir("/proc/self/task").into_iter().flatten() {
        let Ok(task) = task else { continue };
        let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        let number = name.trim().strip_prefix(WORKER).map(str::parse);
        let Some(Ok(number)) = number else { continue };
        let schedstat = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        workers.extend(times(&schedstat).map(|times| (number, times)));
    }
    workers.sort_unstable();
    let status = text("/proc/self/status");
    Beat {
        workers: workers.into_iter().map(|(_, times)| times).collect(),
        rss_kb: number_of(&status, "VmRSS:").unwrap_or(0),
    }
}

/// Returns ns on a core and ns of waiting for one; a kernel that doesn't count reports 0.
fn times(schedstat: &str) -> Option<(u64, Option<u64>)> {
    let mut numbers = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
    let (cpu, waited) = (numbers.next()?.ok()?, numbers.next()?.ok());
    (cpu > 0).then_some((cpu, waited))
}

fn text(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn number_of(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_does_not_count_tells_nothing() {
        assert_eq!(times("12 34 5"), Some((12, Some(34))));
        assert_eq!(times("0 0 0"), None);
        assert_eq!(times(""), None);
    }

    #[test]
    fn this_machine_is_described() {
        assert!(!own_cores().is_empty() && memory_mb() > 0 && !boot_id().is_empty());
    }

    #[test]
    fn workers_are_found_by_the_name_of_their_threads() {
        let (end, wait) = std::sync::mpsc::sync_channel::<()>(1);
        let (said, begun) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("users-0".to_owned());
        let thread = thread.spawn(move || {
            let sum: u64 = (0..1_000_000u64).map(std::hint::black_box).sum();
            said.send(sum).unwrap();
            let _ended = wait.recv();
        });
        begun.recv().unwrap();
        assert_eq!(beat().workers.len(), 1);
        drop(end);
        thread.unwrap().join().unwrap();
    }
}
