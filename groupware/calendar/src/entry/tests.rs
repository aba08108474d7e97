//! The hand-written writer and parser are equivalent to serde.

use jiff::civil::{Date, DateTime, Time};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    Answer, Attendee, Class, Details, Moment, Organizer, Role, Status, Transparency, UserType,
};

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z@. ]{0,12}",
        "\\PC{0,4}",
        "[a-z]{0,9}[\"\\\\\n\u{1}é/][a-z\"]{0,9}"
    ]
}

fn any_text() -> impl Strategy<Value = Option<String>> {
    prop::option::of(text())
}

fn moment() -> impl Strategy<Value = Moment> {
    let date = (-5..10_000_i16, 1..13_i8, 1..29_i8);
    let date = date.prop_map(|(year, month, day)| Date::new(year, month, day).unwrap());
    let nanosecond = prop::sample::select(vec![0, 0, 0, 500_000_000]);
    let clock = (0..24_i8, 0..60_i8, 0..60_i8, nanosecond);
    let clock = clock.prop_map(|(h, m, s, n)| Time::new(h, m, s, n).unwrap());
    (date, clock, 0..5_u8).prop_map(|(date, clock, kind)| {
        let local = DateTime::from_parts(date, clock);
        match kind {
            0 => Moment::Day(date),
            1 => Moment::Floating(local),
            2 => Moment::Zoned {
                local,
                tzid: "Europe/Berlin".to_owned(),
                instant: i64::from(date.year()) * 1000,
            },
            _ => Moment::Utc(local),
        }
    })
}

fn one<T: Clone + std::fmt::Debug + 'static>(all: impl Into<Vec<T>>) -> impl Strategy<Value = T> {
    prop::sample::select(all.into())
}

fn attendee() -> impl Strategy<Value = Attendee> {
    let texts = (any_text(), text(), any_text(), any_text(), any_text());
    let seldom = prop::option::weighted(0.1, text());
    let rest = (
        one([Role::ReqParticipant, Role::Chair]),
        one([UserType::Individual, UserType::Room]),
        one([Answer::NeedsAction, Answer::Accepted, Answer::Delegated]),
        any::<bool>(),
        seldom,
    );
    (texts, rest).prop_map(|(texts, (role, user_type, status, rsvp, seldom))| {
        let (user, email, display_name, delegated_to, delegated_from) = texts;
        Attendee {
            user,
            email,
            display_name,
            role,
            user_type,
            status,
            rsvp,
            delegated_to,
            delegated_from,
            member: seldom.clone(),
            sent_by: seldom.clone(),
            dir: seldom,
        }
    })
}

fn details() -> impl Strategy<Value = Details> {
    let texts = (any_text(), any_text(), any_text());
    let words = (
        one([Class::Public, Class::Private]),
        one([Transparency::Opaque, Transparency::Transparent]),
        one([Status::Confirmed, Status::Tentative]),
    );
    let is_usual = prop::bool::weighted(0.7);
    (texts, moment(), moment(), words, is_usual).prop_map(
        |((summary, location, description), start, end, words, is_usual)| Details {
            summary,
            location,
            description,
            start,
            end,
            class: words.0,
            transparency: words.1,
            status: words.2,
            priority: (!is_usual).then_some(7),
            categories: if is_usual {
                vec![]
            } else {
                vec!["a".into(), "b\"".into()]
            },
            url: (!is_usual).then(|| "http://x/".to_owned()),
            extra: if is_usual {
                vec![]
            } else {
                vec![("x-a".into(), json!({ "data": 1 }))]
            },
            alarm: (!is_usual).then(|| json!([{ "a": "\u{1}" }])),
            source: if is_usual {
                vec![]
            } else {
                vec!["ATTACH;X-A=\"b\":c".into()]
            },
        },
    )
}

fn entry() -> impl Strategy<Value = Entry> {
    let state = prop_oneof![
        one([
            State::Own,
            State::Accepted,
            State::Tentative,
            State::Cancelled
        ]),
        (text(), any::<i64>()).prop_map(|(notice, received)| State::Invited { notice, received }),
    ];
    let people = (
        text(),
        text(),
        any_text(),
        prop::collection::vec(attendee(), 0..4),
    );
    let numbers = (one([0_u32, 0, 7]), any::<i64>(), 0..2_000_000_000_i64);
    (state, text(), people, numbers, details()).prop_map(
        |(state, uid, people, numbers, details)| Entry {
            state,
            event: Arc::new(Event {
                uid,
                sequence: numbers.0,
                created: numbers.1,
                modified: numbers.2,
                organizer: Organizer {
                    user: people.0,
                    email: people.1,
                    display_name: people.2,
                },
                attendees: people.3,
                details,
            }),
        },
    )
}

