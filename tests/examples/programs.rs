//! Runs all test programs of this workspace, some at once: `programs [--at-once N] [FLAGS OF cargo test…]`.
//!
//! `cargo test` runs one after the other, and most of them wait most of the time: for a server that starts,
//! for a deadline that is to pass. As many run as there are cores, and further ones, up to twice as many, are begun
//! one by one whenever those that run leave the cores idle; where others use the machine, or the tests do, none is.
//! What a program prints is shown whole when it has failed, after a line for each one; all are run, whatever fails.
//!
//! It is an example, not a program of the package, for what cargo makes of that: examples are built with the features
//! that tests are built with, and so nothing is compiled for it that the tests do not have anyway.

use std::collections::VecDeque;
use std::env;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_tests::{cargo, repository};
use serde_json::Value;

/// They take longest, and wait nearly all the time, for leases that run out and loads that last: whatever runs beside
/// them has the cores.
const FIRST: [&str; 3] = ["lab/fleet fleet", "tests faults", "tests first_hour"];
const USAGE: &str = "usage: programs [--at-once N] [FLAGS OF cargo test…]";
/// A further program is begun when this part of all cores' time was idle, for so long.
const IDLE: f64 = 0.4;
const LOOK: Duration = Duration::from_secs(2);

struct Options {
    at_once: usize,
    /// Further ones while the cores are idle: unless a number was asked for.
    further: bool,
    cargo: Vec<String>,
}

/// A test program as cargo built it.
#[derive(Debug, PartialEq)]
struct Program {
    /// Its package's folder and its own: `lab/client suite`.
    name: String,
    file: PathBuf,
    /// Its package's, in which it runs, as under cargo.
    folder: PathBuf,
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
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let mut options = Options {
        at_once: cores.max(2),
        further: true,
        cargo: Vec::new(),
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--at-once" => {
                options.at_once = args.next()?.parse().ok()?;
                options.further = false;
            }
            _ => options.cargo = std::iter::once(arg).chain(args.by_ref()).collect(),
        }
    }
    (options.at_once > 0).then_some(options)
}

fn main() -> ExitCode {
    let Some(options) = options(env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let programs = match built(&options.cargo) {
        Ok(programs) => programs,
        Err(error) => {
            eprintln!("programs: {error}");
            return ExitCode::FAILURE;
        }
    };
    let begun = now();
    let ended = run(programs, &options);
    let (good, bad): (Vec<_>, Vec<_>) = ended.iter().partition(|ended| ended.is_good());
    for ended in &bad {
        show(ended);
    }
    println!(
        "{} of {} test programs passed in {:.0} s",
        good.len(),
        ended.len(),
        begun.elapsed().as_secs_f64()
    );
    if bad.is_empty() && !ended.is_empty() {
        return ExitCode::SUCCESS;
    }
    for ended in &bad {
        println!("failed: {}", ended.program.name);
    }
    ExitCode::FAILURE
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long tests took is for people"
)]
fn now() -> Instant {
    Instant::now()
}

/// Builds the test programs, and gives those that take longest first: some that wait for minutes, and those of the
/// whole product.
fn built(flags: &[String]) -> Result<VecDeque<Program>, String> {
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
    let mut programs = Vec::new();
    for line in BufReader::new(build.stdout.take().ok_or("no output of cargo")?).lines() {
        let line = line.map_err(|error| format!("can't read what cargo says: {error}"))?;
        programs.extend(program(&line, repository()));
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
    Ok(programs.into())
}

/// What a line of cargo's says of a test program in this workspace, if it is of one.
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

fn run(programs: VecDeque<Program>, options: &Options) -> Vec<Ended> {
    let waiting = Mutex::new(programs);
    let ended = Mutex::new(Vec::new());
    // False when there is none left.
    let run_next = || {
        let next = lock(&waiting).pop_front();
        let Some(program) = next else { return false };
        let one = play(program);
        let mut all = lock(&ended);
        say(&one);
        all.push(one);
        true
    };
    let further = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..options.at_once {
            scope.spawn(|| while run_next() {});
        }
        while options.further && !lock(&waiting).is_empty() {
            if were_idle() && further.load(Relaxed) < options.at_once {
                further.fetch_add(1, Relaxed);
                scope.spawn(|| {
                    run_next();
                    further.fetch_sub(1, Relaxed);
                });
            }
        }
    });
    ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at the cores for a while: whether they had time left. False where that can't be told, as in a container
/// that may use some of the machine's cores alone.
fn were_idle() -> bool {
    let before = Ticks::now();
    thread::park_timeout(LOOK);
    let now = Ticks::now();
    let ours = thread::available_parallelism().map_or(0, usize::from);
    let both = before.zip(now).filter(|(_, now)| now.cores <= ours);
    both.is_some_and(|(before, now)| now.is_idle_since(before))
}

/// What all cores did since the machine started, in ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ticks {
    idle: u64,
    all: u64,
    /// Cores of the machine, which may be more than those that the tests may use.
    cores: usize,
}

impl Ticks {
    fn now() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// By the first line of `/proc/stat`: user, nice, system, idle, waiting for a disk, irq, softirq, stolen. Those
    /// of each core follow.
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

/// A line for a program that has ended.
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

/// All that a program said that failed.
fn show(ended: &Ended) {
    println!(
        "\n---- {} ({})",
        ended.program.name,
        ended.program.file.display()
    );
    match &ended.output {
        Ok(output) => {
            let mut out = io::stdout().lock();
            // Whoever reads no more has seen enough.
            let _ = out
                .write_all(&output.stdout)
                .and_then(|()| out.write_all(&output.stderr));
            println!("---- {}: {}\n", ended.program.name, output.status);
        }
        Err(error) => println!("can't be run: {error}\n"),
    }
}

#[cfg(test)]
mod tests {
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
        let said = ["--at-once", "3", "--workspace", "--locked"].map(str::to_owned);
        let options = options(said.into_iter()).unwrap();
        assert_eq!((options.at_once, options.cargo.len()), (3, 2));
        assert!(!options.further, "three are three");
        assert!(super::options(["--at-once".to_owned(), "0".to_owned()].into_iter()).is_none());
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
}
