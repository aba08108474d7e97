//! CPU time by function and by thread.

use std::collections::HashMap;

use crate::key::{Key, thread_group};
use crate::model::{Profile, Weight};

/// The sums of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// All samples.
    pub all: Weight,
    /// Functions, those with the most CPU time of their own first.
    pub functions: Vec<FunctionSum>,
    /// Groups of threads, those with the most CPU time first.
    pub threads: Vec<ThreadSum>,
}

/// The CPU time of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSum {
    /// The function.
    pub key: Key,
    /// Samples in code of the function itself.
    pub own: Weight,
    /// Samples in the function and in what it called. A stack counts once, however often the function is in it.
    pub total: Weight,
}

/// The CPU time of a group of threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSum {
    /// The group, such as `http-*`.
    pub group: String,
    /// Its samples.
    pub weight: Weight,
}

/// Keys of a profile's functions, and the position of each function's key among them.
pub(crate) struct Keys {
    pub(crate) keys: Vec<Key>,
    pub(crate) of: Vec<usize>,
}

impl Keys {
    pub(crate) fn of(profile: &Profile) -> Self {
        let mut known: HashMap<Key, usize> = HashMap::new();
        let mut keys = Vec::new();
        let mut of = Vec::with_capacity(profile.functions.len());
        for function in &profile.functions {
            let key = Key::of(function);
            let index = *known.entry(key).or_insert_with_key(|key| {
                keys.push(key.clone());
                keys.len() - 1
            });
            of.push(index);
        }
        Self { keys, of }
    }
}

impl Sums {
    /// The sums of a profile.
    pub fn of(profile: &Profile) -> Self {
        Self {
            all: profile.weight(),
            functions: functions(profile),
            threads: threads(profile),
        }
    }
}

fn functions(profile: &Profile) -> Vec<FunctionSum> {
    let Keys { keys, of } = Keys::of(profile);
    let sum = |key| FunctionSum {
        key,
        ..FunctionSum::default()
    };
    let mut sums: Vec<FunctionSum> = keys.into_iter().map(sum).collect();
    // The sample that counted a function last, so that it counts once per stack.
    let mut last = vec![usize::MAX; sums.len()];
    for (index, sample) in profile.samples.iter().enumerate() {
        let mut frames = profile
            .frames(sample)
            .map(|function| of[function])
            .peekable();
        if let Some(innermost) = frames.peek() {
            sums[*innermost].own += sample.weight();
        }
        for function in frames {
            if std::mem::replace(&mut last[function], index) != index {
                sums[function].total += sample.weight();
            }
        }
    }
    sums.retain(|sum| sum.total.count > 0 || sum.total.cpu_ns > 0);
    sums.sort_by(|a, b| {
        let by = |sum: &FunctionSum| (sum.own.cpu_ns, sum.total.cpu_ns, sum.own.count);
        by(b).cmp(&by(a)).then_with(|| a.key.cmp(&b.key))
    });
    sums
}

fn threads(profile: &Profile) -> Vec<ThreadSum> {
    let mut sums: HashMap<&str, Weight> = HashMap::new();
    for sample in &profile.samples {
        *sums.entry(&profile.threads[sample.thread]).or_default() += sample.weight();
    }
    let mut groups: HashMap<String, Weight> = HashMap::new();
    for (name, weight) in sums {
        *groups.entry(thread_group(name).into_owned()).or_default() += weight;
    }
    let sum = |(group, weight)| ThreadSum { group, weight };
    let mut groups: Vec<ThreadSum> = groups.into_iter().map(sum).collect();
    groups.sort_by(|a, b| {
        let by = |sum: &ThreadSum| (sum.weight.cpu_ns, sum.weight.count);
        by(b).cmp(&by(a)).then_with(|| a.group.cmp(&b.group))
    });
    groups
}
