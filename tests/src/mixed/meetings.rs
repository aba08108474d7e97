//! Meetings: created, answered, moved, and deleted.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use super::world::{Seen, Things, USERS, World, Writer, expect, name, together};
use crate::server::Client;

fn email(user: usize) -> String {
    format!("{}@localhost", name(user))
}

fn path(user: usize, rest: &str) -> String {
    format!("/mail/{}/api/calendar{rest}", name(user))
}

fn document(summary: &str, attendees: &[usize], location: &str) -> Value {
    let people: Vec<_> = attendees
        .iter()
        .map(|user| json!({ "email": email(*user) }))
        .collect();
    json!({ "events": [{
        "summary": summary,
        "location": location,
        "start": { "date": "2026-01-05", "time": "09:00:00", "utc": true },
        "end": { "date": "2026-01-05", "time": "10:00:00", "utc": true },
        "attendees": people,
    }] })
}

/// The view of a meeting in all calendars; at most one attendee has accepted.
fn shown(organizer: usize, attendees: &[usize], accepted: Option<usize>, room: u32) -> String {
    let mut shown = vec![format!("own {organizer} Room {room}")];
    shown.extend(attendees.iter().map(|user| match accepted == Some(*user) {
        true => format!("accepted {user} Room {room}"),
        false => format!("invited {user} Room {room}"),
    }));
    together(shown)
}

pub(super) fn write(writer: &mut Writer<'_>) -> io::Result<()> {
    let mut client = writer.world.client(writer.user)?;
    while writer.goes_on() {
        let (label, to, own) = (writer.next_label(), writer.others(), writer.user);
        let created = writer.change(&label, &shown(own, &to, None, 0), || {
            let body = document(&label, &to, "Room 0");
            let answer = client.request("POST", &path(own, "/events"), &body)?;
            expect(&answer, 201).map(|()| answer)
        })?;
        let event = created.location.unwrap_or_default();
        let first = to[0];
        if writer.below(2) == 0 {
            let id = event.rsplit('/').next().unwrap_or_default().to_owned();
            let mut invited = writer.world.client(first)?;
            let notices = path(first, &format!("/events/{id}/notices"));
            let notices = invited.request("GET", &notices, &Value::Null)?;
            let notice = notices.body["notices"][0]["href"].as_str();
            let notice = notice.ok_or_else(|| {
                io::Error::other(format!("an invitation without a notice: {notices:?}"))
            })?;
            let accept = format!("{notice}/action?type=accept");
            writer.change(&label, &shown(own, &to, Some(first), 0), || {
                expect(&invited.request("PUT", &accept, &Value::Null)?, 200)
            })?;
        }
        if writer.below(3) == 0 {
            // All attendees are asked again.
            writer.change(&label, &shown(own, &to, None, 1), || {
                let body = document(&label, &to, "Room 1");
                expect(&client.request("PUT", &event, &body)?, 200)
            })?;
            writer.change(&label, "", || {
                expect(&client.request("DELETE", &event, &Value::Null)?, 200)
            })?;
        }
    }
    Ok(())
}

fn kind(line: &Value, user: usize) -> &'static str {
    if line["x-lotus-organizer"]["data"] == email(user) {
        "own"
    } else if line["x-lotus-noticetype"]["data"] == "I" {
        "invited"
    } else if line["status"] == "cancelled" {
        "cancelled"
    } else {
        "accepted"
    }
}

fn look_at(client: &mut Client, user: usize, seen: &mut Seen) -> io::Result<()> {
    let (mut found, mut invited) = (0, 0);
    loop {
        let range = "since=2026-01-01T00:00:00Z&before=2026-02-01T00:00:00Z";
        let path = path(user, &format!("/events?{range}&count=100&start={found}"));
        let answer = client.request("GET", &path, &Value::Null)?;
        expect(&answer, 200)?;
        let Some(events) = answer.body["events"].as_array() else {
            break;
        };
        found += events.len();
        for event in events {
            let (kind, text) = (kind(event, user), |name: &str| {
                event[name].as_str().unwrap_or("nothing").to_owned()
            });
            invited += usize::from(kind == "invited");
            seen.add(
                &text("summary"),
                format!("{kind} {user} {}", text("location")),
            );
        }
    }
    let answer = client.request("GET", &path(user, "/invitations"), &Value::Null)?;
    let notices = answer.body["notices"].as_array().map_or(0, Vec::len);
    match notices == invited {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{invited} meetings ask {user} for an answer, and there are {notices} invitations"
        ))),
    }
}

/// Returns all meetings, in all calendars.
pub(super) fn look(world: &World, _: &Things) -> io::Result<BTreeMap<String, String>> {
    let mut seen = Seen::default();
    for user in 0..USERS {
        look_at(&mut world.client(user)?, user, &mut seen)?;
    }
    Ok(seen.together())
}
