//! Laws: after any actions of users, the calendars agree; for any bytes, the parsers return.

use std::collections::BTreeMap;

use crate::support::{NOW, World, last_segment, meeting, user};
use groupware_calendar::{Target, UpdateOptions, parse_icalendar, parse_json_events};
use proptest::prelude::*;
use serde_json::{Value, json};

const USERS: u32 = 6;

#[derive(Debug, Clone)]
enum Deed {
    Create {
        owner: u32,
        day: u32,
        people: Vec<u32>,
    },
    Update {
        owner: u32,
        pick: usize,
        day: u32,
        people: Vec<u32>,
    },
    Delete {
        owner: u32,
        pick: usize,
    },
    OnNotice {
        owner: u32,
        pick: usize,
        action: &'static str,
        to: u32,
    },
    OnEvent {
        owner: u32,
        pick: usize,
        action: &'static str,
        to: u32,
    },
}

fn deed() -> impl Strategy<Value = Deed> {
    let owner = || 0..USERS;
    let people = || prop::collection::vec(0..USERS, 0..4);
    let action = || {
        prop::sample::select(vec![
            "accept",
            "tentative",
            "decline",
            "delegate",
            "delete",
            "cancel",
            "counter",
        ])
    };
    prop_oneof![
        3 => (owner(), 5u32..9, people())
            .prop_map(|(owner, day, people)| Deed::Create { owner, day, people }),
        2 => (owner(), any::<usize>(), 5u32..9, people())
            .prop_map(|(owner, pick, day, people)| Deed::Update { owner, pick, day, people }),
        1 => (owner(), any::<usize>()).prop_map(|(owner, pick)| Deed::Delete { owner, pick }),
        6 => (owner(), any::<usize>(), action(), owner())
            .prop_map(|(owner, pick, action, to)| Deed::OnNotice { owner, pick, action, to }),
        4 => (owner(), any::<usize>(), action(), owner())
            .prop_map(|(owner, pick, action, to)| Deed::OnEvent { owner, pick, action, to }),
    ]
}

/// One of a user's events, if there is one.
fn pick_event(world: &World, owner: u32, pick: usize) -> Option<String> {
    let lines = world.events(owner, &[]);
    let line = lines.get(pick.checked_rem(lines.len())?)?;
    Some(line["id"].as_str().unwrap().to_owned())
}

/// Performs the action; a refusal is also a valid response.
fn perform(world: &mut World, deed: &Deed, workflow: bool) {
    match deed {
        Deed::Create { owner, day, people } => {
            let _ = world.create_quietly(*owner, &meeting(*day, people), workflow);
        }
        Deed::Update {
            owner,
            pick,
            day,
            people,
        } => {
            if let Some(uid) = pick_event(world, *owner, *pick) {
                let options = UpdateOptions {
                    workflow,
                    ..UpdateOptions::default()
                };
                let _ = world.update(*owner, &uid, &meeting(*day, people), options);
            }
        }
        Deed::Delete { owner, pick } => {
            if let Some(uid) = pick_event(world, *owner, *pick) {
                let _ = world.delete(*owner, &uid, workflow);
            }
        }
        Deed::OnNotice {
            owner,
            pick,
            action,
            to,
        } => {
            let ids = world.notice_ids(*owner);
            if let Some(at) = pick.checked_rem(ids.len()) {
                let body = json!({"delegateTo": user(*to)});
                let _ = world.act(*owner, Target::Notice(&ids[at]), action, &body);
            }
        }
        Deed::OnEvent {
            owner,
            pick,
            action,
            to,
        } => {
            if let Some(uid) = pick_event(world, *owner, *pick) {
                let body = json!({"delegateTo": user(*to)});
                let _ = world.act(*owner, Target::Event(&uid), action, &body);
            }
        }
    }
}

fn is_ghost(line: &Value) -> bool {
    line["x-lotus-noticetype"]["data"] == "I"
}

/// Checks that one user's lists agree: a readable notice for each ghost; each other line readable and equal to its
/// event.
fn check_lists(world: &World, owner: u32) {
    let lines = world.events(owner, &[("count", "100")]);
    let mut ghosts: Vec<_> = lines
        .iter()
        .filter(|line| is_ghost(line))
        .map(id_of)
        .collect();
    let mut noticed: Vec<_> = world
        .invitations(owner, &[])
        .iter()
        .map(|line| {
            let id = last_segment(line["href"].as_str().unwrap());
            id_of(&world.notice(owner, &id).unwrap()["events"][0])
        })
        .collect();
    ghosts.sort();
    noticed.sort();
    assert_eq!(ghosts, noticed);
    for line in lines.iter().filter(|line| !is_ghost(line)) {
        let event = world.event(owner, &id_of(line)).unwrap();
        for (name, value) in line.as_object().unwrap() {
            assert_eq!(&event[name], value, "{name}");
        }
    }
}

fn id_of(event: &Value) -> String {
    event["id"].as_str().unwrap().to_owned()
}

/// A user's full copies; those of ghosts by their notices.
fn copies(world: &World, owner: u32) -> BTreeMap<String, (Value, bool)> {
    let lines = world.events(owner, &[("count", "100")]);
    let accepted = lines.iter().filter(|line| !is_ghost(line)).map(|line| {
        let event = world.event(owner, &id_of(line)).unwrap();
        (id_of(line), (event, false))
    });
    let pending = world.notice_ids(owner).into_iter().map(|id| {
        let event = world.notice(owner, &id).unwrap()["events"][0].clone();
        (id_of(&event), (event, true))
    });
    accepted.chain(pending).collect()
}

