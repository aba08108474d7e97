//! Open loads over real sockets, at any speed: sessions that wait for a connection, the start of response times, and
//! the sessions left at the end. The start of sessions is tested in simulated time, within the crate.

use std::sync::Mutex;

use crate::common::{Make, Observed, Server, ms, ok, pass, run, run_until};
use lab_counts::{Hist, StepWindow};
use lab_driver::Assignment;
use lab_workload::{LoadKind, Spacing};
use lab_workload::{Probe, Wait};

fn arrivals(mut drive: Assignment, rate_per_s: f64, slots: u32) -> Assignment {
    drive.kind = LoadKind::Arrival {
        rate_per_s,
        spacing: Spacing::Constant,
    };
    drive.users = slots;
    drive
}

fn sum(observed: &Observed, of: fn(&StepWindow) -> &Hist) -> Hist {
    let mut sum = Hist::<3>::default();
    for window in &observed.windows {
        window.steps.iter().for_each(|s| sum.add(of(s)).unwrap());
    }
    sum
}

/// Quantiles at which to compare.
const QUANTILES: [f64; 6] = [0.0, 0.25, 0.5, 0.9, 0.99, 1.0];

#[test]
fn each_answer_has_both_of_its_times_and_no_service_is_longer() {
    let server = Server::answering(|_| ok(""));
    let make = Make::new(&[]).step(Wait::None, "GET /");
    let mut drive = arrivals(make.drive(&server.base()), 500.0, 8);
    drive.cores = vec![0, 1];
    let observed = run_until(drive, |observed| observed.done() >= 200);
    assert_eq!((observed.summary.errors, observed.summary.dropped), (0, 0));
    // The connections are kept, and each belongs to one user.
    assert!(
        observed.summary.connects <= 8,
        "{}",
        observed.summary.connects
    );
    let (response, service) = (
        sum(&observed, |s| &s.times.ok),
        sum(&observed, |s| &s.times.service),
    );
    assert_eq!(
        (response.len(), service.len()),
        (observed.summary.transactions, response.len())
    );
    for q in QUANTILES {
        let [response, service] = [&response, &service].map(|h| h.value_at_quantile(q));
        assert!(service <= response, "{q}: {service} us of {response} us");
    }
    // Every arrived session got a response, or is reported without one.
    let left: u64 = observed.windows.iter().map(|w| w.unanswered().0).sum();
    assert_eq!(
        observed.summary.arrived,
        observed.summary.transactions + left
    );
}

#[test]
fn a_stall_is_in_the_response_times_of_all_planned_sends() {
    // Four connections carry 200 sessions a second. The server stalls for 300 ms with the first request, while 60
    // sessions arrive. All of them count the wait, though at most four were sent meanwhile.
    let first = Mutex::new(true);
    let server = Server::answering(move |_| {
        let mut first = first.lock().unwrap();
        if std::mem::take(&mut *first) {
            // Requests that arrive meanwhile wait for the lock.
            pass(ms(300));
        }
        ok("")
    });
    let make = Make::new(&[]).step(Wait::None, "GET /");
    let drive = arrivals(make.drive(&server.base()), 200.0, 4);
    // Until those have their responses, too, whose connection's thread woke last.
    let observed = run_until(drive, |observed| observed.done() >= 400);
    let (response, service) = (
        sum(&observed, |s| &s.times.ok),
        sum(&observed, |s| &s.times.service),
    );
    // Session k arrives at 5 k ms and gets no response before 300 ms have passed.
    for (waited_ms, sessions) in [(250, 11), (200, 21), (100, 41), (50, 51)] {
        let slow = response.len() - response.count_between(0, waited_ms * 1000 - 1000);
        assert!(slow >= sessions, "{slow} waited for {waited_ms} ms");
    }
    assert!(service.max() >= 300_000, "{} us", service.max());
    assert!(service.max() <= response.max());
}

#[test]
fn what_waits_for_a_connection_at_the_end_is_told() {
    let server = Server::start(|mut peer| while peer.request().is_some() {});
    let make = Make::new(&[]).step(Wait::None, "GET /");
    let drive = arrivals(make.drive(&server.base()), 100.0, 1);
    // There are no responses.
    let observed = run_until(drive, |observed| {
        observed
            .windows
            .last()
            .is_some_and(|w| w.counts.waiting >= 5)
    });
    let last = observed.windows.last().unwrap();
    assert_eq!(observed.summary.transactions, 0);
    assert_eq!(
        (last.unanswered().0, last.counts.users),
        (observed.summary.arrived, 1)
    );
    assert_eq!(last.counts.waiting + 1, last.unanswered().0);
    // The first arrived before five others.
    assert!(last.unanswered().1 >= ms(50), "{:?}", last.unanswered());
}

#[test]
fn a_sequence_ends_with_its_last_session() {
    let server = Server::answering(|_| ok(""));
    let mut make = Make::new(&[])
        .step(Wait::None, "GET /a")
        .step(Wait::Constant(ms(1)), "GET /b");
    make.workload.probe = Some(Probe {
        request: make.request("GET /probe"),
        every: ms(3),
    });
    let mut drive = make.drive(&server.base());
    (drive.kind, drive.cores) = (
        LoadKind::Sequence {
            sessions: 7,
            shared: false,
        },
        vec![0, 1],
    );
    drive.hold = std::time::Duration::from_secs(600);
    let observed = run(drive);
    let sum = &observed.summary;
    assert_eq!(
        (sum.cycles, sum.transactions, sum.stopped_early),
        (7, 14, false)
    );
    let lines: Vec<String> = server.lines();
    let (probes, own): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains("probe"));
    assert_eq!(own.len(), 14);
    assert!(probes.len() as u64 >= sum.probe_transactions);
    let mut sessions = Hist::<3>::default();
    let of_windows = observed.windows.iter().map(|window| &window.sessions);
    of_windows.for_each(|part| sessions.add(part).unwrap());
    // Each of the seven sessions waits for 1 ms.
    assert_eq!(sessions.len(), 7);
    assert!(sessions.min() >= 1_000, "{} us", sessions.min());
    assert!(u128::from(sessions.min()) * 7 <= sum.elapsed.as_micros());
}
