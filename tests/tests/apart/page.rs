//! The commands of the book's page on several machines, as printed. The ten machines are folders of this one: `ssh` and
//! `scp` are scripts that run a command in a folder or copy a file there; hub, agents, and run are the real ones.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::server::ServerProcess;
use plimsoll_tests::{has_nats, program, repository, wait_until};
use serde_json::Value;

use super::{DEADLINE, json, log};

/// Runs a command on another machine.
const SSH: &str = "#!/bin/sh
host=$1; shift
mkdir -p \"$MACHINES/$host\" && cd \"$MACHINES/$host\" && HOME=$PWD PLIMSOLL_STATE=$PWD/state exec env -u PLIMSOLL_HUB sh -c \"$*\"
";
/// Puts a file on another machine.
const SCP: &str = "#!/bin/sh
[ \"$1\" = -q ] && shift
mkdir -p \"$MACHINES/${2%:}\" && ln -sf \"$1\" \"$MACHINES/${2%:}/\"
";
const WORKLOAD: &str = "\
workload: shop
session:
  steps:
    - { step: Look, wait: 100ms..300ms, request: GET /healthz }
";
const AGENTS: usize = 10;

/// The folder with all machines.
struct Stage {
    folder: tempfile::TempDir,
    hub: Option<Child>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        for pid in self.agents("") {
            let _gone = kill(pid, Signal::SIGKILL);
        }
        if let Some(hub) = &mut self.hub {
            let _gone = kill(Pid::from_raw(hub.id().cast_signed()), Signal::SIGTERM);
            let _ended = hub.wait();
        }
    }
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).expect("made");
        for (name, text) in [("ssh", SSH), ("scp", SCP)] {
            fs::write(bin.join(name), text).expect("written");
            fs::set_permissions(bin.join(name), Permissions::from_mode(0o755)).expect("set");
        }
        Self { folder, hub: None }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shell(&self, line: &str) -> Command {
        let own = program().parent().expect("a folder").to_path_buf();
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let folders = [self.path("bin"), own].into_iter();
        let folders = folders.chain(std::env::split_paths(&usual));
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(self.folder.path())
            .env("PATH", std::env::join_paths(folders).expect("folders"))
            .env("MACHINES", self.path("machines"))
            .env("PLIMSOLL_HUB", self.path("hub"))
            .env("PLIMSOLL_STATE", self.path("state"))
            .env("PLIMSOLL_PATIENCE", "0")
            .stdin(Stdio::null());
        command
    }

    fn typed(&self, line: &str) -> Output {
        self.shell(line).output().expect("it runs")
    }

    /// Processes whose working directory is the machine's folder, or this one's.
    fn agents(&self, machine: &str) -> Vec<Pid> {
        let machine = self.path("machines").join(machine);
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let there = entries.filter(|entry| {
            fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&machine))
        });
        there
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .map(Pid::from_raw)
            .collect()
    }

    /// Returns true if all agents wait for runs. Restarts an agent that has ended, as the page advises if a hub is slow
    /// to accept its token.
    fn all_wait(&self, start: &str) -> bool {
        let waits = |n: usize| {
            let log = self.path(&format!("machines/gen-{n}/gen.log"));
            fs::read_to_string(log).is_ok_and(|said| said.contains("waits for runs"))
        };
        let again = start.lines().find(|line| line.contains("nohup"));
        let again = again.expect("a line that starts an agent");
        let late: Vec<usize> = (1..=AGENTS).filter(|n| !waits(*n)).collect();
        for n in &late {
            if self.agents(&format!("gen-{n}")).is_empty() {
                self.typed(&again.replace("$n", &n.to_string()));
            }
        }
        late.is_empty()
    }
}

