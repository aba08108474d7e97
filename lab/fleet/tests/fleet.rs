//! Agents in separate processes and a real hub: this program, started again with an argument, is the agent. Without
//! nats-server it reports that it is skipped.

mod rights;
mod starts;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use lab_driver::remote::RemoteGenerators;
use lab_driver::{
    Assignment, Clock, Driver, DriverError, DriverEvent, DriverSummary, Limits, Part,
};
use lab_driver::{TlsOptions, Window};
use lab_fleet::{
    AgentOptions, Conductor, Crew, FleetError, Hub, Name, Role, Server, Token, Wanted, run_agent,
};
use lab_workload::LoadKind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const PROGRAM: &str = "0.0.0-test";

/// Each test has its own fleet, and mostly waits: for leases to expire, for trials to end.
const AT_ONCE: usize = 4;

/// A test by its name.
type Test = (&'static str, fn());

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, agent, token, state] = &arguments[..]
        && agent == "agent"
    {
        return be_agent(Path::new(token), Path::new(state));
    }
    if !lab_fleet::has_server() {
        println!("skipped: there is no nats-server here (Debian: apt install nats-server)");
        return;
    }
    let tests: [Test; 7] = [
        (
            "one load by one, two, and three agents",
            one_load_by_any_number_of_agents,
        ),
        ("a killed agent", a_killed_agent_is_a_loss_and_nothing_else),
        (
            "a stopped agent",
            a_stopped_agent_is_lost_and_lets_its_users_go,
        ),
        ("tokens and rights", tokens_and_rights),
        ("one run at a time", an_agent_works_for_one_run_at_a_time),
        (
            "clocks that differ",
            a_clock_that_is_far_off_begins_with_the_others,
        ),
        (
            "a server that runs already",
            a_server_that_runs_already_lets_in_whom_it_is_told,
        ),
    ];
    play(&tests);
}

/// Runs all tests, some at a time; fails if one fails.
fn play(tests: &[Test]) {
    let next = AtomicUsize::new(0);
    let some = || {
        while let Some((name, test)) = tests.get(next.fetch_add(1, Relaxed)) {
            println!("fleet: {name}");
            test();
            println!("fleet: {name}: ok");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(some);
        }
    });
}

fn be_agent(token: &Path, state: &Path) {
    // No agent survives the tests.
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).unwrap();
    let token: Token = std::fs::read_to_string(token).unwrap().parse().unwrap();
    let options = AgentOptions {
        token,
        state: state.to_path_buf(),
        cores: Vec::new(),
        weight: None,
        speed: None,
        systems: None,
        labels: BTreeMap::from([("dc".to_owned(), "here".to_owned())]),
        program: PROGRAM.to_owned(),
    };
    let mut tell = |event| println!("{event:?}");
    if let Err(error) = run_agent(options, &mut tell, &AtomicBool::new(false)) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// A hub with its server, and its agents.
