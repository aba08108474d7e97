//! Writes an archive: complete after every trial, resumable after a kill.
//!
//! A trial is written in `trials/NNN.partial`, synced, and renamed. Whatever happens before the
//! rename leaves the finished trials as they were.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hdrhistogram::Histogram;
use serde_json::Value;

use crate::hlog::{self, Encoder};
use crate::sink::{self, Sink};
use crate::wire::{self, ManifestFile, Sizes, TrialFile};
use crate::{
    ARCHIVE_SCHEMA, ArchiveError, ClockLine, Environment, Latencies, Manifest, Pinning, Series,
    TRIAL_SCHEMA, ThreadsLine, TrialRecord, WindowLine, monitor, names, waits,
};

/// The archive of a run, being written. Holds a lock on its folder.
#[derive(Debug)]
pub struct RunWriter {
    dir: PathBuf,
    /// Its lock ends with it, also when the process is killed.
    _lock: File,
}

impl RunWriter {
    /// Begins an archive in `dir`, which must be empty or absent.
    ///
    /// `files` are the study, the workload, and published figures, byte for byte. The manifest's
    /// `schema` and `files` are set here.
    ///
    /// # Errors
    /// [`ArchiveError::NotEmpty`], [`ArchiveError::Busy`], [`ArchiveError::Name`] for a file name
    /// that leads out of the archive, [`ArchiveError::Write`].
    pub fn create(
        dir: &Path,
        manifest: &Manifest,
        plan: &Value,
        files: &[(String, Vec<u8>)],
    ) -> Result<Self, ArchiveError> {
        sink::folder(dir)?;
        let lock = lock(dir)?;
        let mut entries = fs::read_dir(dir).map_err(ArchiveError::read(dir))?;
        if entries.next().is_some() {
            return Err(ArchiveError::NotEmpty {
                path: dir.to_path_buf(),
            });
        }
        let writer = Self {
            dir: dir.to_path_buf(),
            _lock: lock,
        };
        writer.write_head(manifest, plan, files)?;
        Ok(writer)
    }

    /// Removes all trials and writes another plan of the same study, for trials that can't run as
    /// planned.
    ///
    /// # Errors
    /// As of [`RunWriter::create`], without those of its folder.
    pub fn begin_again(
        &self,
        manifest: &Manifest,
        plan: &Value,
        files: &[(String, Vec<u8>)],
    ) -> Result<(), ArchiveError> {
        for (id, partial) in self.folders()? {
            sink::remove_folder(&match partial {
                true => names::partial_folder(&self.dir, id),
                false => names::trial_folder(&self.dir, id),
            })?;
        }
        self.write_head(manifest, plan, files)
    }

    /// Writes all but the trials; the manifest last.
    fn write_head(
        &self,
        manifest: &Manifest,
        plan: &Value,
        files: &[(String, Vec<u8>)],
    ) -> Result<(), ArchiveError> {
        let dir = &self.dir;
        let mut sizes = Sizes::new();
        for (name, bytes) in files {
            keep_file(dir, name, bytes)?;
            sizes.insert(format!("{}/{name}", names::FILES), bytes.len() as u64);
        }
        let grows = grows(plan);
        let plan = pretty(&dir.join(names::PLAN), plan)?;
        sink::publish(&dir.join(names::PLAN), &plan)?;
        if !grows {
            sizes.insert(names::PLAN.to_owned(), plan.len() as u64);
        }
        sink::folder(&dir.join(names::TRIALS))?;
        let mut manifest = manifest.clone();
        ARCHIVE_SCHEMA.clone_into(&mut manifest.schema);
        manifest.files = files.iter().map(|(name, _)| name.clone()).collect();
        let path = dir.join(names::MANIFEST);
        let bytes = pretty(
            &path,
            &ManifestFile {
                manifest,
                file_bytes: sizes,
            },
        )?;
        sink::publish(&path, &bytes)
    }

    /// Resumes the archive in `dir`, made from the same study, seed, speed, plan, and files.
    /// Removes the remains of an unfinished trial of a killed run.
    ///
    /// # Errors
    /// [`ArchiveError::NotAnArchive`], [`ArchiveError::Different`], [`ArchiveError::Changed`],
    /// [`ArchiveError::Busy`], and the errors of reading and writing.
    pub fn open_for_resume(
        dir: &Path,
        manifest: &Manifest,
        plan: &Value,
        files: &[(String, Vec<u8>)],
    ) -> Result<Self, ArchiveError> {
        let path = dir.join(names::MANIFEST);
        if !path.exists() {
            return Err(ArchiveError::NotAnArchive {
                path: dir.to_path_buf(),
            });
        }
        let lock = lock(dir)?;
        let bytes = wire::read(&path)?;
        let archived: ManifestFile = wire::versioned(&path, &bytes, ARCHIVE_SCHEMA)?;
        same_run(dir, &archived, manifest, plan, files)?;
        let writer = Self {
            dir: dir.to_path_buf(),
            _lock: lock,
        };
        for (id, partial) in writer.folders()? {
            if partial {
                sink::remove_folder(&names::partial_folder(dir, id))?;
            }
        }
        Ok(writer)
    }