/// Returns the page's commands, block by block.
fn blocks() -> Vec<String> {
    let page = fs::read_to_string(repository().join("docs/machines.md")).expect("the page");
    let mut found = Vec::new();
    let mut rest = page.as_str();
    while let Some((before, after)) = rest.split_once("\n```") {
        let (opening, _) = after.split_once('\n').expect("a line");
        let (block, next) = after.split_once("\n```").expect("it ends");
        if opening.is_empty() {
            found.push(block.trim_start().to_owned());
        }
        assert!(!before.contains("```"));
        rest = next;
    }
    found
}

/// The example's study, with a running server, and a short load.
fn write_study(folder: &Path, url: &str) {
    fs::write(folder.join("shop.workload.yaml"), WORKLOAD).expect("written");
    let page = fs::read_to_string(repository().join("docs/machines.md")).expect("the page");
    let (_, example) = page.split_once("```yaml study\n").expect("an example");
    let (example, _) = example.split_once("\n```").expect("it ends");
    let mut study = format!(
        "study: shop\ntitle: Ten machines\nworkload: shop.workload.yaml\n{example}\nrepeats: 0\n"
    );
    for (there, here) in [
        ("http://shop.lan:8080", url),
        ("users: 200000", "users: 40"),
        ("ramp: 1m", "ramp: 1s"),
        ("hold: 10m", "hold: 3s"),
    ] {
        assert!(study.contains(there), "{study}");
        study = study.replace(there, here);
    }
    fs::write(folder.join("shop.study.yaml"), study).expect("written");
}

#[test]
fn what_the_page_on_more_machines_says_to_type_works() {
    if !has_nats() {
        return;
    }
    let mut place = Stage::new();
    let server = ServerProcess::start(&place.path(""));
    write_study(place.folder.path(), &format!("http://{}", server.address()));
    let blocks = blocks();
    let [hub, agents, run, end] = &blocks[..] else {
        panic!("{blocks:?}");
    };
    let here = hub.replace("0.0.0.0:4222 --name hub.lan", "127.0.0.1:0");
    assert_ne!(&here, hub);
    let said = place.path("hub.log");
    let mut started = place.shell(&format!("exec {here}"));
    place.hub = Some(started.stderr(log(&said)).spawn().expect("it starts"));
    wait_until(DEADLINE, "the hub listens", || {
        fs::read_to_string(&said).is_ok_and(|said| said.contains("invite an agent"))
    });
    let (start, list) = agents.trim_end().rsplit_once('\n').expect("several lines");
    let started = place.typed(start);
    assert!(started.status.success(), "{started:?}");
    wait_until(DEADLINE, "all agents are there", || place.all_wait(start));
    // Repeated until a busy machine has greetings of all of them at once.
    wait_until(DEADLINE, "all agents are listed", || {
        let listed = String::from_utf8(place.typed(list).stdout).expect("UTF-8");
        (1..=AGENTS).all(|n| listed.contains(&format!("gen-{n} ")))
    });
    let (plan, run) = run.trim_end().split_once('\n').expect("two lines");
    wait_until(DEADLINE, "the study is planned", || {
        place.typed(plan).status.success()
    });
    let mut record = Value::Null;
    // Repeated if agents were late or starved.
    wait_until(DEADLINE, "the study has run", || {
        println!("{}", String::from_utf8_lossy(&place.typed(run).stderr));
        let runs = fs::read_dir(place.path("runs")).into_iter().flatten();
        let records = runs
            .flatten()
            .map(|run| run.path().join("trials/001/trial.json"));
        let mut records = records
            .filter(|record| record.exists())
            .map(|file| json(&file));
        let complete = records.find(|record| record["end"]["how"] == "complete");
        record = complete.unwrap_or_default();
        !record.is_null()
    });
    let driven = record["circumstances"]["agents"].as_array();
    assert_eq!(driven.map(Vec::len), Some(AGENTS), "{record}");
    // Repeated if an agent on a busy machine does not answer in time.
    wait_until(DEADLINE, "no agent is left", || {
        place.typed(end);
        place.agents("").is_empty()
    });
}
