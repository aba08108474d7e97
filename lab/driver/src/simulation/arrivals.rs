//! Arrivals of sessions: arrival times, waits for a connection, the start of response times, dropped sessions, and the
//! sessions left at the end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lab_workload::Wait;
use lab_workload::timing::{ArrivalStream, TimingStream};
use lab_workload::{LoadKind, Spacing};

use super::{Answer, Observed, drive, histogram, ms, simulate, step};
use crate::assignment::Assignment;
use lab_client::ErrorClass;
use lab_workload::part::Part;

/// Returns a load of single requests that arrive.
fn arrivals(rate_per_s: f64, spacing: Spacing, slots: u32) -> Assignment {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    drive.kind = LoadKind::Arrival {
        rate_per_s,
        spacing,
    };
    drive.users = slots;
    drive
}

fn constant(rate_per_s: f64, slots: u32) -> Assignment {
    arrivals(rate_per_s, Spacing::Constant, slots)
}

/// Returns the planned arrival times of the sessions.
fn planned(drive: &Assignment) -> Vec<Duration> {
    let LoadKind::Arrival {
        rate_per_s,
        spacing,
    } = drive.kind
    else {
        return Vec::new();
    };
    let profile = drive.profile(rate_per_s);
    let stream = ArrivalStream::new(drive.seed, drive.block, spacing, profile);
    let end = drive.ramp + drive.hold;
    let times = stream.map(|arrival| arrival.at);
    times.take_while(|at| *at < end).collect()
}

fn sends(observed: &Observed) -> Vec<Duration> {
    observed.sent.iter().map(|asked| asked.at).collect()
}

/// Returns a server with one worker, first come, first served.
fn one_worker(mut service: impl FnMut() -> Duration) -> impl FnMut(super::Received) -> Answer {
    let mut free_from = Duration::ZERO;
    move |asked| {
        free_from = free_from.max(asked.at) + service();
        Answer::After(free_from - asked.at)
    }
}

/// Lindley's recursion (1952): a request waits for the wait and the service of the previous one, less the time between
/// the two. Returns the response times of the requests.
fn lindley(arrivals: &[Duration], services: &[Duration]) -> Vec<Duration> {
    let mut free_from = Duration::ZERO;
    let answers = arrivals.iter().zip(services).map(|(at, service)| {
        free_from = free_from.max(*at) + *service;
        free_from
    });
    answers.collect()
}

#[test]
fn sessions_arrive_as_the_stream_says_on_every_worker() {
    for spacing in [Spacing::Constant, Spacing::Poisson] {
        let mut drive = arrivals(200.0, spacing, 300);
        (drive.ramp, drive.hold, drive.cores) = (ms(300), ms(702), vec![0, 1]);
        let planned = planned(&drive);
        let observed = simulate(drive, |_| Answer::After(ms(0)));
        assert_eq!(sends(&observed), planned);
        let sum = &observed.summary;
        assert_eq!(
            (sum.arrived, sum.cycles),
            (planned.len() as u64, sum.arrived)
        );
        assert_eq!(
            (sum.transactions, sum.errors, sum.dropped),
            (sum.arrived, 0, 0)
        );
        assert_eq!(observed.last().unanswered().0, 0);
    }
}

#[test]
fn responses_of_a_single_worker_are_those_of_lindleys_recursion() {
    let service = Wait::Exponential(ms(4));
    // With a connection for each session, and with two connections: the server's queue and the generator's are one
    // queue.
    for slots in [400, 2] {
        let mut drive = arrivals(200.0, Spacing::Poisson, slots);
        drive.hold = ms(2000);
        let (hold, arrivals) = (drive.hold, planned(&drive));
        let mut draws = TimingStream::new(20, 0, 0);
        let services: Vec<_> = arrivals.iter().map(|_| draws.next_wait(&service)).collect();
        let answers = lindley(&arrivals, &services);
        let mut served = services.clone().into_iter();
        let observed = simulate(drive, one_worker(move || served.next().unwrap()));
        let all = arrivals.iter().zip(&answers);
        let (in_time, open): (Vec<_>, Vec<_>) = all.partition(|(_, answer)| **answer < hold);
        let responses = in_time.iter().map(|(at, answer)| **answer - **at);
        assert_eq!(observed.times(0), histogram(responses));
        let ages = open.iter().map(|(at, _)| hold - **at);
        assert_eq!(*observed.unanswered(0), histogram(ages));
        assert_eq!(observed.lateness().max(), 1, "nothing is late");
    }
}

/// The same for c servers (Kiefer & Wolfowitz, 1955): the next request gets the server that is free first.
fn kiefer_wolfowitz(arrivals: &[Duration], services: &[Duration], servers: usize) -> Vec<Duration> {
    let mut free_from = vec![Duration::ZERO; servers];
    let answers = arrivals.iter().zip(services).map(|(at, service)| {
        let first = free_from.iter_mut().min().unwrap();
        *first = (*first).max(*at) + *service;
        *first
    });
    answers.collect()
}

