//! Changes of imported objects edit only the lines concerned.

use groupware_calendar::{Imported, Outcome, UpdateOptions, entry, instance_name};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::brought::{
    ALL_2026, BERLIN, WEEKLY, bring, calendar, original, records, single,
};
use crate::support::{World, refusal, user};

/// The lines that mark an event as changed, at the world's time.
const CHANGED: &str = "DTSTAMP:20260101T000000Z\r\nLAST-MODIFIED:20260101T000000Z\r\n";

/// The input of a client that reads an event and changes some members.
fn read_and(world: &World, uid: &str, changes: &[(&str, Value)]) -> Value {
    let mut event = world.event(0, uid).unwrap();
    for (name, value) in changes {
        event[*name] = value.clone();
    }
    event
}

fn change(world: &mut World, uid: &str, changes: &[(&str, Value)]) -> Result<(), (u16, String)> {
    let event = read_and(world, uid, changes);
    let done = world.update(0, uid, &event, UpdateOptions::default());
    let told = |error: groupware_calendar::CalendarError| (error.status(), error.to_string());
    done.map(|_| ()).map_err(told)
}

fn at(date: &str, time: &str, zone: &str) -> Value {
    match zone {
        "" => json!({"date": date, "time": time}),
        "Z" => json!({"date": date, "time": time, "utc": true}),
        zone => json!({"date": date, "time": time, "tzid": zone}),
    }
}

#[test]
fn what_a_client_reads_and_sends_back_changes_nothing() {
    let mut world = World::new(1);
    let odd = single(
        "odd",
        "SUMMARY;X-A=1:a\\, b\r\nCLASS:PRIVATE\r\nX-B:c\r\nURL:http://x\r\n",
    );
    for (uid, file) in [
        ("odd", calendar(&[&odd])),
        ("weekly@example.org", calendar(&[BERLIN, WEEKLY])),
    ] {
        bring(&world, &file);
        change(&mut world, uid, &[]).unwrap();
        assert_eq!(original(&world, uid), file);
    }
}

#[test]
fn texts_change_in_their_lines() {
    let mut world = World::new(1);
    let text = "SUMMARY;LANGUAGE=en;ALTREP=\"cid:x\":old\r\n title\r\nX-MINE;A=\":\":1\r\nDESCRIPTION:stays\r\n";
    let before = calendar(&[&single("e", text)]);
    bring(&world, &before);
    let title =
        "New; with, a \\ and\nmore of it, so that the line is folded, which is what long ones are";
    let changes = [("summary", json!(title)), ("location", json!("Room 2"))];
    change(&mut world, "e", &changes).unwrap();
    let written = "SUMMARY;LANGUAGE=en:New\\; with\\, a \\\\ and\\nmore of it\\, so that the line is\r\n  \
                   folded\\, which is what long ones are\r\n";
    let expected = before
        .replace(
            "SUMMARY;LANGUAGE=en;ALTREP=\"cid:x\":old\r\n title\r\n",
            written,
        )
        .replace(
            "END:VEVENT",
            &format!("LOCATION:Room 2\r\n{CHANGED}SEQUENCE:1\r\nEND:VEVENT"),
        );
    assert_eq!(original(&world, "e"), expected);
    let event = world.event(0, "e").unwrap();
    assert_eq!(
        (&event["summary"], &event["sequence"]),
        (&json!(title), &json!(1))
    );
    assert_eq!(event["description"], "stays");
    assert_eq!(world.events(0, &ALL_2026)[0]["summary"], title);
    // And is removed again.
    let mut event = read_and(&world, "e", &[]);
    event.as_object_mut().unwrap().remove("location");
    world
        .update(0, "e", &event, UpdateOptions::default())
        .unwrap();
    let without = expected
        .replace("LOCATION:Room 2\r\n", "")
        .replace("SEQUENCE:1", "SEQUENCE:2");
    assert_eq!(original(&world, "e"), without);
    let told = change(&mut world, "e", &[("summary", json!("a\u{7}b"))]);
    assert!(told.unwrap_err().1.contains("control character"));
}

