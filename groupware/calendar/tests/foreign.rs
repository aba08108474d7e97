//! Calendars written by other programs: all forms of zones, exceptions, rules, and durations. Each row is an object
//! with the expected starts and ends of its instances.

use std::fmt::Write as _;

use crate::support::brought::{bring, calendar, original, read};
use crate::support::{World, user};
use groupware_calendar::{ScanBudget, UpdateOptions, entries, entry};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The zone of Brussels in Exchange's description, under any name.
fn western(name: &str) -> String {
    zone(name, ("+0100", "030000"), ("+0200", "020000"))
}

fn zone(name: &str, standard: (&str, &str), daylight: (&str, &str)) -> String {
    let part = |kind: &str, (to, at): (&str, &str), from: &str, month: u8| {
        format!(
            "BEGIN:{kind}\r\nDTSTART:16010101T{at}\r\nTZOFFSETFROM:{from}\r\nTZOFFSETTO:{to}\r\n\
             RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH={month}\r\nEND:{kind}\r\n"
        )
    };
    let winter = part("STANDARD", standard, daylight.0, 10);
    let summer = part("DAYLIGHT", daylight, standard.0, 3);
    let name = name.replace(',', "\\,");
    format!("BEGIN:VTIMEZONE\r\nTZID:{name}\r\n{winter}{summer}END:VTIMEZONE\r\n")
}

/// A zone with a fixed offset.
fn steady(name: &str, offset: &str) -> String {
    format!(
        "BEGIN:VTIMEZONE\r\nTZID:{name}\r\nBEGIN:STANDARD\r\nDTSTART:20200101T000000\r\n\
         TZOFFSETFROM:{offset}\r\nTZOFFSETTO:{offset}\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n"
    )
}

fn event(lines: &str) -> String {
    let mut text = "BEGIN:VEVENT\r\nUID:f\r\nDTSTAMP:20251101T080000Z\r\n".to_owned();
    for line in lines.split('|') {
        let _ = write!(text, "{line}\r\n");
    }
    text + "END:VEVENT\r\n"
}

/// The instances of a file's objects in 2026 and 2027, in order: start, end, and summary.
fn instances(file: &str) -> Vec<String> {
    let world = World::new(1);
    bring(&world, file);
    shown(&world)
}

fn shown(world: &World) -> Vec<String> {
    let from = world.now;
    let mut found = Vec::new();
    let looked = world.store.read(|snapshot| {
        let range = (from..from + 2 * 365 * 86_400, 1_000);
        entries(snapshot, &user(0), range, ScanBudget::WHOLE, &mut |entry| {
            let details = &entry.event.details;
            let at = |second| {
                Timestamp::from_second(second)
                    .unwrap()
                    .strftime("%m-%d %H:%M")
            };
            let (start, end) = (details.start.instant(), details.end.instant());
            let summary = details.summary.as_deref().map(|it| format!(" {it}"));
            let summary = summary.unwrap_or_default();
            found.push((
                start,
                format!("{} {}m{summary}", at(start), (end - start) / 60),
            ));
        })
    });
    assert!(looked.unwrap());
    found.sort();
    found.into_iter().map(|(_, text)| text).collect()
}

fn note(file: &str) -> String {
    let ready = read(&World::new(1), file).remove(0).unwrap();
    ready.note().unwrap_or_default().to_owned()
}

fn check(rows: &[(String, &str, &[&str])]) {
    for (zones, lines, expected) in rows {
        let file = calendar(&[zones, &event(lines)]);
        assert_eq!(instances(&file), *expected, "{file}");
    }
}

