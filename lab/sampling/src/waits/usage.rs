//! Time of threads on the CPU and waiting for a core, from each thread's `schedstat`. This needs no privileges.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::time::Duration;

use procfs::FromRead;
use procfs::process::Schedstat;

use crate::threads::Threads;

/// Threads that are read, at most.
const MOST: usize = 50_000;
/// The counters of a thread at its start.
const START: Schedstat = Schedstat {
    sum_exec_runtime: 0,
    run_delay: 0,
    pcount: 0,
};

/// The times of some threads, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    /// Threads that lived.
    pub(crate) threads: u32,
    /// Their lives, added up.
    pub(crate) wall_ns: u64,
    pub(crate) on_ns: u64,
    /// Ready to run, and waiting for a core.
    pub(crate) no_core_ns: u64,
}

impl Times {
    /// Neither on the CPU nor ready to run.
    pub(crate) fn blocked_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.on_ns + self.no_core_ns)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.threads = self.threads.max(other.threads);
        self.wall_ns += other.wall_ns;
        self.on_ns += other.on_ns;
        self.no_core_ns += other.no_core_ns;
    }
}

/// The counters of all threads of the system.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    threads: HashMap<i32, Thread>,
    marked: HashMap<i32, u64>,
    /// The kernel's clock since boot at 0 of the trial's clock.
    boot_ns: u64,
    read_at: Duration,
    uncounted: bool,
}

/// A thread at its last reading.
#[derive(Debug, Clone)]
struct Thread {
    pid: i32,
    group: String,
    counters: Schedstat,
    at: Duration,
}

impl Usage {
    /// Counts from now on.
    pub(crate) fn begin(
        &mut self,
        pids: &[i32],
        boot_ns: u64,
        clock: &impl Fn() -> Duration,
        names: &mut Threads,
    ) {
        self.boot_ns = boot_ns;
        self.threads.clear();
        self.read_at = Duration::MAX;
        self.read(pids, clock, names);
    }

    /// The times of thread groups since the reading before; none if the kernel doesn't count them.
    pub(crate) fn read(
        &mut self,
        pids: &[i32],
        clock: &impl Fn() -> Duration,
        names: &mut Threads,
    ) -> BTreeMap<String, Times> {
        let mut sums: BTreeMap<String, Times> = BTreeMap::new();
        let mut seen = HashMap::with_capacity(self.threads.len());
        for pid in pids {
            for tid in tasks(*pid) {
                let Some(counters) = counters(*pid, tid) else {
                    continue;
                };
                if seen.len() >= MOST {
                    break;
                }
                let now = clock();
                let group = names.name(*pid, tid).to_owned();
                let known = self.threads.remove(&tid);
                let known = known.filter(|known| known.counters.pcount <= counters.pcount);
                let (before, since) = match known {
                    Some(known) => (known.counters, known.at),
                    // CPU time before the first reading isn't counted.
                    None if self.read_at == Duration::MAX => (counters.clone(), now),
                    None => (START, self.began(*pid, tid, now)),
                };
                let sum = sums.entry(group.clone()).or_default();
                let on_ns = counters.sum_exec_runtime;
                let on_ns = on_ns.saturating_sub(before.sum_exec_runtime);
                let no_core_ns = counters.run_delay.saturating_sub(before.run_delay);
                let wall_ns = now.saturating_sub(since).as_nanos() as u64;
                sum.threads += 1;
                sum.on_ns += on_ns;
                sum.no_core_ns += no_core_ns;
                sum.wall_ns += wall_ns.max(on_ns + no_core_ns);
                let thread = Thread {
                    pid: *pid,
                    group,
                    counters,
                    at: now,
                };
                seen.insert(tid, thread);
            }
        }
        self.read_at = clock();
        self.threads = seen;
        if !is_counted(self.threads.values().map(|thread| &thread.counters)) {
            self.uncounted = true;
            sums.clear();
        }
        sums
    }

    /// Returns true if the kernel didn't count the times of threads in a reading.
    pub(crate) fn is_uncounted(&self) -> bool {
        self.uncounted
    }

    /// All threads at the last reading: process, thread, group.
    pub(crate) fn threads(&self) -> impl Iterator<Item = (i32, i32, &str)> {
        let threads = self.threads.iter();
        threads.map(|(tid, thread)| (thread.pid, *tid, thread.group.as_str()))
    }

    pub(crate) fn lives(&self, tid: i32) -> bool {
        self.threads.contains_key(&tid)
    }

