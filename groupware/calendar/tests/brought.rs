//! Imports from several sources, in several parts, or of unreadable objects.

use groupware_calendar::{
    EventQuery, Outcome, ScanBudget, UpdateOptions, entries, entries_after, events, has_others,
    instance_name, others, write_icalendar,
};
use groupware_proto_ical::split;
use groupware_store::Batch;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::brought::{
    ALL_2026, BERLIN, WEEKLY, bring, calendar, original, read, records, single,
};
use crate::support::{NOW, World, refusal, user};

/// The export of the first user's calendar.
fn exported(world: &World) -> String {
    let all = world.store.read(|s| entries_after(s, &user(0), None, 100));
    write_icalendar(&all.unwrap())
}

/// A time zone with these rules; others may have the same name.
fn zone(name: &str, rules: &[(&str, &str, &str, &str)]) -> String {
    let rules: String = rules
        .iter()
        .map(|(start, from, to, rest)| {
            format!(
                "BEGIN:STANDARD\r\nDTSTART:{start}\r\nTZOFFSETFROM:{from}\r\nTZOFFSETTO:{to}\r\n\
                 {rest}END:STANDARD\r\n"
            )
        })
        .collect();
    format!("BEGIN:VTIMEZONE\r\nTZID:{name}\r\n{rules}END:VTIMEZONE\r\n")
}

fn zoned(uid: &str, zone: &str, at: &str) -> String {
    format!("BEGIN:VEVENT\r\nUID:{uid}\r\nDTSTART;TZID={zone}:{at}\r\nEND:VEVENT\r\n")
}

/// The events of each calendar in a file, and its descriptions of time zones.
fn calendars(file: &str) -> Vec<(Vec<String>, Vec<String>)> {
    let part = |text: &str, name: &str, end: &str| {
        let begins = format!("\r\n{name}:");
        let all = text.split(&*begins).skip(1);
        let to = |it: &str| it.split(end).next().unwrap().to_owned();
        let mut found: Vec<String> = all.map(to).collect();
        found.sort();
        found
    };
    let whole = file.split("END:VCALENDAR\r\n");
    let whole = whole.filter(|text| !text.is_empty());
    whole
        .map(|text| (part(text, "UID", "\r\n"), part(text, "TZOFFSETTO", "\r\n")))
        .collect()
}

#[test]
fn zones_of_one_name_that_mean_something_else_are_apart() {
    let world = World::new(1);
    let plain = |to: &str| zone("X", &[("19700101T000000", to, to, "")]);
    // The same from 2020 on, in other words.
    let early = zone(
        "X",
        &[
            ("19700101T000000", "+0100", "+0300", ""),
            ("20200101T000000", "+0300", "+0100", "TZNAME:one\r\n"),
        ],
    );
    for (zone, uid, at) in [
        (plain("+0100"), "a", "20260105T090000"),
        (plain("+0200"), "b", "20260105T090000"),
        (plain("+0100"), "c", "20260105T090000"),
        (early.clone(), "d", "20260105T090000"),
        (early, "e", "20190105T090000"),
        (String::new(), "f", "20260105T090000"),
    ] {
        bring(&world, &calendar(&[&zone, &zoned(uid, "X", at)]));
    }
    let file = exported(&world);
    let texts = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        calendars(&file),
        [
            (texts(&["a", "c", "d"]), texts(&["+0100"])),
            (texts(&["b"]), texts(&["+0200"])),
            (texts(&["e"]), texts(&["+0100", "+0300"])),
            (texts(&["f"]), texts(&[])),
        ],
        "{file}"
    );
    // Importing it again changes nothing; another calendar gets the original events.
    assert_eq!(bring(&world, &file), (vec![Outcome::There; 6], false));
    let other = World::new(1);
    assert_eq!(bring(&other, &file).0, [Outcome::New; 6]);
    assert!(original(&other, "b").contains("TZOFFSETTO:+0200"));
    assert_eq!(calendars(&exported(&other)), calendars(&file));
}

