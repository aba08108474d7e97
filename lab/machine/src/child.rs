//! A child process that never outlives this one. It knows nothing of servers.
//!
//! A killed process can't clean up, so a guard does: a shell that waits at the end of a pipe which only this process
//! holds. When the pipe closes, for whatever reason, the guard kills its process group, into which the child is born:
//! there is no moment at which it would not know what to kill. Processes that leave the group are killed through their
//! `Held`. That needs no help from the child and does not depend on which thread started it, as `PR_SET_PDEATHSIG`
//! does.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{
    Child as Process, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio,
};
use std::time::Duration;

use lab_host::clock::{Stopwatch, pause};
use lab_host::cores::Pinned;
use lab_host::held::Held;
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Interval between two checks of a child that was asked to end.
const LOOK: Duration = Duration::from_millis(5);

/// The kernel removes a killed process as soon as it has the time.
const KILLED_WITHIN: Duration = Duration::from_secs(10);

/// A line on the pipe: normal end. The end of the pipe without one: this process died. Held processes are killed first:
/// by control group ($1) or mark ($2), with a few retries.
const GUARD: &str = r#"trap '' HUP INT TERM
read -r end && exit 0
for again in 1 2 3 4 5 6 7 8 9 10; do
  if [ -n "$1" ]; then
    echo 1 > "$1/cgroup.kill" || held=$(cat "$1/cgroup.procs")
  elif [ -n "$2" ]; then
    held=$(grep -lsF "$2" /proc/[0-9]*/environ | cut -d/ -f3)
  fi
  for pid in $held; do kill -s KILL "$pid"; done
  [ -z "$1" ] || rmdir "$1" && break
  sleep 0.1
done
kill -s KILL 0"#;

/// A child process in a group of its own. Dropped, it and its group are killed.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    group: Pid,
    guard: Guard,
    ended: Option<ExitStatus>,
    /// Holds all its descendants.
    held: Option<Held>,
}

impl Child {
    /// Starts `command` on `cores`. Descendants that it leaves in other process groups live on.
    pub(crate) fn start(command: Command, cores: &[u32]) -> io::Result<Self> {
        Self::started(command, cores, None)
    }

    /// Starts `command` on `cores`, and holds all its descendants. A command that succeeds and leaves a process running
    /// is a daemon: it lives as long as that process.
    pub(crate) fn hold(command: Command, cores: &[u32], held: Held) -> io::Result<Self> {
        Self::started(command, cores, Some(held))
    }