struct Fleet {
    folder: tempfile::TempDir,
    server: Server,
    agents: Vec<Child>,
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for agent in &mut self.agents {
            let _gone = agent.kill();
            let _reaped = agent.wait();
        }
    }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Waits until a condition holds, however busy the machine.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = Clock::start();
    while !holds() {
        assert!(clock.now() < Duration::from_secs(120), "{what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

impl Fleet {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let listen = free.local_addr().unwrap();
        drop(free);
        let hub = Hub::open_or_make(&folder.path().join("hub"), Some(listen), &[]).unwrap();
        Self {
            folder,
            server: Server::start(hub).unwrap(),
            agents: Vec::new(),
        }
    }

    fn hub(&self) -> Hub {
        Hub::open(self.server.hub().folder()).unwrap()
    }

    fn invite(&mut self, agent: &str) -> Token {
        let token = self.hub().invite(&name(agent), Role::Agent).unwrap();
        assert!(self.server.reload().unwrap());
        token
    }

    /// Starts an agent, with another program if given.
    fn agent(&mut self, agent: &str, by: &[&str]) -> Pid {
        let token = self.invite(agent);
        std::fs::write(self.folder.path().join(agent), token.secret_text()).unwrap();
        self.start_agent(agent, by)
    }

    /// Restarts an agent.
    fn again(&mut self, agent: &str) {
        self.start_agent(agent, &[]);
    }

    fn start_agent(&mut self, agent: &str, by: &[&str]) -> Pid {
        let file = self.folder.path().join(agent);
        let own = std::env::current_exe().unwrap();
        let mut words: Vec<PathBuf> = by.iter().map(PathBuf::from).collect();
        words.extend([
            own,
            "agent".into(),
            file,
            self.folder.path().join(format!("{agent}-state")),
        ]);
        let mut command = Command::new(&words[0]);
        let child = command.args(&words[1..]).stdout(Stdio::null()).spawn();
        let child = child.unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        self.agents.push(child);
        pid
    }

    fn conductor(&self) -> Arc<Conductor> {
        let token = std::fs::read_to_string(self.hub().token_file()).unwrap();
        Arc::new(Conductor::connect(&token.parse().unwrap(), PROGRAM).unwrap())
    }
}

/// Leases this many agents once they are available.
fn crew(conductor: &Arc<Conductor>, count: usize) -> Crew {
    let mut crew = None;
    until("agents are there", || {
        crew = Crew::take(conductor, &Wanted::Any(count), &[]).ok();
        crew.is_some()
    });
    crew.unwrap()
}

/// A server that answers every request, and records requests and times.
#[derive(Clone)]
struct Web {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<(Duration, String)>>>,
}

impl Web {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let web = Self {
            address: listener.local_addr().unwrap(),
            asked: Arc::default(),
        };
        let (asked, clock) = (Arc::clone(&web.asked), Clock::start());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let asked = Arc::clone(&asked);
                std::thread::spawn(move || serve(stream, &asked, clock));
            }
        });
        web
    }

    /// Returns the number of requests per path.
    fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (_, line) in self.asked.lock().unwrap().iter() {
            *counts.entry(line.clone()).or_default() += 1;
        }
        counts
    }
}

fn serve(stream: TcpStream, asked: &Mutex<Vec<(Duration, String)>>, clock: Clock) {
    let mut to = stream.try_clone().unwrap();
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(request) = lines.next() {
        asked.lock().unwrap().push((clock.now(), request));
        lines.by_ref().find(String::is_empty);
        if to
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
            .is_err()
        {
            return;
        }
    }
}

const WORKLOAD: &str = "
workload: test
user:
  me: '{{ index }}'
setup:
  - step: First
    request: GET /setup/{{ me }}
session:
  pace: 60s
  steps:
    - step: Get
      repeat: 3
      request: GET /get/{{ me }}/{{ uuid() }}
    - step: Sometimes
      share: 50%
      request: GET /sometimes/{{ me }}
    - step: Never
      when: index < 0
      request: PUT /never
      body: { file: large.bin }
";

struct OneFile;

impl lab_study::Files for OneFile {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        Ok(match path {
            // More bytes than fit in flight; an agent that lacks one doesn't begin.
            "large.bin" => (0..20 << 20).map(|at: u32| (at / 5) as u8).collect(),
            _ => WORKLOAD.into(),
        })
    }
}

fn drive(web: &Web, hold: Duration) -> Assignment {
    let workload = lab_study::load_workload("workload.yaml", &OneFile).unwrap();
    Assignment {
        population: String::new(),
        first: 0,
        workload: Arc::new(workload),
        base: format!("http://{}", web.address).parse().unwrap(),
        tls: TlsOptions::default(),
        resolve: Vec::new(),
        sources: Vec::new(),
        protocol: lab_driver::Protocol::default(),
        kind: LoadKind::Users,
        users: 60,
        part: Part::whole(),
        user_extra: Vec::new(),
        seed: 7,
        block: 0,
        base_date: jiff::civil::date(2026, 1, 1),
        cores: Vec::new(),
        own_cores: false,
        ramp: Duration::ZERO,
        hold,
        stages: Vec::new(),
        timeline: None,
        window: Duration::from_millis(500),
        limits: Limits::default(),
    }
}

/// The result of a drive, and its windows.
type Ran = (Result<DriverSummary, DriverError>, Vec<Window>);

/// Drives to the end; `each` is called at every window.
fn run(
    driver: Driver,
    events: &std::sync::mpsc::Receiver<DriverEvent>,
    mut each: impl FnMut(),
) -> Ran {
    let mut windows = Vec::new();
    for event in events {
        match event {
            DriverEvent::SetupDone { .. } => {
                if let Err(error) = driver.begin() {
                    return (Err(error), windows);
                }
            }
            DriverEvent::Window(window) => {
                windows.push(*window);
                each();
            }
            DriverEvent::Done => break,
            _ => {}
        }
    }
    (driver.join(), windows)
}

