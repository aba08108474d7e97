//! The pages of the calendar, of invitations, of settings, and of sign-in, for each kind of user.

use insta::assert_snapshot;

use crate::browser::{HERE, HTML, post, text};
use crate::site::{Site, link, meeting};
use crate::support::{register, send, start};
use crate::transcript::{reply_text, starred};

const MONTH: &str = "/calendar/month/2061-03";
const WEEK: &str = "/calendar/week/2061-02-28";

/// One event of each kind that a calendar shows.
fn filled(site: &Site<'_>) {
    let mut all_day = meeting("Stocktaking", "");
    all_day[3].1 = "2061-03-06";
    all_day.push(("all_day", "1"));
    let lone = [
        ("title", "Walk <the> pier"),
        ("start_day", "2061-03-04"),
        ("start_time", "10:30"),
        ("end_day", "2061-03-04"),
        ("end_time", "19:45"),
    ];
    for form in [&meeting("Tide tables", "ben"), &all_day, &lone.to_vec()] {
        assert_eq!(site.ada.send("/calendar/new", form).status, 303);
    }
    // No two start at once: their order would be random.
    for (title, start) in [
        ("Berths", "10:10"),
        ("Lamps", "10:20"),
        ("Ropes", "10:40"),
        ("Sails", "10:50"),
    ] {
        let mut form = meeting(title, "Ada Lund <ada>, x@example.com");
        form[2].1 = start;
        assert_eq!(site.ben.send("/calendar/new", &form).status, 303);
        let invitation = link(&site.ada.get("/invitations"), "/invitations/");
        let answer = match title {
            "Lamps" => "tentative",
            "Ropes" | "Sails" => "accept",
            _ => continue,
        };
        let path = format!("{invitation}/answer");
        // The newest one has a reply; the one before stays open.
        let open: Vec<String> = invitations(site);
        let path = open
            .iter()
            .find(|open| site.ada.get(open).contains(&format!("<h1>{title}</h1>")))
            .map_or(path, |open| format!("{open}/answer"));
        assert_eq!(site.ada.send(&path, &[("answer", answer)]).status, 303);
    }
    let sails = event(site, "Sails");
    assert_eq!(site.ben.send(&format!("{sails}/delete"), &[]).status, 303);
}

/// Returns the paths of ada's open invitations.
fn invitations(site: &Site<'_>) -> Vec<String> {
    let page = site.ada.get("/invitations");
    let links = page.split("<h2><a href=\"").skip(1);
    links
        .map(|rest| rest.split('"').next().unwrap().to_owned())
        .collect()
}

/// Returns the path of the event with this title in the week of ben's calendar.
fn event(site: &Site<'_>, title: &str) -> String {
    event_of(&site.ben.get(WEEK), title)
}

fn event_of(page: &str, title: &str) -> String {
    // A month shows only a part of a day.
    let found = page.split_once(&format!("<span class=\"what\"><bdi>{title}"));
    let (before, _) = found.unwrap_or_else(|| panic!("no {title}: {page}"));
    let link = before.rsplit("href=\"").next().unwrap();
    link.split('"').next().unwrap().to_owned()
}

#[test]
fn months_and_weeks() {
    let server = start();
    let mut site = Site::new(&server);
    site.look(MONTH);
    assert_snapshot!("month_without_events", site.take());
    site.look(WEEK);
    assert_snapshot!("week_without_events", site.take());
    filled(&site);
    site.look(MONTH);
    assert_snapshot!("month", site.take());
    site.look(WEEK);
    assert_snapshot!("week", site.take());
    for path in [
        "/calendar/month/2061-13",
        "/calendar/month/x",
        "/calendar/week/2061-02-30",
        "/calendar/week/9999-01-01",
    ] {
        site.look(path);
    }
    assert_snapshot!("days_that_are_none", site.take());
}

#[test]
fn today_is_where_the_calendar_opens() {
    let server = start();
    let site = Site::new(&server);
    for (path, beginning) in [
        ("/calendar", "/calendar/month/"),
        ("/calendar/week", "/calendar/week/"),
    ] {
        // The day may end between the two.
        let is_same = || {
            let page = site.ada.get(path);
            let views = page.split("aria-label=\"View\"").nth(1).unwrap();
            let of_today = link(views, beginning);
            page.contains("aria-current=\"date\"") && site.ada.get(&of_today) == page
        };
        assert!(is_same() || is_same(), "{path}");
    }
    let replies = ["/calendar", "/calendar/week"].map(|path| {
        let mut reply = site.ada.ask(path);
        reply.body.clear();
        let nobody = send(server.address(), "GET", path, &[HTML], b"");
        format!("### {path}\n{}{}", reply_text(&reply), reply_text(&nobody))
    });
    assert_snapshot!(replies.concat());
}

