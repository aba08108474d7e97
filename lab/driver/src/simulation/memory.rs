//! The memory of users while all of them wait, counted byte by byte on this thread, which runs the whole engine here.
//! The users have the HTTP client, which gets no request.

use std::time::Duration;

use lab_workload::{LoadKind, Spacing, Wait};

use super::{begin, drive, live, ms, step};
use crate::assignment::Assignment;
use crate::clock::Clock;
use crate::crew::http;
use crate::mix::Mix;

/// Longer than any of these trials.
const LONG: Wait = Wait::Constant(Duration::from_secs(3600));

/// Runs a load. Returns the users at the end.
fn at_the_end(mix: &Mix) -> u32 {
    let make = http(mix).unwrap();
    let _over = begin();
    live(mix, Clock::start(), make).last().counts.users
}

/// Returns the peak memory of this number of users, all of whom wait at the end.
fn peak(of: impl Fn(u32) -> Assignment, users: u32) -> u64 {
    let mix = Mix::from(&of(users));
    let mut wait = 0;
    let taken = allocation_counter::measure(|| wait = at_the_end(&mix));
    assert_eq!(wait, users, "all of them are there");
    taken.bytes_max
}

/// Returns the memory per user, without the worker's own. Buffers that grow by doubling are nearly full here.
fn each(of: impl Fn(u32) -> Assignment) -> u64 {
    let (few, many) = (4_000, 16_000);
    let bytes = (peak(&of, many) - peak(&of, few)) / u64::from(many - few);
    println!("{bytes} bytes each");
    bytes
}

#[test]
fn a_user_who_waits_takes_less_than_a_kilobyte() {
    let bytes = each(|users| {
        let mut drive = drive(vec![step(LONG, 1)]);
        drive.users = users;
        drive
    });
    assert!((500..1_000).contains(&bytes), "{bytes} bytes a user");
}

#[test]
fn a_session_under_way_takes_less_than_a_kilobyte_too() {
    let bytes = each(|users| {
        let mut drive = drive(vec![step(LONG, 1)]);
        (drive.users, drive.hold) = (users, ms(1010));
        drive.kind = LoadKind::Arrival {
            rate_per_s: f64::from(users),
            spacing: Spacing::Constant,
        };
        drive
    });
    assert!((500..1_000).contains(&bytes), "{bytes} bytes a session");
}
