//! Tests of the measurement itself with the whole product: load from several processes, a generator that dies, one that
//! gets no CPU, and a slow server under a healthy one. The server is a small program in Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use plimsoll_tests::{program, wait_until};
use serde_json::Value;

const DEADLINE: Duration = Duration::from_secs(120);

/// Takes turns: the tests would disturb each other, since one of them takes a core.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `DELAY` is the time of each answer, in seconds.
const STUDY: &str = "\
study: measured
title: A load on a small server
workload: measured.workload.yaml
system:
  command:
    start: [python3, server.py, \"{{ port }}\", \"DELAY\"]
    files:
      server.py: |
        import http.server, sys, time
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            disable_nagle_algorithm = True
            def do_GET(self):
                time.sleep(float(sys.argv[2]))
                self.send_response(200)
                self.send_header('Content-Length', '2')
                self.end_headers()
                self.wfile.write(b'ok')
            def log_message(self, *words):
                pass
        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128
        Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
    ready: { within: 120s }
load: LOAD
trials: 1
repeats: 0
";

const WORKLOAD: &str = "\
workload: measured
session:
  steps:
    - { step: Look, wait: WAIT, request: GET / }
";

struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new(load: &str, wait: &str, delay: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let study = STUDY.replace("LOAD", load).replace("DELAY", delay);
        fs::write(folder.path().join("measured.study.yaml"), study).expect("written");
        let workload = WORKLOAD.replace("WAIT", wait);
        fs::write(folder.path().join("measured.workload.yaml"), workload).expect("written");
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self) -> Command {
        self.arguments(Command::new(program()))
    }

    fn arguments(&self, mut command: Command) -> Command {
        command
            .arg("run")
            .arg(self.path("measured.study.yaml"))
            .arg("--state")
            .arg(self.path("state"))
            .arg("--out")
            .arg(self.path("run"))
            .env("PLIMSOLL_PATIENCE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self) -> Output {
        self.command().output().expect("it runs")
    }

    /// The command without the right to raise the generator's priority, as for users other than root.
    fn command_without_priority(&self) -> Command {
        if !geteuid().is_root() {
            return self.command();
        }
        let mut command = Command::new("setpriv");
        command.arg("--bounding-set=-sys_nice").arg(program());
        self.arguments(command)
    }

    /// Waits until the first trial has some load.
    fn wait_for_load(&self) {
        let windows = self.path("run/trials/001.partial/windows.jsonl");
        wait_until(DEADLINE, "the load begins", || {
            fs::metadata(&windows).is_ok_and(|file| file.len() > 0)
        });
    }

    /// Waits until the trial has ended.
    fn wait_for_end(&self) {
        let whole = self.path("run/trials/001");
        wait_until(2 * DEADLINE, "the trial ends", || whole.exists());
    }

    /// Returns the one trial of a run with this output, as reported.
    fn trial(&self, output: &Output) -> Value {
        let result = self.result(output);
        result["trials"][0].clone()
    }

    fn result(&self, output: &Output) -> Value {
        json(&self.path("run/result.json"), &text(&output.stderr))
    }

    fn record(&self, output: &Output) -> Value {
        let path = self.path("run/trials/001/trial.json");
        json(&path, &text(&output.stderr))
    }
}

/// Reads a JSON file; if it is missing, `said` is the output of the run that should have written it.
fn json(path: &Path, said: &str) -> Value {
    let text = fs::read_to_string(path);
    let text = text.unwrap_or_else(|e| panic!("{}: {e}: {said}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The outcome of a check, by name.
fn outcome(trial: &Value, name: &str) -> String {
    let checks = trial["checks"].as_array().expect("checks");
    let check = checks.iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("no check {name}: {trial:#}"));
    check["outcome"].as_str().expect("a text").to_owned()
}

/// The generator processes of a run.
fn generators_of(run: u32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_generator = |pid: &i32| {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
        let command = read("cmdline").unwrap_or_default();
        let status = read("status").unwrap_or_default();
        command.ends_with("plimsoll\0generate\0") && status.contains(&format!("\nPPid:\t{run}\n"))
    };
    pids.filter(is_generator).collect()
}

#[test]
fn several_generators_are_one_load() {
    let _alone = alone();
    let stage = Stage::new("{ users: 9, hold: 3s, generators: 3 }", "50ms", "0.001");
    let output = stage.run();
    let record = stage.record(&output);
    let errors = text(&output.stderr);
    assert_eq!(record["end"]["how"], "complete", "{record:#} {errors}");
    assert_eq!(record["generator"]["workers"], 3, "{record:#}");
    let trial = stage.trial(&output);
    assert_eq!(trial["errors"], 0, "{trial:#}");
    // 9 users × 3 s ÷ 51 ms, less the delays of a busy machine.
    let transactions = trial["transactions"].as_u64().expect("a count");
    assert!((9..=540).contains(&transactions), "{transactions}");
    // On a busy machine it may be read too seldom, which is noted.
    let is_noted = record["noted"].to_string().contains("hardly_read");
    let is_read = record["generator"]["cpu_fraction"].is_number();
    assert!(is_read || is_noted, "{record:#}");
}

#[test]
fn a_generator_that_dies_fails_its_trial_and_leaves_nothing() {
    let _alone = alone();
    let stage = Stage::new("{ users: 4, hold: 10m, generators: 2 }", "20ms", "0.001");
    let run = stage.command().spawn().expect("it runs");
    let pid = run.id();
    stage.wait_for_load();
    let generators = generators_of(pid);
    assert_eq!(generators.len(), 2);
    kill(Pid::from_raw(generators[1]), Signal::SIGKILL).expect("it lives");
    let output = run.wait_with_output().expect("it ends");
    let record = stage.record(&output);
    assert_eq!(record["end"]["how"], "generator_failed", "{record:#}");
    let message = record["end"]["message"].as_str().expect("a text");
    assert!(message.contains("was ended by signal 9"), "{message}");
    assert_eq!(output.status.code(), Some(120), "{}", text(&output.stderr));
    let trial = stage.trial(&output);
    assert_eq!(trial["verdict"], "invalid");
    assert_eq!(outcome(&trial, "load generator"), "invalid");
    for pid in generators {
        let process = PathBuf::from(format!("/proc/{pid}/task"));
        wait_until(DEADLINE, "it is gone", || !process.exists());
    }
}

/// Programs that take all the CPU they get, on some cores; they end on drop, or by themselves after the longest wait.
struct Busy(Vec<Child>);

impl Busy {
    fn on(cores: &CpuSet, count: usize) -> Self {
        let start = |_| {
            let mut command = Command::new("timeout");
            command.args(["300", "sh", "-c", "while :; do :; done"]);
            command.stdin(Stdio::null()).spawn().expect("it starts")
        };
        let before = sched_getaffinity(Pid::from_raw(0)).expect("this thread's cores");
        // Children start on the cores of the thread that starts them.
        sched_setaffinity(Pid::from_raw(0), cores).expect("these cores are there");
        let busy = Self((0..count).map(start).collect());
        sched_setaffinity(Pid::from_raw(0), &before).expect("these cores were there");
        busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // `timeout` forwards it to the loop.
            let _gone = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            let _status = child.wait();
        }
    }
}

/// The generator's cores: a quarter of all, rounded up.
fn generator_cores() -> CpuSet {
    let all = sched_getaffinity(Pid::from_raw(0)).expect("this thread's cores");
    let allowed = (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap_or(false));
    let allowed: Vec<usize> = allowed.collect();
    let mut cores = CpuSet::new();
    for core in &allowed[..allowed.len().div_ceil(4)] {
        cores.set(*core).expect("a core");
    }
    cores
}

#[test]
fn a_generator_without_cpu_is_no_measurement() {
    let _alone = alone();
    // Twenty users without pause keep the generator's worker busy; so do the other programs on its
    // core, which leave it a sixth of the time.
    let stage = Stage::new("{ users: 20, hold: 5s }", "0s..1ms", "0");
    let cores = generator_cores();
    let count = (0..CpuSet::count()).filter(|c| cores.is_set(*c).unwrap_or(false));
    let run = stage.command_without_priority().spawn().expect("it runs");
    stage.wait_for_load();
    let busy = Busy::on(&cores, 5 * count.count());
    // Counts are reported although the programs still run.
    stage.wait_for_end();
    drop(busy);
    let output = run.wait_with_output().expect("it ends");
    let record = stage.record(&output);
    let trial = stage.trial(&output);
    assert_eq!(trial["verdict"], "invalid", "{trial:#}");
    if record["end"]["how"] == "generator_failed" {
        // On a machine that is busy anyway, the trial does not even complete.
        let message = record["end"]["message"].as_str().expect("a text");
        assert!(message.contains("gets no CPU time"), "{message}");
        return;
    }
    assert_eq!(output.status.code(), Some(120), "{}", text(&output.stderr));
    // The reader of the waiting times may get no CPU either.
    let noted = record["noted"].as_array().expect("a list");
    let shown_by: &[&str] = match noted.iter().any(|noted| noted["what"] == "hardly_read") {
        true => &["lateness of sends", "loop lag", "clock and windows"],
        false => &["run-queue delay"],
    };
    let mut outcomes = shown_by.iter().map(|name| outcome(&trial, name));
    assert!(outcomes.any(|outcome| outcome == "invalid"), "{trial:#}");
}

/// Checks that other programs on the machine can fail; a slow server fails none of them.
const ENVIRONMENT: [&str; 5] = [
    "lateness of sends",
    "run-queue delay",
    "generator CPU",
    "other programs",
    "stolen CPU",
];

#[test]
fn a_slow_server_under_a_healthy_generator_is_one() {
    let _alone = alone();
    let mut trial = Value::Null;
    for _ in 0..3 {
        // Each answer takes four times the wait: a fifth of the planned load is delivered.
        let stage = Stage::new("{ users: 10, hold: 6s }", "100ms", "0.4");
        trial = stage.trial(&stage.run());
        let checks = trial["checks"].as_array().expect("checks").iter();
        let invalid = checks.filter(|check| check["outcome"] == "invalid");
        let mut names = invalid.filter_map(|check| check["name"].as_str());
        if names.all(|name| ENVIRONMENT.contains(&name)) {
            let times = &trial["response_ms"];
            let median = times["p50"].as_f64().expect("a median");
            assert!(median >= 400.0, "{times}");
            return;
        }
    }
    // A generator so disturbed can't do its work: then its own checks report it.
    let disturbed = ENVIRONMENT.iter().any(|n| outcome(&trial, n) != "pass");
    assert!(disturbed, "{:#}", trial["checks"]);
}

/// A search continues by the verdict of each trial at its end, which the run's log keeps: the report judges them the
/// same. The server's delay makes every level a borderline case.
#[test]
fn a_search_is_reported_as_it_was_judged_on_its_way() {
    let _alone = alone();
    let stage = Stage::new("{ ramp: 500ms, hold: 2s }", "5ms", "0.02");
    let find = "find:\n  users: { max: 4 }\n  trials: 3\n  subject_to: { response_time: [\"p(50) < 21ms\"] }\n";
    let delay = "float(sys.argv[2]) * (1 if time.time() % 5 < 2 else 1.1)";
    let study = fs::read_to_string(stage.path("measured.study.yaml")).expect("written");
    let study = study
        .replace("trials: 1\n", find)
        .replace("repeats: 0", "repeats: 3")
        .replace("float(sys.argv[2])", delay);
    fs::write(stage.path("measured.study.yaml"), study).expect("written");
    let output = stage.run();
    let log = fs::read_to_string(stage.path("run/events.jsonl"))
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let done: Vec<Value> = lines.filter(|line| line["event"] == "trial_done").collect();
    let result = stage.result(&output);
    let trials = result["trials"].as_array().expect("trials");
    assert!(!done.is_empty() && done.len() == trials.len(), "{log}");
    for then in &done {
        let trial = trials.iter().find(|trial| trial["id"] == then["trial"]);
        let trial = trial.unwrap_or_else(|| panic!("no trial {then}"));
        assert_eq!(then["carried"], trial["carried"], "{then}");
        let failed = then["failed"]
            .as_array()
            .is_some_and(|failed| !failed.is_empty());
        assert_eq!(failed, trial["verdict"] == "invalid", "{then}");
    }
}

/// A server that fails in known ways, and counts the failures in the file `COUNTS`.
const TRUTH: &str = "\
study: measured
title: A server that fails in known ways
workload: measured.workload.yaml
system:
  command:
    start: [python3, server.py, \"{{ port }}\", \"COUNTS\"]
    files:
      server.py: |
        import http.server, json, os, socket, struct, sys, threading
        n, counts, lock = 0, {}, threading.Lock()
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'
            disable_nagle_algorithm = True
            def do_GET(self):
                kind = self.told() if self.path == '/truth' else 'answered'
                self.close_connection = kind in ('reset', 'closed early')
                if kind == 'reset':
                    never = struct.pack('ii', 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, never)
                    return self.connection.close()
                self.send_response(500 if kind == 'failed' else 200)
                self.send_header('Content-Length', '11' if kind == 'closed early' else '2')
                self.end_headers()
                self.wfile.write(b'ok')
            def told(self):
                global n
                with lock:
                    n += 1
                    kind = 'answered'
                    for every, what in ((101, 'closed early'), (100, 'reset'), (50, 'failed')):
                        if n % every == 0:
                            kind = what
                            break
                    counts[kind] = counts.get(kind, 0) + 1
                    with open(sys.argv[2] + '.new', 'w') as file:
                        json.dump(counts, file)
                    os.replace(sys.argv[2] + '.new', sys.argv[2])
                    return kind
            def finish(self):
                try:
                    super().finish()
                except (OSError, ValueError):
                    pass
            def log_message(self, *words):
                pass
        class Server(http.server.ThreadingHTTPServer):
            request_queue_size = 128
            def handle_error(self, *about):
                pass
        Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
    ready: { within: 120s }
load: { sequence: { sessions: 1500 }, hold: 30m }
thresholds: { error_rate: [\"rate <= 100%\"], resends: [\"rate <= 100%\"] }
trials: 1
repeats: 0
";

/// Every class of failure is detected and counted exactly, from the socket to the report.
#[test]
fn the_report_says_what_the_server_did() {
    let _alone = alone();
    let stage = Stage::new("", "0s", "");
    let counts = stage.path("counts.json");
    let study = TRUTH.replace("COUNTS", &counts.display().to_string());
    fs::write(stage.path("measured.study.yaml"), study).expect("written");
    let workload =
        "workload: measured\nsession: { steps: [{ step: Look, request: GET /truth }] }\n";
    fs::write(stage.path("measured.workload.yaml"), workload).expect("written");
    let output = stage.run();
    let trial = stage.trial(&output);
    let did = |kind: &str| json(&counts, "")[kind].as_u64().unwrap_or_default();
    assert_eq!(
        did("answered") + did("failed") + did("reset") + did("closed early"),
        1500 + did("reset"),
        "what was reset before an answer was sent again: {}",
        text(&output.stderr)
    );
    assert!(did("failed") >= 15 && did("reset") >= 15 && did("closed early") >= 14);
    assert_eq!(trial["transactions"], did("answered"), "{trial:#}");
    assert_eq!(
        trial["errors"],
        did("failed") + did("closed early"),
        "{trial:#}"
    );
    let classes = &trial["errors_by_class"];
    assert_eq!(classes["status"], did("failed"), "{classes}");
    assert_eq!(classes["reset"], did("closed early"), "{classes}");
    assert_eq!(trial["stale_retries"], did("reset"), "{trial:#}");
    let words = format!(
        "{} of 1,500 requests failed ({:.2} %): {} unexpected status, {} connection broken; {} sent \
         again",
        did("failed") + did("closed early"),
        (did("failed") + did("closed early")) as f64 / 15.0,
        did("failed"),
        did("closed early"),
        did("reset")
    );
    let page = fs::read_to_string(stage.path("run/report.md")).expect("the report");
    assert!(page.contains(&words), "{words}\n{page}");
}
