//! Runs all test programs of this workspace, some at once: `programs [--at-once N] [--times N] [--kept FOLDER] [FLAGS
//! OF cargo test…]`.
//!
//! `cargo test` runs one after the other, and most of them wait most of the time, for a server start or a deadline. As
//! many run as there are cores. Further programs, up to three times as many, start one by one while the running ones
//! leave the cores idle; none starts while other programs or the tests use the machine. The output of a failed program
//! is shown whole, after its line. All programs run, whatever fails.
//!
//! With `--times`, all run several rounds, and the end lists how often each program failed. With `--kept`, a folder
//! records each result, and the next call resumes from there as long as nothing was rebuilt.
//!
//! It is an example, not a program of the package, because cargo builds examples with the features of the tests: so
//! nothing is compiled for it that the tests do not need anyway.

mod stored;

use std::collections::VecDeque;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;
use plimsoll_tests::{cargo, repository};
use serde_json::Value;
use stored::{StoredVerdicts, Verdict};

/// These take longest and wait nearly all the time, for leases that expire and loads that last: programs beside them
/// have the cores.
const FIRST: [&str; 3] = ["lab/fleet fleet", "tests faults", "tests first_hour"];
const USAGE: &str =
    "usage: programs [--at-once N] [--times N] [--kept FOLDER] [FLAGS OF cargo test…]";
/// A further program starts when this share of all cores' time was idle, for one [`LOOK`].
const IDLE: f64 = 0.4;
/// The maximum number of further programs per program that runs anyway.
const FURTHER: usize = 2;
const LOOK: Duration = Duration::from_secs(2);

struct Options {
    at_once: usize,
    /// Whether further programs start while the cores are idle; false if a number was given.
    further: bool,
    times: u32,
    /// The folder of the recorded results.
    kept: Option<PathBuf>,
    cargo: Vec<String>,
}

/// A test program as cargo built it.
#[derive(Debug, Clone, PartialEq)]
struct Program {
    /// Folder of the package and name of the program: `lab/client suite`.
    name: String,
    file: PathBuf,
    /// The package's folder, in which the program runs, as under cargo.
    folder: PathBuf,
}

/// All test programs, the longest-running first.
struct Built {
    programs: Vec<Program>,
    /// When the newest of them, or of the programs that they start, was built.
    newest_ns: u128,
}

struct Ended {
    program: Program,
    took: Duration,
    output: io::Result<Output>,
}

impl Ended {
    fn is_good(&self) -> bool {
        self.output
            .as_ref()
            .is_ok_and(|output| output.status.success())
    }

    /// Returns true if SIGINT or SIGTERM ended the program: it has no result.
    fn was_ended(&self) -> bool {
        let by = |output: &Output| output.status.signal();
        let by = self.output.as_ref().ok().and_then(by);
        by.is_some_and(|signal| {
            [Signal::SIGINT, Signal::SIGTERM]
                .map(|ended| ended as i32)
                .contains(&signal)
        })
    }

    /// The complete output.
    fn said(&self) -> Vec<u8> {
        match &self.output {
            Ok(output) => [&output.stdout[..], &output.stderr[..]].concat(),
            Err(error) => format!("can't be run: {error}\n").into_bytes(),
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let mut options = Options {
        at_once: cores.max(2),
        further: true,
        times: 1,
        kept: None,
        cargo: Vec::new(),
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--at-once" => {
                options.at_once = args.next()?.parse().ok()?;
                options.further = false;
            }
            "--times" => options.times = args.next()?.parse().ok()?,
            "--kept" => options.kept = Some(args.next()?.into()),
            _ => options.cargo = std::iter::once(arg).chain(args.by_ref()).collect(),
        }
    }
    (options.at_once > 0 && options.times > 0).then_some(options)
}

