//! Imported objects: stored byte for byte, listed, updated, never changed in part.

use std::fmt::Write as _;

use crate::support::brought::{
    ALL_2026, BERLIN, WEEKLY, bring, bring_some, calendar, original, read, records, single,
};
use crate::support::{NOW, World, meeting, refusal, user};
use groupware_calendar::{
    EventQuery, Outcome, Ready, ScanBudget, Target, UpdateOptions, entries, entries_after,
    event_path, events, extend, instance_name, instances, write_icalendar,
};
use proptest::prelude::*;
use serde_json::{Value, json};

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

fn starts(lines: &[Value]) -> Vec<String> {
    let text = |line: &Value| {
        let start = &line["start"];
        let time = start["time"].as_str().unwrap_or("day");
        format!("{} {time}", start["date"].as_str().unwrap())
    };
    lines.iter().map(text).collect()
}

#[test]
fn a_series_is_in_the_list_as_its_instances() {
    let world = World::new(1);
    let file = calendar(&[BERLIN, WEEKLY]);
    assert_eq!(bring(&world, &file), (vec![Outcome::New], true));
    let lines = world.events(0, &ALL_2026);
    assert_eq!(
        starts(&lines),
        [
            "2026-03-16 09:00:00",
            "2026-03-24 11:00:00",
            "2026-04-01 15:00:00",
            "2026-04-06 09:00:00",
            "2026-04-13 09:00:00",
        ]
    );
    insta::assert_snapshot!(pretty(&json!(lines[1..3])));
    let name = instance_name("weekly@example.org", "20260401T130000Z");
    insta::assert_snapshot!(pretty(&world.document(0, &name).unwrap()));
    let listed = world
        .store
        .read(|snapshot| instances(snapshot, &user(0), "weekly@example.org"));
    let listed: Value = serde_json::from_slice(&listed.unwrap()).unwrap();
    let listed = listed["instances"].as_array().unwrap();
    assert_eq!(listed.len(), 5);
    // The identifier in a line leads to the instance, and the recurrence moment is the time before the move.
    assert_eq!(listed[1]["recurrenceId"], "20260323T080000Z");
    for (line, instance) in lines.iter().zip(listed) {
        assert_eq!(line["href"], instance["href"]);
        assert_eq!(line["recurrenceId"], instance["recurrenceId"]);
        let id = line["recurrenceId"].as_str().unwrap();
        let name = instance_name("weekly@example.org", id);
        assert_eq!(line["href"], event_path(&user(0), &name));
        assert_eq!(world.event(0, &name).unwrap()["start"], line["start"]);
        assert_eq!(original(&world, &name), file);
    }
    let other = instance_name("weekly@example.org", "20260317T080000Z");
    assert_eq!(refusal(world.event(0, &other)), (404, Some(1031)));
}

#[test]
fn what_is_brought_is_given_out_byte_for_byte() {
    let world = World::new(1);
    let odd = single(
        "odd",
        "SUMMARY;X-A=\"q:;\":caf\u{e9}\r\n\t folded\r\nX-SEVERAL:1\r\nX-SEVERAL:2\r\n\
         ATTACH;VALUE=URI:cid:x\r\nCLASS:X-OURS\r\nSTATUS:WHATEVER\r\n",
    )
    .replace("X-SEVERAL:2\r\n", "X-SEVERAL:2\n");
    let task = "BEGIN:VTODO\r\nUID:task\r\nDUE:20260301T120000Z\r\nSUMMARY:Do\r\nEND:VTODO\r\n";
    for file in [
        calendar(&[&odd]),
        calendar(&[task]),
        calendar(&[BERLIN, WEEKLY]),
    ] {
        bring(&world, &file);
    }
    assert_eq!(original(&world, "odd"), calendar(&[&odd]));
    assert_eq!(original(&world, "task"), calendar(&[task]));
    // Tasks are in no list of events.
    assert_eq!(world.events(0, &ALL_2026).len(), 6);
    assert_eq!(refusal(world.event(0, "task")), (400, Some(1028)));
    let all = world.store.read(|s| entries_after(s, &user(0), None, 10));
    let all = all.unwrap();
    let whole = write_icalendar(&all);
    for part in [&*odd, task, BERLIN, WEEKLY] {
        assert_eq!(whole.matches(part).count(), 1, "{whole}");
    }
    assert_eq!(whole.matches("BEGIN:VCALENDAR").count(), 1);
    // Importing the export again changes nothing.
    let (again, is_written) = bring(&world, &whole);
    assert_eq!((again, is_written), (vec![Outcome::There; 3], false));
}

