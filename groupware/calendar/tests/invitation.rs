//! Invitations received by mail, and the calendar after replies to them.

use groupware_calendar::{
    Action, Answer, CalendarError, Entry, MailInvitation, MailMessage, Status, answer_mail, entry,
};
use serde_json::json;

use crate::support::brought::{ALL_2026, calendar, original, records};
use crate::support::{World, meeting, user};

fn mail(lines: &str) -> String {
    let event = format!(
        "BEGIN:VEVENT\r\nUID:pier\r\nORGANIZER;CN=Ben:mailto:ben@q.example\r\n\
         ATTENDEE;RSVP=TRUE;PARTSTAT=NEEDS-ACTION;X-N=1:MAILTO:{}@LOCALHOST\r\n\
         ATTENDEE;PARTSTAT=ACCEPTED:mailto:eve@q.example\r\n{lines}END:VEVENT\r\n",
        user(0)
    );
    calendar(&[&event]).replace("VERSION", "METHOD:REQUEST\r\nVERSION")
}

const ONCE: &str = "DTSTAMP:20260101T000000Z\r\nDTSTART:20260305T100000Z\r\nDTEND:20260305T110000Z\r\n\
    SUMMARY:Pier\r\nBEGIN:VALARM\r\nTRIGGER:-PT5M\r\nEND:VALARM\r\n";

fn read(part: &str) -> Option<MailInvitation> {
    invitation_of(part, 0)
}

/// An invitation received by mail, for a user.
fn invitation_of(part: &str, number: u32) -> Option<MailInvitation> {
    let owner = format!("{}@localhost", user(number));
    match MailMessage::read(part, &owner, crate::support::NOW)? {
        MailMessage::Invitation(invitation) => Some(invitation),
        MailMessage::Cancellation(_) | MailMessage::Reply(_) => None,
    }
}

fn act(world: &mut World, part: &str, action: Action) -> Result<(), (u16, String)> {
    let invitation = read(part).unwrap();
    let done = world.change(&user(0), |context| {
        answer_mail(context, &invitation, action)
    });
    let told = |error: CalendarError| (error.status(), error.to_string());
    done.map(|_| ()).map_err(told)
}

fn held(world: &World) -> Option<Entry> {
    world
        .store
        .read(|snapshot| entry(snapshot, &user(0), "pier"))
        .ok()
}

#[test]
fn an_answer_puts_it_on_the_calendar_or_takes_it_off() {
    let mut world = World::new(1);
    let part = mail(ONCE);
    let invitation = read(&part).unwrap();
    assert!(invitation.is_request());
    assert_eq!(invitation.entry().event.organizer.email, "ben@q.example");
    act(&mut world, &part, Action::Decline).unwrap();
    assert!(held(&world).is_none());
    for (action, answer, word) in [
        (Action::Accept, Answer::Accepted, "ACCEPTED"),
        (Action::Tentative, Answer::Tentative, "TENTATIVE"),
        (Action::Accept, Answer::Accepted, "ACCEPTED"),
    ] {
        act(&mut world, &part, action).unwrap();
        assert_eq!(held(&world).unwrap().own_answer(), Some(answer));
        // All other lines are unchanged, and the mail's method is removed.
        let expected = part.replace("METHOD:REQUEST\r\n", "").replace(
            ";RSVP=TRUE;PARTSTAT=NEEDS-ACTION;X-N=1:MAILTO",
            &format!(";RSVP=TRUE;X-N=1;PARTSTAT={word}:MAILTO"),
        );
        let kept = original(&world, "pier");
        assert_eq!(kept.replace("\r\n ", ""), expected);
        assert_eq!(records(&world), 2);
    }
    act(&mut world, &part, Action::Decline).unwrap();
    assert_eq!(records(&world), 0);
}

#[test]
fn a_newer_mail_takes_the_place_of_an_older_one() {
    let mut world = World::new(1);
    let newer = mail(&ONCE.replace("T10", "T12").replace("T11", "T13"))
        .replace("UID:pier", "UID:pier\r\nSEQUENCE:1");
    act(&mut world, &mail(ONCE), Action::Accept).unwrap();
    act(&mut world, &newer, Action::Accept).unwrap();
    let hour = |world: &World| world.events(0, &ALL_2026)[0]["start"]["time"].clone();
    assert_eq!(hour(&world), json!("12:00:00"));
    // A reply to the older version applies to the stored event.
    act(&mut world, &mail(ONCE), Action::Tentative).unwrap();
    assert_eq!(hour(&world), json!("12:00:00"));
    assert_eq!(held(&world).unwrap().own_answer(), Some(Answer::Tentative));
}

