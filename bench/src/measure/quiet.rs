//! Checks whether the machine is idle between attempts: with the lab's own measurement of other programs, and the
//! limits from which its checks warn.

use std::time::{Duration, Instant};

use lab_monitor::quiet::{Limits, Watch};

/// Up to these limits a wrong time is the lab's own fault. Its checks warn of stolen CPU and of other programs from
/// here on; this program's threads, which have enough cores, wait no longer for one.
const LIMITS: Limits = Limits {
    steal_percent: 1.0,
    others_percent: 5.0,
    run_queue_percent: 5.0,
    memory_pressure_percent: f64::INFINITY,
    io_pressure_percent: f64::INFINITY,
    disk_queue: f64::INFINITY,
};
/// The length of a look.
const LOOK: Duration = Duration::from_millis(500);
/// The maximum number of looks at a busy machine, over all experiments: after that it is measured as it is.
const LOOKS: u32 = 40;

/// Looks at the machine between attempts.
pub(crate) struct Quiet {
    source: Source,
    looks_left: u32,
}

enum Source {
    Machine {
        watch: Box<Watch>,
        begun: Instant,
    },
    #[cfg(test)]
    MadeUp(std::collections::VecDeque<String>),
}

impl Quiet {
    pub(crate) fn new() -> Self {
        let source = Source::Machine {
            watch: Box::new(Watch::new(std::process::id(), None)),
            begun: now(),
        };
        let mut quiet = Self {
            source,
            looks_left: LOOKS,
        };
        quiet.since_last_look();
        quiet
    }

    #[cfg(test)]
    pub(crate) fn made_up(disturbances: &[&str]) -> Self {
        let disturbances = disturbances.iter().map(|&one| one.to_owned());
        Self {
            source: Source::MadeUp(disturbances.collect()),
            looks_left: 0,
        }
    }

    /// Waits until the machine is idle, up to a limit; disturbances are recorded from then on.
    pub(crate) fn wait(&mut self) {
        while self.looks_left > 0 {
            self.since_last_look();
            std::thread::park_timeout(LOOK);
            if self.since_last_look().is_none() {
                return;
            }
            self.looks_left -= 1;
        }
        #[cfg(test)]
        if matches!(self.source, Source::MadeUp(_)) {
            return;
        }
        self.since_last_look();
    }

    /// Returns the disturbance since the last look, if there was any.
    pub(crate) fn since_last_look(&mut self) -> Option<String> {
        match &mut self.source {
            Source::Machine { watch, begun } => {
                let seen = watch.look(begun.elapsed());
                let over = LIMITS.disturbances(&seen);
                (!over.is_empty()).then(|| over.join(", "))
            }
            #[cfg(test)]
            Source::MadeUp(left) => left.pop_front(),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "rates need the time between looks"
)]
fn now() -> Instant {
    Instant::now()
}
