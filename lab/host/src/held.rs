//! Holds all processes of the system under test, so that none escapes: not by `setsid`, not by a second fork, not by a
//! parent that ends.
//!
//! Uses a control group of its own if possible, of version 2 or 1. Otherwise a variable in the environment marks its
//! processes, and this process adopts orphans (`PR_SET_CHILD_SUBREAPER`), so that a process which cleared its
//! environment is found as well.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use lab_monitor::{Hold, Roots};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;

/// The variable that marks a process.
const MARK: &str = "PLIMSOLL_HELD";
/// Prefix of the names of our control groups.
const GROUP: &str = "plimsoll-";
/// Most scans for processes that a process forked before it was held.
const MOST_LOOKS: usize = 100;
/// The controllers of version 1, any of which can hold processes.
const FIRST_VERSION: [&str; 4] = ["freezer", "pids", "name=systemd", "cpuacct"];

/// A system's processes.
#[derive(Debug)]
pub struct Held {
    hold: Hold,
    value: String,
    roots: Roots,
}

impl Held {
    /// Uses a control group, if one can be made; `with_group` is false in tests only.
    pub fn new(with_group: bool) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let value = format!("{}-{number}", std::process::id());
        let roots = Roots::default();
        let cgroup = if with_group { group(&value) } else { None };
        let reaper = cgroup.is_none().then(|| {
            // An old kernel without it only finds processes with the mark.
            let _ = set_child_subreaper(true);
            let own = std::process::id();
            (own, Hold::session_leaders_below(&roots, own))
        });
        let hold = Hold {
            cgroup,
            mark: format!("{MARK}={value}"),
            reaper,
        };
        Self { hold, value, roots }
    }

    /// For a program besides a system: without a group, orphans without the mark may be the system's, and are not held.
    pub fn without_orphans() -> Self {
        let mut held = Self::new(true);
        held.hold.reaper = None;
        held
    }

    /// Marks a command whose processes are to be held.
    pub fn mark(&self, command: &mut Command) {
        command.env(MARK, &self.value);
    }

    /// Holds a process that has just started, with its children so far.
    pub fn take(&self, pid: u32) {
        let Some(folder) = &self.hold.cgroup else {
            return;
        };
        let enter = |pid: i32| fs::write(folder.join("cgroup.procs"), pid.to_string());
        // The process may have ended.
        let _ = i32::try_from(pid).map(enter);
        // The next scan finds processes forked during a scan; after two scans that find none outside, all are inside,
        // and so are their future children.
        let mut clean = 0;
        for _ in 0..MOST_LOOKS {
            let inside = self.hold.members(&self.roots);
            let marked = self.hold.marked(&self.roots.proc);
            let outside: Vec<i32> = marked
                .into_iter()
                .filter(|pid| !inside.contains(pid))
                .collect();
            let moved = outside
                .into_iter()
                .filter(|pid| enter(*pid).is_ok())
                .count();
            clean = if moved == 0 { clean + 1 } else { 0 };
            if clean == 2 {
                return;
            }
        }
    }

    /// The identity of its counters.
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// The live processes.
    pub fn members(&self) -> Vec<i32> {
        self.hold.members(&self.roots)
    }

    /// Signals the processes without a parent among the others: parents stop their own children.
    pub fn ask(&self, signal: Signal) {
        let members = self.members();
        for pid in &members {
            let parent = procfs::process::Process::new(*pid).and_then(|process| process.stat());
            let is_below = parent.is_ok_and(|stat| members.contains(&stat.ppid));
            if !is_below {
                let _ = kill(Pid::from_raw(*pid), signal);
            }
        }
    }

    /// Kills all processes; returns true when none is left. Since Linux 5.14 a group is killed at once; on others the
    /// next call kills processes forked meanwhile.
    pub fn kill(&self) -> bool {
        let members = self.members();
        if members.is_empty() {
            return true;
        }
        let at_once = self.hold.cgroup.as_ref();
        if at_once.is_none_or(|folder| fs::write(folder.join("cgroup.kill"), "1").is_err()) {
            for pid in &members {
                let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
            }
        }
        if self.hold.reaper.is_some() {
            for pid in &members {
                // Adopted ones must be reaped here; for the others the call fails, which is ignored.
                let _ = waitpid(Pid::from_raw(*pid), Some(WaitPidFlag::WNOHANG));
            }
        }
        false
    }

    /// Pins threads that left these cores to them again: a child inherits its parent's cores, and may choose others.
    /// Returns how many.
    pub fn keep_on(&self, cores: &[u32]) -> usize {
        let mut wanted = CpuSet::new();
        for core in cores {
            // A core that doesn't exist can't be set, and no thread can have left it.
            let _ = usize::try_from(*core).map(|core| wanted.set(core));
        }
        let threads = self.members().into_iter().flat_map(|pid| {
            let threads = fs::read_dir(self.roots.proc.join(pid.to_string()).join("task"));
            threads.into_iter().flatten().flatten()
        });
        let threads = threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let left = |thread: &i32| {
            sched_getaffinity(Pid::from_raw(*thread)).is_ok_and(|set| {
                let is_on = |core: usize| set.is_set(core).unwrap_or(false);
                (0..CpuSet::count())
                    .any(|core| is_on(core) && !wanted.is_set(core).unwrap_or(false))
            })
        };
        threads
            .filter(left)
            .filter(|thread| sched_setaffinity(Pid::from_raw(*thread), &wanted).is_ok())
            .count()
    }

    /// For a guard that outlives this process: the group's folder, or empty, and the mark.
    pub fn words(&self) -> [String; 2] {
        let folder = self.hold.cgroup.as_ref();
        let folder = folder.map_or_else(String::new, |folder| folder.display().to_string());
        [folder, self.hold.mark.clone()]
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(folder) = &self.hold.cgroup {
            remove(folder);
        }
    }
}

