//! Records the waits of the system's threads: their time on the CPU and without a core, the kernel functions that they
//! sleep in, and the stacks of their switches, as far as this user's permissions allow.

mod collected;
mod pace;
mod profile;
mod records;
mod switches;
mod usage;
mod wchan;

use std::collections::HashSet;
use std::time::Duration;

use lab_archive::{Frames, Latencies, ThreadsLine, Waited};
use lab_profile::Profile;
use lab_profile::waits::Patterns;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::events::RawSample;
use crate::files::Modules;
use crate::schedule::{Switching, fraction};
use crate::spaces::Spaces;
use crate::stacks::{Frame, Interner, MOST_STACKS, OTHER, Stacks};
use crate::threads::Threads;
use crate::walk;
use collected::{Collected, Row};
use pace::{Load, Pace, SLICE};
use records::{Recorded, Records};
use switches::{Begun, Number, Switches};
use usage::Usage;
use wchan::{Doing, Rounds};

/// The fraction of the budget that recording waits may use; samples of CPU time use the other half.
const PART: f64 = 0.5;
/// The maximum number of distinct wakers (code that wakes threads).
const MOST_WAKERS: usize = 100_000;
/// The maximum number of threads whose state is read when recording resumes.
const MOST_LOOKED_AT: usize = 5000;

/// The waits of the hold.
#[derive(Debug, Default)]
pub struct RecordedWaits {
    /// How they were recorded.
    pub facts: Waited,
    /// The time of groups of threads, by second.
    pub threads: Vec<ThreadsLine>,
    /// Scheduling latency of groups of threads, in µs.
    pub latency: Latencies,
    /// The times of the hold on the trial's clock.
    pub hold: (Duration, Duration),
    /// The profile of the waits; `None` where only level 0 was recorded.
    pub profile: Option<Profile>,
}

/// State shared with the sampler of CPU time.
pub(crate) struct Shared<'a> {
    pub(crate) pids: &'a HashSet<i32>,
    pub(crate) spaces: &'a mut Spaces,
    pub(crate) threads: &'a mut Threads,
    pub(crate) frames: Option<Frames>,
    pub(crate) switching: &'a Switching,
    /// The kernel's clock at 0 of the trial's.
    pub(crate) zero_ns: u64,
}

impl Shared<'_> {
    fn kernel_ns(&self, at: Duration) -> u64 {
        self.zero_ns + at.as_nanos() as u64
    }

    fn pids(&self) -> Vec<i32> {
        let mut pids: Vec<i32> = self.pids.iter().copied().collect();
        pids.sort_unstable();
        pids
    }
}

/// Records waits until it is dropped.
#[derive(Debug)]
pub(crate) struct Waits {
    got: Collected,
    budget: f64,
    cores: usize,
    missing: Vec<String>,
    usage: Usage,
    rounds: Rounds,
    /// Process, thread, and group of threads for [`Rounds`], which change once a second.
    looked_at: Vec<(i32, i32, Number)>,
    records: Records,
    copies: bool,
    pace: Pace,
    random: Xoshiro256PlusPlus,
    slice_end: Duration,
    is_on: bool,
    row_from: Duration,
    open_at: Duration,
    recorded: Duration,
    /// Since the pace was chosen: switches of all threads, switches of the system's threads, and recorded time.
    since: (u64, u64, Duration),
    lost: u64,
}