#[test]
fn meetings() {
    let server = start();
    let mut site = Site::new(&server);
    filled(&site);
    let page = site.ada.get(WEEK);
    for (name, title) in [
        ("meeting_of_ones_own", "Tide tables"),
        ("event_of_ones_own", "Walk"),
        ("event_of_whole_days", "Stocktaking"),
        ("meeting_accepted", "Ropes"),
        ("meeting_tentative", "Lamps"),
        ("meeting_cancelled", "Sails"),
    ] {
        let path = event_of(&page, title);
        site.look(&path);
        assert_snapshot!(name, site.take());
        site.look(&format!("{path}/edit"));
        assert_snapshot!(format!("{name}_to_be_changed"), site.take());
        site.look(&format!("{path}/delete"));
        assert_snapshot!(format!("{name}_to_be_deleted"), site.take());
    }
    site.look("/calendar/event/nothing");
    site.look("/calendar/event/nothing/edit");
    site.look("/calendar/event/nothing/delete");
    assert_snapshot!("event_that_is_not_there", site.take());
    site.look("/calendar/new?day=2061-03-04");
    assert_snapshot!("new_event", site.take());
}

/// Masks the day on which an invitation arrived: it is the day of the run.
fn without_days(text: &str) -> String {
    let mut pieces = text.split("<p class=\"from\">from ");
    let mut out = pieces.next().unwrap().to_owned();
    for piece in pieces {
        let (from, rest) = piece.split_once("</p>").unwrap();
        let (who, _) = from.rsplit_once(", ").unwrap();
        out += &format!("<p class=\"from\">from {who}, *** ** ***</p>{rest}");
    }
    out
}

#[test]
fn invitations_to_be_answered() {
    let server = start();
    let mut site = Site::new(&server);
    site.look("/invitations");
    assert_snapshot!("no_invitations", site.take());
    filled(&site);
    site.look("/invitations");
    assert_snapshot!("invitations", without_days(&site.take()));
    let open = invitations(&site).remove(0);
    site.look(&open);
    assert_snapshot!("invitation", site.take());
    site.look("/invitations/nothing");
    assert_snapshot!("invitation_that_is_not_there", site.take());
}

/// The list of zones depends on the machine.
fn without_zones(text: &str) -> String {
    let is_kept = |line: &&str| {
        let shown = ["Europe/Berlin", "America/New_York", "\"UTC\"", "selected"];
        !line.starts_with("<option") || shown.iter().any(|zone| line.contains(zone))
    };
    let lines: Vec<&str> = text.lines().filter(is_kept).collect();
    lines.join("\n")
}

#[test]
fn settings_and_people() {
    let server = start();
    let mut site = Site::new(&server);
    site.look("/settings");
    assert_snapshot!("settings", without_zones(&site.take()));
    let wrong = [("zone", "Europe/Atlantis")];
    site.submit("/settings", &wrong);
    site.submit_wrongly("/settings", &wrong);
    site.submit("/settings", &[("zone", "America/New_York")]);
    site.look_as_ada("/settings");
    assert_snapshot!("settings_that_are_sent", without_zones(&site.take()));
    filled(&site);
    site.look_as_ada("/calendar/new?day=2061-03-04");
    site.look_as_ada(&event_of(&site.ada.get(WEEK), "Tide tables"));
    assert_snapshot!("times_in_another_zone", site.take());
    for path in [
        "/people?begin=b",
        "/people?begin=A",
        "/people?begin=",
        "/people",
        "/people?begin=%FF",
    ] {
        site.look(path);
    }
    assert_snapshot!("people_that_complete_a_field", site.take());
}

#[test]
fn signing_in_and_out() {
    let mut config = crate::support::config();
    config.limits.sign_in_failures = 2;
    let server = groupware_server::Server::start(config).unwrap();
    let mut site = Site::new(&server);
    for path in [
        "/",
        "/sign-in",
        "/sign-in?to=/calendar/new%3Fday%3D2061-03-04",
        "/sign-in?to=//evil.example",
    ] {
        site.look(path);
    }
    assert_snapshot!("sign_in", site.take());
    let sign_in = |fields: &[(&str, &str)]| post(&server, "/sign-in", &[HERE], fields);
    let password = register(&server, &["ada"]).remove(0);
    let right = [
        ("username", "ada"),
        ("password", password.as_str()),
        ("zone", "Europe/Berlin"),
    ];
    let mut said = String::new();
    for (what, reply) in [
        ("right", sign_in(&right)),
        (
            "right, and on",
            sign_in(&[&right[..], &[("to", "/settings")]].concat()),
        ),
        (
            "right, and elsewhere",
            sign_in(&[&right[..], &[("to", "//evil.example")]].concat()),
        ),
        (
            "from another site",
            post(
                &server,
                "/sign-in",
                &[("sec-fetch-site", "cross-site")],
                &right,
            ),
        ),
        ("empty", sign_in(&[])),
        (
            "wrong",
            sign_in(&[
                ("username", "a\"<b>"),
                ("password", "wrong"),
                ("to", "/settings"),
            ]),
        ),
        (
            "wrong",
            sign_in(&[("username", "a\"<b>"), ("password", "wrong")]),
        ),
        (
            "once too often",
            sign_in(&[("username", "a\"<b>"), ("password", "wrong")]),
        ),
        (
            "not a form",
            send(server.address(), "POST", "/sign-in", &[HTML, HERE], b"x"),
        ),
    ] {
        said += &format!("### {what}\n{}", reply_text(&reply));
    }
    assert_snapshot!("signing_in", starred(&said));
    // Sign in again: the new password has ended the session.
    let mut site = Site::new(&server);
    site.submit_wrongly("/sign-out", &[]);
    site.submit("/sign-out", &[]);
    let cookie = "plimsoll_notice=signed-out";
    let reply = send(
        server.address(),
        "GET",
        "/sign-in",
        &[HTML, ("cookie", cookie)],
        b"",
    );
    site.note("what is said then", &reply);
    site.submit("/calendar/new", &meeting("Late", ""));
    site.look("/settings");
    assert_snapshot!("signing_out", site.take());
}

