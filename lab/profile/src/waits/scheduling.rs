//! How long threads that are ready wait for a core: the scheduling latency, by group of threads.

use std::collections::{BTreeMap, BTreeSet};

use hdrhistogram::Histogram;
use lab_stats::histogram::{max, quantile};
use lab_stats::paired::{interval, log_ratio, max_t, mean};
use lab_stats::support::supports;
use lab_stats::verdict::ALPHA;
use schemars::JsonSchema;
use serde::Serialize;

use super::summary::Per;

/// The latencies of a trial or a cell by group of threads, in µs.
pub type Latencies = BTreeMap<String, Histogram<u64>>;

/// The quantiles that are compared.
const COMPARED: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];
/// Most groups of threads that are kept.
const MOST_GROUPS: usize = 50;

/// The scheduling latency of a group of threads: the time from becoming ready to running.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GroupLatency {
    /// The names of the threads without trailing digits, such as `http-*`.
    pub group: String,
    /// The number of times a thread became ready, over all trials.
    pub count: u64,
    /// The median, in µs; `null` with fewer than 5 latencies.
    pub p50_us: Option<f64>,
    /// The 90th percentile, in µs; `null` with fewer than 29 latencies.
    pub p90_us: Option<f64>,
    /// The 99th percentile, in µs; `null` with fewer than 299 latencies.
    pub p99_us: Option<f64>,
    /// The maximum, in µs.
    pub max_us: Option<f64>,
}

/// Returns the latencies of all trials together, by group, sorted by the number of waits, the largest first.
pub fn summary(trials: &[&Latencies]) -> Vec<GroupLatency> {
    let groups: BTreeSet<&String> = trials.iter().flat_map(|trial| trial.keys()).collect();
    let mut all: Vec<GroupLatency> = groups
        .into_iter()
        .map(|group| {
            let mut merged = empty();
            for histogram in trials.iter().filter_map(|trial| trial.get(group)) {
                // It resizes itself, so that every value fits.
                let _ = merged.add(histogram);
            }
            GroupLatency {
                group: group.clone(),
                count: merged.len(),
                p50_us: supported(&merged, 0.5),
                p90_us: supported(&merged, 0.9),
                p99_us: supported(&merged, 0.99),
                max_us: max(&merged).map(us),
            }
        })
        .filter(|one| one.count > 0)
        .collect();
    all.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.group.cmp(&b.group)));
    all.truncate(MOST_GROUPS);
    all
}

/// Returns an empty histogram, with three digits.
pub fn empty() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are possible")
}

fn us(us: u64) -> f64 {
    us as f64
}

/// Returns a quantile in µs, if there are enough values.
fn supported(histogram: &Histogram<u64>, p: f64) -> Option<f64> {
    let is_supported = supports(histogram.len(), p);
    quantile(histogram, p).filter(|_| is_supported).map(us)
}

/// Two cells, and the latencies of both by block; `None` where one has no valid trial with latencies.
#[derive(Clone, Debug)]
pub struct Sides<'a> {
    /// The baseline.
    pub a: &'a str,
    /// The cell compared with it.
    pub b: &'a str,
    /// By block.
    pub blocks: Vec<Option<(&'a Latencies, &'a Latencies)>>,
}

/// The scheduling latency of a group of threads in two cells: its median or p99.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LatencyDifference {
    /// The label of the baseline.
    pub a: String,
    /// The label of the cell that is compared with it.
    pub b: String,
    /// The names of the threads without trailing digits.
    pub group: String,
    /// The quantile: `p50` or `p99`.
    pub quantile: String,
    /// The number of blocks in which trials of both cells have this quantile.
    pub blocks: usize,
    /// The geometric mean of *a* over blocks, in µs.
    pub us_a: f64,
    /// The geometric mean of *b* over blocks, in µs.
    pub us_b: f64,
    /// The geometric mean of *b* ÷ *a* over blocks.
    pub ratio: f64,
    /// The 95 % interval of the ratio.
    pub ratio_interval: Option<(f64, f64)>,
    /// The p-value over all groups, quantiles, and pairs of cells; `null` with too few blocks.
    pub p: Option<f64>,
    /// Whether the two cells differ beyond noise, and by a relevant difference.
    pub differs: bool,
}

