//! The mail service over HTTP: sending, reading, folders, limits.

use crate::support::*;
use groupware_server::{Config, Data, Server};
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) server: Server,
    ann: String,
    bob: String,
}

pub(crate) fn world() -> World {
    world_with(|_| {})
}

pub(crate) fn world_with(change: impl FnOnce(&mut Config)) -> World {
    let mut config = config();
    change(&mut config);
    let server = Server::start(config).unwrap();
    let mut passwords = register(&server, &["ann", "bob"]).into_iter();
    World {
        ann: basic("ann", &passwords.next().unwrap()),
        bob: basic("bob", &passwords.next().unwrap()),
        server,
    }
}

impl World {
    /// The same users on other data.
    pub(crate) fn moved_to(self, folder: &std::path::Path) -> Self {
        drop(self.server);
        let mut config = config();
        config.data = Data::Folder(folder.into());
        let server = Server::start(config).unwrap();
        Self { server, ..self }
    }

    fn auth(&self, user: &str) -> &str {
        if user == "ann" { &self.ann } else { &self.bob }
    }

    pub(crate) fn call(
        &self,
        user: &str,
        method: &str,
        rest: &str,
        kind: &str,
        body: &[u8],
    ) -> Reply {
        let path = match rest.starts_with("/mail/") {
            true => rest.to_owned(),
            false => format!("/mail/{user}/api/mail{rest}"),
        };
        let headers = [("authorization", self.auth(user)), ("content-type", kind)];
        send(self.server.address(), method, &path, &headers, body)
    }

    pub(crate) fn get(&self, user: &str, rest: &str) -> Reply {
        let reply = self.call(user, "GET", rest, "", b"");
        assert_eq!(reply.status, 200, "{rest}: {reply:?}");
        reply
    }

    pub(crate) fn json(&self, user: &str, method: &str, rest: &str, body: &Value) -> Reply {
        let body = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        self.call(user, method, rest, "application/json", body.as_bytes())
    }

    pub(crate) fn list(&self, user: &str, rest: &str) -> Vec<Value> {
        self.get(user, rest).json().as_array().unwrap().clone()
    }

    pub(crate) fn send(&self, user: &str, message: &Value) -> String {
        let reply = self.json(user, "POST", "/outbox", message);
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.header("location").unwrap().to_owned()
    }

    fn counts(&self, user: &str, folder: &str) -> (u64, u64) {
        let line = self.get(user, &format!("/folders/{folder}")).json();
        (
            line["messages"].as_u64().unwrap(),
            line["unread"].as_u64().unwrap(),
        )
    }
}

pub(crate) fn note(subject: &str, to: &str) -> Value {
    json!({
        "subject": subject,
        "to": [to],
        "content": [{ "contentType": "text/plain", "data": "Hello.\n" }],
    })
}

pub(crate) fn href(line: &Value) -> &str {
    line["href"].as_str().unwrap()
}

#[test]
fn a_message_goes_from_one_user_to_another() {
    let world = world();
    let mut message = note("Hé", "bob@localhost");
    message["cc"] = json!([{ "displayName": "Ann", "email": "ann" }]);
    let location = world.send("ann", &message);
    let sent = world.get("ann", &location).json();
    assert_eq!(sent["subject"], "Hé");
    assert_eq!(sent["to"], json!([{ "email": "bob@localhost" }]));
    assert_eq!(sent["cc"][0]["displayName"], "Ann");
    assert_eq!(sent["content"][0]["data"], "Hello.\r\n");
    let inbox = world.get("bob", "/inbox");
    assert_eq!(inbox.header("content-range"), Some("items 0-0/1"));
    let line = &inbox.json()[0];
    assert_eq!(
        (&line["subject"], &line["read"]),
        (&json!("Hé"), &json!(false))
    );
    assert_eq!(line["from"]["email"], "ann@localhost");
    assert_eq!(world.counts("bob", "inbox"), (1, 1));
    // Reading sets the flag, unless the request disables it.
    world.get("bob", &format!("{}?markread=false", href(line)));
    assert_eq!(world.counts("bob", "inbox"), (1, 1));
    world.get("bob", href(line));
    assert_eq!(world.counts("bob", "inbox"), (1, 0));
    let unread = format!("{}?markread=false", href(line));
    assert_eq!(world.json("bob", "PUT", &unread, &Value::Null).status, 200);
    assert_eq!(world.counts("bob", "inbox"), (1, 1));
    assert_eq!(world.counts("ann", "inbox"), (1, 1));
    assert_eq!(world.counts("ann", "sent"), (1, 0));
}

