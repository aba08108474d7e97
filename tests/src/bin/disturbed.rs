//! Runs a command several times while a part of each core is taken, and counts how often it succeeds:
//! `disturbed [--duty PERCENT] [--seed N] [--times N] COMMAND…`. A test that fails beside it depends on
//! the machine's speed.
//!
//! Each core is taken for spans of random length, by default 60 % of the time; as root by a thread that
//! goes before all others, as a hypervisor would take it. It knows nothing of tests.

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use rand_core::Rng;
use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::setpriority_process;

/// Mean length of a taken and a free span together.
const SPAN: Duration = Duration::from_millis(100);
/// The nice value of a thread that goes before all others.
const FIRST: i32 = -20;

const USAGE: &str = "usage: disturbed [--duty PERCENT] [--seed N] [--times N] COMMAND…";

struct Options {
    duty: f64,
    seed: u64,
    times: u32,
    command: Vec<String>,
}

fn options(mut args: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options {
        duty: 60.0,
        seed: 1,
        times: 10,
        command: Vec::new(),
    };
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--duty" => options.duty = args.next()?.parse().ok()?,
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
    let (duty, seed) = (options.duty / 100.0, options.seed);
    let threads: Vec<_> = cores
        .iter()
        .map(|&core| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || take(core, duty, seed, &over))
        })
        .collect();
    let good = (1..=options.times)
        .filter(|go| succeeds(&options.command, *go))
        .count();
    over.store(true, Ordering::Relaxed);
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

/// Takes a core now and then; gives the part of the time that it was really taken.
fn take(core: usize, duty: f64, seed: u64, over: &AtomicBool) -> f64 {
    let mut set = CpuSet::new();
    let pinned = set
        .set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    if pinned.is_err() || setpriority_process(None, FIRST).is_err() {
        eprintln!("disturbed: core {core} is shared with the command, not taken from it");
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ (core as u64) << 32);
    // Exponential, so that long spans come, too; none is for ever.
    let mut span = |mean: f64| {
        let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        SPAN.mul_f64(mean * (-(1.0 - uniform).ln()).min(8.0))
    };
    let begun = now();
    let mut taken = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        let (from, length) = (now(), span(duty));
        while from.elapsed() < length {
            std::hint::spin_loop();
        }
        taken += length;
        std::thread::park_timeout(span(1.0 - duty));
    }
    taken.as_secs_f64() / begun.elapsed().as_secs_f64().max(1e-9)
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
        for wrong in ["", "--times 3", "--duty 99 x", "--seed x y"] {
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
