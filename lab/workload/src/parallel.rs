//! Requests of a step that go out at the same time.

use serde::{Deserialize, Serialize};

use crate::slot::Slot;

/// The most requests of a user that are under way at once, unless the workload says otherwise: as many as browsers open
/// connections to a server, or 100 streams of a connection that carries several requests, as those of HTTP/2 do.
#[must_use]
pub const fn usual_at_once(multiplexes: bool) -> u32 {
    if multiplexes { 100 } else { 6 }
}

/// The requests of a step that go out at the same time, once those before them have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parallel {
    /// The place of the first of them among the step's requests: they are the last ones.
    pub first: usize,
    /// The most concurrent requests of a user, at least 1. `None` uses the protocol's default, [`usual_at_once`].
    pub at_once: Option<u32>,
    /// After one has failed, no further one is begun.
    pub stops: bool,
    /// As which step each of them counts: 0 is the step that they belong to, 1 the one behind it, and so on. Those are
    /// steps without requests: names for what this one sends.
    pub counts_as: Vec<usize>,
    /// The last of them is sent for each entry of a list.
    pub each: Option<ForEach>,
}

/// A request for each entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForEach {
    /// The list.
    pub list: Slot,
    /// What has the entry while its request is made.
    pub entry: Slot,
    /// No more than these are sent.
    pub at_most: u32,
}

impl Parallel {
    /// As which step a request of the step counts, from the step on; 0 of one that goes out before these.
    #[must_use]
    pub fn counts_as(&self, request: usize) -> usize {
        let place = request.checked_sub(self.first);
        let counts_as = place.and_then(|place| self.counts_as.get(place));
        counts_as.copied().unwrap_or_default()
    }

    /// The most of them that are under way at once, where so many may be unless the workload says.
    #[must_use]
    pub fn most_at_once(&self, unless_said: u32) -> u32 {
        let entries = self.each.as_ref().map_or(1, |each| each.at_most);
        let once = u32::try_from(self.counts_as.len()).unwrap_or(u32::MAX);
        let all = once.saturating_sub(1).saturating_add(entries);
        self.at_once.unwrap_or(unless_said).min(all).max(1)
    }

    /// The request that is sent for each entry of a list, and how often at most.
    #[must_use]
    pub fn repeated(&self) -> Option<(usize, u32)> {
        let each = self.each.as_ref()?;
        let last = (self.first + self.counts_as.len()).checked_sub(1)?;
        Some((last, each.at_most))
    }
}
