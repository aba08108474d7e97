//! The cost of the calendar's operations with a growing number of mailboxes of equal size: CPU of the whole process for
//! each, the store's writer included, and the bytes that its commit wrote to a separate device. The later writes of
//! database pages are part of `meetings`.
//!
//! The largest store is filled with a million meetings, which takes some minutes and ten gigabytes. Needs root; runs
//! only by name (`bench/run.sh growth`, or `growth-100000` for a run of seconds).

use std::path::Path;

use groupware_calendar::{
    Action, ActionBody, EventQuery, InvitationQuery, Target, answer, events, invitations,
    open_invitations,
};
use groupware_store::{Batch, Store, StoreOptions};

use crate::common::Error;
use crate::loop_disk::LoopDisk;
use crate::meetings::{World, context, meet, name};

/// The smallest store has one leaf's worth of mailboxes; each next one has ten times as many.
const FIRST: u32 = 100;
const LAST: u32 = 1_000_000;
const DISK_BYTES: u64 = 40 << 30;
const READS: u32 = 10_000;
/// Each changes the input of the next one, so they are few: a fifth of the smallest store.
const CHANGES: u32 = 20;
/// The writes of the first round include pending writes of the filling.
const ROUNDS: u32 = 5;

/// The average cost of one operation.
struct Cost {
    operation: &'static str,
    cpu_us: f64,
    kib: f64,
}

/// Parses the largest store: a million mailboxes by default, or `-NUMBER` of them.
pub(crate) fn last(asked: &str) -> Result<u32, Error> {
    let number = |text: &str| text.parse().ok().filter(|number| *number >= FIRST);
    if asked.is_empty() {
        return Ok(LAST);
    }
    let number = asked.strip_prefix('-').and_then(number);
    number.ok_or_else(|| {
        Error::Peer(format!(
            "growth{asked}: write growth, or growth-100000: mailboxes, {FIRST} or more"
        ))
    })
}

/// Prints the cost of each operation in stores of growing size, also as a multiple of the smallest's.
pub(crate) fn measure(base: &Path, last: u32) -> Result<(), Error> {
    println!("growth: meetings with six people, seven entries in each mailbox, SQLite on ext4");
    let mut first: Option<Vec<Cost>> = None;
    let mut mailboxes = FIRST;
    while mailboxes <= last {
        let disk = LoopDisk::make(base, DISK_BYTES)?;
        let costs = of(&disk, mailboxes)?;
        let smallest = first.as_ref().unwrap_or(&costs);
        for (cost, least) in costs.iter().zip(smallest) {
            println!(
                "  {mailboxes:>7} mailboxes, {:<22} {:>8.1} us of CPU, {:>5.2} x   {:>5.1} KiB at its commit",
                cost.operation,
                cost.cpu_us,
                cost.cpu_us / least.cpu_us,
                cost.kib,
            );
        }
        first.get_or_insert(costs);
        mailboxes = mailboxes.saturating_mul(10);
    }
    Ok(())
}

fn of(disk: &LoopDisk, mailboxes: u32) -> Result<Vec<Cost>, Error> {
    let world = World::of(mailboxes);
    let folder = disk.mounted().join("store");
    let store = Store::open_sqlite(&folder, StoreOptions::default())?;
    world.in_turn.set(true);
    meet(&store, &world, mailboxes, 64)?;
    // Then all pending writes are in the tree, as after hours.
    store.close_blocking();
    drop(store);
    let store = Store::open_sqlite(&folder, StoreOptions::default())?;
    world.in_turn.set(false);
    let reads = |each: fn(&Store, &World, u32) -> Result<(), Error>| {
        (0..READS).try_for_each(|number| each(&store, &world, number))
    };
    let mut costs = vec![
        cost(disk, "list a month", READS, || reads(month))?,
        cost(disk, "list invitations", READS, || reads(invited))?,
    ];
    costs.push(changes(disk, "accept an invitation", |round| {
        let first = (round + 1) * READS;
        (first..first + CHANGES).try_for_each(|number| accept(&store, &world, number))
    })?);
    costs.push(changes(disk, "schedule a meeting", |_| {
        meet(&store, &world, CHANGES, 16)
    })?);
    store.close_blocking();
    Ok(costs)
}

/// Returns the median of some rounds of changes.
fn changes(
    disk: &LoopDisk,
    operation: &'static str,
    round: impl Fn(u32) -> Result<(), Error>,
) -> Result<Cost, Error> {
    let rounds = (0..ROUNDS).map(|number| cost(disk, operation, CHANGES, || round(number)));
    let mut rounds = rounds.collect::<Result<Vec<_>, _>>()?;
    rounds.sort_by(|a, b| a.cpu_us.total_cmp(&b.cpu_us));
    Ok(rounds.swap_remove(rounds.len() / 2))
}

fn cost(
    disk: &LoopDisk,
    operation: &'static str,
    times: u32,
    all: impl FnOnce() -> Result<(), Error>,
) -> Result<Cost, Error> {
    let (written, cpu) = disk.spent(all)?;
    Ok(Cost {
        operation,
        cpu_us: cpu / f64::from(times),
        kib: written as f64 / 1024.0 / f64::from(times),
    })
}

fn wrong(error: impl std::fmt::Display) -> Error {
    Error::Peer(error.to_string())
}

fn month(store: &Store, world: &World, number: u32) -> Result<(), Error> {
    let mailbox = name(world.anybody(number.into()));
    let pairs = [
        ("since", "2026-03-01T00:00:00Z"),
        ("before", "2026-03-31T00:00:00Z"),
        ("count", "100"),
    ];
    let query = EventQuery::parse(pairs, 0).map_err(wrong)?;
    let page = store
        .read(|snapshot| events(snapshot, &mailbox, &query))
        .map_err(wrong)?;
    page.map(drop)
        .ok_or_else(|| wrong("a mailbox has no events"))
}

fn invited(store: &Store, world: &World, number: u32) -> Result<(), Error> {
    let mailbox = name(world.anybody(number.into()));
    let query = InvitationQuery::default();
    let list = store.read(|snapshot| invitations(snapshot, &mailbox, &query, 100));
    list.map(drop).map_err(wrong)
}

/// Accepts the newest invitation of a user.
fn accept(store: &Store, world: &World, number: u32) -> Result<(), Error> {
    let mailbox = name(world.anybody(number.into()));
    let batch: Option<Batch> = store
        .read(|snapshot| {
            let (open, _) = open_invitations(snapshot, &mailbox, 1)?;
            let Some(notice) = open.first().and_then(|entry| entry.notice()) else {
                return Ok(None);
            };
            let context = context(snapshot, &mailbox, number);
            let target = Target::Notice(notice);
            answer(&context, target, Action::Accept, &ActionBody::default())
                .map(|decision| Some(decision.batch))
        })
        .map_err(|error: groupware_calendar::CalendarError| wrong(error))?;
    if let Some(batch) = batch {
        store.commit_blocking(batch)?;
    }
    Ok(())
}
