//! Databases that their owner shares, over HTTP: the rights of each user, and every refusal.

use crate::support::*;
use groupware_server::Server;
use serde_json::{Value, json};

struct User<'a> {
    server: &'a Server,
    auth: String,
}

const DATABASE: &str = "/docs/ada/talk/api/data";

impl<'a> User<'a> {
    fn new(server: &'a Server, name: &str) -> Self {
        let auth = basic(name, &register(server, &[name]).remove(0));
        Self { server, auth }
    }

    fn send(&self, method: &str, path: &str, body: &[u8]) -> Reply {
        let headers = [
            ("authorization", &*self.auth),
            ("content-type", "application/json"),
            ("tus-resumable", "1.0.0"),
            ("upload-length", "1"),
            ("upload-metadata", "filename YQ=="),
        ];
        send(self.server.address(), method, path, &headers, body)
    }

    fn json(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.send(method, path, body.to_string().as_bytes())
    }

    fn get(&self, path: &str) -> Reply {
        self.send("GET", path, b"")
    }

    fn grant(&self, to: &Value) -> Reply {
        self.json("PUT", &format!("{DATABASE}/access"), to)
    }

    /// Adds a document; returns its path.
    fn post(&self, subject: &str) -> String {
        let reply = self.json("POST", &documents(), &json!({ "Subject": subject }));
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.header("location").unwrap().to_owned()
    }
}

fn documents() -> String {
    format!("{DATABASE}/documents")
}

/// All read requests for a database and a document in it.
fn reads(document: &str) -> Vec<(&'static str, String)> {
    vec![
        ("GET", documents()),
        ("GET", document.to_owned()),
        ("GET", format!("{document}/Body/a")),
    ]
}

fn writes(document: &str) -> Vec<(&'static str, String)> {
    vec![
        ("PUT", document.to_owned()),
        ("PATCH", document.to_owned()),
        ("PUT", format!("{document}/Body/a")),
        ("POST", format!("{document}/Body")),
        ("DELETE", format!("{document}/Body/a")),
        ("DELETE", document.to_owned()),
    ]
}

/// Requests that are never granted.
fn owners_own(document: &str) -> Vec<(&'static str, String)> {
    let unid = document.rsplit('/').next().unwrap();
    vec![
        ("GET", "/docs/ada/api/data".to_owned()),
        ("GET", format!("{DATABASE}/access")),
        ("PUT", format!("{DATABASE}/access")),
        ("DELETE", format!("{DATABASE}/access")),
        ("POST", format!("/tus/ada/talk/{unid}/Body")),
        ("HEAD", format!("/tus/ada/{}", "0".repeat(32))),
    ]
}

fn refused(user: &User<'_>, requests: Vec<(&str, String)>) {
    for (method, path) in requests {
        let reply = user.send(method, &path, b"{\"a\":1}");
        assert_eq!(reply.status, 403, "{method} {path}: {reply:?}");
    }
}

