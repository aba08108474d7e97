//! The pages over real sockets, as a browser requests them: access, attacks from other sites and by
//! users' texts, and error messages.

use crate::browser::{HERE, HTML, between, post, text, two_users};
use crate::support::{register, send, start};

type Pairs<'t> = [(&'t str, &'t str)];

/// The fields of a meeting on a distant day.
fn meeting<'f>(title: &'f str, people: &'f str) -> Vec<(&'f str, &'f str)> {
    vec![
        ("title", title),
        ("start_day", "2031-03-04"),
        ("start_time", "10:00"),
        ("end_day", "2031-03-04"),
        ("end_time", "11:00"),
        ("place", "Room Tern"),
        ("people", people),
        ("about", "one\r\ntwo"),
    ]
}

#[test]
fn nobody_sees_a_page_without_signing_in() {
    let server = start();
    for path in [
        "/calendar",
        "/calendar/week/2031-03-03",
        "/invitations",
        "/settings",
        "/calendar/new?day=2031-03-04",
    ] {
        let reply = send(server.address(), "GET", path, &[HTML], b"");
        assert_eq!(reply.status, 303, "{path}");
        assert!(
            reply
                .header("location")
                .unwrap()
                .starts_with("/sign-in?to=/"),
            "{reply:?}"
        );
    }
    // A password in a header is for programs, whose requests carry no token of a form.
    let password = register(&server, &["ada"]).remove(0);
    let basic = crate::support::basic("ada", &password);
    let reply = send(
        server.address(),
        "GET",
        "/settings",
        &[HTML, ("authorization", &basic)],
        b"",
    );
    assert_eq!(reply.status, 303);
}

#[test]
fn signing_in_goes_on_to_what_was_asked_for_and_nowhere_else() {
    let server = start();
    let password = register(&server, &["ada"]).remove(0);
    let sign_in = |to: &str| {
        let fields = [
            ("username", "ada"),
            ("password", password.as_str()),
            ("to", to),
        ];
        let reply = post(&server, "/sign-in", &[HERE], &fields);
        assert_eq!(reply.status, 303);
        let cookie = reply.header("set-cookie").unwrap().to_owned();
        assert!(cookie.contains("HttpOnly; SameSite=Lax"), "{cookie}");
        reply.header("location").unwrap().to_owned()
    };
    assert_eq!(
        sign_in("/calendar/new?day=2031-03-04"),
        "/calendar/new?day=2031-03-04"
    );
    for elsewhere in [
        "//evil.example/",
        "https://evil.example",
        "/\\evil.example",
        "\t//evil.example",
        "/\r\nx: y",
    ] {
        assert_eq!(sign_in(elsewhere), "/", "{elsewhere:?}");
    }
    let page = send(
        server.address(),
        "GET",
        "/sign-in?to=//evil.example",
        &[HTML],
        b"",
    );
    assert!(!text(&page).contains("evil"), "{}", text(&page));
}

#[test]
fn a_wrong_password_says_so_keeps_the_name_and_is_throttled() {
    let server = start();
    register(&server, &["ada"]);
    let try_in = || {
        let fields = [("username", "ada\"><b>"), ("password", "wrong")];
        post(&server, "/sign-in", &[HERE], &fields)
    };
    let first = try_in();
    assert_eq!(first.status, 401);
    assert_eq!(first.header("www-authenticate"), None);
    let page = text(&first);
    assert!(
        page.contains("The user name or password is wrong."),
        "{page}"
    );
    assert!(page.contains("value=\"ada&quot;&gt;&lt;b&gt;\""), "{page}");
    let statuses: Vec<u16> = (0..12).map(|_| try_in().status).collect();
    assert!(statuses.contains(&429), "{statuses:?}");
    let empty = post(
        &server,
        "/sign-in",
        &[HERE],
        &[("username", ""), ("password", "")],
    );
    assert_eq!(empty.status, 422);
    assert!(text(&empty).contains("id=\"username-wrong\""));
}

#[test]
fn signing_out_ends_the_session() {
    let server = start();
    let (ada, _) = two_users(&server);
    let reply = ada.send("/sign-out", &[]);
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some("/sign-in"))
    );
    assert_eq!(ada.ask("/settings").status, 303);
    // The form of an expired session is not lost, and has no effect.
    let late = ada.send("/calendar/new", &meeting("Late", ""));
    assert_eq!(late.status, 401);
    assert!(text(&late).contains("reload this page"));
}

