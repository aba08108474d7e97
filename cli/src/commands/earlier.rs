//! Earlier runs of a study, beside those that are compared: they tell how far runs spread.

use std::fs;
use std::path::{Path, PathBuf};

use lab_analysis::Analysis;
use lab_archive::{Manifest, Run};

use crate::commands::report;
use crate::exit::{Exit, Failure};
use crate::talk::say;

/// More than this many tell little more, and each takes its time to read.
const MOST: usize = 12;

/// The latest earlier runs in `folder` (or where the first of `a` is) that ran the same study as that
/// one with the same settings. None of those that are compared is among them.
pub(crate) fn runs(
    folder: Option<&Path>,
    a: &[PathBuf],
    b: &[PathBuf],
) -> Result<Vec<Analysis>, Failure> {
    let Some(first) = a.first() else {
        return Ok(Vec::new());
    };
    let compared: Vec<PathBuf> = a
        .iter()
        .chain(b)
        .filter_map(|dir| dir.canonicalize().ok())
        .collect();
    let beside = compared.first().and_then(|dir| dir.parent());
    let entries = match (folder, beside) {
        (Some(folder), _) => fs::read_dir(folder).map_err(|error| {
            let text = format!("can't list {}: {error}", folder.display());
            Failure::text(Exit::BadInput, text).hint("--history names a folder of runs")
        })?,
        // What is wrong with the run itself is told when it is read.
        (None, beside) => match beside.and_then(|beside| fs::read_dir(beside).ok()) {
            Some(entries) => entries,
            None => return Ok(Vec::new()),
        },
    };
    let Some(wanted) = manifest(first) else {
        return Ok(Vec::new());
    };
    let dirs = entries.filter_map(|entry| entry.ok()?.path().canonicalize().ok());
    let runs = dirs.filter_map(|dir| Some((manifest(&dir)?, dir)));
    let runs = runs.filter(|(run, _)| is_same_study(run, &wanted));
    let mut found: Vec<(String, PathBuf)> = runs.map(|(run, dir)| (run.started, dir)).collect();
    found.sort();
    // A copy of a run is no other run.
    found.dedup_by(|one, before| one.0 == before.0);
    let begun: Vec<String> = compared
        .iter()
        .filter_map(|dir| Some(manifest(dir)?.started))
        .collect();
    found.retain(|(started, _)| !begun.contains(started));
    let latest = &found[found.len().saturating_sub(MOST)..];
    if !latest.is_empty() {
        say(format_args!(
            "reading {} earlier run{} of this study, to tell how far runs spread (--no-history: none)",
            latest.len(),
            if latest.len() == 1 { "" } else { "s" }
        ));
    }
    // One that is damaged tells nothing.
    let read = latest.iter().filter_map(|(_, dir)| report::read(dir).ok());
    Ok(read.collect())
}

/// Refuses a run that stands twice on one side: beside itself it would tell that runs don't spread.
pub(crate) fn each_once(side: &[PathBuf]) -> Result<(), Failure> {
    let mut begun: Vec<(String, &Path)> = Vec::new();
    for dir in side {
        let Some(run) = manifest(dir) else {
            continue;
        };
        if let Some((_, other)) = begun.iter().find(|(started, _)| *started == run.started) {
            let text = format!("{} and {} are one run", other.display(), dir.display());
            return Err(Failure::text(Exit::BadInput, text).hint("name each run of a side once"));
        }
        begun.push((run.started, dir));
    }
    Ok(())
}

/// Trials count from 1, so that none is read.
fn manifest(dir: &Path) -> Option<Manifest> {
    Run::open_trial(dir, 0).ok().map(|run| run.manifest)
}

fn is_same_study(one: &Manifest, wanted: &Manifest) -> bool {
    one.study == wanted.study
        && one.file_hash == wanted.file_hash
        && one.overrides == wanted.overrides
        && one.speed.to_bits() == wanted.speed.to_bits()
}