#[test]
fn own_events_share_the_descriptions_of_others_that_are_right() {
    let mut world = World::new(1);
    let rule = |month: u32| format!("RRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH={month}\r\n");
    let right = zone(
        "Europe/Berlin",
        &[
            ("19810329T020000", "+0100", "+0200", &rule(3)),
            ("19961027T030000", "+0200", "+0100", &rule(10)),
        ],
    );
    let wrong = zone(
        "Europe/Berlin",
        &[("19700101T000000", "+0100", "+0100", "")],
    );
    let own = |uid: &str, date: &str| {
        json!({"id": uid, "summary": uid,
            "start": {"date": date, "time": "09:00:00", "tzid": "Europe/Berlin"},
            "end": {"date": date, "time": "10:00:00", "tzid": "Europe/Berlin"}})
    };
    // Own events come first, whatever their names.
    world.create(0, &own("later", "2031-07-01")).unwrap();
    world.create(0, &own("sooner", "1994-10-10")).unwrap();
    let summer = "20260701T090000";
    bring(
        &world,
        &calendar(&[&right, &zoned("right", "Europe/Berlin", summer)]),
    );
    bring(
        &world,
        &calendar(&[&zoned("plain", "Europe/Berlin", summer)]),
    );
    let all = calendars(&exported(&world));
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].0, ["later", "plain", "right", "sooner"]);
    bring(
        &world,
        &calendar(&[&wrong, &zoned("wrong", "Europe/Berlin", summer)]),
    );
    // In winter, it differs.
    bring(
        &world,
        &calendar(&[&wrong, &zoned("winter", "Europe/Berlin", "20260105T090000")]),
    );
    let all = calendars(&exported(&world));
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!(all[0].0, ["later", "plain", "right", "sooner", "winter"]);
    assert_eq!(all[1].0, ["wrong"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A reader that uses only the file's descriptions finds each event in its original zone.
    #[test]
    fn each_event_has_its_own_zone_wherever_it_is(
        all in proptest::collection::vec((0..4_u32, 0..3_u32, 1..28_u32), 1..12)
    ) {
        let world = World::new(1);
        let name = |number: u32| ["X", "Y", "Europe/Berlin"][number as usize];
        let offset = |number: u32| format!("+0{number}00");
        for (at, (hours, named, day)) in all.iter().enumerate() {
            let offset = offset(*hours);
            let zone = zone(name(*named), &[("19700101T000000", &offset, &offset, "")]);
            let event = zoned(&at.to_string(), name(*named), &format!("202601{day:02}T090000"));
            bring(&world, &calendar(&[&zone, &event]));
        }
        let file = exported(&world);
        let (objects, faults) = split(file.as_bytes()).unwrap();
        prop_assert!(faults.is_empty());
        prop_assert_eq!(objects.len(), all.len());
        for object in &objects {
            let (hours, named, _) = all[object.uid.parse::<usize>().unwrap()];
            let zones: Vec<_> = object.zones().collect();
            prop_assert_eq!(zones.len(), 1);
            prop_assert_eq!(zones[0].0, name(named).as_bytes());
            let said = format!("TZOFFSETTO:{}", offset(hours));
            prop_assert!(String::from_utf8_lossy(zones[0].1).contains(&said));
        }
    }

    #[test]
    fn an_identifier_is_the_same_wherever_it_goes(uid in "[a-z,;\\\\:\"n]{1,20}") {
        let mut world = World::new(1);
        let own = json!({"id": uid, "start": {"date": "2026-01-05"}});
        world.create(0, &own).unwrap();
        let file = exported(&world);
        prop_assert_eq!(bring(&world, &file), (vec![Outcome::Own], false));
        let other = World::new(1);
        prop_assert_eq!(bring(&other, &file), (vec![Outcome::New], true));
        prop_assert_eq!(&other.event(0, &uid).unwrap()["id"], &json!(uid));
        prop_assert_eq!(bring(&other, &exported(&other)), (vec![Outcome::There], false));
    }
}

/// Stores an unreadable object, as if another version had imported it.
fn unreadable(world: &World) {
    let known = r#"i{"k":"e","ds":1767225600,"ow":"user00000@localhost","to":1767225600,"sp":[1767603600,3600,0]}"#;
    let stored = [known.as_bytes(), b"\0BEGIN:VEVENT"].concat();
    let mut batch = Batch::default();
    batch.put(user(0), b"c/e/broken".to_vec(), stored);
    batch.put(user(0), b"c/i/20260105T090000Z/broken".to_vec(), "");
    world.store.commit_blocking(batch).unwrap();
}

#[test]
fn what_cannot_be_shown_can_be_found_taken_out_and_deleted() {
    let mut world = World::new(1);
    unreadable(&world);
    bring(&world, &calendar(&[&single("good", "")]));
    let mut found = Vec::new();
    let looked = world.store.read(|snapshot| {
        let range = (NOW..NOW + 60 * 86_400, 10);
        entries(snapshot, &user(0), range, ScanBudget::WHOLE, &mut |entry| {
            found.push(entry);
        })
    });
    assert!(looked.unwrap());
    let names: Vec<&str> = found.iter().map(|entry| &*entry.event.uid).collect();
    assert_eq!(names, ["broken", "good"]);
    assert_eq!(found[0].event.details.summary.as_deref(), Some("broken"));
    assert_eq!(found[0].event.details.start.instant(), 1_767_603_600);
    let is_shown = |at: usize| found[at].imported().unwrap().is_shown();
    assert!(!is_shown(0) && is_shown(1));
    assert_eq!(original(&world, "broken"), "BEGIN:VEVENT");
    assert_eq!(refusal(world.event(0, "broken")), (400, Some(1028)));
    let event = json!({"summary": "x", "start": {"date": "2026-01-05"}});
    let changed = world.update(0, "broken", &event, UpdateOptions::default());
    assert_eq!(refusal(changed), (403, None));
    // Other objects are exported all the same.
    assert!(exported(&world).contains("UID:good"));
    world.delete(0, "broken", true).unwrap();
    world.delete(0, "good", true).unwrap();
    assert_eq!(records(&world), 0);
}

#[test]
fn what_is_no_event_is_found_apart() {
    let mut world = World::new(1);
    let has_any = |world: &World| world.store.read(|s| has_others(s, &user(0))).unwrap();
    let task = |uid: &str, rest: &str| format!("BEGIN:VTODO\r\nUID:{uid}\r\n{rest}END:VTODO\r\n");
    let journal = "BEGIN:VJOURNAL\r\nUID:c\r\nSUMMARY:Diary\r\nEND:VJOURNAL\r\n";
    bring(&world, &calendar(&[&single("e", "")]));
    assert!(!has_any(&world));
    let due = "DUE:20260301T120000Z\r\nSUMMARY:Do\r\n";
    let file = calendar(&[&task("a", due), &task("b", ""), journal]);
    let kinds: Vec<_> = read(&world, &file)
        .into_iter()
        .map(|it| it.unwrap().kind())
        .collect();
    assert_eq!(kinds, ["task", "task", "journal"]);
    bring(&world, &file);
    assert!(has_any(&world));
    let page = |after: Option<&str>, most| {
        let found: Result<_, groupware_calendar::CalendarError> =
            world.store.read(|s| others(s, &user(0), after, most));
        let told = |entry: &groupware_calendar::Entry| {
            let imported = entry.imported().unwrap();
            (
                entry.event.uid.clone(),
                imported.kind(),
                imported.is_dated(),
            )
        };
        found.unwrap().iter().map(told).collect::<Vec<_>>()
    };
    let line = |uid: &str, kind, is_dated| (uid.to_owned(), kind, is_dated);
    let all = [
        line("a", "task", true),
        line("b", "task", false),
        line("c", "journal", false),
    ];
    assert_eq!(page(None, 10), all);
    assert_eq!(page(None, 1), all[..1]);
    assert_eq!(page(Some("a"), 10), all[1..]);
    assert_eq!(world.events(0, &ALL_2026).len(), 1);
    // Neither a newer version nor a deletion leaves records behind.
    bring(&world, &calendar(&[&task("a", "SEQUENCE:1\r\n")]));
    for uid in ["a", "b", "c", "e"] {
        world.delete(0, uid, true).unwrap();
    }
    assert_eq!(records(&world), 0);
}

#[test]
fn instances_without_their_series_are_together() {
    let world = World::new(1);
    let part = |day: u32, sequence: u32, summary: &str| {
        format!(
            "BEGIN:VEVENT\r\nUID:s\r\nRECURRENCE-ID:202602{day}T100000Z\r\nSEQUENCE:{sequence}\r\n\
             DTSTART:202602{day}T120000Z\r\nSUMMARY:{summary}\r\nEND:VEVENT\r\n"
        )
    };
    let summaries = |world: &World| {
        let lines = world.events(0, &ALL_2026);
        let text = |line: &Value| line["summary"].as_str().unwrap().to_owned();
        lines.iter().map(text).collect::<Vec<_>>()
    };
    let (first, second) = (part(10, 1, "one"), part(11, 0, "two"));
    let steps: [(&[&str], Outcome, &[&str]); 6] = [
        (&[&first], Outcome::New, &["one"]),
        (&[&second], Outcome::Newer, &["one", "two"]),
        (&[&first], Outcome::There, &["one", "two"]),
        (&[&part(10, 0, "older")], Outcome::There, &["one", "two"]),
        (&[&part(11, 1, "TWO")], Outcome::Newer, &["one", "TWO"]),
        (
            &[&part(12, 0, "three"), &part(10, 2, "ONE")],
            Outcome::Newer,
            &["ONE", "TWO", "three"],
        ),
    ];
    for (parts, outcome, expected) in steps {
        let file = calendar(parts);
        assert_eq!(
            bring(&world, &file),
            (vec![outcome], outcome != Outcome::There)
        );
        assert_eq!(summaries(&world), expected);
        assert_eq!(bring(&world, &file), (vec![Outcome::There], false));
    }
    let whole = original(&world, "s");
    for part in [
        &part(10, 2, "ONE"),
        &part(11, 1, "TWO"),
        &part(12, 0, "three"),
    ] {
        assert_eq!(whole.matches(&**part).count(), 1, "{whole}");
    }
    assert_eq!(whole.matches("BEGIN:VEVENT").count(), 3);
    // Times with different meanings can't be in one object.
    let zoned = |offset: &str, day: u32| {
        let zone = zone("X", &[("19700101T000000", offset, offset, "")]);
        let event = part(day, 0, "zoned").replace("DTSTART:", "DTSTART;TZID=X:");
        calendar(&[&zone, &event.replace("120000Z", "120000")])
    };
    assert_eq!(bring(&world, &zoned("+0100", 20)).0, [Outcome::Newer]);
    let (outcomes, is_written) = bring(&world, &zoned("+0200", 21));
    assert!(matches!(outcomes[..], [Outcome::Refused(why)] if why.contains("whole series")));
    assert!(!is_written);
}

#[test]
fn a_list_in_icalendar_has_what_is_on_its_page() {
    let world = World::new(1);
    bring(&world, &calendar(&[BERLIN, WEEKLY]));
    bring(
        &world,
        &calendar(&[
            &zone("Berlin Time", &[("19700101T000000", "+0300", "+0300", "")]),
            &zoned("other", "Berlin Time", "20260320T090000"),
        ]),
    );
    let asked = ALL_2026.into_iter().chain([("format", "icalendar")]);
    let query = EventQuery::parse(asked, NOW).unwrap();
    let page = world
        .store
        .read(|s| events(s, &user(0), &query))
        .unwrap()
        .unwrap();
    let body = String::from_utf8(page.body).unwrap();
    assert_eq!(body.matches("BEGIN:VCALENDAR").count(), 2, "{body}");
    assert_eq!(body.matches(WEEKLY).count(), 1);
    let name = instance_name("weekly@example.org", "20260401T130000Z");
    assert_eq!(original(&world, &name), calendar(&[BERLIN, WEEKLY]));
}
