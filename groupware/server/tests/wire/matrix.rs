//! Every route with every allowed method, for every kind of user: who gets access. The list of
//! routes is the router's own, so that none is missed.

use std::collections::BTreeSet;

use groupware_server::Server;
use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::support::{Reply, TOKEN, admin, register, send, start};

const DATABASE: &str = "/docs/ada/notes/api/data";
const MESSAGE: &str = "From: ada@localhost\r\nTo: ada@localhost\r\nSubject: x\r\nMIME-Version: 1.0\r\n\
    Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\nContent-Type: text/plain\r\n\r\nx\r\n\
    --m\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename=\"a.txt\"\r\n\r\n\
    file\r\n--m--\r\n";

/// The kinds of users. All data is ada's; cyd and dan have her grants; eve manages users; the
/// bearer of the token is none of them.
const WHO: [&str; 7] = [
    "stranger", "other", "reader", "author", "owner", "manager", "token",
];

/// A server with a resource at every route.
struct World {
    server: Server,
    /// The cookie and the form's proof of ben, cyd, dan, ada, and eve.
    signed_in: Vec<(String, String)>,
    names: Vec<(&'static str, &'static str, String)>,
}

fn last(reply: &Reply) -> String {
    assert!(reply.status < 300, "{reply:?}");
    let path = reply.header("location").expect("it says where");
    path.rsplit('/').next().unwrap().to_owned()
}

impl World {
    fn new() -> Self {
        let server = start();
        let users = ["ben", "cyd", "dan", "ada", "eve"];
        let passwords = register(&server, &users);
        let signed_in: Vec<_> = users
            .iter()
            .zip(&passwords)
            .map(|(name, password)| Browser::sign_in(&server, name, password))
            .map(|browser| (browser.cookie, browser.proof))
            .collect();
        let manages = admin(&server, "PUT", "/admin/users/eve/admin", json!(null));
        assert_eq!(manages.status, 200);
        let mut world = Self {
            server,
            signed_in,
            names: Vec::new(),
        };
        world.fill();
        world
    }

