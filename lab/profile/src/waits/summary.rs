//! The waits of a system's threads, over the trials of a cell.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use super::ThreadGroup;
use super::code::{ANY_CODE, Code, Codes, class_of};
use super::patterns::Patterns;
use crate::class::Class;
use crate::key::thread_group;
use crate::model::{Profile, Sample};
use crate::tree::Tree;

/// Most waits that are kept; the largest ones.
const MOST_WAITS: usize = 100;
/// Most groups of threads that are kept.
const MOST_GROUPS: usize = 50;
/// Most groups of threads that are named for one wait.
const MOST_WAITING: usize = 3;
/// Most wakers of a wait.
const MOST_WAKERS: usize = 3;

/// The waits of one trial, over the hold after its warm-up.
#[derive(Clone, Copy, Debug)]
pub struct Trial<'a> {
    /// Intervals off the CPU with their stacks, if they were recorded.
    pub profile: Option<&'a Profile>,
    /// How each group of threads spent the hold; empty if that wasn't recorded.
    pub groups: &'a [ThreadGroup],
    /// The time that the profile covers, in seconds.
    pub recorded_seconds: f64,
    /// The time that the groups cover, in seconds.
    pub seconds: f64,
    /// Transactions in a second; `None` if none was counted.
    pub transactions_per_s: Option<f64>,
}

impl Trial<'_> {
    /// The time in which threads were ready and had no core, in µs of all threads; `None` if it wasn't recorded.
    pub fn no_core_us(&self, per: Per) -> Option<f64> {
        let divisor = self.divisor(per, self.seconds)?;
        let ns: u64 = self.groups.iter().map(|group| group.no_core_ns).sum();
        (!self.groups.is_empty()).then(|| ns as f64 / 1e3 / divisor)
    }

    /// Returns the divisor of times, for this number of seconds.
    pub(super) fn divisor(&self, per: Per, seconds: f64) -> Option<f64> {
        let divisor = match per {
            Per::Second => seconds,
            Per::Transaction => self.transactions_per_s? * seconds,
        };
        (divisor.is_finite() && divisor > 0.0).then_some(divisor)
    }
}

/// The unit of reference of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// A transaction.
    #[default]
    Transaction,
    /// A second, if a trial has no transactions.
    Second,
}

impl Per {
    /// Returns a transaction, if all trials have some.
    pub fn of<'a>(mut trials: impl Iterator<Item = Trial<'a>>) -> Self {
        let has_some = |trial: Trial<'_>| trial.transactions_per_s.is_some_and(|rate| rate > 0.0);
        match trials.all(has_some) {
            true => Self::Transaction,
            false => Self::Second,
        }
    }

    /// `tx` or `s`.
    pub const fn short(self) -> &'static str {
        match self {
            Self::Transaction => "tx",
            Self::Second => "s",
        }
    }

    /// `transaction` or `second`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Transaction => "transaction",
            Self::Second => "second",
        }
    }
}

/// The waits of a cell: means over its trials.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// The unit of reference of all times and counts: a transaction, or a second if no transaction was counted.
    pub per: Per,
    /// The time of groups of threads, at most 50: groups with the most time on a CPU or in waits known not to be for
    /// work first. Empty if it was not recorded.
    pub groups: Vec<GroupTime>,
    /// The waits by code and class, at most 100: the longest first, then waits of unknown code, waits for work last.
    /// Empty if no stacks were recorded.
    pub waits: Vec<CodeWait>,
    /// The number of different waits that were found.
    pub waits_found: usize,
    /// The number of recorded intervals off the CPU.
    pub intervals: u64,
    /// The calls by group of threads, without waits for work; for the flame graph.
    #[serde(skip)]
    pub tree: Option<Tree>,
    /// The time of all these calls, in µs.
    #[serde(skip)]
    pub tree_us: f64,
}

/// The time of a group of threads, in µs of all its threads together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GroupTime {
    /// The names of the threads without trailing digits, such as `http-*`.
    pub group: String,
    /// The mean number of threads per trial.
    pub threads: f64,
    /// Time on a CPU, in µs.
    pub on_cpu_us: f64,
    /// Time ready to run without a core, in µs.
    pub no_core_us: f64,
    /// Blocked time by class of wait, in µs; `null` if unknown.
    pub blocked_us: Option<BTreeMap<Class, f64>>,
    /// The remaining time, in µs: blocked for an unknown reason.
    pub unknown_us: f64,
}

impl GroupTime {
    /// Returns the time on a CPU, and in waits that are known to be for something else than work.
    fn busy_us(&self) -> f64 {
        let blocked = self.blocked_us.iter().flatten();
        let is_known = |class: Class| !matches!(class, Class::LockOrCondition | Class::Other);
        let blocked =
            blocked.filter(|(class, _)| !class.is_waiting_for_work() && is_known(**class));
        self.on_cpu_us + self.no_core_us + blocked.map(|(_, us)| us).sum::<f64>()
    }
}

/// A wait of a function.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CodeWait {
    /// The function nearest to the wait that belongs neither to libc nor to a language's runtime.
    pub function: String,
    /// The class of the wait.
    pub class: Class,
    /// Whether threads in this wait are usually idle.
    pub is_for_work: bool,
    /// The groups of threads that wait here, those with the most time first, at most 3.
    pub groups: Vec<String>,
    /// Time in µs of all threads together.
    pub us: f64,
    /// The number of waits.
    pub count: f64,
    /// The wakers that ended these waits, if known: those with the most time first, at most 3.
    pub wakers: Vec<Waker>,
}

/// The code that ended waits.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Waker {
    /// The group and the function of the thread that ended the waits, such as `http-* in handle`.
    pub name: String,
    /// Its part of the time of the waits with a known waker, from 0 to 1.
    pub part: f64,
}

