//! Samples a system during a trial. The caller passes in the trial's clock; the kernel's monotonic clock is read once,
//! at the start of the hold.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_archive::{Frames, Profiled};
use lab_monitor::{CpuTime, Hold, Roots, groups_below};
use lab_profile::Profile;
use lab_profile::waits::Patterns;
use nix::time::{ClockId, clock_gettime};

use crate::assemble;
use crate::blocks::Blocks;
use crate::cores;
use crate::cost;
use crate::error::Refused;
use crate::events::{Asked, Event, Events, RawSample};
use crate::files::Mapped;
use crate::schedule::{Periods, Switching};
use crate::spaces::Spaces;
use crate::stacks::{MOST_STACKS, Stacks};
use crate::threads::Threads;
use crate::waits::{RecordedWaits, Shared, Waits};
use crate::walk::{is_equal, stack};

/// Rings are drained this often.
const DRAIN: Duration = Duration::from_millis(100);
/// The maximum number of samples in a trial, bounded by its file. Long holds have lower rates.
const MOST_SAMPLES: f64 = 1_000_000.0;
/// The most cores that this bound assumes to be busy.
const BUSY_CORES: usize = 8;
/// Bounds of the rate that a study may ask for.
const RATES: std::ops::RangeInclusive<f64> = 1.0..=4999.0;
/// Frame pointers are used if at least this percentage of their stacks has all frames.
const GOOD_PERCENT: u64 = 98;
/// The minimum number of stacks for a choice between pointers and copies.
const ENOUGH: u64 = 50;

/// The target and the settings of sampling.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The system's process.
    pub pid: u32,
    /// Finds processes of the system that are not descendants of `pid`.
    pub hold: Option<Hold>,
    /// Samples per second and core; `None` selects the rate that the budget allows.
    pub rate: Option<f64>,
    /// The unwinding method; `None` tries both and chooses.
    pub frames: Option<Frames>,
    /// The fraction of the system's CPU time that sampling may cost.
    pub budget: f64,
    /// Length of the hold.
    pub length: Duration,
    /// The seed of the random periods and of the seconds without sampling.
    pub seed: u64,
    /// The maximum level at which waits are recorded; `None` records no waits.
    pub waits: Option<u8>,
    /// Regular expressions of functions in which threads are idle, besides the built-in ones.
    pub idle: Vec<String>,
}

/// The records of a hold.
#[derive(Debug)]
pub struct Recorded {
    /// The profile of CPU time, and how it was taken; `None` where the kernel refuses samples to this user.
    pub cpu: Option<(Profile, Profiled)>,
    /// The waits of the threads; `None` if they were not requested.
    pub waits: Option<RecordedWaits>,
}

/// Samples the processes of a system until it is dropped.
pub struct Sampler {
    spec: Spec,
    rate: f64,
    cpu: CpuTime,
    cores: Vec<u32>,
    groups: HashSet<u64>,
    pids: HashSet<i32>,
    events: Events,
    periods: Periods,
    redraw_at: Duration,
    phase: Phase,
    frames: Option<Frames>,
    spaces: Spaces,
    threads: Threads,
    stacks: Stacks,
    blocks: Blocks,
    lost: u64,
    throttled: u64,
    /// Records that were read, of all programs.
    records: u64,
    off_seconds: Vec<u32>,
    waits: Option<Waits>,
    refused: Option<Refused>,
    /// Whether all events for the hold are open.
    is_prepared: bool,
}

/// The phase of sampling.
#[derive(Debug)]
enum Phase {
    /// The events are open and disabled.
    Opened,
    /// Both ways to find stacks are compared.
    Trying { stacks: u64, equal: u64 },
    /// Samples are recorded for the profile.
    Holding(Holding),
}

/// The state of the hold.
#[derive(Debug)]
struct Holding {
    switching: Switching,
    /// The kernel's clock at 0 of the trial's.
    zero_ns: u64,
    /// Cores that the system used in the last unit, on average.
    cores_used: f64,
    on: bool,
    block: u32,
    /// The time and the value of the last reading of CPU time.
    read: (Duration, Option<Duration>),
    next: Duration,
}

