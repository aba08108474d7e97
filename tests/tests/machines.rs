//! A system on another machine than the one that conducts: an agent started by its owner with a list of what it
//! allows, over a hub of their own. The system listens on an address that is not the conductor's usual one, its
//! data lies in the agent's folder, and nothing of it is left whoever is killed.

use std::fs::{self, File, OpenOptions};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::server::free_address;
use plimsoll_tests::{program, wait_until};
use serde_json::Value;

/// Longer than anything takes.
const DEADLINE: Duration = Duration::from_secs(300);
/// Where users reach the agent's machine.
const ADDRESS: &str = "127.0.0.2";
/// Settings of the kernel that no server and no other test cares about.
const SETTINGS: [&str; 2] = [
    "/proc/sys/net/ipv4/igmp_link_local_mcast_reports",
    "/proc/sys/net/ipv4/conf/lo/shared_media",
];
const SESSIONS: u64 = 10;
/// What is said of an agent whose greeting came late, as on a machine that is busy: it is asked for again.
const LATE: &str = "agent db is not there";
const MOST_TRIES: usize = 20;
const WORKLOAD: &str = "\
workload: far
session:
  steps:
    - { step: Look, repeat: 4, wait: 100ms, request: GET /healthz }
";

/// A study of a server that is on this machine, or on another.
fn study(command: &str, load: &str, around: &str) -> String {
    format!(
        "study: far\ntitle: A server and its machine\nworkload: far.workload.yaml\nsystem:\n  command:\n    \
         start: [\"{command}\", serve, --listen, \"{{{{ address }}}}:{{{{ port }}}}\", --engine, memory, --data, \
         \"{{{{ scratch }}}}/store\", --expose-without-tls]\n    ready: {{ http: /healthz, within: 120s }}\n\
         {around}load: {load}\nrepeats: 0\n"
    )
}

fn sequence() -> String {
    format!("{{ sequence: {{ sessions: {SESSIONS} }} }}")
}

