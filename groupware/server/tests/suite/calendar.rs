//! The calendar over HTTP: every route for its owner, for another user, and without a user; many
//! concurrent users.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Barrier,
    thread,
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use groupware_server::{Config, Data, Server};
use serde_json::{Value, json};

/// A server with users `user00000` … and their application passwords.
struct World {
    server: Server,
    passwords: Vec<String>,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl World {
    fn new(users: usize) -> Self {
        Self::with(Data::Memory, users)
    }

    fn with(data: Data, users: usize) -> Self {
        let mut config = Config::new(data);
        // Tries wrong passwords on each route; throttling has its own tests.
        config.limits.sign_in_failures = 1_000;
        let server = Server::start(config).unwrap();
        let names: Vec<_> = (0..users).map(|n| json!({"name": user(n)})).collect();
        let body = json!({"users": names, "app_passwords": true}).to_string();
        let bearer = format!("Bearer {}", server.admin_token());
        let head = [
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        let answer = send(server.address(), "POST", "/admin/users", &head, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        let passwords = answer.json()["users"]
            .as_array()
            .unwrap()
            .iter()
            .map(|user| user["app_password"].as_str().unwrap().to_owned())
            .collect();
        Self { server, passwords }
    }

    fn request(&self, who: usize, method: &str, path: &str, body: &str) -> Answer {
        self.request_as(who, method, path, ("application/json", body))
    }

    fn request_as(
        &self,
        who: usize,
        method: &str,
        path: &str,
        (media, body): (&str, &str),
    ) -> Answer {
        let head = [("Content-Type", media)];
        self.request_with(who, (method, path), &head, body)
    }

    fn request_with(
        &self,
        who: usize,
        (method, path): (&str, &str),
        head: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let secret = format!("{}:{}", user(who), self.passwords[who]);
        let basic = format!("Basic {}", BASE64_STANDARD.encode(secret));
        let head = [&[("Authorization", basic.as_str())], head].concat();
        send(self.server.address(), method, path, &head, body)
    }

    /// Creates a meeting and returns its path.
    fn create(&self, organizer: usize, day: usize, attendees: &[usize]) -> String {
        let body = meeting(day, attendees).to_string();
        let answer = self.request(organizer, "POST", &at(organizer, "/events"), &body);
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.header("Location").unwrap().to_owned()
    }

    /// The paths of a user's unanswered invitations.
    fn invitations(&self, who: usize) -> Vec<String> {
        let answer = self.request(who, "GET", &at(who, "/invitations"), "");
        assert_eq!(answer.status, 200, "{answer:?}");
        if answer.body.is_empty() {
            return Vec::new();
        }
        let notices = answer.json()["notices"].as_array().unwrap().clone();
        notices
            .iter()
            .map(|notice| notice["href"].as_str().unwrap().to_owned())
            .collect()
    }

    fn events(&self, who: usize) -> Vec<Value> {
        let path = at(
            who,
            "/events?since=2026-01-01T00:00:00Z&before=2026-02-01T00:00:00Z",
        );
        let answer = self.request(who, "GET", &path, "");
        assert_eq!(answer.status, 200, "{answer:?}");
        if answer.body.is_empty() {
            return Vec::new();
        }
        answer.json()["events"].as_array().unwrap().clone()
    }
}

fn user(number: usize) -> String {
    format!("user{number:05}")
}

fn at(owner: usize, rest: &str) -> String {
    format!("/mail/{}/api/calendar{rest}", user(owner))
}

fn meeting(day: usize, attendees: &[usize]) -> Value {
    let people: Vec<_> = attendees
        .iter()
        .map(|number| json!({"email": format!("{}@localhost", user(*number))}))
        .collect();
    json!({"events": [{
        "summary": "Plan",
        "start": {"date": format!("2026-01-{day:02}"), "time": "09:00:00", "utc": true},
        "end": {"date": format!("2026-01-{day:02}"), "time": "10:00:00", "utc": true},
        "attendees": people,
    }]})
}

/// One request on a connection of its own.
fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    head: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(120)))
        .unwrap();
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    for (name, value) in head {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("a whole head");
    Answer {
        status: head[9..12].parse().unwrap(),
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

#[test]
fn a_meeting_from_creation_to_answer() {
    let world = World::new(10);
    let path = world.create(0, 5, &[1, 2]);
    let ghost = &world.events(1)[0];
    assert_eq!(ghost["x-lotus-noticetype"]["data"], "I");
    let notice = world.invitations(1).remove(0);
    let read = world.request(1, "GET", &notice, "");
    assert_eq!(read.json()["href"], notice.as_str());
    let accept = format!("{notice}/action?type=accept");
    let answer = world.request(1, "PUT", &accept, "");
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert_eq!(answer.header("Content-Type"), None);
    assert!(world.invitations(1).is_empty());
    let own = world.events(1)[0]["href"].as_str().unwrap().to_owned();
    assert_eq!(world.request(1, "GET", &own, "").status, 200);
    let original = world.request(0, "GET", &path, "").json();
    assert_eq!(original["events"][0]["attendees"][0]["status"], "accepted");
    let body = json!({"delegateTo": "user00009"}).to_string();
    let delegate = format!("{own}/action?type=delegate");
    assert_eq!(world.request(1, "PUT", &delegate, &body).status, 200);
    assert!(world.events(1).is_empty());
    assert_eq!(world.invitations(9).len(), 1);
    assert_eq!(world.request(0, "DELETE", &path, "").status, 200);
    assert!(world.invitations(9).is_empty());
}

#[test]
fn every_route_is_the_owners_alone() {
    let world = World::new(3);
    let routes = [
        ("GET", "", 404),
        ("GET", "/events", 200),
        ("POST", "/events", 201),
        ("GET", "/events/UID", 200),
        ("PUT", "/events/UID", 200),
        ("GET", "/events/UID/notices", 200),
        ("GET", "/events/UID/instances", 400),
        ("PUT", "/events/UID/action?type=processAll", 200),
        ("GET", "/invitations", 200),
        ("GET", "/notices/N", 404),
        ("PUT", "/notices/N/action?type=accept", 404),
        ("DELETE", "/events/UID", 200),
    ];
    let mut event = meeting(5, &[1]);
    event["events"][0]["id"] = json!("UID");
    let event = event.to_string();
    for (method, rest, own) in routes {
        let path = at(0, rest);
        let body = match (method, rest.contains("action")) {
            ("POST" | "PUT", false) => event.as_str(),
            _ => "",
        };
        let nobody = send(world.server.address(), method, &path, &[], body);
        assert_eq!(nobody.status, 401, "{method} {rest}: {nobody:?}");
        assert_eq!(nobody.json()["code"], 401);
        let other = world.request(1, method, &path, body);
        assert_eq!(other.status, 403, "{method} {rest}: {other:?}");
        assert_eq!(other.json()["code"], 403);
        let wrong = [("Authorization", "Basic dXNlcjAwMDAwOndyb25n")];
        let wrong = send(world.server.address(), method, &path, &wrong, body);
        assert_eq!(wrong.status, 401, "{method} {rest}: {wrong:?}");
        let owner = world.request(0, method, &path, body);
        assert_eq!(owner.status, own, "{method} {rest}: {owner:?}");
        if own >= 400 {
            assert_eq!(owner.json()["code"], own, "{method} {rest}");
        }
    }
}

#[test]
fn lists_carry_their_range_or_nothing_at_all() {
    let world = World::new(2);
    for list in ["/events", "/invitations"] {
        let answer = world.request(0, "GET", &at(0, list), "");
        assert_eq!((answer.status, answer.body.as_str()), (200, ""));
        assert_eq!(answer.header("Content-Type"), None);
        assert_eq!(answer.header("Content-Range"), None);
    }
    for day in 5..9 {
        world.create(0, day, &[]);
    }
    let range = "since=2026-01-01T00:00:00Z&before=2026-02-01T00%3A00%3A00Z";
    let path = at(0, &format!("/events?{range}&start=1&count=2&shape=round"));
    let answer = world.request(0, "GET", &path, "");
    assert_eq!(answer.header("Content-Range"), Some("items 1-2"));
    assert_eq!(answer.header("Content-Type"), Some("application/json"));
    assert_eq!(answer.json()["events"].as_array().unwrap().len(), 2);
    let answer = world.request(0, "GET", &format!("{path}&format=icalendar"), "");
    assert_eq!(answer.header("Content-Type"), Some("text/calendar"));
    let suffixed = path.replace("user00000", "user00000.nsf");
    assert_eq!(world.request(0, "GET", &suffixed, "").status, 200);
}

#[test]
fn icalendar_is_taken_and_answered_in_kind() {
    let world = World::new(2);
    let text = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:a/b@c\r\n\
        DTSTART:20260105T090000Z\r\nDURATION:PT1H\r\nSUMMARY:Plan\r\n\
        ATTENDEE:mailto:user00001@localhost\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
    let media = ("text/calendar; charset=utf-8", text);
    let answer = world.request_as(0, "POST", &at(0, "/events"), media);
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.header("Content-Type"), Some("text/calendar"));
    assert!(answer.body.starts_with("BEGIN:VCALENDAR\r\n"), "{answer:?}");
    let path = answer.header("Location").unwrap();
    assert_eq!(path, at(0, "/events/a%2Fb@c"));
    assert_eq!(
        world.request(0, "GET", path, "").json()["events"][0]["id"],
        "a/b@c"
    );
    assert_eq!(world.request_as(0, "PUT", path, media).status, 200);
    assert_eq!(world.invitations(1).len(), 1);
}

#[test]
fn who_saw_another_version_changes_nothing() {
    let world = World::new(2);
    let path = world.create(0, 5, &[1]);
    let ask = |method: &str, condition: (&str, &str), body: &str| {
        let head = [("Content-Type", "application/json"), condition];
        world.request_with(0, (method, &path), &head, body)
    };
    let tag = |path: &str| {
        let answer = world.request(0, "GET", path, "");
        answer.header("ETag").unwrap().to_owned()
    };
    let (first, other_form) = (tag(&path), tag(&format!("{path}?format=icalendar")));
    assert_ne!(first, other_form);
    // A client with the current version gets no copy; one with another form does.
    let weak = format!("\"x\", W/{first}");
    let answer = ask("GET", ("If-None-Match", &weak), "");
    assert_eq!((answer.status, &*answer.body), (304, ""), "{answer:?}");
    assert_eq!(answer.header("ETag"), Some(&*first));
    assert_eq!(ask("GET", ("If-None-Match", &other_form), "").status, 200);
    // An attendee's reply is a change, too: an older version must not overwrite it.
    let invitation = world.invitations(1).remove(0);
    let accept = format!("{invitation}/action?type=accept");
    assert_eq!(world.request(1, "PUT", &accept, "").status, 200);
    let body = meeting(6, &[1]).to_string();
    for (method, tag) in [
        ("PUT", &first),
        ("PUT", &other_form),
        ("DELETE", &first),
        ("DELETE", &String::from("W/\"x\"")),
    ] {
        let answer = ask(method, ("If-Match", tag), &body);
        assert_eq!(answer.status, 412, "{answer:?}");
        assert!(answer.body.contains("read it again"), "{answer:?}");
    }
    let second = tag(&path);
    assert_ne!(second, first);
    let known = format!("{first}, {second}");
    assert_eq!(ask("PUT", ("If-Match", &known), &body).status, 200);
    assert_eq!(ask("PUT", ("If-Match", &second), &body).status, 412);
    assert_eq!(ask("PUT", ("If-None-Match", "*"), &body).status, 412);
    let action = format!("{path}/action?type=delete");
    let head = [("If-Match", &*second)];
    let answer = world.request_with(0, ("PUT", &action), &head, "");
    assert_eq!(answer.status, 412, "{answer:?}");
    let now = tag(&format!("{path}?format=icalendar"));
    assert_eq!(ask("DELETE", ("If-Match", &now), "").status, 200);
    assert_eq!(ask("DELETE", ("If-Match", "*"), "").status, 404);
}

#[test]
fn refusals_have_dominos_shape() {
    let world = World::new(2);
    let path = world.create(0, 5, &[1]);
    let event = meeting(5, &[]).to_string();
    let two =
        json!({"events": [{"start": {"date": "2026-01-05"}}, {"start": {"date": "2026-01-05"}}]});
    let (two, none) = (two.to_string(), json!({"events": []}).to_string());
    let large = "x".repeat(300 * 1024);
    let json = "application/json";
    let events = at(0, "/events");
    let action = format!("{path}/action");
    let typed = |rest: &str| format!("{action}?type={rest}");
    let cases = [
        ("POST", events.clone(), (json, ""), 400, Value::Null),
        ("POST", events.clone(), (json, "{"), 400, Value::Null),
        (
            "POST",
            events.clone(),
            (json, two.as_str()),
            400,
            Value::Null,
        ),
        (
            "POST",
            events.clone(),
            (json, none.as_str()),
            400,
            Value::Null,
        ),
        (
            "POST",
            events.clone(),
            ("text/plain", event.as_str()),
            415,
            Value::Null,
        ),
        (
            "POST",
            events.clone(),
            (json, large.as_str()),
            413,
            Value::Null,
        ),
        (
            "POST",
            format!("{events}?workflow=perhaps"),
            (json, event.as_str()),
            400,
            Value::Null,
        ),
        (
            "POST",
            events.clone(),
            ("text/calendar", "hello"),
            400,
            1034.into(),
        ),
        (
            "GET",
            format!("{events}?count=0"),
            (json, ""),
            400,
            Value::Null,
        ),
        (
            "GET",
            format!("{events}?since=now"),
            (json, ""),
            400,
            Value::Null,
        ),
        (
            "GET",
            format!("{events}/nothing"),
            (json, ""),
            404,
            1031.into(),
        ),
        (
            "GET",
            format!("{path}?format=xml"),
            (json, ""),
            400,
            Value::Null,
        ),
        ("PUT", action.clone(), (json, ""), 400, Value::Null),
        ("PUT", typed("dance"), (json, ""), 400, Value::Null),
        ("PUT", typed("counter"), (json, ""), 400, 1028.into()),
        ("PUT", typed("accept"), (json, ""), 400, 1033.into()),
        (
            "PUT",
            typed("accept"),
            ("text/plain", "{}"),
            415,
            Value::Null,
        ),
        ("PATCH", events, (json, ""), 405, Value::Null),
    ];
    for (method, path, body, status, cserror) in cases {
        let answer = world.request_as(0, method, &path, body);
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert_eq!(answer.header("Content-Type"), Some(json), "{method} {path}");
        let error = answer.json();
        assert_eq!(error["code"], status, "{method} {path}");
        assert_eq!(error["cserror"], cserror, "{method} {path}: {error}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|message| !message.is_empty())
        );
    }
}

/// Twenty concurrent users: each invites the next six and accepts four. The replies to one meeting
/// race for the organizer's copy, and none is lost.
#[test]
fn users_at_once_lose_no_answer() {
    const USERS: usize = 20;
    let world = World::new(USERS);
    thread::scope(|scope| {
        for organizer in 0..USERS {
            let world = &world;
            scope.spawn(move || {
                let six: Vec<_> = (1..=6).map(|k| (organizer + k) % USERS).collect();
                world.create(organizer, 1 + organizer % 14, &six);
            });
        }
    });
    thread::scope(|scope| {
        for who in 0..USERS {
            let world = &world;
            scope.spawn(move || {
                for notice in &world.invitations(who)[..4] {
                    let path = format!("{notice}/action?type=accept");
                    assert_eq!(world.request(who, "PUT", &path, "").status, 200);
                }
            });
        }
    });
    let mut accepted = 0;
    for who in 0..USERS {
        assert_eq!(world.events(who).len(), 7);
        assert_eq!(world.invitations(who).len(), 2);
        let own = world
            .events(who)
            .into_iter()
            .find(|line| line["x-lotus-organizer"]["data"] == format!("{}@localhost", user(who)));
        let path = own.unwrap()["href"].as_str().unwrap().to_owned();
        let event = world.request(who, "GET", &path, "").json();
        let people = event["events"][0]["attendees"].as_array().unwrap().clone();
        accepted += people
            .iter()
            .filter(|person| person["status"] == "accepted")
            .count();
    }
    assert_eq!(accepted, 4 * USERS);
}

/// All attendees reply to one meeting at once: each reply changes the organizer's copy, and each
/// succeeds at the first try.
#[test]
fn no_answer_of_a_burst_is_sent_back() {
    const ATTENDEES: usize = 200;
    let folder = tempfile::tempdir().unwrap();
    // On disk, where commits are slow and many decisions are made meanwhile.
    let world = World::with(Data::Folder(folder.path().into()), ATTENDEES + 1);
    let everybody: Vec<_> = (1..=ATTENDEES).collect();
    let path = world.create(0, 5, &everybody);
    let notices: Vec<_> = everybody
        .iter()
        .map(|who| world.invitations(*who).remove(0))
        .collect();
    let all_ready = Barrier::new(ATTENDEES);
    let statuses: Vec<_> = thread::scope(|scope| {
        let answers: Vec<_> = everybody
            .iter()
            .zip(&notices)
            .map(|(who, notice)| {
                let (world, all_ready) = (&world, &all_ready);
                scope.spawn(move || {
                    let path = format!("{notice}/action?type=accept");
                    all_ready.wait();
                    world.request(*who, "PUT", &path, "").status
                })
            })
            .collect();
        answers.into_iter().map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(statuses, vec![200; ATTENDEES]);
    let event = world.request(0, "GET", &path, "").json();
    let people = event["events"][0]["attendees"].as_array().unwrap().clone();
    let accepted = people.iter().filter(|one| one["status"] == "accepted");
    assert_eq!(accepted.count(), ATTENDEES);
}