/// Compares quantiles of all pairs of cells, as one family. Ratios within `smallest` of 1 are irrelevant.
pub fn compare(
    pairs: &[Sides<'_>],
    seed: u64,
    smallest: f64,
    least_blocks: usize,
) -> Vec<LatencyDifference> {
    let mut drafts = Vec::new();
    for sides in pairs {
        let both = sides.blocks.iter().flatten();
        let groups: BTreeSet<&String> = both.flat_map(|(a, b)| a.keys().chain(b.keys())).collect();
        for group in groups {
            drafts.extend(COMPARED.iter().filter_map(|one| draft(sides, group, *one)));
        }
    }
    let is_tested = |draft: &&Draft| draft.difference.blocks >= least_blocks;
    let rows = drafts.iter().filter(is_tested);
    let rows: Vec<Vec<Option<f64>>> = rows.map(|draft| draft.logs.clone()).collect();
    let mut p = max_t(&rows, seed).into_iter();
    drafts
        .into_iter()
        .map(|draft| {
            let logs: Vec<f64> = draft.logs.iter().flatten().copied().collect();
            let p = match is_tested(&&draft) {
                true => p.next().map(|p| p.joint),
                false => None,
            };
            let mut one = draft.difference;
            let ends = interval(&logs, ALPHA, seed).ends();
            one.ratio_interval = ends.map(|(low, high)| (low.exp(), high.exp()));
            one.differs = p.is_some_and(|p| p <= ALPHA) && one.ratio.ln().abs() >= smallest.ln_1p();
            one.p = p;
            one
        })
        .collect()
}

struct Draft {
    logs: Vec<Option<f64>>,
    difference: LatencyDifference,
}

fn draft(sides: &Sides<'_>, group: &str, (name, p): (&str, f64)) -> Option<Draft> {
    let of = |trial: &Latencies| supported(trial.get(group)?, p);
    let both = sides.blocks.iter().map(|both| {
        let (a, b) = (*both)?;
        let (a, b) = (of(a)?, of(b)?);
        Some((a, b, log_ratio(a, b)?))
    });
    let both: Vec<Option<(f64, f64, f64)>> = both.collect();
    let known: Vec<&(f64, f64, f64)> = both.iter().flatten().collect();
    let logs = |of: fn(&(f64, f64, f64)) -> f64| {
        let logs: Vec<f64> = known.iter().map(|one| of(one)).collect();
        mean(&logs)
    };
    Some(Draft {
        difference: LatencyDifference {
            a: sides.a.to_owned(),
            b: sides.b.to_owned(),
            group: group.to_owned(),
            quantile: name.to_owned(),
            blocks: known.len(),
            us_a: logs(|one| one.0.ln())?.exp(),
            us_b: logs(|one| one.1.ln())?.exp(),
            ratio: logs(|one| one.2)?.exp(),
            ratio_interval: None,
            p: None,
            differs: false,
        },
        logs: both.iter().map(|one| one.map(|one| one.2)).collect(),
    })
}

/// The differences between two cells in waits for a core.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SchedulingDifference {
    /// The label of the baseline.
    pub a: String,
    /// The label of the cell that is compared with it.
    pub b: String,
    /// The time that ready threads waited for a core; `null` if it was not recorded.
    pub no_core: Option<NoCore>,
    /// The median and p99 of each group of threads.
    pub latencies: Vec<LatencyDifference>,
    /// Whether waits for a core are most of a longer response time: both are longer beyond noise.
    pub is_reason: bool,
    /// The results in sentences.
    pub sentences: Vec<String>,
}

/// The time that ready threads waited for a core, in µs of all threads together, by block.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct NoCore {
    /// The unit of reference of times: a transaction or a second.
    pub per: Per,
    /// The number of blocks with a valid trial of both.
    pub blocks: usize,
    /// The mean of *a*.
    pub us_a: f64,
    /// The mean of *b*.
    pub us_b: f64,
    /// The mean difference by block.
    pub us: f64,
    /// The 95 % interval of `us`; `null` with too few blocks.
    pub us_interval: Option<(f64, f64)>,
}

impl NoCore {
    /// Returns the difference of both sides by block; `None` without a block.
    pub fn of(both: &[(f64, f64)], per: Per, (seed, least_blocks): (u64, usize)) -> Option<Self> {
        let differences: Vec<f64> = both.iter().map(|(a, b)| b - a).collect();
        let of = |side: fn(&(f64, f64)) -> f64| {
            let values: Vec<f64> = both.iter().map(side).collect();
            mean(&values)
        };
        let ends = interval(&differences, ALPHA, seed).ends();
        Some(Self {
            per,
            blocks: both.len(),
            us_a: of(|pair| pair.0)?,
            us_b: of(|pair| pair.1)?,
            us: mean(&differences)?,
            us_interval: ends.filter(|_| both.len() >= least_blocks),
        })
    }
}
