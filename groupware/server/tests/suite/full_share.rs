//! Users without disk quota left: they can read, mark, move, and remove, and what they share with
//! others keeps working.

use crate::support::*;
use groupware_server::{Config, Server};
use serde_json::{Value, json};

const QUOTA_BYTES: u64 = 100_000;
/// Clients of all addresses are limited: some come through a proxy.
const FROM_AFAR: [(&str, &str); 2] = [
    ("x-forwarded-for", "192.0.2.1"),
    ("x-forwarded-proto", "https"),
];

struct World {
    server: Server,
    config: Config,
    /// The credentials of Ada, whose share is used up, and Bob.
    auth: [String; 2],
}

impl World {
    fn new() -> Self {
        let config = config();
        let server = Server::start(config.clone()).unwrap();
        let passwords = register(&server, &["ada", "bob"]);
        let auth = [basic("ada", &passwords[0]), basic("bob", &passwords[1])];
        Self {
            server,
            config,
            auth,
        }
    }

    fn ask(&self, who: usize, from: &[(&str, &str)], asked: (&str, &str), body: &Value) -> Reply {
        let (method, path) = asked;
        let mut headers = vec![
            ("authorization", &*self.auth[who]),
            ("content-type", "application/json"),
        ];
        headers.extend_from_slice(from);
        let body = match body.is_null() {
            true => String::new(),
            false => body.to_string(),
        };
        send(
            self.server.address(),
            method,
            path,
            &headers,
            body.as_bytes(),
        )
    }

    /// From this machine.
    fn here(&self, who: usize, method: &str, path: &str, body: &Value) -> Reply {
        let reply = self.ask(who, &[], (method, path), body);
        assert!((200..300).contains(&reply.status), "{path}: {reply:?}");
        reply
    }

    /// From another machine.
    fn afar(&self, who: usize, method: &str, path: &str, body: &Value) -> u16 {
        self.ask(who, &FROM_AFAR, (method, path), body).status
    }

    /// Ada writes herself slightly more than her share will hold, in two folders.
    fn fill(&mut self) {
        for (subject, bytes) in [("one", 38_000), ("two", 12_000)] {
            let mail = json!({
                "subject": subject,
                "to": ["ada"],
                "content": [{ "contentType": "text/plain", "data": "x ".repeat(bytes / 2) }],
            });
            self.here(0, "POST", "/mail/ada/api/mail/outbox", &mail);
        }
        let used = self.here(0, "GET", "/mail/ada/api/mail/quota", &Value::Null);
        let used = used.json()["usedSize"].as_u64().unwrap() << 10;
        assert!((QUOTA_BYTES..QUOTA_BYTES / 8 * 9).contains(&used), "{used}");
        self.config.limits.quota_bytes = QUOTA_BYTES;
        self.server.reload(self.config.clone()).unwrap();
    }

    fn invite(&self, organizer: &str, attendee: &str) -> String {
        let who = usize::from(organizer == "bob");
        let meeting = json!({ "events": [{
            "summary": "Plan",
            "start": { "date": "2026-01-05", "time": "09:00:00", "utc": true },
            "end": { "date": "2026-01-05", "time": "10:00:00", "utc": true },
            "attendees": [{ "email": format!("{attendee}@localhost") }],
        }] });
        let path = format!("/mail/{organizer}/api/calendar/events");
        let made = self.here(who, "POST", &path, &meeting);
        made.header("location").unwrap().to_owned()
    }

    fn invitation(&self, who: usize, name: &str) -> String {
        let path = format!("/mail/{name}/api/calendar/invitations");
        let found = self.here(who, "GET", &path, &Value::Null).json();
        found["notices"][0]["href"].as_str().unwrap().to_owned()
    }
}