#[test]
fn strangers_readers_and_authors_may_do_what_is_granted_and_no_more() {
    let server = start();
    let ada = User::new(&server, "ada");
    let [bob, eve] = ["bob", "eve"].map(|name| User::new(&server, name));
    let first = ada.post("first");
    assert_eq!(
        ada.send("PUT", &format!("{first}/Body/a"), b"file").status,
        201
    );
    let post = || vec![("POST", documents())];
    let nobody = ada.get(&format!("{DATABASE}/access"));
    assert_eq!(nobody.json(), json!({ "readers": [], "authors": [] }));

    for requests in [reads(&first), writes(&first), post(), owners_own(&first)] {
        refused(&bob, requests);
    }

    // A reader can read.
    assert_eq!(ada.grant(&json!({ "readers": ["Bob"] })).status, 200);
    assert_eq!(bob.get(&first).json()["Subject"], "first");
    assert_eq!(bob.get(&documents()).json().as_array().unwrap().len(), 1);
    assert_eq!(bob.get(&format!("{first}/Body/a")).body, b"file");
    for requests in [writes(&first), post(), owners_own(&first)] {
        refused(&bob, requests);
    }
    refused(&eve, reads(&first));

    // An author can add documents, and change the author's own.
    assert_eq!(ada.grant(&json!({ "authors": ["*"] })).status, 200);
    let reply = bob.post("reply");
    let read = eve.get(&reply).json();
    assert_eq!(
        (&read["@author"], &read["@href"]),
        (&json!("bob"), &json!(reply))
    );
    assert_eq!(ada.get(&first).json()["@author"], "ada");
    assert_eq!(bob.json("PATCH", &reply, &json!({ "a": 1 })).status, 200);
    assert_eq!(
        bob.send("PUT", &format!("{reply}/Body/a"), b"file").status,
        201
    );
    for requests in [writes(&first), writes(&reply), owners_own(&first)] {
        refused(&eve, requests);
    }
    refused(&bob, writes(&first));

    // The owner can change all of it; other databases stay closed.
    assert_eq!(ada.json("PATCH", &reply, &json!({ "b": 2 })).status, 200);
    let other = "/docs/ada/notes/api/data/documents";
    assert_eq!(ada.json("POST", other, &json!({})).status, 201);
    refused(
        &bob,
        vec![("GET", other.to_owned()), ("POST", other.to_owned())],
    );

    // Without the grant, only the owner has access.
    assert_eq!(
        bob.send("DELETE", &format!("{reply}/Body/a"), b"").status,
        200
    );
    let withdrawn = ada.send("DELETE", &format!("{DATABASE}/access"), b"");
    assert_eq!(withdrawn.status, 200);
    for requests in [reads(&first), writes(&reply), post()] {
        refused(&bob, requests);
    }
}

#[test]
fn a_name_given_anew_inherits_no_grant() {
    let server = start();
    let ada = User::new(&server, "ada");
    let bob = User::new(&server, "bob");
    let first = ada.post("first");
    assert_eq!(ada.grant(&json!({ "readers": ["bob"] })).status, 200);
    assert_eq!(bob.get(&first).status, 200);
    let gone = admin(&server, "DELETE", "/admin/users/bob", Value::Null);
    assert_eq!(gone.status, 204);
    // Users of the same name differ by the second of their registration.
    let second = || {
        ada.get("/docs/ada/api/data")
            .header("date")
            .map(str::to_owned)
    };
    let at = second();
    wait_for("the next second", || second() != at);
    let next = User::new(&server, "bob");
    refused(&next, reads(&first));

    // It isn't listed as granted, either; a client with an older version of the grant gets an error.
    User::new(&server, "eve");
    let granted = || ada.get(&format!("{DATABASE}/access")).json();
    assert_eq!(granted(), json!({ "readers": [], "authors": [] }));
    assert_error(&ada.grant(&json!({ "readers": ["bob", "eve"] })), 409);
    refused(&next, reads(&first));
    assert_eq!(ada.grant(&json!({ "readers": ["eve"] })).status, 200);
    refused(&next, reads(&first));
    assert_eq!(ada.grant(&json!({ "readers": ["bob", "eve"] })).status, 200);
    assert_eq!(next.get(&first).status, 200);
    let both = json!({ "readers": ["bob", "eve"], "authors": [] });
    assert_eq!(granted(), both);
}

#[test]
fn partitions_that_are_no_users_and_names_that_nobody_has() {
    let server = start();
    let ada = User::new(&server, "ada");
    for owner in ["nobody", "%24accounts", "%24health", "..", "a%2Fb"] {
        let path = format!("/docs/{owner}/talk/api/data/documents");
        let reply = ada.get(&path);
        assert!(matches!(reply.status, 403 | 404), "{owner}: {reply:?}");
        let reply = ada.json("POST", &path, &json!({}));
        assert!(matches!(reply.status, 403 | 404), "{owner}: {reply:?}");
    }
    for bad in [
        json!({ "readers": ["nobody"] }),
        json!({ "readers": [""] }),
        json!({ "owners": ["ada"] }),
        json!([]),
    ] {
        assert_error(&ada.grant(&bad), 400);
    }
    let many: Vec<_> = (0..3000).map(|number| format!("user{number:09}")).collect();
    assert_error(&ada.grant(&json!({ "readers": many })), 413);
}
