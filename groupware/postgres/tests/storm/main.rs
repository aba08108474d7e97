//! Injects faults of all kinds by a seed, one after the other, into servers over one database with
//! a standby: servers are killed and halted, connections are cut at the worst moments, databases
//! die and fail over, the disk is full. Acknowledged batches are stored whole and once, refused
//! ones are not, and every reported conflict was one.
//!
//! The servers are stores in processes of their own; databases and faults are real.
//! `PLIMSOLL_FAULTS=N` sets the number of faults (`make faults-store`); `PLIMSOLL_SEED=N` draws
//! others. `PLIMSOLL_WITHOUT=marker`, `locks`, or `standby` removes one of the mechanisms that this
//! relies on; the test then succeeds if it detects a loss.

mod draw;
mod front;
#[path = "../faults/history.rs"]
mod history;
mod received;
#[path = "../faults/relay.rs"]
mod relay;
mod stage;
#[path = "../support/mod.rs"]
mod support;
#[path = "../faults/unlocked.rs"]
mod unlocked;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use draw::{FULL_DISK, Fault, KINDS};
use received::Received;
use relay::Cut;
use stage::Stage;

/// The number of faults after which servers start with an empty store: a full check takes longer with more data.
const FAULTS_OF_A_LIFE: u64 = 25;
/// The maximum number of concurrent stages. Each mostly waits.
const MOST_STAGES: u64 = 3;

/// The mechanism to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Without {
    Marker,
    Locks,
    Standby,
}

impl FromStr for Without {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "marker" => Ok(Self::Marker),
            "locks" => Ok(Self::Locks),
            "standby" => Ok(Self::Standby),
            _ => Err(()),
        }
    }
}

pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn asked<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let value = text.parse().ok();
    Some(value.unwrap_or_else(|| panic!("{name} can't be {text}")))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, role, address, first] = &words[..]
        && role == "front"
    {
        front::run(address, first);
        return ExitCode::SUCCESS;
    }
    received::judges();
    // By default, one fault of each kind.
    let faults = asked("PLIMSOLL_FAULTS").unwrap_or(KINDS.len() as u64);
    let (seed, without) = (
        asked("PLIMSOLL_SEED").unwrap_or(1),
        asked("PLIMSOLL_WITHOUT"),
    );
    println!("seed: PLIMSOLL_SEED={seed}");
    let tally = Mutex::new(Tally {
        left: faults,
        ..Tally::default()
    });
    let began = now();
    let stages = faults.div_ceil(FAULTS_OF_A_LIFE).min(MOST_STAGES);
    std::thread::scope(|scope| {
        for number in 0..stages {
            let tally = &tally;
            scope.spawn(move || play(number, seed, without, tally));
        }
    });
    let minutes = (now() - began).as_secs_f64() / 60.0;
    lock(&tally).verdict(minutes, without)
}

#[expect(
    clippy::disallowed_methods,
    reason = "what it took is told, not judged"
)]
fn now() -> Instant {
    Instant::now()
}

/// The results of all lives.
#[derive(Debug, Default)]
struct Tally {
    left: u64,
    lives: u64,
    struck: [u64; KINDS.len()],
    stored: usize,
    linked: usize,
    refused: usize,
    unknown: usize,
    outrun: u64,
    failed: BTreeMap<String, u64>,
    wrong: Vec<String>,
    is_skipped: bool,
}

/// Injects faults, life after life, on a stage of its own until all faults are used.
fn play(number: u64, seed: u64, without: Option<Without>, tally: &Mutex<Tally>) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(number << 32));
    let Some(mut stage) = Stage::start(number as usize, without) else {
        lock(tally).is_skipped = true;
        return;
    };
    if number == 0 && !stage.has_disk() {
        println!("SKIPPED: no small file system can be mounted here: no full disk");
    }
    loop {
        let (life, faults) = {
            let mut tally = lock(tally);
            let some = FAULTS_OF_A_LIFE.min(tally.left);
            if some == 0 {
                return;
            }
            tally.left -= some;
            tally.lives += 1;
            let life = tally.lives;
            let faults: Vec<Fault> = (0..some)
                .map(|at| drawn((life, at), (without, stage.has_disk()), &mut random))
                .collect();
            for fault in &faults {
                tally.struck[fault.kind()] += 1;
            }
            (life, faults)
        };
        let (heard, wrong) = stage.live(life, &faults);
        lock(tally).take(&heard, wrong, &faults);
    }
}

/// The first faults of the first life are one of each kind. With a mechanism removed, the faults
/// are those that need it.
fn drawn(
    (life, at): (u64, u64),
    (without, has_disk): (Option<Without>, bool),
    random: &mut Xoshiro256PlusPlus,
) -> Fault {
    let fault = match without {
        Some(Without::Marker) => Fault::CutCommit(Cut::After),
        Some(Without::Locks) => Fault::Terminate,
        Some(Without::Standby) => Fault::Promote { is_held_up: true },
        None if life == 1 && at < KINDS.len() as u64 => Fault::of(at as usize, random),
        None => Fault::draw(random),
    };
    match fault.kind() == FULL_DISK && !has_disk {
        true => Fault::Terminate,
        false => fault,
    }
}

impl Tally {
    fn take(&mut self, heard: &Received, wrong: Vec<String>, faults: &[Fault]) {
        self.stored += heard.told.stored.len();
        self.linked += heard.linked.len();
        self.refused += heard.told.refused.len() + heard.unlinked.len() - heard.outrun as usize;
        self.unknown += heard.told.unknown.len();
        self.outrun += heard.outrun;
        for (why, times) in &heard.failed {
            *self.failed.entry(why.clone()).or_default() += times;
        }
        if !wrong.is_empty() {
            println!("FOUND: {wrong:?}\nstruck by {faults:?}");
        }
        self.wrong.extend(wrong);
        println!(
            "{:>6} faults struck or under way, {} batches acknowledged, {} wrong",
            self.struck.iter().sum::<u64>(),
            self.stored + self.linked,
            self.wrong.len()
        );
    }

    fn verdict(&self, minutes: f64, without: Option<Without>) -> ExitCode {
        if self.is_skipped {
            return ExitCode::SUCCESS;
        }
        println!("{:<36}{:>6}", "fault", "times");
        for ((name, _), times) in KINDS.iter().zip(self.struck) {
            println!("{name:<36}{times:>6}");
        }
        let faults: u64 = self.struck.iter().sum();
        println!(
            "{faults} faults in {} stores and {minutes:.1} minutes, {:.0} a minute",
            self.lives,
            faults as f64 / minutes
        );
        println!(
            "acknowledged: {} batches, {} links of chains that all servers added to; refused for now: {}; not \
             known: {}; links that another server was faster with: {}",
            self.stored, self.linked, self.refused, self.unknown, self.outrun
        );
        for (why, times) in &self.failed {
            println!("failed {times} times: {why}");
        }
        println!(
            "lost, half there, there twice, or refused for nothing: {}",
            self.wrong.len()
        );
        match (without, self.wrong.is_empty()) {
            (None, true) | (Some(_), false) => ExitCode::SUCCESS,
            (Some(without), true) => {
                println!("without {without:?}, something had to be wrong");
                ExitCode::FAILURE
            }
            (None, false) => ExitCode::FAILURE,
        }
    }
}
