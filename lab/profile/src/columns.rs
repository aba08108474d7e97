//! Profiles of trials side by side: own and total samples of functions, and samples of call paths, as columns.
//!
//! A function has the same key in all trials. Sums are integers, so that columns of the same stacks are exactly equal.

use std::collections::HashMap;

use crate::comparable::Comparable;
use crate::{Key, Profile};

/// Functions by their keys, which are the same in all builds.
#[derive(Debug, Default)]
pub struct Names {
    pub(crate) keys: Vec<Key>,
    positions: HashMap<Key, usize>,
}

impl Names {
    /// The position of each function of a profile.
    pub(crate) fn of(&mut self, profile: &Profile) -> Vec<usize> {
        let functions = profile.functions.iter();
        functions.map(|one| self.position(Key::of(one))).collect()
    }

    /// The position of a function.
    pub fn position(&mut self, key: Key) -> usize {
        *self.positions.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            self.keys.len() - 1
        })
    }

    /// Returns true for the position of a placeholder, such as `[other]`, which is no function and is not compared.
    pub fn is_placeholder(&self, position: usize) -> bool {
        [Profile::BROKEN, Profile::OTHER, Profile::UNKNOWN].contains(&self.name(position))
    }

    /// The name of the function at a position.
    pub fn name(&self, position: usize) -> &str {
        self.keys.get(position).map_or("", |key| &key.name)
    }
}

/// The profile of one trial, over the hold after its warm-up.
#[derive(Debug, Clone, Default)]
pub struct Sampled {
    /// Stacks, outermost function first, and their CPU time in nanoseconds. No stack is empty.
    pub stacks: Vec<(Vec<usize>, u64)>,
    /// Samples.
    pub samples: u64,
    /// CPU time of the system per transaction: the total of all stacks.
    pub us_per_transaction: f64,
    /// CPU time of stacks whose innermost function has no name common to all builds, in nanoseconds.
    pub unnamed_ns: u64,
}

impl Sampled {
    /// A profile by the positions of its functions among `names`.
    pub fn of(comparable: &Comparable, us_per_transaction: f64, names: &mut Names) -> Self {
        let profile = &comparable.profile;
        let positions = names.of(profile);
        let mut stacks: HashMap<Vec<usize>, u64> = HashMap::new();
        for sample in &profile.samples {
            let frames: Vec<usize> = profile.frames(sample).map(|at| positions[at]).collect();
            if !frames.is_empty() {
                let frames = frames.into_iter().rev().collect();
                *stacks.entry(frames).or_default() += sample.ns;
            }
        }
        let mut stacks: Vec<(Vec<usize>, u64)> = stacks.into_iter().collect();
        stacks.sort_unstable();
        Self {
            stacks,
            samples: profile.weight().count,
            us_per_transaction,
            unnamed_ns: comparable.unnamed_ns,
        }
    }

    /// CPU time of all stacks, in nanoseconds.
    pub fn whole_ns(&self) -> u64 {
        self.stacks.iter().map(|(_, ns)| ns).sum()
    }

    /// Returns true if there is data to compare.
    pub fn is_usable(&self) -> bool {
        let us = self.us_per_transaction;
        self.samples > 0 && self.whole_ns() > 0 && us.is_finite() && us > 0.0
    }
}

/// The samples of a function that a column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The function's own code.
    Own,
    /// All stacks that contain it.
    Total,
    /// All stacks that begin with one path.
    Path,
}

/// The subject of a column: samples of a function, or of a call path, by its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Column {
    /// The part of its samples.
    pub of: Part,
    /// The position of its key among [`Names`]; of a path, of its last function.
    pub function: usize,
    /// For a path: its node.
    pub node: usize,
    /// For a path: its number of functions.
    pub depth: usize,
}

/// CPU time in nanoseconds, by block and side.
pub type Nanoseconds = Vec<[u64; 2]>;
/// The frames of a stack, and the call paths that end there.
pub type Frames = (Vec<usize>, Vec<usize>);

/// Sums of samples, as whole numbers: columns of the same stacks are then exactly equal.
#[derive(Default)]
pub struct Counts {
    /// Stacks, in a fixed order.
    pub stacks: Vec<(Frames, Nanoseconds)>,
    /// Own and total samples of functions, and samples of call paths.
    pub columns: Vec<(Column, Nanoseconds)>,
}

