//! Reads an archive as it grows: events, and the windows, histograms, and counters of a running
//! trial. It reads each byte once, and does not judge trials.
//!
//! Only whole lines count; the rest of a line is read at the next poll. A trial's files stay readable
//! when its folder gets its final name.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::hlog;
use crate::log::EventLine;
use crate::wire::{self, ManifestFile, TrialFile};
use crate::writer::trial_folders;
use crate::{
    ARCHIVE_SCHEMA, ArchiveError, Interval, Manifest, TRIAL_SCHEMA, TrialRecord, WindowLine,
    monitor, names,
};

/// The maximum that one poll reads from a file; the next poll reads the rest.
const MOST_BYTES: u64 = 16 << 20;

/// An archive that another process may be writing.
#[derive(Debug)]
pub struct Follow {
    dir: PathBuf,
    manifest: Manifest,
    events: Tail,
    trial: Option<Trial>,
}

/// The data added to a trial since the last poll.
#[derive(Debug, Default)]
pub struct Growth {
    /// Its windows.
    pub windows: Vec<WindowLine>,
    /// Their histograms.
    pub intervals: Vec<Interval>,
    /// Names of its counters; empty until they are known.
    pub columns: Vec<String>,
    /// Time in ms on the trial's clock, then one value per column; `None` is a gap.
    pub rows: Vec<(f64, Vec<Option<f64>>)>,
    /// Whether more data may be available at once.
    pub more: bool,
}

#[derive(Debug)]
struct Trial {
    folders: [PathBuf; 2],
    windows: Tail,
    hlog: Tail,
    monitor: Tail,
    columns: Vec<String>,
}

impl Follow {
    /// Begins to read the archive in `dir`.
    ///
    /// # Errors
    /// [`ArchiveError::NotAnArchive`], [`ArchiveError::Version`], [`ArchiveError::Damaged`].
    pub fn open(dir: &Path) -> Result<Self, ArchiveError> {
        let path = dir.join(names::MANIFEST);
        if !path.exists() {
            return Err(ArchiveError::NotAnArchive {
                path: dir.to_path_buf(),
            });
        }
        let bytes = wire::read(&path)?;
        let ManifestFile { manifest, .. } = wire::versioned(&path, &bytes, ARCHIVE_SCHEMA)?;
        Ok(Self {
            dir: dir.to_path_buf(),
            manifest,
            events: Tail::default(),
            trial: None,
        })
    }

    /// The archive's folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns the manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the current plan; the plan of a search grows.
    ///
    /// # Errors
    /// If it can't be read or is not JSON.
    pub fn plan(&self) -> Result<Value, ArchiveError> {
        let path = self.dir.join(names::PLAN);
        wire::json(&path, &wire::read(&path)?)
    }

    /// Returns the events since the last poll. Lines with unknown events are skipped.
    ///
    /// # Errors
    /// [`ArchiveError::Read`].
    pub fn events(&mut self) -> Result<Vec<EventLine>, ArchiveError> {
        let lines = self.events.lines(&[self.dir.join(names::EVENTS)])?;
        let known = lines.iter().filter_map(|l| serde_json::from_slice(l).ok());
        Ok(known.collect())
    }

    /// Returns the incomplete trial that began last, by its folder; for archives without events.
    ///
    /// # Errors
    /// [`ArchiveError::Read`].
    pub fn under_way(&self) -> Result<Option<u32>, ArchiveError> {
        let folders = trial_folders(&self.dir)?.into_iter();
        Ok(folders.filter(|(_, partial)| *partial).map(|f| f.0).max())
    }

    /// Returns the raw facts of a trial; `None` until it is complete.
    ///
    /// # Errors
    /// [`ArchiveError::Read`], [`ArchiveError::Version`], [`ArchiveError::Damaged`].
    pub fn record(&self, id: u32) -> Result<Option<TrialRecord>, ArchiveError> {
        let path = names::trial_folder(&self.dir, id).join(names::TRIAL);
        if !path.exists() {
            return Ok(None);
        }
        let TrialFile { record, .. } = wire::versioned(&path, &wire::read(&path)?, TRIAL_SCHEMA)?;
        Ok(Some(record))
    }

