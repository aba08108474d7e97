//! Changes based on an outdated version: the response of each front to each kind of user, and no
//! effect.

use groupware_server::Server;
use serde_json::json;

use crate::browser::{Browser, between, encode};
use crate::support::*;

/// Ada owns everything but the document, which dan has written in her database; cyd may read it, and ben has no rights.
const USERS: [&str; 4] = ["ada", "dan", "cyd", "ben"];

/// A change based on a version that is not the last one.
struct Stale {
    front: &'static str,
    method: &'static str,
    path: String,
    headers: Vec<(&'static str, String)>,
    body: Body,
    /// The status for users that may make the change.
    conflict: u16,
    /// Whether dan may make it, too.
    is_shared: bool,
}

enum Body {
    Bytes(Vec<u8>),
    /// The fields of a form.
    Form(Vec<(&'static str, String)>),
    /// The same, encoded as a form that may have files.
    Multipart(Vec<(&'static str, String)>),
}

impl Body {
    /// Its bytes, with the proof that the form comes from a page.
    fn bytes(&self, proof: &str) -> Vec<u8> {
        let text = match self {
            Self::Bytes(bytes) => return bytes.clone(),
            Self::Form(fields) => {
                let pairs = fields.iter().map(|(name, value)| {
                    let value = encode(value);
                    format!("{name}={value}&")
                });
                format!("{}proof={proof}", pairs.collect::<String>())
            }
            Self::Multipart(fields) => {
                let part = |name: &str, value: &str| {
                    format!(
                        "--line\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                    )
                };
                let parts = fields.iter().map(|(name, value)| part(name, value));
                format!(
                    "{}{}--line--\r\n",
                    parts.collect::<String>(),
                    part("proof", proof)
                )
            }
        };
        text.into_bytes()
    }
}

struct World {
    server: Server,
    sessions: Vec<(String, String)>,
}

impl World {
    fn new() -> Self {
        let server = start();
        let passwords = register(&server, &USERS);
        let sessions = USERS.iter().zip(&passwords).map(|(name, password)| {
            let browser = Browser::sign_in(&server, name, password);
            (browser.cookie, browser.proof)
        });
        let sessions = sessions.collect();
        Self { server, sessions }
    }

    fn send(
        &self,
        who: Option<usize>,
        (method, path): (&str, &str),
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let session = who.map(|who| ("cookie", self.sessions[who].0.as_str()));
        let own = [("sec-fetch-site", "same-origin")];
        let session: Vec<_> = session.into_iter().collect();
        let headers = [&own, &session[..], headers].concat();
        send(self.server.address(), method, path, &headers, body)
    }

    fn json(&self, who: usize, method: &str, path: &str, body: &serde_json::Value) -> Reply {
        let kind = [("content-type", "application/json")];
        let reply = self.send(
            Some(who),
            (method, path),
            &kind,
            body.to_string().as_bytes(),
        );
        assert!(reply.status < 300, "{method} {path}: {reply:?}");
        reply
    }

    fn get(&self, path: &str) -> Reply {
        let reply = self.send(Some(0), ("GET", path), &[], b"");
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply
    }

    fn tag(&self, path: &str) -> String {
        self.get(path).header("etag").expect("a tag").to_owned()
    }

    /// The statuses of this change for all users, and without a session.
    fn ask_all(&self, stale: &Stale) -> Vec<u16> {
        let everybody = (0..USERS.len()).map(Some).chain([None]);
        let statuses = everybody.map(|who| {
            let headers = stale.headers.iter().map(|(name, value)| (*name, &**value));
            let headers: Vec<_> = headers.collect();
            let proof = who.map_or("", |who| self.sessions[who].1.as_str());
            let body = stale.body.bytes(proof);
            self.send(who, (stale.method, &stale.path), &headers, &body)
                .status
        });
        statuses.collect()
    }
}

fn owned(fields: &[(&'static str, &str)]) -> Vec<(&'static str, String)> {
    let owned = fields
        .iter()
        .map(|(name, value)| (*name, (*value).to_owned()));
    owned.collect()
}

fn location(reply: &Reply) -> String {
    reply.header("location").expect("a place").to_owned()
}

fn of_a_program(
    front: &'static str,
    (method, path): (&'static str, &str),
    (kind, tag): (&str, &str),
    body: &[u8],
) -> Stale {
    Stale {
        front,
        method,
        path: path.to_owned(),
        headers: vec![
            ("content-type", kind.to_owned()),
            ("if-match", tag.to_owned()),
        ],
        body: Body::Bytes(body.to_vec()),
        conflict: 412,
        is_shared: front == "documents",
    }
}

fn of_a_page(path: String, body: Body) -> Stale {
    let kind = match body {
        Body::Multipart(_) => "multipart/form-data; boundary=line",
        _ => "application/x-www-form-urlencoded",
    };
    Stale {
        front: "pages",
        method: "POST",
        path,
        headers: vec![("content-type", kind.to_owned())],
        body,
        conflict: 409,
        is_shared: false,
    }
}

/// A document of dan with an attachment, both changed since their tags were read.
fn documents(world: &World) -> (Vec<Stale>, Vec<String>) {
    let database = "/docs/ada/notes/api/data";
    world.json(0, "POST", &format!("{database}/documents"), &json!({}));
    let access = json!({ "readers": ["cyd"], "authors": ["dan"] });
    world.json(0, "PUT", &format!("{database}/access"), &access);
    let made = world.json(
        1,
        "POST",
        &format!("{database}/documents"),
        &json!({ "a": 1 }),
    );
    let document = location(&made);
    let file = format!("{document}/Body/a.txt");
    let put = |text: &[u8]| {
        let kind = [("content-type", "text/plain")];
        let done = world.send(Some(1), ("PUT", &file), &kind, text);
        assert!(done.status < 300, "{done:?}");
    };
    put(b"one");
    let (tag, file_tag) = (world.tag(&document), world.tag(&file));
    put(b"two");
    world.json(1, "PUT", &document, &json!({ "a": 2 }));
    let json = ("application/json", &*tag);
    let (text, name) = (("text/plain", &*file_tag), ("application/json", &*file_tag));
    let all = vec![
        of_a_program("documents", ("PUT", &document), json, b"{\"a\":3}"),
        of_a_program("documents", ("PATCH", &document), json, b"{\"a\":3}"),
        of_a_program("documents", ("DELETE", &document), json, b""),
        of_a_program("documents", ("PUT", &file), text, b"three"),
        of_a_program("documents", ("PATCH", &file), name, b"{\"name\":\"b\"}"),
        of_a_program("documents", ("DELETE", &file), text, b""),
    ];
    (all, vec![document, file])
}

/// An event that was changed since it was read, as JSON, as iCalendar, and as a form.
fn events(world: &World) -> (Vec<Stale>, Vec<String>) {
    let event = |summary: &str| {
        json!({ "events": [{ "summary": summary,
            "start": { "date": "2061-03-04", "time": "10:00:00", "utc": true },
            "end": { "date": "2061-03-04", "time": "11:00:00", "utc": true } }] })
    };
    let made = world.json(0, "POST", "/mail/ada/api/calendar/events", &event("one"));
    let path = location(&made);
    let as_icalendar = format!("{path}?format=icalendar");
    let tags = [world.tag(&path), world.tag(&as_icalendar)];
    let page = format!("/calendar/event/{}", path.rsplit('/').next().unwrap());
    let edit = String::from_utf8(world.get(&format!("{page}/edit")).body).unwrap();
    let sequence = between(&edit, "name=\"sequence\" value=\"", "\"").to_owned();
    let text = world.get(&as_icalendar).body;
    world.json(0, "PUT", &path, &event("two"));
    let body = event("three").to_string();
    let json = ("application/json", &*tags[0]);
    let fields = [
        ("title", "three"),
        ("start_day", "2061-03-04"),
        ("start_time", "10:00"),
        ("end_day", "2061-03-04"),
        ("end_time", "11:00"),
        ("place", ""),
        ("people", ""),
        ("about", ""),
        ("sequence", &*sequence),
    ];
    let fields = Body::Form(owned(&fields));
    let all = vec![
        of_a_program("calendar", ("PUT", &path), json, body.as_bytes()),
        of_a_program("calendar", ("DELETE", &path), json, b""),
        of_a_program(
            "calendar",
            ("PUT", &format!("{path}/action?type=delete")),
            json,
            b"",
        ),
        of_a_program(
            "calendar",
            ("PUT", &path),
            ("text/calendar", &tags[1]),
            &text,
        ),
        of_a_page(format!("{page}/edit"), fields),
    ];
    (all, vec![path, as_icalendar])
}

/// A draft that was saved in another window since it was opened.
fn drafts(world: &World) -> (Vec<Stale>, Vec<String>) {
    let saved = world.json(
        0,
        "POST",
        "/mail/ada/api/mail/drafts",
        &json!({ "subject": "one", "to": ["ben"] }),
    );
    let path = location(&saved);
    let draft = path.rsplit('/').next().unwrap();
    let page = world.get(&format!("/write?draft={draft}")).body;
    let page = String::from_utf8(page).unwrap();
    let seen = between(&page, "name=\"seen\" value=\"", "\"").to_owned();
    world.json(0, "PUT", &path, &json!({ "subject": "two", "to": ["ben"] }));
    let all = ["save", "send"].map(|what| {
        let fields = [
            ("to", "ben"),
            ("subject", "three"),
            ("text", "b"),
            ("draft", draft),
            ("seen", &*seen),
            ("do", what),
        ];
        of_a_page("/write".to_owned(), Body::Multipart(owned(&fields)))
    });
    (all.into(), vec![path])
}

/// A chunk for an earlier offset.
fn chunks(world: &World) -> (Vec<Stale>, Vec<String>) {
    let made = world.json(0, "POST", "/docs/ada/files/api/data/documents", &json!({}));
    let unid = location(&made).rsplit('/').next().unwrap().to_owned();
    let create = [
        ("tus-resumable", "1.0.0"),
        ("upload-length", "10"),
        ("content-type", "application/offset+octet-stream"),
    ];
    let path = format!("/tus/ada/files/{unid}/Body");
    let begun = world.send(Some(0), ("POST", &path), &create, b"12345");
    assert_eq!(begun.status, 201, "{begun:?}");
    let stale = |method, offset: &str| Stale {
        front: "tus",
        method,
        path: location(&begun),
        headers: vec![
            ("tus-resumable", "1.0.0".to_owned()),
            ("upload-offset", offset.to_owned()),
            ("content-type", "application/offset+octet-stream".to_owned()),
        ],
        body: Body::Bytes(b"xx".to_vec()),
        conflict: 409,
        is_shared: false,
    };
    let mut all = vec![stale("PATCH", "0"), stale("PATCH", "7")];
    let mut overridden = stale("POST", "0");
    let header = ("x-http-method-override", "PATCH".to_owned());
    overridden.headers.push(header);
    all.push(overridden);
    (all, Vec::new())
}

#[test]
fn no_front_lets_a_stale_change_take_effect() {
    let world = World::new();
    let (mut all, mut things) = (Vec::new(), Vec::new());
    for (some, of) in [
        documents(&world),
        events(&world),
        drafts(&world),
        chunks(&world),
    ] {
        all.extend(some);
        things.extend(of);
    }
    let look = || -> Vec<Vec<u8>> { things.iter().map(|path| world.get(path).body).collect() };
    let before = look();
    for stale in &all {
        let statuses = world.ask_all(stale);
        let row = format!(
            "{} {} {}: {statuses:?}",
            stale.front, stale.method, stale.path
        );
        let [owner, author, others @ ..] = &statuses[..] else {
            panic!("{row}")
        };
        assert_eq!(*owner, stale.conflict, "{row}");
        // Any other user is rejected without information on versions; a private page of another user is a 404.
        let refused = |status: &u16| matches!(status, 303 | 401 | 403 | 404);
        match stale.is_shared {
            true => assert_eq!(*author, stale.conflict, "{row}"),
            false => assert!(refused(author), "{row}"),
        }
        assert!(others.iter().all(refused), "{row}");
        assert!(look() == before, "{row}");
    }
    // With the last version, the same changes succeed.
    let tag = world.tag(&all[0].path);
    let now = of_a_program(
        "documents",
        ("PUT", &all[0].path),
        ("application/json", &tag),
        b"{\"a\":3}",
    );
    assert_eq!(world.ask_all(&now), [200, 412, 403, 403, 401]);
}
