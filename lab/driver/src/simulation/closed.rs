//! Returning users: waits, pace, ramp, end of the trial, pauses after failures, and the parallel probe.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use lab_workload::timing::TimingStream;
use lab_workload::{Step, Wait};

use super::drive::{probe, workload};
use super::{Answer, drive, histogram, ms, simulate, step};
use lab_client::ErrorClass;
use lab_client::Nanos;

#[test]
fn a_known_delay_is_every_quantile() {
    let mut drive = drive(vec![step(Wait::Constant(ms(5)), 1)]);
    (drive.users, drive.hold) = (10, ms(1190));
    let observed = simulate(drive, |_| Answer::After(ms(20)));
    // Responses at 25, 50 … 1175.
    assert_eq!(observed.times(0), histogram(vec![ms(20); 10 * 47]));
    assert_eq!(observed.lateness(), histogram(vec![ms(0); 10 * 47]));
}

#[test]
fn windows_follow_each_other_without_gaps_to_the_very_end() {
    let mut drive = drive(vec![step(Wait::Constant(ms(3)), 1)]);
    (drive.users, drive.cores) = (5, vec![0, 1]);
    (drive.ramp, drive.hold, drive.window) = (ms(105), ms(200), ms(20));
    let observed = simulate(drive, |_| Answer::After(ms(0)));
    assert_eq!(observed.windows.len(), 16);
    let mut end = ms(0);
    for window in &observed.windows {
        assert_eq!((window.start, window.handed_over), (end, window.end));
        end = window.end;
    }
    assert_eq!(
        (
            end,
            observed.summary.elapsed,
            observed.summary.stopped_early
        ),
        (ms(305), ms(305), false)
    );
    // One starts every 21 ms.
    let users: Vec<u32> = observed
        .windows
        .iter()
        .map(|window| window.counts.users)
        .collect();
    assert_eq!(users[..6], [1, 2, 3, 4, 5, 5]);
    assert_eq!(observed.lateness().len(), observed.summary.transactions);
    assert_eq!(observed.sent.len() as u64, observed.summary.transactions);
}

#[test]
fn waits_last_as_drawn() {
    let wait = Wait::Uniform(ms(5), ms(15));
    let mut drive = drive(vec![step(wait, 1)]);
    drive.users = 4;
    let (seed, block, hold) = (drive.seed, drive.block, drive.hold);
    let observed = simulate(drive, |_| Answer::After(ms(0)));
    let [mut waits, mut sum_us] = [0, 0];
    for user in 0..4 {
        let mut stream = TimingStream::new(seed, block, user);
        let mut at = ms(0);
        let mut sends = Vec::new();
        loop {
            let wait = stream.next_wait(&wait);
            at += wait;
            if at >= hold {
                break;
            }
            waits += 1;
            sum_us += (wait.as_nanos() as u64 + 500) / 1000;
            sends.push(at);
        }
        assert_eq!(observed.sends_of(user), sends);
    }
    assert_eq!(observed.count(|step| step.counts.waits), waits);
    assert_eq!(observed.count(|step| step.counts.wait_sum_us), sum_us);
}

#[test]
fn cycles_keep_their_pace() {
    let mut drive = drive(vec![step(Wait::Constant(ms(5)), 1)]);
    workload(&mut drive).session.pace = Some(ms(50));
    (drive.users, drive.ramp, drive.hold) = (2, ms(50), ms(460));
    let observed = simulate(drive, |_| Answer::After(ms(3)));
    // User 0 starts at 0, user 1 at 25; each waits for 5 ms first.
    let sends = |start: u64| -> Vec<_> { (start + 5..510).step_by(50).map(ms).collect() };
    assert_eq!(observed.sends_of(0), sends(0));
    assert_eq!(observed.sends_of(1), sends(25));
    assert_eq!(
        (observed.summary.cycles, observed.summary.overruns),
        (21, 0)
    );
    assert_eq!(observed.summary.transactions, 21);
}

#[test]
fn a_cycle_that_overruns_is_counted_and_followed_at_once() {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    workload(&mut drive).session.pace = Some(ms(10));
    drive.hold = ms(160);
    let observed = simulate(drive, |_| Answer::After(ms(30)));
    assert_eq!(observed.sends_of(0), [0, 30, 60, 90, 120, 150].map(ms));
    let sum = &observed.summary;
    assert_eq!((sum.cycles, sum.overruns, sum.transactions), (6, 5, 5));
    // The wait for a slow response is no lateness of the generator.
    assert_eq!(observed.lateness(), histogram([ms(0); 5]));
}