impl Summary {
    /// Summarises the waits of these trials; `None` if none has any.
    pub fn of(trials: &[Trial<'_>], patterns: &Patterns) -> Option<Self> {
        let per = Per::of(trials.iter().copied());
        let waits = waits(trials, per, patterns);
        let groups = groups(trials, per);
        if groups.is_empty() && waits.is_empty() {
            return None;
        }
        let profiles = trials.iter().filter_map(|trial| trial.profile);
        let intervals = profiles.clone().map(|profile| profile.weight().count);
        let is_shown = |sample: &Sample| !class_of(sample).is_waiting_for_work();
        let shown = Profile::merged_where(profiles.clone(), is_shown);
        Some(Self {
            per,
            groups,
            waits_found: waits.len(),
            intervals: intervals.sum(),
            tree_us: waits
                .iter()
                .filter(|one| !one.is_for_work)
                .map(|one| one.us)
                .sum(),
            waits: waits.into_iter().take(MOST_WAITS).collect(),
            tree: (!shown.samples.is_empty()).then(|| Tree::by_thread(&shown)),
        })
    }
}

/// Sums of one wait over trials.
#[derive(Default)]
struct Sum {
    us: f64,
    count: f64,
    groups: HashMap<String, f64>,
    wakers: HashMap<String, f64>,
}

fn waits(trials: &[Trial<'_>], per: Per, patterns: &Patterns) -> Vec<CodeWait> {
    let with_profile: Vec<_> = trials
        .iter()
        .filter_map(|trial| {
            let divisor = trial.divisor(per, trial.recorded_seconds)?;
            Some((trial.profile?, divisor))
        })
        .collect();
    let number = with_profile.len() as f64;
    let mut sums: HashMap<Code, Sum> = HashMap::new();
    for (profile, divisor) in with_profile {
        let mut codes = Codes::new(profile, patterns);
        for sample in &profile.samples {
            let sum = sums.entry(codes.of(sample)).or_default();
            let us = sample.ns as f64 / 1e3 / divisor / number;
            sum.us += us;
            sum.count += sample.count as f64 / divisor / number;
            let group = thread_group(&profile.threads[sample.thread]);
            *sum.groups.entry(group.into_owned()).or_default() += us;
            if let Some(waker) = sample.wait.and_then(|wait| wait.waker) {
                let name = profile.wakers[waker].clone();
                *sum.wakers.entry(name).or_default() += us;
            }
        }
    }
    let mut waits: Vec<CodeWait> = sums.into_iter().map(code_wait).collect();
    waits.sort_by(|a, b| {
        let is_unknown = |one: &CodeWait| one.function.starts_with('[') && one.function != ANY_CODE;
        let rank = |one: &CodeWait| (one.is_for_work, is_unknown(one));
        let by_kind = rank(a).cmp(&rank(b));
        let by_time = b.us.total_cmp(&a.us);
        let by_name = (&a.function, a.class).cmp(&(&b.function, b.class));
        by_kind.then(by_time).then(by_name)
    });
    waits
}

fn code_wait((code, sum): (Code, Sum)) -> CodeWait {
    let known: f64 = sum.wakers.values().sum();
    let wakers = largest(sum.wakers, MOST_WAKERS).into_iter();
    let groups = largest(sum.groups, MOST_WAITING).into_iter();
    CodeWait {
        is_for_work: code.class.is_waiting_for_work(),
        class: code.class,
        function: code.function,
        groups: groups.map(|(group, _)| group).collect(),
        us: sum.us,
        count: sum.count,
        wakers: wakers
            .map(|(name, us)| Waker {
                name,
                part: us / known,
            })
            .collect(),
    }
}

/// Returns the entries with the most time.
fn largest(of: HashMap<String, f64>, most: usize) -> Vec<(String, f64)> {
    let mut of: Vec<(String, f64)> = of.into_iter().collect();
    of.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    of.truncate(most);
    of
}

/// Returns means over trials. A group that a trial doesn't have counts there as 0.
fn groups(trials: &[Trial<'_>], per: Per) -> Vec<GroupTime> {
    let with_groups: Vec<_> = trials
        .iter()
        .filter(|trial| !trial.groups.is_empty())
        .filter_map(|trial| Some((trial, trial.divisor(per, trial.seconds)?)))
        .collect();
    let number = with_groups.len() as f64;
    let mut sums: BTreeMap<&str, GroupTime> = BTreeMap::new();
    for (trial, divisor) in with_groups {
        for group in trial.groups {
            let us = |ns: u64| ns as f64 / 1e3 / divisor / number;
            let sum = sums.entry(&group.name).or_default();
            sum.group.clone_from(&group.name);
            sum.threads += f64::from(group.threads) / number;
            sum.on_cpu_us += us(group.on_cpu_ns);
            sum.no_core_us += us(group.no_core_ns);
            let mut rest = group.wall_ns;
            rest = rest.saturating_sub(group.on_cpu_ns.saturating_add(group.no_core_ns));
            if let Some(blocked) = &group.blocked_ns {
                let by_class = sum.blocked_us.get_or_insert_default();
                for (class, ns) in blocked {
                    *by_class.entry(*class).or_default() += us(*ns);
                    rest = rest.saturating_sub(*ns);
                }
            }
            sum.unknown_us += us(rest);
        }
    }
    let mut groups: Vec<GroupTime> = sums.into_values().collect();
    groups.sort_by(|a, b| {
        let by_time = b.busy_us().total_cmp(&a.busy_us());
        by_time.then_with(|| a.group.cmp(&b.group))
    });
    groups.truncate(MOST_GROUPS);
    groups
}
