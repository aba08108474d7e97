//! Profiles of trials side by side: own and total samples of functions, and samples of call paths, as columns.
//!
//! Functions are one in all trials by their keys. Sums are whole numbers, so that columns of the same stacks are equal.

use std::collections::HashMap;

use crate::{Key, Profile};

/// Functions by their keys, which are the same in all builds.
#[derive(Debug, Default)]
pub struct Names {
    keys: Vec<Key>,
    positions: HashMap<Key, usize>,
}

impl Names {
    /// The position of a function.
    pub fn position(&mut self, key: Key) -> usize {
        *self.positions.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            self.keys.len() - 1
        })
    }

    /// The name of the function at a position.
    pub fn name(&self, position: usize) -> &str {
        self.keys.get(position).map_or("", |key| &key.name)
    }
}

/// The profile of one trial, of the time that its figures are of.
#[derive(Debug, Clone, Default)]
pub struct Sampled {
    /// Stacks, outermost function first, and their CPU time in nanoseconds. No stack is empty.
    pub stacks: Vec<(Vec<usize>, u64)>,
    /// Samples.
    pub samples: u64,
    /// CPU time of the system per transaction, which all stacks together stand for.
    pub us_per_transaction: f64,
}

impl Sampled {
    /// CPU time of all stacks, in nanoseconds.
    pub fn whole_ns(&self) -> u64 {
        self.stacks.iter().map(|(_, ns)| ns).sum()
    }

    /// Whether there is something to compare.
    pub fn is_usable(&self) -> bool {
        let us = self.us_per_transaction;
        self.samples > 0 && self.whole_ns() > 0 && us.is_finite() && us > 0.0
    }
}

/// What all profiles say of a function. What only some builds say is left out, or equal functions would differ.
#[derive(Debug, Clone, Copy)]
pub struct Detail {
    /// Source files.
    files: bool,
    /// Functions that were inlined into others.
    inlined: bool,
}

impl Detail {
    /// What all of these profiles say.
    pub fn of<'a>(profiles: impl Iterator<Item = &'a Profile> + Clone) -> Self {
        let files = |profile: &Profile| profile.functions.iter().any(|one| !one.file.is_empty());
        let inlined = |profile: &Profile| profile.locations.iter().any(|one| one.lines.len() > 1);
        Self {
            files: profiles.clone().all(files),
            inlined: profiles.clone().all(inlined),
        }
    }

    /// A profile by the positions of its functions among `names`.
    pub fn sampled(self, profile: &Profile, us_per_transaction: f64, names: &mut Names) -> Sampled {
        let key = |function| {
            let key = Key::of(function);
            if self.files { key } else { key.without_file() }
        };
        let functions = profile.functions.iter();
        let positions: Vec<usize> = functions.map(|one| names.position(key(one))).collect();
        let mut stacks: HashMap<Vec<usize>, u64> = HashMap::new();
        for sample in &profile.samples {
            let mut frames = Vec::new();
            for location in sample.stack.iter().rev() {
                let lines = &profile.locations[*location].lines;
                // The last line is the function that contains the others.
                let from = if self.inlined {
                    0
                } else {
                    lines.len().saturating_sub(1)
                };
                let functions = lines[from..].iter().rev();
                frames.extend(functions.map(|line| positions[line.function]));
            }
            if !frames.is_empty() {
                *stacks.entry(frames).or_default() += sample.cpu_ns;
            }
        }
        let mut stacks: Vec<(Vec<usize>, u64)> = stacks.into_iter().collect();
        stacks.sort_unstable();
        Sampled {
            stacks,
            samples: profile.weight().count,
            us_per_transaction,
        }
    }
}

/// Which samples of a function a column counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// The function's own code.
    Own,
    /// All stacks that contain it.
    Total,
    /// All stacks that begin with one path.
    Path,
}

/// What a column counts: samples of a function, or of a call path, by its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Column {
    /// Which of its samples.
    pub of: Part,
    /// The position of its key among [`Names`]; of a path, of its last function.
    pub function: usize,
    /// Of a path: its node.
    pub node: usize,
    /// Of a path: how many functions it has.
    pub depth: usize,
}

/// CPU time in nanoseconds, by block and side.
pub type Nanoseconds = Vec<[u64; 2]>;
/// The frames of a stack, and the call paths that end there.
pub type Frames = (Vec<usize>, Vec<usize>);

/// What was sampled, added up in whole numbers: columns of the same stacks are then equal exactly.
#[derive(Default)]
pub struct Counts {
    /// Stacks, in a fixed order.
    pub stacks: Vec<(Frames, Nanoseconds)>,
    /// Own and total samples of functions, and samples of call paths.
    pub columns: Vec<(Column, Nanoseconds)>,
}

impl Counts {
    /// Adds up the profiles of both variants by block.
    pub fn of(both: &[(&Sampled, &Sampled)]) -> Self {
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
            for column in columns_of(frames, &nodes) {
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
    use crate::{Function, Line, Location, Sample};

    /// `main` calls `work`, into which `inner` was inlined.
    fn profile(file: &str, is_expanded: bool) -> Profile {
        let function = |name: &str| Function {
            name: name.to_owned(),
            file: file.to_owned(),
        };
        let line = |function| Line { function, line: 1 };
        let work = if is_expanded { vec![2, 1] } else { vec![1] };
        let location = |functions: Vec<usize>| Location {
            lines: functions.into_iter().map(line).collect(),
            ..Location::default()
        };
        Profile {
            functions: ["main", "work", "inner"].map(function).into(),
            locations: vec![location(work), location(vec![0])],
            threads: vec!["worker-1".to_owned()],
            samples: (3..5)
                .map(|second| Sample {
                    stack: vec![0, 1],
                    second,
                    count: 2,
                    cpu_ns: 1_000,
                    ..Sample::default()
                })
                .collect(),
            ..Profile::default()
        }
    }

    #[test]
    fn seconds_and_threads_are_summed_up() {
        let (mut names, one) = (Names::default(), profile("/src/a.rs", true));
        let detail = Detail::of([&one].into_iter());
        let sampled = detail.sampled(&one, 100.0, &mut names);
        assert_eq!(sampled.stacks, [(vec![0, 1, 2], 2_000)]);
        assert_eq!((sampled.samples, names.name(2)), (4, "inner"));
        assert!(sampled.is_usable());
        assert!(!detail.sampled(&one, 0.0, &mut names).is_usable());
        assert!(!Sampled::default().is_usable());
    }

    #[test]
    fn builds_are_compared_by_what_both_say() {
        let (full, bare) = (profile("/src/a.rs", true), profile("", false));
        let detail = Detail::of([&full, &bare].into_iter());
        let mut names = Names::default();
        let full = detail.sampled(&full, 100.0, &mut names);
        let bare = detail.sampled(&bare, 100.0, &mut names);
        assert_eq!(full.stacks, bare.stacks);
        assert_eq!(full.stacks, [(vec![0, 1], 2_000)]);
    }
}
