//! CPU time by function and by thread.

use std::collections::HashMap;

use crate::columns::Names;
use crate::key::{Key, thread_group};
use crate::model::{Profile, Sample, Weight};

/// The sums of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// All samples.
    pub all: Weight,
    /// Functions, those with the most CPU time of their own first. The kernel's time is summed up by system call, as
    /// `[kernel] futex`.
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
    /// Samples in the function and in its callees. A stack counts once, however often the function is in it.
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

/// Sums under construction: by function, and for the kernel by system call or interrupt.
struct Growing<'a> {
    profile: &'a Profile,
    of: Vec<usize>,
    sums: Vec<FunctionSum>,
    /// The sample that counted a function last, so that it counts once per stack.
    last: Vec<usize>,
    entries: HashMap<String, usize>,
}

impl Growing<'_> {
    /// Counts a sample. The kernel's part of its stack, which is the innermost, counts as one function.
    fn add(&mut self, index: usize, sample: &Sample) {
        let profile = self.profile;
        let of_kernel = |location: &&usize| profile.is_of_kernel(**location);
        let kernel = sample.stack.iter().take_while(of_kernel).count();
        let (kernel, user) = sample.stack.split_at(kernel);
        let entry = (!kernel.is_empty()).then(|| self.entry(kernel));
        let lines = user
            .iter()
            .flat_map(|location| &profile.locations[*location].lines);
        let mut is_innermost = true;
        let user = lines.map(|line| line.function);
        let user: Vec<usize> = user.map(|function| self.of[function]).collect();
        for function in entry.into_iter().chain(user) {
            let sum = &mut self.sums[function];
            if std::mem::take(&mut is_innermost) {
                sum.own += sample.weight();
            }
            if std::mem::replace(&mut self.last[function], index) != index {
                sum.total += sample.weight();
            }
        }
    }

    /// The position of the sum of this system call or interrupt.
    fn entry(&mut self, kernel: &[usize]) -> usize {
        let name = self.profile.kernel_entry(kernel);
        if let Some(known) = self.entries.get(&name) {
            return *known;
        }
        let position = self.sums.len();
        self.sums.push(sum_of(Key {
            name: name.clone(),
            file: String::new(),
        }));
        self.last.push(usize::MAX);
        self.entries.insert(name, position);
        position
    }
}

fn sum_of(key: Key) -> FunctionSum {
    FunctionSum {
        key,
        ..FunctionSum::default()
    }
}

fn functions(profile: &Profile) -> Vec<FunctionSum> {
    let mut names = Names::default();
    let of = names.of(profile);
    let keys = names.keys;
    let mut growing = Growing {
        profile,
        of,
        last: vec![usize::MAX; keys.len()],
        sums: keys.into_iter().map(sum_of).collect(),
        entries: HashMap::new(),
    };
    for (index, sample) in profile.samples.iter().enumerate() {
        growing.add(index, sample);
    }
    let mut sums = growing.sums;
    sums.retain(|sum| sum.total.count > 0 || sum.total.ns > 0);
    sums.sort_by(|a, b| {
        let by = |sum: &FunctionSum| (sum.own.ns, sum.total.ns, sum.own.count);
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
        let by = |sum: &ThreadSum| (sum.weight.ns, sum.weight.count);
        by(b).cmp(&by(a)).then_with(|| a.group.cmp(&b.group))
    });
    groups
}
