//! A program that is not ours as the system under test: its files, reset, readiness, stop, and all its failures. The
//! program is a shell script around `plimsoll serve`.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plimsoll_tests::{program, wait_until};

#[path = "command/several.rs"]
mod several;

const DEADLINE: Duration = Duration::from_secs(120);

const STUDY: &str = "\
study: command
title: A command at two settings
workload: hello.workload.yaml
matrix:
  threads: [1, 2]
system:
  command:
    start: [./start.sh, --http-threads, \"{{ threads }}\"]
    env: { PROGRAM: PROGRAM_PATH, GREETING: \"port {{ port }}\" }
    files:
      start.sh: |
        #!/bin/sh
        echo \"$GREETING\" with \"$2\" and \"$(cat conf/extra)\"
        trap 'kill $server; echo bye; exit 0' TERM
        \"$PROGRAM\" serve --listen 127.0.0.1:{{ port }} --data {{ scratch }}/store --engine memory \"$@\" &
        server=$!
        sleep 600 &
        while :; do wait $server; done
      conf/extra: \"extra {{ threads * 10 }}\"
    reset: [sh, -c, \"echo reset >> RESETS; echo cleaned\"]
    ready: { http: /healthz, within: 120s }
    stop: { signal: TERM, grace: 30s }
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
}

impl Stage {
    fn new(hold: &str) -> Self {
        let stage = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        let study = STUDY
            .replace("PROGRAM_PATH", program().to_str().expect("UTF-8"))
            .replace("RESETS", stage.path("resets").to_str().expect("UTF-8"))
            .replace("HOLD", hold);
        fs::write(stage.study(), study).expect("written");
        fs::write(stage.path("hello.workload.yaml"), WORKLOAD).expect("written");
        stage
    }

    /// The study with one text replaced by another, in which `STAGE` is the folder.
    fn with(hold: &str, from: &str, to: &str) -> Self {
        let stage = Self::new(hold);
        let study = fs::read_to_string(stage.study()).expect("the study");
        assert_eq!(study.matches(from).count(), 1, "{from}");
        let to = to.replace("STAGE", stage.path("").to_str().expect("UTF-8"));
        fs::write(stage.study(), study.replace(from, &to)).expect("written");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn study(&self) -> PathBuf {
        self.path("command.study.yaml")
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(program());
        command
            .arg(name)
            .arg(self.study())
            .arg("--state")
            .arg(self.path("state"))
            .env("PLIMSOLL_PATIENCE", "0")
            .stdin(Stdio::null());
        command
    }

    fn run(&self) -> Output {
        let out = self.path("run");
        let output = self.command("run").arg("--out").arg(out).output();
        let output = output.expect("it runs");
        self.nothing_is_left();
        output
    }

    /// Asserts that no process of the system and no scratch folder is left. A killed process is gone only after some
    /// time, which may be long on a busy machine.
    #[track_caller]
    fn nothing_is_left(&self) {
        assert!(!self.path("run/work").exists());
        wait_until(DEADLINE, "no process of the system lives on", || {
            self.processes().is_empty()
        });
    }

    /// Processes whose working directory is in this stage.
    fn processes(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let inside = |path: &PathBuf| {
            fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(self.path("run")))
        };
        entries.map(|entry| entry.path()).filter(inside).collect()
    }

    fn record(&self, trial: &str) -> serde_json::Value {
        let path = self.path("run/trials").join(trial).join("trial.json");
        serde_json::from_str(&read(&path)).expect("JSON")
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_command_is_made_ready_measured_and_stopped() {
    let stage = Stage::new("1s");
    let output = stage.run();
    // This test does not care whether a second is enough for a valid measurement.
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 120)),
        "{code:?} {}",
        text(&output.stderr)
    );
    for (trial, threads, extra) in [("001", "1", "extra 10"), ("002", "2", "extra 20")] {
        let record = stage.record(trial);
        assert_eq!(record["end"]["how"], "complete", "{record}");
        let notes = record["notes"].to_string();
        assert!(!notes.contains("killed"), "it ended by itself: {notes}");
        let start = &record["system_settings"]["start"];
        assert_eq!(*start, format!("./start.sh --http-threads {threads}"));
        let log = read(&stage.path("run/trials").join(trial).join("system.log"));
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines[0], "cleaned", "{log}");
        let greeting = lines[1].starts_with("port ");
        assert!(
            greeting && lines[1].ends_with(&format!("with {threads} and {extra}")),
            "{log}"
        );
        assert_eq!(lines.last(), Some(&"bye"), "{log}");
    }
    assert_eq!(
        read(&stage.path("resets")),
        "reset\nreset\n",
        "once for each trial"
    );
    // The tree is measured, not the shell alone.
    let monitor = read(&stage.path("run/trials/001/monitor.csv"));
    let mut lines = monitor.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let threads = names.iter().position(|name| *name == "system.threads");
    let last: Vec<&str> = lines.last().expect("a row").split(',').collect();
    let threads: f64 = last[threads.expect("a column")].parse().expect("a number");
    assert!(threads >= 4.0, "shell, sleep, and a server: {threads}");
}

