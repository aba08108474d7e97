//! Cancellations and replies received by mail, in the forms of several programs, and the calendar after them.

use groupware_calendar::{
    Action, Answer, CalendarError, Cancellation, CancelledCopy, Entry, MailMessage, Reply, Status,
    answer_mail, apply_cancellation, entry, record_reply,
};
use serde_json::{Value, json};

use crate::support::brought::{ALL_2026, bring, calendar, original, records, single};
use crate::support::{NOW, World, meeting, user};

/// Google: all lines of the invitation, with a higher version.
const GOOGLE_CANCEL: &str = "BEGIN:VCALENDAR\r\nPRODID:-//Google Inc//Google Calendar 70.9054//EN\r\nVERSION:2.0\r\n\
    CALSCALE:GREGORIAN\r\nMETHOD:CANCEL\r\nBEGIN:VEVENT\r\nDTSTART:20260305T100000Z\r\nDTEND:20260305T110000Z\r\n\
    DTSTAMP:20260301T080000Z\r\nORGANIZER;CN=Ben:mailto:ben@q.example\r\nUID:pier\r\n\
    ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;CN=user00000@localhost;X-NUM-GUESTS=0:mailto:\r\n \
    user00000@localhost\r\nCREATED:20260201T080000Z\r\nLAST-MODIFIED:20260301T080000Z\r\nSEQUENCE:1\r\nSTATUS:CANCELLED\r\n\
    SUMMARY:Pier\r\nTRANSP:OPAQUE\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

/// Exchange: one instance of a series, in a time zone with Exchange's own name.
const EXCHANGE_CANCEL: &str = "BEGIN:VCALENDAR\r\nMETHOD:CANCEL\r\nPRODID:Microsoft Exchange Server 2010\r\nVERSION:2.0\r\n\
    BEGIN:VTIMEZONE\r\nTZID:W. Europe Standard Time\r\nBEGIN:STANDARD\r\nDTSTART:16010101T030000\r\nTZOFFSETFROM:+0200\r\n\
    TZOFFSETTO:+0100\r\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10\r\nEND:STANDARD\r\nBEGIN:DAYLIGHT\r\n\
    DTSTART:16010101T020000\r\nTZOFFSETFROM:+0100\r\nTZOFFSETTO:+0200\r\nRRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3\r\n\
    END:DAYLIGHT\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\nORGANIZER;CN=Ben:mailto:ben@q.example\r\n\
    ATTENDEE;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE;CN=user:mailto:user00000@localhost\r\n\
    DESCRIPTION;LANGUAGE=de-DE:\\n\r\nUID:pier\r\nSUMMARY;LANGUAGE=de-DE:Abgesagt: Pier\r\n\
    RECURRENCE-ID;TZID=W. Europe Standard Time:20260306T110000\r\nDTSTART;TZID=W. Europe Standard Time:20260306T110000\r\n\
    DTEND;TZID=W. Europe Standard Time:20260306T120000\r\nCLASS:PUBLIC\r\nPRIORITY:1\r\nDTSTAMP:20260302T090000Z\r\n\
    TRANSP:TRANSPARENT\r\nSTATUS:CANCELLED\r\nSEQUENCE:2\r\nX-MICROSOFT-CDO-APPT-SEQUENCE:2\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

/// Apple: only the event's name.
const APPLE_CANCEL: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Apple Inc.//macOS 14.5//EN\r\nMETHOD:cancel\r\n\
    CALSCALE:GREGORIAN\r\nBEGIN:VEVENT\r\nUID:pier\r\nORGANIZER;CN=\"Ben\";EMAIL=\"ben@q.example\":MAILTO:Ben@Q.example\r\n\
    ATTENDEE;CN=\"user\";CUTYPE=INDIVIDUAL:mailto:user00000@localhost\r\nDTSTAMP:20260301T080000Z\r\nSUMMARY:Pier\r\n\
    SEQUENCE:1\r\nSTATUS:CANCELLED\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

