//! A generator as the conductor knows it: its transport, its location, and its end.

use std::fmt;
use std::time::Duration;

use super::channel::{FrameSink, FrameSource};

/// A generator that waits for its [`crate::Assignment`].
pub struct Peer {
    /// Sends its orders.
    pub orders: Box<dyn FrameSink + Send>,
    /// Receives its reports.
    pub reports: Box<dyn FrameSource + Send>,
    /// Where it runs.
    pub place: Box<dyn Place>,
    /// Cores that its workers are pinned to, one worker each; empty = one worker, unpinned.
    pub cores: Vec<usize>,
    /// As [`crate::Assignment::own_cores`], of these cores.
    pub own_cores: bool,
    /// Its part of the load, relative to the others' weights; at least 1.
    pub weight: u32,
}

/// Where a generator runs: in a process on this machine, or remotely.
pub trait Place: Send + Sync {
    /// Returns its name for messages, such as “generator 1”.
    fn name(&self) -> String;

    /// Returns its process id, if it runs on this machine.
    fn process(&self) -> Option<u32>;

    /// Converts a time of this machine's monotonic clock, in ns, to its machine's clock.
    fn moment(&self, here: u64) -> u64;

    /// Returns how long before the trial's 0 it must know it.
    fn notice(&self) -> Duration;

    /// Returns true if it must confirm the trial's 0 before it begins.
    fn must_arm(&self) -> bool;

    /// Waits for its end after its last report. `at_once` skips the wait, since its output was unreadable.
    fn end(&self, at_once: bool) -> End;

    /// Kills it. Does nothing if it has ended.
    fn kill(&self);
}

/// How a generator ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// The failure, such as “was ended by signal 9”; `None` if there is none.
    pub wrong: Option<String>,
    /// The end of its error output.
    pub words: String,
    /// The connection or its machine was lost; the generator is not the cause.
    pub lost: bool,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, weight, .. } = self;
        write!(f, "{} on {cores:?}, weight {weight}", self.place.name())
    }
}
