//! A hub, two agents, and a conductor, each behind a link of its own and all of them the real program; and the faults
//! against them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::relay::{Direction, Relay, pause};
use plimsoll_tests::{program, wait_until};
use serde_json::Value;

use crate::forger::{forge, greet_later, read_token, write_token};
use crate::over::is_over;
use crate::plan::{AGENTS, CONDUCTOR, Fault, Link, Planned, Who};
use crate::trials::{Trials, judge};

/// Longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(900);
/// The interval between two looks at a process.
const LOOK: Duration = Duration::from_millis(50);
/// The exit code of a run that can't have its agents: another run has them until its lease expires.
const REFUSED: i32 = 104;
/// The maximum number of attempts at a refused run, and the pause between them.
const MOST_TRIES: u32 = 15;
const AGAIN: Duration = Duration::from_millis(1500);
/// The variable that marks the conductor and its child processes.
const MARK: &str = "FAULTS_OF";
/// Settings of the kernel that no server and no other test uses, one for each stage.
const SETTINGS: [&str; 12] = [
    "igmp_max_msf",
    "igmp_qrv",
    "ipfrag_max_dist",
    "igmp_max_memberships",
    "inet_peer_maxttl",
    "inet_peer_minttl",
    "inet_peer_threshold",
    "icmp_msgs_burst",
    "ipfrag_time",
    "tcp_probe_interval",
    "tcp_probe_threshold",
    "tcp_min_rtt_wlen",
];
/// The numbers of runs without faults.
const RECOVERIES: std::ops::Range<u32> = 1_000_000..1_000_003;
/// The maximum number of stages at the same time.
pub(crate) const MOST_STAGES: usize = SETTINGS.len();

const USERS: usize = 40;
const ROUNDS: usize = 6;
/// A trial in which all agents report something in each window: users start over two seconds, and send for two.
const WORKLOAD: &str = "\
workload: faults
session:
  pace: 60s
  steps:
    - step: Get
      repeat: 6
      wait: 300ms
      request: GET /get/{{ index }}/{{ round }}
";

/// A setting of the kernel, and its original value.
#[derive(Debug)]
struct Setting {
    path: PathBuf,
    before: String,
}

impl Setting {
    /// Returns `None`, with a message, if it can't be written.
    fn of(stage: usize) -> Option<Self> {
        let path = Path::new("/proc/sys/net/ipv4").join(SETTINGS[stage]);
        let opened = OpenOptions::new().write(true).open(&path);
        let before = opened.and_then(|_| fs::read_to_string(&path));
        match before {
            Ok(before) => Some(Self {
                path,
                before: before.trim().to_owned(),
            }),
            Err(error) => {
                println!("no settings: {} can't be written: {error}", path.display());
                None
            }
        }
    }

    fn now(&self) -> String {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        text.trim().to_owned()
    }

    /// The study's value.
    fn other(&self) -> u64 {
        self.before.parse::<u64>().expect("a number") + 1
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // A failing test must not leave the machine changed either.
        if self.now() != self.before {
            let _refused = fs::write(&self.path, &self.before);
        }
    }
}

/// The results of a stage's runs.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) runs: u64,
    pub(crate) trials: Trials,
    /// Accepted trials that are not whole.
    pub(crate) not_whole: Vec<String>,
    /// Leftovers.
    pub(crate) left: Vec<String>,
    /// Any other fault.
    pub(crate) wrong: Vec<String>,
    /// Agents that ended by themselves, with the end of their output.
    pub(crate) gave_up: Vec<String>,
    /// Runs that could not have their agents.
    pub(crate) refused: u64,
}

impl Seen {
    pub(crate) fn add(&mut self, mut other: Self) {
        self.runs += other.runs;
        self.trials.add(other.trials);
        self.not_whole.append(&mut other.not_whole);
        self.left.append(&mut other.left);
        self.wrong.append(&mut other.wrong);
        self.gave_up.append(&mut other.gave_up);
        self.refused += other.refused;
    }
}

/// All processes of one fleet.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    number: usize,
    hub_at: SocketAddr,
    hub: Child,
    ways: Vec<Relay>,
    agents: Vec<Child>,
    /// The token of a client with access that is no agent of a run.
    eve: Value,
    setting: Option<Setting>,
    conductor: Option<Child>,
    /// The number of the run.
    run: u32,
    pub(crate) seen: Seen,
}