    /// Starts to read the growth of this trial, from its beginning.
    pub fn begin(&mut self, id: u32) {
        self.trial = Some(Trial {
            folders: [
                names::partial_folder(&self.dir, id),
                names::trial_folder(&self.dir, id),
            ],
            windows: Tail::default(),
            hlog: Tail::default(),
            monitor: Tail::default(),
            columns: Vec::new(),
        });
    }

    /// Returns the data added to the trial since the last poll; empty if none was begun.
    ///
    /// # Errors
    /// [`ArchiveError::Read`]; [`ArchiveError::Damaged`] names the file.
    pub fn growth(&mut self) -> Result<Growth, ArchiveError> {
        self.trial
            .as_mut()
            .map_or_else(|| Ok(Growth::default()), Trial::growth)
    }
}

impl Trial {
    fn paths(&self, name: &str) -> [PathBuf; 2] {
        self.folders.each_ref().map(|folder| folder.join(name))
    }

    fn growth(&mut self) -> Result<Growth, ArchiveError> {
        let mut growth = Growth::default();
        // Histograms are flushed right after the window that they belong to. If they are read after it, few
        // windows lack theirs in a poll.
        let (windows, hlog, monitor) = (names::WINDOWS, names::HLOG, names::MONITOR);
        let [path, _] = self.paths(windows);
        for line in self.windows.lines(&self.paths(windows))? {
            let window = serde_json::from_slice(&line);
            growth
                .windows
                .push(window.map_err(|e| ArchiveError::damaged(&path, None, e))?);
        }
        let [path, _] = self.paths(hlog);
        let mut decoder = hlog::Decoder::default();
        for line in self.hlog.lines(&self.paths(hlog))? {
            let interval = decoder.line(&line);
            growth
                .intervals
                .extend(interval.map_err(|p| ArchiveError::damaged(&path, None, p))?);
        }
        let [path, _] = self.paths(monitor);
        let lines = self.monitor.lines(&self.paths(monitor))?;
        let mut rows = lines.iter();
        if self.columns.is_empty()
            && let Some(header) = rows.next()
        {
            self.columns = monitor::parse(&path, header)?.columns;
        }
        for row in rows {
            growth.rows.extend(monitor::row_of(&path, row)?);
        }
        growth.columns.clone_from(&self.columns);
        growth.more = [&self.windows, &self.hlog, &self.monitor]
            .iter()
            .any(|tail| tail.was_cut);
        Ok(growth)
    }
}

/// A growing file, read by lines.
#[derive(Debug, Default)]
struct Tail {
    file: Option<File>,
    /// The start of a line whose end is not yet written.
    partial: Vec<u8>,
    was_cut: bool,
}

impl Tail {
    /// Returns the whole lines since the last poll, with their ends, of the first of these files that
    /// exists; none if no file does.
    fn lines(&mut self, paths: &[PathBuf]) -> Result<Vec<Vec<u8>>, ArchiveError> {
        if self.file.is_none() {
            self.file = open(paths)?;
        }
        self.was_cut = false;
        let Some(file) = &mut self.file else {
            return Ok(Vec::new());
        };
        let read = file.take(MOST_BYTES).read_to_end(&mut self.partial);
        let read = read.map_err(ArchiveError::read(&paths[0]))?;
        self.was_cut = read as u64 == MOST_BYTES;
        if self.partial.len() as u64 > 4 * MOST_BYTES {
            let problem = "a line in it is longer than 64 MiB";
            return Err(ArchiveError::damaged(&paths[0], None, problem));
        }
        let end = self.partial.iter().rposition(|byte| *byte == b'\n');
        let rest = self.partial.split_off(end.map_or(0, |at| at + 1));
        let whole = std::mem::replace(&mut self.partial, rest);
        let lines = whole.split_inclusive(|byte| *byte == b'\n');
        Ok(lines.map(<[u8]>::to_vec).collect())
    }
}

fn open(paths: &[PathBuf]) -> Result<Option<File>, ArchiveError> {
    for path in paths {
        match File::open(path) {
            Ok(file) => return Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(ArchiveError::read(path)(error)),
        }
    }
    Ok(None)
}
