//! Errors of the calendar's routes.

use insta::assert_snapshot;

use crate::support::basic;
use crate::transcript::*;

const EVENTS: &str = "/mail/ada/api/calendar/events";

/// A meeting of ada with these additional members.
fn event(more: &str) -> Vec<u8> {
    format!(
        r#"{{"events":[{{"summary":"Plan","start":{{"date":"2061-03-04","time":"09:00:00","utc":true}},
           "end":{{"date":"2061-03-04","time":"10:00:00","utc":true}}{more}}}]}}"#
    )
    .into_bytes()
}

fn invite_ben() -> Rest<'static> {
    json(event(r#","attendees":[{"email":"ben@localhost"}]"#))
}

#[test]
fn who_may_not() {
    let mut t = Transcript::new();
    let wrong = basic("ada", "wrong");
    for (method, rest) in [
        ("GET", ""),
        ("GET", "/events"),
        ("POST", "/events"),
        ("GET", "/events/x"),
        ("PUT", "/events/x"),
        ("DELETE", "/events/x"),
        ("PUT", "/events/x/action?type=accept"),
        ("GET", "/events/x/instances"),
        ("GET", "/events/x/notices"),
        ("GET", "/invitations"),
        ("GET", "/notices/x"),
        ("PUT", "/notices/x/action?type=accept"),
    ] {
        let path = format!("/mail/ada/api/calendar{rest}");
        for who in [Nobody, Ben, Admin] {
            t.check(who, method, &path, bare());
        }
    }
    t.check(Nobody, "GET", EVENTS, with(&[("authorization", &wrong)]));
    let cookie = with(&[("cookie", "plimsoll_session=made-up")]);
    t.check(Nobody, "GET", EVENTS, cookie);
    t.check(Ada, "GET", "/mail/%FF/api/calendar/events", bare());
    t.check(Ada, "GET", "/mail/nobody.nsf/api/calendar/events", bare());
    assert_snapshot!(t.text());
}

#[test]
fn what_is_not_there() {
    let mut t = Transcript::new();
    for (method, rest) in [
        ("GET", ""),
        ("GET", "/nothing"),
        ("GET", "/events/x"),
        ("DELETE", "/events/x"),
        ("PUT", "/events/x/action?type=accept"),
        ("GET", "/events/x/instances"),
        ("GET", "/events/x/notices"),
        ("GET", "/notices/x"),
        ("PUT", "/notices/x/action?type=accept"),
        ("GET", "/events/%FF"),
        ("GET", "/notices/%FF"),
    ] {
        t.check(
            Ada,
            method,
            &format!("/mail/ada/api/calendar{rest}"),
            bare(),
        );
    }
    t.check(Ada, "PUT", &format!("{EVENTS}/x"), json(event("")));
    assert_snapshot!(t.text());
}

#[test]
fn methods_that_are_not_taken() {
    let mut t = Transcript::new();
    for (method, rest) in [
        ("POST", ""),
        ("DELETE", "/events"),
        ("PATCH", "/events/x"),
        ("GET", "/events/x/action"),
        ("POST", "/events/x/instances"),
        ("PUT", "/events/x/notices"),
        ("POST", "/invitations"),
        ("DELETE", "/notices/x"),
        ("POST", "/notices/x/action"),
    ] {
        t.check(
            Ada,
            method,
            &format!("/mail/ada/api/calendar{rest}"),
            bare(),
        );
    }
    assert_snapshot!(t.text());
}

#[test]
fn parameters_that_can_not_be_read() {
    let mut t = Transcript::new();
    for query in [
        "since=yesterday",
        "before=2061-13-01T00:00:00Z",
        "since=2061-03-04T00:00:00Z&before=2061-03-03T00:00:00Z",
        "since=1000-01-01T00:00:00Z&before=2061-03-03T00:00:00Z",
        "count=-1",
        "count=many",
        "start=x",
        "days=0",
        "sincenow=x",
        "fields=nothing",
        "format=xml",
        "%FF=%FF",
    ] {
        t.check(Ada, "GET", &format!("{EVENTS}?{query}"), bare());
    }
    let path = t.made(Ada, "POST", EVENTS, &json(event("")));
    for (method, rest) in [
        ("GET", "?format=xml"),
        ("DELETE", "?workflow=maybe"),
        ("PUT", "?literally=maybe"),
        ("PUT", "?strictsequence=maybe"),
        ("PUT", "/action"),
        ("PUT", "/action?type="),
        ("PUT", "/action?type=dance"),
        ("GET", "/instances"),
    ] {
        t.check(Ada, method, &format!("{path}{rest}"), json(event("")));
    }
    let invitations = "/mail/ada/api/calendar/invitations";
    for query in ["count=x", "start=x", "since=x", "format=xml"] {
        t.check(Ada, "GET", &format!("{invitations}?{query}"), bare());
    }
    assert_snapshot!(t.text());
}

#[test]
fn bodies_that_are_no_event() {
    let mut t = Transcript::new();
    let json_bodies = [
        "",
        "{",
        "[]",
        "{}",
        r#"{"events":[]}"#,
        r#"{"events":[{}]}"#,
        r#"{"events":[{"start":{"date":"2061-02-30"}}]}"#,
        r#"{"events":[{"start":{"date":"2061-03-04","time":"25:00:00"}}]}"#,
        r#"{"events":[{"start":{"date":"2061-03-04"},"end":{"date":"2061-03-04","time":"09:00:00"}}]}"#,
        r#"{"events":[{"start":{"date":"2061-03-04"},"end":{"date":"2061-03-03"}}]}"#,
        r#"{"events":[{"start":{"date":"2061-03-04","time":"09:00:00","tzid":"Mars/Dome"}}]}"#,
        r#"{"events":[{"start":{"date":"2061-03-04","time":"09:00:00","tzid":"UTC","utc":true}}]}"#,
        r#"{"events":[{"id":"\u0007","start":{"date":"2061-03-04"}}]}"#,
        r#"{"events":[{"start":{"date":"2061-03-04"}},{"start":{"date":"2061-03-05"}}]}"#,
    ];
    for body in json_bodies {
        t.check(Ada, "POST", EVENTS, json(body));
    }
    for more in [
        r#","attendees":[{}]"#,
        r#","attendees":[{"email":"ben\nbcc"}]"#,
        r#","attendees":"ben""#,
        r#","organizer":{"email":"ben@localhost"}"#,
        r#","recurrenceRule":"FREQ=DAILY""#,
        r#","priority":10"#,
        r#","summary":7"#,
    ] {
        t.check(Ada, "POST", EVENTS, json(event(more)));
    }
    for body in [
        "",
        "BEGIN:VCARD\r\nEND:VCARD\r\n",
        "BEGIN:VCALENDAR\r\n",
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nEND:VCALENDAR\r\n",
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:soon\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n",
        "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nDTSTART:20610304T090000Z\r\nRRULE:FREQ=DAILY\r\n\
         END:VEVENT\r\nEND:VCALENDAR\r\n",
    ] {
        t.check(Ada, "POST", EVENTS, typed("text/calendar", body));
    }
    t.check(
        Ada,
        "POST",
        EVENTS,
        typed("text/calendar", b"\xFF".to_vec()),
    );
    t.check(Ada, "POST", EVENTS, typed("text/plain", "{}"));
    t.check(Ada, "POST", EVENTS, bare());
    let long = format!(r#","description":"{}""#, "x".repeat(70 << 10));
    t.check(Ada, "POST", EVENTS, json(event(&long)));
    t.check(Ada, "POST", EVENTS, json(vec![b' '; 257 << 10]));
    t.check(
        Ada,
        "POST",
        EVENTS,
        announced("application/json", (1 << 20) + 1),
    );
    let many = vec![r#"{"email":"ben@localhost"}"#; 201].join(",");
    t.check(
        Ada,
        "POST",
        EVENTS,
        json(event(&format!(r#","attendees":[{many}]"#))),
    );
    assert_snapshot!(t.text());
}

#[test]
fn changes_that_do_not_fit_what_is_there() {
    let mut t = Transcript::new();
    let named = json(event(r#","id":"known""#));
    let path = t.made(Ada, "POST", EVENTS, &named);
    t.check(Ada, "POST", EVENTS, named);
    let other = json(event(r#","id":"other""#));
    t.check(Ada, "PUT", &path, other);
    t.check(Ada, "PUT", &path, json(""));
    t.check(Ada, "PUT", &path, typed("text/plain", "x"));
    let newer = json(event(r#","id":"known","sequence":5"#));
    assert_eq!(t.ask(Ada, "PUT", &path, &newer).status, 200);
    t.check(
        Ada,
        "PUT",
        &path,
        json(event(r#","id":"known","sequence":2"#)),
    );
    let strict = format!("{path}?strictsequence=true");
    t.check(
        Ada,
        "PUT",
        &strict,
        json(event(r#","id":"known","sequence":5"#)),
    );
    // An event without attendees, and one's own meeting, can't be replied to.
    t.check(Ada, "PUT", &format!("{path}/action?type=accept"), bare());
    let meeting = t.made(Ada, "POST", EVENTS, &invite_ben());
    t.check(Ada, "PUT", &format!("{meeting}/action?type=accept"), bare());
    t.check(
        Ada,
        "PUT",
        &format!("{meeting}/action?type=counter"),
        bare(),
    );
    t.check(
        Ada,
        "PUT",
        &format!("{meeting}/action?type=accept"),
        json("{"),
    );
    let plain = typed("text/plain", "{}");
    t.check(Ada, "PUT", &format!("{meeting}/action?type=accept"), plain);
    assert_snapshot!(t.text());
}

#[test]
fn answers_that_can_not_be_given() {
    let mut t = Transcript::new();
    let meeting = t.made(Ada, "POST", EVENTS, &invite_ben());
    let list = t.ask(Ben, "GET", "/mail/ben/api/calendar/invitations", &bare());
    let notice = list.json()["notices"][0]["href"]
        .as_str()
        .unwrap()
        .to_owned();
    let action = |kind: &str| format!("{notice}/action?type={kind}");
    t.check(Ben, "PUT", &action("cancel"), bare());
    t.check(Ben, "PUT", &action("delegate"), bare());
    t.check(Ben, "PUT", &action("counter"), bare());
    t.check(Ben, "PUT", &action("requestInfo"), bare());
    for to in ["nobody", "ben", "ada@localhost"] {
        let body = format!(r#"{{"delegateTo":"{to}"}}"#);
        t.check(Ben, "PUT", &action("delegate"), json(body));
    }
    assert_eq!(t.ask(Ben, "PUT", &action("accept"), &bare()).status, 200);
    t.check(Ben, "PUT", &action("accept"), bare());
    // Attendees can't change a meeting.
    let mine = meeting.replace("/mail/ada/", "/mail/ben/");
    t.check(Ben, "PUT", &mine, invite_ben());
    assert_eq!(t.ask(Ada, "DELETE", &meeting, &bare()).status, 200);
    t.check(Ben, "PUT", &format!("{mine}/action?type=tentative"), bare());
    assert_snapshot!(t.text());
}