    fn ada(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let headers = [&[("cookie", self.signed_in[3].0.as_str())], headers].concat();
        send(self.server.address(), method, path, &headers, body)
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> Reply {
        let kind = [("content-type", "application/json")];
        self.ada(method, path, &kind, body.to_string().as_bytes())
    }

    fn fill(&mut self) {
        let documents = format!("{DATABASE}/documents");
        let document = last(&self.json("POST", &documents, &json!({"Subject": "x"})));
        let file = format!("{documents}/unid/{document}/Body/a");
        assert_eq!(self.ada("PUT", &file, &[], b"file").status, 201);
        let to = json!({"readers": ["cyd"], "authors": ["dan"]});
        assert_eq!(
            self.json("PUT", &format!("{DATABASE}/access"), &to).status,
            200
        );
        let upload = [
            ("tus-resumable", "1.0.0"),
            ("upload-length", "10"),
            ("upload-metadata", "filename YQ=="),
        ];
        let path = format!("/tus/ada/notes/{document}/Body");
        let upload = last(&self.ada("POST", &path, &upload, b""));
        let event = json!({"events": [{
            "summary": "x", "start": {"date": "2061-03-04", "time": "10:00:00", "utc": true},
            "end": {"date": "2061-03-04", "time": "11:00:00", "utc": true},
        }]});
        let event = last(&self.json("POST", "/mail/ada/api/calendar/events", &event));
        let folder = json!({"name": "x"});
        let folder = last(&self.json("POST", "/mail/ada/api/mail/folders", &folder));
        let mime = [("content-type", "message/rfc822")];
        let outbox = "/mail/ada/api/mail/outbox";
        let message = last(&self.ada("POST", outbox, &mime, MESSAGE.as_bytes()));
        let made = json!({"label": "x"});
        admin(&self.server, "POST", "/admin/users/ben/app-passwords", made);
        let record = json!({"type": ["host"], "host-name": ["x.example"]});
        let bearer = format!("Bearer {TOKEN}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        let record = record.to_string();
        let address = self.server.address();
        let record = send(
            address,
            "POST",
            "/lookup/records",
            &headers,
            record.as_bytes(),
        )
        .json();
        let record = record["uri"]
            .as_str()
            .expect("it has an address")
            .to_owned();
        let record = record.rsplit('/').next().unwrap_or_default().to_owned();
        self.names = vec![
            ("", "{mailbox}", "ada".into()),
            ("", "{database}", "notes".into()),
            ("", "{unid}", document),
            ("", "{item}", "Body".into()),
            ("/docs", "{file}", "a".into()),
            ("", "{upload}", upload),
            ("/mail/{mailbox}/api/calendar/events", "{id}", event.clone()),
            ("", "{uid}", event),
            ("/mail/{mailbox}/api/mail/folders", "{id}", folder.clone()),
            ("/folders", "{id}", folder),
            ("/mail/{mailbox}/api/mail/messages", "{id}", message.clone()),
            ("/message", "{id}", message),
            ("/mail", "{file}", "a.txt".into()),
            ("/message", "{name}", "a.txt".into()),
            ("/admin", "{name}", "ben".into()),
            ("/users", "{name}", "ben".into()),
            ("", "{folder}", "inbox".into()),
            ("", "{day}", "2061-03-04".into()),
            ("", "{month}", "2061-03".into()),
            ("/lookup", "{kind}", "host".into()),
            ("/lookup", "{id}", record),
            ("/lookup", "{key}", "host-name".into()),
        ];
    }

    /// Returns a path of a route; unknown parameters name nothing.
    fn path(&self, route: &str) -> String {
        let mut path = route.to_owned();
        for (prefix, name, value) in &self.names {
            if route.starts_with(prefix) {
                path = path.replace(name, value);
            }
        }
        while let Some((before, rest)) = path.split_once('{') {
            let after = rest.split_once('}').expect("a name ends").1;
            path = format!("{before}x{after}");
        }
        path
    }

    fn ask(&self, who: &str, method: &str, route: &str) -> u16 {
        let bearer = format!("Bearer {TOKEN}");
        let mut headers = vec![
            ("sec-fetch-site", "same-origin"),
            ("tus-resumable", "1.0.0"),
        ];
        let mut proof = "";
        match who {
            "stranger" => {}
            "token" => headers.push(("authorization", &bearer)),
            who => {
                let at = WHO.iter().position(|known| *known == who).unwrap() - 1;
                headers.push(("cookie", &self.signed_in[at].0));
                proof = &self.signed_in[at].1;
            }
        }
        let is_program = ["/mail/", "/docs/", "/tus/", "/admin/", "/lookup/", "/login"];
        let is_program = is_program.iter().any(|start| route.starts_with(start));
        let (kind, body) = match is_program {
            true => ("application/json", "{}".to_owned()),
            false => (
                "application/x-www-form-urlencoded",
                format!("proof={proof}"),
            ),
        };
        let has_body = matches!(method, "POST" | "PUT" | "PATCH");
        if has_body {
            headers.push(("content-type", kind));
        }
        let body = if has_body { body.as_bytes() } else { b"" };
        let path = self.path(route);
        send(self.server.address(), method, &path, &headers, body).status
    }
}

/// Returns the routes with their methods; routes that remove resources of others come last.
fn cells(server: &Server) -> Vec<(String, String)> {
    let mut cells = BTreeSet::new();
    let world = |route: &str| {
        let mut path = route.to_owned();
        while let Some((before, rest)) = path.split_once('{') {
            path = format!("{before}x{}", rest.split_once('}').expect("a name ends").1);
        }
        path
    };
    for route in server.routes() {
        let reply = send(server.address(), "FROB", &world(&route), &[], b"");
        assert_eq!(reply.status, 405, "{route}: {reply:?}");
        let methods = reply.header("allow").expect("it says what it takes");
        for method in methods.split(',').filter(|method| *method != "HEAD") {
            let late = match (method, &*route) {
                ("DELETE", route) if route.contains("/{file}") => 1,
                ("DELETE", _) => 2,
                (_, "/admin/reset" | "/admin/users/{name}/reset" | "/trash/empty") => 3,
                (_, "/logout" | "/sign-out" | "/admin/users/{name}/disable") => 4,
                _ => 0,
            };
            cells.insert((late, route.clone(), method.to_owned()));
        }
    }
    let cells = cells.into_iter();
    cells.map(|(_, route, method)| (route, method)).collect()
}

#[test]
fn who_gets_in_where() {
    let cells = cells(&start());
    assert!(cells.len() > 100, "{cells:?}");
    let columns: Vec<Vec<u16>> = WHO
        .iter()
        .map(|who| {
            let world = World::new();
            let ask = |(route, method): &(String, String)| world.ask(who, method, route);
            cells.iter().map(ask).collect()
        })
        .collect();
    let (mut rows, mut open) = (Vec::new(), Vec::new());
    for (number, (route, method)) in cells.iter().enumerate() {
        let statuses: Vec<u16> = columns.iter().map(|column| column[number]).collect();
        let row = format!("{route} {method}: {statuses:?}");
        let [stranger, other, reader, _, _, manager, token] = statuses[..] else {
            panic!("one of each: {row}")
        };
        // Some routes reject this incomplete request before they check access.
        let refused = |status: u16| (400..500).contains(&status);
        let is_owned = ["/mail/{mailbox}", "/docs/{mailbox}", "/tus/{mailbox}"];
        if is_owned.iter().any(|start| route.starts_with(start)) && method != "OPTIONS" {
            assert!(
                [stranger, other, manager, token].into_iter().all(refused),
                "{row}"
            );
            assert!(method == "GET" || refused(reader), "{row}");
        }
        if route.starts_with("/admin/") {
            let others = &statuses[..6];
            if others.iter().any(|status| *status != 401) {
                open.push(row.clone());
            }
        }
        if route.starts_with("/users") {
            // Redirected to the sign-in page, without a session, or not allowed.
            let is_out = matches!(stranger, 303 | 401) && statuses[1..5] == [403; 4];
            let is_let_in = !matches!(manager, 401 | 403);
            if !is_out || !is_let_in || !matches!(token, 303 | 401) {
                open.push(row);
            }
        }
        let statuses: Vec<String> = statuses
            .iter()
            .map(|status| format!("{status:>8}"))
            .collect();
        rows.push(format!("{} {method:<7} {route}", statuses.concat()));
    }
    assert!(open.is_empty(), "open to whom they shouldn't be: {open:#?}");
    rows.sort_by(|a: &String, b: &String| a[65..].cmp(&b[65..]));
    let names: Vec<String> = WHO.iter().map(|who| format!("{who:>8}")).collect();
    assert_snapshot!(format!("{}\n{}", names.concat(), rows.join("\n")));
}
