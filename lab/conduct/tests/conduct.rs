//! Whole runs against a small server in this program: `plimsoll` is here a script that starts this test program again,
//! with one test to run.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lab_archive::{
    Follow, Happening, Kind, Outcome as Answered, PreparationCause, Run, Series, TrialEnd,
    TrialEnvironment, Warning,
};
use lab_conduct::{ConductError, Event, FailedCheck, Judged, Outcome, Phase, RunRequest, run};

mod common;
mod played;

use common::request;
use played::{Server, park};

const STUDY: &str = "\
study: two-levels
title: Two levels of a small load
workload: small
matrix:
  users: [4, 8]
system:
  groupware: { http_threads: 3 }
load: { users: \"{{ users }}\", ramp: 200ms, hold: 1s }
trials: 1
";

const WORKLOAD: &str = "\
workload: small
about: A request and a pause.
user: { name: \"user{{ pad(index, 3) }}\" }
setup:
  - request: POST /make/{{ name }}
session:
  steps:
    - step: Look
      wait: 20ms
      request: GET /look/{{ name }}/{{ password }}
";

/// A folder with a fake `plimsoll` and room for an archive.
struct Stage {
    dir: tempfile::TempDir,
    study: String,
    /// Trials, by their number in the archive, that are judged as disturbed from outside.
    disturbed: Vec<u32>,
}

impl Stage {
    /// `mode` is the fault of the server, if any.
    fn new(mode: &str) -> Self {
        let stage = Self {
            dir: tempfile::tempdir().unwrap(),
            study: STUDY.to_owned(),
            disturbed: Vec::new(),
        };
        Self::script(&stage.program(), mode);
        stage
    }

    fn script(path: &Path, mode: &str) {
        let this = std::env::current_exe().unwrap();
        let script = format!(
            "#!/bin/sh\nFAKE_MODE='{mode}' FAKE_ARGS=\"$*\" exec '{}' --ignored --exact --nocapture \
             plays_the_server\n",
            this.display()
        );
        fs::write(path, script).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("plimsoll")
    }

    fn out(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    fn output(&self, id: u32) -> String {
        let output = Run::open(&self.out()).unwrap().output(id).unwrap();
        String::from_utf8(output.unwrap()).unwrap()
    }

    fn request(&self, resume: bool) -> RunRequest {
        RunRequest {
            resume,
            program: self.program(),
            ..request(self.dir.path(), (&self.study, WORKLOAD), 5)
        }
    }

    /// Runs, interrupting as soon as an event asks for it.
    fn run(
        &self,
        resume: bool,
        stop_at: impl Fn(&Event) -> bool,
    ) -> (Result<Outcome, ConductError>, Vec<Event>) {
        let interrupt = AtomicBool::new(false);
        let mut events = Vec::new();
        let mut tell = |event: Event| {
            interrupt.fetch_or(stop_at(&event), Ordering::Relaxed);
            events.push(event);
        };
        let outcome = run(
            &self.request(resume),
            &mut tell,
            &mut |_, id| self.judge(id),
            &interrupt,
        );
        self.nothing_is_left();
        (outcome, events)
    }

    fn judge(&self, id: u32) -> Judged {
        if !self.disturbed.contains(&id) {
            return Judged::default();
        }
        let failed = FailedCheck {
            name: "other programs".to_owned(),
            evidence: "they used 50 % of all cores (limit 20 %)".to_owned(),
            advice: "Stop them.".to_owned(),
        };
        Judged {
            failed: vec![failed],
            is_outside: true,
            ..Judged::default()
        }
    }

    /// No process of the fake server lives on, and no data.
    fn nothing_is_left(&self) {
        let work = self.out().join("work");
        assert!(!work.exists());
        assert_eq!(processes_below(&work), [] as [PathBuf; 0]);
    }
}

/// Processes of fake servers whose data is in a folder.
fn processes_below(work: &Path) -> Vec<PathBuf> {
    let work = work.to_str().unwrap();
    let has = |process: &PathBuf| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(work)
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(has)
        .collect()
}

fn phases(events: &[Event]) -> Vec<Phase> {
    events
        .iter()
        .filter_map(|event| {
            if let Event::Phase(phase) = event {
                Some(*phase)
            } else {
                None
            }
        })
        .collect()
}

const ALL_PHASES: [Phase; 6] = [
    Phase::Starting,
    Phase::Provisioning,
    Phase::Setup,
    Phase::Ramp,
    Phase::Hold,
    Phase::Stopping,
];

#[test]
fn a_plan_runs_and_every_trial_is_recorded() {
    let stage = Stage::new("");
    let (outcome, events) = stage.run(false, |_| false);
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.completed, outcome.trials, outcome.interrupted),
        (2, 2, false)
    );
    assert_eq!(phases(&events), [ALL_PHASES, ALL_PHASES].concat());

    let run = Run::open(&stage.out()).unwrap();
    let states = run
        .trials
        .iter()
        .map(|t| t.record.environment.starting_state.as_ref());
    let hashes: BTreeSet<_> = states
        .map(|state| state.map(|s| (&s.kernel_hash, &s.configuration_hash)))
        .collect();
    assert_eq!(hashes.len(), 1, "both trials begin alike");
    assert_eq!(run.manifest.steps, ["Look"]);
    assert_eq!(
        run.files[0],
        ("study.yaml".to_owned(), STUDY.as_bytes().to_vec())
    );
    let mut hardly_read = false;
    for (trial, planned) in run.trials.iter().zip(&stage.request(false).plan.trials) {
        let record = &trial.record;
        assert_eq!(record.end, TrialEnd::Complete);
        let users = u64::from(planned.load.users);
        assert_eq!((record.setup_transactions, record.setup_errors), (users, 0));
        assert!(record.elapsed_ms >= 1200, "{}", record.elapsed_ms);
        let written_before_the_ramp = record.start_data_bytes;
        assert_eq!(written_before_the_ramp, 1000);
        assert_eq!(record.system_settings["http_threads"], "3");
        assert_eq!(record.error_examples, []);
        // If the reader had no CPU through a hold of a second, a warning takes the place of the figure.
        let is_read = record.generator.cpu_fraction.is_some();
        let why = |noted: &Warning| matches!(noted, Warning::HardlyRead { .. });
        let says_why = record.warnings.iter().any(why);
        hardly_read |= says_why;
        assert!(record.generator.workers > 0, "{record:?}");
        assert_ne!(is_read, says_why, "{record:?}");
        assert!(says_why || record.generator.rss_mb_max > 0.0);
        check_circumstances(&record.environment, planned.load.users.into(), !says_why);

        let counted = counted(trial);
        let series = Series::Step {
            step: 0,
            outcome: Answered::Ok,
            kind: Kind::Response,
        };
        let timed: u64 = trial.series(series).map(|i| i.histogram().len()).sum();
        assert_eq!(counted, timed);
        let predicted = planned.prediction.as_ref().unwrap().transactions;
        assert!(
            counted > 0 && counted as f64 <= predicted,
            "{counted} of {predicted}"
        );
        let last = &trial.windows.last().unwrap().counts;
        assert_eq!(last.users, planned.load.users);
        // The number depends on the available CPU.
        assert!(says_why || !trial.monitor.rows.is_empty(), "no samples");
        let rss: Vec<_> = trial.monitor.series("system.rss_mb").collect();
        assert_eq!(rss.len(), trial.monitor.rows.len(), "the system is watched");
        let output = stage.output(trial.record.id);
        assert!(output.contains("0 files of others"), "{output}");
        assert!(output.contains("serve --listen 127.0.0.1:0"), "{output}");
        assert!(output.contains("--http-threads 3"), "{output}");
    }
    let done = events
        .iter()
        .filter(|e| matches!(e, Event::TrialDone { errors: 0, .. }))
        .count();
    assert_eq!(done, 2);
    let progress = |e: &Event| matches!(e, Event::Progress(p) if p.tx_per_s > 0.0);
    assert!(events.iter().any(progress) || hardly_read);
    logs_the_same(&stage.out(), events.len());
}

fn counted(trial: &lab_archive::TrialData) -> u64 {
    let steps = trial.windows.iter().filter_map(|w| w.steps.get(&0));
    steps.map(|step| step.ok).sum()
}

/// The archive's log contains the conductor's events.
fn logs_the_same(dir: &Path, events: usize) {
    let lines = Follow::open(dir).unwrap().events().unwrap();
    let at = |wanted: fn(&Happening) -> bool| lines.iter().filter(|l| wanted(&l.what)).count();
    let first = lines.first().map(|line| &line.what);
    assert!(matches!(first, Some(Happening::RunStarted { pid, .. }) if *pid == std::process::id()));
    let begun = at(|e| matches!(e, Happening::TrialStarted { of: 2, .. }));
    let held = at(|e| matches!(e, Happening::Phase { phase } if phase == "hold"));
    let done = at(|e| matches!(e, Happening::TrialDone { errors: 0, .. }));
    assert_eq!((begun, held, done), (2, 2, 2));
    let last = lines.last().map(|line| &line.what);
    assert_eq!(last, Some(&Happening::RunEnded { interrupted: false }));
    assert!(lines.len() <= events + 1, "windows tell the progress");
}

#[test]
fn mailboxes_are_filled_once_and_each_trial_begins_with_a_copy() {
    let mut stage = Stage::new("");
    stage.study = STUDY
        .replace("http_threads: 3", "http_threads: 3, mail: { messages: 2 }")
        .replace("trials: 1", "trials: 2");
    // Interrupted in the second block, nothing of it stays; resumed, it is filled again.
    let holds = AtomicU64::new(0);
    let (outcome, _) = stage.run(false, |event| {
        let hold = matches!(event, Event::Phase(Phase::Hold));
        hold && holds.fetch_add(1, Ordering::Relaxed) == 2
    });
    assert!(outcome.unwrap().interrupted);
    let fills = || fs::read(stage.dir.path().join("fills")).unwrap().len();
    assert_eq!(fills(), 2, "once for 4 users, once for 8");
    // On a busy machine the third may end before the interrupt is noticed.
    let done = Run::open(&stage.out()).unwrap().trials.len();
    assert!((2..4).contains(&done), "{done} trials were done");
    let (outcome, _) = stage.run(true, |_| false);
    assert_eq!(outcome.unwrap().completed, 4);
    assert_eq!(fills(), 2 + (4 - done));
    for trial in Run::open(&stage.out()).unwrap().trials {
        let state = trial.record.environment.starting_state.unwrap();
        assert_eq!((state.data_bytes, state.data_files), (1004, 2));
        let output = stage.output(trial.record.id);
        assert!(output.contains("2 files of others"), "{output}");
        let note = "begins with a copy of data that was filled once";
        let notes = trial.record.notes.join(" ");
        assert!(notes.contains(note), "{notes}");
    }
}

fn check_circumstances(found: &TrialEnvironment, users: u64, is_read: bool) {
    let state = found.starting_state.as_ref().unwrap();
    assert_eq!((state.data_bytes, state.data_files), (1000, 1));
    assert!(
        state.kernel_settings.contains_key("vm.swappiness"),
        "{state:?}"
    );
    assert!(!state.kernel_release.is_empty() && !state.boot_id.is_empty());
    let clocks = found.clocks.unwrap();
    assert!(clocks.monotonic_ms >= 1200.0, "{clocks:?}");
    let files = found.limits.generator_open_files.unwrap();
    assert!(
        files.most >= users && files.limit >= files.most,
        "{files:?}"
    );
    let (files, ports) = (found.limits.system_open_files, found.limits.ports);
    let are_there = files.is_some() && ports.is_some_and(|p| p.most >= users && p.limit > 0);
    assert!(are_there || !is_read, "{files:?} {ports:?}");
}

#[test]
fn an_interrupted_run_keeps_what_is_done_and_resumes_with_the_rest() {
    let stage = Stage::new("");
    let second = |event: &Event| matches!(event, Event::Phase(Phase::Hold));
    let holds = AtomicU64::new(0);
    let (outcome, _) = stage.run(false, |event| {
        second(event) && holds.fetch_add(1, Ordering::Relaxed) == 1
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.completed, outcome.interrupted), (1, true));
    let first = Run::open(&stage.out()).unwrap();
    assert_eq!((first.trials.len(), &first.incomplete[..]), (1, &[][..]));

    // The remains of a killed run.
    fs::create_dir_all(stage.out().join("work/002/data")).unwrap();
    fs::create_dir_all(stage.out().join("trials/002.partial")).unwrap();
    let (outcome, events) = stage.run(true, |_| false);
    let outcome = outcome.unwrap();
    assert_eq!((outcome.completed, outcome.interrupted), (2, false));
    assert!(matches!(
        events[0],
        Event::RunStarted {
            trials: 2,
            completed: 1,
            ..
        }
    ));
    assert_eq!(phases(&events), ALL_PHASES);
    let whole = Run::open(&stage.out()).unwrap();
    assert_eq!(whole.trials[0], first.trials[0], "it is as it was");
    assert_eq!(whole.trials.len(), 2);

    let (outcome, events) = stage.run(true, |_| false);
    assert_eq!(
        (outcome.unwrap().completed, phases(&events)),
        (2, vec![]),
        "nothing is missing"
    );
    let (outcome, _) = stage.run(false, |_| false);
    assert!(
        matches!(outcome, Err(ConductError::Archive(_))),
        "a new run needs a new folder"
    );
}

#[test]
fn an_interrupt_is_heard_in_every_phase() {
    for (mode, phase) in [
        ("never-ready", Phase::Starting),
        ("no-users-ever", Phase::Provisioning),
        ("no-answer", Phase::Setup),
        ("", Phase::Ramp),
    ] {
        let stage = Stage::new(mode);
        let (outcome, _) = stage.run(false, |event| *event == Event::Phase(phase));
        let outcome = outcome.unwrap();
        assert_eq!(
            (outcome.completed, outcome.interrupted),
            (0, true),
            "{phase:?}"
        );
    }
}

/// Run by the next test as a process of its own, to be killed.
#[test]
#[ignore = "a helper of another test"]
fn runs_until_it_is_killed() {
    let Some(dir) = std::env::var_os("STAGE") else {
        return;
    };
    let stage = Stage {
        dir: tempfile::TempDir::new_in(dir).unwrap(),
        study: STUDY.to_owned(),
        disturbed: Vec::new(),
    };
    Stage::script(&stage.program(), "");
    println!("stage={}", stage.dir.path().display());
    let holds = AtomicU64::new(0);
    let _ = stage.run(false, |event| {
        if *event == Event::Phase(Phase::Hold) && holds.fetch_add(1, Ordering::Relaxed) == 1 {
            println!("holding");
            park();
        }
        false
    });
}

#[test]
fn a_killed_run_leaves_no_process_and_resumes() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "runs_until_it_is_killed",
        ])
        .env("STAGE", dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(run.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let mut stage = lines.find_map(|l| l.split_once("stage=").map(|(_, path)| PathBuf::from(path)));
    assert!(
        lines.any(|line| line.contains("holding")),
        "the second trial holds"
    );
    run.kill().unwrap();
    run.wait().unwrap();
    let home = stage.take().unwrap();
    let began = clock();
    while !processes_below(&home.join("run/work")).is_empty() {
        assert!(
            began.elapsed() < Duration::from_secs(120),
            "the server lives on"
        );
        std::thread::park_timeout(Duration::from_millis(1));
    }
    assert!(home.join("run/work/002/data/records").exists());
    assert_eq!(Run::open(&home.join("run")).unwrap().incomplete, [2]);

    let stage = Stage {
        dir: tempfile::TempDir::new_in(&home).unwrap(),
        study: STUDY.to_owned(),
        disturbed: Vec::new(),
    };
    Stage::script(&stage.program(), "");
    fs::rename(home.join("run"), stage.out()).unwrap();
    let (outcome, events) = stage.run(true, |_| false);
    assert_eq!(outcome.unwrap().completed, 2);
    assert!(matches!(events[0], Event::RunStarted { completed: 1, .. }));
}

#[expect(clippy::disallowed_methods, reason = "the deadline of a wait")]
fn clock() -> Instant {
    Instant::now()
}

/// A stage whose trials last until the server fails.
fn until_it_fails(mode: &str) -> Stage {
    let mut stage = Stage::new(mode);
    stage.study = STUDY.replace("hold: 1s", "hold: 10m");
    stage
}

fn failures(mode: &str) -> Vec<String> {
    let stage = until_it_fails(mode);
    let (outcome, _) = stage.run(false, |_| false);
    // Each trial is in the archive.
    assert_eq!(outcome.unwrap().completed, 2);
    let run = Run::open(&stage.out()).unwrap();
    run.trials
        .into_iter()
        .map(|trial| match trial.record.end {
            TrialEnd::SystemFailed { message } if mode != "no-users" => message,
            TrialEnd::PreparationFailed {
                message,
                cause: PreparationCause::System,
            } if mode == "no-users" => message,
            other => panic!("{mode}: {other:?}"),
        })
        .collect()
}

#[test]
fn a_system_that_fails_is_a_fact_of_its_trial() {
    for message in failures("no-start") {
        assert!(
            message.starts_with(
                "the system ended with exit status: 7 before it was ready; its last lines:"
            ),
            "{message}"
        );
        assert!(message.contains("no luck today"), "{message}");
    }
    for message in failures("dies-after-30") {
        assert!(
            message.starts_with(
                "the system ended with exit status: 9 during the trial; its last lines:"
            ),
            "{message}"
        );
        assert!(message.contains("too many requests"), "{message}");
    }
    for message in failures("no-users") {
        assert!(
            message.contains("not provisioned: POST /admin/users: status 507 (no room)"),
            "{message}"
        );
    }
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let stage = until_it_fails("dies-after-100");
    let (outcome, _) = stage.run(false, |_| false);
    outcome.unwrap();
    let trials = Run::open(&stage.out()).unwrap().trials;
    assert!(trials.iter().all(|trial| counted(trial) > 0));
}

#[test]
fn a_program_that_is_not_there_ends_the_run() {
    let stage = Stage::new("");
    fs::remove_file(stage.program()).unwrap();
    let (outcome, _) = stage.run(false, |_| false);
    assert!(
        matches!(outcome, Err(ConductError::Program { .. })),
        "{outcome:?}"
    );
}

/// Not a test: the server of the others. See [`Stage::new`].
#[test]
#[ignore = "a helper of the other tests"]
fn plays_the_server() {
    let Ok(args) = std::env::var("FAKE_ARGS") else {
        return;
    };
    let mode = std::env::var("FAKE_MODE").unwrap_or_default();
    println!("{args}");
    if mode == "no-start" {
        println!("no luck today");
        std::process::exit(7);
    }
    let words: Vec<&str> = args.split_whitespace().collect();
    let flag = |name: &str| {
        let at = words
            .iter()
            .position(|word| *word == name)
            .unwrap_or_else(|| panic!("{name}"));
        words[at + 1]
    };
    let data = Path::new(flag("--data"));
    println!("{} files of others", fs::read_dir(data).unwrap().count());
    fs::write(data.join("records"), [0; 1000]).unwrap();
    let token = fs::read_to_string(flag("--admin-token-file"))
        .unwrap()
        .trim()
        .to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port_file = PathBuf::from(flag("--port-file"));
    if mode != "never-ready" {
        fs::write(
            port_file.with_extension("tmp"),
            listener.local_addr().unwrap().to_string(),
        )
        .unwrap();
        fs::rename(port_file.with_extension("tmp"), port_file).unwrap();
    }
    let server: &'static Server = Box::leak(Box::new(Server {
        mode,
        token,
        data: data.to_path_buf(),
        served: AtomicU64::new(0),
    }));
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        std::thread::spawn(move || while server.one(&stream).unwrap_or(false) {});
    }
}