#[test]
fn texts_that_stay_may_hold_what_no_new_one_can() {
    let mut world = World::new(1);
    // A backslash before an r is parsed as a carriage return.
    let text = "SUMMARY:Old\r\nLOCATION:C:\\rooms\r\nDESCRIPTION:see C:\\reports\r\n";
    let before = calendar(&[&single("c", text)]);
    bring(&world, &before);
    change(&mut world, "c", &[("summary", json!("New"))]).unwrap();
    // The same for a client that sends no description.
    let mut event = read_and(&world, "c", &[("summary", json!("Newer"))]);
    event.as_object_mut().unwrap().remove("description");
    world
        .update(0, "c", &event, UpdateOptions::default())
        .unwrap();
    let rest = format!("{CHANGED}SEQUENCE:2\r\nEND:VEVENT");
    let expected = before.replace("SUMMARY:Old", "SUMMARY:Newer");
    let expected = expected.replace("END:VEVENT", &rest);
    assert_eq!(original(&world, "c"), expected);
    let told = change(&mut world, "c", &[("description", json!("C:\rall"))]);
    assert!(told.unwrap_err().1.contains("control character"));
}

#[test]
fn who_saw_another_version_is_told_where_no_number_rises() {
    let mut world = World::new(1);
    let rest = "ORGANIZER:mailto:eve@example.org\r\nSUMMARY:Old\r\n";
    bring(&world, &calendar(&[&single("m", rest)]));
    let seen = |world: &World| {
        let owner = user(0);
        let found = world.store.read(|snapshot| entry(snapshot, &owner, "m"));
        found.unwrap().imported().map(Imported::fingerprint)
    };
    let first = UpdateOptions {
        seen: seen(&world),
        ..UpdateOptions::default()
    };
    let event = read_and(&world, "m", &[("summary", json!("New"))]);
    world.update(0, "m", &event, first).unwrap();
    assert_eq!(world.event(0, "m").unwrap()["sequence"], event["sequence"]);
    let other = read_and(&world, "m", &[("summary", json!("Other"))]);
    let told = world.update(0, "m", &other, first);
    assert_eq!(refusal(told), (409, Some(1027)));
    assert_eq!(world.event(0, "m").unwrap()["summary"], "New");
    let second = UpdateOptions {
        seen: seen(&world),
        ..first
    };
    world.update(0, "m", &other, second).unwrap();
    assert_eq!(world.event(0, "m").unwrap()["summary"], "Other");
}

#[test]
fn times_change_in_their_lines() {
    let zoned = "DTSTART;X-P=1;TZID=Berlin Time:20260316T090000\r\n";
    let hour = "DTEND;TZID=Berlin Time:20260316T100000\r\n";
    let (nine, ten) = (at("2026-03-16", "09:00:00", "Europe/Berlin"), "2026-03-16");
    let ten = at(ten, "10:00:00", "Europe/Berlin");
    let eleven = at("2026-03-16", "11:00:00", "Europe/Berlin");
    let berlin = |time: &str| format!("TZID=Berlin Time:20260316T{time}\r\n");
    let day = |date: &str| json!({ "date": date });
    for (lines, start, end, expected) in [
        // Each case replaces one of the two ends, and the other line stays.
        (
            format!("{zoned}{hour}"),
            &nine,
            &eleven,
            format!("{zoned}DTEND;{}", berlin("110000")),
        ),
        // The same duration, by the property that defines it.
        (
            format!("{zoned}DURATION:PT1H\r\n"),
            &ten,
            &eleven,
            format!("DTSTART;X-P=1;{}DURATION:PT1H\r\n", berlin("100000")),
        ),
        // Longer.
        (
            format!("{zoned}DURATION:PT1H\r\n"),
            &nine,
            &eleven,
            format!("{zoned}@DTEND;{}", berlin("110000")),
        ),
        // In UTC: the zone stays.
        (
            format!("{zoned}{hour}"),
            &at("2026-03-16", "12:00:00", "Z"),
            &at("2026-03-16", "13:00:00", "Z"),
            format!(
                "DTSTART;X-P=1;{}DTEND;{}",
                berlin("130000"),
                berlin("140000")
            ),
        ),
        // The same moment in another zone is equal.
        (
            format!("{zoned}{hour}"),
            &at("2026-03-16", "08:00:00", "Z"),
            &eleven,
            format!("{zoned}DTEND;{}", berlin("110000")),
        ),
        // Days.
        (
            format!("{zoned}DURATION:PT1H\r\n"),
            &day("2026-03-16"),
            &day("2026-03-18"),
            "DTSTART;X-P=1;VALUE=DATE:20260316\r\n@DTEND;VALUE=DATE:20260318\r\n".to_owned(),
        ),
        (
            "DTSTART;VALUE=DATE:20260316\r\n".to_owned(),
            &day("2026-03-17"),
            &day("2026-03-18"),
            "DTSTART;VALUE=DATE:20260317\r\n".to_owned(),
        ),
    ] {
        let mut world = World::new(1);
        let event = |lines: &str, rest: &str| {
            let event = format!("BEGIN:VEVENT\r\nUID:t\r\n{lines}X-LAST:1\r\n{rest}END:VEVENT\r\n");
            calendar(&[BERLIN, &event])
        };
        bring(&world, &event(&lines, ""));
        change(
            &mut world,
            "t",
            &[("start", start.clone()), ("end", end.clone())],
        )
        .unwrap();
        let (first, last) = expected.split_once('@').unwrap_or((&expected, ""));
        let expected = event(first, &format!("{last}{CHANGED}SEQUENCE:1\r\n"));
        assert_eq!(original(&world, "t"), expected);
        let shown = world.event(0, "t").unwrap();
        let listed = &world.events(0, &ALL_2026)[0];
        assert_eq!(
            (&shown["start"], &shown["end"]),
            (&listed["start"], &listed["end"])
        );
        assert_eq!(records(&world), 2);
    }
}

