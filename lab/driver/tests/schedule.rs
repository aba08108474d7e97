//! The schedule that users keep: waits, pace, ramp, cut; what is recorded of it; and that a known
//! delay gives the known percentiles.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use common::{Make, Server, ms, ok, pass, run, run_until};
use lab_driver::{Driver, DriverEvent, ErrorClass, Window};
use lab_study::model::{Probe, Wait};
use lab_study::timing::TimingStream;

fn slow_server(delay: Duration) -> Server {
    Server::start(move |mut peer| {
        while peer.request().is_some() {
            pass(delay);
            peer.ok("");
        }
    })
}

fn quick_server() -> Server {
    Server::answering(|_| ok(""))
}

#[test]
fn a_known_delay_gives_the_known_percentile() {
    let server = slow_server(ms(20));
    let mut drive = Make::new(&[])
        .step(Wait::Constant(ms(5)), "GET /")
        .drive(&server.base());
    drive.users = 10;
    drive.hold = ms(1200);
    let told = run(drive);
    let times = told.times(0);
    assert!(times.len() > 200, "{}", times.len());
    let median = times.value_at_quantile(0.5);
    assert!((20_000..25_000).contains(&median), "p50 {median} us");
    assert!(times.min() >= 20_000, "min {} us", times.min());
}

#[test]
fn windows_follow_each_other_without_gaps_to_the_very_end() {
    let server = quick_server();
    let mut drive = Make::new(&[])
        .step(Wait::Constant(ms(3)), "GET /")
        .drive(&server.base());
    (drive.users, drive.cores) = (5, vec![0, 1]);
    (drive.ramp, drive.hold, drive.window) = (ms(100), ms(205), ms(20));
    let told = run(drive);
    assert_eq!(told.windows.len(), 16);
    let mut end = Duration::ZERO;
    for window in &told.windows {
        assert_eq!(window.start, end);
        end = window.end;
    }
    assert_eq!(
        (end, told.summary.elapsed, told.summary.stopped_early),
        (ms(305), ms(305), false)
    );
    assert!(told.windows[0].users < 5);
    assert_eq!(told.windows.last().map(|w| w.users), Some(5));
    let lateness: u64 = told.windows.iter().map(|w| w.lateness.len()).sum();
    assert_eq!(lateness, told.summary.transactions);
    // Two workers count what one server saw, but for the requests under way at the cut.
    let missing = server.seen().len() as u64 - told.summary.transactions;
    assert!(missing <= 5, "{missing}");
}

#[test]
fn waits_last_as_drawn() {
    let server = quick_server();
    let wait = Wait::Uniform(ms(5), ms(15));
    let mut drive = Make::new(&[]).step(wait, "GET /").drive(&server.base());
    (drive.users, drive.hold) = (4, ms(800));
    let (seed, block) = (drive.seed, drive.block);
    let told = run(drive);
    let count: u64 = told.windows.iter().map(|w| w.steps[0].waits).sum();
    let sum: u64 = told.windows.iter().map(|w| w.steps[0].wait_sum_us).sum();
    let mut drawn = Duration::ZERO;
    for user in 0..4 {
        let mut stream = TimingStream::new(seed, block, user);
        drawn += (0..count / 4)
            .map(|_| stream.next_wait(&wait))
            .sum::<Duration>();
    }
    let mean = sum as f64 / count as f64;
    let expected = drawn.as_micros() as f64 / (count / 4 * 4) as f64;
    assert!(count > 150, "{count}");
    // Never shorter than drawn; later by what a busy machine needs to wake a thread.
    assert!(
        mean > expected * 0.97 && mean < expected + 3000.0,
        "{mean} us, drawn {expected} us"
    );
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let lines = |block: u32| {
        let server = quick_server();
        let make = Make::new(&["id"])
            .user("id", "{{ uuid() }}")
            .step(Wait::Uniform(ms(0), ms(2)), "GET /{{ id }}/{{ uuid() }}");
        let mut drive = make.drive(&server.base());
        (drive.users, drive.block) = (3, block);
        run_until(drive, |told| told.done() > 40);
        let mut lines = server.lines();
        // Users interleave as the machine pleases; each user's own sequence is fixed.
        lines.sort_by_key(|line| line.split('/').nth(1).map(str::to_owned));
        lines
    };
    let by_user = |lines: &[String]| {
        let mut users = std::collections::BTreeMap::<String, Vec<String>>::new();
        for line in lines {
            let user = line.split('/').nth(1).unwrap_or_default().to_owned();
            users.entry(user).or_default().push(line.clone());
        }
        users
    };
    let (first, again, other) = (by_user(&lines(0)), by_user(&lines(0)), by_user(&lines(1)));
    assert_eq!(
        first.keys().collect::<Vec<_>>(),
        again.keys().collect::<Vec<_>>()
    );
    for (user, lines) in &first {
        let common = lines.len().min(again[user].len());
        assert!(common >= 3);
        assert_eq!(lines[..common], again[user][..common]);
    }
    assert!(first.keys().all(|user| !other.contains_key(user)));
}