#[test]
fn other_sites_can_not_send_forms() {
    let server = start();
    let (ada, ben) = two_users(&server);
    let proof = ("proof", ada.proof.as_str());
    let host = ("origin", "http://localhost");
    let refused: [(&Pairs<'_>, &Pairs<'_>); 7] = [
        (&[("sec-fetch-site", "cross-site")], &[proof]),
        (&[("sec-fetch-site", "same-site")], &[proof]),
        (&[("origin", "https://evil.example")], &[proof]),
        (&[("origin", "null")], &[proof]),
        (&[], &[proof]),
        (&[HERE], &[]),
        (&[HERE], &[("proof", ben.proof.as_str())]),
    ];
    for (headers, fields) in refused {
        let fields = [fields, &meeting("Forged", "")].concat();
        let reply = ada.send_as_is("/calendar/new", headers, &fields);
        assert_eq!(reply.status, 403, "{headers:?}");
        let out = ada.send_as_is("/sign-out", headers, &fields[..fields.len() - 8]);
        assert_eq!(out.status, 403, "{headers:?}");
    }
    assert!(!ada.get("/calendar/month/2031-03").contains("Forged"));
    let fields = [&[proof], meeting("Real", "").as_slice()].concat();
    assert_eq!(
        ada.send_as_is("/calendar/new", &[host], &fields).status,
        303
    );
    assert!(ada.get("/calendar/month/2031-03").contains("Real"));
    // Other sites can't sign a user in, either.
    let foreign = [("sec-fetch-site", "cross-site")];
    let fields = [("username", "ada"), ("password", "x")];
    assert_eq!(post(&server, "/sign-in", &foreign, &fields).status, 403);
}

#[test]
fn every_page_is_fenced_in() {
    let server = start();
    let (ada, _) = two_users(&server);
    for reply in [
        ada.ask("/calendar"),
        ada.ask("/nowhere"),
        send(server.address(), "GET", "/sign-in", &[HTML], b""),
    ] {
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"));
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(reply.header("referrer-policy"), Some("same-origin"));
        assert_eq!(reply.header("cache-control"), Some("no-store"));
        let page = text(&reply);
        assert!(
            !page.contains("style=\"") && !page.contains("<style"),
            "{page}"
        );
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert_eq!(page.matches("<h1").count(), 1, "{page}");
    }
    let style = between(&ada.get("/calendar"), "rel=\"stylesheet\" href=\"", "\"").to_owned();
    let reply = send(server.address(), "GET", &style, &[], b"");
    assert_eq!(
        reply.header("content-type"),
        Some("text/css; charset=utf-8")
    );
    assert!(reply.header("cache-control").unwrap().contains("immutable"));
    let other = send(
        server.address(),
        "GET",
        "/assets/style-000000000000.css",
        &[],
        b"",
    );
    assert_eq!(other.status, 404);
}

#[test]
fn failures_are_pages_for_people_and_json_for_programs() {
    let server = start();
    let (ada, ben) = two_users(&server);
    let made = ada.send("/calendar/new", &meeting("Private", ""));
    let path = made.header("location").unwrap();
    for path in [
        "/nowhere",
        "/calendar/month/2031-13",
        "/calendar/week/x",
        "/invitations/x",
        path,
    ] {
        let reply = ben.ask(path);
        assert_eq!(reply.status, 404, "{path}");
        assert!(text(&reply).contains("<h1>Not found</h1>"), "{path}");
    }
    let json = send(
        server.address(),
        "GET",
        "/nowhere",
        &[("accept", "*/*")],
        b"",
    );
    crate::support::assert_error(&json, 404);
    let api = send(
        server.address(),
        "GET",
        "/mail/ada/api/calendar/events",
        &[HTML],
        b"",
    );
    crate::support::assert_error(&api, 401);
    let large = "x".repeat(600 << 10);
    let reply = ada.send("/calendar/new", &[("title", &large)]);
    assert_eq!(reply.status, 413, "{}", text(&reply));
    assert!(text(&reply).contains("<h1>Too large</h1>"));
}

#[test]
fn what_users_write_stays_text() {
    let server = start();
    let (ada, ben) = two_users(&server);
    let hostile = "</title><script>alert(1)</script>\"'><img src=x onerror=alert(1)>";
    let mut fields = meeting(hostile, "ben");
    fields[5] = ("place", hostile);
    fields[7] = ("about", hostile);
    let made = ada.send("/calendar/new", &fields);
    assert_eq!(made.status, 303, "{}", text(&made));
    let path = made.header("location").unwrap().to_owned();
    let invitations = ben.get("/invitations");
    let notice = between(&invitations, "href=\"/invitations/", "\"").to_owned();
    for page in [
        ada.get(&path),
        ada.get(&format!("{path}/edit")),
        ada.get(&format!("{path}/delete")),
        ada.get("/calendar/month/2031-03"),
        ada.get("/calendar/week/2031-03-03"),
        invitations,
        ben.get(&format!("/invitations/{notice}")),
        ben.get("/calendar/month/2031-03"),
    ] {
        assert!(page.contains("&lt;script&gt;"), "{page}");
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(!page.contains("<img"), "{page}");
    }
}

