//! The changes of a folder, over HTTP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use groupware_backup::{Forward, change_logs, restore, restore_at, take};
use groupware_server::{Data, Records, Retention, copy};
use serde_json::{Value, json};

use crate::mail::{World, href, note, world, world_with};

#[test]
fn a_folder_says_what_has_changed_since() {
    let world = world();
    let empty = world.get("bob", "/folders/inbox").json();
    assert_eq!(
        (&empty["modseq"], &empty["uidNext"]),
        (&json!(0), &json!(1))
    );
    world.send("ann", &note("one", "bob"));
    let folder = world.get("bob", "/folders/inbox").json();
    assert_eq!(folder["uidNext"], 2);
    assert!(folder["uidValidity"].as_u64().unwrap() > 1_700_000_000);
    let first = world.list("bob", "/inbox").remove(0);
    assert_eq!(
        (&first["uid"], &first["modseq"]),
        (&json!(1), &folder["modseq"])
    );
    let since = |number: &Value| {
        let changed = world.get("bob", &format!("/inbox?since={number}")).json();
        let members: Vec<_> = changed.as_object().unwrap().keys().cloned().collect();
        let expected = ["messages", "modseq", "uidNext", "uidValidity", "vanished"];
        assert_eq!(members, expected);
        assert_eq!(changed["uidValidity"], folder["uidValidity"]);
        changed
    };
    world.send("ann", &note("two", "bob"));
    let read = world.get("bob", href(&first)).json();
    assert_eq!(read["uid"], 1);
    let changed = since(&folder["modseq"]);
    let uids = |changed: &Value| -> Vec<Value> {
        let messages = changed["messages"].as_array().unwrap().iter();
        messages.map(|line| line["uid"].clone()).collect()
    };
    // In the order of the changes, in the form of the list.
    assert_eq!(uids(&changed), [2, 1]);
    let mut listed = world.list("bob", "/inbox");
    listed.sort_by_key(|line| line["modseq"].as_u64());
    assert_eq!(changed["messages"], Value::Array(listed));
    assert_eq!(changed["vanished"], json!([]));
    let before = since(&changed["modseq"]);
    assert_eq!((uids(&before), &before["vanished"]), (vec![], &json!([])));
    let deleted = world.json("bob", "DELETE", href(&first), &Value::Null);
    assert_eq!(deleted.status, 200, "{deleted:?}");
    let after = since(&changed["modseq"]);
    assert_eq!(uids(&after), Vec::<Value>::new());
    assert_eq!(
        after["vanished"],
        json!([{ "href": href(&first), "uid": 1 }])
    );
    let trash = format!("/trash?since={}", changed["modseq"]);
    assert_eq!(uids(&world.get("bob", &trash).json()), [1]);
    for (asked, status) in [
        ("/inbox?since=0".to_owned(), 410),
        (format!("/inbox?since={}0", changed["modseq"]), 410),
        ("/inbox?since=x".to_owned(), 400),
        (format!("/folders/{}/messages?since=1", "F".repeat(32)), 404),
    ] {
        let reply = world.call("bob", "GET", &asked, "", b"");
        assert_eq!(reply.status, status, "{asked}: {reply:?}");
    }
}

fn inbox(world: &World) -> Value {
    world.get("bob", "/folders/inbox").json()
}

fn number(folder: &Value, name: &str) -> u64 {
    folder[name].as_u64().unwrap()
}

/// Three data folders: restored from a backup after the first of three messages, from its changes
/// up to the second, and from a copy. And bob's inbox after each message.
fn put_back(at: &Path) -> (World, [PathBuf; 3], Vec<Value>) {
    let [data, backups, first, second, copied] =
        ["data", "backups", "first", "second", "copied"].map(|name| at.join(name));
    let world = world_with(|config| {
        config.data = Data::Folder(data.clone());
        let (age, bytes) = (Duration::from_secs(3600), 1 << 30);
        config.keep_changes = Some(Retention { age, bytes });
    });
    let mut seen = Vec::new();
    let mut deliver = || {
        world.send("ann", &note("one", "bob"));
        seen.push(inbox(&world));
    };
    deliver();
    let taken = take(&data, &backups, ("one", 1, "0")).unwrap();
    deliver();
    let until_us = change_logs(&data).unwrap()[0].to_us;
    deliver();
    let manifest = taken.manifest;
    restore(&backups, &manifest, &first).unwrap();
    let data = &data;
    let forward = Forward { data, until_us };
    restore_at(&backups, &[manifest], &second, forward, &mut |_| {}).unwrap();
    let world = world.moved_to(&first);
    let records = |folder: &Path| Records::Folder(folder.into());
    copy(&records(data), &records(&copied), &mut |_| {}).unwrap();
    (world, [first, second, copied], seen)
}

#[test]
fn what_was_put_back_gives_no_number_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut world, data, seen) = put_back(folder.path());
    for (at, data) in data.iter().enumerate() {
        world = world.moved_to(data);
        let found = inbox(&world);
        assert_eq!(number(&found, "messages"), at as u64 + 1);
        assert_eq!(number(&found, "uidNext"), at as u64 + 2);
        world.send("ann", &note("another", "bob"));
        for seen in &seen {
            assert!(number(&found, "uidValidity") > number(seen, "uidValidity"));
            assert!(number(&found, "modseq") > number(seen, "modseq"));
            let asked = format!("/inbox?since={}", seen["modseq"]);
            let reply = world.call("bob", "GET", &asked, "", b"");
            assert_eq!(reply.status, 410, "{asked}: {reply:?}");
        }
        let asked = format!("/inbox?since={}", found["modseq"]);
        let changed = world.get("bob", &asked).json();
        assert_eq!(changed["messages"].as_array().unwrap().len(), 1);
        // Only once: a client that has resynchronized continues.
        world = world.moved_to(data);
        assert_eq!(world.get("bob", &asked).json(), changed);
    }
}
