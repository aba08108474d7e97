//! Texts that several commands print: durations, restored settings, removed file systems.

use std::path::Path;
use std::time::Duration;

use lab_estimate::duration;
use lab_host::journal::Restored;

/// Formats whole seconds with their two largest units.
pub fn whole_seconds(time: Duration) -> String {
    duration(Duration::from_secs(time.as_secs_f64().round() as u64))
}

/// Describes a restored setting, in a sentence.
pub fn restored(restored: &Restored) -> String {
    let Restored {
        path,
        found,
        value,
        pid,
    } = restored;
    format!("put {path} back to `{value}`: a killed run (process {pid}) had left it at `{found}`")
}

/// Describes a removed file system, in a sentence.
pub fn cleared(path: &Path, pid: u32) -> String {
    let path = path.display();
    format!("took away the file system at {path}, which a killed run (process {pid}) had made")
}

/// Describes a kernel setting of a killed run that no longer exists.
pub fn gone(path: &str, value: &str) -> String {
    format!(
        "{path} is gone: its old value `{value}` can't be put back (`plimsoll restore` forgets it)"
    )
}