#[test]
fn mime_is_kept_byte_for_byte() {
    let world = world();
    let message = "From: Ann <ann@localhost>\r\nTo: bob@localhost\r\nDate: Mon, 05 Jan 2026 \
                   10:00:00 +0100\r\nMessage-ID: <1@x>\r\nX-Odd:  two  spaces\r\nSubject: =?iso-\
                   8859-1?Q?=E9?=\r\n\r\n body \x01\n\r\n";
    let reply = world.call(
        "ann",
        "POST",
        "/outbox",
        "message/rfc822",
        message.as_bytes(),
    );
    assert_eq!(reply.status, 201, "{reply:?}");
    let line = &world.list("bob", "/inbox")[0];
    assert_eq!(line["subject"], "é");
    assert_eq!(line["date"], "2026-01-05T09:00:00Z");
    assert_eq!(line["size"], message.len());
    let path = format!("{}?format=mime", href(line));
    let reply = world.get("bob", &path);
    assert_eq!(reply.header("content-type"), Some("message/rfc822"));
    assert_eq!(String::from_utf8(reply.body).unwrap(), message);
}

#[test]
fn blind_copies_stay_with_the_sender() {
    let world = world();
    let mut message = note("Quiet", "bob");
    message["bcc"] = json!(["ann"]);
    let location = world.send("ann", &message);
    assert_eq!(
        world.get("ann", &location).json()["bcc"][0]["email"],
        "ann@localhost"
    );
    for user in ["ann", "bob"] {
        let line = &world.list(user, "/inbox")[0];
        let raw = world.get(user, &format!("{}?format=mime", href(line))).body;
        let raw = String::from_utf8(raw).unwrap();
        assert!(!raw.to_lowercase().contains("bcc"), "{raw}");
    }
}

#[test]
fn unknown_recipients_are_refused_by_name_and_nothing_is_sent() {
    let world = world();
    let mut message = note("x", "bob");
    message["cc"] = json!(["nobody@localhost", "eve@example.com"]);
    let reply = world.json("ann", "POST", "/outbox", &message);
    assert_error(&reply, 400);
    let said = reply.json()["message"].to_string();
    assert!(said.contains("nobody@localhost, eve@example.com"), "{said}");
    assert_eq!(
        world.counts("ann", "sent").0 + world.counts("bob", "inbox").0,
        0
    );
    assert_error(
        &world.json("ann", "POST", "/outbox", &json!({ "to": [] })),
        400,
    );
}

#[test]
fn nobody_writes_in_anothers_name_or_smuggles_in_a_field() {
    let world = world();
    for from in [
        "bob@localhost",
        "ann@localhost, bob@localhost",
        "ann@localhost\r\nFrom: bob",
    ] {
        let message = format!("From: {from}\r\nTo: bob\r\n\r\n");
        let reply = world.call(
            "ann",
            "POST",
            "/outbox",
            "message/rfc822",
            message.as_bytes(),
        );
        assert_error(&reply, 403);
    }
    for (member, value) in [
        ("subject", json!("a\r\nBcc: ann")),
        ("to", json!(["bob@localhost>\r\nX: y"])),
        ("to", json!([{ "displayName": "B\nX: y", "email": "bob" }])),
        ("inReplyTo", json!("<a\r\n@x>")),
        (
            "content",
            json!([{ "contentType": "image/png\r\nX: y", "data": "" }]),
        ),
        (
            "content",
            json!([{ "contentType": "image/png; name=\"a\nb\"", "data": "" }]),
        ),
    ] {
        let mut message = note("x", "bob");
        message[member] = value;
        assert_error(&world.json("ann", "POST", "/outbox", &message), 400);
    }
    assert_eq!(world.counts("bob", "inbox").0, 0);
}

