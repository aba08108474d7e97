//! The activity of threads between switches: intervals off the CPU, from records in the order of time. It reads no
//! clock and is independent of the kernel.

use std::collections::{BTreeMap, HashMap};

use hdrhistogram::Histogram;

use super::usage::Times;

/// Threads that are remembered, at most.
const MOST_THREADS: usize = 100_000;
/// Different pieces of intervals, at most. Beyond it pieces lose their stacks.
const MOST_PIECES: usize = 1_000_000;

/// A day: longer latencies count as one.
const LONGEST_US: u64 = 86_400_000_000;

/// A group, a stack, or a waker, by its number in a table.
pub(crate) type Number = u32;

/// Why a thread is off the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// It could run and had to leave its core.
    Preempted,
    /// It sleeps. Includes the time from waking to running if the waking wasn't recorded.
    Blocked,
    /// It was woken and waits for a core.
    Woken,
}

/// Intervals of one group that are alike: of one kind, and as long within a factor of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stratum {
    pub(crate) group: Number,
    pub(crate) kind: Kind,
    pub(crate) length: u8,
}

/// Parts of intervals with one stack in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Piece {
    pub(crate) second: u32,
    pub(crate) stratum: Stratum,
    pub(crate) stack: Number,
    /// The waker that ended the interval.
    pub(crate) waker: Option<Number>,
    /// Whether the stack is known without sampling. Such pieces represent only themselves.
    pub(crate) is_known: bool,
}

/// Intervals and their time. An interval counts in the second in which it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) ns: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, count: u64, ns: u64) {
        self.count += count;
        self.ns += ns;
    }
}

/// A moment of the kernel's monotonic clock, in nanoseconds.
type At = u64;

/// The stack of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stack {
    NotSampled,
    Sampled(Number),
    Known(Number),
}

/// The end of a wait: its time, and its waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waking {
    at: At,
    waker: Option<Number>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Off {
    since: At,
    preempted: bool,
    stack: Stack,
    woken: Option<Waking>,
}

impl Off {
    /// Returns true if a waking at this moment ends the sleep.
    fn sleeps(&self, at: At) -> bool {
        !self.preempted && self.woken.is_none() && self.since <= at
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Records are missing.
    Unknown,
    /// It ran or was ready to run when the window was opened.
    Ready(At),
    On(At),
    Off(Off),
}

#[derive(Clone, Copy, Debug)]
struct Thread {
    group: Number,
    state: State,
    /// The stack of the switch that follows.
    next: Option<Number>,
    since: Since,
}

impl Thread {
    /// Counts time on the CPU; `on_ns` are the sums by group.
    fn on(&mut self, since: At, to: At, on_ns: &mut BTreeMap<Number, u64>) {
        let ns = to.saturating_sub(since);
        self.since.on_ns += ns;
        *on_ns.entry(self.group).or_default() += ns;
    }
}

/// The activity of a thread since the last mark.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    at: At,
    on_ns: u64,
    preempted_ns: u64,
}

/// The activity of a thread when a window is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    /// It runs or is ready to.
    Runs,
    /// It sleeps, and its stack is this one.
    Sleeps(Number),
    /// It has not run since the last window was closed.
    SleepsOn,
}

/// Threads and the intervals in which they were off the CPU, in the windows that are recorded.
#[derive(Debug, Default)]
pub(crate) struct Switches {
    threads: HashMap<i32, Thread>,
    /// Threads as they were when the last window was closed.
    before: HashMap<i32, Thread>,
    ended: BTreeMap<Number, Times>,
    /// When the window that is open began.
    window: Option<At>,
    /// The trial's clock at 0 of the kernel's.
    zero_ns: u64,
    /// All intervals whose stacks are sampled at random, by second.
    pub(crate) exact: HashMap<(Stratum, u32), Sum>,
    /// Intervals with stacks.
    pub(crate) pieces: HashMap<Piece, Sum>,
    /// On the CPU by group.
    pub(crate) on_ns: BTreeMap<Number, u64>,
    /// From ready to running by group, in µs, of intervals drawn by chance.
    pub(crate) latency: BTreeMap<Number, Histogram<u64>>,
    /// Times that threads left the CPU.
    pub(crate) switches: u64,
    /// Intervals with a sampled stack.
    pub(crate) stacks: u64,
    /// Intervals whose waking was recorded.
    pub(crate) wakings: u64,
}

