//! Cores of the system under test.

use std::collections::BTreeMap;

use lab_archive::Environment;

/// Cores that the system may use.
fn system_cores(environment: &Environment) -> u64 {
    match environment.pinning.system.len() {
        0 => u64::from(environment.cores.max(1)),
        pinned => pinned as u64,
    }
}

/// Cores of the system in a trial: those that its settings name, else those of the run.
#[must_use]
pub fn cores_of_trial(environment: &Environment, settings: &BTreeMap<String, String>) -> u64 {
    let named = settings.get("cpus").and_then(|words| {
        let list = words
            .strip_prefix("cores ")
            .or(words.strip_prefix("core "))?;
        let cores = list.split(", ").map(str::parse::<u32>);
        cores.collect::<Result<Vec<_>, _>>().ok()
    });
    named.map_or_else(|| system_cores(environment), |cores| cores.len() as u64)
}