    /// The run's folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Trials that are complete.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub fn completed(&self) -> Result<BTreeSet<u32>, ArchiveError> {
        let folders = self.folders()?.into_iter().filter(|(_, partial)| !partial);
        let complete = |id: &u32| {
            names::trial_folder(&self.dir, *id)
                .join(names::TRIAL)
                .is_file()
        };
        Ok(folders.map(|(id, _)| id).filter(complete).collect())
    }

    /// Returns the trial of the plan that a complete trial repeats; `None` for the plan's own trials.
    ///
    /// # Errors
    /// If its record can't be read.
    pub fn attempt_of(&self, id: u32) -> Result<Option<u32>, ArchiveError> {
        let path = names::trial_folder(&self.dir, id).join(names::TRIAL);
        let trial: TrialFile = wire::versioned(&path, &wire::read(&path)?, TRIAL_SCHEMA)?;
        Ok(trial.record.attempt_of)
    }

    /// Returns the plan in the archive.
    ///
    /// # Errors
    /// If it can't be read or is not JSON.
    pub fn plan(&self) -> Result<Value, ArchiveError> {
        let path = self.dir.join(names::PLAN);
        wire::json(&path, &wire::read(&path)?)
    }

    /// Replaces the plan in the archive, whole or not at all. A plan whose trials are chosen during
    /// the run grows by a trial.
    ///
    /// # Errors
    /// [`ArchiveError::Unwritable`] for a plan that can't grow (it has no `search`), and the
    /// errors of the write.
    pub fn replace_plan(&self, plan: &Value) -> Result<(), ArchiveError> {
        let path = self.dir.join(names::PLAN);
        if !grows(plan) {
            return Err(ArchiveError::unwritable(
                &path,
                "this plan's trials are fixed",
            ));
        }
        sink::publish(&path, &pretty(&path, plan)?)
    }

    /// Begins the trial `id`; an unfinished attempt at it is removed.
    ///
    /// # Errors
    /// [`ArchiveError::TrialComplete`], [`ArchiveError::Write`].
    pub fn trial(&self, id: u32) -> Result<TrialWriter, ArchiveError> {
        if self.completed()?.contains(&id) {
            return Err(ArchiveError::TrialComplete {
                path: self.dir.clone(),
                id,
            });
        }
        let partial = names::partial_folder(&self.dir, id);
        sink::remove_folder(&partial)?;
        sink::remove_folder(&names::trial_folder(&self.dir, id))?;
        sink::folder(&partial)?;
        TrialWriter::begin(partial, names::trial_folder(&self.dir, id), id)
    }

    /// Removes the files of an unfinished trial.
    ///
    /// # Errors
    /// If the folder can't be removed.
    pub fn discard(&self, id: u32) -> Result<(), ArchiveError> {
        sink::remove_folder(&names::partial_folder(&self.dir, id))
    }

    fn folders(&self) -> Result<Vec<(u32, bool)>, ArchiveError> {
        trial_folders(&self.dir)
    }
}

/// Trial folders of an archive: id, and whether it is partial. In no order.
pub(crate) fn trial_folders(dir: &Path) -> Result<Vec<(u32, bool)>, ArchiveError> {
    let trials = dir.join(names::TRIALS);
    let mut found = Vec::new();
    for entry in fs::read_dir(&trials).map_err(ArchiveError::read(&trials))? {
        let name = entry.map_err(ArchiveError::read(&trials))?.file_name();
        found.extend(name.to_str().and_then(names::parse_trial_folder));
    }
    Ok(found)
}

fn lock(dir: &Path) -> Result<File, ArchiveError> {
    let file = File::open(dir).map_err(ArchiveError::read(dir))?;
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => Err(ArchiveError::Busy {
            path: dir.to_path_buf(),
        }),
        // A file system without locks is no reason not to measure.
        Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(file),
    }
}

fn keep_file(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
    let path = names::kept_file(dir, name)?;
    if let Some(parent) = path.parent() {
        sink::folder(parent)?;
    }
    sink::publish(&path, bytes)
}