fn plimsoll(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(words)
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// A hub and an agent, both the real program.
struct Stage {
    folder: tempfile::TempDir,
    hub: Child,
    agent: Option<Child>,
}

impl Stage {
    /// `None`, with a message, without a server of NATS.
    fn start() -> Option<Self> {
        let has = |name: &&str| {
            let command = Command::new(name)
                .arg("--version")
                .stdout(Stdio::null())
                .status();
            command.is_ok_and(|status| status.success())
        };
        if !["nats-server", "/usr/sbin/nats-server"].iter().any(has) {
            println!("SKIPPED: there is no nats-server here (Debian: apt install nats-server)");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (at, hub) = hub(folder.path());
        let mut stage = Self {
            folder,
            hub,
            agent: None,
        };
        wait_until(DEADLINE, "the hub listens", || {
            TcpStream::connect(at).is_ok()
        });
        let token = stage.invite();
        fs::write(stage.path("db.token"), token).expect("written");
        fs::create_dir(stage.path("trials")).expect("made");
        fs::write(stage.path("allow.toml"), stage.allowed()).expect("written");
        fs::write(stage.path("far.workload.yaml"), WORKLOAD).expect("written");
        stage.start_agent(true);
        Some(stage)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn invite(&self) -> Vec<u8> {
        let mut invite = plimsoll(&["agents", "invite", "db", "--hub"]);
        let output = invite.arg(self.path("hub")).stdout(Stdio::piped()).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    fn allowed(&self) -> String {
        format!(
            "address = \"{ADDRESS}\"\nprograms = [\"plimsoll\"]\nfolders = [\"{}\"]\nkernel = {SETTINGS:?}\n",
            self.path("trials").display()
        )
    }

    /// An agent whose owner lets runs have systems there, or not.
    fn start_agent(&mut self, allows: bool) {
        let mut command = plimsoll(&["agent", "--join"]);
        command.arg(format!("@{}", self.path("db.token").display()));
        if allows {
            command.arg("--allow").arg(self.path("allow.toml"));
        }
        command
            .arg("--state")
            .arg(self.path("agent"))
            .stderr(log(&self.path("agent.log")));
        let said = || fs::read_to_string(self.path("agent.log")).unwrap_or_default();
        let joined = || said().matches("waits for runs").count();
        let before = joined();
        let agent = command.spawn().expect("the program starts");
        wait_until(DEADLINE, "the agent has joined", || joined() > before);
        self.agent = Some(agent);
    }

    /// Ends the agent as a machine does that loses its power.
    fn kill_agent(&mut self) {
        let mut agent = self.agent.take().expect("an agent");
        agent.kill().expect("it can be killed");
        agent.wait().expect("it ends");
    }

    fn run(&self, name: &str, study: &str) -> Command {
        let file = self.path(&format!("{name}.study.yaml"));
        fs::write(&file, study).expect("written");
        let mut command = plimsoll(&["run"]);
        command
            .arg(file)
            .arg("--out")
            .arg(self.path(name))
            .arg("--state")
            .arg(self.path("state"))
            .arg("--fleet")
            .arg(self.path("hub/conductor.token"))
            .stderr(Stdio::piped());
        command
    }

    fn output(&self, name: &str, study: &str) -> Output {
        for _ in 0..MOST_TRIES {
            let output = self.run(name, study).output().expect("it runs");
            if !String::from_utf8_lossy(&output.stderr).contains(LATE) {
                return output;
            }
        }
        panic!("{LATE}");
    }

    /// A run whose load has begun.
    fn begin(&self, name: &str, study: &str) -> Child {
        let file = self.path("run.log");
        for _ in 0..MOST_TRIES {
            let mut command = self.run(name, study);
            let mut run = command.stderr(log(&file)).spawn().expect("it runs");
            let mut ended = false;
            wait_until(DEADLINE, "the load runs", || {
                ended = !matches!(run.try_wait(), Ok(None));
                ended || self.has_load(name)
            });
            if !ended {
                return run;
            }
            let said = fs::read_to_string(&file).unwrap_or_default();
            assert!(said.contains(LATE), "{said}");
        }
        panic!("{LATE}");
    }

    /// Processes that use the agent's folder for trials.
    fn systems(&self) -> usize {
        let own = self.path("trials");
        let own = own.to_str().expect("UTF-8");
        let processes = fs::read_dir("/proc")
            .expect("a list of processes")
            .flatten();
        let uses = |process: &fs::DirEntry| {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(own)
        };
        processes.filter(uses).count()
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        wait_until(DEADLINE, "no process of the system lives on", || {
            self.systems() == 0
        });
        wait_until(DEADLINE, "no data of the system is left", || {
            fs::read_dir(self.path("trials")).is_ok_and(|left| left.count() == 0)
        });
    }

    fn has_load(&self, run: &str) -> bool {
        let folders = fs::read_dir(self.path(run).join("trials"));
        let folders = folders.into_iter().flatten().flatten();
        let has = |folder: PathBuf| {
            fs::metadata(folder.join("windows.jsonl")).is_ok_and(|file| file.len() > 0)
        };
        self.systems() > 0 && folders.map(|folder| folder.path()).any(has)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for child in self.agent.iter_mut().chain([&mut self.hub]) {
            let _gone = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            let _ended = child.wait();
        }
    }
}

/// A program that is killed if it has not ended by itself.
struct Mortal(Child);

impl Drop for Mortal {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

fn log(path: &Path) -> File {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.expect("the log can be written")
}

fn hub(folder: &Path) -> (SocketAddr, Child) {
    let at = free_address();
    let mut command = plimsoll(&["hub", "--listen", &at.to_string(), "--hub"]);
    command
        .arg(folder.join("hub"))
        .stderr(log(&folder.join("hub.log")));
    (at, command.spawn().expect("the program starts"))
}

fn record(run: &Path, trial: u32) -> Value {
    let file = run
        .join("trials")
        .join(format!("{trial:03}"))
        .join("trial.json");
    let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_slice(&text).expect("a record is JSON")
}

/// Requests that were answered, and that failed.
fn counts(run: &Path) -> (u64, u64) {
    let text = fs::read_to_string(run.join("trials/001/windows.jsonl")).expect("windows");
    let windows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a window is JSON"))
        .collect();
    let steps = windows
        .iter()
        .filter_map(|window| window["steps"].as_object());
    let steps: Vec<&Value> = steps.flat_map(serde_json::Map::values).collect();
    let failed = steps.iter().filter_map(|step| step["errors"].as_object());
    let failed = failed
        .flat_map(|errors| errors.values())
        .filter_map(Value::as_u64);
    let ok = steps.iter().filter_map(|step| step["ok"].as_u64());
    (ok.sum(), failed.sum())
}

/// How many samples have a counter.
fn samples(run: &Path, column: &str) -> usize {
    let text = fs::read_to_string(run.join("trials/001/monitor.csv")).expect("counters");
    let mut lines = text.lines();
    let head = lines.next().expect("a head");
    let at = head.split(',').position(|name| name == column);
    let at = at.unwrap_or_else(|| panic!("no {column} in {head}"));
    lines
        .filter(|line| {
            line.split(',')
                .nth(at)
                .is_some_and(|value| !value.is_empty())
        })
        .count()
}

#[track_caller]
fn check_notes(record: &Value, expected: &str) {
    let notes = record["notes"].to_string();
    assert!(notes.contains(expected), "{notes}");
}

#[test]
fn a_system_elsewhere_gets_the_same_requests_and_leaves_nothing() {
    let Some(stage) = Stage::start() else { return };
    let here = stage.output("here", &study("{{ plimsoll }}", &sequence(), ""));
    let far = stage.output("there", &study("{{ plimsoll }}", &sequence(), "  on: db\n"));
    stage.nothing_is_left();
    let (here_at, far_at) = (stage.path("here"), stage.path("there"));
    let told = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        here_at.join("trials/001/trial.json").exists(),
        "{}",
        told(&here)
    );
    assert!(
        far_at.join("trials/001/trial.json").exists(),
        "{}",
        told(&far)
    );
    let record = record(&far_at, 1);
    assert_eq!(record["end"]["how"], "complete", "{record}");
    assert_eq!(counts(&far_at), (SESSIONS * 4, 0));
    assert_eq!(counts(&here_at), counts(&far_at));
    for column in [
        "system.cpu_ms_total",
        "host.memory_available_mb",
        "generator.rss_mb",
    ] {
        let (all, there) = (samples(&here_at, column), samples(&far_at, column));
        assert!(
            all > 1 && there > 1,
            "{column}: {all} samples here, {there} there"
        );
    }
    check_notes(&record, "by agent db");
    let agent = &record["circumstances"]["system_agent"];
    assert_eq!(agent["name"], "db");
    assert_eq!(record["system_settings"]["on"], "db");
    let there = &record["circumstances"]["system_host"];
    assert!(there["cores"].as_u64() > Some(0), "{there}");
    assert!(
        there["limits"]["system_open_files"]["limit"].as_u64() > Some(0),
        "{there}"
    );
    let cpus = record["system_settings"]["cpus"]
        .as_str()
        .expect("its cores");
    assert!(cpus.contains("core"), "{cpus}");
    let log = fs::read_to_string(far_at.join("trials/001/system.log")).expect("its output");
    assert!(log.contains(ADDRESS), "{log}");
}

#[test]
fn what_the_owner_does_not_allow_is_refused_before_anything_starts() {
    let Some(stage) = Stage::start() else { return };
    let refused = |name: &str, study: &str, expected: &str| {
        let output = stage.output(name, study);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && told.contains(expected),
            "{told}"
        );
        assert!(
            !stage.path(name).join("trials/001").exists(),
            "a trial began"
        );
    };
    let on_db =
        |command: &str, more: &str| study(command, &sequence(), &format!("  on: db\n{more}"));
    refused(
        "shell",
        &on_db("/bin/sh", ""),
        "the program /bin/sh is not allowed",
    );
    refused("made", &on_db("{{ scratch }}/x", ""), "is not allowed");
    let kernel = "  kernel: { vm.swappiness: 5 }\n";
    refused(
        "kernel",
        &on_db("{{ plimsoll }}", kernel),
        "vm.swappiness is not allowed",
    );
    let storage = "  storage: /var\n";
    refused(
        "storage",
        &on_db("{{ plimsoll }}", storage),
        "the storage /var is not allowed",
    );
    let elsewhere = study("{{ plimsoll }}", &sequence(), "  on: nobody\n");
    refused("nobody", &elsewhere, "agent nobody is not there");
    stage.nothing_is_left();
}

#[test]
fn an_attached_server_elsewhere_is_counted_there() {
    let Some(stage) = Stage::start() else { return };
    let at = SocketAddr::new(ADDRESS.parse().expect("an address"), free_address().port());
    let mut server = plimsoll(&[
        "serve",
        "--engine",
        "memory",
        "--expose-without-tls",
        "--listen",
    ]);
    let data = stage.path("server");
    server
        .arg(at.to_string())
        .arg("--data")
        .arg(data)
        .stderr(log(&stage.path("server.log")));
    let mut server = server.spawn().expect("the program starts");
    wait_until(DEADLINE, "the server listens", || {
        TcpStream::connect(at).is_ok()
    });
    let load = sequence();
    let study = format!(
        "study: far\ntitle: A server that runs\nworkload: far.workload.yaml\nsystem:\n  on: db\n  attach: \
         {{ url: \"http://{at}\" }}\nload: {load}\nrepeats: 0\n"
    );
    let output = stage.output("attached", &study);
    let alive = matches!(server.try_wait(), Ok(None));
    let _gone = server.kill();
    let _ended = server.wait();
    let run = stage.path("attached");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(run.join("trials/001/trial.json").exists(), "{told}");
    let record = record(&run, 1);
    assert_eq!(record["end"]["how"], "complete", "{record}");
    assert!(alive, "it runs on");
    assert_eq!(counts(&run), (SESSIONS * 4, 0));
    assert!(
        samples(&run, "system.cpu_ms_total") > 1 && samples(&run, "host.memory_available_mb") > 1
    );
    assert_eq!(record["circumstances"]["system_agent"]["name"], "db");
}

/// A setting that a trial changes, where this machine lets it be changed.
struct Changed {
    path: &'static str,
    before: String,
    other: String,
}

impl Changed {
    /// `None`, with a message, where it can't be set.
    fn new(path: &'static str) -> Option<Self> {
        let before = fs::read_to_string(path).ok()?.trim().to_owned();
        if OpenOptions::new().write(true).open(path).is_err() {
            println!("no settings: {path} can't be written");
            return None;
        }
        let other = if before == "1" { "0" } else { "1" };
        Some(Self {
            path,
            before,
            other: other.to_owned(),
        })
    }

    fn now(&self) -> String {
        let now = fs::read_to_string(self.path).expect("a value");
        now.trim().to_owned()
    }
}

/// A study of a load that goes on, whose trials change a setting.
fn long(setting: Option<&Changed>) -> String {
    let kernel = setting.map_or(String::new(), |setting| {
        format!("  kernel: {{ {}: {} }}\n", setting.path, setting.other)
    });
    let around = format!("  on: db\n{kernel}");
    study("{{ plimsoll }}", "{ users: 2, hold: 10m }", &around)
}

#[test]
fn a_killed_agent_makes_no_measurement_and_its_machine_is_as_it_was() {
    let Some(mut stage) = Stage::start() else {
        return;
    };
    let setting = Changed::new(SETTINGS[0]);
    let mut conductor = stage.begin("killed", &long(setting.as_ref()));
    if let Some(setting) = &setting {
        assert_eq!(setting.now(), setting.other);
    }
    stage.kill_agent();
    wait_until(DEADLINE, "the system ends with its agent", || {
        stage.systems() == 0
    });
    wait_until(DEADLINE, "the trial has its verdict", || {
        stage.path("killed/trials/001/trial.json").exists()
    });
    // It is told to end before it begins another one.
    kill(Pid::from_raw(conductor.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let record = record(&stage.path("killed"), 1);
    assert_eq!(record["end"]["how"], "agent_lost", "{record}");
    let why = record["end"]["message"].as_str().expect("a reason");
    assert!(why.contains("agent db"), "{why}");
    conductor.wait().expect("it ends");
    // Whatever its next start allows.
    stage.start_agent(false);
    if let Some(setting) = &setting {
        assert_eq!(setting.now(), setting.before);
    }
    stage.kill_agent();
    stage.start_agent(true);
    stage.nothing_is_left();
}

#[test]
fn an_agent_that_is_removed_leaves_its_machine_as_it_was() {
    let Some(mut stage) = Stage::start() else {
        return;
    };
    let setting = Changed::new(SETTINGS[1]);
    let mut conductor = stage.begin("removed", &long(setting.as_ref()));
    if let Some(setting) = &setting {
        assert_eq!(setting.now(), setting.other);
    }
    let mut remove = plimsoll(&["agents", "remove", "db", "--hub"]);
    let removed = remove.arg(stage.path("hub")).status().expect("it runs");
    assert!(removed.success());
    let mut agent = Mortal(stage.agent.take().expect("an agent"));
    wait_until(DEADLINE, "the agent ends", || {
        matches!(agent.0.try_wait(), Ok(Some(_)))
    });
    let ended = agent.0.wait().expect("it ends");
    assert!(!ended.success(), "it is told that it was removed");
    // At once: there is no next start that could do it.
    assert_eq!(stage.systems(), 0);
    let left = fs::read_dir(stage.path("trials")).expect("its folder");
    assert_eq!(left.count(), 0);
    if let Some(setting) = &setting {
        assert_eq!(setting.now(), setting.before);
    }
    kill(Pid::from_raw(conductor.id().cast_signed()), Signal::SIGINT).expect("it runs");
    conductor.wait().expect("it ends");
}

#[test]
fn whoever_conducts_is_killed_and_the_system_ends() {
    let Some(stage) = Stage::start() else { return };
    let mut conductor = stage.begin("orphan", &long(None));
    conductor.kill().expect("it can be killed");
    conductor.wait().expect("it ends");
    stage.nothing_is_left();
}
