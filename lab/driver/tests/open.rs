//! Open loads and sequences: when sessions arrive, what waits for a connection, where response times
//! count from, and what is left at the end.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Make, Seen, Server, Told, ms, ok, pass, run};
use hdrhistogram::Histogram;
use lab_driver::{Drive, StepWindow, new_histogram};
use lab_study::model::{Probe, Wait};
use lab_study::plan::{LoadKind, Spacing};
use lab_study::timing::{ArrivalStream, TimingStream};

fn arrivals(mut drive: Drive, rate_per_s: f64, slots: u32) -> Drive {
    drive.kind = LoadKind::Arrival {
        rate_per_s,
        spacing: Spacing::Constant,
    };
    drive.users = slots;
    drive
}

fn slow_server(delay: Duration) -> Server {
    Server::start(move |mut peer| {
        while peer.request().is_some() {
            pass(delay);
            peer.ok("");
        }
    })
}

fn sum(told: &Told, of: fn(&StepWindow) -> &Histogram<u64>) -> Histogram<u64> {
    let mut sum = new_histogram();
    for window in &told.windows {
        window.steps.iter().for_each(|s| sum.add(of(s)).unwrap());
    }
    sum
}

#[test]
fn sessions_arrive_as_the_stream_says_on_every_worker() {
    let server = Server::answering(|_| ok(""));
    let make = Make::new(&[]).step(Wait::None, "GET /");
    let mut drive = arrivals(make.drive(&server.base()), 200.0, 8);
    drive.kind = LoadKind::Arrival {
        rate_per_s: 200.0,
        spacing: Spacing::Poisson,
    };
    (drive.ramp, drive.hold, drive.cores) = (ms(300), ms(700), vec![0, 1]);
    let stream = ArrivalStream::new(drive.seed, drive.block, 200.0, Spacing::Poisson, ms(300));
    let planned = stream.take_while(|a| a.at < ms(1000)).count() as u64;
    let told = run(drive);
    assert_eq!(told.summary.arrived, planned);
    let left = told.windows.last().unwrap().unanswered.count;
    assert_eq!(told.summary.transactions + left, planned);
    assert_eq!((told.summary.errors, told.summary.dropped), (0, 0));
    // The connections are kept, and each is one user's.
    assert!(told.summary.connects <= 8, "{}", told.summary.connects);
    // Each answer has both of its times.
    let (response, service) = (sum(&told, |s| &s.ok), sum(&told, |s| &s.service));
    assert_eq!(response.len(), service.len());
}

#[test]
fn waiting_for_a_connection_is_response_time_and_no_lateness() {
    let server = slow_server(ms(20));
    let make = Make::new(&[]).step(Wait::None, "GET /");
    // One connection carries 50 sessions a second; 100 arrive: the k-th is 10 k ms behind.
    let mut drive = arrivals(make.drive(&server.base()), 100.0, 1);
    drive.hold = ms(1000);
    let told = run(drive);
    let (response, service) = (sum(&told, |s| &s.ok), sum(&told, |s| &s.service));
    let answered = told.summary.transactions;
    assert!((20..=50).contains(&answered), "{answered}");
    // The last answer came at the end, to a session that had arrived when half the time had passed.
    assert!(
        response.max() >= 10_000 * (answered - 1),
        "{}",
        response.max()
    );
    assert!(service.value_at_quantile(0.5) < response.value_at_quantile(0.5) / 4);
    // A machine under load may be late, but never by what sessions wait here.
    let late = told.windows.iter().map(|w| w.lateness.max()).max().unwrap();
    assert!(late < response.max() / 2, "{late} us");
    // What waits at the end is told, with its age.
    let last = told.windows.last().unwrap();
    assert_eq!(last.unanswered.count, told.summary.arrived - answered);
    assert!(last.unanswered.oldest >= ms(400), "{:?}", last.unanswered);
    assert_eq!(last.waiting + 1, last.unanswered.count);
    assert_eq!(last.users, 1);
}

