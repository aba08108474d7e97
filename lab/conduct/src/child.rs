//! A child process that never outlives this one. It knows nothing of servers.
//!
//! A process that is killed can't clean up, so somebody else must: a guard, a shell that waits at
//! the end of a pipe which only this process holds. When the pipe closes, for whatever reason, it
//! kills its process group, which the child is born into: there is no moment at which it would not
//! know what to kill. That needs no help from the child and does not depend on which
//! thread started it, as `PR_SET_PDEATHSIG` does.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child as Process, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::clock::{Stopwatch, pause};
use crate::cores::Pinned;

/// Between two looks at a child that was asked to end.
const LOOK: Duration = Duration::from_millis(5);

/// A line: all is well. The end of the pipe without one: this process died.
const GUARD: &str = "trap '' HUP INT TERM
read -r end && exit 0
kill -s KILL 0";

/// A child process in a group of its own. Dropped, it and its group are killed.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    group: Pid,
    guard: Guard,
    ended: Option<ExitStatus>,
}

impl Child {
    /// Starts `command` on `cores`.
    pub(crate) fn start(mut command: Command, cores: &[u32]) -> io::Result<Self> {
        let guard = Guard::start()?;
        let pinned = Pinned::to(cores)?;
        let process = command.process_group(guard.group.as_raw()).spawn()?;
        drop(pinned);
        Ok(Self {
            process,
            group: guard.group,
            guard,
            ended: None,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.process.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Asks it to end by `signal`, and kills it with its group after `grace`. How it
    /// ended; `None` if it had to be killed.
    pub(crate) fn stop(
        mut self,
        signal: Signal,
        grace: Duration,
    ) -> io::Result<Option<ExitStatus>> {
        let asked = Stopwatch::start();
        // One that has just ended can't be asked; the loop finds it.
        if let Ok(id) = i32::try_from(self.id()) {
            let _ = kill(Pid::from_raw(id), signal);
        }
        while asked.elapsed() < grace {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            pause(LOOK);
        }
        Ok(None)
    }

    fn end(&mut self) {
        // Also after its end: what it started may still run. A group that is empty is no error
        // worth telling, and neither is a guard that was killed before.
        let _ = killpg(self.group, Signal::SIGKILL);
        if self.ended.is_none() {
            let _ = self.process.wait();
        }
        self.guard.end();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

#[derive(Debug)]
struct Guard {
    shell: Process,
    /// Led by the shell.
    group: Pid,
    pipe: Option<ChildStdin>,
}

impl Guard {
    fn start() -> io::Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", GUARD])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = shell.stdin.take();
        let group = Pid::from_raw(i32::try_from(shell.id()).map_err(|_| Errno::ESRCH)?);
        Ok(Self { shell, group, pipe })
    }

    fn end(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            let _ = writeln!(pipe, "end");
        }
        let _ = self.shell.wait();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::path::PathBuf;

    use super::*;
    use crate::cores;

    const DEADLINE: Duration = Duration::from_secs(120);

    fn sleeper() -> Command {
        let mut command = Command::new("sleep");
        command
            .arg("600")
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn all_cores() -> Vec<u32> {
        cores::allowed().unwrap()
    }

    /// Gone, or dead and not yet reaped by whoever inherited it.
    fn is_gone(pid: u32) -> bool {
        let stat =
            std::fs::read_to_string(PathBuf::from("/proc").join(pid.to_string()).join("stat"));
        stat.map_or(true, |stat| {
            stat.rsplit(')')
                .next()
                .is_some_and(|rest| rest.starts_with(" Z"))
        })
    }

    #[track_caller]
    fn until(what: &str, mut condition: impl FnMut() -> bool) {
        let began = Stopwatch::start();
        while !condition() {
            assert!(
                began.elapsed() < DEADLINE,
                "{what}: not within {DEADLINE:?}"
            );
            pause(LOOK);
        }
    }

    #[test]
    fn a_child_ends_when_asked_and_when_dropped() {
        let child = Child::start(sleeper(), &all_cores()).unwrap();
        let pid = child.id();
        assert!(
            child.stop(Signal::SIGTERM, DEADLINE).unwrap().is_some(),
            "sleep ends on SIGTERM"
        );
        assert!(is_gone(pid));
        let child = Child::start(sleeper(), &all_cores()).unwrap();
        let pid = child.id();
        drop(child);
        assert!(is_gone(pid));
    }

    #[test]
    fn one_that_does_not_listen_is_killed_with_its_children() {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            "trap '' TERM; sleep 600 & echo $!; while :; do wait; done",
        ]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = Child::start(command, &all_cores()).unwrap();
        let mut line = String::new();
        BufReader::new(child.process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let grandchild: u32 = line.trim().parse().unwrap();
        let pid = child.id();
        let stopped = child.stop(Signal::SIGTERM, Duration::from_millis(100));
        assert_eq!(stopped.unwrap(), None);
        assert!(is_gone(pid));
        until("the grandchild ends", || is_gone(grandchild));
    }

    #[test]
    fn a_child_starts_on_its_cores() {
        let last = *all_cores().last().unwrap();
        let child = Child::start(sleeper(), &[last]).unwrap();
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let list = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(list.map(str::trim), Some(last.to_string().as_str()));
        assert_ne!(all_cores(), [] as [u32; 0]);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        assert!(Child::start(Command::new("/nowhere/at/all"), &all_cores()).is_err());
    }

    /// Run by the next test as a process of its own: starts a child from a thread that ends at
    /// once, tells its id, and waits to be killed.
    #[test]
    #[ignore = "a helper of another test"]
    fn helper_with_a_child() {
        let child = std::thread::spawn(|| Child::start(sleeper(), &all_cores()).unwrap());
        let child = child.join().unwrap();
        println!("child={} guard={}", child.id(), child.guard.shell.id());
        loop {
            pause(DEADLINE);
        }
    }

    #[test]
    fn a_child_does_not_survive_the_kill_of_its_parent() {
        let mut helper = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "--nocapture",
                "child::tests::helper_with_a_child",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(helper.stdout.take().unwrap()).lines();
        let line = lines
            .map(Result::unwrap)
            .find(|line| line.contains("child="))
            .unwrap();
        let id = |name: &str| -> u32 {
            let at = line.find(name).unwrap() + name.len();
            line[at..]
                .split_whitespace()
                .next()
                .unwrap()
                .parse()
                .unwrap()
        };
        let (child, guard) = (id("child="), id("guard="));
        assert!(
            !is_gone(child),
            "it lives on when the thread that started it ends"
        );
        helper.kill().unwrap();
        helper.wait().unwrap();
        until("the child ends", || is_gone(child));
        until("the guard ends", || is_gone(guard));
    }
}