/// Checks that every copy agrees with the organizer's event in time, version, and the holder's reply, that every
/// invitation has its meeting, and that a copy without one is marked cancelled.
fn check_agreement(world: &World) {
    let all: Vec<_> = (0..USERS).map(|owner| copies(world, owner)).collect();
    for (owner, held) in all.iter().enumerate() {
        let address = format!("{}@localhost", user(owner as u32));
        for (uid, (copy, pending)) in held {
            let organizer = copy["x-lotus-organizer"]["data"].as_str().unwrap();
            if organizer == address || copy["status"] == "cancelled" {
                assert!(
                    !pending,
                    "cancelled or own, and still to be answered: {copy}"
                );
                continue;
            }
            let number: usize = organizer[4..9].parse().unwrap();
            let (original, _) = all[number].get(uid).expect("the organizer has the meeting");
            for name in ["summary", "location", "start", "end", "sequence"] {
                assert_eq!(copy[name], original[name], "{name}");
            }
            let status = status_in(original, &address);
            let fits = match status.as_str() {
                "needs-action" => *pending,
                "accepted" | "tentative" => !pending && status_in(copy, &address) == status,
                _ => false,
            };
            assert!(
                fits,
                "{address} is {status} at {organizer}, pending {pending}"
            );
        }
    }
    check_answers(&all);
}

/// Users who accepted, maybe tentatively, hold a copy; users who declined or delegated hold no active one.
fn check_answers(all: &[BTreeMap<String, (Value, bool)>]) {
    for (organizer, held) in all.iter().enumerate() {
        let address = format!("{}@localhost", user(organizer as u32));
        for (uid, (event, _)) in held {
            if event["organizer"]["email"] != address.as_str() {
                continue;
            }
            for person in event["attendees"].as_array().unwrap() {
                let email = person["email"].as_str().unwrap();
                if email == address {
                    continue;
                }
                let number: usize = email[4..9].parse().unwrap();
                let copy = all[number].get(uid);
                match person["status"].as_str().unwrap() {
                    "accepted" | "tentative" => assert!(copy.is_some(), "{person}"),
                    "declined" | "delegated" => assert!(copy.is_none(), "{person}"),
                    _ => {}
                }
            }
        }
    }
}

fn status_in(event: &Value, address: &str) -> String {
    let people = event["attendees"].as_array().unwrap();
    let person = people.iter().find(|person| person["email"] == address);
    person.unwrap()["status"].as_str().unwrap().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn calendars_agree_whatever_users_do(deeds in prop::collection::vec(deed(), 1..40)) {
        let mut world = World::new(USERS);
        for (step, deed) in deeds.iter().enumerate() {
            world.now = NOW + step as i64;
            perform(&mut world, deed, true);
        }
        world.now = NOW;
        for owner in 0..USERS {
            check_lists(&world, owner);
        }
        check_agreement(&world);
    }

    #[test]
    fn lists_agree_even_when_nobody_is_told(
        deeds in prop::collection::vec((deed(), any::<bool>()), 1..40)
    ) {
        let mut world = World::new(USERS);
        for (deed, workflow) in &deeds {
            perform(&mut world, deed, *workflow);
        }
        for owner in 0..USERS {
            check_lists(&world, owner);
        }
    }
}

proptest! {
    #[test]
    fn the_json_parser_answers_whatever_comes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_json_events(&bytes);
    }

    #[test]
    fn the_json_parser_answers_whatever_stands_in_a_field(
        name in prop::sample::select(vec![
            "id", "summary", "start", "end", "duration", "class", "priority", "categories",
            "attendees", "organizer", "alarm", "x-any", "url", "sequence",
        ]),
        text in any::<String>(),
        number in any::<i64>(),
    ) {
        for value in [
            json!(text),
            json!(number),
            json!([text]),
            json!({"date": text, "time": text, "data": text, "email": text}),
            json!({"date": "9999-12-31", "time": "23:59:59", "tzid": text}),
            json!([{"email": text, "role": text}]),
        ] {
            let mut event = meeting(5, &[]);
            event[name] = value;
            let _ = parse_json_events(event.to_string().as_bytes());
        }
    }

    #[test]
    fn the_icalendar_parser_answers_whatever_comes(
        lines in prop::collection::vec(
            prop_oneof![
                prop::sample::select(vec![
                    "BEGIN:VCALENDAR", "END:VCALENDAR", "BEGIN:VEVENT", "END:VEVENT",
                    "BEGIN:VTIMEZONE", "END:VTIMEZONE", "DTSTART:20260105T090000Z",
                    "DTSTART;VALUE=DATE:20260105", "DTSTART;TZID=Europe/Berlin:20260105T090000",
                    "DTEND:20260105T100000Z", "DURATION:PT1H", "DURATION:P99999999999W",
                    "DTSTART:99999999T999999Z", "DTSTART:20260105T090000+2359",
                    "ATTENDEE;ROLE=CHAIR:mailto:a@b", "RRULE:FREQ=DAILY", "UID:1", "UID:",
                    "METHOD:REPLY", "SEQUENCE:-1", "PRIORITY:300",
                ]).prop_map(str::to_owned),
                any::<String>(),
            ],
            0..14,
        )
    ) {
        let _ = parse_icalendar(lines.join("\r\n").as_bytes());
    }

    #[test]
    fn the_icalendar_parser_answers_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_icalendar(&bytes);
    }
}
