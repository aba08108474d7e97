//! Folded stacks, a line each, which flame-graph tools read: `http-*;main;serve 12`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::stacks;
use crate::model::{Kind, Profile};

/// The profile as folded stacks with their numbers of samples; of waits, with µs. The group of the threads is the outermost frame.
pub fn folded(profile: &Profile) -> String {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (group, stacks) in stacks(profile) {
        for (stack, weight) in stacks {
            let mut line = frame(&group);
            for function in stack {
                line.push(';');
                line.push_str(&frame(&profile.functions[function].name));
            }
            let count = lines.entry(line).or_default();
            *count = count.saturating_add(match profile.kind {
                Kind::Cpu => weight.count,
                Kind::Off => weight.ns / 1_000,
            });
        }
    }
    let mut text = String::new();
    for (line, count) in lines {
        let _ = writeln!(text, "{line} {count}");
    }
    text
}

/// A name that ends neither the frame nor the line.
fn frame(name: &str) -> String {
    let kept = name.chars().map(|c| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    });
    kept.collect()
}