/// Erlang's C formula (1917): the mean wait for one of `c` servers that are busy for the part `busy`.
fn mean_wait_of_erlang(c: u32, busy: f64, service: Duration) -> Duration {
    let offered = busy * f64::from(c);
    let mut term = 1.0;
    let mut below = 0.0;
    for k in 0..c {
        below += term;
        term *= offered / f64::from(k + 1);
    }
    let all_busy = term / (1.0 - busy);
    let waits = all_busy / (below + all_busy);
    service.mul_f64(waits / (f64::from(c) * (1.0 - busy)))
}

#[test]
fn waits_for_a_connection_are_those_of_theory_with_any_number_of_workers() {
    let (connections, busy) = (16, 0.8);
    let service = Wait::Exponential(ms(10));
    for workers in [1, 4] {
        let rate_per_s = busy * f64::from(connections) / 0.01;
        let mut drive = arrivals(rate_per_s, Spacing::Poisson, connections);
        (drive.hold, drive.window, drive.cores) = (ms(30_000), ms(1000), (0..workers).collect());
        let (hold, arrivals) = (drive.hold, planned(&drive));
        let mut draws = TimingStream::new(20, 0, 0);
        let services: Vec<_> = arrivals.iter().map(|_| draws.next_wait(&service)).collect();
        let answers = kiefer_wolfowitz(&arrivals, &services, connections as usize);
        let mut served = services.clone().into_iter();
        let observed = simulate(drive, move |_| Answer::After(served.next().unwrap()));
        let in_time = arrivals
            .iter()
            .zip(&answers)
            .filter(|(_, answer)| **answer < hold);
        let responses: Vec<Duration> = in_time.map(|(at, answer)| *answer - *at).collect();
        assert_eq!(
            observed.times(0),
            histogram(responses.iter().copied()),
            "{workers} workers: not one session waits while a connection is free"
        );
        let waits = responses
            .iter()
            .zip(&services)
            .map(|(response, service)| response.saturating_sub(*service));
        let mean = waits.sum::<Duration>().as_secs_f64() / responses.len() as f64;
        let theory = mean_wait_of_erlang(connections, busy, ms(10)).as_secs_f64();
        // 38,000 sessions of one seed, correlated with their neighbours: their mean is that close.
        assert!(
            (mean / theory - 1.0).abs() < 0.2,
            "{mean} s, by Erlang {theory} s"
        );
    }
}

#[test]
fn a_session_never_waits_for_the_pause_after_anothers_failure() {
    let mut drive = constant(200.0, 4);
    (drive.hold, drive.limits.failure_pause) = (ms(1002), ms(100));
    let planned = planned(&drive);
    let mut asked = 0;
    let observed = simulate(drive, move |_| {
        asked += 1;
        match asked % 20 {
            0 => Answer::Fails(ErrorClass::Reset, ms(1)),
            _ => Answer::After(ms(1)),
        }
    });
    assert_eq!(sends(&observed), planned, "each goes out when it arrives");
    assert_eq!(observed.times(0).max(), histogram([ms(1)]).max());
    assert_eq!(observed.summary.errors, planned.len() as u64 / 20);
}

#[test]
fn waiting_for_a_connection_is_response_time_and_no_lateness() {
    // One connection carries 50 sessions a second; 100 arrive.
    let mut drive = constant(100.0, 1);
    drive.hold = ms(1005);
    let planned = planned(&drive);
    let observed = simulate(drive, |_| Answer::After(ms(20)));
    let answered: Vec<_> = planned
        .iter()
        .zip(1..)
        .map(|(at, n)| (*at, planned[0] + ms(20 * n)))
        .collect();
    let in_time = answered.iter().filter(|(_, answer)| *answer < ms(1005));
    let responses: Vec<_> = in_time.map(|(at, answer)| *answer - *at).collect();
    assert_eq!((planned.len(), responses.len()), (101, 50));
    assert_eq!(observed.times(0), histogram(responses.iter().copied()));
    assert_eq!(
        observed.sum(0, |step| &step.times.service),
        histogram(vec![ms(20); responses.len()])
    );
    assert_eq!(observed.lateness().max(), 1);
    // The sessions waiting at the end are reported, with their age.
    let last = observed.last();
    let left = (planned.len() - responses.len()) as u64;
    assert_eq!(
        (last.unanswered().0, last.counts.waiting, last.counts.users),
        (left, left - 1, 1)
    );
    let waited = planned[responses.len()..].iter().map(|at| ms(1005) - *at);
    assert_eq!(*observed.unanswered(0), histogram(waited));
}

const PERIOD: Duration = ms(5000);
/// In each period the server stalls from this time …
const STALL_FROM: Duration = ms(2000);
/// … to this time.
const STALL_TO: Duration = ms(3000);

/// Returns the response time of a request sent now: until the end of the stall, if there is one.
fn stalled(at: Duration) -> Duration {
    let into = Duration::from_nanos((at.as_nanos() % PERIOD.as_nanos()) as u64);
    match (STALL_FROM..STALL_TO).contains(&into) {
        true => STALL_TO - into,
        false => Duration::ZERO,
    }
}

