//! Attached systems, and searches, against servers in this program.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lab_archive::{Run, TrialEnd, TrialRecord, Warning};
use lab_conduct::{
    ConductError, Control, Event, FailedCheck, Judged, Outcome, Phase, RunRequest, run,
};
use lab_stats::search::Judgement;

mod common;

use common::request;

const WORKLOAD: &str = "\
workload: small
about: A request and a pause.
session:
  steps:
    - step: Look
      wait: 20ms
      request: GET /look
";

/// A server whose responses a function makes from the number of the request.
fn server(answer: impl Fn(u64) -> (&'static str, String) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, asked) = (Arc::new(answer), Arc::new(AtomicU64::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (answer, asked) = (Arc::clone(&answer), Arc::clone(&asked));
            std::thread::spawn(move || {
                let next = || answer(asked.fetch_add(1, Ordering::Relaxed));
                while one(&stream, &next).unwrap_or(false) {}
            });
        }
    });
    address
}

/// Answers one request; false when the connection is to close.
fn one(stream: &TcpStream, answer: &dyn Fn() -> (&'static str, String)) -> io::Result<bool> {
    let mut first = String::new();
    let mut reader = BufReader::new(stream);
    reader.read_line(&mut first)?;
    let mut line = first.clone();
    while !line.trim().is_empty() {
        line.clear();
        reader.read_line(&mut line)?;
    }
    if first.is_empty() {
        return Ok(false);
    }
    let (status, body) = answer();
    let length = body.len();
    let text = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
    (&*stream).write_all(text.as_bytes())?;
    Ok(first.trim_end().ends_with("HTTP/1.1"))
}

fn plain() -> SocketAddr {
    server(|_| ("200 OK", "fine".to_owned()))
}

/// A folder for an archive.
struct Stage {
    dir: tempfile::TempDir,
    study: String,
}

impl Stage {
    /// `system` is the study's lines below `system:` and what follows them.
    fn new(system: &str) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            study: format!("study: s\ntitle: A study\nworkload: small\nsystem:\n{system}"),
        }
    }

    fn attached(lines: &str) -> Self {
        let load = "load: { users: 4, ramp: 100ms, hold: 2500ms }\ntrials: 1\n";
        Self::new(&format!("  attach:\n{lines}{load}"))
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    fn request(&self, resume: bool) -> RunRequest {
        RunRequest {
            resume,
            program: PathBuf::from("/nowhere"),
            ..request(self.dir.path(), (&self.study, WORKLOAD), 5)
        }
    }

    fn run(
        &self,
        resume: bool,
        judge: &mut dyn FnMut(&Run) -> Judged,
        stop_after: usize,
    ) -> Result<Outcome, ConductError> {
        let request = self.request(resume);
        let interrupt = AtomicBool::new(false);
        let mut done = 0;
        let mut tell = |event: Event| {
            done += usize::from(matches!(event, Event::TrialDone { .. }));
            interrupt.store(done >= stop_after, Ordering::Relaxed);
        };
        let mut judge = |dir: &std::path::Path, id| {
            let run = Run::open_trial(dir, id).unwrap();
            assert_eq!(run.trials[0].record.id, id);
            judge(&run)
        };
        let outcome = run(&request, &mut tell, &mut judge, &interrupt);
        assert!(!self.out().join("work").exists(), "no data is left");
        outcome
    }

    fn one(&self) -> (TrialRecord, Run) {
        let outcome = self
            .run(false, &mut |_| Judged::default(), usize::MAX)
            .unwrap();
        assert_eq!((outcome.completed, outcome.interrupted), (1, false));
        let run = Run::open(&self.out()).unwrap();
        (run.trials[0].record.clone(), run)
    }

    fn failure(&self) -> String {
        match self.one().0.end {
            TrialEnd::SystemFailed { message } | TrialEnd::PreparationFailed { message, .. } => {
                message
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A process to attach to; ended with the test.
struct Sleeper(Child);

impl Sleeper {
    fn new() -> Self {
        let mut sleep = Command::new("sleep");
        Self(sleep.arg("600").stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn an_attached_system_is_watched_and_left_alone() {
    let mut process = Sleeper::new();
    let exporter = server(|asked| match asked {
        1 => ("500 Internal Server Error", "no".to_owned()),
        _ => (
            "200 OK",
            format!("node_context_switches_total {}\n", 1000 * asked),
        ),
    });
    let (url, pid) = (plain(), process.0.id());
    let mut stage = Stage::attached(&format!(
        "    url: http://{url}\n    pid: {pid}\n    reset: [sh, -c, 'echo as it was']\n    \
         node_exporter: http://{exporter}/metrics?key=secret\n"
    ));
    // A rate needs two answers, and the first is missed.
    stage.study = stage.study.replace("hold: 2500ms", "hold: 8s");
    let (record, run) = stage.one();
    assert_eq!(record.end, TrialEnd::Complete);
    assert_eq!(record.system_settings["cpus"], "not pinned: attached");
    assert_eq!(run.manifest.environment.pinning.system, [] as [u32; 0]);
    let noted = format!("{:?}", record.warnings);
    assert!(record.warnings.contains(&Warning::NotPinned), "{noted}");
    assert!(
        noted.contains("missing: 1,") && noted.contains("status 500"),
        "{noted}"
    );
    assert!(!noted.contains("secret"), "{noted}");
    let trial = &run.trials[0];
    let output = run.output(trial.record.id).unwrap();
    assert_eq!(output.as_deref(), Some(&b"as it was\n"[..]));
    let seen = |column: &str| trial.monitor.series(column).count();
    assert!(seen("host.context_switches_per_s") >= 1);
    assert_eq!(seen("host.memory_available_mb"), 0, "it does not tell");
    assert_eq!(
        seen("generator_host.memory_available_mb"),
        trial.monitor.rows.len()
    );
    assert_eq!(seen("system.rss_mb"), trial.monitor.rows.len());
    assert!(process.0.try_wait().unwrap().is_none(), "it still runs");
}

#[test]
fn what_goes_wrong_with_an_attached_system_is_said() {
    let url = plain();
    let reset = "[sh, -c, 'echo no such table; exit 3']";
    let failed = Stage::attached(&format!("    url: http://{url}\n    reset: {reset}\n"));
    let said = failed.failure();
    assert!(
        said.contains("the reset command ended with exit status: 3"),
        "{said}"
    );
    assert!(said.contains("no such table"), "{said}");

    let mut process = Sleeper::new();
    let pid = process.0.id();
    // Processes that it leaves running end with the reset, as long as they are in its group.
    let runs = "touch APART; until [ -s WINDOWS ]; do sleep 0.1; done";
    let apart = "until [ -e APART ]; do sleep 0.1; done";
    let mut ends = Stage::attached(&format!(
        "    url: http://{url}\n    pid: {pid}\n    reset: [sh, -c, 'setsid sh -c \"{runs}; kill {pid}\" & {apart}']\n"
    ));
    let apart = ends.dir.path().join("apart");
    ends.study = ends.study.replace("APART", apart.to_str().unwrap());
    let windows = ends.out().join("trials/001.partial/windows.jsonl");
    let study = ends.study.replace("WINDOWS", windows.to_str().unwrap());
    ends.study = study.replace("hold: 2500ms", "hold: 30m");
    let said = ends.failure();
    let expected = format!("the system (process {pid}) ended during the trial");
    assert_eq!(said, expected);
    process.0.wait().unwrap();
    let gone = Stage::attached(&format!("    url: http://{url}\n    pid: {pid}\n"));
    let error = gone.run(false, &mut |_| unreachable!(), usize::MAX);
    let Err(ConductError::Settings { problems }) = error else {
        panic!("{error:?}");
    };
    assert!(problems[0].contains("there is no process"), "{problems:?}");
    assert!(!gone.out().exists(), "nothing was begun");
}

#[test]
fn a_server_that_is_not_there_is_told_before_anything_begins() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let stage = Stage::attached(&format!("    url: http://{nobody}\n"));
    let error = stage.run(false, &mut |_| unreachable!(), usize::MAX);
    let Err(ConductError::Unreachable { problems }) = error else {
        panic!("{error:?}");
    };
    let expected = format!("nothing listens at http://{nobody}");
    assert!(problems[0].starts_with(&expected), "{problems:?}");
    assert!(!stage.out().exists(), "nothing was begun");
}

#[test]
fn a_server_that_answers_nothing_but_errors_ends_its_trial_with_the_first() {
    let url = server(|_| ("503 Service Unavailable", "no database".to_owned()));
    let mut stage = Stage::attached(&format!("    url: http://{url}\n"));
    stage.study = stage.study.replace("hold: 2500ms", "hold: 30m");
    let said = stage.failure();
    assert!(
        said.contains("requests failed, so the trial was ended early"),
        "{said}"
    );
    assert!(said.contains("at “Look”: status 503"), "{said}");
    assert!(said.contains("no database"), "{said}");
}

#[test]
fn what_fails_while_the_run_is_interrupted_is_left_to_a_resumed_run() {
    let url = server(|_| ("503 Service Unavailable", "no database".to_owned()));
    let mut stage = Stage::attached(&format!("    url: http://{url}\n"));
    stage.study = stage.study.replace("hold: 2500ms", "hold: 30m");
    let interrupt = AtomicBool::new(false);
    let mut tell = |event: Event| {
        let fails = matches!(event, Event::Phase(Phase::Stopping));
        interrupt.fetch_or(fails, Ordering::Relaxed);
    };
    let request = stage.request(false);
    let outcome = run(
        &request,
        &mut tell,
        &mut |_, _| Judged::default(),
        &interrupt,
    )
    .unwrap();
    assert_eq!((outcome.completed, outcome.interrupted), (0, true));
    assert!(!stage.out().join("trials/001").exists());
    let failed = stage.run(true, &mut |_| Judged::default(), usize::MAX);
    let failed = failed.unwrap();
    assert_eq!((failed.completed, failed.interrupted), (1, false));
}

/// Sustains up to 6 users, as planned: a busy machine may not have started all of them.
fn up_to_six(run: &Run) -> Judged {
    let id = run.trials[0].record.id;
    let trials = run.plan["trials"].as_array().unwrap();
    let planned = trials.iter().find(|trial| trial["id"] == id).unwrap();
    Judged {
        judgement: match planned["load"]["users"].as_u64().unwrap() <= 6 {
            true => Judgement::Carried,
            false => Judgement::NotCarried,
        },
        ..Judged::default()
    }
}

fn searching() -> Stage {
    Stage::new(&format!(
        "  attach: {{ url: 'http://{}' }}\nload: {{ ramp: 50ms, hold: 250ms }}\nfind:\n  users: \
         {{ min: 2, max: 32 }}\n  trials: 2\n  subject_to: {{ error_rate: ['rate < 1%'] }}\n",
        plain()
    ))
}

/// Users of the plan's trials, as the archive has them.
fn chosen(stage: &Stage) -> Vec<u64> {
    let plan = Run::open(&stage.out()).unwrap().plan;
    let trials = plan["trials"].as_array().unwrap();
    trials
        .iter()
        .map(|t| t["load"]["users"].as_u64().unwrap())
        .collect()
}

#[test]
fn a_search_runs_to_its_end_and_resumes_where_it_was_cut() {
    let whole = searching();
    let outcome = whole.run(false, &mut up_to_six, usize::MAX).unwrap();
    assert_eq!((outcome.completed, outcome.trials), (7, 7));
    assert_eq!(chosen(&whole)[..5], [2, 4, 8, 6, 7]);

    let cut = searching();
    let outcome = cut.run(false, &mut up_to_six, 4).unwrap();
    assert_eq!((outcome.completed, outcome.interrupted), (4, true));
    // A kill in a chosen trial leaves this: the trial is in the plan already.
    assert_eq!(chosen(&cut), [2, 4, 8, 6, 7]);
    fs::create_dir_all(cut.out().join("trials/005.partial")).unwrap();
    let mut judged = 0;
    let mut judge = |run: &Run| {
        judged += 1;
        up_to_six(run)
    };
    let outcome = cut.run(true, &mut judge, usize::MAX).unwrap();
    assert_eq!((outcome.completed, outcome.interrupted), (7, false));
    assert_eq!((judged, chosen(&cut)), (7, chosen(&whole)));
}

/// A sustained trial, or an invalid one.
fn invalid(is_carried: bool, is_outside: bool) -> Judged {
    let failed = FailedCheck {
        name: "some check".to_owned(),
        evidence: "too much".to_owned(),
        advice: String::new(),
    };
    Judged {
        failed: if is_carried { vec![] } else { vec![failed] },
        is_outside: is_outside && !is_carried,
        judgement: match (is_carried, is_outside) {
            (true, _) => Judgement::Carried,
            (false, true) => Judgement::Disturbed { held: false },
            (false, false) => Judgement::Invalid,
        },
        ..Judged::default()
    }
}

#[test]
fn a_search_that_is_disturbed_each_time_ends_and_a_resume_goes_on() {
    let stage = searching();
    let mut disturbed = |_: &Run| invalid(false, true);
    let outcome = stage.run(false, &mut disturbed, usize::MAX).unwrap();
    // Once, and three times again, all at the lowest level.
    assert_eq!(chosen(&stage), [2, 2, 2, 2]);
    assert_eq!((outcome.completed, outcome.disturbed), (4, 1));
    let mut quiet_now = |run: &Run| match run.trials[0].record.id {
        1..=4 => invalid(false, true),
        _ => up_to_six(run),
    };
    let outcome = stage.run(true, &mut quiet_now, usize::MAX).unwrap();
    assert_eq!(chosen(&stage)[4..9], [2, 4, 8, 6, 7]);
    assert_eq!(outcome.disturbed, 0);
}

/// How the search of the only cell ended, as the archive has it.
fn ended(stage: &Stage) -> serde_json::Value {
    let plan = Run::open(&stage.out()).unwrap().plan;
    plan["search_ended"][0]["how"].clone()
}

#[test]
fn a_search_ends_with_a_preparation_that_fails_twice_and_a_resume_goes_on() {
    let stage = searching();
    let unprepared = |run: &Run| Judged {
        before_load: true,
        judgement: Judgement::Unprepared,
        ..up_to_six(run)
    };
    let mut judge = |run: &Run| match run.trials[0].record.id {
        2 | 3 => unprepared(run),
        _ => up_to_six(run),
    };
    let outcome = stage.run(false, &mut judge, usize::MAX).unwrap();
    assert_eq!(chosen(&stage), [2, 4, 4]);
    assert_eq!((outcome.completed, outcome.interrupted), (3, false));
    assert_eq!(ended(&stage), "preparation_failed");
    stage.run(true, &mut judge, usize::MAX).unwrap();
    assert_eq!(chosen(&stage)[3..6], [4, 8, 6]);
    assert_eq!(ended(&stage), "finished");
}

#[test]
fn a_trial_of_a_search_that_is_skipped_begins_again() {
    let stage = searching();
    let request = stage.request(false);
    let skip = Arc::clone(&request.control.skip);
    let interrupt = AtomicBool::new(false);
    let mut order = Vec::new();
    let mut tell = |event: Event| match event {
        Event::TrialStarted { id, .. } => order.push(id),
        Event::Phase(Phase::Ramp) if order == [1, 2] => skip.store(true, Ordering::Relaxed),
        _ => {}
    };
    let mut judge = |dir: &std::path::Path, id| up_to_six(&Run::open_trial(dir, id).unwrap());
    let outcome = run(&request, &mut tell, &mut judge, &interrupt).unwrap();
    assert_eq!(order[..4], [1, 2, 2, 3]);
    assert!(!outcome.interrupted);
    assert_eq!(ended(&stage), "finished");
}

#[test]
fn two_invalid_trials_are_the_generators_limit() {
    let stage = searching();
    let mut judge = |run: &Run| invalid(up_to_six(run).judgement == Judgement::Carried, false);
    stage.run(false, &mut judge, usize::MAX).unwrap();
    assert_eq!(chosen(&stage), [2, 4, 8, 8, 6, 7, 7, 6]);
}

#[test]
fn a_run_pauses_and_leaves_a_trial_out_when_it_is_asked_to() {
    let address = plain();
    let mut stage = Stage::attached(&format!("    url: http://{address}\n"));
    stage.study = stage.study.replace("trials: 1", "trials: 3");
    let request = stage.request(false);
    let Control { pause, skip } = request.control.clone();
    let interrupt = AtomicBool::new(false);
    let (mut order, mut paused) = (Vec::new(), 0);
    let mut tell = |event: Event| match event {
        Event::TrialStarted { id, .. } => order.push(id),
        // The second is skipped in its hold; the next waits while the run is paused.
        Event::Phase(Phase::Hold) if order == [1, 2] => {
            skip.store(true, Ordering::Relaxed);
            pause.store(true, Ordering::Relaxed);
        }
        Event::Note(text) if text.contains("pauses") => {
            paused += 1;
            let pause = Arc::clone(&pause);
            std::thread::spawn(move || {
                std::thread::park_timeout(std::time::Duration::from_millis(300));
                pause.store(false, Ordering::Relaxed);
            });
        }
        _ => {}
    };
    let mut judge = |_: &std::path::Path, _| Judged::default();
    let outcome = run(&request, &mut tell, &mut judge, &interrupt).unwrap();
    assert_eq!((order, paused), (vec![1, 2, 3], 1));
    assert_eq!((outcome.completed, outcome.interrupted), (2, true));
    let resumed = stage.run(true, &mut |_| Judged::default(), usize::MAX);
    assert_eq!(resumed.unwrap().completed, 3);
}
