//! The waits of threads while they are off the CPU: classes of waits, and the time of groups of threads.

mod code;
pub mod differences;
mod patterns;
pub mod scheduling;
mod summary;
mod tables;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::class::Class;
pub use crate::key::thread_group;
pub use code::{ANY_CODE, Code, class_of, frames};
pub use patterns::{BadPattern, Frame, Patterns};
pub use summary::{CodeWait, GroupTime, Per, Summary, Trial, Waker};

/// How the threads of a group spent the hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadGroup {
    /// The group, such as `http-*`: the name of its threads with `*` for the digits at its end.
    pub name: String,
    /// Threads that lived in the hold.
    pub threads: u32,
    /// The time that they lived in the hold, added up, in nanoseconds.
    pub wall_ns: u64,
    /// Time on a CPU, in nanoseconds.
    pub on_cpu_ns: u64,
    /// Time in which they were ready to run and waited for a core, in nanoseconds.
    pub no_core_ns: u64,
    /// Time in which they were blocked, by what they waited for, in nanoseconds; `None` where it isn't known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_ns: Option<BTreeMap<Class, u64>>,
}
