//! Crashes at seeded moments while a program goes on, each looked at by somebody.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::fs;
use std::path::Path;

use plimsoll_forgetful::{Lie, Mounted, crashes, seed};
use tempfile::TempDir;

/// Whether a crash lost nothing, and if it did, what.
pub(crate) type Verdict = Result<(), String>;

/// Most calls of the file system between two crashes of one store.
pub(crate) const MOST_CALLS: u64 = 60;
/// How often a disk that leaves out a sync crashes, and how often that may go well by chance of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control {
    pub(crate) crashes: u64,
    /// More than these must lose something.
    pub(crate) by_chance: u64,
}

pub(crate) const CONTROL: Control = Control {
    crashes: 40,
    by_chance: 10,
};

/// A disk, where one can be mounted.
pub(crate) fn disk(seed: u64) -> Option<Mounted> {
    Mounted::start(env!("CARGO_BIN_EXE_forgetful"), seed)
}

/// A folder in memory, where there is one: nobody waits for a disk that only holds images.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    folder.expect("a scratch folder can be made")
}

/// Takes so many images at seeded moments, at most so many calls apart, with what was known at each, and looks at them one by one. How many
/// were wrong, and the first of them.
pub(crate) fn crash_while<K>(
    disk: &Mounted,
    (crashes, most_calls): (u64, u64),
    known: impl Fn() -> K,
    verdict: impl Fn(&Path, K) -> Verdict,
) -> (u64, Option<String>) {
    let below = scratch();
    let mut taken = disk.crashes(crashes, most_calls, below.path());
    let (mut wrong, mut first) = (0, None);
    while let Some(crash) = taken.next(&known) {
        if let Err(reason) = verdict(&crash.folder, crash.known) {
            wrong += 1;
            first.get_or_insert(format!("before call {}: {reason}", crash.call));
        }
        fs::remove_dir_all(&crash.folder).expect("an image can be removed");
    }
    (wrong, first)
}

/// The negative control: with this sync left out, crashes must be found to lose something.
pub(crate) fn is_found_out(
    seed: u64,
    lie: Lie,
    Control { crashes, by_chance }: Control,
    run: impl FnOnce(&Mounted, u64) -> (u64, Option<String>),
) {
    let Some(disk) = disk(seed) else {
        return;
    };
    disk.lie(lie.clone());
    let (wrong, first) = run(&disk, crashes);
    println!("{lie:?}: {wrong} of {crashes} crashes: {first:?}");
    assert!(wrong > by_chance, "{lie:?}: {wrong} of {crashes}");
}

/// The test itself: whatever was acknowledged survives every crash.
pub(crate) fn survives(
    usual_crashes: u64,
    run: impl FnOnce(&Mounted, u64) -> (u64, Option<String>),
) {
    let seed = seed(1);
    let Some(disk) = disk(seed) else {
        return;
    };
    let (wrong, first) = run(&disk, crashes(usual_crashes));
    assert_eq!(wrong, 0, "seed {seed}: {first:?}");
}

/// The same where what is looked at grows with the crashes: after so many of them it begins anew, on another
/// disk, with the next seed. `run` is given disk, crashes, and seed.
pub(crate) fn survives_by_turns(
    usual_crashes: u64,
    in_a_turn: u64,
    run: impl Fn(&Mounted, u64, u64) -> (u64, Option<String>),
) {
    let (mut left, mut seed) = (crashes(usual_crashes), seed(1));
    while left > 0 {
        let Some(disk) = disk(seed) else {
            return;
        };
        let turn = left.min(in_a_turn);
        let (wrong, first) = run(&disk, turn, seed);
        let again = format!("PLIMSOLL_SEED={seed} PLIMSOLL_CRASHES={turn}");
        assert_eq!(wrong, 0, "{again}: {first:?}");
        (left, seed) = (left - turn, seed + 1);
    }
}
