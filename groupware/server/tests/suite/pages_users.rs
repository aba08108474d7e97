//! The pages for the management of users.

use groupware_server::Server;
use serde_json::{Value, json};

use crate::browser::{Browser, HERE, between, text};
use crate::support::*;

const OWN: &str = "correct horse";

/// Ada, an administrator with a password of her own.
fn ada(server: &Server) -> Browser<'_> {
    let password = json!({ "password": OWN });
    assert_eq!(
        admin(server, "PUT", "/admin/users/ada", password).status,
        201
    );
    let manages = admin(server, "PUT", "/admin/users/ada/admin", Value::Null);
    assert_eq!(manages.json()["admin"], json!(true));
    Browser::sign_in(server, "ada", OWN)
}

fn can_sign_in(server: &Server, name: &str, password: &str) -> bool {
    let form = [("username", name), ("password", password)];
    crate::browser::post(server, "/sign-in", &[HERE], &form).status == 303
}

#[test]
fn users_are_added_and_found() {
    let server = start();
    let ada = ada(&server);
    let add = |name: &str, password: &str, own: &str| {
        let fields = [
            ("name", name),
            ("password", password),
            ("own-password", own),
        ];
        ada.send("/users", &fields)
    };
    let made = add("Ben", "", OWN);
    assert_eq!(made.status, 200);
    let made = text(&made);
    let password = between(&made, "<code>", "</code>");
    assert!(can_sign_in(&server, "ben", password), "{password}");
    assert!(
        !ada.get("/users").contains(password),
        "it is shown this once"
    );
    for (name, password, own, field) in [
        ("ben", "", OWN, "name"),
        ("x y", "", OWN, "name"),
        ("", "", OWN, "name"),
        ("cyd", "short", OWN, "password"),
        ("cyd", "", "wrong", "own-password"),
    ] {
        let refused = add(name, password, own);
        assert_eq!(refused.status, 422, "{name}");
        assert!(text(&refused).contains(&format!("href=\"#{field}\"")));
    }
    assert_eq!(add("cyd", "battery staple", OWN).status, 200);
    assert!(can_sign_in(&server, "cyd", "battery staple"));
    let found = ada.get("/users?find=CY");
    assert!(found.contains("/users/cyd") && !found.contains("/users/ben"));
    let rest = ada.get("/users?after=ben");
    assert!(rest.contains("/users/cyd") && !rest.contains("/users/ada"));
    let many: Vec<_> = (0..60).map(|number| format!("user{number:02}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    register(&server, &many);
    let first = ada.get("/users");
    let next = between(&first, "href=\"/users?after=", "\"");
    assert_eq!(first.matches("<td class=\"name\">").count(), 50);
    let rest = ada.get(&format!("/users?after={next}"));
    assert_eq!(rest.matches("<td class=\"name\">").count(), 13);
}

#[test]
fn a_user_is_shown_disabled_and_given_a_password() {
    let server = start();
    let ada = ada(&server);
    let made = json!({ "password": "battery staple" });
    admin(&server, "PUT", "/admin/users/ben", made);
    let ben = Browser::sign_in(&server, "ben", "battery staple");
    let again = Browser::sign_in(&server, "ben", "battery staple");
    let page = ada.get("/users/ben");
    assert_eq!(
        page.matches("/users/ben/sessions/end").count(),
        3,
        "two, and all"
    );
    let id = between(&page, "name=\"id\" value=\"", "\"");
    let path = "/users/ben/sessions/end";
    assert_eq!(ada.send(path, &[("id", id)]).status, 303);
    assert_eq!(ben.ask("/box/inbox").status, 303);
    assert_eq!(again.ask("/box/inbox").status, 200);
    assert_eq!(ada.send(path, &[]).status, 303);
    assert_eq!(again.ask("/box/inbox").status, 303);

    let disabled = "/users/ben/disabled";
    assert_eq!(ada.send(disabled, &[("to", "1")]).status, 303);
    assert!(ada.get("/users").contains("disabled"));
    assert!(!can_sign_in(&server, "ben", "battery staple"));
    assert_eq!(ada.send(disabled, &[("to", "0")]).status, 303);
    let ben = Browser::sign_in(&server, "ben", "battery staple");

    let set = |password: &str, own: &str| {
        let fields = [("password", password), ("own-password", own)];
        ada.send("/users/ben/password", &fields)
    };
    assert_eq!(set("another one", "wrong").status, 422);
    assert_eq!(ben.ask("/box/inbox").status, 200);
    assert_eq!(set("another one", OWN).status, 200);
    assert_eq!(ben.ask("/box/inbox").status, 303, "its sessions ended");
    assert!(can_sign_in(&server, "ben", "another one"));
    let made = text(&set("", OWN));
    assert!(can_sign_in(
        &server,
        "ben",
        between(&made, "<code>", "</code>")
    ));
    // The administrator's own session stays.
    let fields = [("password", "my new password"), ("own-password", OWN)];
    assert_eq!(ada.send("/users/ada/password", &fields).status, 200);
    assert_eq!(ada.ask("/users").status, 200);
    assert_eq!(ada.ask("/users/nobody").status, 404);
}

#[test]
fn the_right_is_given_and_taken_back_at_once() {
    let server = start();
    let ada = ada(&server);
    let made = json!({ "password": "battery staple" });
    admin(&server, "PUT", "/admin/users/ben", made);
    let ben = Browser::sign_in(&server, "ben", "battery staple");
    assert!(!ben.get("/settings").contains("href=\"/users\""));
    assert_eq!(ben.ask("/users").status, 403);
    assert_eq!(ben.send("/users/ada/disabled", &[("to", "1")]).status, 403);
    let give = |to: &str, own: &str| {
        let fields = [("to", to), ("own-password-for-rights", own)];
        ada.send("/users/ben/admin", &fields).status
    };
    assert_eq!(give("1", "wrong"), 422);
    assert_eq!(ben.ask("/users").status, 403);
    assert_eq!(give("1", OWN), 303);
    assert!(ben.get("/settings").contains("href=\"/users\""));
    assert_eq!(ben.ask("/users").status, 200);
    assert_eq!((give("2", OWN), give("0", OWN)), (400, 303));
    assert_eq!(ben.ask("/users").status, 403);
    // Administrators can't remove their own rights.
    let fields = [("to", "0"), ("own-password-for-rights", OWN)];
    assert_eq!(ada.send("/users/ada/admin", &fields).status, 409);
    assert_eq!(ada.send("/users/ada/disabled", &[("to", "1")]).status, 409);
    assert_eq!(ada.ask("/users/ada/remove").status, 409);
    // A form of another site has no effect, and neither has one without proof.
    let fields = [("to", "1"), ("proof", ada.proof.as_str())];
    let foreign = [("sec-fetch-site", "cross-site")];
    let sent = ada.send_as_is("/users/ben/disabled", &foreign, &fields);
    assert_eq!(sent.status, 403);
    let sent = ada.send_as_is("/users/ben/disabled", &[HERE], &fields[..1]);
    assert_eq!(sent.status, 403);
    assert!(can_sign_in(&server, "ben", "battery staple"));
}

/// A program's password opens a session, but can't change an account.
#[test]
fn a_programs_password_does_not_prove_an_administrator() {
    let server = start();
    drop(ada(&server));
    let program = register(&server, &["ada"]).remove(0);
    let ada = Browser::sign_in(&server, "ada", &program);
    assert_eq!(ada.ask("/users").status, 200);
    let fields = [("name", "eve"), ("own-password", &program)];
    assert_eq!(ada.send("/users", &fields).status, 422);
}

#[test]
fn a_user_is_removed_by_name_and_password() {
    let server = start();
    let ada = ada(&server);
    let password = register(&server, &["ben"]).remove(0);
    let ben = Browser::sign_in(&server, "ben", &password);
    let mail = b"To: ben@localhost\r\nFrom: ben@localhost\r\nSubject: x\r\n\r\nText\r\n";
    let auth = basic("ben", &password);
    let headers = [
        ("authorization", &*auth),
        ("content-type", "message/rfc822"),
    ];
    let sent = send(
        server.address(),
        "POST",
        "/mail/ben/api/mail/outbox",
        &headers,
        mail,
    );
    assert_eq!(sent.status, 201);
    let remove = |again: &str, own: &str| {
        let fields = [("again", again), ("own-password", own)];
        ada.send("/users/ben/remove", &fields).status
    };
    assert!(ada.get("/users/ben/remove").contains("of mail"));
    assert_eq!((remove("bem", OWN), remove("ben", "wrong")), (422, 422));
    assert_eq!(ben.ask("/box/inbox").status, 200);
    assert_eq!(remove("Ben", OWN), 303);
    assert_eq!(ben.ask("/box/inbox").status, 303);
    assert_eq!(ada.ask("/users/ben").status, 404);
    register(&server, &["ben"]);
    let anew = admin(&server, "GET", "/admin/users/ben", Value::Null).json();
    assert_eq!(anew["usage"]["mail_bytes"], json!(0), "nothing is left");
}