#[test]
fn a_zone_that_comes_with_a_time_is_described() {
    let mut world = World::new(1);
    let before = calendar(&[BERLIN, &single("z", "")]);
    bring(&world, &before);
    let start = at("2026-07-01", "09:00:00", "Europe/Paris");
    let end = at("2026-07-01", "15:00:00", "Asia/Tokyo");
    // The end is before the start.
    let told = change(&mut world, "z", &[("start", start.clone()), ("end", end)]);
    assert_eq!(told.unwrap_err().0, 400);
    let end = at("2026-07-01", "17:00:00", "Asia/Tokyo");
    change(&mut world, "z", &[("start", start), ("end", end)]).unwrap();
    let after = original(&world, "z");
    for part in [
        "DTSTART;TZID=Europe/Paris:20260701T090000\r\n",
        "DTEND;TZID=Asia/Tokyo:20260701T170000\r\n",
        "TZID:Europe/Paris\r\n",
        "TZID:Asia/Tokyo\r\n",
        BERLIN,
    ] {
        assert_eq!(after.matches(part).count(), 1, "{after}");
    }
    assert_eq!(bring(&world, &after), (vec![Outcome::There], false));
}

#[test]
fn a_zone_is_named_by_what_a_line_can_have() {
    let mut world = World::new(1);
    let before = calendar(&[&single("z", "")]);
    bring(&world, &before);
    for zone in [
        "/UTC\":20260105T070000Z\r\nORGANIZER;X=\"/b/Europe/Berlin",
        "/UTC\nX:/b/Europe/Berlin",
        "/UTC\";X=\"/b/Europe/Berlin",
    ] {
        let start = at("2026-01-05", "09:00:00", zone);
        let times = [("start", start.clone()), ("end", start.clone())];
        assert_eq!(change(&mut world, "z", &times).unwrap_err().0, 400);
        let own = json!({"id": "own", "start": start});
        assert_eq!(refusal(world.create(0, &own)), (400, None));
    }
    assert_eq!(original(&world, "z"), before);
    // An imported name may be parsed as such.
    let start = "DTSTART;TZID=Berlin\\nTime:20260316T090000\r\n";
    let end = "DTEND;TZID=Berlin\\nTime:20260316T100000\r\n";
    let event = format!("BEGIN:VEVENT\r\nUID:n\r\n{start}{end}END:VEVENT\r\n");
    let zone = BERLIN.replace("Berlin Time", "Berlin\\nTime");
    bring(&world, &calendar(&[&zone, &event]));
    let eleven = at("2026-03-16", "11:00:00", "Europe/Berlin");
    change(&mut world, "n", &[("end", eleven)]).unwrap();
    let after = original(&world, "n");
    let written = "DTEND;TZID=Europe/Berlin:20260316T110000\r\n";
    for part in [start, written, &*zone, "TZID:Europe/Berlin\r\n"] {
        assert_eq!(after.matches(part).count(), 1, "{after}");
    }
}

