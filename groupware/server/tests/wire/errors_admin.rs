//! Errors of the admin interface, of sign-in for programs, and of the middleware around all routes.

use std::time::Duration;

use insta::assert_snapshot;

use crate::support::basic;
use crate::transcript::*;

/// Every route with an allowed method.
const ROUTES: [(&str, &str); 18] = [
    ("POST", "/admin/users"),
    ("GET", "/admin/users"),
    ("GET", "/admin/users/eve"),
    ("PUT", "/admin/users/eve"),
    ("DELETE", "/admin/users/eve"),
    ("POST", "/admin/users/eve/reset"),
    ("POST", "/admin/users/eve/disable"),
    ("POST", "/admin/users/eve/enable"),
    ("DELETE", "/admin/users/eve/sessions"),
    ("DELETE", "/admin/users/eve/sessions/x"),
    ("GET", "/admin/users/eve/mail"),
    ("POST", "/admin/users/eve/mail"),
    ("GET", "/admin/users/eve/mail/inbox"),
    ("GET", "/admin/users/eve/mail/inbox/x"),
    ("POST", "/admin/users/eve/app-passwords"),
    ("DELETE", "/admin/users/eve/app-passwords/x"),
    ("POST", "/admin/reset"),
    ("POST", "/admin/mail/fill"),
];

#[test]
fn who_is_no_admin() {
    let mut t = Transcript::new();
    for (method, path) in ROUTES {
        t.check(Nobody, method, path, bare());
        t.check(Ada, method, path, bare());
        let wrong = with(&[("authorization", "Bearer wrong")]);
        t.check(Nobody, method, path, wrong);
    }
    // Before any of the body is read.
    t.check(
        Nobody,
        "POST",
        "/admin/users",
        announced("application/json", 1 << 20),
    );
    assert_snapshot!(t.text());
}

