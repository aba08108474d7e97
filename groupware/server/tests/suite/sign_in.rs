//! Which credentials are accepted.

use std::io::Write;

use crate::support::*;
use groupware_server::{Networks, Server};
use serde_json::json;

const EVENTS: &str = "/mail/ada/api/calendar/events";

fn get(server: &Server, path: &str, headers: &[(&str, &str)]) -> Reply {
    send(server.address(), "GET", path, headers, b"")
}

fn log_in(server: &Server, user: &str, password: &str) -> Reply {
    let body = json!({ "username": user, "password": password }).to_string();
    let headers = [("content-type", "application/json")];
    send(
        server.address(),
        "POST",
        "/login",
        &headers,
        body.as_bytes(),
    )
}

#[test]
fn basic_takes_application_passwords() {
    let server = start();
    let password = register(&server, &["Ada"]).remove(0);
    assert!(
        password.len() >= 22,
        "128 bits take 22 characters: {password}"
    );
    let names = [
        "ada",
        "Ada",
        "ADA",
        "ada@localhost",
        "Ada.nsf",
        "CN=Ada/O=Acme",
    ];
    for user in names {
        let reply = get(
            &server,
            EVENTS,
            &[("authorization", &basic(user, &password))],
        );
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    for (user, word) in [("ada", "wrong"), ("eve", &*password), ("", ""), ("ada", "")] {
        let reply = get(&server, EVENTS, &[("authorization", &basic(user, word))]);
        assert_error(&reply, 401);
        assert!(
            reply
                .header("www-authenticate")
                .unwrap()
                .starts_with("Basic "),
            "{reply:?}"
        );
    }
}

#[test]
fn a_session_cookie_signs_in_until_log_out() {
    let server = start();
    let password = register(&server, &["Ada"]).remove(0);
    let form = format!("username=ADA&password={password}");
    let headers = [(
        "content-type",
        "application/x-www-form-urlencoded; charset=UTF-8",
    )];
    let reply = send(
        server.address(),
        "POST",
        "/login",
        &headers,
        form.as_bytes(),
    );
    assert_eq!(
        (reply.status, &reply.json()),
        (200, &json!({ "user": "Ada" }))
    );
    let set = reply.header("set-cookie").unwrap();
    for part in [
        "plimsoll_session=",
        "; HttpOnly",
        "; SameSite=Lax",
        "; Path=/",
    ] {
        assert!(set.contains(part), "{set}");
    }
    assert!(!set.contains("Secure"), "no TLS, no Secure: {set}");

    let cookie = reply.cookie();
    let with_others = format!("a=b; {cookie}; c=d");
    assert_eq!(
        get(&server, EVENTS, &[("cookie", &with_others)]).status,
        200
    );
    assert_eq!(
        get(&server, EVENTS, &[("cookie", "plimsoll_session=made-up")]).status,
        401
    );
    let out = send(
        server.address(),
        "POST",
        "/logout",
        &[("cookie", &cookie)],
        b"",
    );
    assert_eq!(out.status, 204);
    assert!(
        out.header("set-cookie").unwrap().contains("Max-Age=0"),
        "{out:?}"
    );
    assert_error(&get(&server, EVENTS, &[("cookie", &cookie)]), 401);
}

#[test]
fn log_in_says_what_is_wrong_with_it() {
    let server = start();
    let log_in = |media_type: &str, body: &str| {
        let headers = [("content-type", media_type)];
        send(
            server.address(),
            "POST",
            "/login",
            &headers,
            body.as_bytes(),
        )
    };
    let form = "application/x-www-form-urlencoded";
    assert_error(&log_in(form, "username=ada"), 400);
    assert_error(&log_in("application/json", "{"), 400);
    assert_error(&log_in("text/plain", "ada"), 415);
    let wrong = log_in(form, "username=ada&password=x");
    assert_error(&wrong, 401);
    assert_eq!(
        wrong.header("www-authenticate"),
        None,
        "no dialogue over the page's form"
    );
    assert_error(&send(server.address(), "GET", "/login", &[], b""), 405);
}

#[test]
fn passwords_are_set_and_changed() {
    let server = start();
    let set = |word: &str| {
        admin(
            &server,
            "PUT",
            "/admin/users/ada",
            json!({ "password": word }),
        )
    };
    let reply = set("correct horse");
    assert_eq!(
        (reply.status, &reply.json()["created"]),
        (201, &json!(true)),
        "{reply:?}"
    );
    let session = log_in(&server, "ada", "correct horse").cookie();
    let auth = basic("ada", "correct horse");
    for _ in 0..2 {
        assert_eq!(
            get(&server, EVENTS, &[("authorization", &auth)]).status,
            200
        );
    }
    assert_eq!(get(&server, EVENTS, &[("cookie", &session)]).status, 200);

    assert_eq!(set("battery staple").status, 200);
    assert_eq!(
        get(&server, EVENTS, &[("authorization", &auth)]).status,
        401
    );
    let ended = get(&server, EVENTS, &[("cookie", &session)]);
    assert_eq!(ended.status, 401, "a new password ends the sessions");
    assert_eq!(log_in(&server, "ada", "battery staple").status, 200);
    assert_error(&set("short"), 400);
    assert_error(&set(&"x".repeat(2000)), 400);
}

#[test]
fn guessing_is_slowed_down_for_one_user_and_address_only() {
    let mut config = config();
    config.limits.sign_in_failures = 3;
    config.proxies = Networks::loopback();
    let server = Server::start(config).unwrap();
    let app_password = register(&server, &["ada", "eve"]).remove(0);
    let body = json!({ "password": "correct horse" });
    assert_eq!(admin(&server, "PUT", "/admin/users/ada", body).status, 200);
    for name in ["Ada", "ada@localhost", "CN=ada/O=Acme"] {
        assert_error(&log_in(&server, name, "wrong horse"), 401);
    }
    let reply = log_in(&server, "ada", "correct horse");
    assert_error(&reply, 429);
    // A large body isn't read before, either.
    let auth = basic("ada", "correct horse");
    let headers = [
        ("authorization", &*auth),
        ("content-type", "application/json"),
    ];
    let large = vec![b' '; 100 << 10];
    let reply_to_large = send(server.address(), "POST", EVENTS, &headers, &large);
    assert_error(&reply_to_large, 429);
    let wait: u32 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=31).contains(&wait), "{wait}");
    // The user at another address needn't wait.
    let body = json!({ "username": "ada", "password": "correct horse" }).to_string();
    let headers = [
        ("content-type", "application/json"),
        ("x-forwarded-for", "192.0.2.1"),
    ];
    let reply = send(
        server.address(),
        "POST",
        "/login",
        &headers,
        body.as_bytes(),
    );
    assert_eq!(reply.status, 200, "{reply:?}");
    // Unguessable passwords needn't wait, and neither do other users.
    assert_eq!(log_in(&server, "ada", &app_password).status, 200);
    assert_error(&log_in(&server, "eve", "wrong horse"), 401);
    // Unknown names are treated the same way.
    for status in [401, 401, 401, 429] {
        assert_error(&log_in(&server, "nobody", "x"), status);
    }
}

