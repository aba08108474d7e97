//! Kernel settings of a study, on the real kernel: in force during a trial, recorded, and restored however the run
//! ends, SIGKILL included.
//!
//! The settings are limits of ICMP answers, which no other test and no server uses. One test has them at a time. Where
//! they can't be written, the tests print that and do nothing.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::{program, wait_until};

#[path = "kernel/storage.rs"]
mod storage;

const DEADLINE: Duration = Duration::from_secs(120);
const RATE: &str = "/proc/sys/net/ipv4/icmp_ratelimit";
const BURST: &str = "/proc/sys/net/ipv4/icmp_msgs_burst";

/// A study that varies one setting and fixes another.
const STUDY: &str = "\
study: kernel
title: Two rates
workload: hello.workload.yaml
matrix:
  rate: [1500, 1600]
system:
  groupware: { engine: memory }
  kernel:
    net.ipv4.icmp_ratelimit: \"{{ rate }}\"
    /proc/sys/net/ipv4/icmp_msgs_burst: 51
load: { users: 2, hold: HOLD }
repeats: 0
order: listed
";

const WORKLOAD: &str = "\
workload: hello
session:
  steps:
    - { step: Look, wait: 50ms, request: GET /healthz }
";

struct Stage {
    folder: tempfile::TempDir,
    rate: String,
    burst: String,
    _alone: MutexGuard<'static, ()>,
}

impl Stage {
    /// Returns `None`, with a message, if this machine's settings can't be written.
    fn new(hold: &str) -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        for path in [RATE, BURST] {
            if let Err(error) = OpenOptions::new().write(true).open(path) {
                eprintln!("SKIPPED: {path} can't be written here: {error}");
                return None;
            }
        }
        let folder = tempfile::tempdir().expect("a folder");
        let study = STUDY.replace("HOLD", hold);
        fs::write(folder.path().join("kernel.study.yaml"), study).expect("written");
        fs::write(folder.path().join("hello.workload.yaml"), WORKLOAD).expect("written");
        Some(Self {
            folder,
            rate: read(RATE),
            burst: read(BURST),
            _alone: alone,
        })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program());
        command
            .arg(name)
            .arg("--state")
            .arg(self.path("state"))
            .env("PLIMSOLL_PATIENCE", "0")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, out: &str) -> Command {
        let mut command = self.command("run");
        command
            .arg(self.path("kernel.study.yaml"))
            .arg("--out")
            .arg(self.path(out));
        command
    }

    fn start(&self, out: &str) -> Running {
        let mut command = self.run(out);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().expect("the program runs"))
    }

    /// Asserts that both settings have their original values, and no journal is left.
    #[track_caller]
    fn all_is_as_before(&self) {
        assert_eq!(
            (read(RATE), read(BURST)),
            (self.rate.clone(), self.burst.clone())
        );
        assert_eq!(self.journals(), 0, "no journal is left");
    }

    fn journals(&self) -> usize {
        let entries = fs::read_dir(self.path("state/kernel")).map(Iterator::collect::<Vec<_>>);
        let journal = |path: &Path| path.extension().is_some_and(|end| end == "json");
        let entries = entries.unwrap_or_default();
        entries
            .into_iter()
            .flatten()
            .filter(|e| journal(&e.path()))
            .count()
    }
}

/// A run that is killed on drop if need be.
struct Running(Child);

impl Running {
    /// Ends it with a signal; returns its exit code, if there is one.
    fn end(&mut self, with: Signal) -> Option<i32> {
        kill(Pid::from_raw(self.0.id().cast_signed()), with).expect("the run is there");
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A failing test must not leave the machine changed either.
        let _ = fs::write(RATE, &self.rate);
        let _ = fs::write(BURST, &self.burst);
    }
}

fn read(path: &str) -> String {
    let text = fs::read_to_string(path).expect("the setting can be read");
    text.trim().to_owned()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[track_caller]
fn refused(output: &Output, with: &[&str]) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(104), "{said}");
    for part in with {
        assert!(said.contains(part), "no “{part}” in: {said}");
    }
}

#[test]
fn settings_are_in_force_recorded_and_put_back() {
    let Some(stage) = Stage::new("1s") else {
        return;
    };
    let output = stage.run("run").output().expect("it runs");
    // This test does not care whether a second is enough for a valid measurement.
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 120)),
        "{code:?} {}",
        text(&output.stderr)
    );
    for (trial, rate) in [("001", "1500"), ("002", "1600")] {
        let record = fs::read_to_string(stage.path("run/trials").join(trial).join("trial.json"));
        let record: serde_json::Value =
            serde_json::from_str(&record.expect("a record")).expect("JSON");
        let settings = &record["system_settings"];
        assert_eq!(
            settings["kernel net.ipv4.icmp_ratelimit"], rate,
            "{settings}"
        );
        assert_eq!(settings["kernel /proc/sys/net/ipv4/icmp_msgs_burst"], "51");
    }
    stage.all_is_as_before();
}