#[test]
fn what_an_admin_asks_wrongly() {
    let mut t = Transcript::with(|config| config.limits.users = 3);
    let long = format!(r#"{{"users":[{{"name":"{}"}}]}}"#, "x".repeat(65));
    for body in [
        "",
        "{",
        "[]",
        r#"{"user":[]}"#,
        r#"{"users":[{}]}"#,
        r#"{"users":[{"name":"a b"}]}"#,
        r#"{"users":[{"name":".a"}]}"#,
        r#"{"users":[{"name":"a.nsf"}]}"#,
        r#"{"users":[{"name":"Eve"},{"name":"eve"}]}"#,
        r#"{"users":[],"mailbox_pad_bytes":1073741825}"#,
        r#"{"users":[{"name":"eve"},{"name":"fay"}]}"#,
        long.as_str(),
    ] {
        t.check(Admin, "POST", "/admin/users", json(body));
    }
    t.check(
        Admin,
        "POST",
        "/admin/users",
        announced("application/json", 1 << 40),
    );
    let password = |text: &str| json(format!(r#"{{"password":"{text}"}}"#));
    for (path, rest) in [
        ("/admin/users/a%20b", password("long enough")),
        ("/admin/users/eve", password("short")),
        ("/admin/users/eve", password(&"x".repeat(2000))),
        ("/admin/users/eve", json("")),
        ("/admin/users/eve", json(r#"{"pass":"x"}"#)),
    ] {
        t.check(Admin, "PUT", path, rest);
    }
    for (method, path) in ROUTES.into_iter().filter(|(_, path)| path.contains("eve")) {
        if method != "PUT" {
            t.check(Admin, method, path, bare());
        }
    }
    t.check(Admin, "DELETE", "/admin/users/ada/app-passwords/x", bare());
    let label = format!(r#"{{"label":"{}"}}"#, "x".repeat(101));
    let passwords = "/admin/users/ada/app-passwords";
    t.check(Admin, "POST", passwords, json(label));
    t.check(Admin, "POST", passwords, json("{"));
    while t.ask(Admin, "POST", passwords, &bare()).status == 201 {}
    t.check(Admin, "POST", passwords, bare());
    let fill = "/admin/mail/fill";
    for body in [
        "",
        r#"{"users":["ada"]}"#,
        r#"{"users":["eve"],"messages":1}"#,
        r#"{"users":["a b"],"messages":1}"#,
        r#"{"users":["ada"],"messages":1000001}"#,
        r#"{"users":["ada"],"messages":1,"profile":"made-up"}"#,
        r#"{"users":["ada"],"messages":1,"profile":[{"text_bytes":1,"permille":1}]}"#,
        r#"{"users":["ada"],"messages":1,"profile":[{"text_bytes":99999999,"permille":1000}]}"#,
    ] {
        t.check(Admin, "POST", fill, json(body));
    }
    let twice = r#"{"users":["ada"],"messages":1,"profile":[{"text_bytes":10,"permille":1000}]}"#;
    assert_eq!(t.ask(Admin, "POST", fill, &json(twice)).status, 200);
    t.check(Admin, "POST", fill, json(twice));
    for (method, path) in [
        ("GET", "/admin/users"),
        ("GET", "/admin/users/ada"),
        ("GET", "/admin/users/ada/reset"),
        ("GET", "/admin/reset"),
        ("GET", "/admin/mail/fill"),
        ("GET", "/admin/nothing"),
        ("GET", "/admin"),
    ] {
        t.check(Admin, method, path, bare());
    }
    assert_snapshot!(t.text());
}

#[test]
fn signing_in_for_programs() {
    let mut t = Transcript::with(|config| config.limits.sign_in_failures = 3);
    let form = |body: &str| typed("application/x-www-form-urlencoded", body);
    t.check(Nobody, "POST", "/login", bare());
    t.check(Nobody, "POST", "/login", typed("text/plain", "x"));
    for body in ["", "{", "{}", r#"{"username":7,"password":"x"}"#] {
        t.check(Nobody, "POST", "/login", json(body));
    }
    t.check(Nobody, "POST", "/login", form("username=ada"));
    t.check(Nobody, "POST", "/login", form("username=%ff&password=x"));
    t.check(
        Nobody,
        "POST",
        "/login",
        announced("application/json", (64 << 10) + 1),
    );
    t.check(Nobody, "GET", "/login", bare());
    t.check(Nobody, "GET", "/logout", bare());
    t.check(
        Nobody,
        "POST",
        "/login",
        form("username=ada&password=wrong"),
    );
    t.check(
        Nobody,
        "POST",
        "/login",
        form("username=nobody&password=wrong"),
    );
    let page = "/mail/ada/api/mail/inbox";
    for value in ["Basic", "Basic !!!!", "Basic YQ==", "Digest x", "Bearer x"] {
        t.check(Nobody, "GET", page, with(&[("authorization", value)]));
    }
    let wrong = basic("ada", "wrong");
    t.check(Nobody, "GET", page, with(&[("authorization", &wrong)]));
    t.check(Nobody, "GET", page, with(&[("authorization", &wrong)]));
    // Once too often, by any method.
    t.check(Nobody, "GET", page, with(&[("authorization", &wrong)]));
    t.check(
        Nobody,
        "POST",
        "/login",
        form("username=ada&password=wrong"),
    );
    t.check(Nobody, "POST", "/logout", bare());
    assert_snapshot!(t.text());
}

#[test]
fn around_all_routes() {
    let mut t = Transcript::with(|config| {
        config.limits.body_timeout = Duration::from_millis(50);
        config.limits.mail_body_timeout = Duration::from_millis(50);
    });
    for path in [
        "/nothing",
        "/mail",
        "/mail/ada",
        "/docs",
        "/tus",
        "/admin/",
        "/..%2fetc",
    ] {
        t.check(Nobody, "GET", path, bare());
    }
    t.check(Nobody, "GET", "/healthz", bare());
    for method in ["HEAD", "DELETE", "POST"] {
        t.check(Nobody, method, "/healthz", bare());
    }
    t.check(Nobody, "DELETE", "/metrics", bare());
    let forwarded = with(&[("x-forwarded-for", "192.0.2.1")]);
    t.check(Nobody, "GET", "/metrics", forwarded.clone());
    t.check(
        Nobody,
        "GET",
        "/metrics",
        forwarded.and("authorization", "Bearer wrong"),
    );
    // Bodies that never arrive.
    t.check(Nobody, "POST", "/login", announced("application/json", 10));
    t.check(
        Ada,
        "POST",
        "/mail/ada/api/calendar/events",
        announced("application/json", 10),
    );
    t.check(
        Ada,
        "POST",
        "/mail/ada/api/mail/outbox",
        announced("message/rfc822", 100 << 10),
    );
    // Large bodies without authentication.
    let large = announced("application/json", 100 << 10);
    for path in [
        "/mail/ada/api/mail/outbox",
        "/docs/ada/a/api/data/documents",
        "/nothing",
    ] {
        t.check(Nobody, "POST", path, large.clone());
    }
    t.check_raw("a broken line", b"GET\r\n\r\n");
    t.check_raw(
        "a long head",
        &[
            b"GET / HTTP/1.1\r\nx: ",
            &vec![b'y'; 40 << 10][..],
            b"\r\n\r\n",
        ]
        .concat(),
    );
    let many = ["GET / HTTP/1.1\r\n", &"x: y\r\n".repeat(100), "\r\n"].concat();
    t.check_raw("many headers", many.as_bytes());
    t.check_raw(
        "two lengths",
        b"POST /login HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    );
    let broken =
        "POST /login HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nx\r\n";
    t.check_raw("a broken chunk", broken.as_bytes());
    assert_snapshot!(t.text());
}