#[test]
fn attachments_come_back_byte_for_byte() {
    let world = world();
    let data: Vec<u8> = (0..=255_u8).cycle().take(100_000).collect();
    let encoded = {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(&data)
    };
    let mut message = note("With files", "bob");
    message["content"].as_array_mut().unwrap().extend([
        json!({ "contentType": "text/html", "data": "<p>Hello</p>" }),
        json!({ "contentType": "application/octet-stream", "contentTransferEncoding": "base64",
                "contentDisposition": "attachment; filename=\"a é.bin\"", "data": encoded }),
        json!({ "contentType": "text/plain", "contentTransferEncoding": "base64",
                "contentDisposition": "attachment; filename=\"t.txt\"", "data": "YQpiDQr/" }),
    ]);
    world.send("ann", &message);
    let line = &world.list("bob", "/inbox")[0];
    assert_eq!(line["attachments"], true);
    let read = world
        .get("bob", &format!("{}?attachmentlinks=true", href(line)))
        .json();
    let kinds: Vec<_> = read["content"].as_array().unwrap().iter().collect();
    let kind = |at: usize| kinds[at]["contentType"].as_str().unwrap();
    assert!(kind(0).starts_with("multipart/mixed"), "{read}");
    assert!(kind(1).starts_with("multipart/alternative"), "{read}");
    assert_eq!(kinds[3]["data"], "<p>Hello</p>");
    let file = world.get("bob", kinds[4]["contentLocation"].as_str().unwrap());
    assert!(file.body == data);
    assert_eq!(file.header("x-content-type-options"), Some("nosniff"));
    assert!(
        file.header("content-disposition")
            .unwrap()
            .starts_with("attachment")
    );
    let text = world.get("bob", kinds[5]["contentLocation"].as_str().unwrap());
    assert_eq!(text.body, b"a\nb\r\n\xFF");
    let missing = format!("{}/attachments/none", href(line));
    assert_error(&world.call("bob", "GET", &missing, "", b""), 404);
}

#[test]
fn lists_have_pages_orders_and_searches() {
    let world = world();
    for number in 0..25 {
        let mut message = note(&format!("Note {:02}", (number * 7) % 25), "bob");
        message["content"][0]["data"] = json!("x".repeat(100 + number * 10));
        world.send("ann", &message);
    }
    let subjects = |rest: &str| -> Vec<String> {
        let list = world.list("bob", rest);
        list.iter()
            .map(|line| line["subject"].as_str().unwrap().to_owned())
            .collect()
    };
    let range = |rest: &str| {
        let reply = world.get("bob", rest);
        reply.header("content-range").unwrap().to_owned()
    };
    assert_eq!(range("/inbox"), "items 0-9/25");
    assert_eq!(range("/inbox?start=20&count=50"), "items 20-24/25");
    assert_eq!(range("/inbox?ps=10&page=2"), "items 20-24/25");
    assert_eq!(range("/inbox?start=25"), "items */25");
    assert_eq!(subjects("/inbox")[0], "Note 18");
    assert_eq!(subjects("/inbox?sortorder=ascending")[0], "Note 00");
    assert_eq!(
        subjects("/inbox?start=5&count=2"),
        subjects("/inbox?count=7")[5..]
    );
    let last = world.list("bob", "/inbox?count=5")[4]["href"]
        .as_str()
        .unwrap()
        .to_owned();
    let after = last.rsplit('/').next().unwrap();
    let rest = format!("/inbox?start=5&count=2&after={after}");
    assert_eq!(subjects(&rest), subjects("/inbox?start=5&count=2"));
    assert_eq!(range(&rest), "items 5-6/25");
    let sorted = subjects("/inbox?sortcolumn=subject&count=25");
    assert!(sorted.is_sorted() && sorted.len() == 25);
    let sizes = world.list(
        "bob",
        "/inbox?sortcolumn=size&sortorder=descending&count=25",
    );
    assert!(sizes.is_sorted_by(|a, b| a["size"].as_u64() >= b["size"].as_u64()));
    assert_eq!(subjects("/inbox?search=NOTE%201").len(), 10);
    assert_eq!(range("/inbox?search=note%201&count=3"), "items 0-2/10");
    assert_eq!(range("/inbox?search=note&searchmaxdocs=4"), "items 0-3/4");
    assert_eq!(range("/inbox?search=nothing"), "items */0");
    assert_eq!(
        subjects("/inbox?sortcolumn=subject&keys=note%2002&keysexactmatch=true"),
        ["Note 02"]
    );
    for bad in ["count=0", "count=1001", "start=x", "sortorder=up"] {
        assert_error(
            &world.call("bob", "GET", &format!("/inbox?{bad}"), "", b""),
            400,
        );
    }
}