fn run_by(crew: &Crew, drive: &Assignment, each: impl FnMut()) -> Ran {
    let (sender, events) = sync_channel(64);
    // An agent that has greeted may need a moment, on a busy machine, before it answers.
    let mut peers = None;
    until("all agents answer", || {
        peers = crew.open().ok();
        peers.is_some()
    });
    let driver = Driver::start_peers(drive, peers.unwrap(), sender).unwrap();
    run(driver, &events, each)
}

fn answered(windows: &[Window]) -> u64 {
    let steps = windows.iter().flat_map(|window| &window.steps);
    steps.map(|step| step.transactions()).sum()
}

/// Each user has one session, which is over long before this.
const HOLD: Duration = Duration::from_secs(4);

fn one_load_by_any_number_of_agents() {
    let web = Web::start();
    let (sender, events) = sync_channel(64);
    let driver = Driver::start(drive(&web, HOLD), sender).unwrap();
    let (alone, windows) = run(driver, &events, || {});
    let alone = alone.unwrap();
    assert_eq!(answered(&windows), alone.transactions);
    let expected = web.counts();
    let sometimes = |path: &&String| path.contains("/sometimes/");
    assert!(
        expected.keys().filter(sometimes).count() > 1,
        "{expected:?}"
    );

    let mut fleet = Fleet::start();
    let conductor = fleet.conductor();
    for (count, agent) in (1..).zip(["ada", "bob", "eve"]) {
        fleet.agent(agent, &[]);
        let crew = crew(&conductor, count);
        let web = Web::start();
        // Two trials of one lease.
        for _ in 0..2 {
            web.asked.lock().unwrap().clear();
            let (summary, windows) = run_by(&crew, &drive(&web, HOLD), || {});
            let summary = summary.unwrap();
            assert!(!summary.stopped_early);
            assert_eq!((summary.errors, windows.len()), (0, 8));
            assert_eq!(answered(&windows), summary.transactions);
            assert_eq!(web.counts(), expected, "{count} agents");
            assert_eq!(summary.transactions, alone.transactions);
        }
        let seen = crew.seen();
        assert_eq!(seen.len(), count);
        assert!(
            seen.iter()
                .all(|seen| !seen.offsets.is_empty() && !seen.times.is_empty())
        );
    }
}

/// A signal to an agent, and when it was first sent. Verdict times are printed, and not asserted.
struct Struck {
    victim: Pid,
    signal: Signal,
    clock: Clock,
    first: OnceLock<Duration>,
}

impl Struck {
    fn new(victim: Pid, signal: Signal) -> Self {
        let (clock, first) = (Clock::start(), OnceLock::new());
        Self {
            victim,
            signal,
            clock,
            first,
        }
    }

    fn strike(&self) {
        self.first.get_or_init(|| self.clock.now());
        let _gone_already = kill(self.victim, self.signal);
    }

    fn tell(&self, how: &str) {
        let since = self.first.get().map(|first| self.clock.now() - *first);
        println!("fleet: the verdict came {since:?} after an agent was {how}");
    }
}

fn a_killed_agent_is_a_loss_and_nothing_else() {
    let mut fleet = Fleet::start();
    let (conductor, web) = (fleet.conductor(), Web::start());
    let victim = fleet.agent("ada", &[]);
    fleet.agent("bob", &[]);
    let crew = crew(&conductor, 2);
    let struck = Struck::new(victim, Signal::SIGKILL);
    let (ended, windows) = run_by(&crew, &drive(&web, Duration::from_secs(600)), || {
        struck.strike();
    });
    struck.tell("killed");
    let error = ended.unwrap_err();
    assert!(matches!(&error, DriverError::Lost { .. }), "{error}");
    // The hub reports the loss at once; on a busy machine the lease may expire first.
    let lost = error.to_string();
    let reasons = ["its program ended, or was killed", "and its lease is over"];
    let is_told = reasons.iter().any(|reason| lost.ends_with(reason));
    assert!(
        lost.starts_with("agent ada was lost: ") && is_told,
        "{lost}"
    );
    assert!(windows.last().unwrap().end < Duration::from_secs(600));
    let is_there = || conductor.agents().iter().any(|one| one.name == name("ada"));
    until("ada is gone", || !is_there());
    let error = crew.open().unwrap_err().to_string();
    assert_eq!(error, format!("{lost}; it did not come back"));
    // After a restart it has its part of the next trial.
    fleet.again("ada");
    until("ada is back", is_there);
    let (ended, _) = run_by(&crew, &drive(&web, HOLD), || {});
    assert!(!ended.unwrap().stopped_early);
}

