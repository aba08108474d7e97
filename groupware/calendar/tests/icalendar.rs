//! Reading and writing iCalendar.

use crate::support::{World, meeting, user};
use groupware_calendar::{
    EventQuery, Format, NewEvent, Target, UpdateOptions, create, event, events, notice,
    parse_icalendar, update,
};
use serde_json::json;

fn calendar(lines: &str) -> String {
    let body = lines.trim().replace('\n', "\r\n");
    format!(
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\n{body}\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
    )
}

fn parsed(lines: &str) -> NewEvent {
    parse_icalendar(calendar(lines).as_bytes())
        .unwrap()
        .remove(0)
}

const MEETING: &str = "
UID:abc@example.org
SUMMARY:Plans\\, and more
DTSTART;TZID=Europe/Berlin:20260105T090000
DURATION:PT1H
SEQUENCE:2
CATEGORIES:a,b
X-MINE:7
X-LOTUS-NOTICETYPE:I
ORGANIZER;CN=\"Zero, User\":mailto:user00000@localhost
ATTENDEE;ROLE=OPT-PARTICIPANT;RSVP=TRUE;CN=One:MAILTO:user00001@localhost
ATTENDEE;PARTSTAT=ACCEPTED:mailto:eve@example.org";

#[test]
fn a_meeting_is_read_whole() {
    let new = parsed(MEETING);
    assert_eq!(new.uid.as_deref(), Some("abc@example.org"));
    assert_eq!(new.sequence, Some(2));
    assert_eq!(new.organizer.as_deref(), Some("user00000@localhost"));
    assert_eq!(new.organizer_name.as_deref(), Some("Zero, User"));
    assert_eq!(new.details.summary.as_deref(), Some("Plans, and more"));
    assert_eq!(new.details.categories, ["a", "b"]);
    assert_eq!(
        new.details.end.instant() - new.details.start.instant(),
        3600
    );
    assert_eq!(
        new.details.extra,
        [("x-mine".to_owned(), json!({"data": "7"}))]
    );
    let one = &new.attendees[0];
    assert_eq!(
        (one.address.as_str(), one.rsvp),
        ("user00001@localhost", true)
    );
    assert_eq!(one.role.as_str(), "opt-participant");
}

#[test]
fn dates_of_every_kind_are_read() {
    let start = |line: &str| parsed(line).details.start;
    assert!(start("DTSTART;VALUE=DATE:20260105").is_day());
    let nine = start("DTSTART:20260105T090000Z").instant();
    assert_eq!(start("DTSTART:20260105T090000").instant(), nine);
    assert_eq!(
        start("DTSTART;TZID=Europe/Berlin:20260105T100000").instant(),
        nine
    );
    assert_eq!(
        start("DTSTART;TZID=Romance Standard Time:20260105T100000").instant(),
        nine
    );
    assert_eq!(
        parsed("DTSTART;VALUE=DATE:20260105").details.end.instant(),
        nine + 15 * 3600
    );
}

#[test]
fn wrong_calendars_are_refused_in_words() {
    let cases = [
        (String::new(), None, "Empty request body."),
        ("hello".into(), Some(1034), "Invalid iCalendar"),
        (
            "BEGIN:VCARD\r\nEND:VCARD\r\n".into(),
            Some(1034),
            "Invalid iCalendar",
        ),
        (
            "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\n".into(),
            Some(1034),
            "Invalid iCalendar",
        ),
        (
            calendar("SUMMARY:x"),
            Some(1034),
            "Invalid iCalendar: an event has no DTSTART.",
        ),
        (
            calendar("DTSTART:tomorrow"),
            Some(1034),
            "Invalid iCalendar: DTSTART is no date.",
        ),
        (
            calendar("DTSTART:20260105T090000Z\nRRULE:FREQ=DAILY"),
            None,
            "Recurring events are not supported: remove RRULE.",
        ),
        (
            calendar("DTSTART:20260105T090000Z\nRECURRENCE-ID:20260105T090000Z"),
            None,
            "Recurring events are not supported: remove RECURRENCE-ID.",
        ),
        (
            calendar("DTSTART;TZID=Nowhere:20260105T090000"),
            None,
            "Unknown time zone: Nowhere",
        ),
        (
            calendar("DTSTART:20260105T090000Z\nDTEND:20260104T090000Z"),
            None,
            "The event ends before it starts.",
        ),
        (
            calendar("DTSTART:20260105T090000Z").replace("VERSION:2.0", "METHOD:CANCEL"),
            Some(1034),
            "Invalid iCalendar: METHOD CANCEL can't be stored.",
        ),
    ];
    for (text, cserror, words) in cases {
        let error = parse_icalendar(text.as_bytes()).unwrap_err();
        assert_eq!(
            (error.status(), error.cserror()),
            (400, cserror),
            "{text}: {error}"
        );
        assert!(error.to_string().starts_with(words), "{text}: {error}");
    }
    assert_eq!(
        parse_icalendar(b"BEGIN:VCALENDAR\xFF")
            .unwrap_err()
            .cserror(),
        Some(1034)
    );
}