#[test]
fn right_passwords_are_never_slowed_down() {
    let mut config = config();
    config.limits.sign_in_failures = 2;
    let server = Server::start(config).unwrap();
    let password = register(&server, &["ada"]).remove(0);
    for _ in 0..20 {
        assert_eq!(log_in(&server, "ada", &password).status, 200);
    }
}

#[test]
fn a_deleted_user_is_out_and_comes_back_empty() {
    let server = start();
    let password = register(&server, &["ada"]).remove(0);
    let session = log_in(&server, "ada", &password).cookie();
    let id = create_event(&server, &password);
    assert_eq!(
        admin(&server, "DELETE", "/admin/users/Ada", json!(null)).status,
        204
    );
    assert_eq!(get(&server, EVENTS, &[("cookie", &session)]).status, 401);
    assert_eq!(
        get(
            &server,
            EVENTS,
            &[("authorization", &basic("ada", &password))]
        )
        .status,
        401
    );
    assert_error(
        &admin(&server, "DELETE", "/admin/users/ada", json!(null)),
        404,
    );

    let again = basic("ada", &register(&server, &["ada"]).remove(0));
    assert_eq!(get(&server, &id, &[("authorization", &again)]).status, 404);
}

#[test]
fn application_passwords_are_added_and_removed() {
    let server = start();
    register(&server, &["ada"]);
    let path = "/admin/users/ada/app-passwords";
    let reply = admin(&server, "POST", path, json!({ "label": "phone" }));
    assert_eq!(reply.status, 201, "{reply:?}");
    let made = reply.json();
    let auth = basic("ada", made["app_password"].as_str().unwrap());
    assert_eq!(
        get(&server, EVENTS, &[("authorization", &auth)]).status,
        200
    );
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    assert_eq!(admin(&server, "DELETE", &one, json!(null)).status, 204);
    assert_error(&admin(&server, "DELETE", &one, json!(null)), 404);
    assert_eq!(
        get(&server, EVENTS, &[("authorization", &auth)]).status,
        401
    );
    for _ in 0..31 {
        assert_eq!(admin(&server, "POST", path, json!(null)).status, 201);
    }
    assert_error(&admin(&server, "POST", path, json!(null)), 409);
}

#[test]
fn resets_empty_mailboxes_and_keep_users() {
    let server = start();
    let password = register(&server, &["ada", "eve"]).remove(0);
    let auth = basic("ada", &password);
    let read = |id: &str| get(&server, id, &[("authorization", &auth)]).status;
    for (path, users) in [("/admin/reset", 2), ("/admin/users/ADA/reset", 1)] {
        let id = create_event(&server, &password);
        assert_eq!(read(&id), 200);
        let reply = admin(&server, "POST", path, json!(null));
        assert_eq!((reply.status, &reply.json()["users"]), (200, &json!(users)));
        assert_eq!(read(&id), 404);
    }
    assert_error(
        &admin(&server, "POST", "/admin/users/nobody/reset", json!(null)),
        404,
    );
}

