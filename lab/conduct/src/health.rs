//! The generator's own health during the hold: CPU of its workers, and their waits for it.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_archive::{GeneratorHealth, Warning};
use lab_driver::WorkerThread;

use crate::record::whole_ms;

/// The window over which a worker's highest CPU share is searched.
const STRETCH: Duration = Duration::from_secs(5);

/// The least distance of the readings, as a part of the hold: the reader runs after all others, and on a busy machine
/// may see only a moment of the hold.
const SEEN_PART: f64 = 0.75;

/// A hold of this length has two readings, unless the reader is delayed.
const READ_TWICE: Duration = Duration::from_millis(40);

/// CPU and wait time of a thread since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadTimes {
    cpu: Duration,
    /// Runnable without a core; `None` if the kernel doesn't count it.
    waited: Option<Duration>,
}

impl ThreadTimes {
    /// The times of a remote worker.
    pub(crate) fn new(cpu: Duration, waited: Option<Duration>) -> Self {
        Self { cpu, waited }
    }
}

/// Reads a worker's times; `None` when it has ended.
pub(crate) fn thread_times(worker: WorkerThread) -> Option<ThreadTimes> {
    let WorkerThread { pid, tid } = worker;
    let task = PathBuf::from(format!("/proc/{pid}/task/{tid}"));
    let scheduled = fs::read_to_string(task.join("schedstat")).ok();
    scheduled
        .as_deref()
        .and_then(parse_schedstat)
        .or_else(|| ticks(&task))
}

/// A worker's nice value.
pub(crate) fn nice(worker: WorkerThread) -> Option<i64> {
    let WorkerThread { pid, tid } = worker;
    stat(&PathBuf::from(format!("/proc/{pid}/task/{tid}"))).map(|stat| stat.nice)
}

fn stat(task: &Path) -> Option<procfs::process::Stat> {
    procfs::FromRead::from_file(task.join("stat")).ok()
}

/// Nanoseconds on a core, nanoseconds runnable, times on a core. All are 0 in a kernel that has the file and doesn't
/// count.
fn parse_schedstat(text: &str) -> Option<ThreadTimes> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    let (cpu, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let counts = cpu > 0;
    let waited = Some(Duration::from_nanos(waited));
    counts.then_some(ThreadTimes {
        cpu: Duration::from_nanos(cpu),
        waited,
    })
}

