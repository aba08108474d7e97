//! A hub, agents, and a conductor, all the real program, and the leftovers of their runs.

use std::fs::{self, File, OpenOptions};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::server::free_address;
use plimsoll_tests::{program, wait_until};
use serde_json::{Value, json};

/// Longer than any step takes.
pub(crate) const DEADLINE: Duration = Duration::from_secs(300);
/// The address of the agent's machine for users.
pub(crate) const ADDRESS: &str = "127.0.0.2";
/// Another machine, and its address.
pub(crate) const SECOND: &str = "app";
const SECOND_ADDRESS: &str = "127.0.0.3";
/// A program that forwards connections.
pub(crate) const FRONT: &str = env!("CARGO_BIN_EXE_front");
/// Settings of the kernel that no server and no other test uses.
pub(crate) const SETTINGS: [&str; 2] = [
    "/proc/sys/net/ipv4/igmp_link_local_mcast_reports",
    "/proc/sys/net/ipv4/conf/lo/shared_media",
];
pub(crate) const SESSIONS: u64 = 10;
/// The messages about a late greeting of an agent, as on a busy machine: the run is repeated.
const LATE: [&str; 3] = [
    "agent db is not there",
    "agent app is not there",
    "its lease is over",
];
pub(crate) const MOST_TRIES: usize = 20;
pub(crate) const WORKLOAD: &str = "\
workload: far
session:
  steps:
    - { step: Look, repeat: 4, wait: 100ms, request: GET /healthz }
";

fn is_late(said: &str) -> bool {
    LATE.into_iter().any(|late| said.contains(late))
}

/// A study of a server on this machine, or on another.
pub(crate) fn study(command: &str, load: &str, around: &str) -> String {
    format!(
        "study: far\ntitle: A server and its machine\nworkload: far.workload.yaml\nsystem:\n  command:\n    \
         start: [\"{command}\", serve, --listen, \"{{{{ address }}}}:{{{{ port }}}}\", --engine, memory, --data, \
         \"{{{{ scratch }}}}/store\", --expose-without-tls]\n    ready: {{ http: /healthz, within: 120s }}\n\
         {around}load: {load}\nrepeats: 0\n"
    )
}

pub(crate) fn sequence() -> String {
    format!("{{ sequence: {{ sessions: {SESSIONS} }} }}")
}