/// Creates an event of Ada and returns its path.
fn create_event(server: &Server, password: &str) -> String {
    let body = json!({ "events": [{
        "summary": "Standup",
        "start": { "date": "2026-01-05", "time": "09:00:00", "utc": true },
        "end": { "date": "2026-01-05", "time": "09:15:00", "utc": true },
    }] });
    let auth = basic("ada", password);
    let headers = [
        ("authorization", &*auth),
        ("content-type", "application/json"),
    ];
    let reply = send(
        server.address(),
        "POST",
        EVENTS,
        &headers,
        body.to_string().as_bytes(),
    );
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.header("location").unwrap().to_owned()
}

#[test]
fn behind_a_proxy_with_tls_a_cookie_is_for_this_host_alone() {
    let server = start();
    let password = register(&server, &["ada"]).remove(0);
    let form = format!("username=ada&password={password}");
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-forwarded-for", "192.0.2.1"),
        ("x-forwarded-proto", "https"),
    ];
    let address = server.address();
    let reply = send(address, "POST", "/login", &headers, form.as_bytes());
    let set = reply.header("set-cookie").unwrap();
    assert!(set.starts_with("__Host-plimsoll_session="), "{set}");
    assert!(
        set.contains("; Path=/;") && set.ends_with("; Secure"),
        "{set}"
    );
    let cookie = reply.cookie();
    let status = |cookie: &str| get(&server, EVENTS, &[("cookie", cookie)]).status;
    assert_eq!(status(&cookie), 200);
    // Another host of the domain can set a cookie, but not one of this name.
    assert_eq!(status(cookie.trim_start_matches("__Host-")), 401);
    let out = [("cookie", &*cookie), ("x-forwarded-proto", "https")];
    let out = send(address, "POST", "/logout", &out, b"");
    let gone = out.header("set-cookie").unwrap();
    assert!(gone.starts_with("__Host-plimsoll_session="), "{gone}");
    assert_eq!(status(&cookie), 401);
}

#[test]
fn other_sites_change_nothing_and_sign_nobody_in() {
    let server = start();
    let password = register(&server, &["ada"]).remove(0);
    let address = server.address();
    let form = format!("username=ada&password={password}");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let log_in = |headers: &[(&str, &str)]| {
        let headers = [&[kind], headers].concat();
        send(address, "POST", "/login", &headers, form.as_bytes())
    };
    for foreign in [
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
    ] {
        let reply = log_in(&[foreign]);
        assert_error(&reply, 403);
        assert_eq!(reply.header("set-cookie"), None);
    }
    assert_eq!(log_in(&[("sec-fetch-site", "same-origin")]).status, 200);
    let cookie = log_in(&[]).cookie();
    assert_eq!(log_in(&[("origin", "http://localhost")]).status, 200);
    let change = |method: &str, headers: &[(&str, &str)]| {
        let headers = [&[("cookie", &*cookie)], headers].concat();
        let path = "/mail/ada/api/mail/folders/x";
        send(address, method, path, &headers, b"").status
    };
    let elsewhere = ("sec-fetch-site", "cross-site");
    // Browsers also send remembered passwords for any page.
    let basic = basic("ada", &password);
    for method in ["PUT", "DELETE"] {
        assert_eq!(change(method, &[elsewhere]), 403);
        assert_eq!(change(method, &[elsewhere, ("authorization", &basic)]), 403);
        assert_ne!(change(method, &[]), 403);
    }
    // A link from another site is no forgery.
    let link = get(&server, EVENTS, &[("cookie", &cookie), elsewhere]);
    assert_eq!(link.status, 200);
}

#[test]
fn a_server_of_this_machine_is_reached_by_its_own_names() {
    let mut config = config();
    config.hosts = vec!["mail.example".into()];
    config.domain = "example.org".into();
    let server = Server::start(config).unwrap();
    let status = |host: &str| {
        let mut stream = connect(server.address());
        let head = format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
        read_reply(&mut stream).unwrap().status
    };
    for host in [
        "localhost",
        "127.0.0.1:8340",
        "[::1]",
        "mail.example:443",
        "EXAMPLE.org",
    ] {
        assert_eq!(status(host), 200, "{host}");
    }
    for host in ["evil.example", "localhost.evil.example:8340", ""] {
        assert_eq!(status(host), 421, "{host}");
    }
    // Of two, intermediaries pick either.
    assert_eq!(status("localhost\r\nhost: evil.example"), 400);
}

#[test]
fn a_body_that_says_no_length_is_small_until_it_is_not() {
    let server = start();
    let password = register(&server, &["ada"]).remove(0);
    let head = "POST /login HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-www-form-urlencoded\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunked = |body: &str| {
        let mut stream = connect(server.address());
        stream.write_all(head.as_bytes()).unwrap();
        // The server may respond before it has read everything.
        let _ = write!(stream, "{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
        read_reply(stream).unwrap().status
    };
    assert_eq!(chunked(&format!("username=ada&password={password}")), 200);
    assert_eq!(chunked(&"x".repeat(70_000)), 413);
}