#[test]
fn readiness_can_be_a_line_or_the_port() {
    for ready in ["{ log: 'port \\d+ with [12]' }", "{ within: 120s }"] {
        let stage = Stage::with("1s", "{ http: /healthz, within: 120s }", ready);
        let output = stage.run();
        assert_ne!(
            output.status.code(),
            Some(110),
            "{ready}: {}",
            text(&output.stdout)
        );
        assert_eq!(stage.record("002")["end"]["how"], "complete", "{ready}");
    }
}

#[test]
fn a_system_that_fails_to_start_shows_its_last_lines() {
    let many = "start: [sh, -c, 'seq 1 100; echo no luck >&2; exit 3', \"{{ threads }}\"]";
    let never = "start: [sleep, 600, \"{{ threads }}\"]";
    let start = "start: [./start.sh, --http-threads, \"{{ threads }}\"]";
    let folder = "start: [./nowhere, \"{{ threads }}\"]";
    for (from, to, says) in [
        (
            start,
            many,
            &["exit status: 3 before it was ready", "\n82\n", "no luck"][..],
        ),
        (start, never, &["not ready within 300ms"]),
        (
            start,
            folder,
            &["can't be started: ./nowhere", "No such file"],
        ),
        (
            "echo cleaned",
            "echo stuck; exit 4",
            &["the reset command ended", "status: 4", "stuck"],
        ),
    ] {
        let stage = Stage::with("1s", from, to);
        if to == never {
            let study = read(&stage.study()).replace("within: 120s", "within: 300ms");
            fs::write(stage.study(), study).expect("written");
        }
        let output = stage.run();
        assert_eq!(
            output.status.code(),
            Some(110),
            "{to}: {}",
            text(&output.stderr)
        );
        let message = stage.record("001")["end"]["message"].clone();
        let message = message.as_str().expect("a message");
        for part in says {
            assert!(message.contains(part), "{to}: no “{part}” in: {message}");
        }
        assert!(message.lines().count() <= 21, "{message}");
    }
}

#[test]
fn a_system_that_does_not_listen_is_killed_and_an_interrupt_leaves_nothing() {
    let stage = Stage::with(
        "300ms",
        "trap 'kill $server; echo bye; exit 0' TERM",
        "trap '' TERM",
    );
    let study = read(&stage.study());
    fs::write(stage.study(), study.replace("grace: 30s", "grace: 200ms")).expect("written");
    stage.run();
    let notes = stage.record("001")["notes"].to_string();
    assert!(
        notes.contains("did not end within 200ms and was killed"),
        "{notes}"
    );

    for (with, code) in [(Signal::SIGINT, Some(105)), (Signal::SIGKILL, None)] {
        let stage = Stage::new("5m");
        let mut command = stage.command("run");
        command.arg("--out").arg(stage.path("run"));
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut run = command.spawn().expect("it runs");
        wait_until(DEADLINE, "the system runs", || stage.processes().len() >= 3);
        kill(Pid::from_raw(run.id().cast_signed()), with).expect("it is there");
        assert_eq!(run.wait().expect("it ends").code(), code);
        wait_until(DEADLINE, "the system has ended", || {
            stage.processes().is_empty()
        });
    }
}

#[test]
fn a_terminal_that_is_closed_interrupts_a_run_as_ctrl_c_does() {
    let stage = Stage::new("5m");
    let plimsoll = stage.command("run");
    // Also if these tests themselves run under nohup.
    let mut command = Command::new("env");
    command
        .arg("--default-signal=HUP")
        .arg(plimsoll.get_program());
    command.args(plimsoll.get_args());
    command.env("PLIMSOLL_PATIENCE", "0").stdin(Stdio::null());
    command.arg("--out").arg(stage.path("run"));
    // Writes to both fail from now on, as on a terminal that is gone.
    let full = fs::File::options().write(true).open("/dev/full");
    command.stdout(full.expect("it is there"));
    command.stderr(Stdio::piped());
    let mut run = command.spawn().expect("it runs");
    wait_until(DEADLINE, "the system runs", || stage.processes().len() >= 3);
    drop(run.stderr.take());
    kill(Pid::from_raw(run.id().cast_signed()), Signal::SIGHUP).expect("it is there");
    assert_eq!(run.wait().expect("it ends").code(), Some(105));
    stage.nothing_is_left();
}

