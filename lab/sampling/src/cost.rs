//! The cost of a sample on this machine, and the rate that a budget allows.

use std::hint::black_box;

use nix::time::{ClockId, clock_gettime};
use perf_event_open::config::{Cpu, Opts, Proc, SampleOn};
use perf_event_open::count::Counter;
use perf_event_open::event::sw::Software;

/// Rates to choose from. None is a divisor of a round number of events a second.
const RATES: [f64; 4] = [99.0, 199.0, 499.0, 997.0];
/// The rate of the measurement.
const MEASURED: f64 = 8000.0;
/// Pairs of spans with and without samples, and the length of each.
const PAIRS: u32 = 5;
const SPAN_NS: i64 = 20_000_000;
/// Stacks and the other programs' load on caches cost more than the empty loop shows.
const MARGIN: f64 = 1.5;
/// The fraction of the budget that sampling is planned to use.
const USED: f64 = 0.5;

/// Returns the highest rate whose samples stay within half of the budget, a fraction of the CPU time.
pub(crate) fn rate(budget: f64) -> f64 {
    choose(budget, measured().unwrap_or(15e-6))
}

fn choose(budget: f64, cost_s: f64) -> f64 {
    let fits = |rate: &&f64| **rate * MARGIN * cost_s <= USED * budget;
    RATES.iter().rev().find(fits).copied().unwrap_or(RATES[0])
}

/// Seconds of CPU time that a sample costs, by a loop with and without samples.
fn measured() -> Option<f64> {
    let opts = Opts {
        sample_on: SampleOn::Count((1e9 / MEASURED) as u64),
        ..Opts::default()
    };
    let counter = Counter::new(Software::CpuClock, (Proc::CURRENT, Cpu::ALL), opts).ok()?;
    let _ring = counter.sampler(4).ok()?;
    let (mut with, mut without) = (0.0, 0.0);
    for _ in 0..PAIRS {
        without += speed()?;
        counter.enable().ok()?;
        let speed = speed();
        counter.disable().ok()?;
        with += speed?;
    }
    let part = 1.0 - with / f64::max(without, 1.0);
    Some((part / MEASURED).clamp(0.5e-6, 100e-6))
}

/// Rounds of a loop in a second of this thread's CPU time.
fn speed() -> Option<f64> {
    let now = || {
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
        Some(time.tv_sec() * 1_000_000_000 + time.tv_nsec())
    };
    let begin = now()?;
    let mut rounds = 0u32;
    loop {
        for step in 0..2000u64 {
            black_box(step);
        }
        rounds += 1;
        let took = now()? - begin;
        if took >= SPAN_NS {
            return Some(f64::from(rounds) / took as f64 * 1e9);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_keeps_to_the_budget() {
        assert_eq!(choose(0.02, 15e-6), 199.0);
        assert_eq!(choose(0.02, 3e-6), 997.0);
        assert_eq!(choose(0.02, 12e-6), 499.0);
        assert_eq!(choose(0.001, 50e-6), 99.0, "the lowest, in any case");
    }

    #[test]
    fn a_sample_costs_something() {
        if let Some(cost) = measured() {
            assert!((0.5e-6..=100e-6).contains(&cost));
        }
    }
}