#[test]
fn single_failures_without_a_response_pause_nobody() {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    (drive.hold, drive.limits.failure_pause) = (ms(400), ms(100));
    let mut asked = 0;
    // Two failures, then one response, repeatedly.
    let observed = simulate(drive, move |_| {
        asked += 1;
        match asked % 3 {
            0 => Answer::After(ms(1)),
            _ => Answer::Fails(ErrorClass::Reset, ms(1)),
        }
    });
    assert_eq!(observed.summary.transactions + observed.summary.errors, 399);
    assert_eq!(observed.count(|step| step.counts.pauses), 0);
}

#[test]
fn a_server_that_is_down_is_not_flooded() {
    let sends = |wait, class| {
        let mut drive = drive(vec![step(wait, 1)]);
        (drive.users, drive.hold) = (4, ms(490));
        drive.limits.failure_pause = ms(100);
        let observed = simulate(drive, move |_| Answer::Fails(class, ms(0)));
        assert_eq!(observed.summary.transactions, 0);
        assert_eq!(observed.sent.len(), 4 * observed.sends_of(0).len());
        let paused = observed.count(|step| step.counts.pause_us) / 4;
        (observed.sends_of(0), paused)
    };
    for class in [ErrorClass::Reset, ErrorClass::Connect, ErrorClass::Timeout] {
        // The third failure in a row is the first that causes a pause; pauses beyond the end count, too.
        let sent = vec![0, 0, 0, 100, 200, 300, 400]
            .into_iter()
            .map(ms)
            .collect();
        assert_eq!(sends(Wait::None, class), (sent, 500_000));
        let wait = Wait::Constant(ms(60));
        let sent = vec![60, 120, 180, 280, 380, 480]
            .into_iter()
            .map(ms)
            .collect();
        assert_eq!(sends(wait, class), (sent, 4 * 40_000));
    }
    // An error response doesn't change the waits.
    let every_50: Vec<_> = (50..490).step_by(50).map(ms).collect();
    let wait = Wait::Constant(ms(50));
    assert_eq!(sends(wait, ErrorClass::Status), (every_50, 0));
}

#[test]
fn a_pause_after_a_failure_is_no_think_time() {
    let mut drive = drive(vec![step(Wait::Constant(ms(5)), 1)]);
    drive.limits.failure_pause = ms(60);
    let observed = simulate(drive, |_| Answer::Fails(ErrorClass::Reset, ms(1)));
    let waits = observed.count(|step| step.counts.waits);
    assert_eq!(waits, observed.sent.len() as u64);
    assert_eq!(
        observed.count(|step| step.counts.wait_sum_us),
        5_000 * waits
    );
}

#[test]
fn a_session_that_sends_nothing_does_not_spin() {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    (drive.hold, drive.limits.failure_pause) = (ms(350), ms(100));
    let observed = simulate(drive, |_| Answer::Skipped);
    // At 0, 100, 200, 300.
    assert_eq!((observed.summary.skipped, observed.summary.cycles), (4, 4));
}

#[test]
fn requests_under_way_at_the_end_are_told_and_not_counted() {
    let mut drive = drive(vec![step(Wait::Constant(ms(30)), 1)]);
    (drive.users, drive.hold) = (3, ms(150));
    let observed = simulate(drive, |_| Answer::After(ms(400)));
    assert_eq!((observed.sent.len(), observed.summary.transactions), (3, 0));
    assert_eq!(*observed.unanswered(0), histogram([ms(120); 3]));
}

#[test]
fn what_a_hanging_server_never_answers_is_counted_at_the_end() {
    let mut drive = drive(vec![step(Wait::Constant(ms(5)), 1)]);
    (drive.users, drive.hold) = (3, ms(400));
    // The first request gets a response, the second never.
    let observed = simulate(drive, |asked| {
        if asked.at == ms(5) {
            Answer::After(ms(1))
        } else {
            Answer::Never
        }
    });
    assert_eq!(
        (observed.summary.transactions, observed.summary.errors),
        (3, 0)
    );
    assert_eq!(*observed.unanswered(0), histogram([ms(400 - 11); 3]));
    let before = &observed.windows[..observed.windows.len() - 1];
    assert!(before.iter().all(|window| window.unanswered().0 == 0));
}

#[test]
fn requests_go_by_number_and_a_failure_ends_its_step() {
    let steps = vec![step(Wait::None, 3), step(Wait::None, 1)];
    let mut drive = drive(steps);
    workload(&mut drive).setup = vec![step(Wait::None, 1)];
    workload(&mut drive).session.pace = Some(ms(60_000));
    drive.users = 2;
    let observed = simulate(drive, |asked| match asked.request {
        2 => Answer::Fails(ErrorClass::Check, ms(1)),
        _ => Answer::After(ms(1)),
    });
    for user in 0..2 {
        let its = observed.sent.iter().filter(|asked| asked.user == user);
        let numbers: Vec<_> = its.map(|asked| asked.request).collect();
        // Setup is 0; of the first step's 1, 2, 3 the second fails; then 4 is sent.
        assert_eq!(numbers, [0, 1, 2, 4]);
    }
    // The captures of the second and the third are cleared.
    assert_eq!(observed.forgotten, [2, 3, 2, 3]);
    let sum = &observed.summary;
    assert_eq!((sum.transactions, sum.errors, sum.cycles), (4, 2, 2));
    assert_eq!(
        (observed.setup, sum.stopped_early),
        (Some((2, 0, 0)), false)
    );
}