#[test]
fn a_form_with_mistakes_comes_back_with_what_was_typed() {
    let server = start();
    let (ada, _) = two_users(&server);
    let mut fields = meeting("", "ben, nobody, x@, far@example.org");
    fields[4] = ("end_time", "09:00");
    let reply = ada.send("/calendar/new", &fields);
    assert_eq!(reply.status, 422);
    let page = text(&reply);
    for part in [
        "id=\"title-wrong\"",
        "It ends before it starts.",
        "There is no user called “nobody” here.",
        "value=\"ben, nobody, x@, far@example.org\"",
        "value=\"Room Tern\"",
        "one\ntwo",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert!(
        ada.get("/calendar/month/2031-03")
            .contains("Nothing in this month yet.")
    );
    let far = ada.send("/calendar/new", &meeting("Far", "far@example.org"));
    let page = ada.get(far.header("location").unwrap());
    assert!(
        page.contains("far@example.org") && page.contains("not told"),
        "{page}"
    );
}

#[test]
fn the_life_of_a_meeting() {
    let server = start();
    let (ada, ben) = two_users(&server);
    let made = ada.send(
        "/calendar/new",
        &meeting("Planning", "Ben Okafor <ben@localhost>"),
    );
    let path = made.header("location").unwrap().to_owned();
    let invitations = ben.get("/invitations");
    let notice = format!(
        "/invitations/{}",
        between(&invitations, "href=\"/invitations/", "\"")
    );
    // A meeting can't be delegated to an unknown user; the form reports that.
    let wrong = ben.send(
        &format!("{notice}/answer"),
        &[("answer", "delegate"), ("delegate", "nobody")],
    );
    assert_eq!(wrong.status, 422);
    assert!(text(&wrong).contains("id=\"delegate-wrong\""));
    let done = ben.send(&format!("{notice}/answer"), &[("answer", "accept")]);
    assert_eq!(
        (done.status, done.header("location")),
        (303, Some("/invitations"))
    );
    let with_notice = format!("{}; {}", ben.cookie, done.cookie());
    let said = send(
        server.address(),
        "GET",
        "/invitations",
        &[HTML, ("cookie", &with_notice)],
        b"",
    );
    assert!(text(&said).contains("You have accepted"));
    assert!(said.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert!(ben.get("/invitations").contains("No invitation waits"));
    assert!(ada.get(&path).contains("comes"));
    // Another reply once it is in the calendar.
    let done = ben.send(&format!("{path}/answer"), &[("answer", "tentative")]);
    assert_eq!(done.status, 303, "{}", text(&done));
    assert!(ada.get(&path).contains("may come"));
    // A change of the notes asks for no new replies; one of the time does.
    let edit = ada.get(&format!("{path}/edit"));
    assert!(
        edit.contains("value=\"Ben Okafor &lt;ben@localhost&gt;\""),
        "{edit}"
    );
    let sequence = between(&edit, "name=\"sequence\" value=\"", "\"").to_owned();
    let mut fields = meeting("Planning", "Ben Okafor <ben@localhost>");
    fields[7] = ("about", "three");
    fields.push(("sequence", &sequence));
    assert_eq!(ada.send(&format!("{path}/edit"), &fields).status, 303);
    assert!(ada.get(&path).contains("may come"));
    // The same form again has an outdated version.
    let late = ada.send(&format!("{path}/edit"), &fields);
    assert_eq!(late.status, 409, "{}", text(&late));
    assert!(text(&late).contains("changed meanwhile"));
    fields.pop();
    fields[2] = ("start_time", "10:30");
    assert_eq!(ada.send(&format!("{path}/edit"), &fields).status, 303);
    assert!(ada.get(&path).contains("no answer yet"));
    assert_eq!(ben.send(&format!("{path}/edit"), &fields).status, 403);
    // Cancelled without a new reply: the invitation disappears.
    assert!(
        ada.get(&format!("{path}/delete"))
            .contains("Call off this meeting?")
    );
    assert_eq!(ada.send(&format!("{path}/delete"), &[]).status, 303);
    assert!(ben.get("/invitations").contains("No invitation waits"));
    assert_eq!(ada.ask(&path).status, 404);
}

#[test]
fn times_are_shown_in_the_users_zone() {
    let server = start();
    let (ada, ben) = two_users(&server);
    assert_eq!(
        ada.send("/settings", &[("zone", "Europe/Atlantis")]).status,
        422
    );
    assert_eq!(
        ada.send("/settings", &[("zone", "Europe/Berlin")]).status,
        303
    );
    let made = ada.send("/calendar/new", &meeting("Planning", "ben"));
    let path = made.header("location").unwrap().to_owned();
    assert!(ada.get(&path).contains("10:00 – 11:00 (Berlin)"));
    assert!(ben.get("/invitations").contains("09:00 – 10:00 (UTC)"));
    // In another zone, the form shows other times; unchanged, they stay in the zone of Berlin.
    assert_eq!(
        ada.send("/settings", &[("zone", "America/New_York")])
            .status,
        303
    );
    let edit = ada.get(&format!("{path}/edit"));
    assert!(edit.contains("value=\"04:00\""), "{edit}");
    let accept = between(&ben.get("/invitations"), "href=\"/invitations/", "\"").to_owned();
    ben.send(
        &format!("/invitations/{accept}/answer"),
        &[("answer", "accept")],
    );
    let mut fields = meeting("Planning again", "ben");
    fields[2] = ("start_time", "04:00");
    fields[4] = ("end_time", "05:00");
    assert_eq!(ada.send(&format!("{path}/edit"), &fields).status, 303);
    let page = ada.get(&path);
    assert!(
        page.contains("04:00 – 05:00 (New York)") && page.contains("comes"),
        "{page}"
    );
}