impl Switches {
    /// Starts the hold. `zero_ns` is the kernel's clock at 0 of the trial's.
    pub(crate) fn begin(&mut self, zero_ns: u64) {
        *self = Self {
            zero_ns,
            ..Self::default()
        };
    }

    pub(crate) fn is_open(&self) -> bool {
        self.window.is_some()
    }

    pub(crate) fn group(&self, tid: i32) -> Option<Number> {
        self.threads.get(&tid).map(|thread| thread.group)
    }

    /// Adds a thread with its present activity.
    pub(crate) fn thread(&mut self, tid: i32, group: Number, does: Option<Begun>) {
        let Some(window) = self.window else { return };
        let old = self.before.get(&tid).map(|thread| thread.state);
        let off = |stack| Off {
            since: window,
            preempted: false,
            stack: Stack::Known(stack),
            woken: None,
        };
        let state = match (does, old) {
            (None, _) => State::Unknown,
            (Some(Begun::Runs), _) => State::Ready(window),
            (Some(Begun::Sleeps(stack)), _) => State::Off(off(stack)),
            (Some(Begun::SleepsOn), Some(State::Off(old))) => match old.stack {
                Stack::Sampled(stack) | Stack::Known(stack) if !old.preempted => {
                    State::Off(off(stack))
                }
                _ => State::Unknown,
            },
            (Some(Begun::SleepsOn), _) => State::Unknown,
        };
        self.put(tid, group, state, window);
    }

