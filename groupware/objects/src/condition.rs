//! How an object store does: what was asked of it and what came of that, and whether it is worth asking now.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use groupware_content::ContentError;

use crate::clock;
use crate::stats::{OPERATIONS, Stats};

/// After it was found away, so long everybody is told so at once: threads that wait for a store that doesn't answer
/// are missing elsewhere.
const REST: Duration = Duration::from_secs(1);
/// Who finds out whether it is back is waited for so long.
const FIND_OUT: Duration = Duration::from_secs(60);

/// What is asked, as an index into [`OPERATIONS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Put,
    Get,
    Head,
    Delete,
    List,
}

#[derive(Debug, Default)]
pub(crate) struct Condition {
    asked: [AtomicU64; OPERATIONS.len()],
    failed: [AtomicU64; OPERATIONS.len()],
    took_us: [AtomicU64; OPERATIONS.len()],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    last: Mutex<Last>,
}

/// What came of asking last.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    /// When that was, and whether it was away then.
    answer: Option<(Instant, bool)>,
    /// When somebody began to find out whether it is back.
    tried: Option<Instant>,
}

impl Condition {
    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was away when it was last asked, and how long ago that was.
    pub(crate) fn last(&self) -> Option<(Duration, bool)> {
        let (at, is_away) = self.lock().answer?;
        Some((clock::now().saturating_duration_since(at), is_away))
    }

    /// Whether it is worth asking. Of one that was away, one at a time finds out whether it is back.
    pub(crate) fn is_worth_asking(&self) -> bool {
        let now = clock::now();
        let mut last = self.lock();
        let Some((at, true)) = last.answer else {
            return true;
        };
        let within = |since: Instant, time| now.saturating_duration_since(since) < time;
        if within(at, REST) || last.tried.is_some_and(|since| within(since, FIND_OUT)) {
            return false;
        }
        last.tried = Some(now);
        true
    }

    /// Something was asked at a moment, and this came of it.
    pub(crate) fn note<T>(
        &self,
        operation: Operation,
        began: Instant,
        result: &Result<T, ContentError>,
    ) {
        let (at, now) = (operation as usize, clock::now());
        let took = now.saturating_duration_since(began).as_micros();
        self.asked[at].fetch_add(1, Relaxed);
        self.took_us[at].fetch_add(u64::try_from(took).unwrap_or(u64::MAX), Relaxed);
        let is_away = matches!(result, Err(ContentError::Away(_)));
        if !matches!(result, Ok(_) | Err(ContentError::Missing { .. })) {
            self.failed[at].fetch_add(1, Relaxed);
        }
        *self.lock() = Last {
            answer: Some((now, is_away)),
            tried: None,
        };
    }

    pub(crate) fn came_in(&self, bytes: u64) {
        self.bytes_in.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn went_out(&self, bytes: u64) {
        self.bytes_out.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        let all = |counts: &[AtomicU64; OPERATIONS.len()]| {
            std::array::from_fn(|at| counts[at].load(Relaxed))
        };
        Stats {
            asked: all(&self.asked),
            failed: all(&self.failed),
            took_us: all(&self.took_us),
            bytes_in: self.bytes_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
            is_away: self.last().is_some_and(|(_, is_away)| is_away),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_away_rests() {
        let condition = Condition::default();
        let note = |result: Result<(), ContentError>| {
            condition.note(Operation::Get, clock::now(), &result);
        };
        note(Ok(()));
        assert!(condition.is_worth_asking() && !condition.stats().is_away);
        note(Err(ContentError::Away("no route".into())));
        assert!(!condition.is_worth_asking() && condition.stats().is_away);
        note(Err(ContentError::Missing { path: "x".into() }));
        assert!(condition.is_worth_asking() && !condition.stats().is_away);
        let stats = condition.stats();
        assert_eq!((stats.asked[1], stats.failed[1]), (3, 1));
        assert_eq!(OPERATIONS[Operation::List as usize], "list");
    }
}
