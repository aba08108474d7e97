//! Crashes at seeded moments while a program goes on, each looked at by somebody.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::fs;
use std::path::Path;

use plimsoll_forgetful::Mounted;
use tempfile::TempDir;

/// Whether a crash lost nothing, and if it did, what.
pub(crate) type Verdict = Result<(), String>;

/// Most calls of the file system between two crashes.
const MOST_CALLS: u64 = 60;

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

/// Takes images at seeded moments, with what was known at each, and looks at them one by one. How many
/// were wrong, and the first of them.
pub(crate) fn crash_while<K>(
    disk: &Mounted,
    crashes: u64,
    known: impl Fn() -> K,
    verdict: impl Fn(&Path, K) -> Verdict,
) -> (u64, Option<String>) {
    let below = scratch();
    let mut taken = disk.crashes(crashes, MOST_CALLS, below.path());
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
