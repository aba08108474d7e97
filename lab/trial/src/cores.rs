//! Cores of the system under test.

use std::collections::BTreeMap;

use lab_archive::{Environment, MACHINE_OF};

/// Returns the cores that the system may use on the conducting machine.
fn system_cores(environment: &Environment) -> u64 {
    match environment.pinning.system.len() {
        0 => u64::from(environment.cores.max(1)),
        pinned => pinned as u64,
    }
}

/// Returns the cores of the system in a trial: those in its settings, else those of the run; `None` for a system on
/// another machine without this setting, and for one on several machines.
#[must_use]
pub fn cores_of_trial(
    environment: &Environment,
    settings: &BTreeMap<String, String>,
) -> Option<u64> {
    // Cores of several machines don't add up: load that fills one machine leaves the others free.
    if settings.keys().any(|name| name.starts_with(MACHINE_OF)) {
        return None;
    }
    let told = settings.get("cpus").and_then(|words| told(words));
    let here = || (!settings.contains_key("on")).then(|| system_cores(environment));
    told.or_else(here)
}

/// Parses the number of cores: `cores 0, 2`, or `2 cores` with more words after a comma.
fn told(words: &str) -> Option<u64> {
    let list = words.strip_prefix("cores ").or(words.strip_prefix("core "));
    if let Some(list) = list {
        let cores: Result<Vec<u32>, _> = list.split(", ").map(str::parse).collect();
        return Some(cores.ok()?.len() as u64);
    }
    let (count, _) = words.split(',').next()?.split_once(" core")?;
    count.parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use lab_archive::Pinning;

    use super::*;

    #[test]
    fn a_system_on_another_machine_has_that_ones_cores() {
        let environment = Environment {
            kernel: String::new(),
            cpu: String::new(),
            cores: 4,
            memory_mb: 0,
            os: String::new(),
            data_filesystem: String::new(),
            plimsoll_version: String::new(),
            pinning: Pinning {
                generator: vec![0, 1],
                system: vec![2, 3],
                shared: false,
            },
        };
        let of = |settings: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            cores_of_trial(&environment, &settings.iter().map(own).collect())
        };
        assert_eq!(of(&[]), Some(2));
        assert_eq!(of(&[("cpus", "core 3")]), Some(1));
        assert_eq!(of(&[("cpus", "cores 0, 1, 3")]), Some(3));
        assert_eq!(of(&[("cpus", "not pinned: attached")]), Some(2));
        let far = |cpus| of(&[("on", "db-1"), ("cpus", cpus)]);
        assert_eq!(far("32 cores"), Some(32));
        assert_eq!(far("1 core"), Some(1));
        assert_eq!(far("8 cores, not pinned: attached"), Some(8));
        assert_eq!(far("not pinned: attached"), None);
        assert_eq!(of(&[("on", "db-1")]), None);
        assert_eq!(of(&[("machine of db", "db-1"), ("cpus", "core 3")]), None);
    }
}