    /// Returns true if a thread slept with a known stack when the last window was closed.
    pub(crate) fn slept(&self, tid: i32) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| {
            matches!(thread.state, State::Off(off) if off.stack != Stack::NotSampled && !off.preempted)
        })
    }

    fn put(&mut self, tid: i32, group: Number, state: State, at: At) {
        if self.threads.len() < MOST_THREADS || self.threads.contains_key(&tid) {
            let thread = Thread {
                group,
                state,
                next: None,
                since: Since {
                    at,
                    ..Since::default()
                },
            };
            self.threads.insert(tid, thread);
        }
    }

    /// Counts times of threads for [`Switches::take_ended`] from now on.
    pub(crate) fn mark(&mut self, at: At) {
        for thread in self.threads.values_mut() {
            // When the window was closed, the time until then was counted; nothing is recorded since.
            if self.window.is_some()
                && let State::On(since) = &mut thread.state
            {
                *self.on_ns.entry(thread.group).or_default() += at.saturating_sub(*since);
                *since = at;
            }
            thread.since = Since {
                at,
                ..Since::default()
            };
        }
    }

    /// The times of threads that ended, by group: from the last mark, or from their start, to their end.
    pub(crate) fn take_ended(&mut self) -> BTreeMap<Number, Times> {
        std::mem::take(&mut self.ended)
    }

    /// Opens a window of records. The caller then adds all threads.
    pub(crate) fn open(&mut self, at: At) {
        self.window = Some(at);
        self.before = std::mem::take(&mut self.threads);
    }

    /// Drops sleeping threads that aren't among these: they have ended.
    pub(crate) fn keep(&mut self, lives: impl Fn(i32) -> bool) {
        self.threads
            .retain(|tid, thread| !matches!(thread.state, State::Off(_)) || lives(*tid));
    }

    /// Closes the window. Intervals continue in the next one, if the caller requests it.
    pub(crate) fn close(&mut self, at: At, second: &impl Fn(u64) -> u32) {
        if self.window.take().is_none() {
            return;
        }
        let mut threads = std::mem::take(&mut self.threads);
        for thread in threads.values_mut() {
            match thread.state {
                State::Off(off) => self.interval(thread.group, off, at, false, second),
                State::On(since) | State::Ready(since) => thread.on(since, at, &mut self.on_ns),
                State::Unknown => {}
            }
        }
        self.threads = threads;
    }

    /// Records were lost: nothing is known of any thread until it is switched again.
    pub(crate) fn forget(&mut self) {
        for thread in self.threads.values_mut() {
            thread.state = State::Unknown;
            thread.next = None;
        }
    }

    /// Adds a thread of which nothing is known yet.
    pub(crate) fn appeared(&mut self, tid: i32, group: Number, at: At) {
        self.put(tid, group, State::Unknown, at);
    }

    /// A thread ends. Its last switch has no id.
    pub(crate) fn exited(&mut self, tid: i32, at: At) {
        let Some(mut thread) = self.threads.remove(&tid) else {
            return;
        };
        if let State::On(since) | State::Ready(since) = thread.state {
            thread.on(since, at, &mut self.on_ns);
        }
        let Thread { group, since, .. } = thread;
        let wall_ns = at.saturating_sub(since.at);
        let times = Times {
            threads: 1,
            wall_ns: wall_ns.max(since.on_ns + since.preempted_ns),
            on_ns: since.on_ns,
            no_core_ns: since.preempted_ns,
        };
        self.ended.entry(group).or_default().add(&times);
    }

    /// The stack of a thread that is about to be switched.
    pub(crate) fn stack(&mut self, tid: i32, stack: Number) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.next = Some(stack);
        }
    }

    /// A thread leaves its core.
    pub(crate) fn left(&mut self, tid: i32, at: At, preempted: bool) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        self.switches += 1;
        let stack = match thread.next.take() {
            Some(stack) => Stack::Sampled(stack),
            None => Stack::NotSampled,
        };
        let old = thread.state;
        thread.state = State::Off(Off {
            since: at,
            preempted,
            stack,
            woken: None,
        });
        if let State::On(since) | State::Ready(since) = old {
            thread.on(since, at, &mut self.on_ns);
        }
    }

    /// A thread gets a core.
    pub(crate) fn came(&mut self, tid: i32, at: At, second: &impl Fn(u64) -> u32) {
        let Some(thread) = self.threads.get_mut(&tid) else {
            return;
        };
        thread.next = None;
        let (group, old) = (thread.group, thread.state);
        if let State::Off(off) = old
            && off.preempted
        {
            let since = off.since.max(thread.since.at);
            thread.since.preempted_ns += at.saturating_sub(since);
        }
        thread.state = State::On(at);
        match old {
            State::Off(off) => self.interval(group, off, at, true, second),
            State::Ready(since) => {
                let off = Off {
                    since,
                    preempted: true,
                    stack: Stack::NotSampled,
                    woken: None,
                };
                self.interval(group, off, at, false, second);
            }
            State::On(_) | State::Unknown => {}
        }
    }

    /// A sleeping thread is woken.
    pub(crate) fn woken(&mut self, tid: i32, at: At, waker: Option<Number>) {
        if let Some(thread) = self.threads.get_mut(&tid)
            && let State::Off(off) = &mut thread.state
            && off.sleeps(at)
        {
            off.woken = Some(Waking { at, waker });
        }
    }

    /// Returns true if the waker of a thread counts: the thread sleeps, and its stack is known.
    pub(crate) fn wants_waker(&self, tid: i32, at: At) -> bool {
        let thread = self.threads.get(&tid);
        thread.is_some_and(|thread| {
            matches!(thread.state, State::Off(off) if off.sleeps(at) && off.stack != Stack::NotSampled)
        })
    }

    /// Adds an interval; `ended` if the thread runs again.
    fn interval(
        &mut self,
        group: Number,
        off: Off,
        to: At,
        ended: bool,
        second: &impl Fn(u64) -> u32,
    ) {
        let kind = match off.preempted {
            true => Kind::Preempted,
            false => Kind::Blocked,
        };
        let length = length(to.saturating_sub(off.since));
        let stratum = |kind| Stratum {
            group,
            kind,
            length,
        };
        let waker = off.woken.and_then(|woken| woken.waker);
        let count = u64::from(ended);
        self.part(
            (off.since, to),
            (stratum(kind), off.stack, waker),
            count,
            second,
        );
        if let Some(woken) = off.woken {
            self.wakings += count;
            let woken_part = (stratum(Kind::Woken), off.stack, None);
            self.part((woken.at, to), woken_part, count, second);
        }
        let is_sampled = matches!(off.stack, Stack::Sampled(_));
        self.stacks += u64::from(is_sampled && ended);
        let ready = match (off.woken, off.preempted && is_sampled) {
            (Some(woken), _) => Some(woken.at),
            (None, true) => Some(off.since),
            (None, false) => None,
        };
        if let Some(ready) = ready.filter(|_| ended) {
            let us = to.saturating_sub(ready).div_ceil(1000).min(LONGEST_US);
            // It grows as it needs to.
            let _ = self.latency_of(group).record(us);
        }
    }

    fn latency_of(&mut self, group: Number) -> &mut Histogram<u64> {
        let new = || Histogram::new(3).expect("digits are within 0..=5");
        self.latency.entry(group).or_insert_with(new)
    }

    /// Adds a part of an interval to its seconds.
    fn part(
        &mut self,
        (from, to): (At, At),
        (stratum, stack, waker): (Stratum, Stack, Option<Number>),
        count: u64,
        second: &impl Fn(u64) -> u32,
    ) {
        let mut at = from.saturating_sub(self.zero_ns);
        let to = to.saturating_sub(self.zero_ns).max(at);
        loop {
            let next = (at / 1_000_000_000 + 1) * 1_000_000_000;
            let end = next.min(to);
            let is_last = end == to;
            let count = if is_last { count } else { 0 };
            self.piece(second(at), (stratum, stack, waker), count, end - at);
            if is_last {
                return;
            }
            at = end;
        }
    }

    fn piece(
        &mut self,
        second: u32,
        (stratum, stack, waker): (Stratum, Stack, Option<Number>),
        count: u64,
        ns: u64,
    ) {
        let (stack, is_known) = match stack {
            Stack::NotSampled => (None, false),
            Stack::Sampled(stack) => (Some(stack), false),
            Stack::Known(stack) => (Some(stack), true),
        };
        if !is_known {
            self.exact
                .entry((stratum, second))
                .or_default()
                .add(count, ns);
        }
        let Some(stack) = stack else { return };
        let piece = Piece {
            second,
            stratum,
            stack,
            waker,
            is_known,
        };
        if self.pieces.len() < MOST_PIECES || self.pieces.contains_key(&piece) {
            self.pieces.entry(piece).or_default().add(count, ns);
        }
    }
}