#[test]
fn a_stored_event_is_written_and_read_back_alike() {
    let mut world = World::new(10);
    let new = parsed(MEETING);
    let again = new.clone();
    world
        .change(&user(0), |context| create(context, new.clone(), true))
        .unwrap();
    let (_, text) = world
        .store
        .read(|snapshot| event(snapshot, &user(0), "abc@example.org", Format::ICalendar))
        .unwrap();
    let text = String::from_utf8(text).unwrap();
    insta::assert_snapshot!(text.replace("\r\n", "\n"));
    let mut read = parse_icalendar(text.as_bytes()).unwrap().remove(0);
    assert_eq!(read.sequence, Some(2));
    assert_eq!(read.details.end.instant(), again.details.end.instant());
    read.details.end = again.details.end.clone();
    assert_eq!(read.details, again.details);
    assert_eq!(read.attendees, again.attendees);
}

#[test]
fn what_an_event_has_no_member_for_stays_with_it() {
    let mut world = World::new(3);
    let extra = "LOCATION;ALTREP=\"http://q.example/map\";LANGUAGE=de:Kai 4\r\n\
        ATTACH;FMTTYPE=text/plain;ENCODING=BASE64;VALUE=BINARY:SGVsbG8=\r\nGEO:53.5;9.9\r\nCONTACT:Ben\\, pier 4\r\n\
        RESOURCES:projector,chairs\r\nRELATED-TO;RELTYPE=PARENT:p@q.example\r\nCOMMENT:one\r\nCOMMENT:two\r\n\
        X-MANY;X-P=\"a;b\":1,2\r\nX-MANY:3\r\nX-ONE:text\r\nBEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT15M\r\n\
        X-OF-ALARM:1\r\nEND:VALARM\r\n";
    let people = format!(
        "ORGANIZER:mailto:{0}@localhost\r\nATTENDEE:mailto:{0}@localhost\r\n\
         ATTENDEE;CUTYPE=GROUP;MEMBER=\"mailto:all@q.example\";SENT-BY=\"mailto:s@q.example\";X-COLOUR=red:mailto:{1}@localhost\r\n",
        user(0),
        user(1)
    );
    let body = |summary: &str, rest: &str| {
        format!(
            "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nBEGIN:VEVENT\r\nUID:rich\r\nDTSTART:20260105T090000Z\r\n\
             DTEND:20260105T100000Z\r\nSUMMARY:{summary}\r\n{people}{rest}END:VEVENT\r\nEND:VCALENDAR\r\n"
        )
    };
    let read = |world: &World, number| {
        let owner = user(number);
        let found = world
            .store
            .read(|snapshot| event(snapshot, &owner, "rich", Format::ICalendar));
        String::from_utf8(found.unwrap().1)
            .unwrap()
            .replace("\r\n ", "")
    };
    let put = |world: &mut World, text: &str| {
        let new = parse_icalendar(text.as_bytes()).unwrap().remove(0);
        world
            .change(&user(0), |context| {
                update(context, "rich", new.clone(), UpdateOptions::default())
            })
            .unwrap();
    };
    let new = parse_icalendar(body("first", extra).as_bytes())
        .unwrap()
        .remove(0);
    world
        .change(&user(0), |context| create(context, new.clone(), true))
        .unwrap();
    let has_all = |text: &str, alarms: bool| {
        let lines = extra.split_inclusive("\r\n");
        let of_alarm = extra[extra.find("BEGIN:VALARM").unwrap()..].to_owned();
        for line in lines {
            let expected = !of_alarm.contains(line) || alarms;
            assert_eq!(
                text.matches(line).count(),
                usize::from(expected),
                "{line} in {text}"
            );
        }
        assert!(text.contains("X-COLOUR=red"), "{text}");
        for part in [
            "CUTYPE=GROUP",
            "MEMBER=\"mailto:all@q.example\"",
            "SENT-BY=\"mailto:s@q.example\"",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    };
    has_all(&read(&world, 0), true);
    // A client that reads it, changes one line, and sends it back loses no line.
    let text = read(&world, 0).replace("SUMMARY:first", "SUMMARY:second");
    put(&mut world, &text);
    let text = read(&world, 0);
    assert!(text.contains("SUMMARY:second"), "{text}");
    has_all(&text, true);
    // A change by JSON doesn't remove them, and an alarm set by JSON survives a change by iCalendar.
    let mut json = world.event(0, "rich").unwrap();
    json["summary"] = json!("third");
    json["alarm"] = json!({"action": "display"});
    world
        .update(0, "rich", &json, UpdateOptions::default())
        .unwrap();
    let text = read(&world, 0);
    assert!(text.contains("SUMMARY:third"), "{text}");
    has_all(&text, true);
    put(&mut world, &text.replace("SUMMARY:third", "SUMMARY:fourth"));
    assert_eq!(world.event(0, "rich").unwrap()["alarm"], json["alarm"]);
    // Invited users have them, too, except for the organizer's alarms.
    let id = world.notice_ids(1).remove(0);
    world
        .act(1, Target::Notice(&id), "accept", &serde_json::Value::Null)
        .unwrap();
    has_all(&read(&world, 1), false);
    has_all(&read(&world, 0), true);
    // Lines omitted in iCalendar are removed.
    put(&mut world, &body("fifth", "COMMENT:three\r\n"));
    let text = read(&world, 0);
    assert!(
        text.contains("COMMENT:three") && !text.contains("VALARM") && !text.contains("ATTACH"),
        "{text}"
    );
}

#[test]
fn notices_are_requests_and_lists_are_one_calendar() {
    let mut world = World::new(10);
    for day in [5, 6] {
        world.create(0, &meeting(day, &[1])).unwrap();
    }
    let id = world.notice_ids(1).remove(0);
    let read = |format| {
        world
            .store
            .read(|snapshot| notice(snapshot, &user(1), &id, format))
    };
    let text = String::from_utf8(read(Format::ICalendar).unwrap()).unwrap();
    assert!(text.contains("METHOD:REQUEST\r\n"), "{text}");
    let query = EventQuery::parse([("format", "icalendar")], world.now).unwrap();
    let page = world
        .store
        .read(|snapshot| events(snapshot, &user(0), &query))
        .unwrap()
        .unwrap();
    assert_eq!((page.first, page.last), (0, 1));
    assert_eq!(parse_icalendar(&page.body).unwrap().len(), 2);
}

#[test]
fn line_breaks_in_texts_add_no_properties() {
    let mut world = World::new(3);
    let mut event_json = meeting(5, &[1]);
    event_json["id"] = json!("UID");
    event_json["summary"] = json!("a\r\nRRULE:FREQ=DAILY\r\nX:y");
    event_json["x-mine"] = json!({"data": "a\nRRULE:FREQ=DAILY"});
    event_json["attendees"][0]["displayName"] = json!("A \"B\"; C:D");
    world.create(0, &event_json).unwrap();
    let (_, text) = world
        .store
        .read(|snapshot| event(snapshot, &user(0), "UID", Format::ICalendar))
        .unwrap();
    let read = parse_icalendar(&text)
        .expect("no rule slipped in")
        .remove(0);
    assert_eq!(read.attendees.len(), 1);
}