#[test]
fn of_two_versions_the_newer_one_stays() {
    let world = World::new(1);
    let version = |sequence: u32, stamp: &str, summary: &str| {
        let rest = format!("SEQUENCE:{sequence}\r\nDTSTAMP:{stamp}\r\nSUMMARY:{summary}\r\n");
        calendar(&[&single("v", &rest)])
    };
    let (early, late) = ("20260101T000000Z", "20260102T000000Z");
    for (file, expected, summary) in [
        (version(1, early, "first"), Outcome::New, "first"),
        (version(1, early, "equal"), Outcome::There, "first"),
        (version(0, late, "older"), Outcome::There, "first"),
        (version(1, late, "later"), Outcome::Newer, "later"),
        (version(2, early, "higher"), Outcome::Newer, "higher"),
    ] {
        let (outcomes, is_written) = bring(&world, &file);
        assert_eq!(outcomes, [expected]);
        assert_eq!(is_written, expected != Outcome::There);
        assert_eq!(world.event(0, "v").unwrap()["summary"], summary);
        assert_eq!(world.events(0, &ALL_2026).len(), 1);
    }
}

#[test]
fn a_newer_version_of_a_series_leaves_no_line_behind() {
    let world = World::new(1);
    bring(&world, &calendar(&[BERLIN, WEEKLY]));
    let newer = WEEKLY.replace("SEQUENCE:3", "SEQUENCE:5");
    let newer = newer.replace("UNTIL=20260413T070000Z", "COUNT=2");
    bring(&world, &calendar(&[BERLIN, &newer]));
    let lines = world.events(0, &ALL_2026);
    // Two of the rule, one of them moved, an additional one, and one that is cancelled but listed.
    assert_eq!(lines.len(), 4);
    assert_eq!(records(&world), 5);
}

#[test]
fn nothing_is_changed_in_part_and_all_goes_at_once() {
    let mut world = World::new(2);
    bring(&world, &calendar(&[BERLIN, WEEKLY]));
    let uid = "weekly@example.org";
    let instance = instance_name(uid, "20260401T130000Z");
    let options = UpdateOptions::default();
    for name in [uid, &*instance] {
        assert_eq!(
            refusal(world.update(0, name, &meeting(5, &[]), options)),
            (403, None)
        );
        for action in ["accept", "decline"] {
            let acted = world.act(0, Target::Event(name), action, &Value::Null);
            assert_eq!(refusal(acted), (403, None));
        }
    }
    for action in ["delete", "processAll"] {
        let acted = world.act(0, Target::Event(&instance), action, &Value::Null);
        assert_eq!(refusal(acted), (403, None), "{action}");
    }
    assert_eq!(refusal(world.delete(0, &instance, true)), (403, None));
    assert_eq!(world.events(0, &ALL_2026).len(), 5);
    world.delete(0, uid, true).unwrap();
    assert_eq!(records(&world), 0);
}

