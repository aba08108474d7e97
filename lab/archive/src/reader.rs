//! Reads an archive back, checking all of it. It judges no measurement.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hlog::{self, Interval};
use crate::monitor::{self, MonitorTable};
use crate::waits;
use crate::wire::{self, ManifestFile, Sizes, TrialFile};
use crate::writer::trial_folders;
use crate::{
    ARCHIVE_SCHEMA, ArchiveError, Manifest, Series, TRIAL_SCHEMA, TrialRecord, Waits, WindowLine,
    names,
};

/// A whole archive in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The folder it was read from.
    pub dir: PathBuf,
    /// The manifest.
    pub manifest: Manifest,
    /// The plan, as `lab-study` wrote it.
    pub plan: Value,
    /// Kept files by name, in the manifest's order: the study first, then the workload.
    pub files: Vec<(String, Vec<u8>)>,
    /// Complete trials by id.
    pub trials: Vec<TrialData>,
    /// Ids of trials that were begun and not finished, in order.
    pub incomplete: Vec<u32>,
}

/// One complete trial.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialData {
    /// Facts of the whole trial.
    pub record: TrialRecord,
    /// Counts per window, in order of time.
    pub windows: Vec<WindowLine>,
    /// Histograms per window and series, in order of time.
    pub hlog: Vec<Interval>,
    /// Counters of host and processes.
    pub monitor: MonitorTable,
    /// The CPU profile of the system, a pprof file as it lies on disk, or why it can't be read; `None` where none was
    /// recorded. No figure needs the profile, so a damaged one does not affect the rest.
    pub cpu_profile: Option<Result<Vec<u8>, String>>,
    /// The waits of the system's threads.
    pub waits: Waits,
    /// The counters that the system reported: `asked.jsonl` as it lies on disk, or why it can't be read; `None` if the
    /// system was not queried.
    pub asked: Option<Result<Vec<u8>, String>>,
}

impl Run {
    /// Reads and checks the archive in `dir`.
    ///
    /// A trial folder without `trial.json` is listed in [`Run::incomplete`] and skipped.
    ///
    /// # Errors
    /// [`ArchiveError::NotAnArchive`], [`ArchiveError::Version`]; [`ArchiveError::Damaged`] and
    /// [`ArchiveError::Size`] name the file, and the line where it has lines.
    pub fn open(dir: &Path) -> Result<Self, ArchiveError> {
        Self::read(dir, |_| true)
    }

    /// As [`Run::open`], with the data of one trial only: reading all data of a long run takes time.
    ///
    /// # Errors
    /// As [`Run::open`].
    pub fn open_trial(dir: &Path, id: u32) -> Result<Self, ArchiveError> {
        Self::read(dir, |trial| trial == id)
    }

    /// Returns the output of the system during a trial; `None` if none was kept. No figure needs it, so it
    /// is not read with the rest.
    ///
    /// # Errors
    /// If it exists and can't be read.
    pub fn output(&self, id: u32) -> Result<Option<Vec<u8>>, ArchiveError> {
        let path = names::trial_folder(&self.dir, id).join(names::SYSTEM_LOG);
        if path.exists() {
            wire::read(&path).map(Some)
        } else {
            Ok(None)
        }
    }

    fn read(dir: &Path, wanted: impl Fn(u32) -> bool) -> Result<Self, ArchiveError> {
        let path = dir.join(names::MANIFEST);
        if !path.exists() {
            return Err(ArchiveError::NotAnArchive {
                path: dir.to_path_buf(),
            });
        }
        let bytes = wire::read(&path)?;
        let ManifestFile {
            manifest,
            file_bytes,
        } = wire::versioned(&path, &bytes, ARCHIVE_SCHEMA)?;
        let path = dir.join(names::PLAN);
        let plan = wire::json(&path, &wire::read_sized(&path, names::PLAN, &file_bytes)?)?;
        let mut files = Vec::new();
        for name in &manifest.files {
            let key = format!("{}/{name}", names::FILES);
            let bytes = wire::read_sized(&names::kept_file(dir, name)?, &key, &file_bytes)?;
            files.push((name.clone(), bytes));
        }
        let mut run = Self {
            dir: dir.to_path_buf(),
            manifest,
            plan,
            files,
            trials: vec![],
            incomplete: vec![],
        };
        run.read_trials(wanted)?;
        Ok(run)
    }

    fn read_trials(&mut self, wanted: impl Fn(u32) -> bool) -> Result<(), ArchiveError> {
        let mut folders = trial_folders(&self.dir)?;
        folders.sort_unstable();
        for (id, partial) in folders.into_iter().filter(|(id, _)| wanted(*id)) {
            let folder = names::trial_folder(&self.dir, id);
            if partial || !folder.join(names::TRIAL).exists() {
                self.incomplete.push(id);
            } else {
                self.trials
                    .push(TrialData::read(&folder, id, Named::of(&self.manifest))?);
            }
        }
        self.incomplete.dedup();
        let complete = |id: &u32| self.trials.iter().any(|t| t.record.id == *id);
        let incomplete = std::mem::take(&mut self.incomplete);
        self.incomplete = incomplete.into_iter().filter(|id| !complete(id)).collect();
        Ok(())
    }
}

