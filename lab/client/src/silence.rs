//! How long a connection has been silent. The clock alone doesn't show it, since there may have been no request.

use crate::time::Nanos;

/// When bytes were last received on a connection, and since when requests wait on it without success.
#[derive(Clone, Copy, Default)]
pub(crate) struct Silence {
    heard: Nanos,
    missed: Option<Nanos>,
}

impl Silence {
    /// Records that bytes were received.
    pub(crate) fn hear(&mut self, at: Nanos) {
        (self.heard, self.missed) = (at, None);
    }

    /// Returns when bytes were last received.
    pub(crate) fn heard(self) -> Nanos {
        self.heard
    }

    /// Records that a request that began then has missed its deadline. Returns since when nothing was received for it,
    /// and for others that missed theirs.
    pub(crate) fn miss(&mut self, began: Nanos) -> Nanos {
        let since = began.max(self.heard);
        *self
            .missed
            .insert(self.missed.map_or(since, |first| first.min(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_begins_with_the_first_request_that_waits_in_vain() {
        let mut silence = Silence::default();
        silence.hear(10);
        // Users think, and one sends a request.
        assert_eq!(silence.miss(100), 100);
        // An earlier request may wait longer, but not from before the last receive.
        assert_eq!((silence.miss(50), silence.miss(200)), (50, 50));
        assert_eq!(silence.miss(5), 10);
        silence.hear(300);
        assert_eq!((silence.miss(400), silence.heard()), (400, 300));
    }
}
