//! Which recipients get a message.

use std::io::{Read, Write};
use std::ops::ControlFlow;

use groupware_server::{Config, Data, Server};
use groupware_store::{Store, StoreError, StoreOptions};
use serde_json::json;

use crate::mail::{World, world_with};
use crate::support::*;

#[test]
fn a_namesake_of_another_organization_gets_nothing() {
    for (organization, to, status) in [
        (None, "CN=bob", 201),
        (None, "CN=bob/O=Elsewhere", 400),
        (Some("Acme"), "CN=bob/O=Elsewhere", 400),
        (Some("Acme"), "CN=Bob/OU=East/O=ACME", 201),
        (Some("Acme"), "CN=bob", 201),
    ] {
        let world = world_with(|config| config.organization = organization.map(str::to_owned));
        let message = json!({ "to": [to], "subject": "Pier", "content": [] });
        let reply = world.json("ann", "POST", "/outbox", &message);
        assert_eq!(reply.status, status, "{organization:?} {to}: {reply:?}");
        let came = usize::from(status == 201);
        assert_eq!(world.list("bob", "/inbox").len(), came, "{to}");
        if status != 201 {
            assert_error(&reply, status);
        }
    }
}

/// Ann writes to Bob, who has no room, and to Cy. A quota of mail or a share of the disk blocks Bob's copy only.
#[test]
fn a_full_mailbox_stops_nobody_elses_copy() {
    let bounds: [fn(&mut Config); 2] = [
        |config| config.mail_quota_bytes = Some(100_000),
        |config| config.limits.quota_bytes = 100_000,
    ];
    for bound in bounds {
        let world = world_with(bound);
        let cy = register(&world.server, &["cy"]).remove(0);
        let large = json!({
            "to": ["bob"],
            "content": [{ "contentType": "text/plain", "data": "x ".repeat(45_000) }],
        });
        world.send("bob", &json!({ "to": ["cy"], "content": large["content"] }));
        let to_both = |subject: &str| {
            let content = json!([{ "contentType": "text/plain", "data": "x ".repeat(15_000) }]);
            json!({ "to": ["bob"], "cc": ["cy"], "subject": subject, "content": content })
        };
        // If no recipient has room, the sender gets an error.
        let alone = json!({ "to": ["bob"], "content": to_both("x")["content"] });
        assert_error(&world.json("ann", "POST", "/outbox", &alone), 507);
        let of_cy = |path: &str| {
            let auth = basic("cy", &cy);
            let headers = [("authorization", auth.as_str())];
            let path = format!("/mail/cy/api/mail{path}");
            send(world.server.address(), "GET", &path, &headers, b"").json()
        };
        empty(&world, &cy);
        world.send("ann", &to_both("Pier"));
        assert_eq!(world.list("bob", "/inbox").len(), 0);
        assert_eq!(of_cy("/inbox")[0]["subject"], "Pier");
        let report = &world.list("ann", "/inbox")[0];
        assert_eq!(report["subject"], "Not delivered to all: Pier");
        let path = report["href"].as_str().unwrap();
        let report = world.get("ann", &format!("{path}?format=mime"));
        let report = String::from_utf8(report.body).unwrap();
        for text in [
            "report-type=\"delivery-status\"",
            "bob@localhost: the mailbox is full",
            "Final-Recipient: rfc822; bob@localhost",
            "Subject: Pier",
            "Auto-Submitted: auto-replied",
        ] {
            assert!(report.contains(text), "{text}\n{report}");
        }
        assert!(!report.contains("Final-Recipient: rfc822; cy"), "{report}");
    }
}

/// An equal message after a restart is a new one.
#[test]
fn a_stopped_server_leaves_no_record_of_what_it_has_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config();
    config.data = Data::Folder(folder.path().into());
    let server = Server::start(config).unwrap();
    let password = register(&server, &["ada"]).remove(0);
    let message = json!({ "to": ["ada"], "subject": "Pier", "content": [] }).to_string();
    let mut stream = connect(server.address());
    let head = format!(
        "POST /mail/ada/api/mail/outbox HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        basic("ada", &password),
        message.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // Proves that the server has the head.
    let mut goes_on = [0; 25];
    stream.read_exact(&mut goes_on).unwrap();
    let mut idle = connect(server.address());
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    assert_eq!(read_reply(&mut idle).unwrap().status, 200);
    let stopping = std::thread::spawn(move || server.shutdown());
    // Idle connections are closed when the server stops.
    assert_eq!(idle.read_to_end(&mut Vec::new()).unwrap(), 0);
    stream.write_all(message.as_bytes()).unwrap();
    assert_eq!(read_reply(&mut stream).unwrap().status, 201);
    stopping.join().unwrap();
    let store = Store::open_sqlite(folder.path(), StoreOptions::default()).unwrap();
    let (mut inboxes, mut records) = (0, 0);
    let walk = store.read(|snapshot| {
        snapshot.walk(None, usize::MAX, &mut |partition, _, _| {
            records += usize::from(partition.starts_with("$sent/"));
            inboxes += usize::from(partition.contains("ada"));
            ControlFlow::Continue(())
        })
    });
    walk.map_err(|error: StoreError| error).unwrap();
    assert!(inboxes > 0);
    assert_eq!(records, 0);
}

/// Empties the inbox of Cy.
fn empty(world: &World, password: &str) {
    let auth = basic("cy", password);
    let headers = [("authorization", auth.as_str())];
    let ask = |method: &str, path: &str| {
        let reply = send(world.server.address(), method, path, &headers, b"");
        assert_eq!(reply.status, 200, "{reply:?}");
        reply
    };
    for line in ask("GET", "/mail/cy/api/mail/inbox")
        .json()
        .as_array()
        .unwrap()
    {
        let path = line["href"].as_str().unwrap();
        ask("DELETE", &format!("{path}?permanently=true"));
    }
}