/// Lengths between two powers of two are alike.
fn length(ns: u64) -> u8 {
    ns.max(1).ilog2() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn second(ns: u64) -> u32 {
        (ns / 1_000_000_000) as u32
    }

    fn begun() -> Switches {
        let mut switches = Switches::default();
        switches.begin(1000);
        switches.open(1000);
        switches
    }

    fn sum(switches: &Switches, kind: Kind) -> u64 {
        let exact = switches.exact.iter();
        let exact = exact.filter(|((stratum, _), _)| stratum.kind == kind);
        exact.map(|(_, sum)| sum.ns).sum()
    }

    #[test]
    fn times_on_and_off_the_cpu_add_up_to_the_window() {
        let mut switches = begun();
        switches.thread(1, 0, Some(Begun::Runs));
        switches.stack(1, 7);
        switches.left(1, 1000 + 3 * MS, false);
        switches.came(1, 1000 + 10 * MS, &second);
        switches.left(1, 1000 + 12 * MS, true);
        switches.came(1, 1000 + 13 * MS, &second);
        switches.close(1000 + 2500 * MS, &second);
        assert_eq!(switches.on_ns[&0], (3 + 2 + 2487) * MS);
        assert_eq!(sum(&switches, Kind::Blocked), 7 * MS);
        assert_eq!(sum(&switches, Kind::Preempted), MS);
        assert_eq!(switches.pieces.len(), 1);
        assert_eq!(switches.switches, 2);
    }

    #[test]
    fn long_intervals_are_split_by_second() {
        let mut switches = begun();
        switches.thread(1, 0, Some(Begun::Sleeps(5)));
        switches.came(1, 1000 + 2500 * MS, &second);
        let mut parts: Vec<(u32, u64, u64)> = switches
            .pieces
            .iter()
            .map(|(piece, sum)| (piece.second, sum.count, sum.ns))
            .collect();
        parts.sort_unstable();
        assert_eq!(
            parts,
            [(0, 0, 1000 * MS), (1, 0, 1000 * MS), (2, 1, 500 * MS)]
        );
        assert!(
            switches.exact.is_empty(),
            "its stack was not left to chance"
        );
    }

    #[test]
    fn wakings_end_the_interval_that_is_under_way() {
        let mut switches = begun();
        switches.thread(1, 0, Some(Begun::Runs));
        switches.woken(1, 1000 + MS, Some(9));
        switches.stack(1, 7);
        switches.left(1, 1000 + 2 * MS, false);
        switches.woken(1, 1000 + 5 * MS, Some(3));
        switches.woken(1, 1000 + 6 * MS, Some(4));
        switches.came(1, 1000 + 9 * MS, &second);
        let blocked = switches
            .pieces
            .iter()
            .find(|(piece, _)| piece.stratum.kind == Kind::Blocked);
        assert_eq!(blocked.unwrap().0.waker, Some(3));
        assert_eq!(sum(&switches, Kind::Woken), 4 * MS);
        let latency = &switches.latency[&0];
        assert_eq!((latency.len(), latency.max() / 100), (1, 40));
    }

    #[test]
    fn only_sleepers_with_stacks_want_a_waker() {
        let mut switches = begun();
        switches.thread(1, 0, Some(Begun::Runs));
        assert!(!switches.wants_waker(1, 1000 + MS), "it runs");
        switches.left(1, 1000 + 2 * MS, false);
        assert!(!switches.wants_waker(1, 1000 + 3 * MS), "it has no stack");
        switches.came(1, 1000 + 4 * MS, &second);
        switches.stack(1, 7);
        switches.left(1, 1000 + 5 * MS, true);
        assert!(!switches.wants_waker(1, 1000 + 6 * MS), "it was preempted");
        switches.came(1, 1000 + 7 * MS, &second);
        switches.stack(1, 7);
        switches.left(1, 1000 + 8 * MS, false);
        assert!(!switches.wants_waker(1, 1000 + 7 * MS), "it is too early");
        assert!(switches.wants_waker(1, 1000 + 9 * MS));
        switches.woken(1, 1000 + 9 * MS, Some(3));
        assert!(!switches.wants_waker(1, 1000 + 10 * MS), "it was woken");
        switches.thread(2, 0, Some(Begun::Sleeps(5)));
        assert!(switches.wants_waker(2, 1000 + MS));
        assert!(!switches.wants_waker(3, 1000 + MS), "it is unknown");
    }

    #[test]
    fn sleepers_keep_their_stacks_over_a_pause() {
        let mut switches = begun();
        switches.thread(1, 0, Some(Begun::Runs));
        switches.stack(1, 7);
        switches.left(1, 1000 + MS, false);
        switches.close(1000 + 10 * MS, &second);
        assert!(switches.slept(1));
        switches.open(1000 + 20 * MS);
        switches.thread(1, 0, Some(Begun::SleepsOn));
        switches.came(1, 1000 + 25 * MS, &second);
        let ns: u64 = switches.pieces.values().map(|sum| sum.ns).sum();
        assert_eq!(ns, 14 * MS, "without the pause");
        let stacks = switches.pieces.keys().map(|piece| piece.stack);
        assert!(stacks.into_iter().all(|stack| stack == 7));
    }

    #[test]
    fn threads_that_end_leave_their_times() {
        let mut switches = begun();
        switches.appeared(1, 0, 1000 + MS);
        switches.came(1, 1000 + MS, &second);
        switches.left(1, 1000 + 2 * MS, false);
        switches.came(1, 1000 + 5 * MS, &second);
        switches.exited(1, 1000 + 7 * MS);
        let ended = switches.take_ended()[&0];
        assert_eq!((ended.wall_ns, ended.on_ns), (6 * MS, 3 * MS));
        assert!(switches.take_ended().is_empty());
        switches.appeared(2, 0, 1000 + 7 * MS);
        switches.came(2, 1000 + 7 * MS, &second);
        switches.mark(1000 + 8 * MS);
        switches.exited(2, 1000 + 9 * MS);
        let ended = switches.take_ended()[&0];
        assert_eq!((ended.wall_ns, ended.on_ns), (MS, MS), "since the mark");
        assert_eq!(switches.on_ns[&0], 5 * MS);
    }

    #[test]
    fn marks_add_nothing_after_the_window_is_closed() {
        let mut switches = begun();
        switches.thread(1, 0, Some(Begun::Runs));
        switches.left(1, 1000 + MS, false);
        switches.came(1, 1000 + 2 * MS, &second);
        switches.close(1000 + 5 * MS, &second);
        let on_ns = switches.on_ns.clone();
        assert_eq!(on_ns[&0], 4 * MS);
        switches.mark(1000 + 5 * MS);
        switches.mark(1000 + 1005 * MS);
        assert_eq!(switches.on_ns, on_ns);
    }

    #[test]
    fn after_lost_records_nothing_is_guessed() {
        let mut switches = begun();
        switches.thread(1, 0, Some(Begun::Sleeps(5)));
        switches.forget();
        switches.came(1, 1000 + 5 * MS, &second);
        assert!(switches.pieces.is_empty() && switches.exact.is_empty());
        switches.left(1, 1000 + 6 * MS, false);
        assert_eq!(switches.on_ns[&0], MS);
    }
}