/// Returns true if trials are added to a plan during the run. All else in it is fixed from the start.
fn grows(plan: &Value) -> bool {
    plan.get(names::PLAN_SEARCH)
        .is_some_and(|search| !search.is_null())
}

/// Without the trials that a search has chosen, and how it ended.
fn fixed_part(plan: &Value) -> Value {
    let mut plan = plan.clone();
    if grows(&plan)
        && let Some(fields) = plan.as_object_mut()
    {
        fields.remove(names::PLAN_TRIALS);
        fields.remove(names::PLAN_SEARCH_ENDED);
    }
    plan
}

fn pretty(path: &Path, value: &impl serde::Serialize) -> Result<Vec<u8>, ArchiveError> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|e| ArchiveError::unwritable(path, e))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The facts that must not change between the trials of a run.
fn machine(manifest: &Manifest) -> String {
    let Environment {
        kernel,
        cpu,
        cores,
        data_filesystem,
        plimsoll_version,
        pinning,
        ..
    } = &manifest.environment;
    let Pinning {
        generator, system, ..
    } = pinning;
    format!(
        "{cores} x {cpu}, {kernel}, data on {data_filesystem}, generator on {generator:?}, system \
         on {system:?}, plimsoll {plimsoll_version}"
    )
}

fn same_run(
    dir: &Path,
    archived: &ManifestFile,
    now: &Manifest,
    plan: &Value,
    files: &[(String, Vec<u8>)],
) -> Result<(), ArchiveError> {
    let old = &archived.manifest;
    let overrides = |m: &Manifest| {
        m.overrides
            .iter()
            .map(|(k, v)| format!("{k}={v}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    if old.study == now.study {
        same_files(dir, files)?;
    }
    let facts = [
        ("study", old.study.clone(), now.study.clone()),
        ("study file", old.file_hash.clone(), now.file_hash.clone()),
        ("seed", old.seed.to_string(), now.seed.to_string()),
        ("speed", old.speed.to_string(), now.speed.to_string()),
        ("list of overrides", overrides(old), overrides(now)),
        ("machine", machine(old), machine(now)),
    ];
    for (what, archived, now) in facts {
        if archived != now {
            let path = dir.to_path_buf();
            return Err(ArchiveError::Different {
                path,
                what,
                archived,
                now,
            });
        }
    }
    let changed = |what| ArchiveError::Changed {
        path: dir.to_path_buf(),
        what,
    };
    let path = dir.join(names::PLAN);
    let old_plan = wire::read_sized(&path, names::PLAN, &archived.file_bytes)?;
    let same = if grows(plan) {
        // Both from text: a number may differ in its last digit when it is read.
        let part = |bytes: &[u8]| Ok::<_, ArchiveError>(fixed_part(&wire::json(&path, bytes)?));
        part(&old_plan)? == part(&pretty(&path, plan)?)?
    } else {
        old_plan == pretty(&path, plan)?
    };
    if !same {
        return Err(changed("the plan that this version makes".to_owned()));
    }
    Ok(())
}

/// Checks that the archive keeps these files in their present form; else returns the first difference.
fn same_files(dir: &Path, files: &[(String, Vec<u8>)]) -> Result<(), ArchiveError> {
    for (name, bytes) in files {
        let kept = wire::read(&names::kept_file(dir, name)?).ok();
        if kept.as_ref() == Some(bytes) {
            continue;
        }
        let kept = kept.as_deref().map(str::from_utf8);
        let (path, file) = (dir.to_path_buf(), name.clone());
        let (Some(Ok(kept)), Ok(text)) = (kept, str::from_utf8(bytes)) else {
            return Err(ArchiveError::Changed { path, what: file });
        };
        let (line, archived, now) = first_difference(kept, text);
        return Err(ArchiveError::Rewritten {
            path,
            file,
            line,
            archived,
            now,
        });
    }
    Ok(())
}

/// The number of the first line in which two texts differ, and both lines as they are shown.
fn first_difference(one: &str, other: &str) -> (usize, String, String) {
    let shown = |line: Option<&str>| match line {
        Some(line) => format!("`{}`", line.trim_matches(' ').replace('\r', "\\r")),
        None => "missing".to_owned(),
    };
    let (mut ones, mut others) = (one.split('\n'), other.split('\n'));
    let mut number = 1;
    loop {
        let (left, right) = (ones.next(), others.next());
        if left != right || left.is_none() {
            return (number, shown(left), shown(right));
        }
        number += 1;
    }
}

/// One trial, being written. Dropped before [`TrialWriter::finish`], it leaves an unfinished
/// attempt that the next one removes.
#[derive(Debug)]
pub struct TrialWriter {
    partial: PathBuf,
    complete: PathBuf,
    id: u32,
    windows: Sink,
    hlog: Sink,
    encoder: Encoder,
    monitor: Option<MonitorSink>,
    clocks: Option<Sink>,
    /// Profiles, and the files that belong to them, by file name.
    profiles: Vec<(&'static str, Sink)>,
}

#[derive(Debug)]
struct MonitorSink {
    sink: Sink,
    columns: usize,
}

impl TrialWriter {
    fn begin(partial: PathBuf, complete: PathBuf, id: u32) -> Result<Self, ArchiveError> {
        let windows = Sink::create(partial.join(names::WINDOWS))?;
        let mut hlog = Sink::create(partial.join(names::HLOG))?;
        hlog.put(hlog::HEADER.as_bytes())?;
        Ok(Self {
            partial,
            complete,
            id,
            windows,
            hlog,
            encoder: Encoder::default(),
            monitor: None,
            clocks: None,
            profiles: Vec::new(),
        })
    }

    /// Writes a measurement of an agent's clock offset.
    ///
    /// # Errors
    /// [`ArchiveError::Write`], for a full disk too.
    pub fn clock(&mut self, line: &ClockLine) -> Result<(), ArchiveError> {
        let path = self.partial.join(names::CLOCKS);
        let mut bytes = serde_json::to_vec(line).map_err(|e| ArchiveError::unwritable(&path, e))?;
        bytes.push(b'\n');
        let sink = match &mut self.clocks {
            Some(sink) => sink,
            none => none.insert(Sink::create(path)?),
        };
        sink.put(&bytes)
    }

    /// Returns the path of the file for the system's output.
    #[must_use]
    pub fn output_path(&self) -> PathBuf {
        self.partial.join(names::SYSTEM_LOG)
    }

    /// Writes a window, and flushes all earlier writes to the operating system.
    ///
    /// # Errors
    /// [`ArchiveError::Write`], for a full disk too.
    pub fn window(&mut self, line: &WindowLine) -> Result<(), ArchiveError> {
        let mut bytes = serde_json::to_vec(line)
            .map_err(|e| ArchiveError::unwritable(self.windows.path(), e))?;
        bytes.push(b'\n');
        self.windows.put(&bytes)?;
        self.windows.flush()?;
        self.hlog.flush()?;
        self.monitor.as_mut().map_or(Ok(()), |m| m.sink.flush())
    }

    /// Writes one interval histogram (µs); times round to whole ms. Skips an empty one.
    ///
    /// # Errors
    /// [`ArchiveError::Write`], for a full disk too.
    pub fn histogram(
        &mut self,
        series: Series,
        start: Duration,
        end: Duration,
        histogram: &Histogram<u64>,
    ) -> Result<(), ArchiveError> {
        if histogram.is_empty() {
            return Ok(());
        }
        let line = self.encoder.line(series, start, end, histogram);
        let line = line.map_err(|e| ArchiveError::unwritable(self.hlog.path(), e))?;
        self.hlog.put(line)
    }

    /// Begins `monitor.csv` with the names of its counters.
    ///
    /// # Errors
    /// [`ArchiveError::Write`]; [`ArchiveError::Unwritable`] if there is a header already.
    pub fn monitor_header(&mut self, columns: &[String]) -> Result<(), ArchiveError> {
        let path = self.partial.join(names::MONITOR);
        if self.monitor.is_some() {
            return Err(ArchiveError::unwritable(&path, "it has a header already"));
        }
        let mut sink = Sink::create(path)?;
        let header = std::iter::once(monitor::TIME.to_owned()).chain(columns.iter().cloned());
        let line = monitor::line(header).map_err(|e| ArchiveError::unwritable(sink.path(), e))?;
        sink.put(&line)?;
        self.monitor = Some(MonitorSink {
            sink,
            columns: columns.len(),
        });
        Ok(())
    }

    /// Writes one sample; `None` and numbers that are not finite are gaps.
    ///
    /// # Errors
    /// [`ArchiveError::Write`]; [`ArchiveError::Unwritable`] without a header or with another
    /// number of values than the header has.
    pub fn monitor_row(&mut self, t_ms: f64, row: &[Option<f64>]) -> Result<(), ArchiveError> {
        let path = self.partial.join(names::MONITOR);
        let Some(monitor) = &mut self.monitor else {
            return Err(ArchiveError::unwritable(
                &path,
                "a row came before the header",
            ));
        };
        if row.len() != monitor.columns || !t_ms.is_finite() {
            return Err(ArchiveError::unwritable(
                &path,
                "a row does not fit the header",
            ));
        }
        let line = monitor::line(monitor::fields(t_ms, row))
            .map_err(|e| ArchiveError::unwritable(&path, e))?;
        monitor.sink.put(&line)
    }

    /// Writes the CPU profile of the system, a pprof file.
    ///
    /// # Errors
    /// [`ArchiveError::Write`], for a full disk too; [`ArchiveError::Unwritable`] if it is larger than 16 MiB.
    pub fn cpu_profile(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.keep(names::CPU_PROFILE, names::MOST_PROFILE_BYTES, bytes)
    }

    /// Writes the profile of the system's waits, a pprof file.
    ///
    /// # Errors
    /// As [`TrialWriter::cpu_profile`].
    pub fn waits_profile(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.keep(names::WAITS, names::MOST_PROFILE_BYTES, bytes)
    }

    /// Writes the time of groups of threads, in order of time.
    ///
    /// # Errors
    /// As [`TrialWriter::cpu_profile`], with 64 MiB.
    pub fn threads(&mut self, lines: &[ThreadsLine]) -> Result<(), ArchiveError> {
        let bytes = waits::threads(&self.partial.join(names::THREADS), lines)?;
        self.keep(names::THREADS, waits::MOST_BYTES, &bytes)
    }

    /// Writes the scheduling latency of groups of threads in the hold.
    ///
    /// # Errors
    /// As [`TrialWriter::threads`].
    pub fn latency(
        &mut self,
        hold: (Duration, Duration),
        groups: &Latencies,
    ) -> Result<(), ArchiveError> {
        let bytes = waits::latency(&self.partial.join(names::LATENCY), hold, groups)?;
        self.keep(names::LATENCY, waits::MOST_BYTES, &bytes)
    }

    /// Writes the counters that the system reported.
    ///
    /// # Errors
    /// As [`TrialWriter::cpu_profile`].
    pub fn asked(&mut self, bytes: &[u8]) -> Result<(), ArchiveError> {
        self.keep(names::ASKED, names::MOST_PROFILE_BYTES, bytes)
    }

    /// Writes a whole file of at most `most` bytes.
    fn keep(&mut self, name: &'static str, most: u64, bytes: &[u8]) -> Result<(), ArchiveError> {
        let path = self.partial.join(name);
        if bytes.len() as u64 > most {
            let problem = format!("it is larger than {} MiB", most >> 20);
            return Err(ArchiveError::unwritable(&path, problem));
        }
        let mut sink = Sink::create(path)?;
        sink.put(bytes)?;
        self.profiles.push((name, sink));
        Ok(())
    }

    /// Completes the trial: everything is synced, then the folder gets its final name. The
    /// record's `schema` and `id` are set here.
    ///
    /// # Errors
    /// [`ArchiveError::Write`], for a full disk too; the trial then stays unfinished.
    pub fn finish(self, record: &TrialRecord) -> Result<(), ArchiveError> {
        let mut sizes = Sizes::new();
        sizes.insert(names::WINDOWS.to_owned(), self.windows.seal()?);
        sizes.insert(names::HLOG.to_owned(), self.hlog.seal()?);
        if let Some(monitor) = self.monitor {
            sizes.insert(names::MONITOR.to_owned(), monitor.sink.seal()?);
        }
        if let Some(clocks) = self.clocks {
            sizes.insert(names::CLOCKS.to_owned(), clocks.seal()?);
        }
        for (name, sink) in self.profiles {
            sizes.insert(name.to_owned(), sink.seal()?);
        }
        sync_outputs(&self.partial)?;
        let mut record = record.clone();
        TRIAL_SCHEMA.clone_into(&mut record.schema);
        record.id = self.id;
        let path = self.partial.join(names::TRIAL);
        let bytes = pretty(
            &path,
            &TrialFile {
                record,
                file_bytes: sizes,
            },
        )?;
        sink::publish(&path, &bytes)?;
        sink::rename(&self.partial, &self.complete)
    }
}

/// Syncs the outputs of the system, and of its parts on other machines.
fn sync_outputs(folder: &Path) -> Result<(), ArchiveError> {
    let files = std::fs::read_dir(folder).map_err(ArchiveError::write(folder))?;
    for file in files.flatten().map(|file| file.path()) {
        if file.extension().is_some_and(|kind| kind == "log") {
            sync_output(&file)?;
        }
    }
    Ok(())
}

fn sync_output(path: &Path) -> Result<(), ArchiveError> {
    match File::open(path).and_then(|f| f.sync_all()) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(ArchiveError::write(path)(e)),
        _ => Ok(()),
    }
}
