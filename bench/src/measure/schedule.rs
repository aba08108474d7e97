//! Users that wait, keep a pace, and are probed: compares measured delays with the known ones.

use std::time::Duration;

use lab_workload::Wait;
use lab_workload::timing::TimingStream;

use crate::error::Error;
use crate::experiment::{Experiment, Outcome};
use crate::server::{as_ms, drive, ms, quantile_ms, slow, sum, total, windows};

/// The maximum error of a measured delay upwards, ms.
const ALLOWED: f64 = 1.0;

pub(crate) fn experiments() -> [Experiment; 4] {
    let of = |name, go: fn() -> Result<Outcome, Error>| Experiment {
        name,
        go: Box::new(go),
    };
    [
        of("a known delay", known_delay),
        of("waits as drawn", waits),
        of("cycles at their pace", pace),
        of("the probe from its planned times", probe),
    ]
}

fn known_delay() -> Result<Outcome, Error> {
    let delay = ms(20);
    let workload =
        "workload: measure\nsession:\n  steps:\n    - { step: Get, wait: 5ms, request: GET / }\n";
    let mut drive = drive(slow(delay)?, workload)?;
    (drive.users, drive.hold) = (10, ms(2000));
    let windows = windows(drive, |_| {})?;
    let times = sum(&windows, 0, |s| &s.times.ok);
    let [min, median, p99] = [0.0, 0.5, 0.99].map(|q| quantile_ms(&times, q));
    let found = format!(
        "{} answers after {} ms: min {min:.2} ms, median {median:.2} ms, p99 {p99:.2} ms",
        times.len(),
        as_ms(delay)
    );
    let right = min >= as_ms(delay) - 0.02 && median < as_ms(delay) + ALLOWED;
    Ok(Outcome { right, found })
}

fn waits() -> Result<Outcome, Error> {
    let (users, wait) = (4, Wait::Uniform(ms(5), ms(15)));
    let workload = "workload: measure\nsession:\n  steps:\n    - { step: Get, wait: 5ms..15ms, request: GET / }\n";
    let mut drive = drive(slow(Duration::ZERO)?, workload)?;
    (drive.users, drive.hold) = (users, ms(2000));
    let (seed, block) = (drive.seed, drive.block);
    let windows = windows(drive, |_| {})?;
    let count: u64 = windows.iter().map(|w| w.steps[0].counts.waits).sum();
    let sum_us: u64 = windows.iter().map(|w| w.steps[0].counts.wait_sum_us).sum();
    // Each user has about the same number.
    let each = count / u64::from(users);
    let drawn = (0..users).flat_map(|user| {
        let mut stream = TimingStream::new(seed, block, user);
        (0..each)
            .map(move |_| stream.next_wait(&wait))
            .collect::<Vec<_>>()
    });
    let drawn = as_ms(drawn.sum::<Duration>()) / (each * u64::from(users)).max(1) as f64;
    let mean = sum_us as f64 / 1e3 / count.max(1) as f64;
    let found = format!("{count} waits, mean {mean:.3} ms, drawn {drawn:.3} ms");
    let right = count > 400 && mean > drawn * 0.97 && mean < drawn + ALLOWED;
    Ok(Outcome { right, found })
}

fn pace() -> Result<Outcome, Error> {
    let workload = "workload: measure\nsession:\n  pace: 50ms\n  steps:\n    - { step: Get, wait: 5ms, request: GET / }\n";
    let mut drive = drive(slow(Duration::ZERO)?, workload)?;
    (drive.users, drive.ramp, drive.hold) = (2, ms(50), ms(1960));
    let windows = windows(drive, |_| {})?;
    let late = quantile_ms(&total(windows.iter().map(|w| &*w.lateness)), 0.9);
    let cycles: u64 = windows.iter().map(|w| w.counts.cycles).sum();
    let overruns: u64 = windows.iter().map(|w| w.counts.overruns).sum();
    // User 0 starts at 0, user 1 at 25: cycles begin at 0, 50 … 2000 and 25, 75 … 1975.
    let right = (cycles, overruns) == (81, 0) && late < ALLOWED;
    let found = format!(
        "{cycles} cycles (81 planned), {overruns} overruns, sent late by {late:.3} ms (p90)"
    );
    Ok(Outcome { right, found })
}

fn probe() -> Result<Outcome, Error> {
    // Every answer takes 50 ms, so that a probe every 20 ms queues behind the earlier ones.
    let workload = "workload: measure\nsession:\n  pace: 30s\n  steps:\n    - { step: Get, request: GET / }\nprobe:\n  every: 20ms\n  request: GET /probe\n";
    let mut drive = drive(slow(ms(50))?, workload)?;
    drive.hold = ms(510);
    let windows = windows(drive, |_| {})?;
    // Probe k is planned at 20 k and answered at 20 + 50 k: it takes 20 + 30 k.
    let times = sum(&windows, 1, |s| &s.times.ok);
    let [min, max] = [0.0, 1.0].map(|q| quantile_ms(&times, q));
    let late = quantile_ms(&total(windows.iter().map(|w| &*w.lateness)), 0.9);
    let near = |found: f64, expected: f64| (-0.05..9.0 * ALLOWED).contains(&(found - expected));
    let right = times.len() == 9 && near(min, 50.0) && near(max, 290.0) && late < ALLOWED;
    let found = format!(
        "{} probes (true: 9), {min:.2} ms (50) to {max:.2} ms (290), sent late by {late:.3} ms (p90)",
        times.len()
    );
    Ok(Outcome { right, found })
}