#[test]
fn zones_are_those_that_the_file_describes() {
    let list = "(UTC+01:00) Antwerpen, Bergen, Calais";
    let hour = "DURATION:PT1H";
    let rows: [(String, String, &str); 14] = [
        (
            western(list),
            format!("\"{list}\":20260504T110000"),
            "05-04 09:00",
        ),
        (
            western(list),
            format!("\"{list}\":20260104T110000"),
            "01-04 10:00",
        ),
        (
            western("(GMT+01.00) Quays/Piers"),
            "(GMT+01.00) Quays/Piers:20260704T110000".to_owned(),
            "07-04 09:00",
        ),
        (
            western("Customized Time Zone"),
            "Customized Time Zone:20260704T140000".to_owned(),
            "07-04 12:00",
        ),
        (
            zone(
                "GMT Standard Time 1",
                ("+0000", "020000"),
                ("+0100", "010000"),
            ),
            "GMT Standard Time 1:20260616T120000".to_owned(),
            "06-16 11:00",
        ),
        (
            steady("Ship Clock", "+0415"),
            "Ship Clock:20260704T140000".to_owned(),
            "07-04 09:45",
        ),
        // A user has switched daylight saving time off, and the zone keeps its Windows name.
        (
            steady("W. Europe Standard Time", "+0100"),
            "W. Europe Standard Time:20260704T140000".to_owned(),
            "07-04 13:00",
        ),
        (
            western("tzone://Microsoft/Custom"),
            "tzone://Microsoft/Custom:20260704T140000".to_owned(),
            "07-04 12:00",
        ),
        (
            String::new(),
            "tzone://Microsoft/Utc:20260704T140000".to_owned(),
            "07-04 14:00",
        ),
        (
            String::new(),
            "GMT+05:00:20260704T140000".to_owned(),
            "07-04 09:00",
        ),
        (
            String::new(),
            "\"GMT+05:00\":20260704T140000".to_owned(),
            "07-04 09:00",
        ),
        (
            String::new(),
            "europe/berlin:20260704T140000".to_owned(),
            "07-04 12:00",
        ),
        (
            String::new(),
            "GMT Standard Time 2:20260616T120000".to_owned(),
            "06-16 11:00",
        ),
        // A place's name means the same everywhere: descriptions of it are often stale.
        (
            steady("America/Sao_Paulo", "-0200"),
            "America/Sao_Paulo:20260704T140000".to_owned(),
            "07-04 17:00",
        ),
    ];
    for (zones, start, expected) in rows {
        let lines = format!("DTSTART;TZID={start}|{hour}");
        let file = calendar(&[&zones, &event(&lines)]);
        assert_eq!(instances(&file), [format!("{expected} 60m")], "{file}");
        assert_eq!(note(&file), "", "{file}");
        // A client that creates it gets the same.
        let parsed = groupware_calendar::parse_icalendar(file.as_bytes()).unwrap();
        let world = World::new(1);
        bring(&world, &file);
        let kept = world.store.read(|s| entry(s, &user(0), "f")).unwrap();
        let moment = kept.event.details.start.instant();
        assert_eq!(parsed[0].details.start.instant(), moment, "{file}");
    }
}

#[test]
fn a_series_goes_by_the_zone_of_its_file() {
    let office = western("Quay Office");
    check(&[(
        office,
        "DTSTART;TZID=Quay Office:20260304T140000|DURATION:PT1H|RRULE:FREQ=MONTHLY;COUNT=3",
        &["03-04 13:00 60m", "04-04 12:00 60m", "05-04 12:00 60m"],
    )]);
    // A zone unlike any in the database.
    let ship = zone("Ship Clock", ("+0415", "030000"), ("+0515", "020000"));
    check(&[(
        ship,
        "DTSTART;TZID=Ship Clock:20260304T140000|DURATION:PT1H|RRULE:FREQ=MONTHLY;COUNT=3",
        &["03-04 09:45 60m", "04-04 08:45 60m", "05-04 08:45 60m"],
    )]);
}

#[test]
fn every_zone_of_the_database_is_found_by_its_description() {
    // Whatever its name in the file, its clock is that of the zone.
    for (name, place) in [
        ("Zone A", "Europe/Berlin"),
        ("Zone B", "America/New_York"),
        ("Zone C", "Australia/Lord_Howe"),
        ("Zone D", "Asia/Kathmandu"),
        ("Zone E", "America/St_Johns"),
        ("Zone F", "Africa/Casablanca"),
        ("Zone G", "Pacific/Chatham"),
        ("Zone H", "Asia/Tokyo"),
    ] {
        let at = |month: u32| json!({"date": format!("2026-{month:02}-15"), "time": "12:00:00", "tzid": place});
        for month in 1..=12 {
            let mut world = World::new(1);
            world
                .create(
                    0,
                    &json!({"id": "own", "start": at(month), "end": at(month)}),
                )
                .unwrap();
            let own = original(&world, "own");
            let file = own.replace(place, name).replace("UID:own", "UID:f");
            let (expected, found) = (shown(&world), instances(&file));
            assert_eq!(found, expected, "{file}");
        }
    }
}

