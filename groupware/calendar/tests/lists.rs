//! The lists and documents: ranges, pages, fields, and their formats for clients.

use crate::support::{NOW, World, meeting, refusal, user};
use groupware_calendar::{
    CalendarError, Entry, EventQuery, InvitationQuery, Invitations, ScanBudget, Target, entries,
    event_notices, events, invitations, limits,
};
use serde_json::{Value, json};

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// A world in which user 1 has accepted the first of two meetings of user 0.
fn two_meetings() -> World {
    let mut world = World::new(10);
    for day in [5, 6] {
        let mut event = meeting(day, &[1, 2]);
        event["id"] = json!(format!("UID{day}"));
        event["description"] = json!("agenda");
        world.create(0, &event).unwrap();
        world.now += 60;
    }
    let first = world.notice_ids(1).remove(0);
    world
        .act(1, Target::Notice(&first), "accept", &Value::Null)
        .unwrap();
    world
}

#[test]
fn shape_of_the_event_list() {
    let world = two_meetings();
    insta::assert_snapshot!(pretty(&json!(world.events(1, &[]))));
}

#[test]
fn shape_of_an_event() {
    let world = two_meetings();
    insta::assert_snapshot!(pretty(&world.event(1, "UID5").unwrap()));
}

#[test]
fn shape_of_the_invitations_and_a_notice() {
    let world = two_meetings();
    let lines = world.invitations(1, &[]);
    let notice = world.notice(1, &world.notice_ids(1)[0]).unwrap();
    insta::assert_snapshot!(pretty(&json!({"list": lines, "notice": notice})));
}

#[test]
fn shape_of_an_all_day_appointment_with_everything() {
    let mut world = World::new(2);
    let event = json!({
        "id": "UID",
        "summary": "Holiday",
        "start": {"date": "2026-01-05"},
        "class": "PRIVATE",
        "transparency": "transparent",
        "status": "tentative",
        "priority": 1,
        "categories": "home, family",
        "url": "https://example.org/",
        "sequence": 3,
        "alarm": [{"trigger": "-PT15M"}],
        "x-mine": {"data": "7", "type": "integer"},
        "x-lotus-noticetype": {"data": "I"},
    });
    world.create(0, &event).unwrap();
    let both = json!({"line": world.events(0, &[])[0], "event": world.event(0, "UID").unwrap()});
    insta::assert_snapshot!(pretty(&both));
}

#[test]
fn shape_of_a_zoned_event() {
    let mut world = World::new(2);
    let event = json!({"events": [{
        "id": "UID",
        "start": {"date": "2026-01-05", "time": "09:00:00", "tzid": "Europe/Berlin"},
        "duration": "PT45M",
    }]});
    world.create(0, &event).unwrap();
    insta::assert_snapshot!(pretty(&world.document(0, "UID").unwrap()));
}

#[test]
fn ranges_go_by_start_and_end_before_the_end() {
    let mut world = World::new(2);
    for day in 5..10 {
        world.create(0, &meeting(day, &[])).unwrap();
    }
    let days = |query: &[(&str, &str)]| -> Vec<String> {
        let lines = world.events(0, query);
        lines
            .iter()
            .map(|line| line["start"]["date"].as_str().unwrap()[8..].to_owned())
            .collect()
    };
    let since = ("since", "2026-01-06T09:00:00Z");
    let before = ("before", "2026-01-08T09:00:00Z");
    assert_eq!(days(&[since, before]), ["06", "07"]);
    assert_eq!(days(&[since]), ["06", "07", "08", "09"]);
    assert_eq!(days(&[before]), ["05", "06", "07"]);
    assert_eq!(days(&[since, ("days", "1")]), ["06"]);
    assert_eq!(days(&[("sincenow", "5"), ("days", "2")]), ["06", "07"]);
    assert_eq!(days(&[("count", "2")]), ["05", "06"]);
    assert_eq!(days(&[("count", "2"), ("start", "3")]), ["08", "09"]);
    assert!(days(&[("start", "5")]).is_empty());
    assert!(days(&[("since", "2026-02-01T00:00:00Z")]).is_empty());
}

