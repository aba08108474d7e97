//! Reduces flagged columns to findings. Of functions and paths that contain each other, the most specific one remains.
//! Each finding has its caller and the parts of its difference. Code that only moved to another name is separate.

use std::collections::HashMap;

use crate::columns::{Column, Part};
use lab_stats::mean_interval;
use lab_stats::moderated::{Pair, differences};
use lab_stats::paired::Adjusted;

use super::table::{Stack, Table};

/// A column explains another column if the stacks outside it hold less than this fraction of the other's difference.
const UNEXPLAINED: f64 = 0.25;
/// It also explains the other column if at most this fraction is left, and that is within noise.
const MOSTLY: f64 = 0.75;
/// A function that moved has less than this fraction of its samples in one of the cells.
const NEARLY_NONE: f64 = 0.05;
/// A column differs as much as its part if its relative difference is at least this fraction of the part's.
const AS_MUCH: f64 = 0.5;
/// A function counts as the caller of a finding if its stacks hold this fraction of the difference.
const CALLS: f64 = 0.9;
/// Callees with less of the difference than this aren't named.
const LEAST_PART: f64 = 0.1;
/// Most callees that are named.
const MOST_CALLEES: usize = 3;
/// Most flagged columns that are analysed, the largest differences first.
pub const MOST_FLAGGED: usize = 300;

/// A column that differs beyond noise.
#[derive(Clone)]
pub struct Flagged {
    /// Its column.
    pub column: Column,
    /// Its p, alone and over all columns.
    pub p: Adjusted,
    /// Samples over all trials of each cell.
    sides: (f64, f64),
    /// The stacks that it counts, by position.
    inside: Vec<bool>,
    /// The mean difference, in samples.
    pub difference: f64,
}

impl Flagged {
    /// `difference` is the mean difference of the column's `pairs`, in samples.
    pub fn new(
        table: &Table,
        column: Column,
        (p, pairs, difference): (Adjusted, &[Pair], f64),
    ) -> Self {
        let sum = |side: fn(&Pair) -> f64| pairs.iter().map(side).sum::<f64>();
        Self {
            inside: table.stacks.iter().map(|one| one.is_in(column)).collect(),
            sides: (sum(|pair| pair.a), sum(|pair| pair.b)),
            difference,
            column,
            p,
        }
    }

    /// Samples over all trials.
    fn samples(&self) -> f64 {
        self.sides.0 + self.sides.1
    }

    /// Returns true if only one of the cells has it.
    fn is_of_one_side(&self) -> bool {
        let (a, b) = self.sides;
        a.min(b) <= NEARLY_NONE * a.max(b)
    }

    /// Returns true if these stacks explain the difference: little of it remains without them, or the remainder is less
    /// than half and within its noise.
    fn is_explained(&self, table: &Table, by: &[bool]) -> bool {
        let is_left = |at: usize| self.inside[at] && !by[at];
        let left = sum(table, is_left);
        if left.abs() < UNEXPLAINED * self.difference.abs() {
            return true;
        }
        let is_most_gone = left.abs() <= MOSTLY * self.difference.abs();
        is_most_gone && within_noise(table, &table.samples_of(|at, _| is_left(at)))
    }

    /// Returns true if all stacks of `other` are among these.
    fn contains(&self, other: &Self) -> bool {
        let mut both = self.inside.iter().zip(&other.inside);
        both.all(|(own, other)| *own || !*other)
    }

    /// Returns true if `part` is a part of this column that adds no information: the function's own code, or a path
    /// within it. The column's relative difference must be at least about as large as that of the part.
    fn has_part(&self, part: &Self) -> bool {
        let is_specific = match part.column.of {
            Part::Own => part.column.function == self.column.function,
            Part::Total => false,
            Part::Path => true,
        };
        let relative = |one: &Self| one.difference.abs() / one.samples();
        let is_as_much = relative(self) >= AS_MUCH * relative(part);
        is_specific && self.column.of != Part::Own && self.contains(part) && is_as_much
    }

    fn stacks<'a>(&'a self, table: &'a Table) -> impl Iterator<Item = &'a Stack> {
        let both = table.stacks.iter().zip(&self.inside);
        both.filter(|(_, inside)| **inside).map(|(stack, _)| stack)
    }
}