impl Counts {
    /// Adds up the profiles of both variants by block.
    pub fn of(both: &[(&Sampled, &Sampled)], names: &Names) -> Self {
        let mut stacks: HashMap<&[usize], Nanoseconds> = HashMap::new();
        for (block, (a, b)) in both.iter().enumerate() {
            for (side, trial) in [a, b].into_iter().enumerate() {
                for (frames, ns) in &trial.stacks {
                    let sums = stacks
                        .entry(frames)
                        .or_insert_with(|| vec![[0; 2]; both.len()]);
                    sums[block][side] += ns;
                }
            }
        }
        let mut stacks: Vec<(&[usize], Nanoseconds)> = stacks.into_iter().collect();
        // The order of a hash map differs from run to run.
        stacks.sort_unstable();
        let (mut counts, mut paths, mut at) = (Self::default(), HashMap::new(), HashMap::new());
        for (frames, ns) in stacks {
            let mut parent = usize::MAX;
            let mut nodes = Vec::with_capacity(frames.len());
            for function in frames {
                let next = paths.len();
                parent = *paths.entry((parent, *function)).or_insert(next);
                nodes.push(parent);
            }
            let columns = columns_of(frames, &nodes).into_iter();
            for column in columns.filter(|column| !names.is_placeholder(column.function)) {
                let position = *at.entry(column).or_insert_with(|| {
                    counts.columns.push((column, vec![[0; 2]; both.len()]));
                    counts.columns.len() - 1
                });
                add(&mut counts.columns[position].1, &ns);
            }
            counts.stacks.push(((frames.to_vec(), nodes), ns));
        }
        counts
    }
}

/// The columns that count a stack, each once.
fn columns_of(frames: &[usize], nodes: &[usize]) -> Vec<Column> {
    let column = |of, function| Column {
        of,
        function,
        node: 0,
        depth: 0,
    };
    let mut functions = frames.to_vec();
    functions.sort_unstable();
    functions.dedup();
    let totals = functions
        .into_iter()
        .map(|function| column(Part::Total, function));
    let path = |(at, (function, node)): (usize, (&usize, &usize))| Column {
        node: *node,
        depth: at + 1,
        ..column(Part::Path, *function)
    };
    let own = frames.last().map(|function| column(Part::Own, *function));
    let paths = frames.iter().zip(nodes).enumerate().map(path);
    totals.chain(paths).chain(own).collect()
}

fn add(sums: &mut Nanoseconds, more: &Nanoseconds) {
    for (sum, more) in sums.iter_mut().zip(more) {
        sum[0] += more[0];
        sum[1] += more[1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparable::Common;
    use crate::{Function, Line, Location, Sample};

    /// `main` calls `work`, into which `inner` was inlined.
    fn profile() -> Profile {
        let function = |name: &str| Function {
            name: name.to_owned(),
            file: "/src/a.rs".to_owned(),
        };
        let line = |function| Line { function, line: 1 };
        let location = |functions: Vec<usize>| Location {
            lines: functions.into_iter().map(line).collect(),
            ..Location::default()
        };
        Profile {
            functions: ["main", "work", "inner"].map(function).into(),
            locations: vec![location(vec![2, 1]), location(vec![0])],
            threads: vec!["worker-1".to_owned()],
            samples: (3..5)
                .map(|second| Sample {
                    stack: vec![0, 1],
                    second,
                    count: 2,
                    ns: 1_000,
                    ..Sample::default()
                })
                .collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn seconds_and_threads_are_summed_up() {
        let (mut names, one) = (Names::default(), profile());
        let one = Common::of([&one].into_iter()).comparable(&one);
        let of = Sampled::of(&one, 100.0, &mut names);
        let [(frames, ns)] = &of.stacks[..] else {
            panic!("{:?}", of.stacks);
        };
        let frames: Vec<&str> = frames.iter().map(|at| names.name(*at)).collect();
        assert_eq!((frames, *ns), (vec!["main", "work", "inner"], 2_000));
        assert_eq!((of.samples, of.unnamed_ns), (4, 0));
        assert!(of.is_usable());
        assert!(!Sampled::of(&one, 0.0, &mut names).is_usable());
        assert!(!Sampled::default().is_usable());
    }
}