pub(crate) fn plimsoll(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(words)
        .env("PLIMSOLL_PATIENCE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// A hub and an agent, both the real program.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    hub: Child,
    pub(crate) agent: Option<Child>,
    /// The agent of another machine.
    second: Option<Child>,
}

impl Stage {
    /// Returns `None`, with a message, without a NATS server.
    pub(crate) fn start() -> Option<Self> {
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
            second: None,
        };
        wait_until(DEADLINE, "the hub listens", || {
            TcpStream::connect(at).is_ok()
        });
        let token = stage.invite("db");
        fs::write(stage.path("db.token"), token).expect("written");
        fs::create_dir(stage.path("trials")).expect("made");
        fs::write(stage.path("allow.toml"), stage.allowed()).expect("written");
        fs::write(stage.path("far.workload.yaml"), WORKLOAD).expect("written");
        stage.start_agent(true);
        Some(stage)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn invite(&self, name: &str) -> Vec<u8> {
        let mut invite = plimsoll(&["agents", "invite", name, "--hub"]);
        let output = invite.arg(self.path("hub")).stdout(Stdio::piped()).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    fn allowed(&self) -> String {
        format!(
            "address = \"{ADDRESS}\"\nprograms = [\"plimsoll\", \"cat\"]\nfolders = [\"{}\"]\nkernel = {SETTINGS:?}\n\
             [filesystems]\nkinds = [\"ext4\"]\nmost = \"400 MB\"\n",
            self.path("trials").display()
        )
    }

    /// Starts an agent whose owner allows systems of runs there, or not.
    pub(crate) fn start_agent(&mut self, allows: bool) {
        self.agent = Some(self.begin_agent("db", allows.then_some("allow.toml")));
    }

    /// Adds another machine, whose agent allows the forwarding program.
    pub(crate) fn add_second(&mut self) {
        let token = self.invite(SECOND);
        fs::write(self.path(&format!("{SECOND}.token")), token).expect("written");
        let folder = self.path("trials-of-app");
        fs::create_dir(&folder).expect("made");
        let allowed = format!(
            "address = \"{SECOND_ADDRESS}\"\nprograms = [\"{FRONT}\"]\nfolders = [\"{}\"]\n",
            folder.display()
        );
        fs::write(self.path("second.toml"), allowed).expect("written");
        self.second = Some(self.begin_agent(SECOND, Some("second.toml")));
    }

    fn begin_agent(&self, name: &str, allows: Option<&str>) -> Child {
        let mut command = plimsoll(&["agent", "--join"]);
        command.arg(format!(
            "@{}",
            self.path(&format!("{name}.token")).display()
        ));
        if let Some(file) = allows {
            command.arg("--allow").arg(self.path(file));
        }
        let told = self.path(&format!("{name}.log"));
        command
            .arg("--state")
            .arg(self.path(&format!("{name}.state")))
            .stderr(log(&told));
        let joined = || {
            let said = fs::read_to_string(&told).unwrap_or_default();
            said.matches("waits for runs").count()
        };
        let before = joined();
        let agent = command.spawn().expect("the program starts");
        wait_until(DEADLINE, "the agent has joined", || joined() > before);
        agent
    }

    /// Kills the agent, like a machine that loses its power.
    pub(crate) fn kill_agent(&mut self) {
        let mut agent = self.agent.take().expect("an agent");
        agent.kill().expect("it can be killed");
        agent.wait().expect("it ends");
    }

    pub(crate) fn run(&self, name: &str, study: &str) -> Command {
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

    pub(crate) fn output(&self, name: &str, study: &str) -> Output {
        for _ in 0..MOST_TRIES {
            let output = self.run(name, study).output().expect("it runs");
            if !is_late(&String::from_utf8_lossy(&output.stderr)) {
                return output;
            }
        }
        panic!("{LATE:?}");
    }

    /// Starts a run; returns it once its load has begun.
    pub(crate) fn begin(&self, name: &str, study: &str) -> Child {
        self.begin_with(name, study, &[])
    }

    /// The output of a started run so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.path("run.log")).unwrap_or_default()
    }

    /// The same with these flags.
    pub(crate) fn begin_with(&self, name: &str, study: &str, flags: &[&str]) -> Child {
        let file = self.path("run.log");
        for _ in 0..MOST_TRIES {
            let mut command = self.run(name, study);
            command.args(flags);
            let mut run = command.stderr(log(&file)).spawn().expect("it runs");
            let mut ended = false;
            wait_until(DEADLINE, "the load runs", || {
                ended = !matches!(run.try_wait(), Ok(None));
                ended || self.has_load(name)
            });
            if !ended {
                return run;
            }
            let said = self.said();
            assert!(is_late(&said), "{said}");
        }
        panic!("{LATE:?}");
    }

    /// The number of processes that use the agent's folder for trials.
    pub(crate) fn systems(&self) -> usize {
        self.of_systems().len()
    }

    /// The process ids of those processes.
    pub(crate) fn of_systems(&self) -> Vec<i32> {
        let own = self.path("trials");
        let own = own.to_str().expect("UTF-8");
        let processes = fs::read_dir("/proc")
            .expect("a list of processes")
            .flatten();
        let uses = |process: &fs::DirEntry| {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&words).contains(own)
        };
        let own = processes.filter(uses);
        own.filter_map(|process| process.file_name().to_str()?.parse().ok())
            .collect()
    }

    #[track_caller]
    pub(crate) fn nothing_is_left(&self) {
        wait_until(DEADLINE, "no process of the system lives on", || {
            self.systems() == 0
        });
        wait_until(DEADLINE, "no data of the system is left", || {
            let is_empty = |folder: &str| match fs::read_dir(self.path(folder)) {
                Ok(left) => left.count() == 0,
                Err(_) => folder != "trials",
            };
            is_empty("trials") && is_empty("trials-of-app")
        });
    }

    pub(crate) fn has_load(&self, run: &str) -> bool {
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
        let agents = self.agent.iter_mut().chain(&mut self.second);
        for child in agents.chain([&mut self.hub]) {
            let _gone = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            let _ended = child.wait();
        }
    }
}

/// A program that is killed on drop if it has not ended by itself.
pub(crate) struct Mortal(pub(crate) Child);

impl Drop for Mortal {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _ended = self.0.wait();
    }
}

pub(crate) fn log(path: &Path) -> File {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.expect("the log can be written")
}

pub(crate) fn hub(folder: &Path) -> (SocketAddr, Child) {
    let at = free_address();
    let mut command = plimsoll(&["hub", "--listen", &at.to_string(), "--hub"]);
    command
        .arg(folder.join("hub"))
        .stderr(log(&folder.join("hub.log")));
    (at, command.spawn().expect("the program starts"))
}

pub(crate) fn record(run: &Path, trial: u32) -> Value {
    let file = run
        .join("trials")
        .join(format!("{trial:03}"))
        .join("trial.json");
    let text = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    serde_json::from_slice(&text).expect("a record is JSON")
}

/// The numbers of answered and failed requests.
pub(crate) fn counts(run: &Path) -> (u64, u64) {
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

/// The number of samples with a counter.
pub(crate) fn samples(run: &Path, column: &str) -> usize {
    samples_of(run, 1, column)
}

/// The same of a trial.
pub(crate) fn samples_of(run: &Path, trial: u32, column: &str) -> usize {
    let file = run.join(format!("trials/{trial:03}/monitor.csv"));
    let text = fs::read_to_string(file).expect("counters");
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

/// Asserts that the system, or its part of this name, ran on another machine.
#[track_caller]
pub(crate) fn check_elsewhere(record: &Value, part: Option<&str>) {
    let mut expected = json!({ "what": "ran_elsewhere" });
    if let Some(part) = part {
        expected["part"] = part.into();
    }
    let noted = record["noted"].as_array().expect("a list");
    assert!(noted.contains(&expected), "{noted:?}");
}