impl Stage {
    pub(crate) fn start(number: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (hub, hub_at) = first_hub(folder.path());
        let ways = (0..=AGENTS).map(|_| Relay::start(hub_at).expect("a relay"));
        let mut stage = Self {
            number,
            hub_at,
            hub,
            ways: ways.collect(),
            agents: Vec::new(),
            eve: Value::Null,
            setting: Setting::of(number),
            conductor: None,
            run: 0,
            seen: Seen::default(),
            folder,
        };
        stage.await_hub();
        for agent in 0..AGENTS {
            let token = stage.invite(&format!("agent-{agent}"));
            stage.put_token(&format!("agent-{agent}"), agent, &token);
            let agent = stage.start_agent(agent, "state");
            stage.agents.push(agent);
        }
        let token = fs::read_to_string(stage.path("hub/conductor.token")).expect("a token");
        stage.put_token("conductor", CONDUCTOR, &token);
        let eve = stage.invite("eve");
        stage.eve = read_token(&eve);
        let token = stage.invite("mallory");
        stage.put_token("mallory", 0, &token);
        let removed = stage.command(&["agents", "remove", "mallory"]);
        assert!({ removed }.output().expect("it runs").status.success());
        fs::write(stage.path("faults.workload.yaml"), WORKLOAD).expect("written");
        fs::write(stage.path("faults.study.yaml"), stage.study()).expect("written");
        stage
    }

