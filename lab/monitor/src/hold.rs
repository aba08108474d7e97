//! Processes that belong together independent of their parents: those of a control group, or those
//! with a mark in their environment. It starts and ends none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::roots::Roots;
use crate::stat::Stat;

/// Most control groups below one that are read; no real server creates more.
const MOST_GROUPS: usize = 10_000;

/// Selects the processes of a system among all others, also those that left their parents (`setsid`,
/// a second fork).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hold {
    /// The folder of a control group that nothing else is in.
    pub cgroup: Option<PathBuf>,
    /// Without a control group: a variable in their environment, as `NAME=value`.
    pub mark: String,
    /// Without a control group: the process that adopts orphans. Its children that lead a session of their own
    /// are selected, whatever their environment, except these.
    pub reaper: Option<(u32, BTreeSet<i32>)>,
}

impl Hold {
    /// The processes that live, in no order.
    #[must_use]
    pub fn members(&self, roots: &Roots) -> Vec<i32> {
        let found = match &self.cgroup {
            Some(folder) => in_group(folder),
            None => self.marked(&roots.proc),
        };
        let lives = |pid: &i32| Stat::read(&roots.proc, *pid).is_some_and(|stat| !stat.is_zombie);
        found.into_iter().filter(lives).collect()
    }

    /// Returns all processes with the mark.
    #[must_use]
    pub fn marked(&self, proc: &Path) -> BTreeSet<i32> {
        let has_mark = |pid: i32| {
            let environment = fs::read(proc.join(pid.to_string()).join("environ"));
            let environment = environment.unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| variable == self.mark.as_bytes())
        };
        let held = |pid: &i32| self.is_orphan(proc, *pid) || has_mark(*pid);
        processes(proc).filter(held).collect()
    }

    fn is_orphan(&self, proc: &Path, pid: i32) -> bool {
        let Some((reaper, known)) = &self.reaper else {
            return false;
        };
        let reaper = i32::try_from(*reaper).unwrap_or(-1);
        let leads = |stat: Stat| stat.parent == reaper && stat.session == pid;
        !known.contains(&pid) && Stat::read(proc, pid).is_some_and(leads)
    }

    /// Children of a process that lead sessions of their own.
    #[must_use]
    pub fn session_leaders_below(roots: &Roots, parent: u32) -> BTreeSet<i32> {
        let hold = Self {
            reaper: Some((parent, BTreeSet::new())),
            ..Self::default()
        };
        let leads = |pid: &i32| hold.is_orphan(&roots.proc, *pid);
        processes(&roots.proc).filter(leads).collect()
    }
}

fn processes(proc: &Path) -> impl Iterator<Item = i32> + use<> {
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the processes of the group and of all groups below it.
fn in_group(folder: &Path) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    for folder in groups_below(folder) {
        let text = fs::read_to_string(folder.join("cgroup.procs")).unwrap_or_default();
        found.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    }
    found
}

/// The folders of a control group and of all groups below it, of at most 10,000 groups.
#[must_use]
pub fn groups_below(folder: &Path) -> Vec<PathBuf> {
    let mut waiting = vec![folder.to_path_buf()];
    let mut found = Vec::new();
    while found.len() < MOST_GROUPS
        && let Some(folder) = waiting.pop()
    {
        let below = fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        waiting.extend(below.map(|entry| entry.path()));
        found.push(folder);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(proc: &Path, pid: i32, parent: i32, (session, state): (i32, &str), environ: &str) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(&folder).unwrap();
        let rest = "0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 44 1000 6 0";
        let stat = format!("{pid} (x) {state} {parent} {pid} {session} {rest}\n");
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("environ"), environ).unwrap();
    }

    #[test]
    fn those_of_a_group_and_below_it_are_held() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().join("proc"),
            ..Roots::default()
        };
        for (pid, state) in [(11, "S"), (12, "Z"), (13, "R")] {
            process(&roots.proc, pid, 1, (pid, state), "");
        }
        let group = dir.path().join("group");
        fs::create_dir_all(group.join("inner")).unwrap();
        fs::write(group.join("cgroup.procs"), "11\n12\n").unwrap();
        fs::write(group.join("inner/cgroup.procs"), "13\n99\n").unwrap();
        let hold = Hold {
            cgroup: Some(group),
            ..Hold::default()
        };
        assert_eq!(
            hold.members(&roots),
            [11, 13],
            "no zombie, none that is gone"
        );
    }

    #[test]
    fn without_a_group_a_mark_or_an_own_session_tells() {
        let dir = tempfile::tempdir().unwrap();
        let roots = Roots {
            proc: dir.path().to_path_buf(),
            ..Roots::default()
        };
        let me = 50;
        process(dir.path(), 60, me, (40, "S"), "A=1\0HELD=7\0");
        process(dir.path(), 61, 1, (61, "S"), "HELD=7");
        process(dir.path(), 62, 1, (62, "S"), "HELD=77\0XHELD=7");
        process(dir.path(), 63, me, (63, "S"), "cleared=1");
        process(dir.path(), 64, me, (64, "S"), "of before");
        process(dir.path(), 65, me, (40, "S"), "a generator");
        let hold = Hold {
            cgroup: None,
            mark: "HELD=7".to_owned(),
            reaper: Some((50, BTreeSet::from([64]))),
        };
        assert_eq!(hold.members(&roots), [60, 61, 63]);
        let leaders = Hold::session_leaders_below(&roots, 50);
        assert_eq!(leaders, BTreeSet::from([63, 64]));
    }
}
