//! The cost of a meeting with six people, in disk writes and CPU: bytes are counted by a device without other writers,
//! so they don't depend on the machine's load.
//!
//! The device is a loop device with a separate file system, over a file in the scratch folder. Needs root; runs only by
//! name (`bench/run.sh meetings`).

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use groupware_calendar::{Context, Ids, NewEvent, create, parse_json_events};
use groupware_people::Directory;
use groupware_store::{Snapshot, Store, StoreError, StoreOptions};
use serde_json::json;

use crate::common::Error;
use crate::loop_disk::LoopDisk;

const MAILBOXES: u32 = 3_000;
/// The number of invited people, beside the organizer.
const INVITED: u32 = 6;
/// Meetings scheduled before the measured ones: some 18 entries in each mailbox.
const FILLED: u32 = 8_000;
const MEASURED: u32 = 2_000;
const OUTSTANDING: [u32; 2] = [16, 64];
const DISK_BYTES: u64 = 4 << 30;

/// Schedules meetings; prints the cost of each.
pub(crate) fn measure(base: &Path) -> Result<(), Error> {
    let disk = LoopDisk::make(base, DISK_BYTES)?;
    let folder = disk.mounted().join("store");
    let world = World::of(MAILBOXES);
    run(&folder, &world, FILLED, 64)?;
    println!("meetings: six people invited, durable, {MAILBOXES} mailboxes, SQLite on ext4");
    for outstanding in OUTSTANDING {
        let (bytes, cpu) = disk.spent(|| run(&folder, &world, MEASURED, outstanding))?;
        println!(
            "  {outstanding:>2} at once   {:>7.1} KiB to the device   {:>7.1} us of CPU   each",
            bytes as f64 / 1024.0 / f64::from(MEASURED),
            cpu / f64::from(MEASURED),
        );
    }
    Ok(())
}

/// The users, and the number of meetings so far: random choices are a function of that number.
pub(crate) struct World {
    mailboxes: u32,
    meetings: Cell<u32>,
    /// Whether people meet their neighbours, one organizer after the other; otherwise the choice is random.
    pub(crate) in_turn: Cell<bool>,
}

impl World {
    pub(crate) fn of(mailboxes: u32) -> Self {
        Self {
            mailboxes,
            meetings: Cell::new(0),
            in_turn: Cell::new(false),
        }
    }

    fn next(&self) -> u32 {
        self.meetings.set(self.meetings.get() + 1);
        self.meetings.get()
    }

    /// Returns the person with this place in a meeting: 0 is the organizer.
    fn person(&self, meeting: u32, place: u32) -> String {
        let user = match self.in_turn.get() {
            true => (meeting + place) % self.mailboxes,
            false => self.anybody(u64::from(meeting) << 8 | u64::from(place)),
        };
        name(user)
    }

    /// Returns a random user, the same for a number each time.
    pub(crate) fn anybody(&self, number: u64) -> u32 {
        u32::try_from(blend(number) % u64::from(self.mailboxes)).unwrap_or(0)
    }
}

/// Opens the store, schedules `count` meetings, `outstanding` of them at a time, and closes it, which copies the log
/// into the file.
fn run(folder: &Path, world: &World, count: u32, outstanding: u32) -> Result<(), Error> {
    let store = Store::open_sqlite(folder, StoreOptions::default())?;
    let result = meet(&store, world, count, outstanding);
    store.close_blocking();
    result
}

/// Schedules `count` meetings, `outstanding` of them at a time.
pub(crate) fn meet(
    store: &Store,
    world: &World,
    count: u32,
    outstanding: u32,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let left = Rc::new(Cell::new(count));
    let local = tokio::task::LocalSet::new();
    let result = local.block_on(&runtime, async {
        let tasks = (0..outstanding).map(|_| async {
            while left.get() > 0 {
                left.set(left.get() - 1);
                schedule(store, world).await?;
            }
            Ok::<(), Error>(())
        });
        futures_util::future::try_join_all(tasks).await
    });
    result.map(drop)
}

/// The context of a decision at this moment; ids follow from it.
pub(crate) fn context<'a>(
    snapshot: &'a dyn Snapshot,
    mailbox: &'a str,
    number: u32,
) -> Context<'a> {
    Context {
        snapshot,
        directory: &Users,
        mailbox,
        now: 1_767_225_600 + i64::from(number),
        ids: Ids::from_random(u128::from(blend(number.into())) << 64 | u128::from(number)),
        presumes_absent: true,
    }
}

async fn schedule(store: &Store, world: &World) -> Result<(), Error> {
    let number = world.next();
    let mailbox = world.person(number, 0);
    let batch = store
        .read(|snapshot| {
            let context = context(snapshot, &mailbox, number);
            create(&context, meeting(world, number), true).map(|decision| decision.batch)
        })
        .map_err(|error| Error::Peer(error.to_string()))?;
    store.commit(batch).await?;
    Ok(())
}

/// A meeting as written by the calendar study's users.
fn meeting(world: &World, number: u32) -> NewEvent {
    let people: Vec<_> = (1..=INVITED)
        .map(|place| {
            let user = world.person(number, place);
            json!({"role": "req-participant", "status": "needs-action", "rsvp": true,
                   "displayName": user, "email": format!("{user}@localhost")})
        })
        .collect();
    let (day, hour) = (number % 28 + 1, number / 28 % 9 + 8);
    let at = |minute| json!({"date": format!("2026-03-{day:02}"), "time": format!("{hour:02}:{minute}:00"), "utc": true});
    let text = json!({
        "summary": format!("Meeting of {}", world.person(number, 0)),
        "location": format!("Room {}", number % 40),
        "start": at("00"), "end": at("45"), "attendees": people,
    });
    let mut events = parse_json_events(text.to_string().as_bytes()).unwrap_or_default();
    events.remove(0)
}

/// SplitMix64's finalizer: the same meetings in each run.
fn blend(number: u64) -> u64 {
    let mixed = (number.wrapping_add(0x9E37_79B9_7F4A_7C15) ^ (number >> 30))
        .wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

pub(crate) fn name(user: u32) -> String {
    format!("user{user:05}")
}

/// All possible users; the mailbox is the name.
struct Users;

impl Directory for Users {
    fn user(&self, address: &str) -> Result<Option<String>, StoreError> {
        Ok(address.strip_suffix("@localhost").map(str::to_owned))
    }

    fn registered(&self, _: &str) -> Result<Option<i64>, StoreError> {
        Ok(Some(0))
    }

    fn email(&self, user: &str) -> String {
        format!("{user}@localhost")
    }

    fn domain(&self) -> &str {
        "localhost"
    }
}
