//! Requests of a step that go out at the same time.

use serde::{Deserialize, Serialize};

use crate::slot::Slot;

/// The requests of a step that go out at the same time, once those before them have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parallel {
    /// The place of the first of them among the step's requests: they are the last ones.
    pub first: usize,
    /// At most so many of a user's are under way at once; at least 1.
    pub at_once: u32,
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

    /// The request that is sent for each entry of a list, and how often at most.
    #[must_use]
    pub fn repeated(&self) -> Option<(usize, u32)> {
        let each = self.each.as_ref()?;
        let last = (self.first + self.counts_as.len()).checked_sub(1)?;
        Some((last, each.at_most))
    }
}