impl Sampler {
    /// Finds the system's processes and opens events on all cores that they may use. Nothing is sampled yet.
    ///
    /// # Errors
    /// [`Refused`]: why the system can't be sampled.
    pub fn open(spec: Spec) -> Result<Self, Refused> {
        let mut cpu = CpuTime::new(Roots::default(), spec.pid, spec.hold.clone());
        cpu.read().ok_or(Refused::NoProcess)?;
        let cores = cores::of(cpu.processes());
        if cores.is_empty() {
            return Err(Refused::NoProcess);
        }
        let rate = rate(&spec, cores.len());
        let groups = cpu.group().map(groups).unwrap_or_default();
        let frames = spec.frames;
        let (events, refused) = match opened(&cores, frames, &groups, rate) {
            Ok(events) => (events, None),
            // Data that needs no samples is recorded without them.
            Err(refused) if spec.waits.is_some() => (Events::default(), Some(refused)),
            Err(refused) => return Err(refused),
        };
        let waits = waits(&spec, cores.len(), refused.as_ref())?;
        let mut sampler = Self {
            periods: Periods::new(rate, spec.seed),
            redraw_at: Duration::ZERO,
            pids: cpu.processes().iter().copied().collect(),
            phase: Phase::Opened,
            spaces: Spaces::default(),
            threads: Threads::default(),
            stacks: Stacks::new(MOST_STACKS),
            blocks: Blocks::default(),
            lost: 0,
            throttled: 0,
            records: 0,
            off_seconds: Vec::new(),
            waits,
            refused,
            is_prepared: false,
            spec,
            rate,
            cpu,
            cores,
            groups,
            events,
            frames,
        };
        sampler.redraw(Duration::ZERO)?;
        Ok(sampler)
    }

    /// The reason why the kernel provides no samples of CPU time. Waits that need no samples are still recorded.
    #[must_use]
    pub fn refused(&self) -> Option<&Refused> {
        self.refused.as_ref()
    }

    /// Returns the unwinding method, once it is chosen.
    #[must_use]
    pub fn frames(&self) -> Option<Frames> {
        self.frames
    }