#[test]
fn disturbed_trials_are_repeated_at_the_end_of_their_block_and_by_a_resume() {
    let mut stage = Stage::new("");
    stage.study = STUDY
        .replace("trials: 1", "trials: 2\nrepeats: 1")
        .replace("hold: 1s", "hold: 200ms");
    // Trial 1 is disturbed once; trial 3 with its repeat.
    stage.disturbed = vec![1, 3, 6];
    let (outcome, events) = stage.run(false, |_| false);
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.completed, outcome.trials, outcome.disturbed),
        (4, 4, 1)
    );
    let ran = |events: &[Event]| -> Vec<(u32, Option<u32>)> {
        let started = events.iter().filter_map(|event| match event {
            Event::TrialStarted { id, attempt_of, .. } => Some((*id, *attempt_of)),
            _ => None,
        });
        started.collect()
    };
    let expected = [
        (1, None),
        (2, None),
        (5, Some(1)),
        (3, None),
        (4, None),
        (6, Some(3)),
    ];
    assert_eq!(ran(&events), expected);
    let told = events
        .iter()
        .filter(|event| matches!(event, Event::TrialDone { judged, .. } if !judged.is_valid()));
    assert_eq!(told.count(), 3);

    let before = Run::open(&stage.out()).unwrap();
    let of = |id: u32| {
        before
            .trials
            .iter()
            .find(|one| one.record.id == id)
            .unwrap()
    };
    assert_eq!(of(5).record.attempt_of, Some(1));
    assert_eq!(
        (of(6).record.attempt_of, of(3).record.attempt_of),
        (Some(3), None)
    );

    // Only what is missing runs again.
    let (outcome, events) = stage.run(true, |_| false);
    assert_eq!(outcome.unwrap().disturbed, 0);
    assert_eq!(ran(&events), [(7, Some(3))]);
    let (outcome, events) = stage.run(true, |_| false);
    assert_eq!(outcome.unwrap().disturbed, 0);
    assert_eq!(ran(&events), []);
    // The plan is as it was.
    let after = Run::open(&stage.out()).unwrap();
    assert_eq!(after.plan, before.plan);
    assert_eq!(after.trials.len(), 7);
}
