//! Faults by a seed against short trials that agents drive: ways that delay, halve, stall, and end; processes
//! that stand still or are killed; agents that come twice; strangers. A trial that counts is whole, and nothing
//! is left behind.
//!
//! The programs are the real ones; a relay stands between each of them and the hub. `PLIMSOLL_FAULTS=N` strikes
//! so often (`make faults`), and `PLIMSOLL_SEED=N` repeats the choices of a run; what a fault meets depends on
//! the machine's moment all the same.

mod forger;
mod plan;
mod stage;
mod trials;
mod web;

use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use plan::NAMES;
use stage::{MOST_STAGES, Seen, Stage};
use trials::Trials;

/// So many, unless more are asked for.
const FAULTS: u64 = 8;
/// The most that strike one run.
const MOST_OF_ONE: u64 = 5;
/// As many stages as have so many to themselves: each waits most of the time.
const LEAST_OF_STAGE: u64 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, role, port] = &words[..]
        && role == "web"
    {
        return web::serve(port);
    }
    trials::judges();
    if !has_hub() {
        println!("SKIPPED: there is no nats-server here (Debian: apt install nats-server)");
        return ExitCode::SUCCESS;
    }
    let faults = number("PLIMSOLL_FAULTS").unwrap_or(FAULTS);
    let seed = number("PLIMSOLL_SEED").unwrap_or_else(any_seed);
    println!("seed: PLIMSOLL_SEED={seed}");
    // Built once, not by each.
    plimsoll_tests::program();
    let tally = Tally::new(faults);
    let stages = (faults.div_ceil(LEAST_OF_STAGE) as usize).min(MOST_STAGES);
    thread::scope(|scope| {
        for stage in 0..stages {
            let tally = &tally;
            scope.spawn(move || tally.play(stage, seed));
        }
    });
    tally.verdict()
}

fn has_hub() -> bool {
    ["nats-server", "/usr/sbin/nats-server"]
        .iter()
        .any(|program| {
            let mut command = Command::new(program);
            command.arg("--version").stdout(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        })
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a whole number: {text}")))
}

fn any_seed() -> u64 {
    let mut bytes = [0; 8];
    let source = std::fs::File::open("/dev/urandom");
    source
        .and_then(|mut source| std::io::Read::read_exact(&mut source, &mut bytes))
        .expect("the system has random bits");
    u64::from_le_bytes(bytes)
}

/// What came of all stages.
struct Tally {
    left: AtomicU64,
    struck: [AtomicU64; NAMES.len()],
    seen: Mutex<Seen>,
}

impl Tally {
    fn new(faults: u64) -> Self {
        Self {
            left: AtomicU64::new(faults),
            struck: Default::default(),
            seen: Mutex::default(),
        }
    }

    /// Strikes run after run on a stage of its own, until all faults are used.
    fn play(&self, number: usize, seed: u64) {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(number as u64));
        let mut stage = Stage::start(number);
        loop {
            let some = 1 + u64::from(random.next_u32()) % MOST_OF_ONE;
            let take = |left: u64| Some(left - some.min(left));
            let left = self.left.fetch_update(Relaxed, Relaxed, take);
            let some = some.min(left.unwrap_or(0));
            if some == 0 {
                break;
            }
            let faults = plan::draw(some, &mut random);
            for planned in &faults {
                self.struck[planned.fault.kind()].fetch_add(1, Relaxed);
            }
            stage.run(&faults);
            self.take(&mut stage, &format!("{faults:?}"));
        }
        stage.recover();
        self.take(&mut stage, "nothing");
    }

    /// Takes in what a stage has seen since, and shows what is not to be at once.
    fn take(&self, stage: &mut Stage, struck: &str) {
        let mut new = std::mem::take(&mut stage.seen);
        let found = [&new.not_whole, &new.left, &new.wrong];
        if found.iter().any(|found| !found.is_empty()) {
            println!("FOUND: {found:?}\nstruck by {struck}\n{}", stage.said());
        }
        if !new.gave_up.is_empty() {
            println!("{:?}, struck by {struck}", new.gave_up);
        }
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        all.runs += new.runs;
        all.refused += new.refused;
        all.trials.add(new.trials);
        all.not_whole.append(&mut new.not_whole);
        all.left.append(&mut new.left);
        all.wrong.append(&mut new.wrong);
        all.gave_up.append(&mut new.gave_up);
    }

    fn verdict(&self) -> ExitCode {
        println!("{:<32}{:>6}", "fault", "times");
        for (name, times) in NAMES.iter().zip(&self.struck) {
            println!("{name:<32}{:>6}", times.load(Relaxed));
        }
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Trials {
            accepted,
            full,
            lost,
            failed,
        } = seen.trials;
        println!(
            "{} runs: {accepted} trials counted ({full} with all requests), {lost} lost an agent, {failed} \
             failed; {} runs could not have their agents, {} agents gave up",
            seen.runs,
            seen.refused,
            seen.gave_up.len()
        );
        println!(
            "accepted with a window missing or twice: {}",
            seen.not_whole.len()
        );
        println!(
            "kernel settings or processes left behind: {}",
            seen.left.len()
        );
        let found = [&seen.not_whole, &seen.left, &seen.wrong];
        for one in found.into_iter().flatten() {
            println!("WRONG: {one}");
        }
        match found.iter().all(|found| found.is_empty()) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        }
    }
}