#[test]
fn one_instance_goes_to_its_series() {
    let mut world = World::new(1);
    let series = mail(&format!("RRULE:FREQ=DAILY;COUNT=3\r\n{ONCE}"));
    let moved = ONCE
        .replace("0305T10", "0306T15")
        .replace("0305T11", "0306T16");
    let moved = mail(&format!(
        "RECURRENCE-ID:20260306T100000Z\r\nSTATUS:TENTATIVE\r\n{moved}"
    ));
    act(&mut world, &series, Action::Accept).unwrap();
    act(&mut world, &moved, Action::Accept).unwrap();
    let lines = world.events(0, &ALL_2026);
    let times: Vec<_> = lines
        .iter()
        .map(|line| line["start"]["time"].as_str().unwrap())
        .collect();
    assert_eq!(times, ["10:00:00", "15:00:00", "10:00:00"]);
    let (status, _) = act(&mut world, &moved, Action::Decline).unwrap_err();
    assert_eq!(status, 400);
    act(&mut world, &series, Action::Decline).unwrap();
    assert_eq!(records(&world), 0);
    // Without its series, it is on the calendar alone.
    act(&mut world, &moved, Action::Accept).unwrap();
    assert_eq!(
        held(&world).unwrap().event.details.status,
        Status::Tentative
    );
    act(&mut world, &moved, Action::Decline).unwrap();
    assert_eq!(records(&world), 0);
}

#[test]
fn nobody_takes_the_place_of_an_event_of_somebody_else() {
    let mut world = World::new(2);
    act(&mut world, &mail(ONCE), Action::Accept).unwrap();
    let before = original(&world, "pier");
    let forged = mail(ONCE)
        .replace("ben@q.example", "mallory@q.example")
        .replace("UID:pier", "UID:pier\r\nSEQUENCE:9");
    for action in [Action::Accept, Action::Tentative, Action::Decline] {
        let (status, message) = act(&mut world, &forged, action).unwrap_err();
        assert!(
            status == 400 && message.contains("somebody else"),
            "{message}"
        );
        assert_eq!(original(&world, "pier"), before);
    }
    // An own event of this server, and a meeting of this server.
    let mut own = meeting(5, &[1]);
    own["id"] = json!("own");
    world.create(0, &own).unwrap();
    let about = |organizer: &str| {
        mail(ONCE)
            .replace("UID:pier", "UID:own")
            .replace("ben@q.example", organizer)
    };
    let local = format!("{}@localhost", user(0));
    let (_, message) = act(&mut world, &about(&local), Action::Accept).unwrap_err();
    assert!(message.contains("your own event"), "{message}");
    let invited = invitation_of(&about(&local), 1).unwrap();
    world
        .change(&user(1), |context| {
            answer_mail(context, &invited, Action::Accept)
        })
        .unwrap();
    let seen = world.event(0, "own").unwrap();
    assert_eq!(seen["attendees"][0]["status"], "accepted");
    let other = about("ben@q.example");
    let other = invitation_of(&other, 1).unwrap();
    let refused = world.change(&user(1), |context| {
        answer_mail(context, &other, Action::Decline)
    });
    assert_eq!(refused.map(|_| ()).unwrap_err().status(), 400);
}

#[test]
fn what_is_no_event_to_answer_is_none() {
    let task = calendar(&["BEGIN:VTODO\r\nUID:t\r\nSUMMARY:x\r\nEND:VTODO\r\n"]);
    let two = calendar(&[
        &crate::support::brought::single("a", ""),
        &crate::support::brought::single("b", ""),
    ]);
    for part in [
        "",
        "Dear all",
        &task,
        &two,
        &mail(ONCE).replace("METHOD:REQUEST", "METHOD:REPLY"),
        &mail(ONCE).replace("METHOD:REQUEST", "METHOD:CANCEL"),
        &mail("SUMMARY:never\r\n"),
    ] {
        assert!(read(part).is_none(), "{part}");
    }
    let published = mail(ONCE).replace("METHOD:REQUEST\r\n", "");
    assert!(!read(&published).unwrap().is_request());
}