/// The mean difference of these stacks, in samples.
fn sum(table: &Table, is_in: impl Fn(usize) -> bool) -> f64 {
    let stacks = table.stacks.iter().enumerate();
    let inside = stacks.filter(|(at, _)| is_in(*at));
    inside.map(|(_, stack)| stack.difference).sum()
}

/// Returns true if these samples, without the common factor, differ by no more than chance.
fn within_noise(table: &Table, samples: &[Pair]) -> bool {
    has_zero(&differences(samples, &table.factor))
}

/// Returns true if differences by block may be 0 on average.
fn has_zero(by_block: &[f64]) -> bool {
    let bounds = mean_interval(by_block).and_then(|interval| interval.bounds);
    bounds.is_some_and(|(low, high)| low <= 0.0 && high >= 0.0)
}

/// The flagged columns that remain.
#[derive(Default)]
pub struct Reduced {
    /// The largest difference first.
    pub findings: Vec<Flagged>,
    /// Functions whose time moved to another name.
    pub moved: Vec<Moved>,
}

impl Reduced {
    /// Returns true if a stack, by its position, is in no finding.
    pub fn is_rest(&self, at: usize) -> bool {
        !self.findings.iter().any(|finding| finding.inside[at])
    }
}

/// Reduces flagged columns to findings, sorted by difference, the largest first.
pub fn reduce(table: &Table, mut flagged: Vec<Flagged>) -> Reduced {
    let moved = moved(table, &flagged);
    for one in &moved {
        flagged.retain(|flagged| !flagged.is_explained(table, &one.inside));
    }
    flagged.sort_by(|a, b| a.samples().total_cmp(&b.samples()));
    let is_explained = |at: usize| {
        let one = &flagged[at];
        let explains =
            |other: &Flagged| !one.has_part(other) && one.is_explained(table, &other.inside);
        flagged[..at].iter().any(explains)
    };
    let specific = (0..flagged.len()).filter(|at| !is_explained(*at));
    let specific: Vec<Flagged> = specific.map(|at| flagged[at].clone()).collect();
    let mut findings: Vec<Flagged> = Vec::new();
    for one in specific {
        add(table, &mut findings, one);
    }
    findings.sort_by(|a, b| b.difference.abs().total_cmp(&a.difference.abs()));
    Reduced { findings, moved }
}

/// Adds a flagged column to findings that have fewer samples. The column replaces its parts. It is skipped if it
/// contains findings that are not its parts and all findings inside it together explain its difference.
fn add(table: &Table, findings: &mut Vec<Flagged>, one: Flagged) {
    let (inside, others): (Vec<Flagged>, Vec<Flagged>) = findings
        .drain(..)
        .partition(|finding| one.contains(finding));
    *findings = others;
    let mut union = vec![false; table.stacks.len()];
    for part in &inside {
        for (union, part) in union.iter_mut().zip(&part.inside) {
            *union |= *part;
        }
    }
    let is_whole = |part: &Flagged| !one.has_part(part);
    if inside.iter().any(is_whole) && one.is_explained(table, &union) {
        findings.extend(inside);
        return;
    }
    findings.extend(inside.into_iter().filter(is_whole));
    findings.push(one);
}

/// The nearest caller of a finding: the function must be above it in stacks with nine tenths of the difference.
pub fn called_by(table: &Table, finding: &Flagged) -> Option<usize> {
    struct Above {
        difference: f64,
        distance: f64,
        stacks: f64,
    }
    let mut above: HashMap<usize, Above> = HashMap::new();
    for stack in finding.stacks(table) {
        let at = stack.frame_of(finding.column)?;
        let mut seen = Vec::new();
        let mut distance = 0.0;
        for function in stack.frames[..at].iter().rev() {
            distance += 1.0;
            if *function == finding.column.function || seen.contains(function) {
                continue;
            }
            seen.push(*function);
            let sums = above.entry(*function).or_insert(Above {
                difference: 0.0,
                distance: 0.0,
                stacks: 0.0,
            });
            sums.difference += stack.difference;
            sums.distance += distance;
            sums.stacks += 1.0;
        }
    }
    let calls = above
        .into_iter()
        .filter(|(_, sums)| sums.difference / finding.difference >= CALLS);
    let nearest = calls.min_by(|(a, one), (b, other)| {
        let distance = |sums: &Above| sums.distance / sums.stacks;
        distance(one).total_cmp(&distance(other)).then(a.cmp(b))
    });
    nearest.map(|(function, _)| function)
}