#[test]
fn messages_are_moved_and_deleted_in_two_steps() {
    let world = world();
    for subject in ["a", "b", "c"] {
        world.send("ann", &note(subject, "bob"));
    }
    let reply = world.json("bob", "POST", "/folders", &json!({ "name": "Work" }));
    assert_eq!(reply.status, 201, "{reply:?}");
    let folder = reply.header("location").unwrap().to_owned();
    let again = world.json("bob", "POST", "/folders", &json!({ "name": "work" }));
    assert_error(&again, 409);
    let list = world.list("bob", "/inbox");
    let unid = |at: usize| href(&list[at]).rsplit('/').next().unwrap().to_owned();
    let put = |path: &str, body: Value| world.json("bob", "PUT", path, &body).status;
    assert_eq!(
        put(
            &format!("{folder}/messages"),
            json!({ "add": [unid(0), unid(1)] })
        ),
        200
    );
    assert_eq!(world.list("bob", &format!("{folder}/messages")).len(), 2);
    assert_eq!(
        put(
            &format!("{folder}/messages"),
            json!({ "remove": [unid(0)] })
        ),
        200
    );
    assert_eq!(world.list("bob", "/folders/archive/messages").len(), 1);
    assert_eq!(
        put("/inbox", json!({ "add": [unid(0)], "remove": [unid(2)] })),
        200
    );
    assert_eq!(world.counts("bob", "inbox"), (1, 1));
    assert_eq!(put("/inbox", json!({ "add": ["0".repeat(32)] })), 404);
    // A deleted folder's messages stay.
    assert_eq!(world.call("bob", "DELETE", &folder, "", b"").status, 200);
    assert_error(&world.call("bob", "GET", &folder, "", b""), 404);
    assert_eq!(world.counts("bob", "archive"), (2, 2));
    // Into the trash, and back.
    let delete = |path: &str| world.call("bob", "DELETE", path, "", b"").status;
    let first = href(&list[0]);
    assert_eq!(delete(first), 200);
    assert_eq!(
        (
            world.counts("bob", "inbox").0,
            world.counts("bob", "trash").0
        ),
        (0, 1)
    );
    assert_eq!(delete(&format!("/trash/{}", unid(1))), 404);
    assert_eq!(delete(&format!("/trash/{}", unid(0))), 200);
    assert_error(&world.call("bob", "GET", first, "", b""), 404);
    assert_eq!(delete(&format!("{}?permanently=true", href(&list[1]))), 200);
    assert_eq!(delete(href(&list[2])), 200);
    assert_eq!(delete("/trash"), 200);
    for line in world.get("bob", "/folders").json().as_array().unwrap() {
        assert_eq!(
            (&line["messages"], &line["unread"]),
            (&json!(0), &json!(0)),
            "{line}"
        );
    }
    assert_eq!(world.get("bob", "/quota").json()["usedSize"], 0);
}

#[test]
fn drafts_are_rewritten_and_sent_once() {
    let world = world();
    let reply = world.json("ann", "POST", "/drafts", &json!({ "subject": "First" }));
    assert_eq!(reply.status, 201, "{reply:?}");
    let draft = reply.header("location").unwrap().to_owned();
    assert_error(
        &world.json("ann", "PUT", &format!("{draft}?send=true"), &Value::Null),
        400,
    );
    let mut message = note("Second", "bob");
    message["bcc"] = json!(["ann"]);
    assert_eq!(world.json("ann", "PUT", &draft, &message).status, 200);
    let drafts = world.list("ann", "/drafts");
    assert_eq!((drafts.len(), &drafts[0]["subject"]), (1, &json!("Second")));
    assert_eq!(href(&drafts[0]), draft);
    let reply = world.json("ann", "PUT", &format!("{draft}?send=true"), &Value::Null);
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(
        world.get("ann", reply.header("location").unwrap()).json()["folder"],
        "sent"
    );
    assert_error(
        &world.json("ann", "PUT", &format!("{draft}?send=true"), &Value::Null),
        404,
    );
    assert_eq!(world.counts("ann", "drafts").0, 0);
    assert_eq!(world.counts("bob", "inbox").0, 1);
    let line = &world.list("bob", "/inbox")[0];
    assert_error(&world.json("bob", "PUT", href(line), &message), 409);
    let unid = href(line).rsplit('/').next().unwrap();
    let path = "/mail/bob/api/mail/folders/drafts/messages";
    assert_error(
        &world.json("bob", "PUT", path, &json!({ "add": [unid] })),
        409,
    );
}