#[test]
fn an_edit_keeps_the_zone() {
    for (zones, name) in [
        (western("Quay Office"), "Quay Office"),
        (steady("Ship Clock", "+0415"), "Ship Clock"),
        (String::new(), "Nowhere"),
        (String::new(), "GMT+05:00"),
        (String::new(), "tzone://Microsoft/Utc"),
        (western("Europe/Brussels"), "Europe/Brussels"),
    ] {
        let mut world = World::new(1);
        let file = |from: &str, to: &str| {
            let lines =
                format!("DTSTART;TZID={name}:20260704T{from}|DTEND;TZID={name}:20260704T{to}");
            calendar(&[&zones, &event(&lines)])
        };
        bring(&world, &file("140000", "150000"));
        let before = world.event(0, "f").unwrap();
        let later = |moment: &Value| {
            let mut moment = moment.clone();
            let time = moment["time"].as_str().unwrap();
            let hour: u32 = time[..2].parse().unwrap();
            moment["time"] = json!(format!("{:02}{}", hour + 2, &time[2..]));
            moment
        };
        let mut changed = before.clone();
        changed["start"] = later(&before["start"]);
        changed["end"] = later(&before["end"]);
        world
            .update(0, "f", &changed, UpdateOptions::default())
            .unwrap();
        let after = original(&world, "f");
        // A name with a colon is unquoted, as before, or quoted.
        let after = after.replace(&format!("\"{name}\""), name);
        for part in ["DTSTART", "DTEND"] {
            let time = if part == "DTSTART" {
                "160000"
            } else {
                "170000"
            };
            let line = format!("{part};TZID={name}:20260704T{time}\r\n");
            assert!(after.contains(&line), "{after}");
        }
        assert_eq!(
            after.matches("BEGIN:VTIMEZONE").count(),
            usize::from(!zones.is_empty())
        );
    }
}

#[test]
fn a_first_date_off_its_rule_is_shown() {
    let none = String::new;
    check(&[
        (
            none(),
            "DTSTART:20260105T100000Z|DURATION:PT1H|RRULE:FREQ=WEEKLY;BYDAY=TH;COUNT=2",
            &["01-05 10:00 60m", "01-08 10:00 60m", "01-15 10:00 60m"],
        ),
        // RFC 5545 excludes it by EXDATE.
        (
            none(),
            "DTSTART:20260105T100000Z|DURATION:PT1H|EXDATE:20260105T100000Z|RRULE:FREQ=WEEKLY;BYDAY=TH;COUNT=1",
            &["01-08 10:00 60m"],
        ),
        (
            none(),
            "DTSTART:20260105T100000Z|DURATION:PT1H|RRULE:FREQ=DAILY;UNTIL=20260101T000000Z",
            &["01-05 10:00 60m"],
        ),
        (
            none(),
            "DTSTART:20260105T100000Z|DURATION:PT1H|RRULE:FREQ=MONTHLY;BYDAY=6MO",
            &["01-05 10:00 60m"],
        ),
    ]);
}

#[test]
fn a_rule_that_cannot_be_read_is_said_with_its_line() {
    for rule in [
        "FREQ=WEEKLY;COUNT=0",
        "FREQ=WEEKLY;COUNT=-1",
        "FREQ=WEEKLY;INTERVAL=0",
        "FREQ=WEEKLY;COUNT=3;BYDAY=MONDAY",
        "FREQ=WEEKLY;BYDAY=",
        "FREQ=WEEKLY;UNTIL=2026-03-20",
        "FREQ=FORTNIGHTLY",
        "FREQ=MONTHLY;BYMONTHDAY=32",
        "FREQ=MONTHLY;BYMONTHDAY=300",
        "WEEKLY",
    ] {
        let lines = format!("DTSTART:20260105T100000Z|DURATION:PT1H|RRULE:{rule}");
        let file = calendar(&[&event(&lines)]);
        assert_eq!(instances(&file), ["01-05 10:00 60m"], "{rule}");
        let note = note(&file);
        assert!(note.contains(&format!("RRULE:{rule}")), "{note}");
    }
    for (lines, expected) in [
        ("RRULE:FREQ=MINUTELY;COUNT=5", "by the minute"),
        ("RRULE:FREQ=SECONDLY", "by the second"),
        ("RRULE:RSCALE=HEBREW;FREQ=YEARLY", "RSCALE=HEBREW"),
        ("RRULE:FREQ=MONTHLY;BYDAY=6MO", "gives no date"),
        (
            "RRULE:FREQ=WEEKLY;BYDAY=TH",
            "begins on a day that its rule",
        ),
        (
            "RRULE:FREQ=DAILY;COUNT=1|EXDATE:20260105T100000Z",
            "all its dates are left out",
        ),
        (
            "RRULE:FREQ=DAILY|EXDATE:tomorrow",
            "its EXDATE has what is no date",
        ),
        ("RRULE:FREQ=HOURLY", "too often"),
        ("RRULE:FREQ=DAILY;COUNT=2", ""),
    ] {
        let lines = format!("DTSTART:20260105T100000Z|DURATION:PT1H|{lines}");
        let note = note(&calendar(&[&event(&lines)]));
        assert!(
            note.contains(expected) && note.is_empty() == expected.is_empty(),
            "{lines}: {note}"
        );
    }
}