    /// Remembers how often each thread had got a core at the last reading, for [`Usage::has_slept`].
    pub(crate) fn mark(&mut self) {
        let threads = self.threads.iter();
        self.marked = threads
            .map(|(tid, thread)| (*tid, thread.counters.pcount))
            .collect();
    }

    /// Returns true if a thread has not had a core since the mark.
    pub(crate) fn has_slept(&self, pid: i32, tid: i32) -> bool {
        let before = self.marked.get(&tid).copied();
        let counts = before.is_some() && !self.uncounted;
        counts && before == counters(pid, tid).map(|now| now.pcount)
    }

    /// When a thread that is new began: not before the last reading.
    fn began(&self, pid: i32, tid: i32, now: Duration) -> Duration {
        let stat = procfs::process::Process::new(pid)
            .and_then(|process| process.task_from_tid(tid).and_then(|task| task.stat()));
        let Ok(stat) = stat else { return now };
        let tick_ns = 1_000_000_000 / procfs::ticks_per_second().max(1);
        let started_ns = stat.starttime.saturating_mul(tick_ns);
        let started = Duration::from_nanos(started_ns.saturating_sub(self.boot_ns));
        started.clamp(self.read_at.min(now), now)
    }
}

/// The threads of a process; none if it has ended.
fn tasks(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let entries = entries.into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.collect()
}

fn counters(pid: i32, tid: i32) -> Option<Schedstat> {
    Schedstat::from_file(format!("/proc/{pid}/task/{tid}/schedstat")).ok()
}

/// A kernel that doesn't count shows `0 0 0` for all threads. One that does may show it for threads that haven't run yet.
fn is_counted<'a>(threads: impl Iterator<Item = &'a Schedstat>) -> bool {
    let mut threads = threads.peekable();
    let ran = |one: &Schedstat| (one.sum_exec_runtime, one.run_delay, one.pcount) != (0, 0, 0);
    threads.peek().is_none() || threads.any(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let parsed = |text: &str| {
            let counters = Schedstat::from_read(text.as_bytes()).ok()?;
            Some((
                counters.sum_exec_runtime,
                counters.run_delay,
                counters.pcount,
            ))
        };
        assert_eq!(parsed("1067013 18 7\n"), Some((1_067_013, 18, 7)));
        assert_eq!(parsed("1067013 18\n"), None);
        assert_eq!(parsed("-1 18 7\n"), None);
    }

    #[test]
    fn kernels_that_do_not_count_are_recognized() {
        let ran = Schedstat { pcount: 7, ..START };
        assert!(!is_counted([START, START].iter()));
        assert!(is_counted([START, ran].iter()));
        assert!(is_counted([].iter()), "no thread was read");
        let (pid, tid) = (std::process::id() as i32, nix::unistd::gettid().as_raw());
        let own = counters(pid, tid).unwrap();
        assert!(is_counted([&own].into_iter()));
        let mut usage = Usage {
            uncounted: true,
            ..Usage::default()
        };
        usage.marked.insert(tid, own.pcount);
        assert!(!usage.has_slept(pid, tid), "that is unknown");
    }

    #[test]
    fn new_threads_count_from_their_start() {
        let (mut usage, mut names) = (Usage::default(), Threads::default());
        let pid = std::process::id() as i32;
        let since_boot = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME);
        let boot_ns = Duration::from(since_boot.unwrap()).as_nanos() as u64;
        let clock = || {
            let now = nix::time::clock_gettime(nix::time::ClockId::CLOCK_BOOTTIME);
            Duration::from(now.unwrap()) - Duration::from_nanos(boot_ns)
        };
        usage.begin(&[pid], boot_ns, &clock, &mut names);
        let (begun, done) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let work = || {
                begun.wait();
                done.wait();
            };
            let named = std::thread::Builder::new().name("new-1".to_owned());
            named.spawn_scoped(scope, work).unwrap();
            begun.wait();
            let sums = usage.read(&[pid], &clock, &mut names);
            done.wait();
            let new = sums["new-*"];
            assert_eq!(new.threads, 1);
            assert!(new.wall_ns >= new.on_ns + new.no_core_ns);
            assert!(Duration::from_nanos(new.wall_ns) <= clock());
        });
        let sums = usage.read(&[pid], &clock, &mut names);
        assert!(!sums.contains_key("new-*"), "it has ended");
    }
}