const GOOGLE_REPLY: &str = "BEGIN:VCALENDAR\r\nPRODID:-//Google Inc//Google Calendar 70.9054//EN\r\nVERSION:2.0\r\n\
    CALSCALE:GREGORIAN\r\nMETHOD:REPLY\r\nBEGIN:VEVENT\r\nDTSTART:20260105T090000Z\r\nDTEND:20260105T100000Z\r\n\
    DTSTAMP:20260102T080000Z\r\nORGANIZER;CN=user:mailto:user00000@localhost\r\nUID:own\r\n\
    ATTENDEE;CUTYPE=INDIVIDUAL;ROLE=REQ-PARTICIPANT;PARTSTAT=ACCEPTED;CN=Eve Stone;X-NUM-GUESTS=0:mailto:Eve@q.example\r\n\
    SEQUENCE:0\r\nSTATUS:CONFIRMED\r\nSUMMARY:Meeting on 5\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

/// Exchange: no organizer, a comment, and the kind of reply in the summary.
const EXCHANGE_REPLY: &str = "BEGIN:VCALENDAR\r\nMETHOD:REPLY\r\nPRODID:Microsoft Exchange Server 2010\r\nVERSION:2.0\r\n\
    BEGIN:VEVENT\r\nATTENDEE;PARTSTAT=TENTATIVE;CN=Eve Stone:MAILTO:eve@q.example\r\nCOMMENT;LANGUAGE=de-DE:Vielleicht\\, wenn \r\n \
    der Zug kommt\\n\r\nUID:own\r\nSUMMARY;LANGUAGE=de-DE:Mit Vorbehalt: Meeting on 5\r\nDTSTART:20260105T090000Z\r\n\
    DTEND:20260105T100000Z\r\nCLASS:PUBLIC\r\nDTSTAMP:20260102T090000Z\r\nTRANSP:OPAQUE\r\nSTATUS:CONFIRMED\r\nSEQUENCE:0\r\n\
    END:VEVENT\r\nEND:VCALENDAR\r\n";

/// Apple: without times.
const APPLE_REPLY: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Apple Inc.//iOS 17.5//EN\r\nMETHOD:REPLY\r\nBEGIN:VEVENT\r\n\
    UID:own\r\nDTSTAMP:20260102T100000Z\r\nORGANIZER;CN=\"user\";EMAIL=\"user00000@localhost\":mailto:user00000@localhost\r\n\
    ATTENDEE;CN=\"Eve Stone\";CUTYPE=INDIVIDUAL;EMAIL=\"eve@q.example\";PARTSTAT=DECLINED:mailto:eve@q.example\r\n\
    REQUEST-STATUS:2.0;Success\r\nSEQUENCE:0\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";

/// The invitation that is cancelled.
fn invited(rule: &str) -> String {
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//Q//EN\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nUID:pier\r\n\
         DTSTAMP:20260201T080000Z\r\nORGANIZER;CN=Ben:mailto:ben@q.example\r\nATTENDEE:mailto:user00000@localhost\r\n\
         DTSTART:20260305T100000Z\r\nDTEND:20260305T110000Z\r\n{rule}SUMMARY:Pier\r\nX-KEPT:1\r\nEND:VEVENT\r\n\
         END:VCALENDAR\r\n"
    )
}

fn message(part: &str) -> Option<MailMessage> {
    MailMessage::read(part, &format!("{}@localhost", user(0)), NOW)
}

fn cancellation(part: &str) -> Cancellation {
    match message(part) {
        Some(MailMessage::Cancellation(it)) => it,
        other => panic!("{other:?}"),
    }
}

fn reply(part: &str) -> Reply {
    match message(part) {
        Some(MailMessage::Reply(it)) => it,
        other => panic!("{other:?}"),
    }
}

fn told(done: Result<Option<Entry>, CalendarError>) -> Result<(), String> {
    done.map(drop).map_err(|error| {
        assert_eq!(error.status(), 400);
        error.to_string()
    })
}

fn accept(world: &mut World, part: &str) {
    let Some(MailMessage::Invitation(invitation)) = message(part) else {
        panic!("{part}");
    };
    let accepted = world.change(&user(0), |context| {
        answer_mail(context, &invitation, Action::Accept)
    });
    accepted.unwrap();
}

