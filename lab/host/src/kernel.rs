//! Settings of the kernel during a run: journalled, applied for a trial, restored after it. The same journal has the
//! folders of file systems that trials make.
//!
//! The journal knows no trials, and this module does not know its format: a run journals the old values of all files in
//! its plan before it changes the first, and restores them when it ends. The latency limit of cores is in no journal:
//! the kernel drops it with the process that requested it.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use lab_study::plan::Plan;
use lab_study::{CPU_LATENCY, KernelSetting};

use crate::HostError;
use crate::journal::{Changes, Entry, Journal};
use crate::latency::{self, Latency};
use crate::sysctl::{read, write};

/// Pairs of which the kernel keeps only one, the other being 0: setting one clears the other, and some reject 0.
const EITHER: [(&str, &str); 2] = [
    ("/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"),
    (
        "/proc/sys/vm/dirty_background_bytes",
        "/proc/sys/vm/dirty_background_ratio",
    ),
];

/// The kernel settings of a run. Dropped, the old values are restored.
#[derive(Debug)]
pub struct Kernel {
    /// `None` where the plan changes no file and makes no file system.
    journal: Option<Journal>,
    /// Set during a trial that requests it. It ends with its process, and is in no journal.
    latency: Mutex<Option<Latency>>,
}

/// Settings that can't be applied here, with the cause; one sentence per file.
pub fn check(plan: &Plan) -> Vec<String> {
    unusable(settings(plan))
}

/// Like [`check`], for settings outside a plan.
pub fn unusable<'s>(settings: impl Iterator<Item = &'s KernelSetting>) -> Vec<String> {
    let mut problems: BTreeMap<&str, String> = BTreeMap::new();
    for setting in settings {
        if let Err(cause) = usable(&setting.path) {
            let what = format!("the kernel setting {}: {cause}", setting.name);
            problems.entry(&setting.path).or_insert(what);
        }
    }
    problems.into_values().collect()
}

impl Kernel {
    /// Journals the old values of all settings of the plan, and the folders of its file systems; then applies each of
    /// its values once, so that a value which the kernel refuses ends the run before its first trial.
    pub fn begin(state: &Path, plan: &Plan, disks: Vec<PathBuf>) -> Result<Self, HostError> {
        Self::of(state, settings(plan), disks)
    }

    /// Like [`Self::begin`], for settings outside a plan.
    pub fn of<'s>(
        state: &Path,
        settings: impl Iterator<Item = &'s KernelSetting>,
        disks: Vec<PathBuf>,
    ) -> Result<Self, HostError> {
        let mut tried: Vec<&KernelSetting> = settings.collect();
        let mut entries: Vec<Entry> = Vec::new();
        for setting in tried.iter().filter(|setting| setting.path != CPU_LATENCY) {
            if entries.iter().all(|entry| entry.path != setting.path) {
                entries.push(entry(setting)?);
            }
        }
        let journal = match entries.is_empty() && disks.is_empty() {
            true => None,
            false => Some(Journal::begin(state, Changes { entries, disks })?),
        };
        let kernel = Self {
            journal,
            latency: Mutex::default(),
        };
        tried.sort();
        tried.dedup();
        for setting in tried {
            kernel.set(setting)?;
        }
        kernel.put_back()?;
        Ok(kernel)
    }

    /// Applies the settings of a trial. Returns the values in force by name, as the kernel reports them.
    pub fn apply(&self, settings: &[KernelSetting]) -> Result<BTreeMap<String, String>, HostError> {
        let mut in_force = BTreeMap::new();
        for setting in settings {
            self.set(setting)?;
        }
        for setting in settings {
            let value = read(&setting.path).map_err(|source| refused(setting, source))?;
            in_force.insert(setting.name.clone(), value);
        }
        Ok(in_force)
    }

    fn set(&self, setting: &KernelSetting) -> Result<(), HostError> {
        let refused = |source| refused(setting, source);
        if setting.path == CPU_LATENCY {
            let asked = Latency::ask(&setting.value).map_err(refused)?;
            self.have(Some(asked));
            return Ok(());
        }
        write(&setting.path, &setting.value).map_err(refused)
    }

    fn have(&self, latency: Option<Latency>) {
        let mut had = self.latency.lock().unwrap_or_else(PoisonError::into_inner);
        *had = latency;
    }

    /// Restores the old values; the journal stays for the next trial.
    pub fn put_back(&self) -> Result<(), HostError> {
        self.have(None);
        match &self.journal {
            Some(journal) => journal.put_back(),
            None => Ok(()),
        }
    }

    /// Restores the old values and removes the journal.
    pub fn finish(mut self) -> Result<(), HostError> {
        match self.journal.take() {
            Some(journal) => journal.finish(),
            None => Ok(()),
        }
    }
}