fn a_stopped_agent_is_lost_and_lets_its_users_go() {
    let mut fleet = Fleet::start();
    let (conductor, web) = (fleet.conductor(), Web::start());
    let victim = fleet.agent("ada", &[]);
    let crew = crew(&conductor, 1);
    let struck = Struck::new(victim, Signal::SIGSTOP);
    let (ended, _) = run_by(&crew, &drive(&web, Duration::from_secs(600)), || {
        struck.strike()
    });
    struck.tell("stopped");
    let error = ended.unwrap_err().to_string();
    assert!(error.contains("and its lease is over"), "{error}");
    // When it resumes it obeys no run: no user sends requests, and it can be leased again.
    drop(crew);
    kill(victim, Signal::SIGCONT).unwrap();
    let again = self::crew(&conductor, 1);
    let before = web.asked.lock().unwrap().len();
    std::thread::park_timeout(Duration::from_millis(1000));
    assert_eq!(web.asked.lock().unwrap().len(), before);
    let (ended, _) = run_by(&again, &drive(&web, HOLD), || {});
    assert!(!ended.unwrap().stopped_early);
}

/// A token, changed or read as its text.
fn json_of(token: &Token) -> serde_json::Value {
    let text = token.secret_text();
    let json = text.strip_prefix("plimsoll-join-1.").unwrap();
    serde_json::from_slice(&BASE64.decode(json).unwrap()).unwrap()
}

fn tokens_and_rights() {
    let mut fleet = Fleet::start();
    let state = fleet.folder.path().join("state");
    let agent = |token: Token| {
        let options = AgentOptions {
            token,
            state: state.clone(),
            cores: Vec::new(),
            weight: None,
            speed: None,
            systems: None,
            labels: BTreeMap::new(),
            program: PROGRAM.to_owned(),
        };
        run_agent(options, &mut |_| {}, &AtomicBool::new(false)).unwrap_err()
    };
    let ada = fleet.invite("ada");
    let conductor = Conductor::connect(&ada, PROGRAM);
    assert!(matches!(conductor, Err(FleetError::Role(..))));
    fleet.hub().remove(&name("ada")).unwrap();
    fleet.server.reload().unwrap();
    let error = agent(ada.clone());
    assert!(matches!(error, FleetError::Refused { .. }), "{error}");
    // The token of another hub, which has another certificate.
    let other = tempfile::tempdir().unwrap();
    let mut other = Hub::open_or_make(other.path(), None, &[]).unwrap();
    let mut stranger = json_of(&other.invite(&name("eve"), Role::Agent).unwrap());
    stranger["url"] = fleet.hub().url().into();
    let text = format!("plimsoll-join-1.{}", BASE64.encode(stranger.to_string()));
    let error = agent(text.parse().unwrap());
    assert!(matches!(error, FleetError::Unreachable { .. }), "{error}");
    rights::each_speaks_for_itself_alone(&fleet.invite("bob"));
}

fn an_agent_works_for_one_run_at_a_time() {
    let mut fleet = Fleet::start();
    let conductor = fleet.conductor();
    fleet.agent("ada", &[]);
    let first = crew(&conductor, 1);
    let mut told = String::new();
    until("the agent says for whom it works", || {
        told = Crew::take(&conductor, &Wanted::Any(1), &[])
            .unwrap_err()
            .to_string();
        told.contains("works for conductor's run")
    });
    assert!(
        told.starts_with("1 agents are wanted, and 0 can be had; ada"),
        "{told}"
    );
    let error = conductor.stop(&name("ada"), false).unwrap_err().to_string();
    assert!(error.contains("works for"), "{error}");
    drop(first);
    drop(crew(&conductor, 1));
    conductor.stop(&name("ada"), false).unwrap();
    assert!(fleet.agents[0].wait().unwrap().success());
}

