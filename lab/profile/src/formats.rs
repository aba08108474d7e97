//! Profiles in the formats of other tools, and as a table for people.

mod firefox;
mod folded;
mod speedscope;
mod table;
mod waits;

pub use firefox::firefox;
pub use folded::folded;
pub use speedscope::speedscope;
pub use table::table;
pub use waits::waits_table;

use std::collections::BTreeMap;

use crate::key::thread_group;
use crate::model::{Profile, Weight};

/// Stacks of a group of threads with their weights: positions in [`Profile::functions`], the outermost first.
type Stacks = BTreeMap<Vec<usize>, Weight>;

/// Different stacks by group of threads.
fn stacks(profile: &Profile) -> BTreeMap<String, Stacks> {
    let mut groups: BTreeMap<String, Stacks> = BTreeMap::new();
    for sample in &profile.samples {
        let group = thread_group(&profile.threads[sample.thread]).into_owned();
        let mut stack: Vec<usize> = profile.frames(sample).collect();
        stack.reverse();
        let stacks = groups.entry(group).or_default();
        *stacks.entry(stack).or_default() += sample.weight();
    }
    groups
}

/// Replaces control characters, which could steer a terminal.
fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    name.chars().map(plain).collect()
}