fn cancel(world: &mut World, part: &str, copy: CancelledCopy) -> Result<(), String> {
    let cancellation = cancellation(part);
    told(world.change(&user(0), |context| {
        apply_cancellation(context, &cancellation, copy)
    }))
}

fn record(world: &mut World, part: &str) -> Result<(), String> {
    let reply = reply(part);
    told(world.change(&user(0), |context| record_reply(context, &reply)))
}

fn held(world: &World, uid: &str) -> Option<Entry> {
    let find = |snapshot: &dyn groupware_store::Snapshot| entry(snapshot, &user(0), uid);
    world.store.read(find).ok()
}

fn status(world: &World) -> Option<Status> {
    held(world, "pier").map(|entry| entry.event.details.status)
}

#[test]
fn a_cancelled_event_is_marked_or_removed() {
    for part in [GOOGLE_CANCEL, APPLE_CANCEL] {
        let mut world = World::new(1);
        let found = cancellation(part);
        assert!(found.is_whole());
        assert_eq!(found.choices(None).unwrap_err().status(), 400);
        accept(&mut world, &invited(""));
        let choices = |world: &World| found.choices(held(world, "pier").as_ref()).unwrap();
        let open = choices(&world);
        assert!(open.can_remove && !open.is_marked);
        cancel(&mut world, part, CancelledCopy::Mark).unwrap();
        assert_eq!(status(&world), Some(Status::Cancelled));
        let kept = original(&world, "pier");
        assert!(
            kept.contains("X-KEPT:1") && !kept.contains("METHOD"),
            "{kept}"
        );
        let marked = choices(&world);
        assert!(marked.can_remove && marked.is_marked);
        // A repetition changes nothing, and an earlier invitation doesn't restore the event.
        cancel(&mut world, part, CancelledCopy::Mark).unwrap();
        accept(&mut world, &invited(""));
        assert_eq!(status(&world), Some(Status::Cancelled));
        cancel(&mut world, part, CancelledCopy::Remove).unwrap();
        assert_eq!(records(&world), 0);
        assert!(cancel(&mut world, part, CancelledCopy::Remove).is_err());
    }
}

#[test]
fn a_later_invitation_revives_a_cancelled_event() {
    let mut world = World::new(1);
    accept(&mut world, &invited(""));
    cancel(&mut world, GOOGLE_CANCEL, CancelledCopy::Mark).unwrap();
    let again = invited("SEQUENCE:2\r\n");
    accept(&mut world, &again);
    assert_eq!(status(&world), Some(Status::Confirmed));
    for copy in [CancelledCopy::Mark, CancelledCopy::Remove] {
        let refused = cancel(&mut world, GOOGLE_CANCEL, copy).unwrap_err();
        assert!(refused.contains("newer version"), "{refused}");
    }
    assert_eq!(status(&world), Some(Status::Confirmed));
}

#[test]
fn one_cancelled_instance_is_marked_in_its_series() {
    let mut world = World::new(1);
    let found = cancellation(EXCHANGE_CANCEL);
    assert!(!found.is_whole());
    accept(&mut world, &invited("RRULE:FREQ=DAILY;COUNT=3\r\n"));
    cancel(&mut world, EXCHANGE_CANCEL, CancelledCopy::Mark).unwrap();
    let said = |world: &World| -> Vec<Value> {
        let lines = world.events(0, &ALL_2026);
        lines.iter().map(|line| line["status"].clone()).collect()
    };
    let are_cancelled: Vec<_> = said(&world).iter().map(|it| it == "cancelled").collect();
    assert_eq!(are_cancelled, [false, true, false]);
    assert!(
        found
            .choices(held(&world, "pier").as_ref())
            .unwrap()
            .is_marked
    );
    let refused = cancel(&mut world, EXCHANGE_CANCEL, CancelledCopy::Remove).unwrap_err();
    assert!(refused.contains("can't be removed"), "{refused}");
    // An instance that doesn't exist.
    let other = EXCHANGE_CANCEL.replace("20260306T1", "20260309T1");
    let refused = cancel(&mut world, &other, CancelledCopy::Mark).unwrap_err();
    assert!(refused.contains("isn't in your calendar"), "{refused}");
    assert_eq!(said(&world).len(), 3);
    // The whole series, after one of its instances.
    let whole = GOOGLE_CANCEL.replace("SEQUENCE:1", "SEQUENCE:3");
    cancel(&mut world, &whole, CancelledCopy::Mark).unwrap();
    assert!(said(&world).iter().all(|it| it == "cancelled"));
    cancel(&mut world, &whole, CancelledCopy::Remove).unwrap();
    assert_eq!(records(&world), 0);
}

