//! Settings of the kernel during a run: journalled, applied for a trial, put back after it. The same journal holds
//! the folders of file systems that trials make.
//!
//! The journal knows no trials, and this knows no journal's form: a run journals the old values of
//! all files that its plan names before it changes the first, and takes them back when it ends.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use lab_study::KernelSetting;
use lab_study::plan::Plan;

use crate::HostError;
use crate::journal::{Changes, Entry, Journal};
use crate::sysctl::{read, write};

/// Pairs of which the kernel keeps only one, the other being 0: setting one clears the other, and
/// 0 can't be written to some of them.
const EITHER: [(&str, &str); 2] = [
    ("/proc/sys/vm/dirty_bytes", "/proc/sys/vm/dirty_ratio"),
    (
        "/proc/sys/vm/dirty_background_bytes",
        "/proc/sys/vm/dirty_background_ratio",
    ),
];

/// The kernel settings of a run. Dropped, the old values are put back.
#[derive(Debug)]
pub struct Kernel {
    /// `None` where the plan sets nothing and makes no file system.
    journal: Option<Journal>,
}

/// What can't be set here, with the cause; one sentence per file.
pub fn check(plan: &Plan) -> Vec<String> {
    unusable(settings(plan))
}

/// The same of settings that no plan has.
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
    /// Journals the old values of all that the plan sets, and the folders that file systems are made in;
    /// then tries each of its values once, so that one which the kernel refuses ends the run before its
    /// first trial.
    pub fn begin(state: &Path, plan: &Plan, disks: Vec<PathBuf>) -> Result<Self, HostError> {
        Self::of(state, settings(plan), disks)
    }

    /// The same of settings that no plan has.
    pub fn of<'s>(
        state: &Path,
        settings: impl Iterator<Item = &'s KernelSetting>,
        disks: Vec<PathBuf>,
    ) -> Result<Self, HostError> {
        let mut tried: Vec<&KernelSetting> = settings.collect();
        let mut entries: Vec<Entry> = Vec::new();
        for setting in &tried {
            if entries.iter().all(|entry| entry.path != setting.path) {
                entries.push(entry(setting)?);
            }
        }
        if entries.is_empty() && disks.is_empty() {
            return Ok(Self { journal: None });
        }
        let kernel = Self {
            journal: Some(Journal::begin(state, Changes { entries, disks })?),
        };
        tried.sort();
        tried.dedup();
        for setting in tried {
            apply(setting)?;
        }
        kernel.put_back()?;
        Ok(kernel)
    }

    /// Applies the settings of a trial. The values in force by name, as the kernel tells them.
    pub fn apply(&self, settings: &[KernelSetting]) -> Result<BTreeMap<String, String>, HostError> {
        let mut in_force = BTreeMap::new();
        for setting in settings {
            apply(setting)?;
        }
        for setting in settings {
            let value = read(&setting.path).map_err(|source| refused(setting, source))?;
            in_force.insert(setting.name.clone(), value);
        }
        Ok(in_force)
    }

    /// Puts the old values back; the journal stays for the next trial.
    pub fn put_back(&self) -> Result<(), HostError> {
        match &self.journal {
            Some(journal) => journal.put_back(),
            None => Ok(()),
        }
    }

    /// Puts the old values back and ends the journal.
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

/// The old value, with that of the file which changes along.
fn entry(setting: &KernelSetting) -> Result<Entry, HostError> {
    let read = |path: &str| read(path).map_err(|source| refused(setting, source));
    let along = EITHER
        .iter()
        .find_map(|(a, b)| match setting.path.as_str() {
            path if path == *a => Some(*b),
            path if path == *b => Some(*a),
            _ => None,
        });
    // Of the pair, the one that is not 0 is the one to write.
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

fn apply(setting: &KernelSetting) -> Result<(), HostError> {
    write(&setting.path, &setting.value).map_err(|source| refused(setting, source))
}

fn refused(setting: &KernelSetting, source: io::Error) -> HostError {
    HostError::Kernel {
        name: setting.name.clone(),
        value: setting.value.clone(),
        source,
    }
}

/// Whether a setting can be read, so that it can be put back, and written. Opening a file of the
/// kernel's for writing changes nothing.
fn usable(path: &str) -> Result<(), String> {
    let canonical = std::fs::canonicalize(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no file {path}"),
        _ => format!("{path} can't be reached: {error}"),
    })?;
    if !canonical.starts_with("/proc/sys") && !canonical.starts_with("/sys") {
        return Err(format!("{path} leads to {}", canonical.display()));
    }
    if !canonical.is_file() {
        return Err(format!("{path} is a folder"));
    }
    read(path).map_err(|error| {
        format!("{path} can't be read, so its value could not be put back: {error}")
    })?;
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
}