    /// Samples a second of a core.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Begins to try both ways to find stacks, where there is a choice. The load must be on.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn try_out(&mut self) -> Result<(), Refused> {
        if self.frames.is_none() && self.refused.is_none() && matches!(self.phase, Phase::Opened) {
            self.phase = Phase::Trying {
                stacks: 0,
                equal: 0,
            };
            self.events.enable().map_err(Refused::Other)?;
        }
        Ok(())
    }

    /// Begins the hold. `clock` is the trial's.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn begin(&mut self, clock: impl Fn() -> Duration) -> Result<(), Refused> {
        self.choose(|frames| frames)?;
        self.spaces.forget();
        let monotonic = clock_gettime(ClockId::CLOCK_MONOTONIC);
        let now = clock();
        let boot = clock_gettime(ClockId::CLOCK_BOOTTIME);
        let read = self.cpu.read();
        self.members();
        let monotonic = monotonic.map_err(|code| Refused::Other(code.into()))?;
        let monotonic = Duration::from(monotonic);
        let switching = Switching::new(now, self.spec.length, self.spec.seed);
        let on = switching.is_on(now);
        self.phase = Phase::Holding(Holding {
            zero_ns: monotonic.saturating_sub(now).as_nanos() as u64,
            cores_used: 0.0,
            on,
            block: switching.block(now),
            read: (now, read),
            next: switching.next(now),
            switching,
        });
        self.redraw(now)?;
        match on {
            true => self.events.enable().map_err(Refused::Other)?,
            false => self.off(now),
        }
        let boot = boot.map_err(|code| Refused::Other(code.into()))?;
        let boot_ns = Duration::from(boot).saturating_sub(now).as_nanos() as u64;
        self.with_waits(|waits, _, shared| waits.begin(on, boot_ns, shared, &clock));
        Ok(())
    }

    /// Performs due work, and returns the latest time of the next call.
    pub fn turn(&mut self, clock: impl Fn() -> Duration) -> Duration {
        let now = clock();
        if matches!(&self.phase, Phase::Holding(holding) if now >= holding.next) {
            self.switch(&clock);
        }
        self.drain();
        let due = self.with_waits(|waits, _, shared| waits.turn(now, shared, &clock));
        if now >= self.redraw_at {
            // Fails only if the event is closed. Then samples are missing, and the check of their number warns.
            let _ = self.redraw(now);
        }
        let due = due.flatten().unwrap_or(now + DRAIN).min(now + DRAIN);
        match &self.phase {
            Phase::Holding(holding) => holding.next.min(due),
            _ => due,
        }
    }

    /// Calls `what` with the recorder of waits, if waits are requested and the hold has begun.
    fn with_waits<T>(
        &mut self,
        what: impl FnOnce(&mut Waits, &Holding, &mut Shared<'_>) -> T,
    ) -> Option<T> {
        let (Some(waits), Phase::Holding(holding)) = (&mut self.waits, &self.phase) else {
            return None;
        };
        let mut shared = Shared {
            pids: &self.pids,
            spaces: &mut self.spaces,
            threads: &mut self.threads,
            frames: self.frames,
            switching: &holding.switching,
            zero_ns: holding.zero_ns,
        };
        Some(what(waits, holding, &mut shared))
    }

    /// Ends the hold.
    pub fn end(&mut self, clock: impl Fn() -> Duration) {
        // Fails only if the event is closed.
        let _ = self.events.disable();
        self.spend(clock());
        self.drain();
        self.with_waits(|waits, _, shared| waits.end(shared, &clock));
    }

    /// Names the samples and assembles the profile; the system must still run. Stops sampling.
    #[must_use]
    pub fn finish(mut self) -> Recorded {
        let waits = self
            .waits
            .take()
            .map(|waits| waits.finish(&self.spaces.modules));
        let cpu = self.refused.is_none().then(|| self.profile());
        Recorded { cpu, waits }
    }

    fn profile(self) -> (Profile, Profiled) {
        let frames = self.frames.unwrap_or(Frames::Copies);
        let weights = self.blocks.weights();
        let weight = |block: u32| weights.get(&block).copied().unwrap_or(0.0);
        let done = assemble::profile(&self.stacks, &self.spaces.modules, weight);
        let cpu = self.blocks.sampled_cpu();
        let facts = Profiled {
            rate: self.rate,
            frames,
            cores: self.cores.len() as u32,
            samples: done.samples,
            expected: cpu.as_secs_f64() * self.rate,
            lost: self.lost,
            throttled: self.throttled,
            records: self.records,
            whole: done.whole,
            named: done.named,
            other_samples: done.other,
            cpu_ms: cpu.as_secs_f64() * 1e3,
            off_seconds: self.off_seconds,
            blocks: self.blocks.record(),
        };
        (done.profile, facts)
    }

    /// Chooses between frame pointers and copies by the compared stacks; copies if there were too few.
    /// `agree` receives the choice and may replace it.
    ///
    /// # Errors
    /// [`Refused`]
    pub fn choose(&mut self, agree: impl FnOnce(Frames) -> Frames) -> Result<(), Refused> {
        if self.refused.is_some() || self.is_prepared {
            return Ok(());
        }
        self.is_prepared = true;
        if self.frames.is_none() {
            self.choose_frames(agree)?;
        }
        if let (Some(waits), Some(frames)) = (&mut self.waits, self.frames) {
            waits.prepare(&self.cores, frames);
        }
        Ok(())
    }

    fn choose_frames(&mut self, agree: impl FnOnce(Frames) -> Frames) -> Result<(), Refused> {
        let _ = self.events.disable();
        self.drain();
        let good = match self.phase {
            Phase::Trying { stacks, equal } => {
                stacks >= ENOUGH && equal * 100 >= stacks * GOOD_PERCENT
            }
            _ => false,
        };
        let frames = if good {
            Frames::Pointers
        } else {
            Frames::Copies
        };
        self.frames = Some(agree(frames));
        // The memory of the old events counts against the kernel's limit.
        self.events = Events::default();
        self.events = opened(&self.cores, self.frames, &self.groups, self.rate)?;
        // Records lost while both ways were compared are not losses of the profile.
        (self.lost, self.throttled, self.records) = (0, 0, 0);
        Ok(())
    }

    fn redraw(&mut self, now: Duration) -> Result<(), Refused> {
        let period = self.periods.draw();
        self.redraw_at = now + self.periods.redraw();
        self.events.period(period).map_err(Refused::Other)
    }

    /// Starts the next unit of the hold, sampled or not.
    fn switch(&mut self, clock: impl Fn() -> Duration) {
        let Phase::Holding(holding) = &self.phase else {
            return;
        };
        let (was, is) = (holding.on, holding.switching.is_on(clock()));
        if was && !is {
            let _ = self.events.disable();
        }
        if is && !was {
            self.spaces.forget();
        }
        // Time and CPU time are read together when sampling is switched, because processing the samples takes a while.
        let now = clock();
        self.spend(now);
        if is && !was {
            let _ = self.events.enable();
        }
        // Records up to here belong to the block that ends, unless sampling was off until now.
        if was {
            self.drain();
        }
        self.members();
        if !is {
            self.off(now);
        }
        self.with_waits(|waits, holding, shared| {
            waits.switch(is, holding.cores_used, shared, &clock)
        });
        if let Phase::Holding(holding) = &mut self.phase {
            holding.on = is;
            holding.block = holding.switching.block(now);
            holding.next = holding.switching.next(now);
        }
    }

    /// Adds the CPU time since the last reading to the block.
    fn spend(&mut self, now: Duration) {
        let read = self.cpu.read();
        let Phase::Holding(holding) = &mut self.phase else {
            return;
        };
        let (at, before) = holding.read;
        // If the system has ended, the last reading remains valid.
        let read = read.or(before);
        let cpu = read
            .unwrap_or_default()
            .saturating_sub(before.unwrap_or_default());
        let (block, on) = (holding.block, holding.on);
        let time = now.saturating_sub(at).as_secs_f64();
        holding.cores_used = cpu.as_secs_f64() / time.max(1e-3);
        self.blocks.spent((block, on), (at, now), cpu);
        holding.read = (now, read);
    }

    /// Notes that the unit from now on isn't sampled.
    fn off(&mut self, now: Duration) {
        let Phase::Holding(holding) = &self.phase else {
            return;
        };
        let end = holding.switching.next(now).as_secs();
        let seconds = (now.as_secs()..end).filter_map(|second| u32::try_from(second).ok());
        self.off_seconds.extend(seconds);
    }

    /// Updates the processes and control groups of the system.
    fn members(&mut self) {
        if self.refused.is_some() {
            // Without events, the end of a process is not reported.
            self.pids.clear();
        }
        self.pids.extend(self.cpu.processes());
        if let Some(group) = self.cpu.group() {
            self.groups = groups(group);
        }
    }

    fn drain(&mut self) {
        self.threads.sweep();
        for event in self.events.drain() {
            self.records += 1;
            match event {
                Event::Sample(sample) => self.sample(*sample),
                Event::Mapped {
                    pid,
                    start,
                    length,
                    offset,
                    path,
                } => {
                    let path = PathBuf::from(OsString::from_vec(path));
                    let end = start.saturating_add(length);
                    let mapped = Mapped {
                        pid,
                        start,
                        end,
                        path,
                        inode: 0,
                    };
                    self.spaces.mapped(mapped, offset);
                }
                Event::Forked {
                    pid,
                    tid,
                    parent,
                    parent_tid,
                } => {
                    if self.pids.contains(&parent) {
                        self.pids.insert(pid);
                    }
                    self.threads.forked(tid, parent_tid);
                    self.spaces.forked(pid, parent);
                }
                Event::Named {
                    pid,
                    tid,
                    name,
                    exec,
                } => {
                    self.threads.named(tid, &name);
                    if exec && self.pids.contains(&pid) {
                        self.spaces.replaced(pid);
                    }
                }
                Event::Exited { pid, tid } => {
                    self.threads.exited(tid);
                    if pid == tid {
                        self.spaces.exited(pid);
                        self.pids.remove(&pid);
                    }
                }
                Event::Lost(records) => {
                    self.lost += records;
                    self.spaces.forget();
                }
                Event::Throttled => self.throttled += 1,
            }
        }
    }

    fn sample(&mut self, sample: RawSample) {
        let in_group = sample
            .group
            .is_some_and(|group| self.groups.contains(&group));
        if !in_group && !self.pids.contains(&sample.pid) {
            return;
        }
        match &mut self.phase {
            Phase::Opened => {}
            Phase::Trying { stacks, equal } => {
                if let Some(is_equal) = is_equal(&mut self.spaces, &sample) {
                    *stacks += 1;
                    *equal += u64::from(is_equal);
                }
            }
            Phase::Holding(holding) => {
                let at = Duration::from_nanos(sample.time_ns.saturating_sub(holding.zero_ns));
                let block = holding.block;
                let second = holding.switching.second(at);
                let stack = stack(&mut self.spaces, self.frames, &sample);
                let thread = self.threads.name(sample.pid, sample.tid);
                self.stacks.add((block, second), thread, &stack);
                self.blocks.sampled(block);
            }
        }
    }
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            rate, cores, phase, ..
        } = self;
        let mut shown = f.debug_struct("Sampler");
        shown
            .field("rate", rate)
            .field("cores", cores)
            .field("phase", phase);
        shown.finish_non_exhaustive()
    }
}