#[test]
fn nobody_else_cancels_an_event() {
    let mut world = World::new(2);
    accept(&mut world, &invited(""));
    let before = original(&world, "pier");
    let forged = GOOGLE_CANCEL.replace("ben@q.example", "mallory@q.example");
    let unsigned = GOOGLE_CANCEL.replace("ORGANIZER;CN=Ben:mailto:ben@q.example\r\n", "");
    for part in [&forged, &unsigned] {
        for copy in [CancelledCopy::Mark, CancelledCopy::Remove] {
            let refused = cancel(&mut world, part, copy).unwrap_err();
            assert!(refused.contains("somebody else"), "{refused}");
        }
    }
    assert_eq!(original(&world, "pier"), before);
    // Meetings of this server follow their organizers.
    let mut own = meeting(5, &[0]);
    own["id"] = json!("pier2");
    world.create(1, &own).unwrap();
    let notice = world.notice_ids(0).remove(0);
    let accepted = groupware_calendar::Target::Notice(&notice);
    world.act(0, accepted, "accept", &Value::Null).unwrap();
    let about = GOOGLE_CANCEL.replace("UID:pier", "UID:pier2");
    let about = about.replace("ben@q.example", &format!("{}@localhost", user(1)));
    let refused = cancel(&mut world, &about, CancelledCopy::Remove).unwrap_err();
    assert!(refused.contains("user of this server"), "{refused}");
    world.delete(1, "pier2", true).unwrap();
    cancel(&mut world, &about, CancelledCopy::Remove).unwrap();
    assert!(held(&world, "pier2").is_none());
    let mut mine = meeting(6, &[]);
    mine["id"] = json!("pier3");
    world.create(0, &mine).unwrap();
    let about = about.replace("pier2", "pier3");
    let refused = cancel(&mut world, &about, CancelledCopy::Remove).unwrap_err();
    assert!(refused.contains("your own event"), "{refused}");
    // Nor an imported one without an external organizer.
    bring(&world, &calendar(&[&single("mine", "SUMMARY:Mine\r\n")]));
    let unsigned = unsigned.replace("UID:pier", "UID:mine");
    let refused = cancel(&mut world, &unsigned, CancelledCopy::Remove).unwrap_err();
    assert!(refused.contains("your own event"), "{refused}");
}

/// A meeting of the first user with an external attendee and the second user.
fn own_meeting(world: &mut World) {
    let mut own = meeting(5, &[1]);
    own["id"] = json!("own");
    let people = own["attendees"].as_array_mut().unwrap();
    people.push(json!({"email": "eve@q.example", "rsvp": true}));
    world.create(0, &own).unwrap();
}

fn answer_of(world: &World, address: &str) -> Answer {
    let entry = held(world, "own").unwrap();
    let mut people = entry.event.attendees.iter();
    people.find(|it| it.email == address).unwrap().status
}

