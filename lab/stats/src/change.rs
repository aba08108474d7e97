//! Change points: places in a series from which on the values have another distribution.
//!
//! E-divisive: the best division of a series is the one with the most energy between the values before and after it. A
//! permutation test decides whether it exceeds chance; then each side is divided in turn. Source: Matteson & James, "A
//! Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", JASA 109 (2014), sections 2 and 3,
//! with α = 1. For benchmarks: Daly, Brown, Ingo, O'Leary & Bradford, "The Use of Change Point Detection to Identify
//! Software Performance Regressions in a Continuous Integration System", ICPE 2020.
//!
//! Several series of the same runs are tested together: for the first division the order of the runs is permuted in all
//! of them at once, and each is compared with the best division of any (Westfall & Young, *Resampling-Based Multiple
//! Testing*, 1993). So without a change, the probability of any detected change in any series equals the level, however
//! many series there are. Further divisions of a series with a detected change are tested in that series alone.

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::number::count;
use crate::paired::mean;
use crate::unpaired::{self, Row, shuffle};

/// Minimum values on each side of a division: the energy within a side needs two.
pub const LEAST_SIDE: usize = 2;

/// Random orders for each test; the observed order counts as one more.
pub const ORDERS: usize = 999;

/// Energies that differ by less than this part are equal: the rounding error.
const TIE: f64 = 1e-9;

/// A change of the values at one place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The first run with the new values.
    pub at: usize,
    /// The probability of such a division without a change.
    pub p: f64,
    /// Mean from the previous change, if any, up to this one.
    pub before: f64,
    /// Mean from this change up to the next.
    pub after: f64,
    /// Interval of their difference, at the level of the test, for a fixed place.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Returns the changes of each row that are significant at `level`, in order of time. A row has a value per run; `None`
/// if a run has none.
///
/// A change is one of the distribution; since the mean matters, changes without a significant difference of means in
/// the permutation test (see [`unpaired`]) are dropped again, the weakest first.
#[must_use]
pub fn changes(rows: &[Row], level: f64, seed: u64) -> Vec<Vec<Change>> {
    let first = first_divisions(rows, level, seed);
    let each = rows.iter().zip(first);
    each.map(|(row, first)| of_row(row, first, level, seed))
        .collect()
}

/// A division of a stretch: its place, and the energy between its sides.
#[derive(Debug, Clone, Copy, Default)]
struct Division {
    at: usize,
    energy: f64,
}

/// Returns the first division of each row, with its p over all rows together.
fn first_divisions(rows: &[Row], level: f64, seed: u64) -> Vec<Option<(Division, f64)>> {
    let runs = rows.iter().map(Vec::len).max().unwrap_or_default();
    let scales: Vec<f64> = rows.iter().map(|row| spread(&values(row))).collect();
    let seen: Vec<Division> = rows.iter().map(|row| best(&values(row))).collect();
    let scaled = |at: usize, energy: f64| crate::ratio(energy, scales[at]).unwrap_or_default();
    let mut reached = vec![0_usize; rows.len()];
    let mut order: Vec<usize> = (0..runs).collect();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut drawn = 0;
    while drawn < ORDERS && reached.iter().any(|n| !is_beyond(*n, level)) {
        shuffle(&mut order, &mut random);
        let moved =
            |row: &Row| -> Vec<f64> { order.iter().filter_map(|run| *row.get(*run)?).collect() };
        let each = rows.iter().map(|row| best(&moved(row)).energy);
        let most = each
            .enumerate()
            .map(|(at, energy)| scaled(at, energy))
            .fold(0.0, f64::max);
        for (at, n) in reached.iter_mut().enumerate() {
            *n += usize::from(most >= scaled(at, seen[at].energy) * (1.0 - TIE));
        }
        drawn += 1;
    }
    let p = reached.iter().map(|n| part(*n, drawn));
    let shown = seen.into_iter().zip(p);
    shown
        .map(|(one, p)| (one.energy > 0.0 && p <= level).then_some((one, p)))
        .collect()
}

fn of_row(row: &Row, first: Option<(Division, f64)>, level: f64, seed: u64) -> Vec<Change> {
    let values = values(row);
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut next = first.map(|(division, p)| (division.at, p));
    while let Some(division) = next {
        found.push(division);
        found.sort_unstable_by_key(|(at, _)| *at);
        next = further(&values, &found, level, seed);
    }
    let places: Vec<usize> = row
        .iter()
        .enumerate()
        .filter_map(|(at, value)| value.map(|_| at))
        .collect();
    let mut changes = shifts(&values, found, level, seed);
    for change in &mut changes {
        change.at = places[change.at];
    }
    changes
}

