//! Runs a command several times while a part of each core is taken, and counts its successes:
//! `disturbed [--duty PERCENT] [--drift SECONDS] [--span MS] [--nice N] [--seed N] [--times N] COMMAND…`.
//! A test that fails beside it depends on the machine's speed.
//!
//! Each core is taken for spans of random length, by default 60 % of the time: as root by a thread with top priority,
//! as a hypervisor would take it; with `--nice 0`, as any busy program would. With `--drift`, every so many seconds on
//! average, another duty, up to twice as much, is taken of other cores. It is independent of the tests.

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use plimsoll_tests::drift::{Drift, Spell, exponential};
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::setpriority_process;

/// The interval between two looks at a core's duty while none of it is taken.
const LOOK: Duration = Duration::from_millis(10);

const USAGE: &str = "usage: disturbed [--duty PERCENT] [--drift SECONDS] [--span MS] [--nice N] [--seed N] \
                     [--times N] COMMAND…";

struct Options {
    duty: f64,
    /// Mean length of a spell; `None` if the duty never changes.
    drift: Option<Duration>,
    /// Mean length of a taken and a free span together.
    span: Duration,
    /// The nice value of the taking threads; −20 is the top priority.
    nice: i32,
    seed: u64,
    times: u32,
    command: Vec<String>,
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        duty: 60.0,
        drift: None,
        span: Duration::from_millis(100),
        nice: -20,
        seed: 1,
        times: 10,
        command: Vec::new(),
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--duty" => options.duty = args.next()?.parse().ok()?,
            "--drift" => {
                let seconds = Duration::try_from_secs_f64(args.next()?.parse().ok()?).ok()?;
                options.drift = Some(seconds).filter(|mean| !mean.is_zero());
            }
            "--span" => options.span = Duration::from_millis(args.next()?.parse().ok()?),
            "--nice" => options.nice = args.next()?.parse().ok()?,
            "--seed" => options.seed = args.next()?.parse().ok()?,
            "--times" => options.times = args.next()?.parse().ok()?,
            _ => {
                options.command = std::iter::once(arg).chain(args.by_ref()).collect();
            }
        }
    }
    let sensible = (0.0..=95.0).contains(&options.duty) && !options.command.is_empty();
    sensible.then_some(options)
}

fn main() -> ExitCode {
    let Some(options) = options(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let over = Arc::new(AtomicBool::new(false));
    let cores = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let cores: Vec<usize> = (0..CpuSet::count())
        .filter(|core| cores.is_set(*core).unwrap_or(false))
        .collect();
    let taking = Arc::new(Taking::new(&options, cores.len()));
    let threads: Vec<_> = cores
        .iter()
        .enumerate()
        .map(|(at, &core)| {
            let (over, taking) = (Arc::clone(&over), Arc::clone(&taking));
            std::thread::spawn(move || taking.take((at, core), &over))
        })
        .collect();
    let drifting = options.drift.map(|mean| {
        let (over, taking) = (Arc::clone(&over), Arc::clone(&taking));
        std::thread::spawn(move || taking.drift(mean, &over))
    });
    let good = (1..=options.times)
        .filter(|go| succeeds(&options.command, *go))
        .count();
    over.store(true, Ordering::Relaxed);
    let changes = drifting.and_then(|thread| thread.join().ok());
    let taken: f64 = threads
        .into_iter()
        .filter_map(|thread| thread.join().ok())
        .sum();
    println!(
        "disturbed: {good} of {} succeeded, with {:.0} % of {} cores taken",
        options.times,
        100.0 * taken / cores.len().max(1) as f64,
        cores.len()
    );
    if let Some(spells) = changes {
        println!("disturbed: it changed {spells} times");
    }
    if good == options.times as usize {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn succeeds(command: &[String], go: u32) -> bool {
    let begun = now();
    let status = Command::new(&command[0]).args(&command[1..]).status();
    let seconds = begun.elapsed().as_secs_f64();
    let good = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    let how = match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    eprintln!("disturbed: go {go}: {how} after {seconds:.1} s");
    good
}

/// The duty that is taken of each core.
struct Taking {
    seed: u64,
    usual: f64,
    span: Duration,
    nice: i32,
    /// The bits of a fraction of 1.
    duties: Vec<AtomicU64>,
}

impl Taking {
    fn new(options: &Options, cores: usize) -> Self {
        let usual = options.duty / 100.0;
        let duty = |_| AtomicU64::new(usual.to_bits());
        Self {
            seed: options.seed,
            usual,
            span: options.span,
            nice: options.nice,
            duties: (0..cores).map(duty).collect(),
        }
    }

    fn duty(&self, at: usize) -> f64 {
        f64::from_bits(self.duties[at].load(Ordering::Relaxed))
    }

    /// Sets another duty on other cores now and then; returns the number of changes.
    fn drift(&self, mean: Duration, over: &AtomicBool) -> usize {
        let mut changes = 0;
        for Spell { length, duties } in Drift::new(self.seed, self.duties.len(), self.usual, mean) {
            for (of, duty) in self.duties.iter().zip(duties) {
                of.store(duty.to_bits(), Ordering::Relaxed);
            }
            changes += 1;
            let begun = now();
            while begun.elapsed() < length && !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(LOOK);
            }
            if over.load(Ordering::Relaxed) {
                break;
            }
        }
        changes
    }

    /// Takes a core now and then; returns the share of the time that was really taken.
    fn take(&self, (at, core): (usize, usize), over: &AtomicBool) -> f64 {
        let mut set = CpuSet::new();
        let pinned = set
            .set(core)
            .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
        if pinned.is_err() || setpriority_process(None, self.nice).is_err() {
            eprintln!("disturbed: core {core} is shared with the command, not taken from it");
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (core as u64) << 32);
        let mut span = |part: f64| exponential(&mut random, self.span.mul_f64(part));
        let begun = now();
        let mut taken = Duration::ZERO;
        while !over.load(Ordering::Relaxed) {
            let duty = self.duty(at);
            if duty < 1e-6 {
                std::thread::park_timeout(LOOK);
                continue;
            }
            let (from, length) = (now(), span(duty));
            while from.elapsed() < length {
                std::hint::spin_loop();
            }
            taken += length;
            std::thread::park_timeout(span(1.0 - duty));
        }
        taken.as_secs_f64() / begun.elapsed().as_secs_f64().max(1e-9)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "what takes time must see it pass"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<(f64, u64, u32, usize)> {
        let options = options(text.split_whitespace().map(str::to_owned))?;
        Some((
            options.duty,
            options.seed,
            options.times,
            options.command.len(),
        ))
    }

    #[test]
    fn what_follows_the_options_is_the_command() {
        assert_eq!(parsed("make test"), Some((60.0, 1, 10, 2)));
        let all = "--duty 30 --times 3 --seed 9 cargo test --times 4";
        assert_eq!(parsed(all), Some((30.0, 9, 3, 4)));
        assert_eq!(
            parsed("--drift 8 --span 20 --nice 0 x"),
            Some((60.0, 1, 10, 1))
        );
        for wrong in [
            "",
            "--times 3",
            "--duty 99 x",
            "--seed x y",
            "--drift -1 x",
            "--span x y",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_command_is_run_and_its_failure_seen() {
        let command = |text: &str| vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()];
        assert!(succeeds(&command("exit 0"), 1));
        assert!(!succeeds(&command("exit 3"), 2));
        assert!(!succeeds(&["/no/such/program".to_owned()], 3));
    }
}