#[test]
fn cores_are_kept_from_sleeping_during_trials() {
    let Some(stage) = Stage::new("1s") else {
        return;
    };
    let latency = "/dev/cpu_dma_latency";
    if let Err(error) = OpenOptions::new().write(true).open(latency) {
        eprintln!("SKIPPED: {latency} can't be written here: {error}");
        return;
    }
    let heeds = fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver");
    if heeds.map_or(true, |driver| driver.trim() == "none") {
        eprintln!("SKIPPED: this kernel does not heed {latency}");
        return;
    }
    let file = stage.path("kernel.study.yaml");
    let study = fs::read_to_string(&file).expect("the study");
    let study = study.replace(&format!("{BURST}: 51"), &format!("{latency}: 0"));
    fs::write(&file, study).expect("written");
    let output = stage.run("run").output().expect("it runs");
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 120)),
        "{code:?} {}",
        text(&output.stderr)
    );
    let record = fs::read_to_string(stage.path("run/trials/001/trial.json"));
    let record: serde_json::Value = serde_json::from_str(&record.expect("a record")).expect("JSON");
    assert_eq!(record["system_settings"][format!("kernel {latency}")], "0");
    let state = &record["circumstances"]["starting_state"]["kernel_settings"];
    assert_eq!(state[latency], "0", "{state}");
    stage.all_is_as_before();
}

#[test]
fn an_interrupted_run_puts_its_settings_back() {
    let Some(stage) = Stage::new("5m") else {
        return;
    };
    for which in [Signal::SIGINT, Signal::SIGTERM] {
        let mut run = stage.start(&format!("run-{which}"));
        in_force(&stage, which.as_str());
        assert_eq!(run.end(which), Some(105));
        stage.all_is_as_before();
    }
}

/// Waits until a trial has its settings and its server.
fn in_force(stage: &Stage, run: &str) {
    let data = stage.path(&format!("run-{run}/work/001/data"));
    wait_until(DEADLINE, "the settings are in force", || {
        read(RATE) == "1500" && read(BURST) == "51" && data.exists()
    });
}

#[test]
fn what_a_killed_run_left_is_put_back_by_the_command_or_the_next_run() {
    let Some(stage) = Stage::new("5m") else {
        return;
    };
    let mut run = stage.start("run-1");
    in_force(&stage, "1");

    let other = stage.run("run-2").output().expect("it runs");
    refused(
        &other,
        &["icmp_ratelimit", "under way", &run.0.id().to_string()],
    );
    let live = stage.command("restore").output().expect("it runs");
    assert_eq!(live.status.code(), Some(0));
    assert!(
        text(&live.stderr).contains("under way"),
        "{}",
        text(&live.stderr)
    );
    assert_eq!(read(RATE), "1500", "a live run's setting stays");

    assert_eq!(run.end(Signal::SIGKILL), None);
    assert_eq!(
        (read(RATE).as_str(), stage.journals()),
        ("1500", 1),
        "nobody could put it back"
    );
    let restore = stage.command("restore").output().expect("it runs");
    assert_eq!(restore.status.code(), Some(0), "{}", text(&restore.stderr));
    let said = text(&restore.stdout);
    let expected = format!("put {RATE} back to `{}`", stage.rate);
    assert!(said.contains(&expected) && said.contains(BURST), "{said}");
    stage.all_is_as_before();
    let again = stage.command("restore").output().expect("it runs");
    assert_eq!(text(&again.stdout), "nothing to put back\n");

    let mut run = stage.start("run-3");
    in_force(&stage, "3");
    assert_eq!(run.end(Signal::SIGKILL), None);
    let short = stage.path("short.study.yaml");
    let study = "study: short\ntitle: Short\nworkload: hello.workload.yaml\nsystem: { groupware: { \
                 engine: memory } }\nload: { users: 1, hold: 1s }\nrepeats: 0\n";
    fs::write(&short, study).expect("written");
    let next = stage
        .command("run")
        .arg(&short)
        .arg("--out")
        .arg(stage.path("next"))
        .output()
        .expect("it runs");
    assert!(
        text(&next.stderr).contains(&expected),
        "{}",
        text(&next.stderr)
    );
    stage.all_is_as_before();
}

#[test]
fn what_can_not_be_set_is_said_before_anything_starts() {
    let Some(stage) = Stage::new("1s") else {
        return;
    };
    let file = stage.path("kernel.study.yaml");
    let study = fs::read_to_string(&file).expect("the study");
    let with = |from: &str, to: &str| {
        assert!(study.contains(from));
        fs::write(&file, study.replace(from, to)).expect("written");
    };
    let plan = || stage.command("plan").arg(&file).output().expect("it runs");

    with("net.ipv4.icmp_ratelimit", "net.ipv4.icmp_ratelimited");
    refused(
        &plan(),
        &["there is no file /proc/sys/net/ipv4/icmp_ratelimited"],
    );
    refused(
        &stage.run("run").output().expect("it runs"),
        &["there is no file /proc/sys/net/ipv4/icmp_ratelimited"],
    );
    assert!(!stage.path("run").exists(), "nothing was started");
    with("net.ipv4.icmp_ratelimit", "kernel.osrelease");
    refused(&plan(), &["kernel.osrelease", "can't be written"]);
    with("/proc/sys/net/ipv4/icmp_msgs_burst", "/etc/hostname");
    refused(
        &plan(),
        &["kernel.study.yaml:10:5", "under /proc/sys or /sys"],
    );

    // The kernel validates a value when it is written: before the first trial.
    with("1600", "fast");
    let output = stage.run("run").output().expect("it runs");
    refused(
        &output,
        &["net.ipv4.icmp_ratelimit", "`fast`", "Invalid argument"],
    );
    assert!(!stage.path("run/trials/001").exists(), "no trial was run");
    stage.all_is_as_before();
}
