//! The journal of changed kernel settings on a disk that forgets: it is there and whole from before the first change
//! until the last value is restored, and then it is gone. An image of a crash never prevents the next run from
//! starting.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use common::{Control, MOST_CALLS, Verdict, crash_while, is_found_out, scratch, survives};
use lab_host::journal::{Entry, Gone, Journal, restore};
use plimsoll_forgetful::{Lie, Mounted, seed};
use serde_json::Value;

/// What is certainly on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// No journal.
    Nothing,
    /// The journal of this round.
    Begun(u64),
    /// The journal is being written or removed.
    Either,
}

/// Settings, simulated by a file. The journal in an image restores the image's own copy.
fn entries(settings: &Path, round: u64) -> Vec<Entry> {
    let path = settings.join("setting").to_str().unwrap().to_owned();
    let old = format!("{round:09}");
    // Journals of more than one page can be there in part.
    let entry = |_| Entry {
        path: path.clone(),
        restore: path.clone(),
        old: old.clone(),
    };
    (0..1 + round % 90).map(entry).collect()
}

fn journals(state: &Path) -> Vec<PathBuf> {
    let Ok(found) = fs::read_dir(state.join("kernel")) else {
        return Vec::new();
    };
    let paths = found.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect()
}

/// Returns what is wrong with an image after a crash at which this was known.
fn verdict(image: &Path, known: Known) -> Verdict {
    let state = image.join("some/state");
    let found = journals(&state);
    for path in &found {
        let text = fs::read(path).unwrap();
        let journal: Value = serde_json::from_slice(&text)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let Known::Begun(round) = known else { continue };
        let entries = journal["entries"].as_array().unwrap();
        let is_its = |entry: &Value| entry["old"] == format!("{round:09}");
        if entries.len() as u64 != 1 + round % 90 || !entries.iter().all(is_its) {
            return Err(format!("of another round than {round}: {journal}"));
        }
    }
    match (known, found.len()) {
        (Known::Begun(round), 0) => return Err(format!("nothing of round {round}, which began")),
        (Known::Nothing, 1..) => return Err(format!("{found:?} was removed")),
        _ => {}
    }
    restore(&state, Gone::Keep).map_err(|error| format!("it can't be put back: {error}"))?;
    match journals(&state).is_empty() {
        true => Ok(()),
        false => Err("it stays when all is put back".to_owned()),
    }
}

/// Runs rounds on a disk while it crashes; returns the number of bad images and the first fault.
fn run(disk: &Mounted, crashes: u64) -> (u64, Option<String>) {
    let settings = scratch();
    fs::write(settings.path().join("setting"), "").unwrap();
    let state = disk.path().join("some/state");
    let known = Mutex::new(Known::Nothing);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let say = |what| *known.lock().unwrap() = what;
            for round in (0..).take_while(|_| !stop.load(Relaxed)) {
                say(Known::Either);
                let journal = Journal::begin(&state, entries(settings.path(), round)).unwrap();
                say(Known::Begun(round));
                // Some calls during which a crash finds the journal there.
                fs::write(disk.path().join("else"), "x").unwrap();
                say(Known::Either);
                journal.finish().unwrap();
                say(Known::Nothing);
                fs::write(disk.path().join("else"), "y").unwrap();
            }
        });
        let outcome = crash_while(
            disk,
            (crashes, MOST_CALLS),
            || *known.lock().unwrap(),
            verdict,
        );
        stop.store(true, Relaxed);
        outcome
    })
}

#[test]
fn a_journal_survives_and_its_end_does() {
    survives(100, run);
}

/// Without the sync of the file, or of a folder, a journal is lost or reappears: this test detects it.
#[test]
fn a_sync_left_out_is_found_out() {
    // Most crashes happen while nothing of a journal is on the disk yet.
    let control = Control {
        crashes: 80,
        by_chance: 0,
    };
    for lie in [
        Lie::Files("/kernel/".to_owned()),
        Lie::Folders("/kernel".to_owned()),
        Lie::Folders("/some".to_owned()),
    ] {
        is_found_out(seed(2), lie, control, run);
    }
}