impl Waits {
    /// Records at most at this level. `refused` is the reason why the kernel provides no records of switches.
    pub(crate) fn new(
        most: u8,
        (budget, cores): (f64, usize),
        patterns: Patterns,
        seed: u64,
        refused: Option<String>,
    ) -> Self {
        let mut missing = Vec::new();
        let mut level = if most == 2 { 1 } else { most.min(3) };
        if let (3, Some(problem)) = (level, refused) {
            missing.push(format!("stacks of waits: {problem}"));
            level = 1;
        }
        Self {
            got: Collected {
                level,
                slices: 0,
                patterns,
                rows: Vec::new(),
                switches: Switches::default(),
                stacks: Stacks::new(MOST_STACKS),
                groups: Interner::default(),
                sleeps: Interner::default(),
                wakers: Interner::default(),
            },
            budget: budget * PART,
            cores: cores.max(1),
            missing,
            usage: Usage::default(),
            rounds: Rounds::new(budget * PART),
            looked_at: Vec::new(),
            records: Records::default(),
            copies: true,
            pace: Pace::All { one_of: 11 },
            random: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x7761_6974),
            slice_end: Duration::ZERO,
            is_on: false,
            row_from: Duration::ZERO,
            open_at: Duration::ZERO,
            recorded: Duration::ZERO,
            since: (0, 0, Duration::ZERO),
            lost: 0,
        }
    }

    /// Opens the events for the hold, after the choice of the unwinding method.
    pub(crate) fn prepare(&mut self, cores: &[u32], frames: Frames) {
        if self.got.level < 3 {
            return;
        }
        self.copies = frames == Frames::Copies;
        let waking = records::waking();
        let opened = Records::open(cores, self.copies, waking.clone().ok()).or_else(|refused| {
            // Other tracepoints may have data that this one lacks.
            match waking.is_ok() {
                true => Records::open(cores, self.copies, None),
                false => Err(refused),
            }
        });
        match opened {
            Ok(records) => {
                if !records.has_wakers() {
                    let problem = waking
                        .err()
                        .unwrap_or_else(|| "the kernel refuses it".to_owned());
                    self.missing.push(format!(
                        "what ended waits, and the time from waking to running (tracepoint sched:sched_waking): {problem}"
                    ));
                }
                self.records = records;
            }
            Err(refused) => {
                self.missing.push(format!("stacks of waits: {refused}"));
                self.got.level = 1;
            }
        }
    }

    /// Starts the hold. `boot_ns` is the clock since boot at 0 of the trial's.
    pub(crate) fn begin(
        &mut self,
        is_on: bool,
        boot_ns: u64,
        shared: &mut Shared<'_>,
        clock: &impl Fn() -> Duration,
    ) {
        self.got.switches.begin(shared.zero_ns);
        self.usage
            .begin(&shared.pids(), boot_ns, clock, shared.threads);
        self.look();
        self.row_from = clock();
        self.is_on = is_on;
        self.rounds.begin(self.row_from);
        if is_on && self.got.level >= 3 {
            self.open(shared, clock, true);
        }
    }

    /// Performs due work, and returns the time of the next call.
    pub(crate) fn turn(
        &mut self,
        now: Duration,
        shared: &mut Shared<'_>,
        clock: &impl Fn() -> Duration,
    ) -> Option<Duration> {
        if !self.is_on {
            return None;
        }
        let sliced = matches!(self.pace, Pace::Slices { .. });
        // Random moments avoid a beat with periodic work of the threads.
        let again = now + Duration::from_millis(20 + self.random.next_u64() % 60);
        if self.got.level < 3 {
            if self.got.level == 1 {
                self.rounds.turn(now, &self.looked_at);
            }
            return (self.got.level == 1).then_some(again);
        }
        if self.got.switches.is_open() {
            self.take(shared.kernel_ns(now), shared);
        }
        if let Pace::Slices { part, .. } = self.pace
            && now >= self.slice_end
        {
            let draw = fraction(&mut self.random);
            match (draw < part, self.got.switches.is_open()) {
                (true, false) => self.open(shared, clock, false),
                (false, true) => self.close(shared, clock),
                _ => {}
            }
            self.got.slices += u64::from(draw < part);
            self.slice_end = now + SLICE;
        }
        self.jitter();
        if sliced {
            // Readings are delayed: the timer that starts a turn often also wakes sleeping threads.
            self.rounds.turn(now, &self.looked_at);
        }
        sliced.then_some(self.slice_end.min(again))
    }

    /// Starts the next part of the hold, recorded or not. `cores_used` is the system's use in the last part.
    pub(crate) fn switch(
        &mut self,
        is_on: bool,
        cores_used: f64,
        shared: &mut Shared<'_>,
        clock: &impl Fn() -> Duration,
    ) {
        let was_open = self.got.switches.is_open();
        if was_open && !is_on {
            self.close(shared, clock);
        } else if was_open {
            self.take(shared.kernel_ns(clock()), shared);
            self.count_time(clock());
        }
        self.row(shared, clock);
        if was_open {
            self.usage.mark();
            self.got.switches.keep(|tid| self.usage.lives(tid));
        }
        if self.is_on && self.got.level >= 3 {
            self.choose(cores_used);
        }
        let all = matches!(self.pace, Pace::All { .. });
        if is_on && self.got.switches.is_open() && !all {
            self.close(shared, clock);
        }
        self.is_on = is_on;
        self.rounds.begin(clock());
        if is_on && self.got.level >= 3 && all && !self.got.switches.is_open() {
            self.open(shared, clock, true);
        }
    }

    /// Ends the hold.
    pub(crate) fn end(&mut self, shared: &mut Shared<'_>, clock: &impl Fn() -> Duration) {
        if self.got.switches.is_open() {
            self.close(shared, clock);
        }
        self.row(shared, clock);
        self.records = Records::default();
    }

    /// Names the records and assembles the profile; the system must still run.
    pub(crate) fn finish(mut self, modules: &Modules) -> RecordedWaits {
        let on: u64 = self
            .got
            .on_rows()
            .flat_map(|row| row.groups.values())
            .map(|times| times.on_ns)
            .sum();
        if self.usage.is_uncounted() {
            self.missing
                .push("the kernel doesn't count the CPU time of threads (schedstat)".to_owned());
        }
        if self.got.level == 1 && self.rounds.reads > 50 && self.rounds.asleep == 0 {
            self.missing.push(
                "what threads sleep in: the kernel shows this user no wchan of these threads, or none of them slept".to_owned(),
            );
        }
        let all = matches!(self.pace, Pace::All { .. }) && self.got.slices == 0 && self.lost == 0;
        let facts = Waited {
            level: self.got.level,
            switches: self.got.switches.switches,
            stacks: self.got.switches.stacks,
            wakings: self.got.switches.wakings,
            one_of: if self.got.level >= 3 {
                self.pace.one_of()
            } else {
                0
            },
            recorded_ms: (self.got.level >= 3).then_some(self.recorded.as_secs_f64() * 1e3),
            slices: (self.got.slices > 0).then_some(self.got.slices),
            lost: self.lost,
            on_cpu_ms: on as f64 / 1e6,
            switched_on_cpu_ms: (self.got.level >= 3 && all)
                .then(|| self.got.switches.on_ns.values().sum::<u64>() as f64 / 1e6),
            missing: std::mem::take(&mut self.missing),
        };
        let hold = self.got.rows.first().map_or(Duration::ZERO, |row| row.from);
        let hold = (hold, self.got.rows.last().map_or(hold, |row| row.to));
        let latency = std::mem::take(&mut self.got.switches.latency).into_iter();
        let latency = latency
            .map(|(group, histogram)| (self.got.groups.values[group as usize].clone(), histogram));
        let latency = latency.collect();
        let (profile, threads) = profile::of(&self.got, modules);
        RecordedWaits {
            facts,
            threads,
            latency,
            hold,
            profile: (self.got.level >= 1).then_some(profile),
        }
    }

    /// Ends a row of the table of threads.
    fn row(&mut self, shared: &mut Shared<'_>, clock: &impl Fn() -> Duration) {
        let mut groups = self.usage.read(&shared.pids(), clock, shared.threads);
        let now = clock();
        // Threads that ended since the last reading appear only in the records.
        for (group, times) in self.got.switches.take_ended() {
            let name = self.got.groups.values[group as usize].clone();
            groups.entry(name).or_default().add(&times);
        }
        self.got.switches.mark(shared.kernel_ns(now));
        self.got.rows.push(Row {
            from: self.row_from,
            to: now,
            is_on: self.is_on,
            groups,
            found: self.rounds.take(&self.got.groups.values),
        });
        self.row_from = now;
        self.look();
    }

    fn look(&mut self) {
        let threads = self.usage.threads();
        let groups = &mut self.got.groups;
        let threads = threads.map(|(pid, tid, group)| (pid, tid, groups.intern(group.to_owned())));
        self.looked_at = threads.collect();
    }

    /// Starts to record switches. With `with_state`, reads the current state of each thread first; slices skip this.
    fn open(&mut self, shared: &mut Shared<'_>, clock: &impl Fn() -> Duration, with_state: bool) {
        // Drops records from the time without recording.
        self.records.take(u64::MAX);
        let mut begun = Vec::with_capacity(self.looked_at.len());
        for (at, (pid, tid, group)) in self.looked_at.iter().enumerate() {
            let does = (with_state && at < MOST_LOOKED_AT)
                .then(|| self.does(*pid, *tid))
                .flatten();
            let does = does.map(|does| match does {
                Ok(begun) => begun,
                Err(function) => Begun::Sleeps(
                    self.got
                        .stacks
                        .number(&[Frame::Sleeps(self.got.sleeps.intern(function))]),
                ),
            });
            begun.push((*tid, *group, does));
        }
        if self.records.enable().is_err() {
            return;
        }
        let now = clock();
        self.open_at = now;
        self.got.switches.open(shared.kernel_ns(now));
        for (tid, group, does) in begun {
            self.got.switches.thread(tid, group, does);
        }
    }

    /// Returns the activity of a thread, or the kernel function that it sleeps in if its stack is unknown.
    fn does(&self, pid: i32, tid: i32) -> Option<Result<Begun, String>> {
        if self.got.switches.slept(tid) && self.usage.has_slept(pid, tid) {
            return Some(Ok(Begun::SleepsOn));
        }
        Some(match wchan::doing(pid, tid)? {
            Doing::Runs => Ok(Begun::Runs),
            Doing::Sleeps(function) => Err(function),
        })
    }

    fn close(&mut self, shared: &mut Shared<'_>, clock: &impl Fn() -> Duration) {
        // Fails only if the event is closed.
        let _ = self.records.disable();
        let now = clock();
        let at = shared.kernel_ns(now);
        self.take(at, shared);
        self.count_time(now);
        let switching = shared.switching;
        self.got
            .switches
            .close(at, &|ns| switching.second(Duration::from_nanos(ns)));
    }

    /// Adds the time since the window was opened, or since the last call.
    fn count_time(&mut self, now: Duration) {
        let time = now.saturating_sub(self.open_at);
        self.recorded += time;
        self.since.2 += time;
        self.open_at = now;
    }

    /// Reads records until a moment of the kernel's clock.
    fn take(&mut self, until: u64, shared: &mut Shared<'_>) {
        let switching = shared.switching;
        let second = |ns: u64| switching.second(Duration::from_nanos(ns));
        for (at, record) in self.records.take(until) {
            match record {
                Recorded::Left {
                    pid,
                    tid,
                    preempted,
                } => {
                    if self.knows((pid, tid), at, shared) {
                        self.since.1 += 1;
                        self.got.switches.left(tid, at, preempted);
                    }
                }
                Recorded::Came { pid, tid } => {
                    self.since.0 += 1;
                    if self.knows((pid, tid), at, shared) {
                        self.got.switches.came(tid, at, &second);
                    }
                }
                Recorded::Stack(sample) => {
                    if self.knows((sample.pid, sample.tid), at, shared) {
                        let stack = walk::stack(shared.spaces, shared.frames, &sample);
                        let stack = self.got.stacks.number(&stack);
                        self.got.switches.stack(sample.tid, stack);
                    }
                }
                Recorded::Exited { tid } => self.got.switches.exited(tid, at),
                Recorded::Waking { woken, by } => {
                    // Walking a stack is slow.
                    let wants = self.got.switches.wants_waker(woken, at);
                    let waker = wants.then(|| self.waker(&by, shared)).flatten();
                    self.got.switches.woken(woken, at, waker);
                }
                Recorded::Lost { records, switches } => {
                    self.lost += records;
                    if switches {
                        self.got.switches.forget();
                    }
                }
            }
        }
    }

    /// Returns true if a thread belongs to the system. Registers a thread that is new.
    fn knows(&mut self, (pid, tid): (i32, i32), at: u64, shared: &mut Shared<'_>) -> bool {
        if tid <= 0 || !shared.pids.contains(&pid) {
            return false;
        }
        if self.got.switches.group(tid).is_none() {
            let name = shared.threads.name(pid, tid).to_owned();
            let group = self.got.groups.intern(name);
            self.got.switches.appeared(tid, group, at);
        }
        true
    }

    /// The code that wakes a thread, if it belongs to the system.
    fn waker(&mut self, by: &RawSample, shared: &mut Shared<'_>) -> Option<Number> {
        if !shared.pids.contains(&by.pid) || self.got.wakers.len() >= MOST_WAKERS {
            return None;
        }
        let stack = walk::stack(shared.spaces, shared.frames, by);
        let stack = self.got.stacks.number(&stack);
        let group = self
            .got
            .groups
            .intern(shared.threads.name(by.pid, by.tid).to_owned());
        (stack != OTHER).then(|| self.got.wakers.intern((group, stack)))
    }

    /// Chooses the pace for the next part by the switches since the last choice.
    fn choose(&mut self, cores_used: f64) {
        let (all, ours, time) = std::mem::take(&mut self.since);
        let seconds = time.as_secs_f64();
        if seconds < 0.05 {
            return;
        }
        let load = Load {
            switches: ours as f64 / seconds,
            of_a_core: all as f64 / seconds / self.cores as f64,
            cores: cores_used,
            copies: self.copies,
            wakers: self.records.has_wakers(),
        };
        self.pace = Pace::choose(load, self.budget);
        if self.pace == Pace::Off {
            self.missing.push(format!(
                "stacks of waits: the system's threads switch {:.0} times a second, and recording that costs more than the budget",
                load.switches
            ));
            self.records = Records::default();
            self.got.level = 1;
        }
    }

    /// Draws a new number of switches per stack, to avoid a beat with periodic work.
    fn jitter(&mut self) {
        let one_of = self.pace.one_of();
        let spread = one_of / 2;
        let drawn = one_of - spread + self.random.next_u64() % (2 * spread + 1);
        // Fails only if the event is closed.
        let _ = self.records.one_of(drawn);
    }
}