fn settings(plan: &Plan) -> impl Iterator<Item = &KernelSetting> {
    plan.every_trial().flat_map(|trial| &trial.host.kernel)
}

/// The old value, with that of the file which changes with it.
fn entry(setting: &KernelSetting) -> Result<Entry, HostError> {
    let read = |path: &str| read(path).map_err(|source| refused(setting, source));
    let along = EITHER
        .iter()
        .find_map(|(a, b)| match setting.path.as_str() {
            path if path == *a => Some(*b),
            path if path == *b => Some(*a),
            _ => None,
        });
    // Of the pair, the one that is not 0 must be written.
    let old = read(&setting.path)?;
    let written = match along {
        Some(along) if old == "0" => (along.to_owned(), read(along)?),
        _ => (setting.path.clone(), old),
    };
    Ok(Entry {
        path: setting.path.clone(),
        restore: written.0,
        old: written.1,
    })
}

fn refused(setting: &KernelSetting, source: io::Error) -> HostError {
    HostError::Kernel {
        name: setting.name.clone(),
        value: setting.value.clone(),
        source,
    }
}

/// Checks that a setting can be read, so that it can be restored, and written. Opening a file of the kernel's for
/// writing changes nothing.
fn usable(path: &str) -> Result<(), String> {
    let canonical = std::fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file {path}"),
        _ => format!("{path} can't be reached: {error}"),
    })?;
    match path {
        CPU_LATENCY => latency::usable()?,
        _ => {
            if !canonical.starts_with("/proc/sys") && !canonical.starts_with("/sys") {
                return Err(format!("{path} leads to {}", canonical.display()));
            }
            if !canonical.is_file() {
                return Err(format!("{path} is a folder"));
            }
            read(path).map_err(|error| {
                format!("{path} can't be read, so its value could not be put back: {error}")
            })?;
        }
    }
    match OpenOptions::new().write(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(format!(
            "{path} can't be written: {error} (root may, mostly)"
        )),
        Err(error) => Err(format!("{path} can't be written: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_set_is_said_with_its_cause() {
        let check = |path: &str, expected: &str| {
            let said = usable(path).unwrap_err();
            assert!(said.contains(expected), "{path}: {said}");
        };
        check("/proc/sys/net/ipv4/nothing_here", "there is no file");
        check("/proc/sys/net/ipv4", "is a folder");
        check("/proc/sys/kernel/osrelease", "can't be written");
        check("/proc/self/comm", "leads to /proc/");
    }

    #[test]
    fn what_cores_may_take_to_wake_is_held_for_a_trial_and_is_in_no_journal() {
        let Some(asked) = latency::odd(18_047) else {
            return;
        };
        let state = tempfile::tempdir().unwrap();
        let setting = KernelSetting {
            name: CPU_LATENCY.to_owned(),
            path: CPU_LATENCY.to_owned(),
            value: asked.to_string(),
        };
        let kernel = Kernel::of(state.path(), [&setting].into_iter(), Vec::new()).unwrap();
        assert_ne!(read(CPU_LATENCY).unwrap(), setting.value, "no trial yet");
        let in_force = kernel.apply(std::slice::from_ref(&setting)).unwrap();
        // Another process may request less.
        assert!(in_force[CPU_LATENCY].parse::<i32>().unwrap() <= asked);
        kernel.put_back().unwrap();
        assert_ne!(
            read(CPU_LATENCY).unwrap(),
            setting.value,
            "the trial is over"
        );
        assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
        kernel.finish().unwrap();
    }
}