#[test]
fn a_series_changes_its_texts_and_those_of_instances_that_say_the_same() {
    let mut world = World::new(1);
    let over = |day: u32, summary: &str, sequence: &str| {
        format!(
            "BEGIN:VEVENT\r\nUID:s\r\nRECURRENCE-ID:202602{day}T100000Z\r\n\
             DTSTART:202602{day}T120000Z\r\nSUMMARY:{summary}\r\n{sequence}END:VEVENT\r\n"
        )
    };
    let series = |summary: &str, rest: &str| {
        let rule = "RRULE:FREQ=DAILY;COUNT=20\r\n";
        single("s", &format!("{rule}SUMMARY:{summary}\r\n{rest}"))
    };
    let (same, other) = (over(10, "Old", "SEQUENCE:4\r\n"), over(11, "Own", ""));
    bring(&world, &calendar(&[&series("Old", ""), &same, &other]));
    change(&mut world, "s", &[("summary", json!("New"))]).unwrap();
    let master = series("New", &format!("{CHANGED}SEQUENCE:1\r\n"));
    let same = over(10, "New", &format!("SEQUENCE:5\r\n{CHANGED}"));
    assert_eq!(original(&world, "s"), calendar(&[&master, &same, &other]));
    let lines = world.events(0, &ALL_2026);
    let named = |name: &str| lines.iter().filter(|line| line["summary"] == name).count();
    assert_eq!((named("New"), named("Own")), (19, 1));
    let times = [
        ("start", at("2026-02-02", "11:00:00", "Z")),
        ("end", at("2026-02-02", "12:00:00", "Z")),
    ];
    let (status, why) = change(&mut world, "s", &times).unwrap_err();
    assert!(status == 403 && why.contains("series"), "{why}");
    let one = instance_name("s", "20260203T100000Z");
    let event = json!({"summary": "x", "start": {"date": "2026-02-03"}});
    let alone = world.update(0, &one, &event, UpdateOptions::default());
    assert_eq!(refusal(alone), (403, None));
}

#[test]
fn the_rest_is_refused_in_words() {
    let mut world = World::new(2);
    bring(&world, &calendar(&[BERLIN, WEEKLY]));
    bring(&world, &calendar(&[&single("e", "PRIORITY:1\r\n")]));
    let task = "BEGIN:VTODO\r\nUID:task\r\nDUE:20260301T120000Z\r\nEND:VTODO\r\n";
    let part = "BEGIN:VEVENT\r\nUID:part\r\nRECURRENCE-ID:20260203T100000Z\r\n\
                DTSTART:20260203T120000Z\r\nEND:VEVENT\r\n";
    bring(&world, &calendar(&[task, part]));
    let people = json!([{"email": "user00001@localhost"}]);
    for (uid, name, value, expected) in [
        ("weekly@example.org", "attendees", people, "people"),
        ("e", "organizer", json!({"email": "x@y"}), "people"),
        ("e", "status", json!("tentative"), "status"),
        ("e", "priority", json!(2), "priority"),
        ("e", "categories", json!(["a"]), "labels"),
        ("e", "x-mine", json!({"data": "1"}), "other makers"),
        ("e", "alarm", json!({"trigger": "-PT5M"}), "alarms"),
    ] {
        let before = original(&world, uid);
        let (status, why) = change(&mut world, uid, &[(name, value)]).unwrap_err();
        assert!(status == 403 && why.contains(expected), "{name}: {why}");
        assert_eq!(original(&world, uid), before);
    }
    let event = json!({"summary": "x", "start": {"date": "2026-03-01"}});
    for (uid, expected) in [("task", "a task"), ("part", "one instance of a series")] {
        let error = world
            .update(0, uid, &event, UpdateOptions::default())
            .unwrap_err();
        assert!(
            error.status() == 403 && error.to_string().contains(expected),
            "{error}"
        );
    }
    let mut older = read_and(&world, "weekly@example.org", &[("summary", json!("x"))]);
    older["sequence"] = json!(2);
    let done = world.update(0, "weekly@example.org", &older, UpdateOptions::default());
    assert_eq!(refusal(done), (409, Some(1027)));
}

