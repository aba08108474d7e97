//! Users over real sockets: setup, seeds, stops, and rules of times that hold at any speed. The rules of time
//! themselves are tested in simulated time, within the crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::common::{Make, Server, ms, ok, pass, run_until};
use lab_driver::{Driver, DriverEvent, ErrorClass};
use lab_workload::{Probe, Wait};

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
fn no_response_is_measured_shorter_than_the_server_took() {
    let server = slow_server(ms(20));
    let mut drive = Make::new(&[])
        .step(Wait::Constant(ms(5)), "GET /")
        .drive(&server.base());
    drive.users = 10;
    let observed = run_until(drive, |observed| observed.done() >= 30);
    let times = observed.times(0);
    assert!(times.min() >= 20_000, "min {} us", times.min());
    // Every response has a time, and every send a lateness.
    let lateness: u64 = observed.windows.iter().map(|w| w.lateness.len()).sum();
    let transactions = observed.summary.transactions;
    assert_eq!((times.len(), lateness), (transactions, transactions));
    // The server received each request once, and those in progress at the stop.
    let under_way = server.seen().len() as u64 - transactions;
    assert!(under_way <= 10, "{under_way}");
}

#[test]
fn the_probe_has_a_connection_of_its_own() {
    let server = quick_server();
    let mut make = Make::new(&[]).step(Wait::Constant(ms(5)), "GET /load");
    make.workload.probe = Some(Probe {
        request: make.request("GET /probe"),
        every: ms(5),
    });
    let observed = run_until(make.drive(&server.base()), |observed| {
        [0, 1].iter().all(|step| observed.transactions(*step) >= 3)
    });
    assert_eq!(observed.summary.connects, 2);
    let connections = |line: &str| {
        let seen = server.seen().into_iter().filter(|s| s.line == line);
        let mut connections: Vec<usize> = seen.map(|s| s.connection).collect();
        connections.dedup();
        connections
    };
    let [load, probe] = ["GET /load", "GET /probe"].map(connections);
    assert_eq!((load.len(), probe.len()), (1, 1));
    assert_ne!(load, probe);
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let by_user = |lines: &[String]| {
        let mut users = std::collections::BTreeMap::<String, Vec<String>>::new();
        for line in lines {
            let user = line.split('/').nth(1).unwrap_or_default().to_owned();
            users.entry(user).or_default().push(line.clone());
        }
        users
    };
    let lines = |block: u32| {
        let server = quick_server();
        let make = Make::new(&["id"])
            .user("id", "{{ uuid() }}")
            .step(Wait::Uniform(ms(0), ms(2)), "GET /{{ id }}/{{ uuid() }}");
        let mut drive = make.drive(&server.base());
        (drive.users, drive.block) = (3, block);
        let of_each = |least: usize| {
            let lines = by_user(&server.lines());
            lines.len() == 3 && lines.values().all(|lines| lines.len() >= least)
        };
        run_until(drive, |_| of_each(5));
        let mut lines = server.lines();
        // The interleaving of users depends on the machine; each user's own sequence is fixed.
        lines.sort_by_key(|line| line.split('/').nth(1).map(str::to_owned));
        lines
    };
    let (first, again, other) = (by_user(&lines(0)), by_user(&lines(0)), by_user(&lines(1)));
    assert_eq!(
        first.keys().collect::<Vec<_>>(),
        again.keys().collect::<Vec<_>>()
    );
    for (user, lines) in &first {
        let common = lines.len().min(again[user].len());
        assert!(common >= 5);
        assert_eq!(lines[..common], again[user][..common]);
    }
    assert!(first.keys().all(|user| !other.contains_key(user)));
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
    let observed = run_until(drive, |observed| observed.done() > 0);
    assert_eq!(observed.setup, Some((12, 0, 6)));
    assert_eq!(early.load(Ordering::SeqCst), 0);
    assert_eq!(
        (
            observed.summary.setup_transactions,
            observed.summary.setup_errors
        ),
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
    let observed = run_until(drive, |observed| observed.done() > 0);
    assert_eq!(observed.setup, Some((8, 0, 0)));
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
    let observed = run_until(drive, |observed| observed.examples.len() >= 20);
    assert_eq!(observed.setup, Some((0, 60, 0)));
    assert_eq!(
        observed.examples.len(),
        20,
        "ten of setup, ten of the trial"
    );
    assert!(
        observed
            .examples
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
                    let clock = driver.begin().unwrap();
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
    driver.begin().unwrap();
    assert_eq!(driver.worker_threads().len(), 1);
    let summary = driver.join().unwrap();
    assert_eq!((summary.elapsed, summary.stopped_early), (ms(200), false));
}

#[test]
fn drives_that_make_no_sense_are_refused() {
    let base = "http://127.0.0.1:1".parse().unwrap();
    let refusal = |change: fn(&mut lab_driver::Assignment)| {
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
    let are_there = || {
        let lines = server.lines();
        ["GET /u0/a", "GET /u1/b"].map(|line| lines.iter().any(|one| one == line)) == [true; 2]
    };
    run_until(drive, |_| are_there());
    assert!(are_there(), "{:?}", server.lines());
}