fn main() -> ExitCode {
    let Some(options) = options(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    match all_goes(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("programs: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs all rounds; returns true if there are programs and none ever failed.
fn all_goes(options: &Options) -> Result<bool, String> {
    let built = built(&options.cargo)?;
    let folder = options.kept.as_deref();
    let kept = folder.map(|folder| {
        let kept = StoredVerdicts::open(folder, built.newest_ns);
        kept.map_err(|error| format!("can't keep anything in {}: {error}", folder.display()))
    });
    let kept = Mutex::new(kept.transpose()?.unwrap_or_default());
    let mut good = 0;
    for go in 1..=options.times {
        good += u32::from(one_go(go, &built.programs, options, &kept));
    }
    let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    let often = |goes: usize| match options.times {
        1 => String::new(),
        times => format!(" {goes} of {times} times"),
    };
    for failure in kept.failures(options.times) {
        let (often, name) = (often(failure.goes.len()), failure.name);
        println!("failed{often}: {name}");
        for file in failure.said {
            println!("  {}", file.display());
        }
    }
    Ok(good == options.times && !built.programs.is_empty())
}

/// Runs all programs that lack this round and reports all results; returns true if all passed.
fn one_go(go: u32, programs: &[Program], options: &Options, kept: &Mutex<StoredVerdicts>) -> bool {
    let begun = now();
    let missing = programs
        .iter()
        .filter(|one| lock(kept).of(go, &one.name).is_none());
    let missing: VecDeque<Program> = missing.cloned().collect();
    let before = programs.len() - missing.len();
    let bad = run(missing, options, |ended| {
        if ended.was_ended() {
            return;
        }
        let verdict = Verdict {
            go,
            name: ended.program.name.clone(),
            is_good: ended.is_good(),
        };
        if let Err(error) = lock(kept).keep(verdict, &ended.said()) {
            eprintln!("programs: can't keep what became of it: {error}");
        }
    });
    for ended in &bad {
        show(ended);
    }
    let kept = lock(kept);
    let passed = |one: &&Program| {
        kept.of(go, &one.name)
            .is_some_and(|verdict| verdict.is_good)
    };
    let good = programs.iter().filter(passed).count();
    let of = match options.times {
        1 => String::new(),
        times => format!("go {go} of {times}: "),
    };
    let known = match before {
        0 => String::new(),
        before => format!(", {before} of them in an earlier call"),
    };
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{of}{good} of {} test programs passed in {seconds:.0} s{known}",
        programs.len()
    );
    good == programs.len()
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long tests took is for people"
)]
fn now() -> Instant {
    Instant::now()
}

/// Builds the test programs. The longest-running come first: some that wait for minutes, and those of the whole
/// product.
fn built(flags: &[String]) -> Result<Built, String> {
    let mut build = cargo()
        .args([
            "test",
            "--no-run",
            "--message-format=json-render-diagnostics",
        ])
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("can't start cargo: {error}"))?;
    let (mut programs, mut newest_ns) = (Vec::new(), 0);
    for line in BufReader::new(build.stdout.take().ok_or("no output of cargo")?).lines() {
        let line = line.map_err(|error| format!("can't read what cargo says: {error}"))?;
        programs.extend(program(&line, repository()));
        newest_ns = newest_ns.max(built_ns(&line).unwrap_or(0));
    }
    let status = build.wait().map_err(|error| error.to_string())?;
    if !status.success() {
        return Err("the tests don't build".to_owned());
    }
    programs.sort_by_key(|program| {
        let is_of_all = program.folder.ends_with("tests");
        let first = FIRST.iter().position(|name| *name == program.name);
        let place = first.unwrap_or(FIRST.len());
        (place, !is_of_all, program.name.clone())
    });
    Ok(Built {
        programs,
        newest_ns,
    })
}

/// Returns when the program in a line of cargo's output was written, if the line names one.
fn built_ns(line: &str) -> Option<u128> {
    let message: Value = serde_json::from_str(line).ok()?;
    let file = fs::metadata(message["executable"].as_str()?).ok()?;
    let since = file.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH);
    Some(since.ok()?.as_nanos())
}

/// Parses a line of cargo's output that names a test program of this workspace.
fn program(line: &str, root: &Path) -> Option<Program> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_test = message["profile"]["test"] == true;
    let file = message["executable"].as_str().filter(|_| is_test)?;
    let target = message["target"]["name"].as_str()?;
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(Program {
        name: format!("{} {target}", folder.strip_prefix(root).ok()?.display()),
        file: file.into(),
        folder: folder.into(),
    })
}

