//! The profiles of a run's trials as comparisons take them.

use std::collections::HashMap;

use lab_plan::Plan;
use lab_profile::{Key, Profile, Tree};

use super::comparable::{Common, Comparable};
use super::stacks::{Names, Sampled, Sides};
use super::{Rules, compare};
use crate::compare::{MOST_PAIRS, Trials, pairs};
use crate::cpu::{Profiled, us_per_transaction};
use crate::model::{CellSummary, ProfileDifference, TrialAnalysis, Verdict};

/// A trial that lost more than this part of its samples is not compared.
const MOST_LOST: f64 = 0.1;

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
    // What lost many samples may have lost them where most was done.
    let kept = || profiled.iter().filter(|one| one.lost <= MOST_LOST);
    let common = Common::of(kept().map(|one| &one.profile));
    let comparable: Vec<(u32, Comparable)> = kept()
        .map(|one| (one.trial, common.comparable(&one.profile)))
        .collect();
    let sampled: HashMap<u32, Sampled> = comparable
        .iter()
        .filter_map(|(id, one)| {
            let trial = trials.iter().find(|trial| trial.id == *id)?;
            let us = us_per_transaction(std::iter::once(trial))?;
            let sampled = sampled(one, us, &mut names);
            sampled.is_usable().then_some((*id, sampled))
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
        is_duet: plan.question.duet,
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
        let both = comparable.iter().filter(|(id, _)| ids.contains(id));
        let merged = Profile::merged(both.map(|(_, one)| &one.profile));
        one.tree = Some(Tree::of(&merged));
    }
    found
}

/// A profile by the positions of its functions among `names`.
fn sampled(of: &Comparable, us_per_transaction: f64, names: &mut Names) -> Sampled {
    let profile = &of.profile;
    let functions = profile.functions.iter();
    let positions: Vec<usize> = functions.map(|one| names.position(Key::of(one))).collect();
    let mut stacks: HashMap<Vec<usize>, u64> = HashMap::new();
    for sample in &profile.samples {
        let frames: Vec<usize> = profile.frames(sample).map(|at| positions[at]).collect();
        if !frames.is_empty() {
            let frames = frames.into_iter().rev().collect();
            *stacks.entry(frames).or_default() += sample.cpu_ns;
        }
    }
    let mut stacks: Vec<(Vec<usize>, u64)> = stacks.into_iter().collect();
    stacks.sort_unstable();
    Sampled {
        stacks,
        samples: profile.weight().count,
        us_per_transaction,
        unnamed_ns: of.unnamed_ns,
    }
}

#[cfg(test)]
mod tests {
    use lab_profile::{Function, Line, Location, Profile, Sample};

    use super::super::comparable::Common;
    use super::*;

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
                    cpu_ns: 1_000,
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
        let of = sampled(&one, 100.0, &mut names);
        let [(frames, ns)] = &of.stacks[..] else {
            panic!("{:?}", of.stacks);
        };
        let frames: Vec<&str> = frames.iter().map(|at| names.name(*at)).collect();
        assert_eq!((frames, *ns), (vec!["main", "work", "inner"], 2_000));
        assert_eq!((of.samples, of.unnamed_ns), (4, 0));
        assert!(of.is_usable());
        assert!(!sampled(&one, 0.0, &mut names).is_usable());
        assert!(!Sampled::default().is_usable());
    }
}
