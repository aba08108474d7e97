//! The text format of Prometheus: its counters, and the sums and counts of its histograms and summaries.

use std::collections::HashMap;

use lab_monitor::exporter::samples;

use super::found::Found;
use crate::how::How;

pub(super) fn read(how: &How, text: &str, found: &mut Found<'_>) {
    let types = types(text);
    for sample in samples(text) {
        if !how.keeps(sample.name) || !counts(how, &types, sample.name) {
            continue;
        }
        let labels = sample.labels.iter();
        let labels = found.labels(labels.map(|(name, text)| (*name, text.as_ref(), true)));
        found.add(sample.name, &labels, sample.value);
    }
}

/// The types of the metrics, as the server declares them.
fn types(text: &str) -> HashMap<&str, &str> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.strip_prefix("# TYPE ")?.split_ascii_whitespace();
        Some((words.next()?, words.next()?))
    });
    lines.collect()
}

/// Returns true for a counter: by its type, or, without a type, by its name or because `keep` names it.
fn counts(how: &How, types: &HashMap<&str, &str>, name: &str) -> bool {
    let is = |kind: &str| types.get(name).is_some_and(|found| *found == kind);
    if is("counter") {
        return true;
    }
    if ["gauge", "summary", "histogram"].into_iter().any(is) {
        return false;
    }
    let parts = ["_sum", "_count", "_bucket", "_total"];
    let of = parts
        .iter()
        .find_map(|end| Some((*end, types.get(name.strip_suffix(end)?)?)));
    match of {
        // Its sum and its count contain the same information in two numbers.
        Some(("_bucket", _)) => false,
        Some((_, kind)) => *kind != "gauge",
        None => !how.keep.is_empty() || name.ends_with("_total"),
    }
}
