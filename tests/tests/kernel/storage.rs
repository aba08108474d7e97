//! File systems that a study creates for its trials, on real loop devices: recorded, counted, and removed however the
//! run ends, SIGKILL included. Where they can't be created, the tests print that and do nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use plimsoll_tests::tmpfs::Tmpfs;
use plimsoll_tests::{program, wait_until};

use super::{DEADLINE, Running, refused, text};

const STUDY: &str = "\
study: storage
title: Are deliveries as fast on each of them?
workload: notes.workload.yaml
matrix:
  filesystem: [KINDS]
system:
  groupware: {}
  storage: { filesystem: \"{{ filesystem }}\", size: 320 MB, folder: FOLDER, options: noatime }
load: { users: 2, hold: HOLD }
repeats: 0
order: listed
";

/// Each transaction is on the disk before it is answered.
const NOTES: &str = "\
workload: notes
user: { name: \"user{{ index }}\" }
setup:
  - step: Log in
    request: POST /login
    form: { username: \"{{ name }}\", password: \"{{ password }}\" }
    expect: 200
session:
  steps:
    - step: Note
      wait: 20ms
      request: POST /mail/{{ name }}/api/mail/drafts
      json: { subject: A note, content: [{ contentType: text/plain, data: A line }] }
      expect: 201
";

struct Disks {
    folder: tempfile::TempDir,
    disks: PathBuf,
}

impl Disks {
    /// Returns `None`, with a message, if no file system can be created.
    fn new(kinds: &[&str], hold: &str) -> Option<Self> {
        let can = Command::new("losetup").arg("--find").output();
        let can = can.is_ok_and(|output| output.status.success());
        if !can || !geteuid().is_root() || Tmpfs::mount("1m").is_none() {
            eprintln!("SKIPPED: no loop device can be mounted here");
            return None;
        }
        let kinds: Vec<&str> = kinds
            .iter()
            .copied()
            .filter(|kind| is_there(kind))
            .collect();
        if kinds.is_empty() {
            eprintln!("SKIPPED: there is no program that makes a file system");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let disks = fs::canonicalize(folder.path())
            .expect("it is there")
            .join("disks");
        fs::create_dir(&disks).expect("a folder in it");
        let study = STUDY
            .replace("KINDS", &kinds.join(", "))
            .replace("HOLD", hold);
        let study = study.replace("FOLDER", disks.to_str().expect("UTF-8"));
        fs::write(folder.path().join("storage.study.yaml"), study).expect("written");
        fs::write(folder.path().join("notes.workload.yaml"), NOTES).expect("written");
        Some(Self { folder, disks })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command.args(arguments).current_dir(self.folder.path());
        command.arg("--state").arg(self.path("state"));
        command.env("PLIMSOLL_PATIENCE", "0").stdin(Stdio::null());
        command
    }

    fn run(&self, out: &str) -> Command {
        self.command(&["run", "storage.study.yaml", "--out", out])
    }

    /// A run whose first trial has its file system and its server.
    fn under_way(&self, out: &str) -> Running {
        let mut command = self.run(out);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running(command.spawn().expect("the program runs"));
        wait_until(DEADLINE, "a server has its data on the file system", || {
            let mounted = self.mounted();
            let trial = mounted.iter().find(|at| at.ends_with("001"));
            trial.is_some_and(|at| has_file(&at.join("data")))
        });
        running
    }

    /// The mount points below the folder.
    fn mounted(&self) -> Vec<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("the kernel tells");
        let at = mounts.lines().filter_map(|line| line.split(' ').nth(4));
        at.map(PathBuf::from)
            .filter(|at| at.starts_with(&self.disks))
            .collect()
    }

    /// The number of loop devices over files below the folder; `false` excludes those under release.
    fn images(&self, with_free: bool) -> usize {
        let devices = fs::read_dir("/sys/block").expect("the kernel tells");
        let is_counted = |device: &fs::DirEntry| {
            let says = |what: &str| fs::read_to_string(device.path().join("loop").join(what));
            let is_ours = |file: String| Path::new(&file).starts_with(&self.disks);
            let is_free = says("autoclear").is_ok_and(|switch| switch.trim() == "1");
            says("backing_file").is_ok_and(is_ours) && (with_free || !is_free)
        };
        devices.flatten().filter(is_counted).count()
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        assert_eq!(self.mounted(), Vec::<PathBuf>::new());
        // A device under release is freed a little later, or when a holder of a copy of all mounts ends.
        assert_eq!(self.images(false), 0);
        assert_eq!(fs::read_dir(&self.disks).expect("it is there").count(), 0);
        let left = fs::read_dir(self.path("state/kernel"))
            .into_iter()
            .flatten()
            .flatten();
        let journals =
            left.filter(|entry| entry.path().extension().is_some_and(|end| end == "json"));
        assert_eq!(journals.count(), 0, "no journal is left");
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        // A failing test must not leave the machine changed either.
        let _ = self.command(&["restore"]).output();
    }
}

fn is_there(kind: &str) -> bool {
    let there = Command::new(format!("mkfs.{kind}"))
        .arg("-V")
        .output()
        .is_ok();
    if !there {
        eprintln!("SKIPPED: there is no mkfs.{kind}");
    }
    there
}

/// The maximum rate of writes to the disk below a trial's data, in KB per second.
fn written_to_disk(trial: &Path) -> f64 {
    let table = fs::read_to_string(trial.join("monitor.csv")).expect("its counters");
    let mut lines = table.lines().map(|line| line.split(','));
    let mut names = lines.next().expect("names");
    let column = names.position(|name| name == "host.disk_write_kb_per_s");
    let column = column.expect("the disk is known");
    let values = lines.filter_map(|mut line| line.nth(column)?.parse().ok());
    values.fold(0.0, f64::max)
}

fn has_file(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

#[test]
fn each_trial_has_a_file_system_of_its_own() {
    let kinds = ["ext4", "xfs", "btrfs"];
    let Some(place) = Disks::new(&kinds, "2s") else {
        return;
    };
    let plan = place
        .command(&["plan", "storage.study.yaml"])
        .output()
        .expect("it runs");
    let said = text(&plan.stdout);
    let made = "ext4 of 320 MB in a file in";
    assert!(
        said.contains(made) && said.contains("mounted with noatime"),
        "{said}"
    );
    let output = place.run("run").output().expect("it runs");
    // This test does not care whether two seconds are enough for a valid measurement.
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 120)),
        "{code:?} {}",
        text(&output.stderr)
    );
    let kinds = kinds.into_iter().filter(|kind| is_there(kind));
    for (kind, trial) in kinds.zip(["001", "002", "003"]) {
        let folder = place.path("run/trials").join(trial);
        let record = fs::read_to_string(folder.join("trial.json")).expect("a record");
        let record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        let settings = &record["system_settings"];
        let storage = settings["storage"].as_str().expect("the storage");
        assert!(
            storage.starts_with(&format!("{kind} of 320 MB")),
            "{settings}"
        );
        assert!(settings["storage made by"].is_string(), "{settings}");
        let options = settings["storage mounted with"]
            .as_str()
            .expect("its options");
        assert!(options.contains("noatime"), "{settings}");
        let written = written_to_disk(&folder);
        assert!(
            written > 0.0,
            "{kind}: the loop device's counters are read: {written}"
        );
    }
    place.nothing_is_left();
}

#[test]
fn an_interrupted_run_takes_its_file_system_away() {
    let Some(place) = Disks::new(&["ext4"], "5m") else {
        return;
    };
    let mut running = place.under_way("run");
    assert_eq!(running.end(Signal::SIGINT), Some(105));
    place.nothing_is_left();
}

#[test]
fn what_a_killed_run_left_mounted_is_taken_away_by_the_command_or_the_next_run() {
    let Some(place) = Disks::new(&["ext4"], "5m") else {
        return;
    };
    let mut running = place.under_way("first");
    let live = place.command(&["restore"]).output().expect("it runs");
    assert!(
        text(&live.stderr).contains("under way"),
        "{}",
        text(&live.stderr)
    );
    assert_eq!(
        (place.mounted().len(), place.images(true)),
        (1, 1),
        "a live run's stays"
    );
    assert_eq!(running.end(Signal::SIGKILL), None);
    assert_eq!(
        (place.mounted().len(), place.images(true)),
        (1, 1),
        "nobody could take it away"
    );
    let restore = place.command(&["restore"]).output().expect("it runs");
    assert_eq!(restore.status.code(), Some(0), "{}", text(&restore.stderr));
    let said = text(&restore.stdout);
    assert!(
        said.starts_with("took away the file system at ") && said.contains("/001,"),
        "{said}"
    );
    place.nothing_is_left();

    let mut running = place.under_way("second");
    assert_eq!(running.end(Signal::SIGKILL), None);
    let study = place.path("storage.study.yaml");
    let short = fs::read_to_string(&study)
        .expect("the study")
        .replace("5m", "1s");
    fs::write(&study, short).expect("written");
    let next = place.run("next").output().expect("it runs");
    let said = text(&next.stderr);
    assert!(said.contains("took away the file system at "), "{said}");
    assert!(matches!(next.status.code(), Some(0 | 120)), "{said}");
    place.nothing_is_left();
}

#[test]
fn what_keeps_a_file_system_from_being_made_is_said_before_the_first_trial() {
    let Some(place) = Disks::new(&["ext4"], "1s") else {
        return;
    };
    let open = Permissions::from_mode(0o755);
    fs::set_permissions(place.folder.path(), open).expect("everybody may read");
    let mut nobody = place.command(&["plan", "storage.study.yaml"]);
    let said = nobody.uid(65534).gid(65534).output();
    // Other users may not be permitted to enter the build folder.
    if let Ok(output) = said {
        refused(&output, &["only root can make a file system", "sudo"]);
    }
    let study = place.path("storage.study.yaml");
    let with = |from: &str, to: &str| {
        let text = fs::read_to_string(&study).expect("the study");
        assert!(text.contains(from));
        fs::write(&study, text.replace(from, to)).expect("written");
    };
    with("options: noatime", "options: no_such_option");
    let output = place.run("run").output().expect("it runs");
    refused(&output, &["no ext4 can be made at", "mount ended with"]);
    assert!(!place.path("run/trials/001").exists(), "no trial was run");
    place.nothing_is_left();
    with("size: 320 MB", "size: 15000 GB");
    let output = place.run("large").output().expect("it runs");
    refused(&output, &["up to 13969 GiB", "are free"]);
    place.nothing_is_left();
}
