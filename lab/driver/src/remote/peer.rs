//! What the conductor knows of a generator: how it is reached, where it lives, and how it may end.

use std::fmt;
use std::time::Duration;

use super::channel::{FrameSink, FrameSource};

/// A generator that waits for its [`crate::Drive`].
pub struct Peer {
    /// What it is told goes here.
    pub orders: Box<dyn FrameSink + Send>,
    /// What it says comes from here.
    pub reports: Box<dyn FrameSource + Send>,
    /// Where it lives.
    pub place: Box<dyn Place>,
    /// Cores that its workers are pinned to, one worker each; empty = one worker, unpinned.
    pub cores: Vec<usize>,
    /// As [`crate::Drive::own_cores`], of these cores.
    pub own_cores: bool,
    /// Its part of the load, against the others' weights; at least 1.
    pub weight: u32,
}

/// Where a generator lives: a process here, or a program elsewhere.
pub trait Place: Send + Sync {
    /// What it is called in messages, such as “generator 1”.
    fn name(&self) -> String;

    /// Its process, if that is one of this machine.
    fn process(&self) -> Option<u32>;

    /// A moment of this machine's monotonic clock, in ns, on its machine's.
    fn moment(&self, here: u64) -> u64;

    /// How long before the trial's 0 it must be told of it.
    fn notice(&self) -> Duration;

    /// Whether it must have said before the trial's 0 that it knows of it.
    fn must_arm(&self) -> bool;

    /// Awaits its end when nothing more is heard of it; `at_once` where it isn't waited for, because
    /// what it said can't be understood.
    fn end(&self, at_once: bool) -> End;

    /// Ends it. Nothing for one that has ended.
    fn kill(&self);
}

/// How a generator ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct End {
    /// What is wrong with it, such as “was ended by signal 9”; `None` when nothing is.
    pub wrong: Option<String>,
    /// What it said last to nobody in particular.
    pub words: String,
    /// The way to it was lost, or its machine; nothing that it did is the reason.
    pub lost: bool,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cores, weight, .. } = self;
        write!(f, "{} on {cores:?}, weight {weight}", self.place.name())
    }
}