#[test]
fn a_page_holds_fifty_unless_asked() {
    let mut world = World::new(2);
    for number in 0..60 {
        let mut event = meeting(5 + number % 20, &[]);
        event["summary"] = json!(number.to_string());
        world.create(0, &event).unwrap();
    }
    assert_eq!(world.events(0, &[]).len(), 50);
    assert_eq!(world.events(0, &[("start", "50")]).len(), 10);
    assert_eq!(world.events(0, &[("count", "100")]).len(), 60);
}

#[test]
fn fields_narrow_the_lines() {
    let world = two_meetings();
    let names = |fields: &str| -> Vec<String> {
        let line = &world.events(1, &[("fields", fields)])[0];
        line.as_object().unwrap().keys().cloned().collect()
    };
    assert_eq!(names("start,summary"), ["href", "start", "summary"]);
    assert_eq!(names("nothing-known").len(), names("").len());
    assert!(names("").len() > 10);
}

#[test]
fn invitations_narrow_by_start_receipt_and_identifier() {
    let mut world = World::new(4);
    for (number, day) in [(0, 8), (1, 7), (2, 6)] {
        world.now = NOW + number;
        let mut event = meeting(day, &[3]);
        event["id"] = json!(format!("UID{day}"));
        world.create(0, &event).unwrap();
    }
    let summaries = |query: &[(&str, &str)]| -> Vec<String> {
        let lines = world.invitations(3, query);
        lines
            .iter()
            .map(|line| line["summary"].as_str().unwrap()[11..].to_owned())
            .collect()
    };
    assert_eq!(summaries(&[]), ["8", "7", "6"], "in the order they came in");
    assert_eq!(
        summaries(&[("receivedsince", "2026-01-01T00:00:01Z")]),
        ["7", "6"]
    );
    assert_eq!(summaries(&[("since", "2026-01-07T00:00:00Z")]), ["8", "7"]);
    assert_eq!(summaries(&[("id", "UID7")]), ["7"]);
    assert!(summaries(&[("id", "UID7"), ("since", "2026-01-08T00:00:00Z")]).is_empty());
    assert!(summaries(&[("id", "another")]).is_empty());
    assert!(summaries(&[("since", "2027-01-01T00:00:00Z")]).is_empty());
}

#[test]
fn notices_of_an_event_are_its_unanswered_invitation() {
    let world = two_meetings();
    let of = |uid: &str| {
        world
            .store
            .read(|snapshot| event_notices(snapshot, &user(1), uid))
    };
    assert_eq!(of("UID5").unwrap(), None);
    let body: Value = serde_json::from_slice(&of("UID6").unwrap().unwrap()).unwrap();
    assert_eq!(body["notices"][0]["scheduleMethod"], "request");
    assert_eq!(refusal(of("UID7")), (404, Some(1031)));
}

#[test]
fn what_is_not_there_is_404() {
    let world = two_meetings();
    assert_eq!(refusal(world.event(0, "nothing")), (404, Some(1031)));
    assert_eq!(refusal(world.event(5, "UID5")), (404, Some(1031)));
    assert_eq!(refusal(world.notice(0, "nothing")), (404, Some(1031)));
    assert_eq!(
        refusal(world.notice(0, &"F".repeat(5000))),
        (404, Some(1031))
    );
    let theirs = world.notice_ids(1).remove(0);
    assert_eq!(
        refusal(world.notice(2, &theirs)),
        (404, Some(1031)),
        "another's notice"
    );
}

#[test]
fn zoned_events_at_the_edges_of_the_calendar_can_be_read() {
    for (date, tzid) in [
        ("0001-01-01", "Pacific/Kiritimati"),
        ("9999-12-31", "Pacific/Niue"),
        ("1800-06-01", "Europe/Berlin"),
        ("2026-06-01", "Etc/GMT+5"),
        ("2026-06-01", "UTC"),
        ("2011-12-30", "Pacific/Apia"),
    ] {
        let mut world = World::new(2);
        let event = json!({
            "id": "UID",
            "start": {"date": date, "time": "12:00:00", "tzid": tzid},
        });
        world.create(0, &event).unwrap();
        let document = world.document(0, "UID").unwrap();
        assert_eq!(document["timezones"][0]["tzid"], tzid, "{document}");
        assert_eq!(document["events"][0]["start"]["date"], date);
    }
}