#[test]
fn exceptions_are_in_the_terms_of_their_series() {
    let none = String::new;
    check(&[
        (
            none(),
            "DTSTART;TZID=Europe/Berlin:20260701T140000|DURATION:PT1H|RRULE:FREQ=DAILY;COUNT=3|EXDATE:20260702T140000",
            &["07-01 12:00 60m", "07-03 12:00 60m"],
        ),
        (
            none(),
            "DTSTART;VALUE=DATE:20260701|RRULE:FREQ=DAILY;COUNT=3|EXDATE;TZID=Europe/Berlin:20260702T000000",
            &["07-01 00:00 1440m", "07-03 00:00 1440m"],
        ),
        (
            none(),
            "DTSTART:20260701T140000|DURATION:PT1H|RRULE:FREQ=DAILY;COUNT=3|EXDATE;TZID=Europe/Berlin:20260702T140000",
            &["07-01 14:00 60m", "07-03 14:00 60m"],
        ),
        (
            none(),
            "DTSTART;TZID=Europe/Berlin:20260701T140000|DURATION:PT1H|RRULE:FREQ=DAILY;COUNT=3|EXDATE;VALUE=DATE:20260702",
            &["07-01 12:00 60m", "07-03 12:00 60m"],
        ),
        (
            none(),
            "DTSTART;TZID=Europe/Berlin:20260701T140000|DURATION:PT1H|RRULE:FREQ=DAILY;COUNT=3|EXDATE;TZID=Europe/London:20260702T130000",
            &["07-01 12:00 60m", "07-03 12:00 60m"],
        ),
    ]);
    let series = "DTSTART;TZID=US/Eastern:20260531T200000|DURATION:PT1H|RRULE:FREQ=DAILY;COUNT=3";
    for id in [
        "RECURRENCE-ID:20260601T200000",
        "RECURRENCE-ID;VALUE=DATE:20260601",
        "RECURRENCE-ID:20260602T000000Z",
        "RECURRENCE-ID;TZID=Europe/Berlin:20260602T020000",
        "RECURRENCE-ID;TZID=US/Eastern:20260601T200000",
    ] {
        let moved = event(&format!(
            "{id}|DTSTART;TZID=US/Eastern:20260601T220000|DURATION:PT1H|SUMMARY:moved"
        ));
        let file = calendar(&[&event(series), &moved]);
        let expected = [
            "06-01 00:00 60m",
            "06-02 02:00 60m moved",
            "06-03 00:00 60m",
        ];
        assert_eq!(instances(&file), expected, "{file}");
    }
}

#[test]
fn of_several_versions_the_higher_sequence_counts() {
    let series = event("DTSTART:20260901T120000Z|DURATION:PT1H|RRULE:FREQ=DAILY;COUNT=2");
    let version = |sequence: u32, hour: u32| {
        event(&format!(
            "RECURRENCE-ID:20260902T120000Z|DTSTART:20260902T{hour}0000Z|DURATION:PT1H|SEQUENCE:{sequence}"
        ))
    };
    for (first, second, hour) in [
        ((2, 13), (1, 15), 13),
        ((1, 13), (2, 15), 15),
        ((1, 13), (1, 15), 15),
    ] {
        let (first, second) = (version(first.0, first.1), version(second.0, second.1));
        let file = calendar(&[&series, &first, &second]);
        assert_eq!(instances(&file)[1], format!("09-02 {hour}:00 60m"));
    }
    let whole = |sequence: u32, hour: u32| {
        event(&format!(
            "DTSTART:20260902T{hour}0000Z|DURATION:PT1H|SEQUENCE:{sequence}"
        ))
    };
    for (one, other) in [((2, 13), (1, 15)), ((0, 15), (7, 13))] {
        let file = calendar(&[&whole(one.0, one.1), &whole(other.0, other.1)]);
        assert_eq!(instances(&file), ["09-02 13:00 60m"]);
        assert!(note(&file).contains("in 2 versions"));
    }
}