/// Returns the best division of any stretch between the earlier ones, if permutations within the stretches don't reach
/// it by chance.
fn further(values: &[f64], found: &[(usize, f64)], level: f64, seed: u64) -> Option<(usize, f64)> {
    let ends = ends(found, values.len());
    let best_of = |values: &[f64]| {
        let each = ends.windows(2).map(|end| {
            let division = best(&values[end[0]..end[1]]);
            Division {
                at: division.at + end[0],
                ..division
            }
        });
        each.fold(Division::default(), |most, one| {
            if one.energy > most.energy { one } else { most }
        })
    };
    let seen = best_of(values);
    if seen.energy <= 0.0 {
        return None;
    }
    let mut moved = values.to_vec();
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut drawn, mut reached) = (0, 0);
    while drawn < ORDERS && !is_beyond(reached, level) {
        for end in ends.windows(2) {
            shuffle(&mut moved[end[0]..end[1]], &mut random);
        }
        reached += usize::from(best_of(&moved).energy >= seen.energy * (1.0 - TIE));
        drawn += 1;
    }
    let p = part(reached, drawn);
    (p <= level).then_some((seen.at, p))
}

/// Drops the weakest division until all remaining means differ.
fn shifts(values: &[f64], mut found: Vec<(usize, f64)>, level: f64, seed: u64) -> Vec<Change> {
    loop {
        let ends = ends(&found, values.len());
        let sides = |k: usize| {
            (
                &values[ends[k]..ends[k + 1]],
                &values[ends[k + 1]..ends[k + 2]],
            )
        };
        let p_of = |k: usize| {
            let (before, after) = sides(k);
            let both: Row = before.iter().chain(after).copied().map(Some).collect();
            unpaired::max_t(&[both], before.len(), seed)[0].single
        };
        let weakest = (0..found.len())
            .map(|k| (k, p_of(k)))
            .max_by(|one, other| one.1.total_cmp(&other.1));
        if let Some((k, _)) = weakest.filter(|(_, p)| *p > level) {
            found.remove(k);
            continue;
        }
        let change = |(k, (at, p)): (usize, &(usize, f64))| {
            let (before, after) = sides(k);
            let bounds = unpaired::interval(before, after, level, seed);
            Change {
                at: *at,
                p: *p,
                before: mean(before).unwrap_or_default(),
                after: mean(after).unwrap_or_default(),
                low: bounds.low,
                high: bounds.high,
            }
        };
        return found.iter().enumerate().map(change).collect();
    }
}

/// Returns the starts of the stretches, and the end of the last one.
fn ends(found: &[(usize, f64)], length: usize) -> Vec<usize> {
    let found = found.iter().map(|(at, _)| *at);
    std::iter::once(0).chain(found).chain([length]).collect()
}

/// Returns the best division, over all ends of its second side: later values may follow another change.
///
/// Energy between X (n values) and Y (m): mn ÷ (m + n) × (2 × mean |x − y| − mean |x − x′| − mean |y − y′|), means over
/// pairs. Sums grow by one value per step, so the total is O(length²).
fn best(values: &[f64]) -> Division {
    let length = values.len();
    let mut most = Division::default();
    if length < 2 * LEAST_SIDE {
        return most;
    }
    // By value, the sums of its distances to the first 0, 1, … values before it.
    let to_first: Vec<Vec<f64>> = (0..length)
        .map(|k| {
            let mut sum = 0.0;
            let sums = values[..k].iter().map(|value| {
                sum += (values[k] - value).abs();
                sum
            });
            std::iter::once(0.0).chain(sums).collect()
        })
        .collect();
    let mut within_x = 0.0;
    for at in 1..=length - LEAST_SIDE {
        within_x += to_first[at - 1][at - 1];
        if at < LEAST_SIDE {
            continue;
        }
        let (mut between, mut within_y) = (0.0, 0.0);
        for (m, sums) in (1..).zip(&to_first[at..]) {
            between += sums[at];
            within_y += sums[sums.len() - 1] - sums[at];
            if m < LEAST_SIDE {
                continue;
            }
            let energy = energy((at, within_x), (m, within_y), between);
            if energy > most.energy {
                most = Division { at, energy };
            }
        }
    }
    most
}

fn energy(x: (usize, f64), y: (usize, f64), between: f64) -> f64 {
    let (n, m) = (count(x.0), count(y.0));
    let pairs = |n: f64| n * (n - 1.0) / 2.0;
    let energy = 2.0 * between / (n * m) - x.1 / pairs(n) - y.1 / pairs(m);
    n * m / (n + m) * energy
}

/// Returns the mean distance of two values, which no order changes, so that series of all units are comparable.
fn spread(values: &[f64]) -> f64 {
    let pairs = values.iter().enumerate().flat_map(|(at, value)| {
        let later = values[at + 1..].iter();
        later.map(move |other| (value - other).abs())
    });
    let (count, sum) = pairs.fold((0_u32, 0.0), |(n, sum), one| (n + 1, sum + one));
    sum / f64::from(count.max(1))
}

/// Returns true if this many orders already exceed the level, whatever the rest.
fn is_beyond(reached: usize, level: f64) -> bool {
    part(reached, ORDERS) > level
}

/// Returns the p of a permutation test, in which the observed order counts (Phipson & Smyth, "Permutation P-values
/// Should Never Be Zero", 2010).
fn part(reached: usize, drawn: usize) -> f64 {
    count(reached + 1) / count(drawn + 1)
}

fn values(row: &Row) -> Vec<f64> {
    row.iter().flatten().copied().collect()
}
