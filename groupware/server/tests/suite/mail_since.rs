//! What has changed in a folder, over HTTP.

use serde_json::{Value, json};

use crate::mail::{href, note, world};

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
    // In the order of the changes, and as the list has them.
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