#[test]
fn lines_cut_long_text_that_the_event_has_whole() {
    let mut world = World::new(3);
    let mut event = meeting(5, &[1]);
    event["id"] = json!("UID");
    let long = "é".repeat(4_000);
    for member in ["summary", "location", "url"] {
        event[member] = json!(long);
    }
    event["categories"] = json!(["home", long]);
    world.create(0, &event).unwrap();
    let line = &world.events(0, &[])[0];
    assert_eq!(line["summary"], long[..1024]);
    assert_eq!(line["location"], long[..1024]);
    assert_eq!(line["categories"], json!(["home"]));
    assert_eq!(line["url"], Value::Null, "half a link leads nowhere");
    assert_eq!(world.invitations(1, &[])[0]["summary"], long[..1024]);
    let whole = world.event(0, "UID").unwrap();
    for member in ["summary", "location", "url", "categories"] {
        assert_eq!(whole[member], event[member]);
    }
}

#[test]
fn a_page_in_icalendar_ends_before_it_is_too_large() {
    let mut world = World::new(2);
    let mut event = meeting(5, &[]);
    event["description"] = json!("x".repeat(60_000));
    for _ in 0..80 {
        world.create(0, &event).unwrap();
    }
    let page = |start: usize| {
        let start = start.to_string();
        let query = [
            ("format", "icalendar"),
            ("count", "100"),
            ("start", start.as_str()),
        ];
        let query = EventQuery::parse(query, world.now).unwrap();
        let read = |snapshot: &dyn groupware_store::Snapshot| events(snapshot, &user(0), &query);
        world.store.read(read).unwrap().unwrap()
    };
    let first = page(0);
    assert!(first.last > 60 && first.last < 75, "{}", first.last);
    assert!(first.body.len() < limits::LIST_BYTES * 5 / 4);
    let shown = String::from_utf8(first.body).unwrap();
    assert_eq!(shown.matches("BEGIN:VEVENT").count(), first.last + 1);
    let rest = page(first.last + 1);
    assert_eq!((rest.first, rest.last), (first.last + 1, 79));
}

#[test]
fn of_too_many_invitations_the_newest_are_shown() {
    let mut world = World::new(3);
    let mut number = 0;
    let mut invite = |world: &mut World, day: u32, summary: String| {
        number += 1;
        world.now = NOW + number;
        let mut event = meeting(day, &[1]);
        event["summary"] = json!(summary);
        world.create(0, &event).unwrap();
    };
    for day in [5, 6] {
        for _ in 0..2_501 {
            invite(&mut world, day, format!("day {day}"));
        }
    }
    invite(&mut world, 5, "the newest".into());
    let summaries = |query: &[(&str, &str)]| -> Vec<Value> {
        let lines = world.invitations(1, query);
        lines
            .into_iter()
            .map(|line| line["summary"].clone())
            .collect()
    };
    let all = summaries(&[]);
    assert_eq!(all.len(), limits::NOTICES);
    assert_eq!(all.last().unwrap(), "the newest");
    // A scan with a small budget reports that instead of omitting some.
    let look = |most| {
        let all = InvitationQuery::parse([]).unwrap();
        let read: Result<_, CalendarError> = world
            .store
            .read(|snapshot| invitations(snapshot, &user(1), &all, most));
        read.unwrap()
    };
    assert_eq!(look(5_002), Invitations::Many);
    assert!(matches!(look(5_003), Invitations::List(Some(_))));
    let later = summaries(&[("since", "2026-01-06T00:00:00Z")]);
    assert_eq!(later.len(), 2_501, "those of an earlier day don't count");
    for _ in 0..2_500 {
        invite(&mut world, 7, "x".repeat(2_000));
    }
    let query = InvitationQuery::parse([]).unwrap();
    let body = world.listed(1, &query).unwrap();
    assert!(body.len() <= limits::LIST_BYTES, "{}", body.len());
    assert!(body.len() > limits::LIST_BYTES / 2, "{}", body.len());
}

/// The events on a page of the given days, by their summaries.
fn looked_at(world: &World, days: [&str; 2]) -> Vec<String> {
    let second = |day: &str| {
        let moment: jiff::Timestamp = format!("{day}T00:00:00Z").parse().unwrap();
        moment.as_second()
    };
    let range = second(days[0])..second(days[1]);
    let (is_all, mut found) = visited(world, (range, 100), ScanBudget::WHOLE);
    assert!(is_all);
    found.sort_by_key(|entry| entry.event.details.start.instant());
    let summary = |entry: &Entry| entry.event.details.summary.clone().unwrap();
    found.iter().map(summary).collect()
}