/// Runs programs, calls `look` for each finished one, and returns the failed ones.
fn run(programs: VecDeque<Program>, options: &Options, look: impl Fn(&Ended) + Sync) -> Vec<Ended> {
    let waiting = Mutex::new(programs);
    let bad = Mutex::new(Vec::new());
    // False when none is left.
    let run_next = || {
        let next = lock(&waiting).pop_front();
        let Some(program) = next else { return false };
        let one = play(program);
        // One line at a time.
        let mut bad = lock(&bad);
        say(&one);
        look(&one);
        if !one.is_good() {
            bad.push(one);
        }
        true
    };
    let further = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..options.at_once {
            scope.spawn(|| while run_next() {});
        }
        while options.further && !lock(&waiting).is_empty() {
            if were_idle() && further.load(Relaxed) < FURTHER * options.at_once {
                further.fetch_add(1, Relaxed);
                scope.spawn(|| {
                    run_next();
                    further.fetch_sub(1, Relaxed);
                });
            }
        }
    });
    bad.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Samples the cores for a while; returns true if they had idle time. Returns false where that is unknown, as in a
/// container that may use only some of the machine's cores.
fn were_idle() -> bool {
    let before = Ticks::now();
    thread::park_timeout(LOOK);
    let now = Ticks::now();
    let ours = thread::available_parallelism().map_or(0, usize::from);
    let both = before.zip(now).filter(|(_, now)| now.cores <= ours);
    both.is_some_and(|(before, now)| now.is_idle_since(before))
}

/// Ticks of all cores since the machine started.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ticks {
    idle: u64,
    all: u64,
    /// Cores of the machine, which may be more than the tests may use.
    cores: usize,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Parses the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal. The lines of each
    /// core follow.
    fn of(stat: &str) -> Option<Self> {
        let each = stat.lines().skip(1);
        let cores = each.take_while(|line| line.starts_with("cpu")).count();
        let fields = stat.lines().next()?.strip_prefix("cpu ")?;
        let fields = fields.split_whitespace().take(8);
        let ticks: Vec<u64> = fields.map(str::parse).collect::<Result<_, _>>().ok()?;
        Some(Self {
            idle: ticks.get(3)? + ticks.get(4)?,
            all: ticks.iter().sum(),
            cores,
        })
    }

    fn is_idle_since(self, before: Self) -> bool {
        let idle = self.idle.saturating_sub(before.idle);
        let all = self.all.saturating_sub(before.all);
        all > 0 && idle as f64 >= IDLE * all as f64
    }
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn play(program: Program) -> Ended {
    let begun = now();
    let output = Command::new(&program.file)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null())
        .output();
    Ended {
        program,
        took: begun.elapsed(),
        output,
    }
}

/// Prints the line of a finished program.
fn say(ended: &Ended) {
    let verdict = if ended.is_good() { "ok" } else { "FAILED" };
    let mut tests = String::new();
    for line in ended.output.iter().flat_map(|output| output.stdout.lines()) {
        if let Some(result) = line.unwrap_or_default().strip_prefix("test result: ") {
            tests = result.split(';').take(2).collect::<Vec<_>>().join(",");
        }
    }
    println!(
        "{verdict:>6} {:6.1} s  {}  {tests}",
        ended.took.as_secs_f64(),
        ended.program.name
    );
}