#[test]
fn setup_steps_have_a_barrier_over_all_workers() {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    workload(&mut drive).setup = vec![step(Wait::None, 1), step(Wait::None, 1)];
    (drive.users, drive.cores, drive.hold) = (6, vec![0, 1], ms(10));
    drive.limits.setup_concurrency = 4;
    let observed = simulate(drive, |asked| {
        Answer::After(ms(5 + u64::from(asked.user % 2)))
    });
    assert_eq!(observed.setup, Some((12, 0, 0)));
    let sends = |request| {
        let its = observed
            .sent
            .iter()
            .filter(|asked| asked.request == request);
        its.map(|asked| asked.at).collect::<Vec<_>>()
    };
    // Each worker has three users and two at a time. Those of the second take a millisecond more, and both wait for
    // them.
    assert_eq!(sends(0), [0, 0, 0, 0, 5, 6].map(ms));
    assert_eq!(sends(1), [12, 12, 12, 12, 17, 18].map(ms));
    assert_eq!(sends(2)[..6], [24; 6].map(ms));
}

#[test]
fn reports_each_request_of_a_long_setup() {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    let rounds = Step {
        repeat: 1000,
        ..step(Wait::None, 1)
    };
    workload(&mut drive).setup = vec![rounds];
    drive.hold = ms(10);
    let sent = Cell::new(0);
    let observed = simulate(drive, move |_| {
        sent.set(sent.get() + 1);
        match sent.get() {
            1000 => Answer::Fails(ErrorClass::Timeout, ms(1)),
            n if n % 2 == 0 => Answer::Fails(ErrorClass::Status, ms(1)),
            _ => Answer::After(ms(1)),
        }
    });
    let expected = [
        (0, 125, 125, 0),
        (0, 250, 250, 0),
        (0, 375, 375, 0),
        (0, 500, 500, 1),
        (1, 500, 500, 1),
    ];
    assert_eq!(observed.progress, expected);
}

#[test]
fn the_probe_counts_from_its_planned_times() {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    let workload = workload(&mut drive);
    workload.session.pace = Some(ms(30_000));
    workload.probe = probe(ms(20));
    drive.hold = ms(500);
    // Every response takes 50 ms, so that a probe every 20 ms queues behind the earlier ones.
    let observed = simulate(drive, |_| Answer::After(ms(50)));
    // Probe k is planned at 20 k and its response arrives at 20 + 50 k: it takes 20 + 30 k.
    assert_eq!(
        observed.times(1),
        histogram((1..=9).map(|k| ms(20 + 30 * k)))
    );
    let sum = &observed.summary;
    assert_eq!((sum.transactions, sum.probe_transactions), (1, 9));
    let late = observed.lateness();
    assert_eq!(
        late,
        histogram([ms(0); 10]),
        "what the server holds up is not late"
    );
}

#[test]
fn a_probe_is_sent_at_its_times_where_answers_are_quick() {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    let workload = workload(&mut drive);
    workload.session.pace = Some(ms(30_000));
    workload.probe = probe(ms(20));
    (drive.hold, drive.cores, drive.users) = (ms(110), vec![0, 1], 2);
    let observed = simulate(drive, |_| Answer::After(ms(7)));
    let probes = observed.sent.iter().filter(|asked| asked.request == 1);
    let probes: Vec<_> = probes.map(|asked| (asked.at, asked.user)).collect();
    assert_eq!(probes, [20, 40, 60, 80, 100].map(|at| (ms(at), 0)));
    assert_eq!(
        observed.sum(1, |step| &step.times.service),
        histogram([ms(7); 5])
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |block| {
        let mut drive = drive(vec![step(Wait::Uniform(ms(0), ms(9)), 1)]);
        (drive.users, drive.block, drive.cores) = (7, block, vec![0, 1, 2]);
        let draws = Rc::new(RefCell::new(TimingStream::new(5, 0, 0)));
        let takes = Wait::Exponential(ms(4));
        let server = move |_| Answer::After(draws.borrow_mut().next_wait(&takes));
        simulate(drive, server).sent
    };
    let (first, again, other) = (run(0), run(0), run(1));
    assert!(first.len() > 500);
    assert_eq!(first, again);
    assert_ne!(first, other);
    let times: Vec<Nanos> = first.iter().map(|a| a.at.as_nanos() as Nanos).collect();
    assert!(times.is_sorted());
}
