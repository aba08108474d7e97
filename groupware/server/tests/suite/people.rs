//! Users and sessions as an administrator lists, disables, and ends them.

use serde_json::{Value, json};

use crate::support::*;

fn ask(server: &groupware_server::Server, method: &str, path: &str) -> Reply {
    admin(server, method, path, Value::Null)
}

/// Signs in with a form; the session's cookie.
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