/// The part of a finding's difference in its function's own code, and the parts in its callees.
pub fn parts(table: &Table, finding: &Flagged) -> (f64, Vec<(usize, f64)>) {
    let (mut own, mut called) = (0.0, HashMap::new());
    for stack in finding.stacks(table) {
        let next = stack.frame_of(finding.column).map_or(0, |at| at + 1);
        match stack.frames.get(next) {
            None => own += stack.difference,
            Some(callee) => *called.entry(*callee).or_insert(0.0) += stack.difference,
        }
    }
    let part = |difference: f64| difference / finding.difference;
    let called = called.into_iter().map(|(callee, sum)| (callee, part(sum)));
    let mut called: Vec<(usize, f64)> = called.filter(|one| one.1 >= LEAST_PART).collect();
    called.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    called.truncate(MOST_CALLEES);
    (part(own), called)
}

/// The same work under two names.
pub struct Moved {
    /// The column with less time.
    pub less: Column,
    /// The column with more time.
    pub more: Column,
    /// The function that calls both.
    pub within: usize,
    /// The mean differences of both, in samples.
    pub differences: (f64, f64),
    /// The stacks of both names.
    inside: Vec<bool>,
}

/// Finds code that was renamed or inlined: two flagged functions with opposite differences, one of which is in one cell
/// only, below a common caller whose total is equal within noise.
fn moved(table: &Table, flagged: &[Flagged]) -> Vec<Moved> {
    let is_function = |one: &&Flagged| one.column.of != Part::Path;
    let functions: Vec<&Flagged> = flagged.iter().filter(is_function).collect();
    let anchors: Vec<Vec<usize>> = functions.iter().map(|one| anchors(table, one)).collect();
    let mut found: Vec<Moved> = Vec::new();
    for (at, less) in functions.iter().enumerate() {
        for (other, more) in functions.iter().enumerate() {
            // A renamed or inlined function is in one cell only.
            let is_new = less.is_of_one_side() || more.is_of_one_side();
            if less.difference >= 0.0 || more.difference <= 0.0 || !is_new {
                continue;
            }
            let is_taken = |one: &Moved| {
                less.is_explained(table, &one.inside) || more.is_explained(table, &one.inside)
            };
            if found.iter().any(is_taken) {
                continue;
            }
            let common = anchors[at]
                .iter()
                .filter(|one| anchors[other].contains(one));
            found.extend(
                common
                    .copied()
                    .find_map(|within| moved_within(table, (less, more), within)),
            );
        }
    }
    found
}

fn moved_within(table: &Table, (less, more): (&Flagged, &Flagged), within: usize) -> Option<Moved> {
    let both = less.inside.iter().zip(&more.inside);
    let inside: Vec<bool> = both.map(|(a, b)| *a || *b).collect();
    let left = sum(table, |at| inside[at]).abs();
    let larger = less.difference.abs().max(more.difference);
    if left >= UNEXPLAINED * larger {
        return None;
    }
    // The remainder is a difference of its own, unless it is within noise.
    let both = table.samples_of(|at, _| inside[at]);
    // Two tests: in quiet trials a large caller is known better without the common factor, in noisy trials with it.
    let caller = table.samples_of(|_, stack| stack.frames.contains(&within));
    let measured: Vec<f64> = caller.iter().map(|pair| pair.b - pair.a).collect();
    let is_equal = has_zero(&measured) || within_noise(table, &caller);
    (is_equal && within_noise(table, &both)).then_some(Moved {
        less: less.column,
        more: more.column,
        within,
        differences: (less.difference, more.difference),
        inside,
    })
}

/// The functions within which a function may have moved: its caller, and for own code also the function itself.
fn anchors(table: &Table, one: &Flagged) -> Vec<usize> {
    let own = (one.column.of == Part::Own).then_some(one.column.function);
    own.into_iter().chain(called_by(table, one)).collect()
}