/// Opens events with the ids of control groups, or without them if the kernel doesn't support them.
fn opened(
    cores: &[u32],
    frames: Option<Frames>,
    groups: &HashSet<u64>,
    rate: f64,
) -> Result<Events, Refused> {
    let group = !groups.is_empty();
    let asked = Asked {
        copies: frames != Some(Frames::Pointers),
        group,
        rate,
    };
    match Events::open(cores, asked) {
        Err(Refused::Other(_)) if group => Events::open(
            cores,
            Asked {
                group: false,
                ..asked
            },
        ),
        answer => answer,
    }
}

/// Creates the recorder of waits, if requested.
fn waits(spec: &Spec, cores: usize, refused: Option<&Refused>) -> Result<Option<Waits>, Refused> {
    let Some(level) = spec.waits else {
        return Ok(None);
    };
    let patterns = Patterns::new(&spec.idle).map_err(|bad| Refused::Idle(bad.to_string()))?;
    let refused = refused.map(ToString::to_string);
    let budget = (spec.budget, cores);
    Ok(Some(Waits::new(
        level, budget, patterns, spec.seed, refused,
    )))
}

/// The rate of the study, or the rate that the budget allows; lower in long holds.
fn rate(spec: &Spec, cores: usize) -> f64 {
    let asked = spec.rate.unwrap_or_else(|| cost::rate(spec.budget));
    let core_seconds = cores.min(BUSY_CORES) as f64 * spec.length.as_secs_f64().max(1.0);
    let most = MOST_SAMPLES / core_seconds;
    asked.min(most).clamp(*RATES.start(), *RATES.end())
}

/// Returns the ids of a control group of version 2 and of all groups below it, which are the inodes of their folders.
fn groups(folder: &Path) -> HashSet<u64> {
    if !folder.join("cgroup.controllers").exists() {
        return HashSet::new();
    }
    let folders = groups_below(folder).into_iter();
    let ids = folders.filter_map(|one| Some(std::fs::metadata(one).ok()?.ino()));
    ids.collect()
}