impl TrialData {
    /// Leaves the figures alone: drops profiles, waits, and what the system counted, which take time to analyse.
    pub fn drop_explanations(&mut self) {
        self.cpu_profile = None;
        self.waits = Waits::default();
        self.asked = None;
    }

    fn read(folder: &Path, id: u32, named: Named) -> Result<Self, ArchiveError> {
        let path = folder.join(names::TRIAL);
        let TrialFile { record, file_bytes } =
            wire::versioned(&path, &wire::read(&path)?, TRIAL_SCHEMA)?;
        if record.id != id {
            let problem = format!("it is of trial {}", record.id);
            return Err(ArchiveError::damaged(&path, None, problem));
        }
        let path = folder.join(names::WINDOWS);
        let windows = windows(
            &path,
            &wire::read_sized(&path, names::WINDOWS, &file_bytes)?,
            named,
        )?;
        let path = folder.join(names::HLOG);
        let hlog = hlog::parse(&path, wire::open_sized(&path, names::HLOG, &file_bytes)?)?;
        known_series(&path, &hlog, named)?;
        let monitor = read_monitor(&folder.join(names::MONITOR), &file_bytes)?;
        Ok(Self {
            record,
            windows,
            hlog,
            monitor,
            cpu_profile: waits::whole(folder, names::CPU_PROFILE, &file_bytes),
            waits: Waits::read(folder, &file_bytes),
            asked: waits::whole(folder, names::ASKED, &file_bytes),
        })
    }

    /// The intervals of one series, in order of time.
    pub fn series(&self, series: Series) -> impl Iterator<Item = &Interval> {
        self.hlog
            .iter()
            .filter(move |interval| interval.series == series)
    }
}

/// The numbers of steps and transactions in a manifest.
#[derive(Clone, Copy)]
struct Named {
    steps: usize,
    transactions: usize,
}

impl Named {
    fn of(manifest: &Manifest) -> Self {
        Self {
            steps: manifest.steps.len(),
            transactions: manifest.transactions.len(),
        }
    }

    /// Returns the problem with counts or times of a step; `what` names them.
    fn step(self, step: u16, what: &str) -> Option<String> {
        let Self { steps, .. } = self;
        let problem = || format!("{what} of step {step}; the manifest has {steps} steps");
        (usize::from(step) >= steps).then(problem)
    }

    /// Likewise of a transaction.
    fn transaction(self, transaction: u16, what: &str) -> Option<String> {
        let known = self.transactions;
        let problem = || format!("{what} of transaction {transaction}; the manifest has {known}");
        (usize::from(transaction) >= known).then(problem)
    }
}

fn windows(path: &Path, bytes: &[u8], named: Named) -> Result<Vec<WindowLine>, ArchiveError> {
    let mut windows = Vec::new();
    for (number, line) in (1..).zip(bytes.split_inclusive(|b| *b == b'\n')) {
        let damaged = |problem: String| ArchiveError::damaged(path, Some(number), problem);
        if !line.ends_with(b"\n") {
            return Err(damaged("the line is cut off".to_owned()));
        }
        let window: WindowLine =
            serde_json::from_slice(line).map_err(|e| damaged(e.to_string()))?;
        let mut steps = window.steps.keys();
        let mut transactions = window.transactions.keys();
        let unknown = steps.find_map(|step| named.step(*step, "it has counts"));
        let unknown = unknown
            .or_else(|| transactions.find_map(|one| named.transaction(*one, "it has counts")));
        if let Some(problem) = unknown {
            return Err(damaged(problem));
        }
        windows.push(window);
    }
    Ok(windows)
}

fn known_series(path: &Path, hlog: &[Interval], named: Named) -> Result<(), ArchiveError> {
    let unknown = hlog.iter().find_map(|interval| match interval.series {
        Series::Step { step, .. } => named.step(step, "it has a histogram"),
        Series::Transaction { transaction, .. } => {
            named.transaction(transaction, "it has a histogram")
        }
        _ => None,
    });
    match unknown {
        Some(problem) => Err(ArchiveError::damaged(path, None, problem)),
        None => Ok(()),
    }
}

/// A trial whose system never started has no samples and no file.
fn read_monitor(path: &Path, sizes: &Sizes) -> Result<MonitorTable, ArchiveError> {
    if !path.exists() && !sizes.contains_key(names::MONITOR) {
        return Ok(MonitorTable::default());
    }
    monitor::parse(path, &wire::read_sized(path, names::MONITOR, sizes)?)
}
