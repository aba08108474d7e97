//! Chooses the fraction of switches whose stacks are recorded, and the fraction of time, to keep recording within its
//! budget.

use std::time::Duration;

/// The CPU time that two switches, off and on, cost with their records, in seconds.
const SWITCH: f64 = 0.85e-6;
/// The additional cost of the stack of a switch, and of the stack of a waking thread.
const STACK: f64 = 3.5e-6;
const WAKER: f64 = 2.1e-6;
/// The additional cost of a copy of 64 KiB of a stack.
const COPY: f64 = 6e-6;
/// The maximum number of stacks per second and core, by frame pointers and by copies. Rings have room for no more, and
/// the lab's thread can process no more.
const MOST_CHAINS: f64 = 2000.0;
const MOST_COPIES: f64 = 250.0;
/// The stack of one in this many switches is recorded. Primes avoid a beat with periodic work.
const ONE_OF: [u64; 9] = [1, 2, 3, 5, 11, 23, 47, 97, 199];
/// In slices, the stack of one in this many switches is recorded; of fewer where slices would be rare.
const IN_SLICES: u64 = 11;
const MOST_IN_SLICES: u64 = 47;
/// Slices are rare below this fraction of the time.
const MANY_SLICES: f64 = 0.25;
/// The length of a slice.
pub(crate) const SLICE: Duration = Duration::from_millis(100);
/// The minimum number of cores in the budget: a system that uses less is treated as using this many.
const LEAST_CORES: f64 = 0.25;
/// The minimum number of slices a second for a meaningful record.
const FEWEST_SLICES: f64 = 1.0;

/// How switches are recorded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// All switches, every `one_of`-th with its stack.
    All { one_of: u64 },
    /// In slices of time, drawn at random; this fraction of all slices.
    Slices { one_of: u64, part: f64 },
    /// Not at all: there are too many switches.
    Off,
}

/// Returns the maximum number of stacks per second and core.
pub(crate) fn most_stacks(copies: bool) -> f64 {
    if copies { MOST_COPIES } else { MOST_CHAINS }
}

/// The inputs of the pace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Switches of the system's threads in a second.
    pub(crate) switches: f64,
    /// Switches of all threads on the busiest of its cores.
    pub(crate) of_a_core: f64,
    /// Cores that the system uses on average.
    pub(crate) cores: f64,
    pub(crate) copies: bool,
    pub(crate) wakers: bool,
}

impl Pace {
    pub(crate) fn one_of(self) -> u64 {
        match self {
            Self::All { one_of } | Self::Slices { one_of, .. } => one_of,
            Self::Off => IN_SLICES,
        }
    }

    /// Returns the pace that costs at most this fraction of the system's CPU time, or of a quarter of a core if larger.
    pub(crate) fn choose(load: Load, part: f64) -> Self {
        let most = part * load.cores.max(LEAST_CORES);
        let cost = |one_of: u64| {
            let stack = STACK + if load.copies { COPY } else { 0.0 };
            let waker = if load.wakers {
                WAKER + if load.copies { COPY } else { 0.0 }
            } else {
                0.0
            };
            load.switches * (SWITCH + (stack + waker) / one_of as f64)
        };
        let fits = |one_of: u64| load.of_a_core / one_of as f64 <= most_stacks(load.copies);
        let mut all = ONE_OF.into_iter();
        if let Some(one_of) = all.find(|one_of| fits(*one_of) && cost(*one_of) <= most) {
            return Self::All { one_of };
        }
        let part = |one_of: u64| most / cost(one_of).max(1e-9);
        let rest = ONE_OF
            .into_iter()
            .filter(|one_of| *one_of >= IN_SLICES && fits(*one_of));
        let mut rest = rest.peekable();
        let first = rest.peek().copied().unwrap_or(MOST_IN_SLICES);
        let one_of = rest.find(|one_of| *one_of >= MOST_IN_SLICES || part(*one_of) >= MANY_SLICES);
        let one_of = one_of.unwrap_or(first);
        let part = part(one_of);
        if part >= FEWEST_SLICES * SLICE.as_secs_f64() {
            Self::Slices { one_of, part }
        } else {
            Self::Off
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(switches: f64, cores: f64) -> Load {
        Load {
            switches,
            of_a_core: switches,
            cores,
            copies: false,
            wakers: true,
        }
    }

    #[test]
    fn few_switches_have_all_their_stacks() {
        assert_eq!(
            Pace::choose(load(200.0, 0.5), 0.01),
            Pace::All { one_of: 1 }
        );
        assert_eq!(
            Pace::choose(load(3000.0, 0.5), 0.01),
            Pace::All { one_of: 11 }
        );
    }

    #[test]
    fn the_cost_stays_within_the_budget() {
        for (switches, cores) in [
            (800.0, 0.3),
            (6000.0, 1.0),
            (20_000.0, 2.0),
            (50_000.0, 1.0),
        ] {
            let used = match Pace::choose(load(switches, cores), 0.01) {
                Pace::All { one_of } => switches * (SWITCH + (STACK + WAKER) / one_of as f64),
                Pace::Slices { one_of, part } => {
                    assert!(switches > 5000.0 && part < 1.0);
                    part * switches * (SWITCH + (STACK + WAKER) / one_of as f64)
                }
                Pace::Off => panic!("{switches}"),
            };
            assert!(used <= 0.01001 * cores, "{switches} {used}");
        }
        assert_eq!(Pace::choose(load(500_000.0, 2.0), 0.01), Pace::Off);
    }
}
