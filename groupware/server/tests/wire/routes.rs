//! The list of routes with their methods, the names and types in `/metrics`, and the files of pages.

use std::collections::BTreeSet;

use groupware_server::Server;
use insta::assert_snapshot;

use crate::browser::{HTML, text};
use crate::support::{admin, send, start};
use crate::transcript::reply_text;

/// A path for every route.
const PATHS: [&str; 92] = [
    "/",
    "/account",
    "/account/app-passwords",
    "/account/app-passwords/remove",
    "/account/password",
    "/account/sessions/end",
    "/admin/mail/fill",
    "/admin/reset",
    "/admin/users",
    "/admin/users/x",
    "/admin/users/x/admin",
    "/admin/users/x/app-passwords",
    "/admin/users/x/app-passwords/x",
    "/admin/users/x/disable",
    "/admin/users/x/enable",
    "/admin/users/x/mail",
    "/admin/users/x/mail/x",
    "/admin/users/x/mail/x/x",
    "/admin/users/x/reset",
    "/admin/users/x/sessions",
    "/admin/users/x/sessions/x",
    "/assets/x",
    "/box/x",
    "/calendar",
    "/calendar/event/x",
    "/calendar/event/x/answer",
    "/calendar/event/x/delete",
    "/calendar/event/x/edit",
    "/calendar/month/x",
    "/calendar/new",
    "/calendar/others",
    "/calendar/week",
    "/calendar/week/x",
    "/docs/x/api/data",
    "/docs/x/x/api/data/access",
    "/docs/x/x/api/data/documents",
    "/docs/x/x/api/data/documents/unid/x",
    "/docs/x/x/api/data/documents/unid/x/x",
    "/docs/x/x/api/data/documents/unid/x/x/x",
    "/folders",
    "/folders/x",
    "/healthz",
    "/invitations",
    "/invitations/x",
    "/invitations/x/answer",
    "/login",
    "/logout",
    "/lookup/records",
    "/lookup/records/bulk",
    "/lookup/x/x",
    "/lookup/x/x/x",
    "/mail/x/api/calendar",
    "/mail/x/api/calendar/events",
    "/mail/x/api/calendar/events/x",
    "/mail/x/api/calendar/events/x/action",
    "/mail/x/api/calendar/events/x/instances",
    "/mail/x/api/calendar/events/x/notices",
    "/mail/x/api/calendar/invitations",
    "/mail/x/api/calendar/notices/x",
    "/mail/x/api/calendar/notices/x/action",
    "/mail/x/api/mail/drafts",
    "/mail/x/api/mail/folders",
    "/mail/x/api/mail/folders/x",
    "/mail/x/api/mail/folders/x/messages",
    "/mail/x/api/mail/inbox",
    "/mail/x/api/mail/messages/x",
    "/mail/x/api/mail/messages/x/attachments/x",
    "/mail/x/api/mail/outbox",
    "/mail/x/api/mail/quota",
    "/mail/x/api/mail/sent",
    "/mail/x/api/mail/trash",
    "/mail/x/api/mail/trash/x",
    "/message/x",
    "/message/x/file/x",
    "/message/x/source",
    "/metrics",
    "/people",
    "/perfSONAR_PS/services/hLS",
    "/readyz",
    "/settings",
    "/sign-in",
    "/sign-out",
    "/trash/empty",
    "/tus/x/x",
    "/tus/x/x/x/x",
    "/users",
    "/users/x",
    "/users/x/admin",
    "/users/x/disabled",
    "/users/x/password",
    "/users/x/remove",
    "/users/x/sessions/end",
];
/// Paths with another body limit or layer of their own.
const WRITE: &str = "/write";

fn metrics(server: &Server) -> String {
    let reply = admin(server, "GET", "/metrics", serde_json::Value::Null);
    assert_eq!(reply.status, 200);
    text(&reply)
}