#[test]
fn a_uid_is_of_one_event_wherever_it_comes_from() {
    let mut world = World::new(2);
    let mut own = meeting(5, &[1]);
    own["id"] = json!("shared");
    world.create(0, &own).unwrap();
    let file = calendar(&[&single("shared", "SEQUENCE:99\r\n")]);
    assert_eq!(bring(&world, &file), (vec![Outcome::Own], false));
    assert_eq!(world.event(0, "shared").unwrap()["summary"], "Meeting on 5");
    bring(&world, &calendar(&[&single("brought", "")]));
    own["id"] = json!("brought");
    assert_eq!(refusal(world.create(0, &own)), (409, Some(1032)));
    // An invitee to an event of the same name is not notified and keeps the existing one.
    let mut invitation = meeting(6, &[0]);
    invitation["id"] = json!("brought");
    world.create(1, &invitation).unwrap();
    assert!(world.invitations(0, &[]).is_empty());
    assert_eq!(
        original(&world, "brought"),
        calendar(&[&single("brought", "")])
    );
}

#[test]
fn long_ones_are_found_by_what_they_overlap() {
    let world = World::new(1);
    let file = calendar(&[
        "BEGIN:VEVENT\r\nUID:long\r\nDTSTART;VALUE=DATE:20260101\r\n\
         DTEND;VALUE=DATE:20260701\r\nRRULE:FREQ=YEARLY\r\nSUMMARY:Term\r\nEND:VEVENT\r\n",
    ]);
    bring(&world, &file);
    let day = |text: &str| {
        let query = EventQuery::parse([("since", text), ("days", "1")], NOW);
        assert!(query.is_ok());
        text.parse::<jiff::Timestamp>().unwrap().as_second()
    };
    for (at, expected) in [
        ("2026-05-05T00:00:00Z", vec!["20260101T000000Z"]),
        ("2027-05-05T00:00:00Z", vec!["20270101T000000Z"]),
        ("2027-08-05T00:00:00Z", vec![]),
    ] {
        let (from, mut found) = (day(at), Vec::new());
        let looked = world.store.read(|snapshot| {
            let range = (from..from + 86_400, 10);
            entries(snapshot, &user(0), range, ScanBudget::WHOLE, &mut |entry| {
                found.push(entry.recurrence_id().unwrap());
            })
        });
        assert!(looked.unwrap());
        assert_eq!(found, expected, "{at}");
    }
}

#[test]
fn what_goes_on_for_ever_has_lines_up_to_a_horizon() {
    let mut world = World::new(1);
    let file = calendar(
        &["BEGIN:VEVENT\r\nUID:daily\r\nDTSTART:19990101T063000Z\r\n\
         RRULE:FREQ=DAILY\r\nEND:VEVENT\r\n"],
    );
    bring(&world, &file);
    let (before, after) = (366, 3 * 366);
    assert_eq!(records(&world), 1 + before + after);
    // After a later import, the list continues.
    world.now += 2 * 366 * 86_400;
    assert_eq!(bring(&world, &file), (vec![Outcome::There], true));
    assert_eq!(records(&world), 1 + before + after);
    assert_eq!(bring(&world, &file), (vec![Outcome::There], false));
}

/// Extends all lists of the first user, as the job does; returns the number of extended objects.
fn extend_all(world: &World) -> usize {
    let (mut after, mut count) = (None, 0);
    loop {
        let extended = world
            .store
            .read(|snapshot| extend(snapshot, &user(0), after.as_deref(), world.now));
        let extended = extended.unwrap();
        if !extended.batch.is_empty() {
            world.store.commit_blocking(extended.batch).unwrap();
        }
        count += extended.count;
        after = extended.last;
        if after.is_none() {
            return count;
        }
    }
}

