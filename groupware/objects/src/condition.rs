//! The health of an object store: its requests and their outcomes, and whether a request is worth trying now.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use groupware_content::ContentError;

use crate::clock;
use crate::stats::{OPERATIONS, Stats};

/// How long requests fail at once after the store was unreachable: threads that wait for a store that doesn't respond
/// are unavailable for other work.
const REST: Duration = Duration::from_secs(1);
/// The maximum wait for the request that checks whether the store is reachable again.
const FIND_OUT: Duration = Duration::from_secs(60);

/// The kind of a request, as an index into [`OPERATIONS`].
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

/// The outcome of the last request.
#[derive(Debug, Clone, Copy, Default)]
struct Last {
    /// Its time, and whether the store was unreachable.
    answer: Option<(Instant, bool)>,
    /// When the current check for recovery began.
    tried: Option<Instant>,
}

impl Condition {
    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long ago the last request was, and whether the store was unreachable.
    pub(crate) fn last(&self) -> Option<(Duration, bool)> {
        let (at, is_away) = self.lock().answer?;
        Some((clock::now().saturating_duration_since(at), is_away))
    }

    /// Returns true if a request is worth trying. While the store is unreachable, one request at a time checks it.
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

    /// Records the start of a request and its outcome.
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
