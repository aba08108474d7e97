//! Is the profile good? Nothing here makes a trial invalid: its figures need no profile.

use lab_archive::{Profiled, SampledBlock, Warning};
use lab_plan::checks::{
    CheckId, InForce, PROFILE_LOST, PROFILE_NAMES, PROFILE_SAMPLES, PROFILE_STACKS, SAMPLING_COST,
};

use super::facts::Facts;
use super::outcome::{held, judged, not_judged, warn};
use crate::format::{count, percent};
use crate::model::Check;
use crate::number::as_f64;

/// Fewer expected samples vary by more than the limit at random.
const ENOUGH_SAMPLES: f64 = 500.0;
/// Allowed deviation of such a number, in standard deviations.
const BY_CHANCE: f64 = 4.0;
/// Fewer expected samples are not judged.
const LEAST_EXPECTED: f64 = 20.0;
/// Blocks of the hold that the cost needs.
const ENOUGH_BLOCKS: usize = 5;
/// A block is used for comparison if sampling was off for this long.
const OFF_MS: f64 = 500.0;

/// Checks for enough samples, relative to the expected number.
pub(super) fn samples(facts: &Facts<'_>) -> Option<Check> {
    let id = CheckId::ProfileSamples;
    facts.study.profile.as_ref()?;
    let Some(profile) = &facts.data.record.profile else {
        let noted = facts
            .data
            .record
            .warnings
            .iter()
            .find_map(|noted| match noted {
                Warning::NotProfiled { problem } => Some(problem.as_str()),
                _ => None,
            });
        let why = noted.unwrap_or("the trial ended without a profile");
        return Some(warn(id, format!("no profile: {why}")).advise(
            "The study asks for a profile, and the trial has none. Its other figures are not affected.",
        ));
    };
    let (found, expected) = (as_f64(profile.samples), profile.expected);
    let mut evidence = format!(
        "{} samples of {} expected, {} lost",
        count(profile.samples),
        count(expected.max(0.0).round() as u64),
        count(profile.lost)
    );
    if profile.throttled > 0 {
        let times = count(profile.throttled);
        evidence.push_str(&format!("; the kernel throttled sampling {times} times"));
    }
    if profile.other_samples > 0 {
        let samples = count(profile.other_samples);
        evidence.push_str(&format!(
            "; {samples} samples have stacks that were dropped (too many different stacks)"
        ));
    }
    let lost = part(as_f64(profile.lost), as_f64(profile.records + profile.lost));
    let mut figures = vec![facts.held(lost, &PROFILE_LOST)];
    let difference = (found - expected).abs();
    // Few samples differ by chance.
    let is_chance = expected < ENOUGH_SAMPLES && difference <= BY_CHANCE * expected.max(0.0).sqrt();
    if expected >= LEAST_EXPECTED && !is_chance {
        let off = part(difference, expected);
        figures.insert(0, facts.held(off, &PROFILE_SAMPLES));
    }
    let check = judged(id, figures, evidence.clone());
    Some(match profile.throttled {
        0 => check,
        _ => warn(id, evidence).by(check.figures),
    })
}

/// Checks that stacks reach the start of their threads.
pub(super) fn stacks(facts: &Facts<'_>) -> Option<Check> {
    let profile = with_samples(facts)?;
    let broken = 100.0 - part(as_f64(profile.whole), as_f64(profile.samples));
    let evidence = format!("{} of the stacks are whole", percent(100.0 - broken));
    let figure = facts.held(broken, &PROFILE_STACKS);
    Some(judged(CheckId::ProfileStacks, vec![figure], evidence))
}

/// Checks that functions have names.
pub(super) fn names(facts: &Facts<'_>) -> Option<Check> {
    let profile = with_samples(facts)?;
    let unnamed = 100.0 - part(as_f64(profile.named), as_f64(profile.samples));
    let evidence = format!(
        "{} of the samples are of functions with names",
        percent(100.0 - unnamed)
    );
    let figure = facts.held(unnamed, &PROFILE_NAMES);
    Some(judged(CheckId::ProfileNames, vec![figure], evidence))
}

/// Compares the CPU per transaction with sampling with the seconds without. Warns if it is shown to be beyond the
/// budget: a single trial determines it to some per cent only.
pub(super) fn cost(facts: &Facts<'_>) -> Option<Check> {
    let id = CheckId::SamplingCost;
    let profile = with_samples(facts)?;
    let spent: Vec<Spent> = profile
        .blocks
        .iter()
        .filter(|block| block.off_ms >= OFF_MS)
        .map(|block| Spent::of(block, facts))
        .collect();
    let Some((cost, error)) = estimate(&spent) else {
        let why = match spent.len() < ENOUGH_BLOCKS {
            true => "the hold is too short to measure the cost of sampling",
            false => "too few transactions to measure the cost of sampling",
        };
        return Some(not_judged(id, why));
    };
    let (low, high) = (cost - error, cost + error);
    let evidence = format!(
        "{} of the system's CPU per transaction, 95 % interval {} to {}",
        signed(cost),
        signed(low),
        signed(high)
    );
    let own = facts.study.checks.0.contains_key(SAMPLING_COST.key);
    let budget = facts.study.profile.as_ref().filter(|_| !own);
    let in_force = match budget {
        Some(profile) => InForce {
            warn: 100.0 * profile.budget,
            ..facts.limit(&SAMPLING_COST)
        },
        None => facts.limit(&SAMPLING_COST),
    };
    let figure = held(low.max(0.0), &SAMPLING_COST, in_force);
    Some(judged(id, vec![figure], evidence))
}

