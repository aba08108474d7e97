//! Transactions under way: when each began, and what its time is so far. It knows no steps.

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
    /// No request failed, and one was left out since there was nothing to send it for.
    Skipped,
    /// Its user left, or the trial ended.
    Unfinished,
}

/// A transaction as the recorder takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionSample {
    /// Its place among those of all populations.
    pub place: usize,
    /// How it ended.
    pub outcome: Outcome,
    /// Without the think times within it.
    pub time: Nanos,
    /// With them.
    pub elapsed: Nanos,
}

/// The transactions under way of a worker's users of one population. Without transactions it holds nothing.
#[derive(Debug, Default)]
pub struct Transactions {
    /// For each user one place per level.
    levels: Box<[Cell<Level>]>,
    /// The most of them within each other.
    depth: usize,
    /// The place of the population's first among those of all.
    first: usize,
}

/// A transaction of one user; none where `number` is 0.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Its place among those of its population, plus 1.
    number: u32,
    /// Whether `from` is the planned send of a request under way.
    is_planned: bool,
    failure: Option<ErrorClass>,
    /// Whether a request was left out.
    skips: bool,
    /// Where its time counts from; 0 before the first request.
    from: Nanos,
    /// Its time until the last think time.
    busy: Nanos,
    /// When it went on after that; 0 within a think time.
    since: Nanos,
}

impl Level {
    /// What its time is at `now`.
    fn time(&self, now: Nanos) -> Nanos {
        match self.since {
            0 => self.busy,
            since => self.busy + now.saturating_sub(since),
        }
    }
}

impl Transactions {
    /// Those of so many users.
    #[must_use]
    pub fn new(users: usize, depth: usize, first: usize) -> Self {
        Self {
            levels: vec![Cell::default(); users * depth].into(),
            depth,
            first,
        }
    }

    /// Those of the user at this place, from the outermost level on; none of a place behind all users, where requests
    /// are noted that one sends at the same time.
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

    /// A transaction begins.
    pub fn begin(&self, user: usize, level: usize, place: usize) {
        self.of(user)[level].set(Level {
            number: place as u32 + 1,
            ..Level::default()
        });
    }

    /// A request is due; from then on the time counts of those that have none yet.
    pub fn due(&self, user: usize, at: Nanos) {
        self.change(user, |level| {
            if level.from == 0 {
                let at = at.max(1);
                (level.from, level.since, level.is_planned) = (at, at, true);
            }
        });
    }

    /// The request is over. Its response time counts from `from`; `None` where it was not sent.
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

    /// One of several requests under way has failed.
    pub fn failed(&self, user: usize, class: ErrorClass) {
        self.change(user, |level| {
            level.failure = level.failure.or(Some(class));
        });
    }

    /// A think time begins.
    pub fn thinks(&self, user: usize, now: Nanos) {
        self.change(user, |level| {
            level.busy = level.time(now);
            level.since = 0;
        });
    }

    /// A think time is over by its plan.
    pub fn goes_on(&self, user: usize, at: Nanos) {
        self.change(user, |level| {
            if level.from > 0 {
                level.since = at.max(1);
            }
        });
    }

    /// A transaction ends; `None` where it sent nothing and nothing failed.
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

    /// The place of the whole session among those of all populations, if it is one.
    #[must_use]
    pub fn session(&self) -> Option<usize> {
        (self.depth > 0).then_some(self.first)
    }

    /// The session that arrived at this moment and has no connection at the end of a trial.
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

    /// All that are under way at the end of a trial.
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