/// Prints the complete output of a failed program.
fn show(ended: &Ended) {
    println!(
        "\n---- {} ({})",
        ended.program.name,
        ended.program.file.display()
    );
    // A closed stdout is no error: the reader has seen enough.
    let _ = io::stdout().lock().write_all(&ended.said());
    if let Ok(output) = &ended.output {
        println!("---- {}: {}\n", ended.program.name, output.status);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_test_programs_are_run_and_named_by_package_and_target() {
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/p/lab/client/Cargo.toml","target":{{"name":"suite"}},
                "profile":{{"test":{test}}},"executable":{executable}}}"#
            )
        };
        let program = |line: &str| program(line, Path::new("/p"));
        let found = program(&line(true, "\"/p/target/suite-1\"")).unwrap();
        assert_eq!(found.name, "lab/client suite");
        assert_eq!(found.folder, Path::new("/p/lab/client"));
        assert_eq!(program(&line(false, "\"/p/target/plimsoll\"")), None);
        assert_eq!(program(&line(true, "null")), None);
        assert_eq!(program("   Compiling lab-client"), None);
    }

    #[test]
    fn those_that_are_first_are_there() {
        for name in FIRST {
            let (package, target) = name.split_once(' ').unwrap();
            let folder = repository().join(package).join("tests");
            let sources = [folder.join(format!("{target}.rs")), folder.join(target)];
            assert!(sources.iter().any(|path| path.exists()), "{name}");
        }
    }

    #[test]
    fn flags_after_its_own_are_for_cargo() {
        let said = [
            "--at-once",
            "3",
            "--times",
            "10",
            "--kept",
            "target/d",
            "--workspace",
            "--locked",
        ]
        .map(str::to_owned);
        let options = options(said.into_iter()).unwrap();
        assert_eq!((options.at_once, options.cargo.len()), (3, 2));
        assert_eq!((options.times, options.kept), (10, Some("target/d".into())));
        assert!(!options.further, "three are three");
        for wrong in [["--at-once", "0"], ["--times", "0"], ["--times", "x"]] {
            assert!(super::options(wrong.map(str::to_owned).into_iter()).is_none());
        }
    }

    #[test]
    fn a_further_one_begins_where_the_cores_were_idle() {
        let ticks = |idle: u64, stolen: u64| {
            let stat = format!("cpu  100 10 50 {idle} 40 0 5 {stolen} 7 7\ncpu0 1 2 3 4\n");
            Ticks::of(&stat).unwrap()
        };
        let before = ticks(1000, 0);
        assert_eq!((before.idle, before.all, before.cores), (1040, 1205, 1));
        assert!(ticks(1041, 59).is_idle_since(before));
        assert!(
            !ticks(1039, 61).is_idle_since(before),
            "another guest had the time"
        );
        assert!(!before.is_idle_since(before), "nothing is known yet");
        assert_eq!(Ticks::of("intr 5\n"), None);
        assert_eq!(Ticks::of("cpu  1 2 3\n"), None);
    }

    #[test]
    fn all_have_their_goes_whatever_fails_and_what_was_had_is_not_had_again() {
        let folder = tempfile::tempdir().unwrap();
        // Fails in its second round; each round creates a marker file.
        let script = folder.path().join("second");
        fs::write(
            &script,
            "#!/bin/sh\necho go >> goes\n[ $(wc -l < goes) != 2 ]\n",
        )
        .unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let program = |name: &str, file: &Path| Program {
            name: name.to_owned(),
            file: file.to_owned(),
            folder: folder.path().to_owned(),
        };
        let programs = [
            program("tests second", &script),
            program("tests missing", Path::new("/no/such/program")),
        ];
        let flags = ["--at-once", "1", "--times", "3"].map(str::to_owned);
        let options = options(flags.into_iter()).unwrap();
        let place = folder.path().join("kept");
        for _ in 0..2 {
            let kept = Mutex::new(StoredVerdicts::open(&place, 1).unwrap());
            for go in 1..=3 {
                assert!(!one_go(go, &programs, &options, &kept));
                assert_eq!(one_go(go, &programs[..1], &options, &kept), go != 2);
            }
            let kept = kept.into_inner().unwrap();
            let failures = kept.failures(3);
            let goes = |at: usize| (failures[at].name.to_owned(), failures[at].goes.clone());
            assert_eq!(goes(0), ("tests missing".to_owned(), vec![1, 2, 3]));
            assert_eq!(goes(1), ("tests second".to_owned(), vec![2]));
        }
        let had = fs::read_to_string(folder.path().join("goes")).unwrap();
        assert_eq!(had.lines().count(), 3);
    }

    #[test]
    fn what_somebody_ended_did_not_fail() {
        let ended = |by: &str| {
            // The caller may run this in the background and have some signals ignored in all child processes.
            let output = Command::new("env")
                .args(["--default-signal", "sh", "-c", &format!("kill -{by} $$")])
                .output();
            let program = Program {
                name: "tests live".to_owned(),
                file: PathBuf::new(),
                folder: PathBuf::new(),
            };
            let took = Duration::ZERO;
            Ended {
                program,
                took,
                output,
            }
            .was_ended()
        };
        assert!(ended("INT") && ended("TERM"));
        assert!(
            !ended("KILL") && !ended("ABRT"),
            "the kernel does so, or the program"
        );
    }
}
