//! Parallel requests of a step.

use serde::{Deserialize, Serialize};

use crate::slot::Slot;

/// Default limit of a user's concurrent requests: the number of connections that browsers open to a server, or 100
/// streams for a connection that multiplexes requests, as in HTTP/2.
#[must_use]
pub const fn usual_at_once(multiplexes: bool) -> u32 {
    if multiplexes { 100 } else { 6 }
}

/// The parallel requests of a step, sent once those before them have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parallel {
    /// The index of the first of them among the step's requests: they are the last ones.
    pub first: usize,
    /// The most concurrent requests of a user, at least 1. `None` uses the protocol's default, [`usual_at_once`].
    pub at_once: Option<u32>,
    /// After a failure no further request is started.
    pub stops: bool,
    /// The step that counts each of them: 0 is the step that they belong to, 1 the next one, and so on. Those are steps
    /// without requests: names for the requests of this one.
    pub counts_as: Vec<usize>,
    /// The last of them is sent for each entry of a list.
    pub each: Option<ForEach>,
}

/// A request for each entry of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForEach {
    /// The list.
    pub list: Slot,
    /// The variable of the entry while its request is rendered.
    pub entry: Slot,
    /// Most requests.
    pub at_most: u32,
}

impl Parallel {
    /// The step that counts a request, relative to its own; 0 for a request before the parallel ones.
    #[must_use]
    pub fn counts_as(&self, request: usize) -> usize {
        let place = request.checked_sub(self.first);
        let counts_as = place.and_then(|place| self.counts_as.get(place));
        counts_as.copied().unwrap_or_default()
    }

    /// Their most concurrent requests, with the protocol's default if the workload sets none.
    #[must_use]
    pub fn most_at_once(&self, unless_said: u32) -> u32 {
        let entries = self.each.as_ref().map_or(1, |each| each.at_most);
        let once = u32::try_from(self.counts_as.len()).unwrap_or(u32::MAX);
        let all = once.saturating_sub(1).saturating_add(entries);
        self.at_once.unwrap_or(unless_said).min(all).max(1)
    }

    /// The request that is sent for each entry of a list, and the most entries.
    #[must_use]
    pub fn repeated(&self) -> Option<(usize, u32)> {
        let each = self.each.as_ref()?;
        let last = (self.first + self.counts_as.len()).checked_sub(1)?;
        Some((last, each.at_most))
    }
}