#[test]
fn a_stall_is_in_the_response_times_of_all_planned_sends() {
    for slots in [1200, 64] {
        let mut drive = constant(1000.0, slots);
        drive.hold = 2 * PERIOD;
        let planned = planned(&drive);
        let observed = simulate(drive, |asked| Answer::After(stalled(asked.at)));
        let response = observed.times(0);
        // However few connections there are, each response time counts from the plan.
        assert_eq!(response, histogram(planned.iter().map(|at| stalled(*at))));
        // A fifth of the requests falls into a stall, evenly: half of those wait for over 500 ms.
        for (q, expected) in [(0.9, 500_000), (0.99, 950_000)] {
            let found = response.value_at_quantile(q);
            assert!(found.abs_diff(expected) <= 1000, "{q}: {found} us");
        }
        // Requests sent in the stall are slow; the others were sent after its end.
        let service = observed.sum(0, |step| &step.times.service);
        let slow = service.len() - service.count_between(0, 1);
        let expected = if slots == 64 { 2 * 64 } else { 2 * 1000 };
        assert_eq!((slow, service.len()), (expected, response.len()));
    }
}

#[test]
fn sessions_beyond_the_bound_are_dropped_and_counted() {
    let mut drive = constant(100.0, 1);
    (drive.hold, drive.limits.max_waiting) = (ms(300), 4);
    let arrived = planned(&drive).len() as u64;
    let observed = simulate(drive, |_| Answer::After(ms(5000)));
    let sum = &observed.summary;
    assert_eq!((sum.arrived, sum.transactions), (arrived, 0));
    assert_eq!(sum.dropped, arrived - 5);
    assert_eq!(observed.last().unanswered().0, 5);
}

#[test]
fn sessions_with_waits_keep_their_own_draws() {
    let wait = Wait::Uniform(ms(10), ms(60));
    let mut drive = constant(100.0, 64);
    drive.workload = drive_of_two(wait).workload;
    drive.hold = ms(600);
    let (seed, block, arrivals) = (drive.seed, drive.block, planned(&drive));
    let observed = simulate(drive, |_| Answer::After(ms(3)));
    let mut expected = Vec::new();
    for (number, at) in (0..).zip(arrivals) {
        let mut stream = TimingStream::of_session(seed, block, number);
        let first = at + stream.next_wait(&wait);
        expected.extend([first, first + ms(3) + stream.next_wait(&wait)]);
    }
    expected.retain(|at| *at < ms(600));
    expected.sort();
    assert_eq!(sends(&observed), expected);
    assert_eq!(observed.times(0).max(), histogram([ms(3)]).max());
}

fn drive_of_two(wait: Wait) -> Assignment {
    drive(vec![step(wait, 1), step(wait, 1)])
}

#[test]
fn the_plan_passes_on_from_a_step_that_is_skipped() {
    let mut drive = constant(100.0, 1);
    drive.workload = drive_of_two(Wait::None).workload;
    drive.hold = ms(500);
    let planned = planned(&drive);
    let observed = simulate(drive, |asked| match asked.request {
        0 => Answer::Skipped,
        _ => Answer::After(ms(30)),
    });
    let answers = (1..).map(|n| planned[0] + ms(30 * n));
    let in_time = planned
        .iter()
        .zip(answers)
        .filter(|(_, answer)| *answer < ms(500));
    let responses: Vec<_> = in_time.map(|(at, answer)| answer - *at).collect();
    assert!(responses.len() >= 16);
    assert_eq!(observed.summary.skipped, responses.len() as u64 + 1);
    assert_eq!(observed.times(1), histogram(responses));
}

#[test]
fn parts_of_a_drive_share_its_sessions() {
    let part = |index: usize| {
        let mut drive = constant(100.0, 4);
        drive.part = Part::by_weights(&[1, 1]).unwrap().remove(index);
        drive.hold = ms(205);
        let observed = simulate(drive, |_| Answer::After(ms(0)));
        let mut users: Vec<u32> = observed.sent.iter().map(|asked| asked.user).collect();
        users.sort_unstable();
        users.dedup();
        (observed.summary.arrived, users, sends(&observed))
    };
    let mut whole = constant(100.0, 4);
    whole.hold = ms(205);
    let planned = planned(&whole);
    let every_other = |first| planned.iter().skip(first).step_by(2).copied().collect();
    assert_eq!(part(0), (11, vec![0, 2], every_other(0)));
    assert_eq!(part(1), (10, vec![1, 3], every_other(1)));
}

#[test]
fn a_connection_that_is_free_for_longest_comes_first() {
    let mut drive = constant(100.0, 3);
    drive.hold = ms(100);
    let users = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&users);
    simulate(drive, move |asked| {
        seen.borrow_mut().push(asked.user);
        Answer::After(ms(1))
    });
    let users = users.borrow();
    assert!(users.len() >= 9);
    assert!(
        users.iter().zip(0..).all(|(user, n)| *user == n % 3),
        "{users:?}"
    );
}