/// The coarser count of `stat`, in ticks of usually 10 ms.
fn ticks(task: &Path) -> Option<ThreadTimes> {
    let stat = stat(task)?;
    let seconds = (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64;
    Some(ThreadTimes {
        cpu: Duration::from_secs_f64(seconds),
        waited: None,
    })
}

/// Readings of all workers over the hold.
#[derive(Debug, Default)]
pub(crate) struct Health {
    first: Option<Reading>,
    last: Option<Reading>,
    /// The readings of the last window.
    recent: VecDeque<Reading>,
    busiest: Option<f64>,
    rss_mb_max: f64,
    nice: Option<i64>,
    /// Number of cores that the workers take in turn; 0 if they are not pinned.
    cores: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Reading {
    at: Duration,
    workers: Vec<ThreadTimes>,
}

impl Health {
    /// For workers that are pinned to so many cores, round-robin.
    pub(crate) fn pinned_to(cores: usize) -> Self {
        Self {
            cores,
            ..Self::default()
        }
    }

    /// Adds a reading of the hold. A reading that lacks a worker is dropped.
    pub(crate) fn add(&mut self, at: Duration, workers: Option<Vec<ThreadTimes>>) {
        let Some(workers) = workers else { return };
        let reading = Reading { at, workers };
        self.recent.push_back(reading.clone());
        while self
            .recent
            .get(1)
            .is_some_and(|second| second.at + STRETCH <= at)
        {
            self.recent.pop_front();
        }
        if let Some(oldest) = self
            .recent
            .front()
            .filter(|oldest| oldest.at + STRETCH <= at)
        {
            let share = busiest(oldest, &reading, self.cores);
            self.busiest = Some(self.busiest.map_or(share, |so_far| so_far.max(share)));
        }
        self.first.get_or_insert_with(|| reading.clone());
        self.last = Some(reading);
    }

    /// Adds the generator's resident memory, at any time.
    pub(crate) fn resident(&mut self, rss_mb: f64) {
        self.rss_mb_max = self.rss_mb_max.max(rss_mb);
    }

    /// Adds the workers' nice value.
    pub(crate) fn nice(&mut self, nice: Option<i64>) {
        self.nice = nice;
    }

    /// The sums over a hold of this length, and a sentence about missing data.
    pub(crate) fn summary(
        &self,
        workers: usize,
        held: Duration,
    ) -> (GeneratorHealth, Option<Warning>) {
        let mut health = GeneratorHealth {
            workers: u32::try_from(workers).unwrap_or(u32::MAX),
            nice: self.nice,
            rss_mb_max: self.rss_mb_max,
            ..GeneratorHealth::default()
        };
        let ends = self
            .first
            .as_ref()
            .zip(self.last.as_ref())
            .filter(|(a, b)| a.at < b.at);
        let Some((first, last)) = ends else {
            let unread = match held < READ_TWICE {
                true => Warning::HoldTooShort,
                false => hardly_read(Duration::ZERO, held),
            };
            return (health, Some(unread));
        };
        let seen = last.at - first.at;
        if seen < held.mul_f64(SEEN_PART) {
            return (health, Some(hardly_read(seen, held)));
        }
        let all = (last.at - first.at).as_secs_f64() * first.workers.len().max(1) as f64;
        health.cpu_fraction = sum(first, last, |t| Some(t.cpu)).map(|cpu| cpu / all);
        let busiest = || busiest(first, last, self.cores);
        health.cpu_fraction_max = Some(self.busiest.unwrap_or_else(busiest));
        let waited = sum(first, last, |t| t.waited);
        health.run_queue_delay_fraction = waited.map(|waited| waited / all);
        (health, waited.is_none().then_some(Warning::WaitsUnknown))
    }
}

fn hardly_read(read: Duration, held: Duration) -> Warning {
    Warning::HardlyRead {
        read_ms: whole_ms(read),
        held_ms: whole_ms(held),
    }
}

/// Growth in seconds over all workers.
fn sum(first: &Reading, last: &Reading, time: fn(&ThreadTimes) -> Option<Duration>) -> Option<f64> {
    let pairs = first.workers.iter().zip(&last.workers);
    pairs
        .map(|(a, b)| Some((time(b)?.saturating_sub(time(a)?)).as_secs_f64()))
        .sum()
}

/// The highest CPU share of any worker between two readings, or of the workers on one core together: none of them could
/// have more than its part.
fn busiest(first: &Reading, last: &Reading, cores: usize) -> f64 {
    let passed = (last.at - first.at).as_secs_f64();
    let pairs = first.workers.iter().zip(&last.workers);
    let places = match cores {
        0 => first.workers.len(),
        cores => cores,
    };
    let mut shares = vec![0.0; places];
    for (worker, (a, b)) in pairs.enumerate() {
        let core = worker % shares.len();
        shares[core] += b.cpu.saturating_sub(a.cpu).as_secs_f64() / passed;
    }
    shares.into_iter().fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(cpu_ms: u64, waited_ms: u64) -> ThreadTimes {
        let waited = Some(Duration::from_millis(waited_ms));
        ThreadTimes {
            cpu: Duration::from_millis(cpu_ms),
            waited,
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn shares_are_of_the_hold_and_the_workers() {
        let mut health = Health::default();
        health.resident(30.0);
        health.resident(20.0);
        health.add(at(10), Some(vec![times(1000, 50), times(2000, 0)]));
        health.add(at(14), Some(vec![times(5000, 50), times(2000, 0)]));
        health.add(at(18), None);
        health.add(at(20), Some(vec![times(6000, 250), times(3000, 0)]));
        let (summary, unread) = health.summary(2, at(10));
        assert_eq!(unread, None);
        assert!(
            (summary.cpu_fraction.unwrap() - 0.3).abs() < 1e-12,
            "{summary:?}"
        );
        assert!((summary.run_queue_delay_fraction.unwrap() - 0.01).abs() < 1e-12);
        assert!((summary.rss_mb_max - 30.0).abs() < 1e-12);
        // Worker 0 used 1 s in the six seconds from 14 to 20; with 10 to 20 it is 5 s of 10.
        assert!(
            (summary.cpu_fraction_max.unwrap() - 1.0 / 6.0).abs() < 1e-12,
            "{summary:?}"
        );
    }

    #[test]
    fn a_busy_stretch_is_found_within_a_calm_hold() {
        let mut health = Health::default();
        for second in 0..=60u64 {
            // Busy from 20 to 26.
            let cpu = second.clamp(20, 26) - 20;
            health.add(at(second), Some(vec![times(cpu * 900, 0)]));
        }
        let (summary, _) = health.summary(1, at(60));
        assert!(
            (summary.cpu_fraction_max.unwrap() - 0.9).abs() < 1e-12,
            "{summary:?}"
        );
        assert!((summary.cpu_fraction.unwrap() - 5.4 / 60.0).abs() < 1e-12);
    }

    #[test]
    fn workers_that_share_a_core_fill_it_together() {
        let fullest = |cores| {
            let mut health = Health::pinned_to(cores);
            health.add(at(0), Some(vec![times(0, 0); 3]));
            let later = [times(450, 0), times(100, 0), times(400, 0)];
            health.add(at(1), Some(later.to_vec()));
            health.summary(3, at(1)).0.cpu_fraction_max.unwrap()
        };
        // The first and the third are on the same of two cores, all on the same of one.
        for (cores, share) in [(0, 0.45), (3, 0.45), (2, 0.85), (1, 0.95)] {
            assert!((fullest(cores) - share).abs() < 1e-12, "{cores}");
        }
    }

    #[test]
    fn a_short_hold_is_judged_whole_and_none_is_said() {
        let mut health = Health::default();
        let said = |health: &Health, held| health.summary(1, held).1.unwrap();
        let short = said(&health, Duration::from_millis(30));
        assert_eq!(short, Warning::HoldTooShort);
        let never = hardly_read(Duration::ZERO, at(1));
        assert_eq!(said(&health, at(1)), never);
        health.add(at(1), Some(vec![times(0, 0)]));
        assert_eq!(said(&health, at(1)), never);
        health.add(at(2), Some(vec![times(250, 0)]));
        let (summary, unread) = health.summary(1, at(1));
        assert_eq!((summary.cpu_fraction_max, unread), (Some(0.25), None));
    }

    #[test]
    fn a_moment_of_a_hold_tells_nothing_of_it() {
        let of = |from_s: u64, to_s: u64| {
            let mut health = Health::default();
            health.add(at(from_s), Some(vec![times(0, 0)]));
            health.add(at(to_s), Some(vec![times(1, 1)]));
            health.summary(1, at(20))
        };
        let (summary, unread) = of(18, 20);
        assert_eq!(
            (summary.cpu_fraction, summary.cpu_fraction_max),
            (None, None)
        );
        assert_eq!(summary.run_queue_delay_fraction, None);
        assert_eq!(unread, Some(hardly_read(at(2), at(20))));
        assert!(of(2, 20).0.cpu_fraction.is_some());
    }

    #[test]
    fn kernels_that_count_no_waits_are_told_apart() {
        assert_eq!(parse_schedstat("2000000 3000000 4\n"), Some(times(2, 3)));
        assert_eq!(parse_schedstat("0 0 0\n"), None);
        assert_eq!(parse_schedstat(""), None);
        let mut health = Health::default();
        let without = ThreadTimes {
            waited: None,
            ..times(100, 0)
        };
        health.add(
            at(0),
            Some(vec![ThreadTimes {
                cpu: Duration::ZERO,
                ..without
            }]),
        );
        health.add(at(1), Some(vec![without]));
        let (summary, unread) = health.summary(1, at(1));
        assert_eq!(unread, Some(Warning::WaitsUnknown));
        assert_eq!(summary.cpu_fraction, Some(0.1));
        assert_eq!(summary.run_queue_delay_fraction, None);
    }

    #[test]
    fn this_thread_has_times() {
        let tid = nix::unistd::gettid().as_raw();
        let pid = std::process::id();
        assert!(thread_times(WorkerThread { pid, tid }).is_some());
        let tid = i32::MAX;
        assert_eq!(thread_times(WorkerThread { pid, tid }), None);
    }
}