#[test]
fn under_nohup_the_end_of_the_terminal_ends_nothing() {
    let stage = Stage::new("5m");
    let mut command = Command::new("sh");
    let plimsoll = stage.command("run");
    let ignoring = "trap '' HUP; exec \"$0\" \"$@\"";
    command.args(["-c", ignoring]).arg(plimsoll.get_program());
    command
        .args(plimsoll.get_args())
        .env("PLIMSOLL_PATIENCE", "0");
    command.arg("--out").arg(stage.path("run"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().expect("it runs");
    let pid = Pid::from_raw(run.id().cast_signed());
    wait_until(DEADLINE, "the system runs", || stage.processes().len() >= 3);
    kill(pid, Signal::SIGHUP).expect("it is there");
    // If the first signal had been handled, the run would have ended before this one, with the same code.
    let hold = stage.path("run/trials/001.partial/windows.jsonl");
    wait_until(DEADLINE, "the load goes on", || {
        fs::metadata(&hold).is_ok_and(|windows| windows.len() > 0)
    });
    kill(pid, Signal::SIGTERM).expect("it is there");
    assert_eq!(run.wait().expect("it ends").code(), Some(105));
    stage.nothing_is_left();
}

#[test]
fn of_a_system_that_prints_without_end_the_beginning_and_the_end_are_kept() {
    let prints = "yes 'a line of no interest' | head -c 50000000; sleep 600 &";
    let stage = Stage::with("300ms", "sleep 600 &", prints);
    stage.run();
    let log = fs::read(stage.path("run/trials/001/system.log")).expect("a log");
    assert!((32 << 20..34 << 20).contains(&log.len()), "{}", log.len());
    assert!(log.starts_with(b"cleaned\nport "));
    let said = log[16 << 20..].starts_with(b"\n[plimsoll: ");
    assert!(said, "{}", text(&log[16 << 20..][..200]));
    assert!(text(&log).trim_end().ends_with("bye"));
    let notes = stage.record("001")["notes"].to_string();
    assert!(notes.contains("The system printed 47 MiB"), "{notes}");
}

#[test]
fn secrets_are_in_nothing_that_is_kept_or_shown() {
    let env =
        "env: { DB_PASSWORD: 'pass: wörd 1', PIN: 4711, URL: \"pg://me:hush-hush@db\", PROGRAM: ";
    let stage = Stage::with("300ms", "env: { PROGRAM: ", env);
    let prints = "echo cleaned; echo $DB_PASSWORD $PIN $API_TOKEN $URL";
    let study = read(&stage.study()).replace("echo cleaned", prints);
    fs::write(stage.study(), format!("{study}secrets: [PIN]\n")).expect("written");
    let mut command = stage.command("run");
    command.args(["--set", "system.command.env.API_TOKEN=from-the-line"]);
    let output = command.arg("--out").arg(stage.path("run")).output();
    let output = output.expect("it runs");
    let secrets = ["wörd", "hush-hush", "from-the-line"];
    for said in [text(&output.stdout), text(&output.stderr)] {
        assert!(
            !secrets.iter().any(|secret| said.contains(secret)),
            "{said}"
        );
    }
    let mut files = vec![stage.path("run")];
    let mut seen = 0;
    while let Some(path) = files.pop() {
        if path.is_dir() {
            let entries = fs::read_dir(&path).expect("a folder").flatten();
            files.extend(entries.map(|entry| entry.path()));
            continue;
        }
        seen += 1;
        let bytes = fs::read(&path).expect("a file");
        let content = text(&bytes);
        let found = secrets.iter().find(|secret| content.contains(**secret));
        assert_eq!(found, None, "in {}", path.display());
    }
    assert!(seen > 10, "{seen} files");
    let settings = &stage.record("001")["system_settings"];
    for (name, shown) in [
        ("env DB_PASSWORD", "***"),
        ("env PIN", "***2"),
        ("env API_TOKEN", "***4"),
    ] {
        assert_eq!(settings[name], shown, "{settings}");
    }
    assert_eq!(settings["env URL"], "pg://me:***3@db", "{settings}");
    let log = read(&stage.path("run/trials/001/system.log"));
    assert!(
        log.contains("cleaned\n*** 4711 ***4 pg://me:***3@db"),
        "{log}"
    );
    let again = stage
        .command("check")
        .arg(stage.path("run/files/study.yaml"))
        .output();
    let again = again.expect("it runs");
    assert!(
        !text(&again.stderr).contains("study.yaml:"),
        "{}",
        text(&again.stderr)
    );

    let mut wrong = stage.command("plan");
    wrong.args(["--set", "system.command.token=from-the-line"]);
    let said = text(&wrong.output().expect("it runs").stderr).to_string();
    assert!(
        said.contains("token=*") && !said.contains("from-the-line"),
        "{said}"
    );
}

#[test]
fn a_system_that_becomes_a_daemon_is_watched_pinned_and_ended() {
    // A unique name, since other tests' servers count as other programs.
    let daemon = "cd /; setsid taskset -p 1 $$ >/dev/null; ln -s \"$PROGRAM\" {{ scratch }}/a-daemon; \
                  (setsid {{ scratch }}/a-daemon serve";
    let stage = Stage::with("1s", "\"$PROGRAM\" serve", daemon);
    let study = read(&stage.study());
    let study = study.replace(
        "\"$@\" &\n",
        "\"$@\" 2>&1 & echo $! > {{ scratch }}/pid) & exit 0\n",
    );
    fs::write(stage.study(), study).expect("written");
    let output = stage.run();
    let record = stage.record("001");
    assert_eq!(
        record["end"]["how"],
        "complete",
        "{record}\n{}",
        text(&output.stderr)
    );
    let table = read(&stage.path("run/trials/001/monitor.csv"));
    let mut rows = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let names = rows.next().expect("a header");
    let at = names.iter().position(|name| *name == "system.cpu_ms_total");
    let last = rows.next_back().expect("a row")[at.expect("a column")].parse::<f64>();
    assert!(last.is_ok_and(|ms| ms > 0.0), "the daemon is watched");
    let others = record["circumstances"]["others_during"].to_string();
    assert!(!others.contains("a-daemon"), "{others}");
}

#[test]
fn a_system_that_dies_or_ends_badly_is_a_fact_of_its_trial() {
    let trap = "trap 'kill $server; echo bye; exit 0' TERM";
    let badly = Stage::with("300ms", trap, "trap 'kill $server; exit 7' TERM");
    badly.run();
    let record = badly.record("001");
    assert_eq!(
        record["end"]["how"], "complete",
        "what was measured before counts"
    );
    let notes = record["notes"].to_string();
    let said = "ended with exit status: 7 when it was asked to end by SIGTERM";
    assert!(notes.contains(said), "{notes}");

    // It dies when the test requests it, which is while its users are active.
    let dies = Stage::with(
        "5m",
        "sleep 600 &",
        "(until [ -e STAGE/die ]; do sleep 0.1; done; echo worn out; kill -9 $$) &",
    );
    let mut run = dies.command("run");
    run.arg("--out").arg(dies.path("run"));
    let run = run.stdout(Stdio::null()).stderr(Stdio::piped());
    let run = run.spawn().expect("it runs");
    let log = dies.path("run/events.jsonl");
    wait_until(DEADLINE, "users at work", || {
        fs::read_to_string(&log).is_ok_and(|log| log.contains("\"hold\""))
    });
    fs::write(dies.path("die"), "").expect("written");
    let output = run.wait_with_output().expect("it ends");
    dies.nothing_is_left();
    assert_eq!(output.status.code(), Some(110), "{}", text(&output.stderr));
    let message = dies.record("001")["end"]["message"].to_string();
    let parts = [
        "ended with signal: 9 (SIGKILL) during the trial",
        "worn out",
    ];
    assert!(parts.iter().all(|part| message.contains(part)), "{message}");
}

#[test]
fn an_interrupt_is_heard_in_a_reset_that_hangs() {
    let stage = Stage::with("1s", "echo cleaned", "sleep 600");
    let mut command = stage.command("run");
    command.arg("--out").arg(stage.path("run"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut run = command.spawn().expect("it runs");
    wait_until(DEADLINE, "the reset runs", || stage.path("resets").exists());
    kill(Pid::from_raw(run.id().cast_signed()), Signal::SIGTERM).expect("it is there");
    assert_eq!(run.wait().expect("it ends").code(), Some(105));
    stage.nothing_is_left();
}

#[test]
fn an_attached_system_that_can_not_be_had_is_said() {
    let stage = Stage::new("1s");
    let put = |attach: &str| {
        let study = format!(
            "study: command\ntitle: Attached\nworkload: hello.workload.yaml\nsystem:\n  attach: \
             {attach}\nload: {{ users: 2, hold: 1s }}\nrepeats: 0\n"
        );
        fs::write(stage.study(), study).expect("written");
    };
    put("{ url: 'http://127.0.0.1:1', pid: 4194303 }");
    let output = stage.command("plan").output().expect("it runs");
    assert_eq!(output.status.code(), Some(104));
    let said = text(&output.stderr);
    assert!(said.contains("there is no process 4194303"), "{said}");
    put("{ url: 'http://user:secret@127.0.0.1:1' }");
    let output = stage.command("plan").output().expect("it runs");
    assert_eq!(output.status.code(), Some(104));
    let said = text(&output.stderr);
    assert!(
        said.contains("127.0.0.1:1") && !said.contains("secret"),
        "{said}"
    );
    put("{ url: 'http://127.0.0.1:1', reset: [sh, -c, 'echo no way; exit 9'] }");
    let output = stage.run();
    assert_eq!(output.status.code(), Some(110), "{}", text(&output.stderr));
    let message = stage.record("001")["end"]["message"].to_string();
    assert!(
        message.contains("exit status: 9") && message.contains("no way"),
        "{message}"
    );
}

#[test]
fn cores_and_storage_are_factors() {
    let levels = "  threads: [1, 2]\n  cores: [1, \"0-0\"]\n  store: [STORAGE]\n";
    let levels = levels.replace("threads: [1, 2]", "threads: [1]");
    let storage = tempfile::tempdir().expect("a folder");
    let path = storage.path().to_str().expect("UTF-8");
    let stage = Stage::with(
        "300ms",
        "  threads: [1, 2]\n",
        &levels.replace("STORAGE", path),
    );
    let study = read(&stage.study());
    let study = study.replace(
        "        echo \"$GREETING\"",
        "        pwd; grep Cpus_allowed_list: /proc/self/status\n        echo \"$GREETING\"",
    );
    let around = "\n  cpus: \"{{ cores }}\"\n  storage: \"{{ store }}\"\nload:";
    fs::write(stage.study(), study.replace("\nload:", around)).expect("written");
    let output = stage.run();
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 120)),
        "{code:?} {}",
        text(&output.stderr)
    );
    for trial in ["001", "002"] {
        let settings = stage.record(trial)["system_settings"].clone();
        let cores = settings["cpus"].as_str().expect("the cores").to_owned();
        let said = settings["storage"].as_str().expect("the storage");
        assert!(said.starts_with(&format!("{path} (")), "{said}");
        let log = read(&stage.path("run/trials").join(trial).join("system.log"));
        assert!(
            log.contains(&format!("\n{path}/plimsoll-")),
            "it runs there: {log}"
        );
        let allowed = cores.replace("core ", "Cpus_allowed_list:\t");
        assert!(log.contains(&allowed), "{cores}: {log}");
        if trial == "002" {
            assert_eq!(cores, "core 0");
        }
    }
    assert_eq!(
        fs::read_dir(storage.path()).expect("it").count(),
        0,
        "nothing stays there"
    );

    let plan = |from: &str, to: &str| {
        fs::write(stage.study(), read(&stage.study()).replace(from, to)).expect("written");
        let output = stage.command("plan").output().expect("it runs");
        assert_eq!(output.status.code(), Some(104));
        text(&output.stderr)
    };
    let said = plan("\"0-0\"", "4000");
    assert!(said.contains("wants 4000 cores for the system"), "{said}");
    let said = plan(path, "/no/such/storage");
    assert!(
        said.contains("the storage /no/such/storage can't be used: "),
        "{said}"
    );
    let said = plan("/no/such/storage", "here");
    assert!(
        said.contains("command.study.yaml:") && said.contains("no whole path"),
        "{said}"
    );
}

#[test]
fn what_can_not_work_is_said_at_once() {
    let stage = Stage::with("1s", "[./start.sh,", "[no-such-program-anywhere,");
    let output = stage.command("plan").output().expect("it runs");
    assert_eq!(output.status.code(), Some(104));
    let said = text(&output.stderr);
    assert!(
        said.contains("no program `no-such-program-anywhere` in PATH"),
        "{said}"
    );

    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let stage = Stage::with("1s", "    env:", &format!("    port: {port}\n    env:"));
    let output = stage.run();
    assert_eq!(output.status.code(), Some(110), "{}", text(&output.stderr));
    let message = stage.record("001")["end"]["message"].to_string();
    assert!(
        message.contains(&format!("another program listens on port {port}")),
        "{message}"
    );
}