#[test]
fn lists_are_extended_as_time_goes_on() {
    let mut world = World::new(1);
    world.create(0, &meeting(5, &[])).unwrap();
    let yearly = |uid: &str, rest: &str| {
        format!("BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART:20200505T063000Z\r\n{rest}END:VEVENT\r\n")
    };
    let birthdays: String = (0..230)
        .map(|number| yearly(&format!("b{number}"), "RRULE:FREQ=YEARLY\r\n"))
        .collect();
    let file = calendar(&[
        &birthdays,
        &yearly("over", "RRULE:FREQ=YEARLY;COUNT=2\r\n"),
        &yearly("hourly", "RRULE:FREQ=HOURLY\r\n"),
        &single("once", ""),
    ]);
    let mut left: Vec<Ready> = read(&world, &file)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    while !left.is_empty() {
        let (done, _) = bring_some(&world, &left);
        left.drain(..done);
    }
    assert_eq!(extend_all(&world), 0);
    let year = 366 * 86_400;
    let listed = |world: &World, since: &str, before: &str| {
        world
            .events(0, &[("since", since), ("before", before), ("count", "100")])
            .len()
    };
    let week = 7 * 86_400;
    for _ in 0..4 {
        // A series with too many instances is listed at least two weeks ahead, and checked each week.
        world.now += week;
        extend_all(&world);
        let ahead = world.now + week;
        let at = |second: i64| jiff::Timestamp::from_second(second).unwrap().to_string();
        assert!(listed(&world, &at(ahead), &at(ahead + 7_200)) >= 2);
    }
    world.now += 2 * year;
    assert!(extend_all(&world) > 230);
    world.now += 10 * year;
    assert!(extend_all(&world) > 230);
    assert_eq!(extend_all(&world), 0);
    // Twelve years later, the instances are still listed, and past ones have no line.
    assert_eq!(
        listed(&world, "2038-05-05T00:00:00Z", "2038-05-06T00:00:00Z"),
        100
    );
    let count = records(&world);
    assert_eq!(count, 2 + 1 + 2 + 230 * (1 + 4) + 1_601);
}

#[test]
fn one_instance_is_no_version_of_its_series_nor_the_other_way() {
    let uid = "weekly@example.org";
    let instance = "BEGIN:VEVENT\r\nUID:weekly@example.org\r\nRECURRENCE-ID:20260323T080000Z\r\n\
        DTSTART:20260323T100000Z\r\nSEQUENCE:9\r\nDTSTAMP:20260101T000000Z\r\nEND:VEVENT\r\n";
    let (series, part) = (calendar(&[BERLIN, WEEKLY]), calendar(&[instance]));
    let later = calendar(&[BERLIN, &WEEKLY.replace("SEQUENCE:3", "SEQUENCE:99")]);
    let once = format!("BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART:20260101T000000Z\r\nEND:VEVENT\r\n");
    for (there, comes, why) in [
        (&series, &part, "the series is there; this is one instance"),
        (&calendar(&[&once]), &part, "the series is there"),
        (&part, &series, "without its series"),
        (&part, &later, "without its series"),
    ] {
        let world = World::new(1);
        bring(&world, there);
        let count = records(&world);
        let (outcomes, is_written) = bring(&world, comes);
        let [Outcome::Refused(told)] = outcomes[..] else {
            panic!("{outcomes:?}");
        };
        assert!(told.contains(why), "{told}");
        assert!(!is_written);
        assert_eq!(original(&world, uid), *there);
        assert_eq!(records(&world), count);
        assert_eq!(bring(&world, there), (vec![Outcome::There], false));
    }
}