    fn study(&self) -> String {
        let own = std::env::current_exe().expect("a running program has a path");
        let kernel = self.setting.as_ref().map_or_else(String::new, |setting| {
            let name = SETTINGS[self.number];
            format!("  kernel: {{ net.ipv4.{name}: {} }}\n", setting.other())
        });
        format!(
            "study: faults\ntitle: Trials behind bad ways\nworkload: faults.workload.yaml\nsystem:\n  \
             command:\n    start: [\"{}\", web, \"{{{{ port }}}}\"]\n    ready: {{ within: 120s }}\n{kernel}\
             load: {{ users: {USERS}, ramp: 2s, hold: 4s }}\ntrials: 2\nrepeats: 1\n",
            own.display()
        )
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command about the hub.
    fn command(&self, words: &[&str]) -> Command {
        let mut command = plimsoll(words);
        command.arg("--hub").arg(self.path("hub"));
        command
    }

    /// Invites a client; returns the token.
    fn invite(&self, name: &str) -> String {
        let mut invite = self.command(&["agents", "invite", name]);
        let output = invite.stdout(Stdio::piped()).output();
        let output = output.expect("it runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Saves a token that reaches the hub over this link.
    fn put_token(&self, name: &str, place: Link, token: &str) {
        let mut token = read_token(token);
        token["url"] = format!("tls://{}", self.ways[place].address()).into();
        fs::write(self.path(&format!("{name}.token")), write_token(&token)).expect("written");
    }

    fn start_agent(&self, agent: usize, state: &str) -> Child {
        let name = format!("agent-{agent}");
        let mut command = plimsoll(&["agent"]);
        command
            .arg("--join")
            .arg(format!(
                "@{}",
                self.path(&format!("{name}.token")).display()
            ))
            .arg("--state")
            .arg(self.path(&format!("{name}-{state}")))
            .stderr(self.log(&name));
        command.spawn().expect("the program starts")
    }

    /// Opens the log of a program, to append its output.
    fn log(&self, name: &str) -> File {
        let log = self.path(&format!("{name}.log"));
        let opened = OpenOptions::new().create(true).append(true).open(log);
        opened.expect("the log can be written")
    }

    fn await_hub(&mut self) {
        wait_until(DEADLINE, "the hub listens", || {
            // The predecessor may still hold the port.
            if !matches!(self.hub.try_wait(), Ok(None)) {
                self.hub = start_hub(self.folder.path(), &[]);
            }
            TcpStream::connect(self.hub_at).is_ok()
        });
    }

    fn out(&self) -> PathBuf {
        self.path(&format!("run-{}", self.run))
    }

    /// Starts the run, or resumes it.
    fn start_run(&mut self) {
        let mut command = plimsoll(&["run"]);
        command
            .arg(self.path("faults.study.yaml"))
            .arg("--state")
            .arg(self.path("state"))
            .arg("--fleet")
            .arg(self.path("conductor.token"))
            .args(["--agents", "agent-0,agent-1", "--out"])
            .arg(self.out())
            .args(["--seed", &self.run.to_string()])
            .env(MARK, self.mark())
            .stderr(self.log("conductor"));
        if self.out().join("manifest.json").exists() {
            command.arg("--resume");
        }
        self.conductor = Some(command.spawn().expect("the program starts"));
    }

    fn mark(&self) -> String {
        format!("{}-{}", std::process::id(), self.number)
    }

    /// Runs under these faults; then all faults end, and the run has to complete. Returns how many have struck.
    pub(crate) fn run(&mut self, number: u32, faults: &[Planned]) -> usize {
        self.run = number;
        self.seen.runs += 1;
        self.start_run();
        let mut struck = 0;
        for planned in faults {
            while planned.in_load && !self.has_load() && self.goes_on(LOOK) {}
            if !self.goes_on(planned.after) {
                break;
            }
            self.strike(planned.fault);
            struck += 1;
            self.keep_up();
        }
        self.end_run();
        self.look_back();
        struck
    }

    /// Returns true if a trial has windows, and no end.
    fn has_load(&self) -> bool {
        let folders = fs::read_dir(self.out().join("trials"));
        let folders = folders.into_iter().flatten().flatten();
        let has = |folder: PathBuf| {
            let windows = fs::metadata(folder.join("windows.jsonl"));
            windows.is_ok_and(|file| file.len() > 0) && !folder.join("trial.json").exists()
        };
        folders.map(|folder| folder.path()).any(has)
    }

    /// Waits while the run continues; returns true if it still does.
    fn goes_on(&mut self, long: Duration) -> bool {
        let looks = looks(long);
        (0..looks).all(|_| {
            pause(long / looks);
            !is_over() && self.is_under_way()
        })
    }

    /// Returns true if there is a conductor of the run. Restarts one that could not have its agents.
    fn is_under_way(&mut self) -> bool {
        let looked = self.conductor.as_mut().map(Child::try_wait);
        let Some(Ok(ended)) = looked else {
            return false;
        };
        let is_refused = ended.is_some_and(|status| status.code() == Some(REFUSED));
        if is_refused {
            wait(AGAIN);
            self.start_run();
        }
        ended.is_none() || is_refused
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Cut(place) => self.ways[place].cut(),
            Fault::Close(place, long) => {
                self.ways[place].close();
                wait(long);
            }
            Fault::Bad(place, direction, way, long) => {
                let all = [Direction::There, Direction::Back];
                let which = all.into_iter();
                which
                    .filter(|one| direction.is_none_or(|direction| direction == *one))
                    .for_each(|one| self.ways[place].set(one, way));
                wait(long);
            }
            Fault::Stop(who, long) => self.stand_still(who, long),
            Fault::Kill(Who::Agent(agent), away) => {
                end(&mut self.agents[agent]);
                wait(away);
                self.agents[agent] = self.start_agent(agent, "state");
            }
            Fault::Kill(Who::Hub, away) => {
                end(&mut self.hub);
                wait(away);
                self.await_hub();
            }
            Fault::Kill(Who::Conductor, away) => self.kill_conductor(away),
            Fault::Twin(agent, elsewhere, long) => {
                let old = pid(&self.agents[agent]);
                signal(old, Signal::SIGSTOP);
                let state = if elsewhere { "other-state" } else { "state" };
                let mut twin = self.start_agent(agent, state);
                wait(long);
                signal(old, Signal::SIGCONT);
                wait(long / 4);
                end(&mut twin);
            }
            Fault::Stranger => self.strange(),
            Fault::Forger => self.forge(),
            Fault::Version(agent) => self.greet(agent),
        }
        self.ways.iter().for_each(Relay::heal);
    }

    fn stand_still(&mut self, who: Who, long: Duration) {
        let stopped = match who {
            Who::Agent(agent) => Some(pid(&self.agents[agent])),
            Who::Conductor => self.conductor.as_ref().map(pid),
            Who::Hub => child_of(pid(&self.hub)),
        };
        let Some(stopped) = stopped else { return };
        signal(stopped, Signal::SIGSTOP);
        wait(long);
        signal(stopped, Signal::SIGCONT);
    }

    fn kill_conductor(&mut self, away: Duration) {
        let Some(mut conductor) = self.conductor.take() else {
            return;
        };
        end(&mut conductor);
        self.no_process_is_left();
        if self.run.is_multiple_of(2) {
            let mut restore = plimsoll(&["restore"]);
            restore.arg("--state").arg(self.path("state"));
            let output = restore.output().expect("it runs");
            assert!(output.status.success(), "{output:?}");
            self.no_setting_is_left();
        }
        wait(away);
        self.start_run();
    }

    /// A revoked token gives no access.
    fn strange(&mut self) {
        let mut command = plimsoll(&["agent"]);
        command
            .arg("--join")
            .arg(format!("@{}", self.path("mallory.token").display()))
            .arg("--state")
            .arg(self.path("mallory-state"))
            .stderr(Stdio::null());
        let mut mallory = command.spawn().expect("the program starts");
        match await_end(&mut mallory) {
            Some(Some(REFUSED)) => {}
            Some(code) => self.is_wrong(format!("a stranger's agent ended with {code:?}")),
            None => self.is_wrong("a stranger's agent does not end".to_owned()),
        }
    }

    fn forge(&mut self) {
        // Not over a relay: the hub is to refuse it. A hub that is down refuses everything.
        if let Ok(let_pass) = forge(self.hub_at, &self.eve)
            && !let_pass.is_empty()
        {
            self.is_wrong(format!("eve spoke for others: {let_pass:?}"));
        }
    }

    /// The conductor receives the greeting of an agent of a later version, until the agent itself greets again.
    fn greet(&mut self, agent: usize) {
        let token = fs::read_to_string(self.path(&format!("agent-{agent}.token")));
        let token = read_token(&token.expect("a token"));
        // A hub that is down receives nothing.
        let _refused = greet_later(self.hub_at, &token);
    }

    /// Restarts processes that ended by themselves.
    fn keep_up(&mut self) {
        self.await_hub();
        for agent in 0..AGENTS {
            if let Ok(Some(status)) = self.agents[agent].try_wait() {
                let log = fs::read_to_string(self.path(&format!("agent-{agent}.log")));
                let log = log.unwrap_or_default();
                let last = log.lines().last().unwrap_or_default();
                let told = format!("agent-{agent} ended ({status}): {last}");
                self.seen.gave_up.push(told);
                self.agents[agent] = self.start_agent(agent, "state");
            }
        }
    }

    /// Waits for the end of the run, whose agents may be held by a conductor that was killed before.
    fn end_run(&mut self) {
        for _ in 0..MOST_TRIES {
            self.keep_up();
            let Some(mut conductor) = self.conductor.take() else {
                return;
            };
            match await_end(&mut conductor) {
                Some(Some(REFUSED)) => {}
                Some(_) => return,
                None => {
                    end(&mut conductor);
                    return self.is_wrong(format!("run {} does not end", self.run));
                }
            }
            wait(AGAIN);
            self.start_run();
        }
        self.seen.refused += 1;
        if let Some(mut conductor) = self.conductor.take() {
            let _code = await_end(&mut conductor);
        }
    }

    fn look_back(&mut self) {
        self.no_process_is_left();
        self.no_setting_is_left();
        let mut wrong = Vec::new();
        let trials = judge(&self.out(), USERS * ROUNDS, &mut wrong);
        if wrong.is_empty() {
            // Archives of many runs are of no use.
            let _kept = fs::remove_dir_all(self.out());
        }
        self.seen.not_whole.append(&mut wrong);
        self.seen.trials.add(trials);
    }

    fn is_wrong(&mut self, what: String) {
        self.seen.wrong.push(what);
    }

    /// Asserts that no process of the conductor lives. A killed one is gone only after some time.
    fn no_process_is_left(&mut self) {
        let mark = format!("{MARK}={}", self.mark());
        let is_gone = waited(|| marked(&mark).is_empty());
        if !is_gone {
            let left = marked(&mark);
            self.seen.left.push(format!("processes: {left:?}"));
        }
    }

    fn no_setting_is_left(&mut self) {
        let Some(setting) = &self.setting else { return };
        let (now, before) = (setting.now(), &setting.before);
        if now != *before {
            let path = setting.path.display();
            self.seen.left.push(format!("{path}: {now}, not {before}"));
        }
    }

    /// Without faults, a trial is accepted; and all processes end on request.
    pub(crate) fn recover(&mut self) {
        let accepted = self.seen.trials.accepted;
        for number in RECOVERIES {
            self.run(number, &[]);
            if self.seen.trials.accepted > accepted {
                break;
            }
        }
        if self.seen.trials.accepted == accepted {
            self.is_wrong("nothing strikes any more, and no trial counts".to_owned());
        }
        // Also without a hub that could receive their last messages.
        if self.number.is_multiple_of(2) {
            end(&mut self.hub);
        }
        for agent in 0..AGENTS {
            signal(pid(&self.agents[agent]), Signal::SIGTERM);
        }
        for agent in 0..AGENTS {
            if await_end(&mut self.agents[agent]).is_none() {
                self.is_wrong(format!("agent-{agent} does not end when it is told to"));
            }
        }
    }

    /// Returns the output of all programs, to explain a failure.
    pub(crate) fn said(&self) -> String {
        let names = ["conductor", "agent-0", "agent-1", "hub"];
        let logs = names.map(|name| {
            let log = fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(20)..].join("\n");
            format!("---- {name}\n{last}\n")
        });
        logs.concat()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let all = self.agents.iter_mut().chain([&mut self.hub]);
        all.chain(self.conductor.as_mut()).for_each(end);
    }
}

fn plimsoll(words: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(words)
        .env("PLIMSOLL_PATIENCE", "0")
        .env_remove("PLIMSOLL_SEED")
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

/// Starts a hub on a port that it has chosen itself: a free port may be another's by then.
fn first_hub(folder: &Path) -> (Child, SocketAddr) {
    let hub = start_hub(folder, &["--listen", "127.0.0.1:0"]);
    let mut at = None;
    wait_until(DEADLINE, "the hub says where it listens", || {
        let said = fs::read_to_string(folder.join("hub.log")).unwrap_or_default();
        let url = said.split_once("tls://");
        at = url.and_then(|(_, rest)| rest.split_once(',')?.0.parse().ok());
        at.is_some()
    });
    (hub, at.expect("it was waited for"))
}

fn start_hub(folder: &Path, words: &[&str]) -> Child {
    let log = OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("hub.log"));
    let mut command = plimsoll(&["hub"]);
    command
        .args(words)
        .arg("--hub")
        .arg(folder.join("hub"))
        .stderr(log.expect("the log can be written"));
    command.spawn().expect("the program starts")
}

fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}

