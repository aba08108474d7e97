//! The waits of threads while they are off the CPU: classes of waits, and the time of groups of threads.

mod code;
pub mod differences;
mod patterns;
pub mod scheduling;
mod summary;
mod tables;

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Profile;

pub use crate::class::Class;
pub use crate::key::thread_group;
pub use code::{ANY_CODE, Code, class_of};
pub use patterns::{BadPattern, Frame, Patterns};
pub use summary::{CodeWait, GroupTime, Per, Summary, Trial, Waker};

/// The time of a group of threads in the hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadGroup {
    /// The group, such as `http-*`: the name of its threads with `*` for the digits at its end.
    pub name: String,
    /// The number of threads that existed in the hold.
    pub threads: u32,
    /// The lifetime of all threads in the hold together, in nanoseconds.
    pub wall_ns: u64,
    /// Time on a CPU, in nanoseconds.
    pub on_cpu_ns: u64,
    /// Time ready to run without a core, in nanoseconds.
    pub no_core_ns: u64,
    /// Blocked time by class of wait, in nanoseconds; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ns: Option<BTreeMap<Class, u64>>,
}

/// Counts waits on futexes as waits for work in groups whose threads never ran: a thread that isn't woken for a whole hold
/// serves no request.
pub fn settle_idle_groups(profile: Option<&mut Profile>, groups: &mut [ThreadGroup]) {
    let idle = groups.iter_mut().filter(|group| group.on_cpu_ns == 0);
    let names: HashSet<String> = idle
        .map(|group| {
            let blocked = group.blocked_ns.iter_mut();
            for by_class in blocked {
                if let Some(ns) = by_class.remove(&Class::LockOrCondition) {
                    *by_class.entry(Class::Idle).or_default() += ns;
                }
            }
            group.name.clone()
        })
        .collect();
    let Some(profile) = profile else { return };
    let is_idle = |name: &String| names.contains(thread_group(name).as_ref());
    let threads: Vec<bool> = profile.threads.iter().map(is_idle).collect();
    for sample in profile.samples.iter_mut().filter(|one| threads[one.thread]) {
        if let Some(wait) = sample
            .wait
            .as_mut()
            .filter(|wait| wait.class == Class::LockOrCondition)
        {
            wait.class = Class::Idle;
        }
    }
}
