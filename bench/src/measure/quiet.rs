//! Whether the machine is quiet: what others took of its CPU, as the lab's own checks of a trial's
//! circumstances judge it.

use std::time::{Duration, Instant};

use lab_monitor::{Monitor, MonitorSpec};

/// Per cent of all cores from which the lab's checks warn of stolen CPU …
const STEAL: f64 = 1.0;
/// … and of other programs.
const OTHERS: f64 = 5.0;
/// Per cent of one thread's time that this program's threads, which have cores enough, may have been
/// without one.
const RUN_QUEUE: f64 = 5.0;
/// How long a look takes.
const LOOK: Duration = Duration::from_millis(500);
/// Looks in vain, over all experiments: a machine that isn't quiet by then is measured as it is.
const LOOKS: u32 = 40;

const OWN: &str = "generator";

/// Looks at the machine between goes.
pub(crate) struct Quiet {
    source: Source,
    looks_left: u32,
}

enum Source {
    Machine {
        monitor: Box<Monitor>,
        begun: Instant,
    },
    #[cfg(test)]
    MadeUp(std::collections::VecDeque<String>),
}

impl Quiet {
    pub(crate) fn new() -> Self {
        let spec = MonitorSpec {
            processes: vec![(OWN.to_owned(), std::process::id())],
            ..MonitorSpec::default()
        };
        let source = Source::Machine {
            monitor: Box::new(Monitor::new(&spec)),
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

    /// Waits until the machine is quiet, but not for ever; what comes is seen from then on.
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

    /// What disturbed since the last look, if anything did.
    pub(crate) fn since_last_look(&mut self) -> Option<String> {
        match &mut self.source {
            Source::Machine { monitor, begun } => {
                let values = monitor.sample(begun.elapsed());
                let of = |name: &str| {
                    let at = monitor.columns().iter().position(|column| column == name);
                    at.and_then(|at| values[at])
                };
                disturbances(of)
            }
            #[cfg(test)]
            Source::MadeUp(left) => left.pop_front(),
        }
    }
}

/// In words; a counter that the kernel doesn't tell disturbs nobody.
fn disturbances(of: impl Fn(&str) -> Option<f64>) -> Option<String> {
    let run_queue = format!("{OWN}.run_queue_percent");
    let limits = [
        ("stolen CPU", "host.cpu_steal_percent", STEAL),
        ("other programs", "host.cpu_others_percent", OTHERS),
        ("time without a core", &*run_queue, RUN_QUEUE),
    ];
    let over = limits.iter().filter_map(|(what, column, limit)| {
        let found = of(column).filter(|found| found > limit)?;
        Some(format!("{what} {found:.0} %"))
    });
    let over: Vec<String> = over.collect();
    (!over.is_empty()).then(|| over.join(", "))
}

#[expect(
    clippy::disallowed_methods,
    reason = "rates need the time between looks"
)]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_took_is_said() {
        let told = |steal, others, queue| {
            disturbances(|name| match name {
                "host.cpu_steal_percent" => steal,
                "host.cpu_others_percent" => Some(others),
                "generator.run_queue_percent" => Some(queue),
                _ => None,
            })
        };
        assert_eq!(told(None, 4.9, 0.0), None);
        assert_eq!(told(Some(1.0), 0.0, 5.0), None);
        let all = "stolen CPU 2 %, other programs 60 %, time without a core 31 %";
        assert_eq!(told(Some(2.0), 60.0, 31.0).as_deref(), Some(all));
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let mut quiet = Quiet::new();
        // Whatever it is, it is said in words.
        assert!(
            quiet
                .since_last_look()
                .is_none_or(|text| text.contains('%'))
        );
    }
}
