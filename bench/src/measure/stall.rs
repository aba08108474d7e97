//! A server that stalls: requests planned during a stall wait for its end, whether they were sent or not.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use lab_driver::Clock;
use lab_workload::{LoadKind, Spacing};

use crate::error::Error;
use crate::experiment::{Experiment, Outcome};
use crate::server::{answer, drive, ms, quantile_ms, server, sum, windows};

const PERIOD: Duration = ms(5000);
/// The start of the stall in each period.
const STALL_FROM: Duration = ms(2000);
/// The end of the stall.
const STALL_TO: Duration = ms(3000);
/// The maximum relative error of a quantile.
const ALLOWED: f64 = 0.02;

pub(crate) fn experiments() -> [Experiment; 2] {
    let of = |name, slots, service_fits: fn(f64, f64) -> bool| Experiment {
        name,
        go: Box::new(move || go(slots, service_fits)),
    };
    [
        // More connections than the requests of a stall: each is sent when planned.
        of(
            "stall, a connection for each request",
            1200,
            |service, response| service > 0.9 * response,
        ),
        // 64 requests of a stall are sent, the others wait for a connection: few services are slow.
        of("stall, 64 connections", 64, |service, _| service < 5.0),
    ]
}

/// A server without a limit on concurrency that stalls 1 s in every 5. It follows the given clock, and doesn't stall
/// before that exists.
fn stalling(begun: Arc<OnceLock<Clock>>) -> Result<std::net::SocketAddr, Error> {
    server(move |socket| {
        let now = begun.get().map_or(Duration::ZERO, |clock| clock.now());
        async move {
            let into = Duration::from_micros((now.as_micros() % PERIOD.as_micros()) as u64);
            if (STALL_FROM..STALL_TO).contains(&into) {
                tokio::time::sleep(STALL_TO - into).await;
            }
            answer(&socket);
        }
    })
}

/// Returns the response time at quantile `q`, ms: of all requests, the share S = 1 s ÷ 5 s falls evenly into a stall
/// and waits for its end, so that a share of S × (1 − x ÷ 1 s) takes longer than x.
fn stalled_quantile_ms(q: f64) -> f64 {
    let stall = (STALL_TO - STALL_FROM).as_secs_f64();
    let share = stall / PERIOD.as_secs_f64();
    stall * (1.0 - (1.0 - q) / share) * 1e3
}

/// `service_fits` judges the service p90 beside the response p90, ms.
fn go(slots: u32, service_fits: fn(f64, f64) -> bool) -> Result<Outcome, Error> {
    let begun = Arc::new(OnceLock::new());
    let address = stalling(Arc::clone(&begun))?;
    let workload = "workload: measure\nsetup:\n  - { step: Connect, request: GET / }\n\
                    session:\n  steps:\n    - { step: Get, request: GET / }\n";
    let mut drive = drive(address, workload)?;
    drive.kind = LoadKind::Arrival {
        rate_per_s: 1000.0,
        spacing: Spacing::Constant,
    };
    drive.users = slots;
    (drive.hold, drive.window) = (2 * PERIOD, ms(5));
    let windows = windows(drive, |clock| {
        let _once = begun.set(clock);
    })?;
    let response = sum(&windows, 0, |s| &s.times.ok);
    let [p90, p99] = [0.90, 0.99].map(|q| quantile_ms(&response, q));
    let service = quantile_ms(&sum(&windows, 0, |s| &s.times.service), 0.90);
    let near = |found: f64, q| (found / stalled_quantile_ms(q) - 1.0).abs() < ALLOWED;
    let right = near(p90, 0.90) && near(p99, 0.99) && service_fits(service, p90);
    let [p90_true, p99_true] = [0.90, 0.99].map(stalled_quantile_ms);
    let found = format!(
        "response p90 {p90:.1} ms (true: {p90_true:.0}), p99 {p99:.1} ms ({p99_true:.0}); service p90 {service:.1} ms"
    );
    Ok(Outcome { right, found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_stall_is_its_middle() {
        let expected = [0.80, 0.90, 0.99].map(stalled_quantile_ms);
        assert_eq!(expected.map(f64::round), [0.0, 500.0, 950.0]);
    }
}
