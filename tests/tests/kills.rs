//! Kills the server at random moments under a mixed load of all services, again and again: acknowledged changes are
//! there each time, and nothing is there in part.
//!
//! A killed process leaves its written pages with the system: the tests in `tests/forgetful` show that they reach the
//! disk. `PLIMSOLL_KILLS=N` sets the number of kills, and `PLIMSOLL_SEED=N` repeats the choices of a run; what is under
//! way at each kill depends on the machine all the same.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use nix::sys::signal::Signal;
use plimsoll_tests::mixed::{Ledger, World};
use plimsoll_tests::{program, wait_until};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The default number of kills.
const KILLS: u64 = 8;
/// After so many, the next server starts empty: a check of everything takes longer the more data there is.
const KILLS_OF_ONE: u64 = 20;
/// The maximum time that the server runs before it is killed.
const MAX_LIFE_MS: u32 = 400;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is not a whole number: {text}")))
}

fn seed() -> u64 {
    number("PLIMSOLL_SEED").unwrap_or_else(|| {
        let mut bytes = [0; 8];
        let mut source = std::fs::File::open("/dev/urandom").expect("the system has random bits");
        std::io::Read::read_exact(&mut source, &mut bytes).expect("the system has random bits");
        u64::from_le_bytes(bytes)
    })
}

/// One life of a server: all services write until it is killed.
fn live(world: &World, ledger: &Ledger, label: &str, random: &mut Xoshiro256PlusPlus) {
    let (before, ends) = (ledger.acknowledged(), AtomicBool::new(false));
    let life = Duration::from_millis(u64::from(20 + random.next_u32() % MAX_LIFE_MS));
    world.load(ledger, (label, random.next_u64()), &ends, || {
        // Never sent to: this is a wait of the drawn length.
        let (_never, timer) = sync_channel::<()>(1);
        let _ = timer.recv_timeout(life);
        // On a slow machine, a life without writes would test nothing.
        wait_until(Duration::from_secs(120), "a write", || {
            ledger.acknowledged() > before
        });
        ends.store(true, Relaxed);
        world.server().signal(Signal::SIGKILL);
    });
}

/// Kills servers on one data folder. Returns how many things were acknowledged, and how many open changes happened.
fn kill(kills: u64, first: u64, random: &mut Xoshiro256PlusPlus) -> (usize, u32) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let data = folder.path().join("data");
    let mut world = World::start(&data, folder.path());
    let (ledger, mut happened) = (Ledger::default(), 0);
    for kill in first..first + kills {
        live(&world, &ledger, &kill.to_string(), random);
        world = world.restarted(&data, folder.path());
        let mut things = ledger.now();
        match world.verify(&mut things) {
            Ok(more) => happened += more,
            Err(wrong) => panic!("after kill {kill}: {wrong}\n{}", world.server().said()),
        }
        ledger.settle(things);
    }
    drop(world);
    look_through(&data);
    (ledger.acknowledged(), happened)
}

fn look_through(data: &Path) {
    let mut check = Command::new(program());
    let output = check
        .args(["serve", "--check", "--data"])
        .arg(data)
        .output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn what_all_services_acknowledged_survives_kills() {
    let (kills, seed) = (number("PLIMSOLL_KILLS").unwrap_or(KILLS), seed());
    println!("seed: PLIMSOLL_SEED={seed}");
    println!("kills  acknowledged  done without an answer");
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut done, mut things, mut happened) = (0, 0, 0);
    while done < kills {
        let some = KILLS_OF_ONE.min(kills - done);
        let (more, open) = kill(some, done, &mut random);
        (done, things, happened) = (done + some, things + more, happened + open);
        println!("{done:>5}  {things:>12}  {happened:>22}");
    }
    assert!(things as u64 > kills, "the servers were hardly written to");
    println!("{done} kills: nothing that was acknowledged was lost, and nothing was there in part");
}