#[test]
fn cycles_keep_their_pace() {
    let server = quick_server();
    let make = Make::new(&[])
        .pace(ms(50))
        .step(Wait::Constant(ms(5)), "GET /");
    let mut drive = make.drive(&server.base());
    (drive.users, drive.ramp, drive.hold) = (2, ms(50), ms(460));
    let told = run(drive);
    // User 0 starts at 0, user 1 at 25: cycles begin at 0, 50 … 500 and 25, 75 … 475.
    assert_eq!((told.summary.cycles, told.summary.overruns), (21, 0));
    assert_eq!(told.summary.transactions, 21);
}

#[test]
fn a_cycle_that_overruns_is_counted_and_followed_at_once() {
    let server = slow_server(ms(30));
    let make = Make::new(&[]).pace(ms(10)).step(Wait::None, "GET /");
    let told = run_until(make.drive(&server.base()), |told| told.done() >= 5);
    let sum = &told.summary;
    assert_eq!(sum.overruns, sum.transactions);
    assert!(sum.cycles - sum.overruns <= 1);
    // The wait for a slow answer is no lateness of the generator.
    let late = told
        .windows
        .iter()
        .map(|w| w.lateness.max())
        .max()
        .unwrap_or_default();
    assert!(late < 25_000, "{late} us");
}

#[test]
fn a_failing_server_is_not_hammered() {
    let rate = |wait: Wait, answer: &'static str| {
        let server = Server::start(move |mut peer| {
            if peer.request().is_some() {
                peer.send(answer);
            }
        });
        let mut drive = Make::new(&[]).step(wait, "GET /").drive(&server.base());
        drive.users = 4;
        drive.hold = ms(500);
        drive.limits.failure_pause = ms(100);
        let told = run(drive);
        assert_eq!(told.summary.transactions, 0);
        server.seen().len()
    };
    // Without any wait: at once, then after each pause: 5 per user in 500 ms.
    let resets = rate(Wait::None, "");
    assert!((8..=4 * 5).contains(&resets), "{resets}");
    // With waits, an error answer leaves the waits alone.
    let busy = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    let statuses = rate(Wait::Constant(ms(50)), busy);
    assert!((20..=4 * 10).contains(&statuses), "{statuses}");
}

#[test]
fn a_session_that_sends_nothing_does_not_spin() {
    let server = quick_server();
    let make = Make::new(&["none"]).step(Wait::None, "GET /{{ none }}");
    let mut drive = make.drive(&server.base());
    drive.hold = ms(300);
    let told = run(drive);
    assert!(
        (1..=4).contains(&told.summary.skipped),
        "{}",
        told.summary.skipped
    );
}