#[test]
fn sessions_beyond_the_bound_are_dropped_and_counted() {
    let server = slow_server(ms(5000));
    let make = Make::new(&[]).step(Wait::None, "GET /");
    let mut drive = arrivals(make.drive(&server.base()), 100.0, 1);
    (drive.hold, drive.limits.max_waiting) = (ms(300), 4);
    let told = run(drive);
    let sum = &told.summary;
    assert_eq!((sum.arrived, sum.transactions), (30, 0));
    assert_eq!(sum.dropped, 30 - 5);
    assert_eq!(told.windows.last().unwrap().unanswered.count, 5);
}

#[test]
fn sessions_with_waits_keep_their_own_draws() {
    let server = Server::answering(|_| ok(""));
    let wait = Wait::Uniform(ms(10), ms(60));
    let make = Make::new(&[]).step(wait, "GET /a").step(wait, "GET /b");
    let mut drive = arrivals(make.drive(&server.base()), 100.0, 64);
    drive.hold = ms(600);
    let (seed, block) = (drive.seed, drive.block);
    let told = run(drive);
    let of_session = |number: u64| {
        let mut stream = TimingStream::of_session(seed, block, number);
        stream.next_wait(&wait) + stream.next_wait(&wait)
    };
    // Those that had their time to end, and perhaps some of the last ones.
    let over: Vec<u64> = (0..45).collect();
    assert!(told.summary.transactions >= 2 * over.len() as u64);
    let drawn = over.iter().map(|n| of_session(*n)).sum::<Duration>() / 45;
    let [mut waits, mut sum_us] = [0, 0];
    for step in told.windows.iter().flat_map(|w| &w.steps) {
        waits += step.waits;
        sum_us += step.wait_sum_us;
    }
    let mean = sum_us as f64 / waits as f64 * 2.0;
    let expected = drawn.as_micros() as f64;
    assert!(mean > expected * 0.85, "{mean} us, drawn {expected} us");
    // A first request counts from its arrival and wait: an idle server answers it soon after.
    assert!(told.times(0).value_at_quantile(0.5) < 10_000);
}

#[test]
fn the_plan_passes_on_from_a_step_that_is_skipped() {
    let server = slow_server(ms(30));
    let make = Make::new(&["none"])
        .step(Wait::None, "GET /{{ none }}")
        .step(Wait::None, "GET /b");
    let mut drive = arrivals(make.drive(&server.base()), 100.0, 1);
    drive.hold = ms(500);
    let told = run(drive);
    assert!(told.skipped(0) > 5 && told.summary.transactions > 5);
    assert!(told.times(1).max() > 150_000, "{}", told.times(1).max());
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
    (drive.kind, drive.cores) = (LoadKind::Sequence { sessions: 7 }, vec![0, 1]);
    let told = run(drive);
    let sum = &told.summary;
    assert_eq!(
        (sum.cycles, sum.transactions, sum.stopped_early),
        (7, 14, false)
    );
    assert!(sum.elapsed < Duration::from_secs(20), "{:?}", sum.elapsed);
    let service: u64 = told.windows.iter().map(|w| w.steps[0].service.len()).sum();
    assert_eq!(service, 0, "in a closed loop both times are the same");
    let lines: Vec<String> = server.lines();
    let (probes, own): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.contains("probe"));
    assert_eq!(own.len(), 14);
    // Each of the seven sessions waits for 1 ms.
    assert!(sum.probe_transactions >= 1 && probes.len() as u64 >= sum.probe_transactions);
    let answered: u64 = told.windows.iter().map(|w| w.steps[2].ok.len()).sum();
    assert_eq!(answered, sum.probe_transactions);
    let mut sessions = new_histogram();
    let of_windows = told.windows.iter().map(|window| &window.sessions);
    of_windows.for_each(|part| sessions.add(part).unwrap());
    assert_eq!(sessions.len(), 7);
    assert!(sessions.min() >= 1_000, "{} us", sessions.min());
    assert!(u128::from(sessions.max()) <= sum.elapsed.as_micros() + 1_000);
}

