//! What users take of memory while all of them wait: counted byte by byte on this thread, on which the whole
//! engine lives here. It is the client of HTTP that they have, which nobody asks for anything.

use std::time::Duration;

use lab_workload::{LoadKind, Spacing, Wait};

use super::{begin, drive, live, ms, step};
use crate::clock::Clock;
use crate::crew::http;
use crate::drive::Drive;
use crate::mix::Mix;

/// Longer than any of these trials.
const LONG: Wait = Wait::Constant(Duration::from_secs(3600));

/// Lives through a drive; users at the end.
fn at_the_end(mix: &Mix) -> u32 {
    let make = http(mix).unwrap();
    let _over = begin();
    live(mix, Clock::start(), make).last().counts.users
}

/// The most that so many users have at a time, all of whom wait at the end.
fn peak(of: impl Fn(u32) -> Drive, users: u32) -> u64 {
    let mix = Mix::from(&of(users));
    let mut wait = 0;
    let taken = allocation_counter::measure(|| wait = at_the_end(&mix));
    assert_eq!(wait, users, "all of them are there");
    taken.bytes_max
}

/// What each user takes, whatever the worker takes besides. What grows by doubling has just room for so many.
fn each(of: impl Fn(u32) -> Drive) -> u64 {
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
