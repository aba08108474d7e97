//! Transactions in progress: their start times, and their times so far. It knows no steps.

use std::cell::Cell;

use crate::class::ErrorClass;

/// Nanoseconds of one clock.
type Nanos = u64;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All of its requests met their `expect`.
    Completed,
    /// A request failed, the first one in this way.
    Failed(ErrorClass),
    /// No request failed, and one was skipped since it had no value to send.
    Skipped,
    /// Its user stopped, or the trial ended.
    Unfinished,
}

/// A transaction for the recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionSample {
    /// Its index among those of all populations.
    pub place: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// Time without the think times within it.
    pub time: Nanos,
    /// Time with them.
    pub elapsed: Nanos,
}

/// The transactions in progress of a worker's users of one population. Without transactions it allocates nothing.
#[derive(Debug, Default)]
pub struct Transactions {
    /// One slot per user and level.
    levels: Box<[Cell<Level>]>,
    /// Their deepest nesting.
    depth: usize,
    /// The index of the population's first among those of all.
    first: usize,
}

/// A transaction of one user; none if `number` is 0.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Its index among those of its population, plus 1.
    number: u32,
    /// True if `from` is the planned send of a request in flight.
    is_planned: bool,
    failure: Option<ErrorClass>,
    /// True if a request was skipped.
    skips: bool,
    /// Start of its time; 0 before the first request.
    from: Nanos,
    /// Its time until the last think time.
    busy: Nanos,
    /// When it continued after that; 0 within a think time.
    since: Nanos,
}

impl Level {
    /// Its time at `now`.
    fn time(&self, now: Nanos) -> Nanos {
        match self.since {
            0 => self.busy,
            since => self.busy + now.saturating_sub(since),
        }
    }
}

impl Transactions {
    /// For `users` users.
    #[must_use]
    pub fn new(users: usize, depth: usize, first: usize) -> Self {
        Self {
            levels: vec![Cell::default(); users * depth].into(),
            depth,
            first,
        }
    }

    /// The levels of a user, from the outermost on; empty for an index after the last user, which parallel requests
    /// use.
    fn of(&self, user: usize) -> &[Cell<Level>] {
        let first = user * self.depth;
        self.levels
            .get(first..first + self.depth)
            .unwrap_or_default()
    }

    fn change(&self, user: usize, change: impl Fn(&mut Level)) {
        for cell in self.of(user) {
            let mut level = cell.get();
            if level.number > 0 {
                change(&mut level);
                cell.set(level);
            }
        }
    }

    /// Starts a transaction.
    pub fn begin(&self, user: usize, level: usize, place: usize) {
        self.of(user)[level].set(Level {
            number: place as u32 + 1,
            ..Level::default()
        });
    }

    /// A request is due; this starts the time of transactions without a start yet.
    pub fn due(&self, user: usize, at: Nanos) {
        self.change(user, |level| {
            if level.from == 0 {
                let at = at.max(1);
                (level.from, level.since, level.is_planned) = (at, at, true);
            }
        });
    }

    /// Ends the request. Its response time counts from `from`; `None` if it was not sent.
    pub fn ended(&self, user: usize, from: Option<Nanos>, failure: Option<ErrorClass>) {
        self.change(user, |level| {
            if std::mem::take(&mut level.is_planned) {
                let at = from.map_or(0, |at| at.max(1));
                (level.from, level.since) = (at, at);
            }
            level.failure = level.failure.or(failure);
            level.skips |= from.is_none() && failure.is_none();
        });
    }

    /// Records the failure of one of several requests in flight.
    pub fn failed(&self, user: usize, class: ErrorClass) {
        self.change(user, |level| {
            level.failure = level.failure.or(Some(class));
        });
    }

    /// Starts a think time.
    pub fn thinks(&self, user: usize, now: Nanos) {
        self.change(user, |level| {
            level.busy = level.time(now);
            level.since = 0;
        });
    }

    /// Ends a think time at its planned end.
    pub fn goes_on(&self, user: usize, at: Nanos) {
        self.change(user, |level| {
            if level.from > 0 {
                level.since = at.max(1);
            }
        });
    }

    /// Ends a transaction; `None` if it sent nothing and nothing failed.
    pub fn end(
        &self,
        user: usize,
        level: usize,
        now: Nanos,
        leaves: bool,
    ) -> Option<TransactionSample> {
        let level = self.of(user)[level].take();
        let outcome = match level.failure {
            Some(class) => Outcome::Failed(class),
            None if level.from == 0 => return None,
            None if leaves => Outcome::Unfinished,
            None if level.skips => Outcome::Skipped,
            None => Outcome::Completed,
        };
        Some(self.sample(level, outcome, now))
    }

    /// The index of the whole session among those of all populations, if it is one.
    #[must_use]
    pub fn session(&self) -> Option<usize> {
        (self.depth > 0).then_some(self.first)
    }

    /// The session that arrived at this time and has no connection at the end of a trial.
    #[must_use]
    pub fn waiting(&self, arrived: Nanos, cut: Nanos) -> Option<TransactionSample> {
        let age = cut.saturating_sub(arrived);
        let place = self.session().filter(|_| age > 0)?;
        Some(TransactionSample {
            place,
            outcome: Outcome::Unfinished,
            time: age,
            elapsed: age,
        })
    }

    /// All transactions in progress at the end of a trial.
    pub fn unfinished(&self, cut: Nanos) -> impl Iterator<Item = TransactionSample> {
        let levels = self.levels.iter().map(Cell::get);
        let begun = levels.filter(move |level| level.from > 0 && level.from < cut);
        begun.map(move |level| {
            let outcome = level.failure.map_or(Outcome::Unfinished, Outcome::Failed);
            self.sample(level, outcome, cut)
        })
    }

    fn sample(&self, level: Level, outcome: Outcome, now: Nanos) -> TransactionSample {
        TransactionSample {
            place: self.first + level.number as usize - 1,
            outcome,
            time: level.time(now),
            elapsed: match level.from {
                0 => 0,
                from => now.saturating_sub(from),
            },
        }
    }
}
