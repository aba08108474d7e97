//! Prepares the profiles of a run's trials for comparison.

use std::collections::HashMap;

use lab_plan::Plan;
use lab_profile::columns::{Names, Sampled};
use lab_profile::comparable::{Common, Comparable};
use lab_profile::differences::Sides;
use lab_profile::{Profile, Tree};

use super::{Rules, compare};
use crate::compare::{MOST_PAIRS, Trials, pairs};
use crate::cpu::{Profiled, us_per_transaction};
use crate::duet::swapped;
use crate::model::{CellSummary, ProfileDifference, TrialAnalysis, Verdict};

/// A trial that lost more than this part of its samples is not compared.
const MOST_LOST: f64 = 0.1;

/// Compares the profiles of each cell with those of its baseline; empty for a run without profiles.
pub(crate) fn differences(
    plan: &Plan,
    cells: &[CellSummary],
    trials: &[TrialAnalysis],
    profiled: &[Profiled],
) -> Vec<ProfileDifference> {
    let pairs = pairs(plan, cells);
    if profiled.is_empty() || pairs.is_empty() {
        return Vec::new();
    }
    let mut names = Names::default();
    // A trial that lost many samples may have lost them in its busiest moments.
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
            let sampled = Sampled::of(one, us, &mut names);
            sampled.is_usable().then_some((*id, sampled))
        })
        .collect();
    let valid = Trials::that(trials, |trial| trial.verdict == Verdict::Valid);
    let of_cell = |cell: &CellSummary, block: u32| sampled.get(&valid.at(cell, block)?.id);
    let sides = pairs.iter().take(MOST_PAIRS).map(|pair| Sides {
        a: &pair.a.label,
        b: &pair.b.label,
        blocks: (0..valid.blocks)
            .map(|block| Some((of_cell(pair.a, block)?, of_cell(pair.b, block)?)))
            .collect(),
    });
    let swapped = swapped(plan);
    let rules = Rules {
        seed: plan.seed,
        smallest: plan.question.smallest_difference,
        swapped: plan.question.duet.then_some(&swapped),
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