fn a_clock_that_is_far_off_begins_with_the_others() {
    let ahead = [
        "unshare",
        "-T",
        "--monotonic",
        "1000",
        "--boottime",
        "1000",
        "--fork",
        "--",
    ];
    let may = Command::new(ahead[0])
        .args(&ahead[1..])
        .arg("true")
        .status();
    if !may.is_ok_and(|status| status.success()) {
        println!("fleet: skipped: this kernel, or its owner, allows no time namespaces");
        return;
    }
    let mut fleet = Fleet::start();
    let (conductor, web) = (fleet.conductor(), Web::start());
    fleet.agent("ada", &ahead);
    fleet.agent("bob", &[]);
    let crew = crew(&conductor, 2);
    let (summary, windows) = run_by(&crew, &drive(&web, HOLD), || {});
    assert_eq!(summary.unwrap().elapsed, HOLD);
    assert_eq!(windows.len(), 8);
    starts::print(&crew, &web);
    let seen = crew.seen();
    let off = |agent: &str| {
        let seen = seen.iter().find(|seen| seen.name == agent);
        let offsets = &seen.unwrap().offsets;
        *offsets.iter().min_by_key(|one| one.bound).unwrap()
    };
    for (agent, expected) in [("ada", 1_000_000_000_000), ("bob", 0)] {
        let known = off(agent);
        println!(
            "fleet: {agent} is off by {} ns, ± {}",
            known.offset, known.bound
        );
        assert!(known.offset.abs_diff(expected) <= known.bound);
    }
}

/// Starts a separate agent, with the token in a file.
fn spawn_agent(token: &Path, state: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("agent").args([token, state]);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Ends a process when dropped.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn a_server_that_runs_already_lets_in_whom_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    // Its certificate is one that another hub created.
    let fleet = Fleet::start();
    let own = fleet.server.hub().folder();
    let json = std::fs::read(own.join("hub.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let authority = format!(
        "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
        json["authority"].as_str().unwrap()
    );
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = free.local_addr().unwrap();
    drop(free);
    let url = format!("tls://{listen}");
    let joined = folder.path().join("joined");
    assert!(Hub::join(&joined, "nats://a:1", Some(authority.as_bytes())).is_err());
    assert!(Hub::join(&joined, &url, None).is_err());
    let mut hub = Hub::join(&joined, &url, Some(authority.as_bytes())).unwrap();
    let configuration = folder.path().join("theirs.conf");
    let text = format!(
        "listen: \"{listen}\"\ntls {{ cert_file: {:?}, key_file: {:?} }}\n\
         authorization {{ include \"joined/rights.conf\" }}\n",
        own.join("hub.pem"),
        own.join("hub.key")
    );
    std::fs::write(&configuration, text).unwrap();
    let program = lab_fleet::server_program().unwrap();
    let server = Command::new(program)
        .arg("-c")
        .arg(&configuration)
        .stderr(Stdio::null())
        .spawn();
    let server = Ends(server.unwrap());
    until("it listens", || TcpStream::connect(listen).is_ok());
    let token = std::fs::read_to_string(hub.token_file()).unwrap();
    let conductor = Conductor::connect(&token.parse().unwrap(), PROGRAM).unwrap();
    let conductor = Arc::new(conductor);
    let token = hub.invite(&name("ada"), Role::Agent).unwrap();
    let pid = Pid::from_raw(i32::try_from(server.0.id()).unwrap());
    kill(pid, Signal::SIGHUP).unwrap();
    let file = folder.path().join("ada.token");
    std::fs::write(&file, token.secret_text()).unwrap();
    let _agent = Ends(spawn_agent(&file, &folder.path().join("state")));
    let crew = crew(&conductor, 1);
    let (summary, windows) = run_by(&crew, &drive(&Web::start(), HOLD), || {});
    assert_eq!(summary.unwrap().transactions, answered(&windows));
    // There is nothing to start, and the hub is unchanged.
    assert!(matches!(
        Server::start(Hub::open(&joined).unwrap()),
        Err(FleetError::Elsewhere(_))
    ));
    assert!(Hub::join(&joined, &url, None).is_ok());
    assert!(Hub::join(&joined, "tls://other:1", None).is_err());
}
