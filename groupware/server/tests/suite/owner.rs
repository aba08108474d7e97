//! Every route × other users and no user: only the owner reaches an account, only the admin token
//! the admin interface.

use crate::support::*;
use groupware_server::Server;

/// Every route under an account.
const MAILBOX_ROUTES: &[(&str, &str)] = &[
    ("GET", ""),
    ("GET", "/events"),
    ("POST", "/events"),
    ("GET", "/events/some-id"),
    ("PUT", "/events/some-id"),
    ("DELETE", "/events/some-id"),
    ("PUT", "/events/some-id/action?type=accept"),
    ("GET", "/events/some-id/instances"),
    ("GET", "/events/some-id/notices"),
    ("GET", "/invitations"),
    ("GET", "/notices/some-id"),
    ("PUT", "/notices/some-id/action?type=accept"),
];

const ADMIN_ROUTES: &[(&str, &str)] = &[
    ("POST", "/admin/users"),
    ("PUT", "/admin/users/ada"),
    ("DELETE", "/admin/users/ada"),
    ("POST", "/admin/users/ada/reset"),
    ("POST", "/admin/users/ada/app-passwords"),
    ("DELETE", "/admin/users/ada/app-passwords/0"),
    ("POST", "/admin/reset"),
];

/// Spellings of Ada's account.
const MAILBOXES: &[&str] = &["ada", "Ada", "ada.nsf", "ADA.NSF", "%61da"];

fn call(server: &Server, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
    let mut headers = headers.to_vec();
    headers.push(("content-type", "application/json"));
    let body = if method == "GET" || method == "DELETE" {
        ""
    } else {
        "{}"
    };
    send(server.address(), method, path, &headers, body.as_bytes())
}

#[test]
fn only_the_owner_reaches_a_mailbox() {
    let server = start();
    let mut passwords = register(&server, &["ada", "eve"]);
    let eve = basic("eve", &passwords.remove(1));
    let ada = basic("ada", &passwords.remove(0));
    let bearer = format!("Bearer {TOKEN}");
    for (method, route) in MAILBOX_ROUTES {
        for mailbox in MAILBOXES {
            let path = format!("/mail/{mailbox}/api/calendar{route}");
            let nobody = call(&server, method, &path, &[]);
            assert_error(&nobody, 401);
            assert!(
                nobody.header("www-authenticate").is_some(),
                "{method} {path}"
            );
            let wrong = call(
                &server,
                method,
                &path,
                &[("authorization", &basic("ada", "no"))],
            );
            // After several failures the account must wait; both deny access.
            assert!(
                [401, 429].contains(&wrong.status),
                "{method} {path}: {wrong:?}"
            );
            let other = call(&server, method, &path, &[("authorization", &eve)]);
            assert_error(&other, 403);
            // The admin token gives access to the admin interface, not to users' mail.
            let admin = call(&server, method, &path, &[("authorization", &bearer)]);
            assert_error(&admin, 401);
            let owner = call(&server, method, &path, &[("authorization", &ada)]);
            assert!(
                ![401, 403, 405].contains(&owner.status),
                "{method} {path}: {owner:?}"
            );
        }
    }
}

#[test]
fn mailboxes_of_nobody_look_like_those_of_others() {
    let server = start();
    let eve = basic("eve", &register(&server, &["eve"]).remove(0));
    for mailbox in [
        "nobody",
        "nobody.nsf",
        "$accounts",
        "eve.nsf.nsf",
        "eve%20",
        "evee",
        "ev",
    ] {
        let path = format!("/mail/{mailbox}/api/calendar/events");
        assert_error(
            &call(&server, "GET", &path, &[("authorization", &eve)]),
            403,
        );
    }
    let path = "/mail/%FF/api/calendar/events";
    assert_error(&call(&server, "GET", path, &[("authorization", &eve)]), 400);
}

#[test]
fn only_the_token_reaches_the_admin_interface() {
    let server = start();
    let ada = basic("ada", &register(&server, &["ada"]).remove(0));
    let not_quite = format!("Bearer {}", &TOKEN[..TOKEN.len() - 1]);
    for (method, path) in ADMIN_ROUTES {
        for headers in [
            &[][..],
            &[("authorization", &*ada)],
            &[("authorization", &*not_quite)],
        ] {
            let reply = call(&server, method, path, headers);
            assert_error(&reply, 401);
            assert_eq!(
                reply.header("www-authenticate"),
                Some("Bearer"),
                "{method} {path}"
            );
        }
    }
    let still = call(
        &server,
        "GET",
        "/mail/ada/api/calendar/events",
        &[("authorization", &ada)],
    );
    assert_eq!(still.status, 200, "nothing was reset or deleted");
}
