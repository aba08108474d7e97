//! The CPU time of one system, read on demand, and the processes that it consists of.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::hold::Hold;
use crate::ledger::Ledger;
use crate::roots::Roots;
use crate::stat::Stat;
use crate::tree::ProcessTable;

/// Reads the CPU time of a process with its descendants, and of the processes that its hold selects.
///
/// Processes that ended keep counting. The counter is that of the control group where the system has one of version 2,
/// in microseconds; otherwise it is summed over the processes, in ticks of the kernel.
#[derive(Debug)]
pub struct CpuTime {
    table: ProcessTable,
    hold: Option<Hold>,
    ticks: Ledger<(i32, u64)>,
    processes: Vec<i32>,
}

impl CpuTime {
    /// Selects the process `pid`, its descendants, and the processes in `hold`. Reads no counter yet.
    #[must_use]
    pub fn new(roots: Roots, pid: u32, hold: Option<Hold>) -> Self {
        // No process has an id beyond i32; such a one is never found.
        let pid = i32::try_from(pid).unwrap_or(-1);
        Self {
            table: ProcessTable::new(roots, vec![(pid, hold.clone())]),
            hold,
            ticks: Ledger::default(),
            processes: Vec::new(),
        }
    }

    /// Reads the CPU time since the processes began; `None` if none of them lives.
    pub fn read(&mut self) -> Option<Duration> {
        self.table.refresh(None);
        let tree = self.table.tree(0);
        let stats = tree
            .into_iter()
            .filter_map(|pid| Some((pid, Stat::read(self.table.proc(), pid)?)));
        let stats: Vec<(i32, Stat)> = stats.collect();
        self.processes = stats.iter().map(|(pid, _)| *pid).collect();
        let ticks = stats
            .iter()
            .map(|(pid, stat)| ((*pid, stat.started), stat.ticks()));
        let ticks = self.ticks.update(ticks);
        if stats.is_empty() {
            return None;
        }
        let of_group = self.group().and_then(group_usage);
        of_group.or_else(|| {
            let per_second = procfs::ticks_per_second().max(1);
            Some(Duration::from_nanos(
                ticks.saturating_mul(1_000_000_000 / per_second),
            ))
        })
    }

    /// The processes that lived at the last reading.
    #[must_use]
    pub fn processes(&self) -> &[i32] {
        &self.processes
    }

    /// The folder of the control group that holds the system and nothing else.
    #[must_use]
    pub fn group(&self) -> Option<&Path> {
        self.hold.as_ref()?.cgroup.as_deref()
    }
}

/// `usage_usec` of a group's `cpu.stat`, which only version 2 has.
fn group_usage(folder: &Path) -> Option<Duration> {
    let text = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    let mut lines = text.lines();
    let usage = lines.find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(Duration::from_micros(usage.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: i32, parent: i32, ticks: u64) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let rest = format!("0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 44 1000 6 0");
        let stat = format!("{pid} (x) S {parent} {pid} {pid} {rest}\n");
        fs::write(folder.join("stat"), stat).unwrap();
    }

    #[test]
    fn ended_processes_keep_counting() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().to_path_buf(),
            ..Roots::default()
        };
        process(dir.path(), 10, 1, 100);
        process(dir.path(), 11, 10, 50);
        process(dir.path(), 12, 1, 1000);
        let tick = Duration::from_secs(1) / procfs::ticks_per_second() as u32;
        let mut cpu = CpuTime::new(roots, 10, None);
        assert_eq!(cpu.read(), Some(tick * 150));
        assert_eq!(cpu.processes(), [10, 11]);
        fs::remove_dir_all(dir.path().join("11")).unwrap();
        process(dir.path(), 10, 1, 110);
        assert_eq!(cpu.read(), Some(tick * 160));
        fs::remove_dir_all(dir.path().join("10")).unwrap();
        assert_eq!(cpu.read(), None);
    }

    #[test]
    fn the_counter_of_a_group_comes_first() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("group");
        fs::create_dir(&group).unwrap();
        fs::write(group.join("cpu.stat"), "usage_usec 1234\nuser_usec 1000\n").unwrap();
        assert_eq!(group_usage(&group), Some(Duration::from_micros(1234)));
        fs::write(group.join("cpu.stat"), "nr_periods 3\n").unwrap();
        assert_eq!(group_usage(&group), None);
    }
}
