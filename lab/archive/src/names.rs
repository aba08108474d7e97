//! Names of the files and folders of an archive. It touches no disk.

use std::path::{Component, Path, PathBuf};

use crate::ArchiveError;

pub(crate) const MANIFEST: &str = "manifest.json";
pub(crate) const PLAN: &str = "plan.json";
/// Field of a plan whose trials are chosen during the run.
pub(crate) const PLAN_SEARCH: &str = "search";
/// Field of a plan's trials.
pub(crate) const PLAN_TRIALS: &str = "trials";
/// How a search ended, in a plan.
pub(crate) const PLAN_SEARCH_ENDED: &str = "search_ended";
pub(crate) const EVENTS: &str = "events.jsonl";
pub(crate) const FILES: &str = "files";
pub(crate) const TRIALS: &str = "trials";
pub(crate) const TRIAL: &str = "trial.json";
pub(crate) const WINDOWS: &str = "windows.jsonl";
pub(crate) const HLOG: &str = "steps.hlog";
pub(crate) const MONITOR: &str = "monitor.csv";
/// The CPU profile of a trial: pprof, compressed.
pub(crate) const CPU_PROFILE: &str = "cpu.pb.gz";
/// The profile of waits: pprof, compressed.
pub(crate) const WAITS: &str = "waits.pb.gz";
/// The time of groups of threads.
pub(crate) const THREADS: &str = "threads.csv";
/// Scheduling latency of groups of threads.
pub(crate) const LATENCY: &str = "latency.hlog";
/// The counters that a trial's system reported, line by line.
pub(crate) const ASKED: &str = "asked.jsonl";
/// No larger profile, and no larger [`ASKED`], is written or read.
pub(crate) const MOST_PROFILE_BYTES: u64 = 16 << 20;
pub(crate) const CLOCKS: &str = "clocks.jsonl";
pub(crate) const SYSTEM_LOG: &str = "system.log";
const PARTIAL: &str = ".partial";

pub(crate) fn trial_folder(dir: &Path, id: u32) -> PathBuf {
    dir.join(TRIALS).join(format!("{id:03}"))
}

pub(crate) fn partial_folder(dir: &Path, id: u32) -> PathBuf {
    dir.join(TRIALS).join(format!("{id:03}{PARTIAL}"))
}

/// Parses a folder's name: the trial, and whether it is partial.
pub(crate) fn parse_trial_folder(name: &str) -> Option<(u32, bool)> {
    let (digits, partial) = match name.strip_suffix(PARTIAL) {
        Some(digits) => (digits, true),
        None => (name, false),
    };
    let id: u32 = digits.parse().ok()?;
    (format!("{id:03}") == digits).then_some((id, partial))
}

/// Returns the path of a kept file: always below `files/`, whatever its name contains.
pub(crate) fn kept_file(dir: &Path, name: &str) -> Result<PathBuf, ArchiveError> {
    let plain = Path::new(name)
        .components()
        .all(|c| matches!(c, Component::Normal(_)));
    if name.is_empty() || !plain {
        return Err(ArchiveError::Name {
            name: name.to_owned(),
        });
    }
    Ok(dir.join(FILES).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_names_read_back() {
        for id in [1, 42, 999, 1000, u32::MAX] {
            let name = |p: PathBuf| p.file_name().unwrap().to_str().unwrap().to_owned();
            assert_eq!(
                parse_trial_folder(&name(trial_folder(Path::new("r"), id))),
                Some((id, false))
            );
            assert_eq!(
                parse_trial_folder(&name(partial_folder(Path::new("r"), id))),
                Some((id, true))
            );
        }
        for other in ["", "1", "0001", "+01", ".partial", "001.old", "x"] {
            assert_eq!(parse_trial_folder(other), None, "{other}");
        }
    }

    #[test]
    fn kept_files_stay_below_their_folder() {
        let dir = Path::new("r");
        assert_eq!(
            kept_file(dir, "a/b.yaml").unwrap(),
            Path::new("r/files/a/b.yaml")
        );
        for bad in ["", "../x", "/etc/passwd", "a/../../x", "./x"] {
            assert!(kept_file(dir, bad).is_err(), "{bad}");
        }
    }
}
