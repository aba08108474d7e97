//! The cores that processes may use.

use std::collections::BTreeSet;
use std::fs;

use procfs::process::Process;

/// Cores that any thread of these processes may use, of those that are online.
pub(crate) fn of(processes: &[i32]) -> Vec<u32> {
    let mut found = BTreeSet::new();
    for pid in processes {
        let Ok(process) = Process::new(*pid) else {
            continue;
        };
        let Ok(tasks) = process.tasks() else { continue };
        for task in tasks.flatten() {
            let status = task.status().ok();
            let allowed = status.and_then(|status| status.cpus_allowed_list);
            found.extend(
                allowed
                    .into_iter()
                    .flatten()
                    .flat_map(|(from, to)| from..=to),
            );
        }
    }
    let online = fs::read_to_string("/sys/devices/system/cpu/online");
    let online = online.ok().map(|list| parse(&list));
    found.retain(|core| online.as_ref().is_none_or(|online| online.contains(core)));
    found.into_iter().collect()
}

/// `0-3,8`.
fn parse(list: &str) -> BTreeSet<u32> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some(from.parse::<u32>().ok()?..=to.parse::<u32>().ok()?.min(1 << 16))
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores() {
        let cores: Vec<u32> = parse("0-2,5,8-9\n").into_iter().collect();
        assert_eq!(cores, [0, 1, 2, 5, 8, 9]);
        assert!(parse("").is_empty());
    }

    #[test]
    fn this_process_may_use_some() {
        assert!(!of(&[std::process::id() as i32]).is_empty());
        assert!(of(&[-1]).is_empty());
    }
}
