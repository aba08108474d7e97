//! Limits of checks that a study sets.

use std::collections::BTreeMap;
use std::time::Duration;

use lab_language::{Problems, TextError, parsed, units, unknown_name};
use lab_plan::checks::{self, Limit, Limits, Set, Unit};

use crate::file::{At, ChecksFile, LimitFile, Scalar};

/// No limit is longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// Reads the limits of a table. An invalid limit is reported and skipped.
pub(super) fn limits(table: &ChecksFile, problems: &mut Problems) -> Limits {
    let mut limits = BTreeMap::new();
    for (key, written) in table.0.iter() {
        if is_retired(key) {
            limits.insert(key.value.clone(), Set::default());
            continue;
        }
        let Some(limit) = known(key, problems) else {
            continue;
        };
        let set = set(limit, written, problems);
        let in_force = Limits(BTreeMap::from([(key.value.clone(), set)])).of(limit);
        if set.warn.is_some_and(|warn| warn > in_force.invalid) {
            let message = format!("`{}` would warn beyond what invalidates", key.value);
            let problem = key.span.problem(message, "here");
            problems.push(problem.help("a trial that is no measurement warns of nothing"));
        }
        limits.insert(key.value.clone(), set);
    }
    Limits(limits)
}

/// Returns true for a key of an earlier version that nothing judges any more.
fn is_retired(key: &At<String>) -> bool {
    checks::RETIRED
        .iter()
        .any(|(retired, _)| *retired == key.value)
}

fn known(key: &At<String>, problems: &mut Problems) -> Option<&'static Limit> {
    let found = checks::limit(&key.value);
    if found.is_none() {
        let names: Vec<&str> = checks::limits().map(|limit| limit.key).collect();
        let (message, help) = unknown_name("limit", &key.value, &names);
        let problem = key.span.problem(message, "here");
        problems.push(problem.help(help));
    }
    found
}

fn set(limit: &Limit, written: &LimitFile, problems: &mut Problems) -> Set {
    let mut value =
        |at: Option<&At<Scalar>>| parsed(at?, limit.key, |text| figure(limit.unit, text), problems);
    match written {
        LimitFile::Invalid(at) => Set {
            warn: None,
            invalid: value(Some(at)),
        },
        LimitFile::Both(both) => Set {
            warn: value(both.warn.as_ref()),
            invalid: value(both.invalid.as_ref()),
        },
    }
}

fn figure(unit: Unit, text: &str) -> Result<f64, TextError> {
    match unit {
        Unit::Percent => {
            let percent = units::fraction(text, 0.0..=1.0)? * 100.0;
            // 7 % is 7, not 7.000000000000001.
            Ok((percent * 1e9).round() / 1e9)
        }
        Unit::Milliseconds => Ok(units::duration(text, LONGEST)?.as_secs_f64() * 1000.0),
    }
}
