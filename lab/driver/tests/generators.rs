//! Generators in processes of their own, over real sockets: this program, started again with an argument, is the
//! generator.

mod common;

use std::cell::Cell;
use std::io::{stdin, stdout};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use common::{Make, Observed, Server, ms, ok};
use lab_driver::remote::{Generators, Piped, generate};
use lab_driver::{Assignment, Clock, Driver, DriverError, DriverEvent, Mix, Window, WorkerThread};
use lab_workload::{LoadKind, Spacing, Stage};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const GENERATE: &str = "generate";

fn main() {
    if std::env::args().any(|argument| argument == GENERATE) {
        if let Err(error) = generate(Piped(stdin()), Piped(stdout())) {
            eprintln!("{error}");
            std::process::exit(1);
        }
        return;
    }
    // The usual harness would take this for the list of tests to run.
    let tests: [(&str, fn()); 9] = [
        ("users are spread", users_are_spread_and_each_acts_once),
        ("setup has one barrier", setup_has_one_barrier),
        ("arrivals are shared", arrivals_are_shared),
        ("stages are shared", stages_are_shared),
        ("populations are shared", populations_are_shared),
        ("a killed one is told", a_killed_generator_ends_the_drive),
        ("a stop ends them", a_stop_ends_all_generators),
        ("last words", what_is_no_generator_is_told_by_its_last_words),
        ("a dropped driver", a_dropped_driver_leaves_no_process),
    ];
    for (name, test) in tests {
        println!("generators: {name}");
        test();
    }
}

const WORKLOAD: &str = "
workload: test
data: users.csv
user:
  me: '{{ index }}'
setup:
  - step: First
    request: GET /setup/{{ me }}/{{ row }}
  - step: Second
    request: PUT /second/{{ me }}
    body: { file: attached.bin }
session:
  steps:
    - step: Get
      wait: 20ms
      request: GET /get/{{ me }}
probe:
  every: 50ms
  request: GET /probe
";

/// Returns more bytes than a frame carries.
fn attached() -> Vec<u8> {
    (0..1_300_000).map(|at| (at / 3) as u8).collect()
}

/// The same, as rows.
fn rows() -> Vec<u8> {
    let row = |at| format!("{},{}\n", at * 3, "x".repeat(99));
    format!("row,other\n{}", (0..7_000).map(row).collect::<String>()).into()
}

struct OneFile;

impl lab_study::Files for OneFile {
    fn read(&self, path: &str) -> std::io::Result<Vec<u8>> {
        Ok(match path {
            "attached.bin" => attached(),
            "users.csv" => rows(),
            _ => WORKLOAD.into(),
        })
    }
}

fn drive(server: &Server) -> Assignment {
    let mut drive = Make::new(&[]).drive(&server.base());
    let workload = lab_study::load_workload("workload.yaml", &OneFile).unwrap();
    drive.workload = Arc::new(workload);
    (drive.users, drive.hold, drive.window) = (5, ms(600), ms(100));
    drive
}

fn generators(count: u32) -> Generators {
    Generators {
        program: std::env::current_exe().unwrap(),
        arguments: vec![GENERATE.to_owned()],
        count,
    }
}

/// The events of a run, its result, and its workers.
type Ran = (
    Observed,
    Result<lab_driver::DriverSummary, DriverError>,
    Vec<WorkerThread>,
);

/// Runs to the end; calls `each` with the driver after every window.
fn run(mix: impl Into<Mix>, count: u32, each: impl Fn(&Driver, &Window)) -> Ran {
    let (sender, events) = sync_channel(16);
    let driver = Driver::start_generators(mix, &generators(count), sender).unwrap();
    let threads = driver.worker_threads();
    let mut observed = Observed::default();
    for event in events {
        match event {
            DriverEvent::SetupDone {
                transactions,
                errors,
                skipped,
                ..
            } => {
                observed.setup = Some((transactions, errors, skipped));
                driver.begin().unwrap();
            }
            DriverEvent::Window(window) => {
                each(&driver, &window);
                observed.windows.push(*window);
            }
            DriverEvent::ErrorExample { class, detail, .. } => {
                observed.examples.push((class, detail))
            }
            DriverEvent::SetupProgress { .. } | DriverEvent::Script(_) => {}
            DriverEvent::Done => break,
        }
    }
    (observed, driver.join(), threads)
}

fn alive(thread: WorkerThread) -> bool {
    PathBuf::from(format!("/proc/{}/task/{}", thread.pid, thread.tid)).exists()
}

fn count(server: &Server, part: &str) -> u64 {
    let lines = server.lines();
    lines.iter().filter(|line| line.contains(part)).count() as u64
}

/// Asserts that windows follow each other without gaps, from 0 on.
fn check_windows(observed: &Observed) {
    let mut end = Duration::ZERO;
    for window in &observed.windows {
        assert_eq!(window.start, end);
        assert!(window.handed_over >= window.end);
        end = window.end;
    }
}

