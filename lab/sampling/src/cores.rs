//! The cores that processes may use.

use std::collections::BTreeSet;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use procfs::process::Process;

/// Online cores that any thread of these processes may use.
pub(crate) fn of(processes: &[i32]) -> Vec<u32> {
    let tasks = processes
        .iter()
        .filter_map(|pid| Process::new(*pid).ok()?.tasks().ok());
    let mut found = BTreeSet::new();
    for task in tasks.flatten().flatten() {
        let Ok(set) = sched_getaffinity(Pid::from_raw(task.tid)) else {
            continue;
        };
        let cores = (0..CpuSet::count()).filter(|core| set.is_set(*core).unwrap_or(false));
        found.extend(cores.filter_map(|core| u32::try_from(core).ok()));
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_may_use_some() {
        assert!(!of(&[std::process::id() as i32]).is_empty());
        assert!(of(&[-1]).is_empty());
    }
}