#[test]
fn mail_can_be_read_marked_moved_and_removed() {
    let mut world = World::new();
    world.fill();
    let inbox = "/mail/ada/api/mail/inbox";
    let lines = world.here(0, "GET", inbox, &Value::Null).json();
    let href = |nth: usize| lines[nth]["href"].as_str().unwrap();
    let ada = |method: &str, path: &str| world.afar(0, method, path, &Value::Null);
    // There is no room for one more, from any address.
    let mail = json!({ "subject": "x", "to": ["ada"], "content": [] });
    let outbox = "/mail/ada/api/mail/outbox";
    assert_eq!(world.ask(0, &[], ("POST", outbox), &mail).status, 507);
    assert_eq!(
        world.afar(0, "POST", "/mail/ada/api/mail/outbox", &mail),
        507
    );
    assert_eq!(ada("GET", href(0)), 200);
    let lines = world.here(0, "GET", inbox, &Value::Null).json();
    assert_eq!(
        (&lines[0]["read"], &lines[1]["read"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(ada("PUT", &format!("{}?markflagged=true", href(0))), 200);
    for nth in [0, 1] {
        assert_eq!(ada("DELETE", href(nth)), 200);
    }
    let trash = world
        .here(0, "GET", "/mail/ada/api/mail/trash", &Value::Null)
        .json();
    assert_eq!(trash.as_array().unwrap().len(), 2);
    assert_eq!(
        world.afar(0, "POST", "/mail/ada/api/mail/outbox", &mail),
        507
    );
    for nth in [0, 1] {
        let path = format!("{}?permanently=true", href(nth));
        assert_eq!(ada("DELETE", &path), 200);
    }
}

#[test]
fn meetings_with_others_are_changed_answered_and_called_off() {
    let mut world = World::new();
    let (bobs, adas) = (world.invite("bob", "ada"), world.invite("ada", "bob"));
    let (to_ada, to_bob) = (world.invitation(0, "ada"), world.invitation(1, "bob"));
    world.fill();
    let new = json!({ "events": [{
        "summary": "New",
        "start": { "date": "2026-01-05", "time": "09:00:00", "utc": true },
        "end": { "date": "2026-01-05", "time": "10:00:00", "utc": true },
        "attendees": [{ "email": "ada@localhost" }],
    }] });
    // A new one needs room.
    let events = "/mail/bob/api/calendar/events";
    assert_eq!(world.afar(1, "POST", events, &new), 507);
    let accept = format!("{to_bob}/action?type=accept");
    assert_eq!(world.afar(1, "PUT", &accept, &Value::Null), 200);
    let mut changed = world.here(1, "GET", &bobs, &Value::Null).json();
    changed["events"][0]["summary"] = json!("A much longer summary than there was before");
    assert_eq!(world.afar(1, "PUT", &bobs, &changed), 200);
    let decline = format!("{to_ada}/action?type=decline");
    assert_eq!(world.afar(0, "PUT", &decline, &Value::Null), 200);
    let mut held = world.here(1, "GET", &bobs, &Value::Null).json();
    assert_eq!(held["events"][0]["attendees"][0]["status"], "declined");
    // A moved meeting needs new replies.
    held["events"][0]["start"]["time"] = json!("08:00:00");
    assert_eq!(world.afar(1, "PUT", &bobs, &held), 200);
    world.invitation(0, "ada");
    for (who, path) in [(1, &bobs), (0, &adas)] {
        assert_eq!(world.afar(who, "DELETE", path, &Value::Null), 200);
    }
}

#[test]
fn documents_can_become_smaller_and_go() {
    let mut world = World::new();
    let documents = "/docs/ada/notes/api/data/documents";
    let long = json!({ "Text": "x".repeat(1000) });
    let made = world.here(0, "POST", documents, &long);
    let path = made.header("location").unwrap().to_owned();
    world.fill();
    let ada = |method: &str, path: &str, body: &Value| world.afar(0, method, path, body);
    assert_eq!(ada("POST", documents, &json!({})), 507);
    assert_eq!(
        ada("PUT", &format!("{path}/Body/file"), &json!("content")),
        507
    );
    assert_eq!(ada("PUT", &path, &json!({ "Text": "x".repeat(2000) })), 507);
    assert_eq!(ada("PUT", &path, &json!({ "Text": "short" })), 200);
    assert_eq!(ada("DELETE", &path, &Value::Null), 200);
}