fn users_are_spread_and_each_acts_once() {
    let server = Server::answering(|_| ok("hello"));
    let mut drive = drive(&server);
    (drive.cores, drive.hold) = (vec![0, 1], Duration::from_secs(600));
    // Until all have sent their requests, however slow the machine is.
    let users = || (0..5).all(|user| count(&server, &format!("/get/{user}")) > 3);
    // And until a window has them all: windows after the stop may have only one generator's part.
    let (observed, summary, threads) = run(&drive, 3, |driver, window| {
        if window.counts.users == 5 && users() && count(&server, "/probe") > 3 {
            driver.stop();
        }
    });
    let summary = summary.unwrap();
    let mut pids: Vec<u32> = threads.iter().map(|t| t.pid).collect();
    pids.dedup();
    assert_eq!((threads.len(), pids.len()), (3, 3));
    assert!(!threads.into_iter().any(alive));
    assert_eq!(observed.setup, Some((10, 0, 0)));
    assert_eq!((summary.stopped_early, summary.errors), (true, 0));
    let of = |part: &str| count(&server, part);
    assert_eq!((of("/setup/"), of("/setup/4"), of("/setup/3")), (5, 1, 1));
    // Counted once each, except for those in progress at the stop.
    let missing = of("/get/") - summary.transactions;
    assert!(missing <= 5, "{missing}");
    let missing = of("/probe") - summary.probe_transactions;
    assert!(
        missing <= 1,
        "one generator alone sends the probe: {missing}"
    );
    assert_eq!(observed.times(0).len(), summary.transactions);
    assert_eq!(
        observed
            .windows
            .iter()
            .map(|window| window.counts.users)
            .max(),
        Some(5)
    );
    check_windows(&observed);
}

fn setup_has_one_barrier() {
    let server = Server::answering(|_| ok(""));
    let mut drive = drive(&server);
    (drive.users, drive.hold) = (8, ms(200));
    let (observed, summary, _) = run(&drive, 4, |_, _| {});
    let summary = summary.unwrap();
    // There was no stop: the end is the plan's.
    assert_eq!((summary.elapsed, summary.stopped_early), (ms(200), false));
    let ends: Vec<_> = observed.windows.iter().map(|window| window.end).collect();
    assert_eq!(ends, [ms(100), ms(200)]);
    check_windows(&observed);
    let lines = server.lines();
    let last = lines.iter().rposition(|l| l.contains("/setup/")).unwrap();
    let first = lines.iter().position(|l| l.contains("/second/")).unwrap();
    assert!(last < first, "{lines:?}");
    let sent = server.seen().into_iter();
    let mut sent = sent.filter(|seen| seen.line.starts_with("PUT /second/"));
    assert!(
        sent.all(|seen| seen.bytes == attached()),
        "each generator has the file"
    );
    let mut rows: Vec<String> = server.lines();
    rows.retain(|line| line.starts_with("GET /setup/"));
    rows.sort();
    let expected = (0..8).map(|user| format!("GET /setup/{user}/{}", user * 3));
    assert_eq!(rows, expected.collect::<Vec<_>>());
}

fn arrivals_are_shared() {
    let server = Server::answering(|_| ok(""));
    let mut drive = drive(&server);
    drive.hold = Duration::from_secs(600);
    drive.kind = LoadKind::Arrival {
        rate_per_s: 100.0,
        spacing: Spacing::Poisson,
    };
    let users = || (0..5).all(|user| count(&server, &format!("/get/{user}")) > 3);
    // The number of windows reported, and the number at the stop: those have the parts of both generators. Later ones
    // may have only one part, since a stop reaches each generator at its own time.
    let (windows, whole) = (Cell::new(0), Cell::new(None));
    let (observed, summary, _) = run(&drive, 2, |driver, _| {
        windows.set(windows.get() + 1);
        if whole.get().is_none() && users() {
            whole.set(Some(windows.get()));
            driver.stop();
        }
    });
    let summary = summary.unwrap();
    assert_eq!((summary.errors, summary.dropped), (0, 0));
    // Each session belongs to one generator: it has a response, is in progress, or waits. At a window's end a session
    // may be assigned to a connection but not begun.
    let (mut arrived, mut begun, mut answered) = (0, 0, 0);
    for window in &observed.windows[..whole.get().unwrap()] {
        arrived += window.counts.arrived;
        begun += window.counts.cycles;
        answered += window.steps[0].times.ok.len();
        assert_eq!(u64::from(window.counts.users), begun - answered);
        let not_begun = arrived - begun - window.counts.waiting;
        assert!(not_begun <= 5, "{not_begun}");
    }
    assert!(answered > 0 && answered <= summary.transactions);
    let under_way = summary.cycles - summary.transactions;
    assert!(under_way <= 5, "{under_way}");
    let unseen = count(&server, "/get/") - summary.transactions;
    assert!(unseen <= under_way, "{unseen}");
}

