//! A server with a single worker, against the response times that queueing theory computes from its service times.

use std::time::Duration;

use lab_workload::timing::{ArrivalStream, Profile};
use lab_workload::{LoadKind, Spacing};

use crate::error::Error;
use crate::experiment::{Experiment, Outcome};
use crate::server::{
    Served, as_ms, drive, ms, quantile_ms, single_worker, total, two_cores, windows,
};

const RATE: f64 = 150.0;
const MEAN: Duration = ms(4);
/// The maximum median error, ms: the cost of two clock reads and two sockets.
const ALLOWED: f64 = 0.2;

pub(crate) fn experiments() -> [Experiment; 2] {
    let of = |name, slots| Experiment {
        name,
        go: Box::new(move || go(slots)),
    };
    [
        of("lindley, a connection for each request", 16),
        of("lindley, requests wait for a connection", 2),
    ]
}

/// Lindley's recursion (1952): the wait of a request is the wait and the service of the previous one, less the time
/// between the two. Returns waiting + service, ms.
fn lindley(arrivals: &[Duration], services: &[Duration]) -> Vec<f64> {
    let mut free_from = Duration::ZERO;
    let responses = arrivals.iter().zip(services).map(|(at, service)| {
        free_from = free_from.max(*at) + *service;
        as_ms(free_from - *at)
    });
    responses.collect()
}

fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * q) as usize;
    values.get(at).copied().unwrap_or(f64::INFINITY)
}

/// Returns the median error of the measured response times; and, to explain it, the p90 of the delays of the driver's
/// sends and of the server's reads. One such delay stays for the rest of a busy period, so that the median error
/// includes the larger ones.
fn go(slots: u32) -> Result<Outcome, Error> {
    let cores = two_cores()?;
    let (address, served) = single_worker(MEAN, cores.map(|cores| cores[1]))?;
    // The setup opens the connections.
    let workload = "workload: measure\nsetup:\n  - { step: Connect, request: GET / }\n\
                    session:\n  steps:\n    - { step: Get, request: GET / }\n";
    let mut drive = drive(address, workload)?;
    drive.kind = LoadKind::Arrival {
        rate_per_s: RATE,
        spacing: Spacing::Poisson,
    };
    drive.users = slots;
    drive.cores = cores.iter().map(|cores| cores[0]).collect();
    // One worker answers one request at a time, so that windows of 1 ms hold one answer each and the histograms have
    // each response time.
    (drive.hold, drive.window) = (ms(6000), ms(1));
    let (seed, block, hold) = (drive.seed, drive.block, drive.hold);
    let profile = Profile::ramp(RATE, Duration::ZERO);
    let stream = ArrivalStream::new(seed, block, Spacing::Poisson, profile);
    let planned: Vec<_> = stream.map(|a| a.at).take_while(|at| *at < hold).collect();
    let windows = windows(drive, |_| {})?;
    let served: Vec<Served> = served.try_iter().skip(slots as usize).collect();
    let services: Vec<_> = served.iter().map(|s| s.service).collect();
    let unseen = served.iter().map(|s| as_ms(s.unseen)).collect();
    let measured: Vec<f64> = windows
        .iter()
        .flat_map(|w| w.steps[0].times.ok.iter_recorded())
        .flat_map(|v| vec![v.value_iterated_to() as f64 / 1e3; v.count_at_value() as usize])
        .collect();
    let predicted = lindley(&planned, &services);
    let errors = measured.iter().zip(&predicted).map(|(m, p)| (m - p).abs());
    let error = quantile(errors.collect(), 0.5);
    let late = quantile_ms(&total(windows.iter().map(|w| &*w.lateness)), 0.9);
    let all = planned.len();
    let found = format!(
        "{} of {all} responses, median error {error:.3} ms; sent late by {late:.3} ms, seen late by {:.3} ms (p90)",
        measured.len(),
        quantile(unseen, 0.9),
    );
    let right = error < ALLOWED && all - measured.len() < 100;
    Ok(Outcome { right, found })
}