#[test]
fn the_answer_of_an_attendee_is_recorded() {
    let mut world = World::new(2);
    own_meeting(&mut world);
    let delegated = GOOGLE_REPLY.replace(
        "PARTSTAT=ACCEPTED",
        "PARTSTAT=DELEGATED;DELEGATED-TO=\"mailto:joe@q.example\"",
    );
    for (part, answer) in [
        (GOOGLE_REPLY, Answer::Accepted),
        (EXCHANGE_REPLY, Answer::Tentative),
        (APPLE_REPLY, Answer::Declined),
        (&delegated, Answer::Delegated),
        (GOOGLE_REPLY, Answer::Accepted),
    ] {
        assert_eq!(reply(part).attendee().status, answer);
        record(&mut world, part).unwrap();
        assert_eq!(answer_of(&world, "eve@q.example"), answer);
        let entry = held(&world, "own").unwrap();
        let eve = reply(part).recorded(Some(&entry)).unwrap().clone();
        let to = (answer == Answer::Delegated).then(|| "joe@q.example".to_owned());
        assert_eq!((eve.status, eve.delegated_to), (answer, to));
    }
    let comment = "Vielleicht, wenn der Zug kommt\n";
    assert_eq!(reply(EXCHANGE_REPLY).comment(), Some(comment));
    assert_eq!(
        answer_of(&world, "user00001@localhost"),
        Answer::NeedsAction
    );
    // A reply doesn't change the meeting's version.
    assert_eq!(held(&world, "own").unwrap().event.sequence, 0);
    let mut later = meeting(7, &[1]);
    later["attendees"]
        .as_array_mut()
        .unwrap()
        .push(json!({"email": "eve@q.example"}));
    world.update(0, "own", &later, Default::default()).unwrap();
    assert!(reply(GOOGLE_REPLY).is_outdated(&held(&world, "own").unwrap()));
}

#[test]
fn an_answer_is_recorded_in_the_lines_of_an_imported_event() {
    let mut world = World::new(1);
    let file = GOOGLE_REPLY
        .replace("METHOD:REPLY\r\n", "")
        .replace("PARTSTAT=ACCEPTED", "X-KEPT=1");
    bring(&world, &file);
    record(&mut world, APPLE_REPLY).unwrap();
    assert_eq!(answer_of(&world, "Eve@q.example"), Answer::Declined);
    let kept = original(&world, "own").replace("\r\n ", "");
    assert!(
        kept.contains(";X-KEPT=1;") && kept.contains(";PARTSTAT=DECLINED:mailto:Eve@q.example")
    );
    let instance = APPLE_REPLY.replace("UID:own", "UID:own\r\nRECURRENCE-ID:20260105T090000Z");
    let refused = record(&mut world, &instance).unwrap_err();
    assert!(refused.contains("one event of a series"), "{refused}");
}

#[test]
fn answers_that_cannot_be_recorded_say_why() {
    let mut world = World::new(2);
    let refused = record(&mut world, GOOGLE_REPLY).unwrap_err();
    assert!(refused.contains("isn't in your calendar"), "{refused}");
    own_meeting(&mut world);
    let of = |address: &str| GOOGLE_REPLY.replace("Eve@q.example", address);
    for (part, why) in [
        (of("mallory@q.example"), "haven't invited"),
        (of("user00001@localhost"), "user of this server"),
    ] {
        let before = held(&world, "own");
        let refused = record(&mut world, &part).unwrap_err();
        assert!(refused.contains(why), "{refused}");
        assert_eq!(held(&world, "own"), before);
    }
    accept(&mut world, &invited(""));
    let refused = record(
        &mut world,
        &of("eve@q.example").replace("UID:own", "UID:pier"),
    );
    assert!(refused.unwrap_err().contains("Somebody else organizes"));
}

#[test]
fn what_is_no_message_about_one_event_is_none() {
    let line = "ATTENDEE;PARTSTAT=ACCEPTED:mailto:joe@q.example\r\nSEQUENCE";
    for part in [
        GOOGLE_REPLY.replace("PARTSTAT=ACCEPTED", "PARTSTAT=NEEDS-ACTION"),
        GOOGLE_REPLY.replace("PARTSTAT=ACCEPTED", "PARTSTAT=IN-PROCESS"),
        GOOGLE_REPLY.replace("ATTENDEE", "X-ATTENDEE"),
        GOOGLE_REPLY.replacen("SEQUENCE", line, 1),
        GOOGLE_REPLY.replace("REPLY", "COUNTER"),
        GOOGLE_REPLY.replace("VEVENT", "VTODO"),
        GOOGLE_CANCEL.replace("VEVENT", "VTODO"),
        GOOGLE_CANCEL.replace("CANCEL\r\n", "DECLINECOUNTER\r\n"),
        GOOGLE_CANCEL.replace("END:VEVENT\r\n", ""),
    ] {
        assert!(message(&part).is_none(), "{part}");
    }
}