#[test]
fn what_is_said_of_what_was_done() {
    let server = start();
    let site = Site::new(&server);
    let words = "signed-out event-created meeting-created event-changed meeting-changed \
                 event-deleted meeting-cancelled meeting-left accepted tentative declined delegated \
                 mail-sent draft-saved moved-to-trash deleted trash-emptied moved marked-read \
                 marked-unread folder-made folder-renamed folder-deleted settings-saved made-up";
    let mut said = String::new();
    for word in words.split_whitespace() {
        let cookie = format!("{}; plimsoll_notice={word}", site.ada.cookie);
        let headers = [HTML, ("cookie", cookie.as_str())];
        let reply = send(server.address(), "GET", "/folders", &headers, b"");
        let page = text(&reply);
        let notice = page.split("<p class=\"notice\"").nth(1);
        let notice = notice.map_or("nothing", |rest| rest.split("</p>").next().unwrap());
        let ended = reply.header("set-cookie").unwrap_or("nothing");
        said += &format!("{word}:{notice}\n  set-cookie: {ended}\n");
    }
    assert_snapshot!(said);
}

#[test]
fn forms_of_events() {
    let server = start();
    let mut site = Site::new(&server);
    site.submit("/calendar/new", &[]);
    let mut wrong = meeting("", "nobody, a b@c, ben");
    wrong[1].1 = "2061-02-30";
    wrong[4].1 = "25:00";
    site.submit("/calendar/new", &wrong);
    let mut backwards = meeting("Backwards", "");
    backwards[3].1 = "2061-03-03";
    site.submit("/calendar/new", &backwards);
    let long = "x".repeat(70 << 10);
    let mut too_long = meeting("Long", "");
    too_long[7].1 = &long;
    let refused = site.submit("/calendar/new", &too_long);
    assert!(refused.status >= 400);
    // The page repeats the input, which is not tested here.
    assert_snapshot!(
        "new_events_that_are_wrong",
        site.take().replace(&long, "(long)")
    );
    site.submit_wrongly("/calendar/new", &meeting("Forged", ""));
    let larger = "x".repeat(513 << 10);
    site.submit("/calendar/new", &[("title", &larger)]);
    let many: Vec<(&str, &str)> = vec![("x", "y"); 600];
    let reply = site.ada.send("/calendar/new", &many);
    site.note("Ada: POST /calendar/new (600 fields)", &reply);
    assert_snapshot!("forms_that_are_not_taken", site.take());
    let path = site.submit("/calendar/new", &meeting("Tide tables", "ben"));
    let path = path.header("location").unwrap().to_owned();
    site.submit(&format!("{path}/edit"), &wrong);
    site.submit(
        &format!("{path}/edit"),
        &[&meeting("New", "ben")[..], &[("sequence", "0")]].concat(),
    );
    site.submit(
        &format!("{path}/edit"),
        &[&meeting("Newer", "ben")[..], &[("sequence", "0")]].concat(),
    );
    site.submit_wrongly(&format!("{path}/edit"), &meeting("Forged", ""));
    assert_snapshot!("events_that_are_changed", site.take());
    site.submit(&format!("{path}/answer"), &[("answer", "accept")]);
    site.submit(&format!("{path}/answer"), &[("answer", "dance")]);
    site.submit_wrongly(&format!("{path}/delete"), &[]);
    assert_eq!(
        site.ben
            .send("/calendar/new", &meeting("Berths", "ada"))
            .status,
        303
    );
    let open = invitations(&site).remove(0);
    for fields in [
        vec![],
        vec![("answer", "delegate")],
        vec![("answer", "delegate"), ("delegate", "nobody")],
        vec![("answer", "delegate"), ("delegate", "ada")],
        vec![("answer", "accept")],
        vec![("answer", "accept")],
    ] {
        site.submit(&format!("{open}/answer"), &fields);
    }
    assert_snapshot!("answers", site.take());
    let mine = event_of(&site.ada.get(WEEK), "Berths");
    site.submit(&format!("{mine}/delete"), &[]);
    site.submit(&format!("{path}/delete"), &[]);
    site.submit(&format!("{path}/delete"), &[]);
    assert_snapshot!("events_that_are_deleted", site.take());
}
