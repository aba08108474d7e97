//! The whole server on a disk that forgets: under load of all services, everything acknowledged is there after every
//! crash, and nothing is there in part. And on a failing disk: the server reports the failure, and continues when the
//! disk works again.

mod common;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use common::{Control, crash_while, disk, is_found_out, scratch, survives_by_turns};
use nix::errno::Errno;
use plimsoll_forgetful::{Call, Fault, Lie, Mounted, seed};
use plimsoll_tests::mixed::{Ledger, World};
use plimsoll_tests::server::Client;
use plimsoll_tests::wait_until;
use serde_json::{Value, json};

/// The maximum number of file system calls between two crashes: a change makes a dozen or two.
const MOST_CALLS: u64 = 400;
/// Crashes of one server: everything it has acknowledged is checked after each.
const OF_ONE: u64 = 20;
const LIMIT: Duration = Duration::from_secs(120);

/// Loads all services on this disk while it crashes; returns the number of bad images and the first fault.
fn run(disk: &Mounted, crashes: u64, seed: u64) -> (u64, Option<String>) {
    let beside = scratch();
    let world = World::start(&disk.path().join("data"), beside.path());
    let (ledger, ends) = (Ledger::default(), AtomicBool::new(false));
    let outcome = world.load(&ledger, ("disk", seed), &ends, || {
        let (over, beats) = sync_channel::<()>(1);
        let outcome = std::thread::scope(|scope| {
            // A server that has ended makes no file system calls, so its crashes would never happen.
            scope.spawn(move || pulse(disk, &beats));
            let outcome = crash_while(
                disk,
                (crashes, MOST_CALLS),
                || ledger.now(),
                |image, mut known| {
                    let there = world.again(&image.join("data"), image);
                    there.verify(&mut known).map(drop)
                },
            );
            drop(over);
            outcome
        });
        ends.store(true, Relaxed);
        outcome
    });
    let things = ledger.acknowledged();
    println!("seed {seed}: {crashes} crashes, {things} things");
    assert!(things > 0, "the server was hardly written to");
    outcome
}

/// Creates and removes a file now and then, until the other end is dropped.
fn pulse(disk: &Mounted, beats: &Receiver<()>) {
    let file = disk.path().join("pulse");
    while beats.recv_timeout(Duration::from_millis(50)) == Err(RecvTimeoutError::Timeout) {
        fs::write(&file, "").expect("a file can be made");
        fs::remove_file(&file).expect("a file can be removed");
    }
}

#[test]
fn what_a_server_acknowledged_survives_and_nothing_is_there_in_part() {
    survives_by_turns(5, OF_ONE, run);
}

/// Without the log's sync, acknowledged changes are lost: this test detects it.
#[test]
fn a_server_whose_log_is_not_synced_is_found_out() {
    let control = Control {
        crashes: 6,
        by_chance: 1,
    };
    let lie = Lie::Files("-wal".to_owned());
    is_found_out(seed(2), lie, control, |disk, crashes| {
        run(disk, crashes, seed(1))
    });
}

const JSON: (&str, &str) = ("content-type", "application/json");

fn status(client: &mut Client, path: &str) -> u16 {
    let answer = client.send("GET", path, &[], b"");
    answer.expect("the server answers").status
}

/// A disk that refuses syncs, then writes, then both for lack of space: changes that can't be durable are refused,
/// reads and `/healthz` work, and `/readyz` reports no. All works again once the disk does, without a restart.
#[test]
fn a_server_says_that_its_disk_fails_and_goes_on_when_it_does_not() {
    let Some(disk) = disk(seed(4)) else {
        return;
    };
    let (data, beside) = (disk.path().join("data"), scratch());
    let world = World::start(&data, beside.path());
    let mut client = Client::admin(world.server().address()).expect("the server listens");
    let mut register = |name: &str| {
        let record = json!({ "type": "service", "service-name": name });
        let record = record.to_string();
        let answer = client.send("POST", "/lookup/records", &[JSON], record.as_bytes());
        answer.expect("the server answers").status
    };
    let faults = [
        (Call::Sync, Errno::EIO, 500),
        (Call::Write, Errno::EIO, 500),
        (Call::Write, Errno::ENOSPC, 507),
    ];
    let mut watch = Client::admin(world.server().address()).expect("the server listens");
    for (number, (call, errno, refused)) in faults.into_iter().enumerate() {
        assert_eq!(register(&format!("before-{number}")), 200);
        disk.fail(Fault {
            call,
            after: 0,
            times: u64::MAX,
            errno: errno as i32,
        });
        assert_eq!(
            register(&format!("lost-{number}")),
            refused,
            "{call:?} {errno}"
        );
        assert_eq!(status(&mut watch, "/readyz"), 503, "{call:?} {errno}");
        assert_eq!(status(&mut watch, "/healthz"), 200, "{call:?} {errno}");
        assert_eq!(status(&mut watch, "/lookup/records?type=service"), 200);
        disk.heal();
        assert_eq!(status(&mut watch, "/readyz"), 200, "{call:?} {errno}");
        assert_eq!(register(&format!("after-{number}")), 200);
    }
    let said = world.server().said();
    assert!(said.contains("the store takes no writes"), "{said}");
    assert!(said.contains("the store takes writes again"), "{said}");
    let image = scratch();
    disk.crash(image.path());
    let there = world.again(&image.path().join("data"), image.path());
    let mut client = Client::admin(there.server().address()).expect("the server listens");
    for number in 0..faults.len() {
        for (name, count) in [("before", 1), ("lost", 0), ("after", 1)] {
            let path = format!("/lookup/records?service-name={name}-{number}");
            let found = client.request("GET", &path, &Value::Null);
            let found = found.expect("the server answers").body;
            assert_eq!(
                found.as_array().map(Vec::len),
                Some(count),
                "{name}-{number}"
            );
        }
    }
}

/// A disk that answers nothing: reads work, and monitoring learns that a commit is stuck.
#[test]
fn a_server_says_that_its_disk_hangs() {
    let Some(disk) = disk(seed(5)) else {
        return;
    };
    let (data, beside, below) = (disk.path().join("data"), scratch(), scratch());
    let world = World::start(&data, beside.path());
    let address = world.server().address();
    let register = move |name: &str| {
        let mut client = Client::admin(address).expect("the server listens");
        let record = json!({ "type": "service", "service-name": name });
        let answer = client.request("POST", "/lookup/records", &record);
        answer.expect("the server answers").status
    };
    // The data for registering another user is in memory then, so the first call that hangs is the commit's.
    assert_eq!(register("before"), 200);
    let mut hangs = disk.crashes(1, 1, below.path());
    std::thread::scope(|scope| {
        let stuck = scope.spawn(move || register("stuck"));
        // No call of the file system returns before this does.
        hangs.next(|| {
            let mut watch = Client::admin(address).expect("the server listens");
            wait_until(LIMIT, "a commit is taken for stuck", || {
                status(&mut watch, "/readyz") == 503
            });
            // It is undefined whether the record that is read is in memory.
            assert!(matches!(status(&mut watch, "/healthz"), 200 | 503));
        });
        assert_eq!(stuck.join().expect("it was answered"), 200);
    });
    let mut watch = Client::admin(address).expect("the server listens");
    assert_eq!(status(&mut watch, "/readyz"), 200);
}
