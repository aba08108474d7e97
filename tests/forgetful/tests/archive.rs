//! An archive on a disk that forgets: a finished trial is there after every crash, whole, and an unfinished one is not
//! taken for a finished one.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::thread;

use common::{CONTROL, MOST_CALLS, Verdict, crash_while, disk, is_found_out, survives};
use lab_archive::{ArchiveError, Run, RunWriter};
use plimsoll_forgetful::{Lie, Mounted, seed};

/// A real run, whose trials are written again.
fn golden() -> Run {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden/workload");
    Run::open(&folder).expect("the golden archive is readable")
}

fn write_trial(run: &Run, writer: &RunWriter, id: u32) {
    let data = &run.trials[id as usize % run.trials.len()];
    let mut trial = writer.trial(id).unwrap();
    for line in data.windows.iter().take(3) {
        trial.window(line).unwrap();
    }
    fs::write(
        trial.output_path(),
        format!("trial {id} says this\n").repeat(100),
    )
    .unwrap();
    trial.finish(&data.record).unwrap();
}

/// Returns what is wrong with an archive after `finished` trials; `None` means that the archive wasn't begun.
fn verdict(folder: &Path, finished: Option<u32>) -> Verdict {
    let Some(finished) = finished else {
        return Ok(());
    };
    let run = Run::open(folder).map_err(|error| error.to_string())?;
    for id in 1..=finished {
        let found = run.trials.iter().find(|trial| trial.record.id == id);
        let Some(found) = found else {
            return Err(format!(
                "trial {id} of {finished} that were finished is not there"
            ));
        };
        let output = run
            .output(found.record.id)
            .map_err(|error| error.to_string())?;
        let said = output.map_or(0, |output| output.len());
        if said != format!("trial {id} says this\n").len() * 100 {
            return Err(format!("trial {id}: {said} bytes of what the system said"));
        }
    }
    let more = run
        .trials
        .iter()
        .filter(|trial| trial.record.id > finished + 1);
    match more.count() {
        0 => Ok(()),
        more => Err(format!("{more} trials that were not begun")),
    }
}

fn archive_in(disk: &Path) -> PathBuf {
    disk.join("runs/one")
}

fn run(disk: &Mounted, crashes: u64) -> (u64, Option<String>) {
    let golden = golden();
    // The folder of the runs existed before.
    fs::create_dir(disk.path().join("runs")).unwrap();
    fs::File::open(disk.path()).unwrap().sync_all().unwrap();
    // 0 means not begun; otherwise one more than the number of finished trials.
    let (known, stop) = (AtomicU32::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let folder = archive_in(disk.path());
            let files = &golden.files;
            let writer = RunWriter::create(&folder, &golden.manifest, &golden.plan, files).unwrap();
            known.store(1, SeqCst);
            for id in 1.. {
                if stop.load(SeqCst) {
                    return;
                }
                write_trial(&golden, &writer, id);
                known.store(id + 1, SeqCst);
            }
        });
        let outcome = crash_while(
            disk,
            (crashes, MOST_CALLS),
            || known.load(SeqCst).checked_sub(1),
            |image, finished| verdict(&archive_in(image), finished),
        );
        stop.store(true, SeqCst);
        outcome
    })
}

#[test]
fn finished_trials_survive() {
    survives(60, run);
}

/// Without the sync of files, or of folders, a finished trial is lost: this test detects it.
#[test]
fn a_sync_left_out_is_found_out() {
    for lie in [
        Lie::Files(".partial/".to_owned()),
        Lie::Folders("/trials".to_owned()),
    ] {
        is_found_out(seed(2), lie, CONTROL, run);
    }
}

#[test]
fn what_is_no_archive_yet_is_said_to_be_none() {
    let Some(disk) = disk(0) else {
        return;
    };
    let error = Run::open(&archive_in(disk.path())).unwrap_err();
    assert!(
        matches!(error, ArchiveError::NotAnArchive { .. }),
        "{error}"
    );
}