/// Returns the patterns that requests with made-up methods have matched so far.
fn matched(server: &Server) -> BTreeSet<String> {
    let metrics = metrics(server);
    let counts = metrics
        .lines()
        .filter(|line| line.starts_with("plimsoll_http_request_seconds_count{"))
        .filter(|line| line.contains("method=\"other\""));
    counts
        .map(|line| {
            let route = line.split("route=\"").nth(1).unwrap();
            route.split('"').next().unwrap().to_owned()
        })
        .collect()
}

/// A trailing slash changes nothing, and OPTIONS returns the methods.
#[test]
fn routes_answer_with_a_final_slash_and_to_options() {
    let server = start();
    for path in PATHS.into_iter().chain([WRITE]).filter(|path| *path != "/") {
        for method in ["FROB", "GET"] {
            let bare = send(server.address(), method, path, &[], b"");
            let slash = send(server.address(), method, &format!("{path}/"), &[], b"");
            assert_eq!(bare.status, slash.status, "{method} {path}: {slash:?}");
            assert_eq!(bare.header("allow"), slash.header("allow"), "{path}");
        }
        let options = send(server.address(), "OPTIONS", path, &[], b"");
        let is_tus = path.starts_with("/tus/");
        assert_eq!(options.status, 204, "{path}: {options:?}");
        assert!(
            is_tus || options.header("allow").is_some(),
            "{path}: {options:?}"
        );
    }
    // For the server itself, and for an unknown path.
    let whole = send(server.address(), "OPTIONS", "*", &[], b"");
    assert_eq!(whole.status, 204, "{whole:?}");
    let nowhere = send(server.address(), "OPTIONS", "/no/such/place", &[], b"");
    assert_eq!(nowhere.status, 404, "{nowhere:?}");
}

/// The response to an unknown method lists the allowed ones.
#[test]
fn routes_and_their_methods() {
    let server = start();
    let (mut known, mut list) = (BTreeSet::new(), String::new());
    for path in PATHS.into_iter().chain([WRITE]) {
        let reply = send(server.address(), "FROB", path, &[], b"");
        assert_eq!(reply.status, 405, "{path}: {reply:?}");
        let now = matched(&server);
        let new: Vec<&String> = now.difference(&known).collect();
        assert_eq!(
            new.len(),
            1,
            "{path}: one route, and none that was there already"
        );
        list += &format!("{} {}\n", new[0], reply.header("allow").unwrap());
        known = now;
    }
    assert_snapshot!(list);
}

/// Names, types, and labels; no values.
#[test]
fn metrics_and_their_types() {
    let server = start();
    send(server.address(), "GET", "/healthz", &[], b"");
    let reply = admin(&server, "GET", "/metrics", serde_json::Value::Null);
    let mut lines = Vec::new();
    for line in text(&reply).lines() {
        let line = match line.starts_with('#') {
            true => line.to_owned(),
            false => {
                let (name, _) = line.rsplit_once(' ').unwrap();
                // Buckets have one name.
                name.split(",le=\"").next().unwrap().to_owned()
            }
        };
        if lines.last() != Some(&line) {
            lines.push(line);
        }
    }
    let mut head = reply;
    head.body.clear();
    assert_snapshot!(format!("{}{}", reply_text(&head), lines.join("\n")));
}

/// Their names change with their content.
#[test]
fn files_that_pages_ask_for() {
    let server = start();
    let page = send(server.address(), "GET", "/sign-in", &[HTML], b"");
    let page = text(&page);
    let mut said = String::new();
    for rest in page.split("\"/assets/").skip(1) {
        let path = format!("/assets/{}", rest.split('"').next().unwrap());
        let mut reply = send(server.address(), "GET", &path, &[], b"");
        let bytes = std::mem::take(&mut reply.body).len();
        said += &format!("### GET {path}\n{}({bytes} bytes)\n\n", reply_text(&reply));
    }
    let none = send(server.address(), "GET", "/assets/style-0.css", &[], b"");
    said += &format!("### GET /assets/style-0.css\n{}", reply_text(&none));
    assert_snapshot!(said);
}