#[test]
fn what_was_cut_goes_on_whatever_version_is_brought() {
    let mut world = World::new(1);
    let hourly = |stamp: &str| {
        calendar(&[&format!(
            "BEGIN:VEVENT\r\nUID:hourly\r\nDTSTAMP:{stamp}\r\nDTSTART:20250101T000000Z\r\n\
             RRULE:FREQ=HOURLY\r\nEND:VEVENT\r\n"
        )])
    };
    let file = hourly("20250102T000000Z");
    bring(&world, &file);
    assert_eq!(bring(&world, &file), (vec![Outcome::There], false));
    // No listed instance is in the future.
    let days = 60;
    world.now += days * 86_400;
    let shown = |world: &World| {
        let (from, mut any) = (world.now, false);
        let looked = world.store.read(|snapshot| {
            let range = (from..from + 7_200, 10);
            entries(snapshot, &user(0), range, ScanBudget::WHOLE, &mut |_| {
                any = true
            })
        });
        looked.unwrap();
        any
    };
    assert!(!shown(&world));
    let older = hourly("20250101T000000Z");
    assert_eq!(bring(&world, &older), (vec![Outcome::There], true));
    assert!(shown(&world));
    assert_eq!(records(&world), 1 + 1_600);
    assert_eq!(original(&world, "hourly"), file);
    assert_eq!(bring(&world, &older), (vec![Outcome::There], false));
}

#[test]
fn a_batch_has_as_many_as_its_operations_allow() {
    let mut world = World::new(1);
    let hourly = |number: usize, stamp: &str, rule: &str| {
        format!(
            "BEGIN:VEVENT\r\nUID:{number}\r\nDTSTAMP:{stamp}\r\nDTSTART:20250101T000000Z\r\n\
             DTEND:20250103T000000Z\r\n{rule}END:VEVENT\r\n"
        )
    };
    for (stamp, rule) in [
        ("20250101T000000Z", "RRULE:FREQ=HOURLY\r\n"),
        // The lines of the replaced object count as well.
        ("20250102T000000Z", ""),
    ] {
        world.now += 1;
        let objects: Vec<String> = (0..20).map(|it| hourly(it, stamp, rule)).collect();
        let parts: Vec<&str> = objects.iter().map(String::as_str).collect();
        let mut left: Vec<Ready> = read(&world, &calendar(&parts))
            .into_iter()
            .map(Result::unwrap)
            .collect();
        let mut batches = 0;
        while !left.is_empty() {
            let (done, operations) = bring_some(&world, &left);
            assert!(done > 0 && operations < 30_000, "{done}, {operations}");
            left.drain(..done);
            batches += 1;
        }
        assert!(batches > 1, "{rule}");
    }
    // Each with its line.
    assert_eq!(records(&world), 2 * 20);
}

#[test]
fn a_zone_that_nobody_knows_is_told() {
    let world = World::new(1);
    let event = |zone: &str| {
        calendar(&[&format!(
            "BEGIN:VEVENT\r\nUID:z\r\nDTSTART{zone}:20260105T090000\r\nEND:VEVENT\r\n"
        )])
    };
    let note = |file: &str| {
        let ready = read(&world, file).remove(0).unwrap();
        ready.note().map(str::to_owned)
    };
    for known in ["", ";TZID=Europe/Berlin"] {
        assert_eq!(note(&event(known)), None, "{known}");
    }
    let told = note(&event(";TZID=Nowhere")).unwrap();
    assert!(told.contains("time zone Nowhere"), "{told}");
    let cut = event("").replace("END:VEVENT", "RRULE:FREQ=HOURLY\r\nEND:VEVENT");
    assert!(note(&cut).unwrap().contains("too often"));
}