/// Removes nested groups first; a group with processes stays.
fn remove(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(folder);
}

/// Makes a group below that of this process; `None` if that is not possible, or it can't be entered.
fn group(name: &str) -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    own_groups(&groups, &mounts)
        .into_iter()
        .find_map(|own| make(&own, name).ok())
}

fn make(own: &Path, name: &str) -> io::Result<PathBuf> {
    // Groups of a killed run are empty by now; others can't be removed.
    for entry in fs::read_dir(own)?.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(GROUP)?.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove(&entry.path());
        }
    }
    let folder = own.join(format!("{GROUP}{name}"));
    fs::create_dir(&folder)?;
    // Only a move shows whether a process may be moved there.
    let probe = Command::new("true").spawn().and_then(|mut probe| {
        let entered = fs::write(folder.join("cgroup.procs"), probe.id().to_string());
        probe.wait()?;
        // It may already have ended.
        entered.or_else(|error| match error.raw_os_error() {
            Some(code) if code == nix::errno::Errno::ESRCH as i32 => Ok(()),
            _ => Err(error),
        })
    });
    match probe {
        Ok(()) => Ok(folder),
        Err(error) => {
            remove(&folder);
            Err(error)
        }
    }
}

/// The folders of this process's groups, version 2 first. `groups` is `/proc/self/cgroup`, a line
/// `ID:CONTROLLERS:PATH` for each hierarchy; `mounts` is `/proc/self/mountinfo`.
fn own_groups(groups: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let wanted = std::iter::once("").chain(FIRST_VERSION);
    for controller in wanted {
        let path = groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            controllers
                .split(',')
                .any(|one| one == controller)
                .then_some(path)
        });
        let folder = path.and_then(|path| {
            let mounts = mounts.lines();
            mounts
                .filter_map(|line| mounted(line, controller))
                .find_map(|(root, at)| {
                    let below = Path::new(path).strip_prefix(root).ok()?;
                    Some(Path::new(at).join(below))
                })
        });
        found.extend(folder);
    }
    found
}

/// Root and mount point of a line of mountinfo (proc_pid_mountinfo(5)) of this hierarchy.
fn mounted<'l>(line: &'l str, controller: &str) -> Option<(&'l str, &'l str)> {
    let (mount, system) = line.split_once(" - ")?;
    let mut system = system.split(' ');
    let (kind, options) = (system.next()?, system.nth(1)?);
    let is_it = match controller {
        "" => kind == "cgroup2",
        name => kind == "cgroup" && options.split(',').any(|option| option == name),
    };
    let mut fields = mount.split(' ').skip(3);
    is_it.then_some((fields.next()?, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_groups_are_found_in_both_versions_and_in_a_container() {
        let mounts = "\
25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw
30 25 0:27 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw
31 25 0:28 /docker/abc /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
32 25 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd
";
        let groups = "9:name=systemd:/user\n6:freezer:/docker/abc/deep\n2:cpu,cpuacct:/\n0::/user.slice/me\n";
        let expected = [
            "/sys/fs/cgroup/unified/user.slice/me",
            "/sys/fs/cgroup/freezer/deep",
            "/sys/fs/cgroup/systemd/user",
        ];
        assert_eq!(own_groups(groups, mounts), expected.map(PathBuf::from));
        assert!(own_groups("", mounts).is_empty() && own_groups(groups, "").is_empty());
        let outside = "0::/other\n";
        let container = "30 25 0:27 /docker /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert!(own_groups(outside, container).is_empty());
    }
}