#[test]
fn requests_under_way_at_the_end_are_not_counted() {
    let server = slow_server(ms(400));
    let mut drive = Make::new(&[])
        .step(Wait::None, "GET /")
        .drive(&server.base());
    (drive.users, drive.hold) = (3, ms(150));
    let told = run(drive);
    assert_eq!(told.done(), 0);
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn setup_steps_have_a_barrier_over_all_workers() {
    let pending = Arc::new(AtomicUsize::new(6));
    let (left, early) = (Arc::clone(&pending), Arc::new(AtomicUsize::new(0)));
    let counted = Arc::clone(&early);
    let server = Server::answering(move |seen| {
        if seen.line == "POST /first" {
            pass(ms(5));
            left.fetch_sub(1, Ordering::SeqCst);
        } else if left.load(Ordering::SeqCst) > 0 {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        ok("")
    });
    let make = Make::new(&["none"])
        .setup("POST /first")
        .setup("POST /second")
        .setup("GET /{{ none }}")
        .step(Wait::None, "GET /run");
    let mut drive = make.drive(&server.base());
    (drive.users, drive.cores) = (6, vec![0, 1]);
    drive.limits.setup_concurrency = 4;
    let told = run_until(drive, |told| told.done() > 0);
    assert_eq!(told.setup, Some((12, 0, 6)));
    assert_eq!(early.load(Ordering::SeqCst), 0);
    assert_eq!(
        (told.summary.setup_transactions, told.summary.setup_errors),
        (12, 0)
    );
    let lines = server.lines();
    assert!(lines[..12].iter().all(|line| line.starts_with("POST")));
}

#[test]
fn a_setup_step_for_one_is_done_by_the_first_user_alone() {
    let server = Server::answering(|_| ok("{}"));
    let make = Make::new(&[])
        .setup("POST /all")
        .setup("POST /once/{{ index }}");
    let mut drive = make.step(Wait::None, "GET /").drive(&server.base());
    drive.users = 5;
    drive.cores = vec![0, 0];
    let workload = Arc::get_mut(&mut drive.workload).unwrap();
    workload.setup[1].once = true;
    workload.setup[1].repeat = 3;
    let told = run_until(drive, |told| told.done() > 0);
    assert_eq!(told.setup, Some((8, 0, 0)));
    let lines = server.lines();
    let once: Vec<_> = lines
        .iter()
        .filter(|line| line.contains("/once/"))
        .collect();
    assert!(
        once.len() == 3 && once.iter().all(|line| line.contains("/once/0")),
        "{once:?}"
    );
}

#[test]
fn setup_goes_on_after_failures_and_shows_examples() {
    let server = Server::answering(|_| "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned());
    let make = Make::new(&[])
        .setup("POST /a")
        .setup("POST /b")
        .step(Wait::Constant(ms(1)), "GET /");
    let mut drive = make.drive(&server.base());
    drive.users = 30;
    let told = run_until(drive, |told| told.examples.len() >= 20);
    assert_eq!(told.setup, Some((0, 60, 0)));
    assert_eq!(told.examples.len(), 20, "ten of setup, ten of the trial");
    assert!(
        told.examples
            .iter()
            .all(|(class, _)| *class == ErrorClass::Status)
    );
}

#[test]
fn a_stop_ends_setup_and_trial_at_once() {
    let server = slow_server(ms(50));
    for before_setup in [true, false] {
        let make = Make::new(&[]).setup("GET /setup").step(Wait::None, "GET /");
        let mut drive = make.drive(&server.base());
        drive.users = 1000;
        drive.limits.setup_concurrency = if before_setup { 1 } else { 1000 };
        drive.hold = Duration::from_secs(3600);
        let (sender, events) = sync_channel(16);
        let driver = Driver::start(drive, sender).unwrap();
        for event in events {
            match event {
                DriverEvent::SetupProgress { .. } if before_setup => driver.stop(),
                DriverEvent::SetupDone { .. } => {
                    assert!(!before_setup);
                    let clock = driver.begin();
                    assert_eq!(clock.instant0(), driver.clock().instant0());
                }
                DriverEvent::Window(_) => driver.stop(),
                DriverEvent::Done => break,
                _ => {}
            }
        }
        assert!(driver.join().unwrap().stopped_early);
    }
}

#[test]
fn a_drive_without_listeners_ends_all_the_same() {
    let server = quick_server();
    let mut drive = Make::new(&[])
        .step(Wait::Constant(ms(1)), "GET /")
        .drive(&server.base());
    (drive.hold, drive.window) = (ms(200), ms(1));
    let (sender, events) = sync_channel(1);
    let driver = Driver::start(drive, sender).unwrap();
    drop(events);
    driver.begin();
    assert_eq!(driver.worker_threads().len(), 1);
    let summary = driver.join().unwrap();
    assert!(summary.transactions > 20 && !summary.stopped_early);
}

#[test]
fn the_probe_counts_from_its_planned_times() {
    // Every answer takes 50 ms, so that one probe in 20 ms queues up behind those before.
    let server = slow_server(ms(50));
    let mut make = Make::new(&[])
        .pace(Duration::from_secs(30))
        .step(Wait::None, "GET /load");
    make.workload.probe = Some(Probe {
        request: make.request("GET /probe"),
        every: ms(20),
    });
    let mut drive = make.drive(&server.base());
    drive.hold = ms(500);
    let told = run(drive);
    let times = told.times(1);
    // Probe k is planned at 20 k and answered at 20 + 50 k: it takes 20 + 30 k.
    assert!((8..=9).contains(&times.len()), "{}", times.len());
    assert!(
        (50_000..58_000).contains(&times.min()),
        "{} us",
        times.min()
    );
    assert!(
        (255_000..320_000).contains(&times.max()),
        "{} us",
        times.max()
    );
    assert_eq!(
        (told.summary.transactions, told.summary.probe_transactions),
        (1, times.len())
    );
    let connections = |line: &str| {
        server
            .seen()
            .iter()
            .filter(|s| s.line == line)
            .map(|s| s.connection)
            .max()
    };
    assert_ne!(connections("GET /probe"), connections("GET /load"));
    let late = told
        .windows
        .iter()
        .map(|w: &Window| w.lateness.max())
        .max()
        .unwrap_or_default();
    assert!(
        late < 25_000,
        "what the server holds up is not late: {late} us"
    );
}

#[test]
fn drives_that_make_no_sense_are_refused() {
    let base = "http://127.0.0.1:1".parse().unwrap();
    let refusal = |change: fn(&mut lab_driver::Drive)| {
        let mut drive = Make::new(&["v"]).step(Wait::None, "GET /").drive(&base);
        change(&mut drive);
        let (events, _received) = sync_channel(1);
        Driver::start(drive, events).unwrap_err().to_string()
    };
    assert!(refusal(|d| d.users = 0).contains("no users"));
    assert!(refusal(|d| d.window = Duration::ZERO).contains("no length"));
    assert!(refusal(|d| d.user_extra = vec![vec![], vec![]]).contains("another number of users"));
    assert!(refusal(|d| d.user_extra = vec![vec![("w".into(), "".into())]]).contains("user 0"));
    assert!(refusal(|d| d.cores = vec![1000]).contains("core 1000"));
    assert!(refusal(|d| d.base.host = "no.such.host.invalid".into()).contains("has no address"));
}

#[test]
fn user_variables_from_provisioning_reach_the_server() {
    let server = quick_server();
    let make = Make::new(&["name", "password"])
        .user("name", "u{{ index }}")
        .step(Wait::Constant(ms(1)), "GET /{{ name }}/{{ password }}");
    let mut drive = make.drive(&server.base());
    drive.users = 2;
    drive.user_extra = ["a", "b"]
        .map(|p| vec![("password".to_owned(), p.to_owned())])
        .into_iter()
        .collect();
    run_until(drive, |told| told.done() > 6);
    let lines = server.lines();
    assert!(lines.contains(&"GET /u0/a".to_owned()) && lines.contains(&"GET /u1/b".to_owned()));
}