#[test]
fn hostile_objects_are_refused_or_shown_in_part() {
    let mut world = World::new(1);
    let people: String = (0..100_000)
        .map(|number| format!("ATTENDEE:mailto:{number}@example.org\r\n"))
        .collect();
    let event = |rest: &str| calendar(&[&format!("BEGIN:VEVENT\r\nUID:h\r\n{rest}END:VEVENT\r\n")]);
    let start = "DTSTART:20260101T000000Z\r\n";
    let with = |rest: &str| event(&format!("{start}{rest}"));
    let wide = format!(
        "RRULE:FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYHOUR=0,1,2;BYMINUTE={0};BYSECOND={0}\r\n",
        (0..60)
            .map(|it| it.to_string())
            .collect::<Vec<_>>()
            .join(",")
    );
    let refused = [
        (with(&people), "are the most that is kept"),
        (event("SUMMARY:no start\r\n"), "no DTSTART"),
        (
            event("DTSTART:10000000000101T000000Z\r\n"),
            "no date of the years 1 to 9999",
        ),
        (
            with("").replace("PRODID", "METHOD:REPLY\r\nPRODID"),
            "METHOD",
        ),
        (with("X-NUL:\0\r\n"), "NUL"),
    ];
    for (file, expected) in refused {
        let error = read(&world, &file).remove(0).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    for (rule, shown) in [
        ("RRULE:FREQ=SECONDLY\r\n", 1),
        ("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30\r\n", 1),
        ("RRULE:FREQ=DAILY;COUNT=4294967295;INTERVAL=65535\r\n", 1),
        ("RRULE:FREQ=HOURLY\r\n", 1_600),
        (&*wide, 1),
    ] {
        let file = with(rule).replace("UID:h", "UID:h2");
        let found = bring(&world, &file);
        assert_eq!(found.0, [Outcome::New], "{rule}");
        assert_eq!(records(&world), 1 + shown, "{rule}");
        world.delete(0, "h2", false).unwrap();
    }
}

/// An event with any content, of which only the times are read.
fn any_object() -> impl Strategy<Value = (String, String)> {
    let name = "[A-Z]{1,8}";
    let line = (name, "[ -~\u{e0}-\u{ff}]{0,90}", any::<bool>());
    let lines = proptest::collection::vec(line, 0..8);
    let rule = prop::sample::select(vec![
        "",
        "RRULE:FREQ=WEEKLY;COUNT=5\r\n",
        "RRULE:FREQ=MONTHLY;BYDAY=2TU\r\n",
        "RRULE:FREQ=DAILY;INTERVAL=40;UNTIL=20270101\r\n",
    ]);
    ("[a-e]", lines, rule, any::<bool>()).prop_map(|(uid, lines, rule, is_day)| {
        let mut rest = String::new();
        for (name, text, is_folded) in lines {
            let fold = if is_folded { "\r\n  " } else { "" };
            let _ = write!(rest, "X-{name};X-P={}:{fold}{text}\r\n", uid.len());
        }
        let start = match is_day {
            true => "DTSTART;VALUE=DATE:20260202\r\n",
            false => "DTSTART;TZID=Europe/Berlin:20260202T100000\r\n",
        };
        let text = format!("BEGIN:VEVENT\r\nUID:{uid}\r\n{start}{rule}{rest}END:VEVENT\r\n");
        (uid, text)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_comes_in_goes_out_and_once_is_as_twice(
        objects in proptest::collection::vec(any_object(), 1..5)
    ) {
        let world = World::new(1);
        let mut objects: std::collections::BTreeMap<_, _> = objects.into_iter().collect();
        let texts: Vec<&str> = objects.values().map(String::as_str).collect();
        let (first, _) = bring(&world, &calendar(&texts));
        prop_assert_eq!(first, vec![Outcome::New; objects.len()]);
        let count = records(&world);
        let (again, is_written) = bring(&world, &calendar(&texts));
        prop_assert_eq!(again, vec![Outcome::There; objects.len()]);
        prop_assert!(!is_written && records(&world) == count);
        let all = world.store.read(|s| entries_after(s, &user(0), None, 10)).unwrap();
        let whole = write_icalendar(&all);
        for (uid, text) in &objects {
            prop_assert!(whole.contains(text), "{}", whole);
            prop_assert_eq!(original(&world, uid), calendar(&[text]));
        }
        let query = EventQuery::parse(ALL_2026, NOW).unwrap();
        let listed = world.store.read(|s| events(s, &user(0), &query)).unwrap();
        prop_assert!(listed.is_some());
        let mut world = world;
        while let Some((uid, _)) = objects.pop_first() {
            world.delete(0, &uid, true).unwrap();
        }
        prop_assert_eq!(records(&world), 0);
    }
}