#[test]
fn a_session_in_which_a_request_failed_has_no_time() {
    let server = Server::answering(|seen| match seen.line.contains("/bad") {
        true => "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n".to_owned(),
        false => ok(""),
    });
    let make = Make::new(&[])
        .step(Wait::None, "GET /bad")
        .step(Wait::None, "GET /");
    let mut drive = make.drive(&server.base());
    drive.kind = LoadKind::Sequence { sessions: 3 };
    let told = run(drive);
    assert_eq!((told.summary.transactions, told.summary.errors), (3, 3));
    assert!(told.windows.iter().all(|window| window.sessions.is_empty()));
}

#[test]
fn the_pause_after_a_failure_is_in_no_sessions_time() {
    let hung_up = AtomicBool::new(false);
    let server = Server::start(move |mut peer| {
        while peer.request().is_some() && hung_up.swap(true, Ordering::SeqCst) {
            peer.ok("");
        }
    });
    let make = Make::new(&[]).step(Wait::None, "GET /");
    let mut drive = make.drive(&server.base());
    drive.kind = LoadKind::Sequence { sessions: 3 };
    drive.limits.failure_pause = ms(2_000);
    let told = run(drive);
    assert_eq!((told.summary.transactions, told.summary.errors), (2, 1));
    let of_windows = told.windows.iter().map(|window| &window.sessions);
    let longest = of_windows.map(Histogram::max).max().unwrap();
    assert!(longest < 1_000_000, "{longest} us");
}

#[test]
fn a_sequence_that_takes_too_long_is_cut() {
    let server = slow_server(ms(20));
    let mut drive = Make::new(&[])
        .step(Wait::None, "GET /")
        .drive(&server.base());
    (drive.kind, drive.hold) = (LoadKind::Sequence { sessions: 1000 }, ms(200));
    let told = run(drive);
    assert!(told.summary.transactions <= 10 && !told.summary.stopped_early);
}

#[test]
fn a_step_that_takes_too_long_is_not_repeated() {
    let answers_b_late = |seen: &Seen| {
        if seen.line.contains("/b") {
            pass(ms(400));
        }
        ok("")
    };
    for (ends_step, asked) in [(true, 2), (false, 6)] {
        let server = Server::answering(answers_b_late);
        let mut make = Make::new(&[])
            .step(Wait::None, "GET /a")
            .step(Wait::None, "GET /b");
        for step in &mut make.workload.session.steps {
            step.repeat = 3;
        }
        let mut drive = make.drive(&server.base());
        drive.kind = LoadKind::Sequence { sessions: 2 };
        drive.hold = Duration::from_secs(60);
        drive.limits.request_timeout = ms(50);
        drive.limits.failure_pause = ms(5);
        drive.limits.timeout_ends_step = ends_step;
        let told = run(drive);
        assert_eq!(told.summary.cycles, 2);
        assert_eq!(told.summary.transactions, 6, "all of /a");
        assert_eq!((told.summary.errors, told.skipped(1)), (asked, 0));
    }
}

#[test]
fn parts_of_a_drive_share_its_sessions() {
    let lines = |index| {
        let server = Server::answering(|_| ok(""));
        let make = Make::new(&["me"])
            .user("me", "{{ index }}")
            .step(Wait::None, "GET /{{ me }}");
        let mut drive = arrivals(make.drive(&server.base()), 100.0, 4);
        (drive.part.index, drive.part.of, drive.hold) = (index, 2, ms(205));
        let told = run(drive);
        let mut users: Vec<String> = server.lines();
        users.sort();
        users.dedup();
        (told.summary.arrived, users)
    };
    let texts = |users: [u32; 2]| users.map(|user| format!("GET /{user}")).to_vec();
    assert_eq!(lines(0), (11, texts([0, 2])));
    assert_eq!(lines(1), (10, texts([1, 3])));
}
