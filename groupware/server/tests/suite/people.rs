//! Users and sessions that an administrator lists, disables, and ends.

use serde_json::{Value, json};

use crate::support::*;

fn ask(server: &groupware_server::Server, method: &str, path: &str) -> Reply {
    admin(server, method, path, Value::Null)
}

/// Signs in with a form; returns the session's cookie.
fn sign_in(server: &groupware_server::Server, user: &str, password: &str) -> Reply {
    let form = format!("username={user}&password={password}");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    send(server.address(), "POST", "/login", &[kind], form.as_bytes())
}

fn inbox(server: &groupware_server::Server, header: (&str, &str)) -> u16 {
    let path = "/mail/ada/api/mail/inbox";
    send(server.address(), "GET", path, &[header], b"").status
}

#[test]
fn users_are_listed_page_by_page() {
    let server = start();
    register(&server, &["Carl", "ada", "ben"]);
    admin(
        &server,
        "PUT",
        "/admin/users/ben",
        json!({ "password": "correct horse" }),
    );
    let names = |reply: &Reply| -> Vec<String> {
        let body = reply.json();
        let users = body["users"].as_array().unwrap().iter();
        users
            .map(|user| user["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = ask(&server, "GET", "/admin/users");
    assert_eq!(names(&all), ["ada", "ben", "Carl"]);
    assert_eq!(all.json()["next"], Value::Null);
    let ben = &all.json()["users"][1];
    assert_eq!(
        (&ben["password"], &ben["disabled"]),
        (&json!(true), &json!(false))
    );
    let first = ask(&server, "GET", "/admin/users?count=2");
    assert_eq!(
        (names(&first), &first.json()["next"]),
        (vec!["ada".into(), "ben".into()], &json!("ben"))
    );
    let rest = ask(&server, "GET", "/admin/users?count=2&after=ben");
    assert_eq!(names(&rest), ["Carl"]);
    for count in ["0", "1001", "x"] {
        assert_error(
            &ask(&server, "GET", &format!("/admin/users?count={count}")),
            400,
        );
    }
}

#[test]
fn a_user_is_shown_with_what_is_used() {
    let server = start();
    let password = register(&server, &["ada"]).remove(0);
    let show = || ask(&server, "GET", "/admin/users/ada").json();
    assert_eq!(
        show()["app_passwords"][0]["used"],
        Value::Null,
        "never signed in"
    );
    assert_eq!(
        show()["usage"],
        json!({ "mail_bytes": 0, "document_bytes": 0 })
    );
    let auth = basic("ada", &password);
    let auth = ("authorization", &*auth);
    let mail = b"To: ada@localhost\r\nFrom: ada@localhost\r\nSubject: x\r\n\r\nText\r\n";
    let kind = ("content-type", "message/rfc822");
    let path = "/mail/ada/api/mail/outbox";
    let sent = send(server.address(), "POST", path, &[auth, kind], mail);
    assert_eq!(sent.status, 201, "{sent:?}");
    assert!(show()["app_passwords"][0]["used"].as_i64().unwrap() > 0);
    assert!(show()["usage"]["mail_bytes"].as_u64().unwrap() >= 2 * mail.len() as u64);
    assert_eq!(show()["sessions"], json!([]));
    let (one, two) = (
        sign_in(&server, "ada", &password).cookie(),
        sign_in(&server, "ada", &password).cookie(),
    );
    let sessions = show()["sessions"].as_array().unwrap().clone();
    assert_eq!(sessions.len(), 2);
    let path = |id: &Value| format!("/admin/users/ada/sessions/{}", id.as_str().unwrap());
    assert_eq!(
        ask(&server, "DELETE", &path(&sessions[0]["id"])).status,
        204
    );
    assert_error(&ask(&server, "DELETE", &path(&sessions[0]["id"])), 404);
    assert_eq!(
        (
            inbox(&server, ("cookie", &one)),
            inbox(&server, ("cookie", &two))
        ),
        (401, 200)
    );
    assert_eq!(
        ask(&server, "DELETE", "/admin/users/ada/sessions").status,
        204
    );
    assert_eq!(inbox(&server, ("cookie", &two)), 401);
    assert_error(&ask(&server, "GET", "/admin/users/nobody"), 404);
    assert_error(&ask(&server, "DELETE", "/admin/users/nobody/sessions"), 404);
}

#[test]
fn who_is_disabled_can_not_sign_in_and_still_gets_mail() {
    let folder = tempfile::tempdir().unwrap();
    let start = || {
        let mut config = config();
        config.data = groupware_server::Data::Folder(folder.path().into());
        groupware_server::Server::start(config).unwrap()
    };
    let server = start();
    let passwords = register(&server, &["ada", "ben"]);
    let chosen = "correct horse battery";
    admin(
        &server,
        "PUT",
        "/admin/users/ada",
        json!({ "password": chosen }),
    );
    let cookie = sign_in(&server, "ada", &passwords[0]).cookie();
    let disabled = ask(&server, "POST", "/admin/users/ada/disable");
    assert_eq!(
        (disabled.status, &disabled.json()["disabled"]),
        (200, &json!(true))
    );
    let refused = |server: &groupware_server::Server| {
        assert_eq!(inbox(server, ("cookie", &cookie)), 401);
        for password in [&*passwords[0], chosen] {
            assert_eq!(
                inbox(server, ("authorization", &basic("ada", password))),
                401
            );
            assert_eq!(sign_in(server, "ada", password).status, 401);
        }
    };
    refused(&server);
    let ben = basic("ben", &passwords[1]);
    let headers = [("authorization", &*ben), ("content-type", "message/rfc822")];
    let mail = b"To: ada@localhost\r\nFrom: ben@localhost\r\n\r\nText\r\n";
    let sent = send(
        server.address(),
        "POST",
        "/mail/ben/api/mail/outbox",
        &headers,
        mail,
    );
    assert_eq!(sent.status, 201, "{sent:?}");
    drop(server);
    // It is stored.
    let server = start();
    refused(&server);
    assert_eq!(ask(&server, "POST", "/admin/users/ada/enable").status, 200);
    let auth = basic("ada", &passwords[0]);
    let path = "/mail/ada/api/mail/inbox";
    let list = send(
        server.address(),
        "GET",
        path,
        &[("authorization", &auth)],
        b"",
    );
    assert_eq!(list.json().as_array().unwrap().len(), 1);
    assert_error(&ask(&server, "POST", "/admin/users/nobody/disable"), 404);
}

/// A user's browser on the page of the user's own account.
struct Browser<'a> {
    server: &'a groupware_server::Server,
    cookie: String,
}

impl Browser<'_> {
    fn page(&self) -> Reply {
        let headers = [("cookie", &*self.cookie), ("accept", "text/html")];
        send(self.server.address(), "GET", "/account", &headers, b"")
    }

    fn text(&self) -> String {
        String::from_utf8(self.page().body).unwrap()
    }

    fn submit(&self, path: &str, fields: &str) -> Reply {
        let text = self.text();
        let proof = text.split("name=\"proof\" value=\"").nth(1).unwrap();
        let proof = proof.split('"').next().unwrap();
        let form = format!("proof={proof}&{fields}");
        let headers = [
            ("cookie", &*self.cookie),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let address = self.server.address();
        send(address, "POST", path, &headers, form.as_bytes())
    }
}

#[test]
fn users_look_after_their_own_account() {
    let server = start();
    let program = register(&server, &["ada"]).remove(0);
    let (old, new) = ("correct+horse", "battery+staple");
    admin(
        &server,
        "PUT",
        "/admin/users/ada",
        json!({ "password": "correct horse" }),
    );
    let browser = || Browser {
        server: &server,
        cookie: sign_in(&server, "ada", "correct horse").cookie(),
    };
    let (one, two, three) = (browser(), browser(), browser());

    // One session, by its name; the current one has no button.
    let text = one.text();
    assert_eq!(text.matches(">End</button>").count(), 2, "{text}");
    let id = text.split("name=\"id\" value=\"").last().unwrap();
    let id = id.split('"').next().unwrap().to_owned();
    assert_eq!(
        one.submit("/account/sessions/end", &format!("id={id}"))
            .status,
        303
    );
    assert_eq!((two.page().status, three.page().status), (200, 303));

    // A new password requires the current one; a program's password doesn't count.
    let change = |current: &str, new: &str, again: &str| {
        let fields = format!("current={current}&new={new}&again={again}");
        one.submit("/account/password", &fields).status
    };
    assert_eq!(change("wrong", new, new), 422);
    assert_eq!(change(&program, new, new), 422);
    assert_eq!(change(old, "short", "short"), 422);
    assert_eq!(change(old, new, "battery"), 422);
    assert_eq!(two.page().status, 200, "nothing was changed");
    assert_eq!(change(old, new, new), 303);
    assert_eq!(
        (one.page().status, two.page().status),
        (200, 303),
        "others have ended"
    );
    assert_eq!(sign_in(&server, "ada", "correct horse").status, 401);
    assert_eq!(sign_in(&server, "ada", "battery staple").status, 200);

    // A program's password is shown once, works, and can be revoked.
    let make = |label: &str, password: &str| {
        let fields = format!("label={label}&proof-password={password}");
        let reply = one.submit("/account/app-passwords", &fields);
        (reply.status, String::from_utf8(reply.body).unwrap())
    };
    assert_eq!(make("Phone", old).0, 422);
    assert_eq!(make("", new).0, 422);
    let (status, page) = make("Phone", new);
    assert_eq!(status, 200, "{page}");
    let made = page
        .split("<code>")
        .nth(1)
        .unwrap()
        .split('<')
        .next()
        .unwrap();
    assert!(!one.text().contains(made) && one.text().contains("Phone"));
    let auth = basic("ada", made);
    assert_eq!(inbox(&server, ("authorization", &auth)), 200);
    let text = one.text();
    let id = text.split("<strong>Phone").next().unwrap();
    let id = id.rsplit("name=\"id\" value=\"").next().unwrap();
    let id = id.split('"').next().unwrap().to_owned();
    let remove = |id: &str| one.submit("/account/app-passwords/remove", &format!("id={id}"));
    assert_eq!(remove(&id).status, 303);
    assert_eq!(inbox(&server, ("authorization", &auth)), 401);
    assert_eq!(remove(&id).status, 404);
    assert_eq!(one.page().status, 200);

    // A form from another site has no effect.
    let headers = [("cookie", &*one.cookie), ("sec-fetch-site", "cross-site")];
    let forged = send(
        server.address(),
        "POST",
        "/account/sessions/end",
        &headers,
        b"others=1",
    );
    assert_eq!(forged.status, 403);
}