proptest! {
    #[test]
    fn an_entry_is_written_as_ever(entry in entry()) {
        let mut written = Vec::new();
        entry.push_json(&mut written);
        let expected = serde_json::to_string(&entry).unwrap();
        prop_assert_eq!(String::from_utf8(written).unwrap(), expected);
    }

    #[test]
    fn an_entry_is_read_as_ever(entry in entry()) {
        let json = serde_json::to_string(&entry).unwrap();
        if let Some(read) = as_written(&json) {
            prop_assert_eq!(&read, &entry);
        }
        prop_assert_eq!(Entry::from_json(b"", json.as_bytes()).unwrap(), entry);
    }

    /// After any modification, the parser's result, if any, is the same as serde's.
    #[test]
    fn what_is_not_quite_an_entry_is_read_as_ever(
        entry in entry(), at in any::<prop::sample::Index>(),
        piece in prop::sample::select(vec!["", "\"", ",", "}", "0", "60", "-", " ", "\\", "\\u00e9", "x", "\"q\":false,"]),
        gone in 0..3_usize,
    ) {
        let json = serde_json::to_string(&entry).unwrap();
        let at = json.char_indices().map(|(at, _)| at).nth(at.index(json.chars().count())).unwrap();
        let rest: String = json[at..].chars().skip(gone).collect();
        let changed = [&json[..at], piece, &rest].concat();
        if let Some(read) = as_written(&changed) {
            let expected: Entry = serde_json::from_str(&changed).unwrap();
            prop_assert_eq!(read, expected, "{}", changed);
        }
    }
}

#[test]
fn most_entries_are_read_without_detours() {
    let when = |hour| Moment::Utc(DateTime::constant(2026, 1, 5, hour, 0, 0, 0));
    let person = |name: &str, status| Attendee {
        user: Some(name.to_owned()),
        email: format!("{name}@localhost"),
        display_name: Some(format!("\"{name}\"")),
        status,
        rsvp: true,
        ..Attendee::default()
    };
    let mut new = crate::parse_json_events(br#"{"start":{"date":"2026-01-05"}}"#).unwrap();
    let mut details = new.remove(0).details;
    (details.start, details.end) = (when(9), when(10));
    details.summary = Some("Tea\nand cake".to_owned());
    let entry = Entry {
        state: State::Invited {
            notice: "F0".to_owned(),
            received: 7,
        },
        event: Arc::new(Event {
            uid: "u".to_owned(),
            sequence: 2,
            created: 0,
            modified: 1_767_225_600,
            organizer: Organizer {
                user: "ada".to_owned(),
                email: "ada@localhost".to_owned(),
                display_name: None,
            },
            attendees: vec![
                person("ben", Answer::NeedsAction),
                person("eve", Answer::Accepted),
            ],
            details,
        }),
    };
    let json = serde_json::to_string(&entry).unwrap();
    assert_eq!(as_written(&json), Some(entry));
}

#[test]
fn other_versions_and_damage_are_told_apart_from_absence() {
    let forms = [
        &b""[..],
        b"\x03{}",
        b"\x01{",
        b"\x01{}",
        b"\x02\"o\"",
        b"\x02\"o\"\0",
        b"\x02\"o\"\0\x02@",
        b"\x02\"o\"\0\0{}",
        b"\x02\"o\"\0\0\x1F",
    ];
    for bytes in forms {
        let error = Entry::decode(b"c/e/x", bytes).unwrap_err();
        assert!(
            matches!(error, CalendarError::Unreadable(ReadError::Corrupt { .. })),
            "{error}"
        );
    }
}

#[test]
fn what_could_not_be_read_again_is_not_stored() {
    let mut new = crate::parse_json_events(br#"{"start":{"date":"2026-01-05"}}"#).unwrap();
    let mut entry = Entry {
        state: State::Own,
        event: Arc::new(Event {
            uid: "UID".into(),
            sequence: 0,
            created: 0,
            modified: 0,
            organizer: crate::Organizer {
                user: "ann".into(),
                email: "ann@localhost".into(),
                display_name: None,
            },
            attendees: Vec::new(),
            details: new.remove(0).details,
        }),
    };
    let nested = |levels| (0..levels).fold(1.into(), |inner, _| serde_json::json!([inner]));
    for (levels, status) in [(16, None), (123, None), (126, Some(400))] {
        Arc::make_mut(&mut entry.event).details.alarm = Some(nested(levels));
        let found = entry.check_storable().err().map(|error| error.status());
        assert_eq!(found, status, "{levels}");
    }
}