/// The entries in a range of user 0's calendar, and whether the budget sufficed.
fn visited(
    world: &World,
    range: (std::ops::Range<i64>, usize),
    reach: ScanBudget,
) -> (bool, Vec<Entry>) {
    let mut found = Vec::new();
    let is_all: Result<_, CalendarError> = world.store.read(|snapshot| {
        entries(snapshot, &user(0), range, reach, &mut |entry| {
            found.push(entry);
        })
    });
    (is_all.unwrap(), found)
}

#[test]
fn a_quick_look_at_days_says_where_there_is_more() {
    for (events, bytes, is_few) in [(200, 10, true), (201, 10, false), (20, 60_000, false)] {
        let mut world = World::new(1);
        for _ in 0..events {
            let event = json!({ "summary": "x", "description": "x".repeat(bytes),
                "start": {"date": "2026-02-09"}, "end": {"date": "2026-02-10"} });
            world.create(0, &event).unwrap();
        }
        let range = 0..4_000_000_000;
        let (is_all, found) = visited(&world, (range.clone(), 1000), ScanBudget::QUICK);
        assert_eq!(is_all, is_few, "{events} events of {bytes} bytes");
        assert!(found.len() <= 200);
        let (is_all, found) = visited(&world, (range.clone(), 1000), ScanBudget::WHOLE);
        assert!(is_all && found.len() == events);
        let (is_all, found) = visited(&world, (range, 7), ScanBudget::WHOLE);
        assert!(is_all && found.len() == 7);
    }
}

#[test]
fn an_event_is_found_on_each_of_its_days_however_long_it_is() {
    let mut world = World::new(1);
    let mut add = |name: &str, start: &str, end: &str| {
        let event =
            json!({ "id": name, "summary": name, "start": {"date": start}, "end": {"date": end} });
        world.create(0, &event).unwrap()
    };
    add("year", "2025-03-01", "2026-03-01");
    add("leave", "2026-01-05", "2026-02-16");
    add("week", "2026-02-09", "2026-02-16");
    add("past", "2025-01-05", "2025-06-01");
    let week = ["2026-02-09", "2026-02-16"];
    assert_eq!(looked_at(&world, week), ["year", "leave", "week"]);
    assert_eq!(looked_at(&world, ["2025-07-01", "2025-07-02"]), ["year"]);
    assert_eq!(looked_at(&world, ["2026-03-01", "2026-03-02"]), [""; 0]);

    // It moves with the event, and is removed with it.
    let shorter = json!({ "summary": "leave", "start": {"date": "2026-01-05"}, "end": {"date": "2026-02-01"} });
    world
        .update(0, "leave", &shorter, Default::default())
        .unwrap();
    assert_eq!(looked_at(&world, week), ["year", "week"]);
    world.delete(0, "year", false).unwrap();
    assert_eq!(looked_at(&world, week), ["week"]);
}

/// Lines of one meeting are mostly the same in all calendars, except for unusual spellings.
#[test]
fn every_attendees_lines_name_their_own_calendar() {
    for uid in ["plain", "a/b", "a\"b\\c", "\",\"id\":\""] {
        let mut world = World::new(4);
        let mut event = meeting(5, &[1, 2, 3]);
        event["id"] = json!(uid);
        event["summary"] = json!("\",\"scheduleMethod\":\"request\",\\");
        assert_eq!(world.create(0, &event).unwrap(), uid);
        for number in 0..4 {
            let own = format!("/mail/{}/api/calendar/", user(number));
            let lines = world.events(number, &[]);
            assert_eq!((lines.len(), &lines[0]["id"]), (1, &json!(uid)));
            let href = lines[0]["href"].as_str().unwrap();
            assert!(href.starts_with(&format!("{own}events/")), "{href}");
        }
        let notice = world.notice_ids(2).remove(0);
        let target = Target::Notice(&notice);
        world.act(2, target, "accept", &Value::Null).unwrap();
        assert_eq!(world.status_of(0, uid, 2), "accepted");
        assert!(world.notice_ids(2).is_empty());
    }
}