fn stages_are_shared() {
    let server = Server::answering(|_| ok(""));
    let mut drive = drive(&server);
    let stage = |length_ms, level: u32| Stage {
        name: String::new(),
        length_ms,
        from: f64::from(level),
        to: f64::from(level),
    };
    drive.stages = vec![stage(300, 2), stage(300, 5), stage(300, 1)];
    drive.hold = ms(900);
    let (observed, summary, _) = run(&drive, 2, |_, _| {});
    let summary = summary.unwrap();
    assert_eq!((summary.errors, summary.elapsed), (0, ms(900)));
    check_windows(&observed);
    // A user due at a window's end may have begun just after it, and leave with a response.
    let most = |windows: std::ops::Range<usize>| {
        let users = observed.windows[windows]
            .iter()
            .map(|window| window.counts.users);
        users.max().unwrap()
    };
    assert!(most(0..2) <= 2, "{}", most(0..2));
    let of = |user: u32| count(&server, &format!("/get/{user}"));
    assert!(of(0) > 0, "the first user is there in every stage");
}

fn populations_are_shared() {
    let server = Server::answering(|_| ok(""));
    let first = Assignment {
        population: "first".to_owned(),
        hold: Duration::from_secs(600),
        ..drive(&server)
    };
    let mut second = Assignment {
        population: "second".to_owned(),
        first: 5,
        users: 3,
        seed: 99,
        ..first.clone()
    };
    Arc::make_mut(&mut second.workload).probe = None;
    let users = || (0..8).all(|user| count(&server, &format!("/get/{user}")) > 3);
    let (observed, summary, _) = run(Mix::from(first).and(second), 3, |driver, _| {
        if users() {
            driver.stop();
        }
    });
    let summary = summary.unwrap();
    assert_eq!(summary.errors, 0);
    // Each generator has the rows and the file of each population.
    assert_eq!(observed.setup, Some((16, 0, 0)));
    let lines = server.lines();
    for user in 0..8 {
        let line = format!("GET /setup/{user}/{}", user * 3);
        assert_eq!(
            lines.iter().filter(|one| **one == line).count(),
            1,
            "{line}"
        );
    }
    assert_eq!(observed.windows.last().unwrap().steps.len(), 3);
    let of_both = observed.times(0).len() + observed.times(1).len();
    assert_eq!(of_both, summary.transactions);
    assert_eq!(observed.times(2).len(), summary.probe_transactions);
}

fn a_killed_generator_ends_the_drive() {
    let server = Server::answering(|_| ok(""));
    let mut drive = drive(&server);
    drive.hold = Duration::from_secs(600);
    let (observed, ended, threads) = run(&drive, 2, |driver, _| {
        let victim = driver.worker_threads()[1].pid;
        let _gone_already = kill(Pid::from_raw(victim as i32), Signal::SIGKILL);
    });
    let error = ended.unwrap_err().to_string();
    assert_eq!(error, "generator 1 was ended by signal 9");
    assert!(observed.windows.last().unwrap().end < drive.hold);
    assert!(!threads.into_iter().any(alive));
}

fn a_stop_ends_all_generators() {
    let server = Server::answering(|_| ok(""));
    let mut drive = drive(&server);
    drive.hold = Duration::from_secs(600);
    let (observed, ended, threads) = run(&drive, 2, |driver, _| driver.stop());
    assert!(ended.unwrap().stopped_early && observed.windows.len() >= 2);
    assert!(!threads.into_iter().any(alive));
}

fn what_is_no_generator_is_told_by_its_last_words() {
    let server = Server::answering(|_| ok(""));
    let refusal = |change: fn(&mut Generators, &mut Assignment)| {
        let (sender, _events) = sync_channel(16);
        let (mut generators, mut drive) = (generators(2), drive(&server));
        change(&mut generators, &mut drive);
        Driver::start_generators(&drive, &generators, sender)
            .unwrap_err()
            .to_string()
    };
    let check = |change: fn(&mut Generators, &mut Assignment), expected: &str| {
        let found = refusal(change);
        assert!(found.contains(expected), "{found}");
    };
    check(
        |g, _| g.program = "/no/such/program".into(),
        "/no/such/program can't be started",
    );
    check(
        |_, drive| {
            drive.tls.authorities.push(lab_client::PemFile {
                name: "ca.pem".to_owned(),
                text: "no certificate".to_owned(),
            })
        },
        "generator 0 failed: TLS can't be set up",
    );
    check(
        |g, _| {
            shell(g, "echo no luck >&2; exit 3");
        },
        "generator 0 ended early with exit code 3; its last words: no luck",
    );
    check(
        |g, _| {
            shell(g, "echo hello; sleep 60");
        },
        "generator 0 is not understood: a message of 1751477356 bytes is longer than any",
    );
}

fn shell(generators: &mut Generators, text: &str) {
    generators.program = "/bin/sh".into();
    generators.arguments = vec!["-c".to_owned(), text.to_owned()];
}

fn a_dropped_driver_leaves_no_process() {
    let server = Server::answering(|_| ok(""));
    let drive = drive(&server);
    let (sender, _events) = sync_channel(16);
    let driver = Driver::start_generators(&drive, &generators(2), sender).unwrap();
    let threads = driver.worker_threads();
    assert!(threads.iter().copied().all(alive));
    drop(driver);
    let clock = Clock::start();
    while threads.iter().copied().any(alive) {
        assert!(clock.now() < Duration::from_secs(60));
        common::pass(ms(5));
    }
}
