//! For how long nothing is heard on a connection: not by the clock alone, since nobody may have asked anything.

use crate::time::Nanos;

/// When something was heard on a connection, and since when requests wait on it in vain.
#[derive(Clone, Copy, Default)]
pub(crate) struct Silence {
    heard: Nanos,
    missed: Option<Nanos>,
}

impl Silence {
    /// Something was heard.
    pub(crate) fn hear(&mut self, at: Nanos) {
        (self.heard, self.missed) = (at, None);
    }

    /// When something was heard last.
    pub(crate) fn heard(self) -> Nanos {
        self.heard
    }

    /// A request that began then has missed its deadline. Since when nothing is heard of it, nor of others that missed
    /// theirs.
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
        // Users think, and one asks.
        assert_eq!(silence.miss(100), 100);
        // Another one that asked sooner may wait longer; none before something was heard.
        assert_eq!((silence.miss(50), silence.miss(200)), (50, 50));
        assert_eq!(silence.miss(5), 10);
        silence.hear(300);
        assert_eq!((silence.miss(400), silence.heard()), (400, 300));
    }
}
