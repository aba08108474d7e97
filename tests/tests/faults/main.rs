//! Seeded faults against short trials that agents drive: links that delay, halve, stall, and end; processes that are
//! stopped or killed; duplicate agents, or agents of another version; strangers. An accepted trial is whole, and
//! nothing is left behind.
//!
//! The programs are the real ones; a relay is between each of them and the hub. `PLIMSOLL_FAULTS=N` sets the number of
//! faults (`make faults`), and `PLIMSOLL_SEED=N` repeats the choices of a run; the effect of a fault depends on the
//! machine all the same. `PLIMSOLL_AT_ONCE=N` runs several fleets at the same time. With `PLIMSOLL_FAULTS_KEPT=FILE`,
//! faults are recorded, and the next call resumes from there; if none is left, it reports that and judges the findings
//! again. With `PLIMSOLL_AWAY_MS=8000`, the only fault is a lost link for so long during the load, which trials don't
//! notice on an idle machine.

mod forger;
mod journal;
mod over;
mod plan;
mod stage;
mod tally;
mod trials;
mod web;

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use journal::Journal;
use over::{INTERRUPTED, hear_signals, is_over};
use stage::MOST_STAGES;
use tally::Tally;

/// The default number of faults.
const FAULTS: u64 = 8;
/// The default number of stages: each waits most of the time.
const AT_ONCE: u64 = 4;
/// The minimum number of faults per stage.
const LEAST_OF_STAGE: u64 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    if let [_, role, port] = &words[..]
        && role == "web"
    {
        return web::serve(port);
    }
    trials::judges();
    if !plimsoll_tests::has_nats() {
        return ExitCode::SUCCESS;
    }
    hear_signals();
    let faults = number("PLIMSOLL_FAULTS").unwrap_or(FAULTS);
    let seed = number("PLIMSOLL_SEED").unwrap_or_else(any_seed);
    println!("seed: PLIMSOLL_SEED={seed}");
    // Built once, not by each stage.
    plimsoll_tests::program();
    let stages = stages(faults);
    let kept = std::env::var_os("PLIMSOLL_FAULTS_KEPT").map(PathBuf::from);
    let opened = kept.as_ref().map(|file| Journal::open(file, faults, seed));
    let (journal, before) = opened.unzip();
    let away = number("PLIMSOLL_AWAY_MS").map(Duration::from_millis);
    let tally = Tally::new(
        (faults, seed, away),
        stages,
        journal,
        before.unwrap_or_default(),
    );
    if let Some(file) = kept.filter(|_| tally.is_complete()) {
        println!(
            "Nothing is left to strike: all of it was struck before, by seed {seed}, and what was seen then is judged \
             again. `SEED=N` strikes by another seed; without {} it begins anew.",
            file.display()
        );
    }
    thread::scope(|scope| {
        for stage in 0..stages {
            let tally = &tally;
            scope.spawn(move || tally.play(stage));
        }
    });
    match tally.verdict() {
        _ if is_over() => ExitCode::from(INTERRUPTED),
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// The number of fleets at the same time.
fn stages(faults: u64) -> usize {
    let wanted = number("PLIMSOLL_AT_ONCE").unwrap_or(AT_ONCE);
    let useful = faults.div_ceil(LEAST_OF_STAGE).min(MOST_STAGES as u64);
    wanted.clamp(1, useful.max(1)) as usize
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
