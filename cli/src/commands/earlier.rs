//! Earlier runs of a study, beside the compared ones: they show how far runs spread.

use std::fs;
use std::path::{Path, PathBuf};

use lab_analysis::Analysis;
use lab_archive::{Manifest, Run};
use lab_plan::Decides;

use crate::commands::{RUNS, report};
use crate::exit::{Exit, Failure};
use lab_terminal::stderr::say;

/// The maximum number of earlier runs: more add little, and each takes time to read.
const MOST: usize = 12;

/// Returns the latest earlier runs in `folder` (or beside the first of `a`) of the same study with the same settings,
/// started before the first of `b`. The compared runs are not among them.
pub(crate) fn runs(
    folder: Option<&Path>,
    a: &[PathBuf],
    b: &[PathBuf],
    decides: Option<Decides>,
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
        (Some(folder), _) => listed(folder)?,
        // Faults of the run itself are reported when it is read.
        (None, beside) => match beside.and_then(|beside| fs::read_dir(beside).ok()) {
            Some(entries) => entries,
            None => return Ok(Vec::new()),
        },
    };
    let Some(wanted) = manifest(first) else {
        return Ok(Vec::new());
    };
    let begun = |of: &[PathBuf]| -> Vec<String> {
        let each = of.iter().filter_map(|dir| Some(manifest(dir)?.started));
        each.collect()
    };
    let (compared, candidates) = (begun(&compared), begun(b));
    let first = candidates.into_iter().min();
    let planned = Planned {
        study: &wanted.study,
        file_hash: &wanted.file_hash,
        overrides: &wanted.overrides,
        speed: wanted.speed,
    };
    let is_wanted = |run: &Manifest| {
        let is_earlier = first.as_ref().is_none_or(|first| run.started < *first);
        planned.is_of(run) && is_earlier && !compared.contains(&run.started)
    };
    Ok(latest(entries, &is_wanted, decides))
}

/// Returns the latest runs in `folder`, or in `runs`, of the planned study.
pub(crate) fn of_plan(
    folder: Option<&Path>,
    wanted: &Planned<'_>,
) -> Result<Vec<Analysis>, Failure> {
    let entries = match folder {
        Some(folder) => listed(folder)?,
        None => match fs::read_dir(RUNS) {
            Ok(entries) => entries,
            Err(_) => return Ok(Vec::new()),
        },
    };
    Ok(latest(entries, &|run| wanted.is_of(run), None))
}

/// A study with its settings.
pub(crate) struct Planned<'a> {
    pub(crate) study: &'a str,
    pub(crate) file_hash: &'a str,
    pub(crate) overrides: &'a [(String, String)],
    pub(crate) speed: f64,
}

impl Planned<'_> {
    fn is_of(&self, run: &Manifest) -> bool {
        run.study == self.study
            && run.file_hash == self.file_hash
            && run.overrides == self.overrides
            && run.speed.to_bits() == self.speed.to_bits()
    }
}

fn listed(folder: &Path) -> Result<fs::ReadDir, Failure> {
    fs::read_dir(folder).map_err(|error| {
        let text = format!("can't list {}: {error}", folder.display());
        Failure::text(Exit::BadInput, text).hint("--history names a folder of runs")
    })
}

fn latest(
    entries: fs::ReadDir,
    is_wanted: &dyn Fn(&Manifest) -> bool,
    decides: Option<Decides>,
) -> Vec<Analysis> {
    let dirs = entries.filter_map(|entry| entry.ok()?.path().canonicalize().ok());
    let runs = dirs.filter_map(|dir| Some((manifest(&dir)?, dir)));
    let runs = runs.filter(|(run, _)| is_wanted(run));
    let mut found: Vec<(String, PathBuf)> = runs.map(|(run, dir)| (run.started, dir)).collect();
    found.sort();
    // A copy of a run is no further run.
    found.dedup_by(|one, before| one.0 == before.0);
    let latest = &found[found.len().saturating_sub(MOST)..];
    if !latest.is_empty() {
        say(format_args!(
            "reading {} earlier run{} of this study, to tell how far runs spread (--no-history: none)",
            latest.len(),
            if latest.len() == 1 { "" } else { "s" }
        ));
    }
    // A damaged run is skipped.
    let read = latest
        .iter()
        .filter_map(|(_, dir)| report::read_figures(dir, decides).ok());
    read.collect()
}

/// Refuses a run that is given twice on one side: compared with itself it would suggest that runs don't spread.
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

/// Trials count from 1, so that 0 reads none.
fn manifest(dir: &Path) -> Option<Manifest> {
    Run::open_trial(dir, 0).ok().map(|run| run.manifest)
}
