//! The profiles of a run's trials as comparisons take them.

use std::collections::HashMap;

use lab_plan::Plan;
use lab_profile::{Key, Profile, Tree};

use super::stacks::{Names, Sampled, Sides};
use super::{Rules, compare};
use crate::compare::{MOST_PAIRS, Trials, pairs};
use crate::cpu::{Profiled, us_per_transaction};
use crate::model::{CellSummary, ProfileDifference, TrialAnalysis, Verdict};

/// The profiles of each cell beside those of its baseline; nothing of a run without profiles.
pub(crate) fn differences(
    plan: &Plan,
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
    profiled: &[Profiled],
) -> Vec<ProfileDifference> {
    if profiled.is_empty() {
        return Vec::new();
    }
    let mut names = Names::default();
    let detail = Detail::of(profiled.iter().map(|one| &one.profile));
    let sampled: HashMap<u32, Sampled> = profiled
        .iter()
        .filter_map(|one| {
            let trial = trials.iter().find(|trial| trial.id == one.trial)?;
            let us = us_per_transaction(std::iter::once(trial))?;
            let sampled = detail.sampled(&one.profile, us, &mut names);
            sampled.is_usable().then_some((one.trial, sampled))
        })
        .collect();
    let valid = Trials::that(trials, |trial| trial.verdict == Verdict::Valid);
    let of_cell = |cell: &CellSummary, block: u32| sampled.get(&valid.at(cell, block)?.id);
    let pairs = pairs(plan, cells);
    let sides = pairs.iter().take(MOST_PAIRS).map(|pair| Sides {
        a: &pair.a.label,
        b: &pair.b.label,
        blocks: (0..valid.blocks)
            .map(|block| Some((of_cell(pair.a, block)?, of_cell(pair.b, block)?)))
            .collect(),
    });
    let rules = Rules {
        seed: plan.seed,
        smallest: plan.question.smallest_difference,
    };
    let mut found = compare(&sides.collect::<Vec<_>>(), &names, rules);
    for one in found.iter_mut().filter(|one| !one.paths.is_empty()) {
        let pair = pairs
            .iter()
            .find(|pair| pair.a.label == one.a && pair.b.label == one.b);
        let ids: Vec<u32> = pair.map_or_else(Vec::new, |pair| {
            let blocks = (0..valid.blocks).flat_map(|block| {
                let (a, b) = (valid.at(pair.a, block)?, valid.at(pair.b, block)?);
                Some([a.id, b.id])
            });
            blocks.flatten().collect()
        });
        let both = profiled.iter().filter(|one| ids.contains(&one.trial));
        let merged = Profile::merged(both.map(|one| &one.profile));
        one.tree = Some(Tree::of(&merged));
    }
    found
}

/// What all profiles say of a function. What only some builds say is left out, or equal functions would differ.
#[derive(Debug, Clone, Copy)]
struct Detail {
    /// Source files.
    files: bool,
    /// Functions that were inlined into others.
    inlined: bool,
}

impl Detail {
    fn of<'a>(profiles: impl Iterator<Item = &'a Profile> + Clone) -> Self {
        let files = |profile: &Profile| profile.functions.iter().any(|one| !one.file.is_empty());
        let inlined = |profile: &Profile| profile.locations.iter().any(|one| one.lines.len() > 1);
        Self {
            files: profiles.clone().all(files),
            inlined: profiles.clone().all(inlined),
        }
    }

    /// A profile by the positions of its functions among `names`.
    fn sampled(self, profile: &Profile, us_per_transaction: f64, names: &mut Names) -> Sampled {
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

#[cfg(test)]
mod tests {
    use lab_profile::{Function, Line, Location, Sample};

    use super::*;

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