    fn started(mut command: Command, cores: &[u32], held: Option<Held>) -> io::Result<Self> {
        let guard = Guard::start(held.as_ref())?;
        if let Some(held) = &held {
            held.mark(&mut command);
        }
        let pinned = Pinned::to(cores)?;
        let process = command.process_group(guard.group.as_raw()).spawn()?;
        drop(pinned);
        if let Some(held) = &held {
            held.take(process.id());
        }
        Ok(Self {
            process,
            group: guard.group,
            guard,
            ended: None,
            held,
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Takes the pipes of its output and its errors, where nothing reads them yet.
    pub(crate) fn pipes(&mut self) -> (Option<ChildStdout>, Option<ChildStderr>) {
        (self.process.stdout.take(), self.process.stderr.take())
    }

    /// What holds its descendants; `None` if it was only started.
    pub(crate) fn held(&self) -> Option<&Held> {
        self.held.as_ref()
    }

    /// The exit status, if it has ended together with any daemon that it left.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.own_end()?;
        let is_daemon = self.ended.is_some_and(|status| status.success()) && self.has_left_any();
        Ok(self.ended.filter(|_| !is_daemon))
    }

    /// Returns true if any held descendant lives.
    pub(crate) fn has_left_any(&self) -> bool {
        let left = |held: &Held| !held.members().is_empty();
        self.held.as_ref().is_some_and(left)
    }

    /// The exit status of its own process.
    pub(crate) fn own_end(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.process.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Sends `signal`, and kills it with its group after `grace`. Returns how it ended; `None` if it had to be killed.
    pub(crate) fn stop(self, signal: Signal, grace: Duration) -> io::Result<Option<ExitStatus>> {
        self.stop_within(signal, || grace)
    }

    /// Like [`Self::stop`], with a grace that may change meanwhile.
    pub(crate) fn stop_within(
        mut self,
        signal: Signal,
        grace: impl Fn() -> Duration,
    ) -> io::Result<Option<ExitStatus>> {
        let asked = Stopwatch::start();
        // The first process of a daemon has already ended.
        let is_daemon = self.own_end()?.is_some();
        match &self.held {
            Some(held) if is_daemon => held.ask(signal),
            // A process that has just ended can't be signalled; the loop finds it.
            _ => {
                if let Ok(id) = i32::try_from(self.id()) {
                    let _ = kill(Pid::from_raw(id), signal);
                }
            }
        }
        while asked.elapsed() < grace() {
            let ended = if is_daemon {
                self.ended()?
            } else {
                self.own_end()?
            };
            if let Some(status) = ended {
                return Ok(Some(status));
            }
            pause(LOOK);
        }
        Ok(None)
    }

    fn end(&mut self) {
        // Also after its end: its descendants may still run. An empty group is no error worth reporting, and neither is
        // a guard that was killed before.
        let _ = killpg(self.group, Signal::SIGKILL);
        if let Some(held) = &self.held {
            let began = Stopwatch::start();
            while !held.kill() && began.elapsed() < KILLED_WITHIN {
                pause(LOOK);
            }
        }
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
    fn start(held: Option<&Held>) -> io::Result<Self> {
        let mut shell = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .args(held.map(Held::words).into_iter().flatten())
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
    use lab_host::cores;

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

    /// Ended, or a zombie that its new parent has not reaped yet.
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

    /// A program that forks twice, becomes a session leader, and prints its id; with a worker below. Its parent exits
    /// at once, successfully.
    fn daemon(file: &std::path::Path, trap: &str) -> Command {
        let mut command = Command::new("sh");
        let worker = format!("{trap} sleep 600 & echo $$ $! > $0.new; mv $0.new $0; wait; wait");
        let script = format!("cd /; (setsid sh -c '{worker}' $0 </dev/null >/dev/null 2>&1 &) &");
        command.args(["-c", &script]).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn told(file: &std::path::Path) -> Vec<u32> {
        until("the daemon tells its ids", || file.exists());
        let text = std::fs::read_to_string(file).unwrap();
        text.split_whitespace()
            .map(|id| id.parse().unwrap())
            .collect()
    }

    #[test]
    fn a_daemon_is_held_and_ends_with_its_child() {
        for with_group in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("ids");
            let ends = "trap \"kill \\$! ; exit 0\" TERM;";
            let held = Held::new(with_group);
            let mut child = Child::hold(daemon(&file, ends), &all_cores(), held).unwrap();
            let ids = told(&file);
            until("its parent ends", || child.own_end().unwrap().is_some());
            assert_eq!(child.ended().unwrap(), None, "the daemon lives");
            // During exec, a process has no environment for a moment.
            until("all are held", || {
                let members = child.held().unwrap().members();
                let held = |id: &u32| members.contains(&i32::try_from(*id).unwrap());
                ids.iter().all(held)
            });
            let status = child.stop(Signal::SIGTERM, DEADLINE).unwrap();
            assert!(
                status.is_some_and(|status| status.success()),
                "it was asked"
            );
            until("all is gone", || ids.iter().all(|id| is_gone(*id)));
            // A process that ignores the signal.
            let file = dir.path().join("more");
            let held = Held::new(with_group);
            let deaf = daemon(&file, "trap \"\" TERM;");
            let mut child = Child::hold(deaf, &all_cores(), held).unwrap();
            let ids = told(&file);
            until("its parent ends", || child.own_end().unwrap().is_some());
            let stopped = child.stop(Signal::SIGTERM, Duration::from_millis(100));
            assert_eq!(stopped.unwrap(), None);
            until("all is gone", || ids.iter().all(|id| is_gone(*id)));
        }
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

    /// Run by the next test as a separate process: starts a child from a thread that ends at once, prints its id, and
    /// waits to be killed.
    #[test]
    #[ignore = "a helper of another test"]
    fn helper_with_a_child() {
        let child = std::thread::spawn(|| Child::start(sleeper(), &all_cores()).unwrap());
        let child = child.join().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let daemons = [true, false].map(|with_group| {
            let file = dir.path().join(with_group.to_string());
            let held = Held::new(with_group);
            let child = Child::hold(daemon(&file, ""), &all_cores(), held).unwrap();
            (child, told(&file))
        });
        let ids: Vec<String> = daemons
            .iter()
            .flat_map(|(_, ids)| ids)
            .map(u32::to_string)
            .collect();
        println!(
            "child={} guard={} daemons={}",
            child.id(),
            child.guard.shell.id(),
            ids.join(",")
        );
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
        let (_, ids) = line.split_once("daemons=").unwrap();
        for id in ids.trim().split(',').map(|id| id.parse().unwrap()) {
            until("the daemons end", || is_gone(id));
        }
        until("the guard ends", || is_gone(guard));
    }
}