fn signal(pid: Pid, signal: Signal) {
    // A process that has just ended needs none.
    let _ended = kill(pid, signal);
}

/// Ends a process, also a stopped one.
fn end(child: &mut Child) {
    let _ended = child.kill();
    let _reaped = child.wait();
}

/// The first child of a process.
fn child_of(parent: Pid) -> Option<Pid> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let first = children.ok()?.split_whitespace().next()?.parse().ok()?;
    Some(Pid::from_raw(first))
}

/// Returns the exit code, if there is one; `None` if the process doesn't end.
fn await_end(child: &mut Child) -> Option<Option<i32>> {
    let mut ended: io::Result<_> = Ok(None);
    waited(|| {
        ended = child.try_wait();
        !matches!(ended, Ok(None))
    });
    let status = ended.expect("the child can be waited for")?;
    Some(status.code())
}

/// Waits for a condition; returns false at the deadline or after a signal.
fn waited(mut holds: impl FnMut() -> bool) -> bool {
    let mut looks = (0..looks(DEADLINE)).take_while(|_| !is_over());
    looks.any(|_| {
        let held = holds();
        if !held {
            pause(LOOK);
        }
        held
    })
}

/// Waits this long, or until a signal.
fn wait(long: Duration) {
    let looks = looks(long);
    (0..looks)
        .take_while(|_| !is_over())
        .for_each(|_| pause(long / looks));
}

/// The number of looks in a time; at least one.
fn looks(long: Duration) -> u32 {
    let looks = long.as_millis().div_ceil(LOOK.as_millis()).max(1);
    u32::try_from(looks).unwrap_or(u32::MAX)
}

/// Processes with this in their environment.
fn marked(mark: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let is_marked = |path: &PathBuf| {
        let environment = fs::read(path.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        variables.any(|variable| variable == mark.as_bytes())
    };
    entries
        .map(|entry| entry.path())
        .filter(is_marked)
        .collect()
}
