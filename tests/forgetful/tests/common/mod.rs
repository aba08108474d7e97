//! Crashes at seeded moments while a program runs, and a check of each.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::fs;
use std::path::Path;

use plimsoll_forgetful::{Lie, Mounted, crashes, seed};
use tempfile::TempDir;

/// `Err` names what a crash lost.
pub(crate) type Verdict = Result<(), String>;

/// The maximum number of file system calls between two crashes of one store.
pub(crate) const MOST_CALLS: u64 = 60;
/// The number of crashes of a disk that skips a sync, and of losses that must be exceeded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Control {
    pub(crate) crashes: u64,
    /// More crashes than this must lose something.
    pub(crate) by_chance: u64,
}

pub(crate) const CONTROL: Control = Control {
    crashes: 40,
    by_chance: 10,
};

/// Mounts a disk where that is possible.
pub(crate) fn disk(seed: u64) -> Option<Mounted> {
    Mounted::start(env!("CARGO_BIN_EXE_forgetful"), seed)
}

/// A folder in memory, where there is one: images need no slow disk.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    folder.expect("a scratch folder can be made")
}

/// Takes `crashes` images, each with what was known then, and checks them one by one. Returns the number of bad images
/// and the first fault.
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

/// The negative control: with this sync skipped, some crashes must lose something.
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

/// The test itself: everything acknowledged survives every crash.
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

/// As [`survives`], for a check that grows with the crashes: after some of them it starts anew on another disk, with
/// the next seed. `run` is given disk, crashes, and seed.
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