#[test]
fn a_change_stays_until_a_newer_version_is_brought() {
    let mut world = World::new(1);
    let version = |organizer: &str, sequence: u32, stamp: &str| {
        let rest =
            format!("{organizer}SEQUENCE:{sequence}\r\nDTSTAMP:{stamp}\r\nSUMMARY:theirs\r\n");
        calendar(&[&single("v", &rest)])
    };
    for (organizer, sequence) in [
        ("", 3),
        ("ORGANIZER:MAILTO:User00000@localhost\r\n", 3),
        // The organizer counts a meeting's versions.
        ("ORGANIZER:mailto:eve@example.org\r\n", 2),
    ] {
        let first = version(organizer, 2, "20251201T000000Z");
        bring(&world, &first);
        change(&mut world, "v", &[("summary", json!("mine"))]).unwrap();
        assert_eq!(world.event(0, "v").unwrap()["sequence"], sequence);
        assert_eq!(bring(&world, &first), (vec![Outcome::There], false));
        assert_eq!(world.event(0, "v").unwrap()["summary"], "mine");
        let newer = version(organizer, 4, "20251202T000000Z");
        assert_eq!(bring(&world, &newer), (vec![Outcome::Newer], true));
        assert_eq!(original(&world, "v"), newer);
        world.delete(0, "v", false).unwrap();
    }
}

/// The lines of an object, still folded, except those of events that may change.
fn other_lines(object: &str, changed: &[&str]) -> Vec<String> {
    let (mut lines, mut level) = (Vec::<String>::new(), 0_i32);
    let mut left_out = false;
    for line in object.split_inclusive('\n') {
        if line.starts_with([' ', '\t']) {
            if !left_out {
                lines.last_mut().unwrap().push_str(line);
            }
            continue;
        }
        level += i32::from(line.starts_with("BEGIN:"));
        let name = line.split([':', ';']).next().unwrap();
        left_out = level == 2 && changed.contains(&name);
        level -= i32::from(line.starts_with("END:"));
        if !left_out {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// Lines of an event with any content, and an alarm with properties of events.
fn any_lines() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "X-A",
        "X-B",
        "COMMENT",
        "SUMMARY",
        "LOCATION",
        "DESCRIPTION",
        "SEQUENCE",
        "LAST-MODIFIED",
    ]);
    let parameter = prop::sample::select(vec!["", ";X-P=1", ";X-P=\"a;b:c\"", ";LANGUAGE=de"]);
    let line = (name, parameter, "[ -~\u{e0}-\u{ff}]{0,90}", any::<bool>());
    let lines = proptest::collection::vec(line, 0..10);
    (lines, any::<bool>()).prop_map(|(lines, has_alarm)| {
        let mut seen = std::collections::BTreeSet::new();
        let mut all = String::new();
        for (name, parameter, text, is_folded) in lines {
            // RFC 5545 allows only one of each visible property.
            if !name.starts_with("X-") && name != "COMMENT" && !seen.insert(name) {
                continue;
            }
            let text = match name {
                "SEQUENCE" => text.len().to_string(),
                "LAST-MODIFIED" => "20250101T000000Z".to_owned(),
                _ => text,
            };
            let fold = if is_folded { "\r\n " } else { "" };
            all.push_str(&format!("{name}{parameter}:{fold}{text}\r\n"));
        }
        if has_alarm {
            all.push_str("BEGIN:VALARM\r\nSUMMARY:a\r\nSEQUENCE:7\r\nEND:VALARM\r\n");
        }
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn all_other_lines_stay_byte_for_byte(
        lines in any_lines(),
        summary in "\\PC{1,120}",
        place in proptest::option::of("[ -~]{0,60}"),
        is_later in any::<bool>(),
    ) {
        let mut world = World::new(1);
        let before = calendar(&[BERLIN, &single("p", &lines)]);
        bring(&world, &before);
        let mut event = read_and(&world, "p", &[("summary", json!(summary))]);
        match &place {
            Some(place) => event["location"] = json!(place),
            None => _ = event.as_object_mut().unwrap().remove("location"),
        }
        if is_later {
            event["end"]["time"] = json!("12:30:00");
        }
        world.update(0, "p", &event, UpdateOptions::default()).unwrap();
        let after = original(&world, "p");
        let mut changed = vec!["SUMMARY", "LOCATION", "SEQUENCE", "DTSTAMP", "LAST-MODIFIED"];
        if is_later {
            changed.push("DTEND");
        }
        prop_assert_eq!(other_lines(&after, &changed), other_lines(&before, &changed));
        let shown = world.event(0, "p").unwrap();
        prop_assert_eq!(&shown["summary"], &json!(summary));
        let found = shown.get("location").and_then(Value::as_str).unwrap_or_default();
        prop_assert_eq!(found, place.as_deref().unwrap_or_default());
        prop_assert_eq!(&shown["end"], &event["end"]);
        prop_assert_eq!(&shown["description"], &event["description"]);
        prop_assert_eq!(bring(&world, &after), (vec![Outcome::There], false));
    }
}