#[test]
fn an_instance_is_moved_with_all_later_ones() {
    let series = event(
        "DTSTART;TZID=Europe/Berlin:20260318T100000|DURATION:PT1H|RRULE:FREQ=WEEKLY;COUNT=4|EXDATE;TZID=Europe/Berlin:20260408T100000",
    );
    let later = "RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Berlin:20260325T100000|\
        DTSTART;TZID=Europe/Berlin:20260326T113000|DURATION:PT2H|SUMMARY:later";
    let file = calendar(&[&series, &event(later)]);
    let expected = [
        "03-18 09:00 60m",
        "03-26 10:30 120m later",
        "04-02 09:30 120m later",
    ];
    assert_eq!(instances(&file), expected);
    // One of them is moved again, on its own.
    let own = "RECURRENCE-ID;TZID=Europe/Berlin:20260401T100000|DTSTART;TZID=Europe/Berlin:20260401T080000|DURATION:PT1H|SUMMARY:own";
    let file = calendar(&[&series, &event(later), &event(own)]);
    let expected = [
        "03-18 09:00 60m",
        "03-26 10:30 120m later",
        "04-01 06:00 60m own",
    ];
    assert_eq!(instances(&file), expected);
}

#[test]
fn dates_on_top_are_in_the_terms_of_their_series() {
    let none = String::new;
    let berlin = "DTSTART;TZID=Europe/Berlin:20260701T140000|DURATION:PT1H";
    for (date, expected) in [
        (
            "RDATE;TZID=Europe/Berlin;VALUE=PERIOD:20260703T090000/PT3H",
            "07-03 07:00 180m",
        ),
        (
            "RDATE;VALUE=PERIOD:20260703T090000Z/20260703T110000Z",
            "07-03 09:00 120m",
        ),
        ("RDATE;VALUE=DATE:20260703", "07-03 12:00 60m"),
        ("RDATE:20260703T090000", "07-03 07:00 60m"),
        (
            "RDATE;TZID=Europe/London:20260703T090000",
            "07-03 08:00 60m",
        ),
        (
            "RDATE;VALUE=PERIOD:20260703T090000Z/P1D",
            "07-03 09:00 1440m",
        ),
    ] {
        let lines = format!("{berlin}|{date}");
        check(&[(none(), &lines, &["07-01 12:00 60m", expected])]);
    }
}

#[test]
fn lengths_are_exact_across_the_change_of_clocks() {
    let none = String::new;
    let berlin = |date: &str, lines: &str| format!("DTSTART;TZID=Europe/Berlin:{date}|{lines}");
    let daily = "RRULE:FREQ=DAILY;COUNT=3";
    // Clocks change from 02:00 to 03:00 on 29 March, and from 03:00 to 02:00 on 25 October.
    for (date, lines, expected) in [
        (
            "20260328T023000",
            format!("DURATION:PT1H|{daily}"),
            ["03-28 01:30 60m", "03-29 01:30 60m", "03-30 00:30 60m"],
        ),
        (
            "20261024T023000",
            format!("DURATION:PT1H|{daily}"),
            ["10-24 00:30 60m", "10-25 00:30 60m", "10-26 01:30 60m"],
        ),
        // By RFC 5545, an end means an exact duration, and a day in a duration means a calendar day.
        (
            "20260327T220000",
            format!("DTEND;TZID=Europe/Berlin:20260328T060000|{daily}"),
            ["03-27 21:00 480m", "03-28 21:00 480m", "03-29 20:00 480m"],
        ),
        (
            "20260327T120000",
            format!("DURATION:P1D|{daily}"),
            [
                "03-27 11:00 1440m",
                "03-28 11:00 1380m",
                "03-29 10:00 1440m",
            ],
        ),
        (
            "20260327T120000",
            format!("DURATION:P1DT1H|{daily}"),
            [
                "03-27 11:00 1500m",
                "03-28 11:00 1440m",
                "03-29 10:00 1500m",
            ],
        ),
        (
            "20260327T120000",
            format!("DURATION:PT24H|{daily}"),
            [
                "03-27 11:00 1440m",
                "03-28 11:00 1440m",
                "03-29 10:00 1440m",
            ],
        ),
    ] {
        check(&[(none(), &berlin(date, &lines), &expected)]);
    }
    // The same for single events, from any source.
    let once = berlin("20260329T013000", "DURATION:PT1H");
    check(&[(none(), &once, &["03-29 00:30 60m"])]);
    let mut world = World::new(1);
    let start = json!({"date": "2026-03-29", "time": "01:30:00", "tzid": "Europe/Berlin"});
    world
        .create(0, &json!({"id": "own", "start": start, "duration": "PT1H"}))
        .unwrap();
    assert_eq!(shown(&world), ["03-29 00:30 60m"]);
}

#[test]
fn dates_of_iso_8601_are_read() {
    check(&[(
        String::new(),
        "DTSTART:2026-07-06T08:00:00Z|DTEND:2026-07-06T09:00:00Z",
        &["07-06 08:00 60m"],
    )]);
}