#[test]
fn large_messages_to_many_are_kept_once_and_go_with_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let world = world_with(|config| config.data = Data::Folder(folder.path().into()));
    let names: Vec<_> = (0..60).map(|number| format!("user{number}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    register(&world.server, &names);
    let mut message = note("Large", "bob");
    message["to"] = json!(names.iter().copied().chain(["bob"]).collect::<Vec<_>>());
    message["content"][0]["data"] = json!("0123456789abcdef\n".repeat(600_000));
    let sent = world.send("ann", &message);
    let database = std::fs::metadata(folder.path().join("groupware.sqlite-wal")).unwrap();
    assert!(database.len() < 40 << 20, "{}", database.len());
    let line = &world.list("bob", "/inbox")[0];
    let size = world.get("bob", "/quota").json()["usedSize"]
        .as_u64()
        .unwrap();
    assert!((9_900..10_600).contains(&size), "{size}");
    for name in &names {
        let reply = admin(
            &world.server,
            "DELETE",
            &format!("/admin/users/{name}"),
            Value::Null,
        );
        assert_eq!(reply.status, 204, "{reply:?}");
    }
    let delete = |user, path: &str| {
        world
            .call(user, "DELETE", &format!("{path}?permanently=true"), "", b"")
            .status
    };
    assert_eq!(delete("ann", &sent), 200);
    assert_eq!(
        world
            .get("bob", &format!("{}?format=mime", href(line)))
            .status,
        200
    );
    assert_eq!(delete("bob", href(line)), 200);
    world.server.shutdown();
    let store = groupware_store::Store::open_sqlite(folder.path(), Default::default()).unwrap();
    let mut left = 0;
    let scan = store.read(|snapshot| {
        snapshot.scan("$mail", b"", None, usize::MAX, &mut |_, _| {
            left += 1;
            std::ops::ControlFlow::Continue(())
        })
    });
    scan.map_err(|error: groupware_store::StoreError| error)
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn what_is_too_large_or_of_another_kind_is_refused() {
    let world = world_with(|config| config.mail_quota_bytes = Some(300_000));
    let mime = |body: &[u8]| world.call("ann", "POST", "/outbox", "message/rfc822", body);
    let head = "From: ann@localhost\r\nTo: bob\r\n";
    assert_error(
        &mime(format!("{head}{}\r\n", "X: y\r\n".repeat(100_000)).as_bytes()),
        413,
    );
    assert_error(
        &mime(&[head.as_bytes(), b"\r\n", &vec![b'x'; 17 << 20]].concat()),
        413,
    );
    assert_error(
        &world.call("ann", "POST", "/outbox", "text/plain", b"hello"),
        415,
    );
    assert_error(
        &world.call("ann", "POST", "/outbox", "application/json", b"{"),
        400,
    );
    assert_error(
        &world.call("ann", "POST", "/outbox", "message/rfc822", b""),
        400,
    );
    let mut large = note("x", "bob");
    large["content"][0]["data"] = json!("x ".repeat(100_000));
    world.send("ann", &large);
    let reply = world.json("ann", "POST", "/outbox", &large);
    assert_error(&reply, 507);
    assert!(
        reply.json()["message"].to_string().contains("full"),
        "{reply:?}"
    );
    let quota = world.get("ann", "/quota").json();
    assert_eq!(
        (&quota["enabled"], &quota["quotaSize"]),
        (&json!(true), &json!(292))
    );
    // Other users' accounts, and unknown ones.
    assert_error(
        &world.call("ann", "GET", "/mail/bob/api/mail/inbox", "", b""),
        403,
    );
    let reply = send(
        world.server.address(),
        "GET",
        "/mail/bob/api/mail/inbox",
        &[],
        b"",
    );
    assert_error(&reply, 401);
    assert_error(&world.call("ann", "GET", "/messages/1", "", b""), 404);
}

#[test]
fn deliveries_to_one_mailbox_from_many_sides_all_count() {
    let folder = tempfile::tempdir().unwrap();
    let world = world_with(|config| config.data = Data::Folder(folder.path().into()));
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let world = &world;
            scope.spawn(move || {
                for number in 0..20 {
                    world.send("ann", &note(&format!("{thread}-{number}"), "bob"));
                }
            });
        }
    });
    assert_eq!(world.counts("bob", "inbox"), (160, 160));
    assert_eq!(world.counts("ann", "sent"), (160, 0));
    let list = world.list("bob", "/inbox?count=200");
    assert_eq!(list.len(), 160);
    // Many concurrent requests delete one of them: it is deleted once.
    let path = format!("{}?permanently=true", href(&list[0]));
    let gone = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| world.call("bob", "DELETE", &path, "", b"").status))
            .collect();
        let statuses = threads.into_iter().map(|thread| thread.join().unwrap());
        statuses.filter(|status| *status == 200).count()
    });
    assert_eq!(gone, 1);
    assert_eq!(world.counts("bob", "inbox"), (159, 159));
}

