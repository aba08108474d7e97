//! Invitations, cancellations, and replies in a mail: the content of their pages, and the effects of their buttons.

use crate::browser::{Browser, between, text, two_users};
use crate::support::{send, start};

/// Delivers a message of Ada to herself with a calendar, and returns its path.
fn bring(ada: &Browser<'_>, calendar: &str) -> String {
    let message = format!(
        "To: ada@localhost\nSubject: Pier\nContent-Type: text/calendar; method=REQUEST; charset=UTF-8\n\n{calendar}"
    );
    let headers = [
        ("cookie", ada.cookie.as_str()),
        ("content-type", "message/rfc822"),
    ];
    let message = message.replace('\n', "\r\n");
    let (address, path) = (ada.server.address(), "/mail/ada/api/mail/outbox");
    let reply = send(address, "POST", path, &headers, message.as_bytes());
    assert_eq!(reply.status, 201, "{}", text(&reply));
    let list = ada.get("/box/inbox");
    format!("/message/{}", between(&list, "href=\"/message/", "\""))
}

/// Presses a button of the message's panel; returns the next page.
fn press(ada: &Browser<'_>, path: &str, button: &str) -> String {
    let reply = ada.send(&format!("{path}/invitation"), &[("answer", button)]);
    assert_eq!(
        (reply.status, reply.header("location")),
        (303, Some(path)),
        "{}",
        text(&reply)
    );
    ada.get(path)
}

fn event(method: &str, lines: &str) -> String {
    format!(
        "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Q//EN\nMETHOD:{method}\nBEGIN:VEVENT\n{lines}END:VEVENT\nEND:VCALENDAR\n"
    )
}

const PIER: &str = "UID:pier\nDTSTAMP:20260201T080000Z\nORGANIZER;CN=Ben:mailto:ben@q.example\n\
    ATTENDEE;RSVP=TRUE:mailto:ada@localhost\nDTSTART:20270305T100000Z\nDTEND:20270305T110000Z\nSUMMARY:Pier <b>\n";

#[test]
fn a_cancellation_marks_or_removes_the_event_of_an_invitation() {
    let server = start();
    let (ada, _) = two_users(&server);
    let cancelled = PIER.replace(
        "DTSTAMP:20260201",
        "SEQUENCE:1\nSTATUS:CANCELLED\nDTSTAMP:20260202",
    );
    let cancellation = bring(&ada, &event("CANCEL", &cancelled));
    let page = ada.get(&cancellation);
    assert!(
        page.contains("The organizer has cancelled this event."),
        "{page}"
    );
    assert!(page.contains("<s><bdi>Pier &lt;b&gt;</bdi></s>"), "{page}");
    assert!(page.contains("isn't in your calendar"), "{page}");
    assert!(!page.contains("Remove from calendar"));
    assert!(page.contains("not from <bdi>ben@q.example</bdi>"), "{page}");
    let refused = ada.send(
        &format!("{cancellation}/invitation"),
        &[("answer", "remove")],
    );
    assert_eq!(refused.status, 400);

    let invitation = bring(&ada, &event("REQUEST", PIER));
    let page = ada.get(&invitation);
    assert!(page.contains("doesn't send it to"), "{page}");
    assert!(
        page.contains("no answer yet") && !page.contains("no user here"),
        "{page}"
    );
    let page = press(&ada, &invitation, "accept");
    assert!(page.contains("It is in"), "{page}");
    let page = ada.get(&cancellation);
    assert!(page.contains("Remove from calendar") && page.contains("Mark as cancelled"));
    let page = press(&ada, &cancellation, "mark");
    assert!(page.contains("It is marked as cancelled in"), "{page}");
    assert!(!page.contains("Mark as cancelled"));
    assert!(
        ada.get("/calendar/event/pier")
            .contains("Cancelled: it doesn't take place.")
    );
    let page = press(&ada, &cancellation, "remove");
    assert!(page.contains("isn't in your calendar"), "{page}");
    assert_eq!(ada.ask("/calendar/event/pier").status, 404);
    for button in ["accept", "record", ""] {
        let path = format!("{cancellation}/invitation");
        assert_ne!(ada.send(&path, &[("answer", button)]).status, 303);
    }
}

#[test]
fn an_answer_is_recorded_in_the_organizers_event() {
    let server = start();
    let (ada, _) = two_users(&server);
    let meeting = r#"{"events":[{"id":"own","summary":"Pier","start":{"date":"2027-03-05","time":"10:00:00","utc":true},
        "end":{"date":"2027-03-05","time":"11:00:00","utc":true},"attendees":[{"email":"eve@q.example","rsvp":true}]}]}"#;
    let headers = [
        ("cookie", ada.cookie.as_str()),
        ("content-type", "application/json"),
    ];
    let path = "/mail/ada/api/calendar/events";
    let made = send(server.address(), "POST", path, &headers, meeting.as_bytes());
    assert_eq!(made.status, 201, "{}", text(&made));
    let said = "UID:own\nDTSTAMP:20260202T080000Z\nORGANIZER:mailto:ada@localhost\n\
        ATTENDEE;PARTSTAT=DECLINED;CN=Eve <Stone>:mailto:eve@q.example\nCOMMENT:On a <ship>\\, sorry\n";
    let reply = bring(&ada, &event("REPLY", said));
    let page = ada.get(&reply);
    for expected in [
        "<bdi>Eve &lt;Stone&gt;</bdi>",
        "doesn't come",
        "On a &lt;ship&gt;, sorry",
        "Record the answer",
        // The calendar has the time, where the reply doesn't.
        "5 March 2027",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!ada.get("/calendar/event/own").contains("doesn't come"));
    let page = press(&ada, &reply, "record");
    assert!(page.contains("The answer is recorded in"), "{page}");
    assert!(!page.contains("Record the answer"));
    assert!(ada.get("/calendar/event/own").contains("doesn't come"));
    let stranger = bring(&ada, &event("REPLY", &said.replace("eve@", "mallory@")));
    let page = ada.get(&stranger);
    assert!(page.contains("haven't invited this address"), "{page}");
    assert!(!page.contains("Record the answer"));
}