fn with_samples<'a>(facts: &'a Facts<'_>) -> Option<&'a Profiled> {
    let profile = facts.data.record.profile.as_ref()?;
    (profile.samples > 0).then_some(profile)
}

fn part(of: f64, all: f64) -> f64 {
    100.0 * lab_stats::ratio(of, all).unwrap_or_default()
}

fn signed(percent: f64) -> String {
    format!("{percent:+.1} %").replace('-', "−")
}

/// CPU time and transactions of a block, with and without sampling.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Spent {
    on_cpu: f64,
    on_done: f64,
    off_cpu: f64,
    off_done: f64,
}

impl Spent {
    fn of(block: &SampledBlock, facts: &Facts<'_>) -> Self {
        let done = |from: f64, to: f64| done(facts, from, to);
        let all = done(block.from_ms, block.from_ms + block.on_ms + block.off_ms);
        let off_done = done(block.off_from_ms, block.off_from_ms + block.off_ms);
        Self {
            on_cpu: block.on_cpu_ms,
            on_done: all - off_done,
            off_cpu: block.off_cpu_ms,
            off_done,
        }
    }
}

/// Returns the transactions between two moments; those of a window that is partly within count by that part.
fn done(facts: &Facts<'_>, from_ms: f64, to_ms: f64) -> f64 {
    let windows = facts.data.windows.iter().map(|window| {
        let within = window.end_ms.min(to_ms) - window.start_ms.max(from_ms);
        let length = window.end_ms - window.start_ms;
        let part = lab_stats::ratio(within.max(0.0), length).unwrap_or_default();
        let steps = window.steps.values().map(|step| step.ok);
        part * as_f64(steps.sum())
    });
    windows.sum()
}

/// Returns how much more CPU a transaction takes with sampling, in per cent, and the half width of its 95 % interval: a
/// ratio of sums over blocks, with its jackknife error over blocks.
fn estimate(blocks: &[Spent]) -> Option<(f64, f64)> {
    if blocks.len() < ENOUGH_BLOCKS {
        return None;
    }
    let sum = |without: Option<usize>| {
        let mut sum = Spent::default();
        for (at, block) in blocks.iter().enumerate() {
            if Some(at) != without {
                sum.on_cpu += block.on_cpu;
                sum.on_done += block.on_done;
                sum.off_cpu += block.off_cpu;
                sum.off_done += block.off_done;
            }
        }
        let on = lab_stats::ratio(sum.on_cpu, sum.on_done)?;
        let off = lab_stats::ratio(sum.off_cpu, sum.off_done)?;
        Some(100.0 * (lab_stats::ratio(on, off)? - 1.0))
    };
    let whole = sum(None)?;
    let n = as_f64(blocks.len() as u64);
    let parts: Option<Vec<f64>> = (0..blocks.len()).map(|at| sum(Some(at))).collect();
    let parts = parts?;
    let mean = parts.iter().sum::<f64>() / n;
    let variance = parts.iter().map(|one| (one - mean).powi(2)).sum::<f64>() * (n - 1.0) / n;
    let factor = lab_stats::student::t_of(0.05, n - 1.0);
    Some((whole, factor * variance.sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(at: u32, cost: f64) -> Spent {
        // Load and cost of a transaction differ by block, and between its parts.
        let load = 80.0 + f64::from(at % 5) * 10.0;
        let cpu = 0.3 + f64::from(at % 3) * 0.02;
        let noise = 1.0 + 0.01 * (f64::from(at * 7 % 11) - 5.0) / 5.0;
        Spent {
            on_cpu: 5.0 * load * cpu * (1.0 + cost),
            on_done: 5.0 * load,
            off_cpu: load * cpu * noise,
            off_done: load,
        }
    }

    #[test]
    fn the_cost_is_a_ratio_of_sums_with_an_interval() {
        let blocks: Vec<Spent> = (0..33).map(|at| block(at, 0.03)).collect();
        let (cost, error) = estimate(&blocks).unwrap();
        assert!((cost - 3.0).abs() < error, "{cost} ± {error}");
        assert!(error < 1.0, "{error}");
    }

    #[test]
    fn blocks_without_transactions_do_not_spoil_it() {
        let mut blocks: Vec<Spent> = (0..33).map(|at| block(at, 0.0)).collect();
        blocks[3] = Spent::default();
        let (cost, error) = estimate(&blocks).unwrap();
        assert!(cost.abs() < error, "{cost} ± {error}");
        assert_eq!(estimate(&[Spent::default(); 9]), None);
        assert_eq!(estimate(&blocks[..4]), None);
    }
}
