//! The stored form of calendars: it stays the same, byte for byte, and earlier forms are readable.

use std::ops::ControlFlow;

use crate::support::{World, meeting, user};
use groupware_calendar::{Format, Target, UpdateOptions, event, notice};
use groupware_store::{Batch, Store, StoreError, StoreOptions};
use plimsoll_tests::stored;
use serde_json::{Value, json};

/// Calendars with an entry of each state, and each kind of moment.
fn world() -> World {
    let mut world = World::new(5);
    let mut event = meeting(5, &[1, 2, 3, 4]);
    event["class"] = json!("confidential");
    event["categories"] = json!(["a", "é"]);
    event["x-custom"] = json!({"data": {"deep": [1, null]}});
    event["alarm"] = json!({"action": "display"});
    world.create(0, &event).unwrap();
    for (number, action) in [(1, "accept"), (2, "tentative")] {
        let notice = world.notice_ids(number).remove(0);
        let target = Target::Notice(&notice);
        world.act(number, target, action, &Value::Null).unwrap();
    }
    let off = world.create(1, &meeting(7, &[0])).unwrap();
    let notice = world.notice_ids(0).remove(0);
    let target = Target::Notice(&notice);
    world.act(0, target, "accept", &Value::Null).unwrap();
    world.delete(1, &off, true).unwrap();
    let day = json!({"summary": "Day", "start": {"date": "2026-01-09"}});
    world.create(0, &day).unwrap();
    let local = json!({"summary": "Zoned", "location": "\"Nürnberg\"",
        "start": {"date": "2026-07-01", "time": "09:00:00", "tzid": "Europe/Berlin"},
        "end": {"date": "2026-07-01", "time": "10:00:00", "tzid": "Europe/Berlin"}});
    let uid = world.create(0, &local).unwrap();
    let mut floating = local.clone();
    floating["start"] = json!({"date": "2026-07-02", "time": "09:00:00"});
    floating["end"] = json!({"date": "2026-07-02", "time": "10:00:00"});
    world.now += 60;
    let options = UpdateOptions {
        workflow: true,
        literally: false,
        strict_sequence: false,
        seen: None,
    };
    world.update(0, &uid, &floating, options).unwrap();
    world.create(0, &local).unwrap();
    world
}

const MAILBOXES: [&str; 5] = [
    "user00000",
    "user00001",
    "user00002",
    "user00003",
    "user00004",
];

/// All records of these partitions.
fn rows(store: &Store, partitions: &[&str]) -> Vec<stored::Row> {
    let mut rows = Vec::new();
    let read: Result<(), StoreError> = store.read(|snapshot| {
        for partition in partitions {
            snapshot.browse(partition, b"", None, usize::MAX, &mut |key, value| {
                rows.push(((*partition).to_owned(), key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            })?;
        }
        Ok(())
    });
    read.unwrap();
    rows
}

/// A store with the records of a snapshot.
fn restored(snapshot: &str) -> Store {
    let store = Store::memory(StoreOptions::default()).unwrap();
    let mut batch = Batch::new();
    for (partition, key, value) in stored::rows(snapshot) {
        batch.put(partition, key, value);
    }
    store.commit_blocking(batch).unwrap();
    store
}

#[test]
fn what_is_stored_stays_as_it_is() {
    insta::assert_snapshot!("records", stored::lines(&rows(&world().store, &MAILBOXES)));
}

/// A world with the records of a snapshot.
fn world_of(snapshot: &str) -> World {
    let mut world = World::new(5);
    world.store = restored(snapshot);
    world
}

/// The form before compact lines and events, and before notices' identifiers had the time of receipt.
const BEFORE: [&str; 2] = [
    include_str!("stored/whole.snap"),
    include_str!("stored/pointers.snap"),
];

#[test]
fn what_is_stored_is_read() {
    let now = include_str!("snapshots/suite__stored__records.snap");
    insta::assert_snapshot!("read", read(&world_of(now)));
}

#[test]
fn what_was_stored_before_is_read() {
    for snapshot in BEFORE {
        insta::assert_snapshot!("read_before", read(&world_of(snapshot)));
    }
}

#[test]
fn what_was_stored_before_is_changed() {
    for snapshot in BEFORE {
        change(world_of(snapshot));
    }
}

fn change(mut world: World) {
    let notice = world.notice_ids(4).remove(0);
    let target = Target::Notice(&notice);
    world.act(4, target, "accept", &Value::Null).unwrap();
    assert!(world.notice_ids(4).is_empty());
    let left = rows(&world.store, &["user00004"]);
    assert!(left.iter().all(|(_, key, _)| !key.starts_with(b"c/m/")));
    let lines = world.events(4, &[]);
    assert!(
        lines
            .iter()
            .all(|line| line["x-lotus-noticetype"].is_null())
    );
    let uid = lines[0]["id"].as_str().unwrap();
    assert_eq!(world.status_of(0, uid, 4), "accepted");
    world.delete(0, uid, true).unwrap();
    assert_eq!(world.events(4, &[])[0]["status"], "cancelled");
}

fn read(world: &World) -> String {
    let mut read = String::new();
    for number in 0..5 {
        for line in world.events(number, &[]) {
            let uid = line["id"].as_str().unwrap();
            let whole = world
                .store
                .read(|snapshot| event(snapshot, &user(number), uid, Format::Json));
            let whole = whole.map_or_else(|error| error.to_string().into_bytes(), |(_, body)| body);
            read += &format!("{number} {}\n", String::from_utf8(whole).unwrap());
        }
        for id in world.notice_ids(number) {
            let whole = world
                .store
                .read(|snapshot| notice(snapshot, &user(number), &id, Format::ICalendar));
            read += &format!(
                "{number} {id}\n{}\n",
                String::from_utf8(whole.unwrap()).unwrap()
            );
        }
    }
    let none = groupware_calendar::InvitationQuery::parse([]).unwrap();
    read += &String::from_utf8(world.listed(4, &none).unwrap()).unwrap();
    read
}