#[test]
fn studies_fill_mailboxes_alike() {
    let since_1970 = std::time::UNIX_EPOCH.elapsed().unwrap();
    let began_s = since_1970.as_secs();
    let world = world();
    let fill = |body: Value| admin(&world.server, "POST", "/admin/mail/fill", body);
    let body = json!({
        "users": ["ann", "bob"], "messages": 40, "seed": 7,
        "profile": [
            { "text_bytes": 500, "permille": 750 },
            { "text_bytes": 100, "attachment_bytes": 5000, "permille": 250 },
        ],
    });
    let reply = fill(body.clone());
    assert_eq!(reply.status, 200, "{reply:?}");
    let filled = reply.json();
    assert_eq!(
        (&filled["users"], &filled["messages"]),
        (&json!(2), &json!(80))
    );
    let shape = |user: &str| -> Vec<(String, Value, Value)> {
        let list = world.list(user, "/inbox?count=100");
        list.iter()
            .map(|line| {
                let unid = href(line).rsplit('/').next().unwrap().to_owned();
                (unid, line["subject"].clone(), line["size"].clone())
            })
            .collect()
    };
    let first = (shape("ann"), shape("bob"));
    // Messages get their numbers at import, whatever their time of arrival.
    let validity = &world.get("ann", "/folders/inbox").json()["uidValidity"];
    assert!(validity.as_u64().unwrap() >= began_s, "{validity}");
    let attached = world.list("ann", "/inbox?count=100");
    let attached = attached.iter().filter(|line| line["attachments"] == true);
    assert_eq!(attached.count(), 10);
    assert_error(&fill(body.clone()), 409);
    let reset = admin(&world.server, "POST", "/admin/reset", Value::Null);
    assert_eq!(reset.status, 200);
    assert_eq!(world.list("ann", "/inbox").len(), 0);
    assert_eq!(fill(body).status, 200);
    assert!(
        (shape("ann"), shape("bob")) == first,
        "the same seed gives the same messages"
    );
    assert_error(&fill(json!({ "users": ["eve"], "messages": 1 })), 404);
    let odd =
        json!({ "users": ["ann"], "messages": 1, "profile": [{ "text_bytes": 1, "permille": 9 }] });
    assert_error(&fill(odd), 400);
}

#[test]
fn messages_are_marked_and_stay_so_wherever_they_go() {
    let world = world();
    world.send("ann", &note("Plan", "bob"));
    let line = world.list("bob", "/inbox").remove(0);
    let path = href(&line);
    let mark = |query: &str| world.json("bob", "PUT", &format!("{path}?{query}"), &Value::Null);
    for query in [
        "markflagged=true&markanswered=true&markforwarded=true",
        "keywords=work%20$Junk",
    ] {
        assert_eq!(mark(query).status, 200, "{query}");
    }
    for bad in ["keywords=(", "keywords=%C3%BC", "markflagged=yes"] {
        assert_error(&mark(bad), 400);
    }
    assert_eq!(world.json("bob", "DELETE", path, &Value::Null).status, 200);
    let line = world.list("bob", "/trash").remove(0);
    let read = world.get("bob", path).json();
    for member in ["answered", "flagged", "forwarded"] {
        assert_eq!((&line[member], &read[member]), (&json!(true), &json!(true)));
    }
    assert_eq!(read["keywords"], json!(["$Junk", "work"]));
    for query in [
        "markflagged=false&markanswered=false&markforwarded=false",
        "keywords=",
    ] {
        assert_eq!(mark(query).status, 200, "{query}");
    }
    let read = world.get("bob", path).json();
    for member in ["answered", "flagged", "forwarded", "keywords"] {
        assert_eq!(read[member], Value::Null, "{member}");
    }
}
