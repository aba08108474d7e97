//! A small world for the calendar's tests: users, a memory store, a stopped clock, and JSON helpers.

pub(crate) mod brought;

use std::collections::BTreeMap;

use groupware_calendar::{
    Action, ActionBody, CalendarError, Context, Decision, Entry, EventQuery, Format, Ids,
    InvitationQuery, Invitations, Target, UpdateOptions, answer, create, delete, event, events,
    invitations, notice, parse_json_events, update,
};
use groupware_people::Directory;
use groupware_store::{CommitError, Store, StoreError, StoreOptions};
use serde_json::{Value, json};

/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: i64 = 1_767_225_600;

/// This many users, `user00000@localhost` …, and the registration times of some; the others always existed.
pub(crate) struct Users(pub(crate) u32, pub(crate) BTreeMap<String, i64>);

impl Directory for Users {
    fn user(&self, address: &str) -> Result<Option<String>, StoreError> {
        let name = address.strip_suffix("@localhost").unwrap_or(address);
        let number = name.strip_prefix("user").filter(|digits| digits.len() == 5);
        let known = number
            .and_then(|digits| digits.parse::<u32>().ok())
            .is_some_and(|number| number < self.0);
        Ok(known.then(|| name.to_owned()))
    }

    fn registered(&self, user: &str) -> Result<Option<i64>, StoreError> {
        Ok(Some(self.1.get(user).copied().unwrap_or_default()))
    }

    fn email(&self, user: &str) -> String {
        format!("{user}@localhost")
    }

    fn domain(&self) -> &str {
        "localhost"
    }
}

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) users: Users,
    pub(crate) now: i64,
    seed: u128,
}

/// The name of a user.
pub(crate) fn user(number: u32) -> String {
    format!("user{number:05}")
}

/// A meeting in January 2026 in the form of a client.
pub(crate) fn meeting(day: u32, attendees: &[u32]) -> Value {
    let people: Vec<_> = attendees
        .iter()
        .map(|number| json!({"email": format!("{}@localhost", user(*number)), "rsvp": true}))
        .collect();
    json!({
        "summary": format!("Meeting on {day}"),
        "location": "Room 1",
        "start": {"date": format!("2026-01-{day:02}"), "time": "09:00:00", "utc": true},
        "end": {"date": format!("2026-01-{day:02}"), "time": "10:00:00", "utc": true},
        "attendees": people,
    })
}

impl World {
    pub(crate) fn new(users: u32) -> Self {
        Self {
            store: Store::memory(StoreOptions::default()).unwrap(),
            users: Users(users, BTreeMap::new()),
            now: NOW,
            seed: 1,
        }
    }

    /// Decides on a fresh snapshot and commits; after a conflict, decides again without presumptions.
    pub(crate) fn change(
        &mut self,
        mailbox: &str,
        decide: impl Fn(&Context<'_>) -> Result<Decision, CalendarError>,
    ) -> Result<Option<Entry>, CalendarError> {
        self.seed = self
            .seed
            .wrapping_mul(0x2545_F491_4F6C_DD1D)
            .wrapping_add(11);
        let ids = Ids::from_random(self.seed);
        let decided = |presumes_absent| {
            self.store.read(|snapshot| {
                decide(&Context {
                    snapshot,
                    directory: &self.users,
                    mailbox,
                    now: self.now,
                    ids,
                    presumes_absent,
                })
            })
        };
        let mut decision = decided(true)?;
        let first = std::mem::take(&mut decision.batch);
        if let Err(error) = self.store.commit_blocking(first) {
            assert!(matches!(error, CommitError::Conflict { .. }), "{error}");
            decision = decided(false)?;
            let second = std::mem::take(&mut decision.batch);
            self.store.commit_blocking(second).unwrap();
        }
        Ok(decision.entry)
    }

    pub(crate) fn create(
        &mut self,
        organizer: u32,
        event: &Value,
    ) -> Result<String, CalendarError> {
        self.create_quietly(organizer, event, true)
    }

    pub(crate) fn create_quietly(
        &mut self,
        organizer: u32,
        event: &Value,
        workflow: bool,
    ) -> Result<String, CalendarError> {
        let new = parse_json_events(event.to_string().as_bytes())?.remove(0);
        let entry = self.change(&user(organizer), |context| {
            create(context, new.clone(), workflow)
        })?;
        Ok(entry.unwrap().event.uid.clone())
    }

    pub(crate) fn update(
        &mut self,
        owner: u32,
        uid: &str,
        event: &Value,
        options: UpdateOptions,
    ) -> Result<Entry, CalendarError> {
        let new = parse_json_events(event.to_string().as_bytes())?.remove(0);
        let entry = self.change(&user(owner), |context| {
            update(context, uid, new.clone(), options)
        })?;
        Ok(entry.unwrap())
    }

    pub(crate) fn delete(
        &mut self,
        owner: u32,
        uid: &str,
        workflow: bool,
    ) -> Result<(), CalendarError> {
        self.change(&user(owner), |context| delete(context, uid, workflow))?;
        Ok(())
    }

    pub(crate) fn act(
        &mut self,
        owner: u32,
        target: Target<'_>,
        action: &str,
        body: &Value,
    ) -> Result<Option<Entry>, CalendarError> {
        let action = Action::parse([("type", action)])?;
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let body = ActionBody::parse(Some("application/json"), text.as_bytes())?;
        self.change(&user(owner), |context| {
            answer(context, target, action, &body)
        })
    }

    /// The lines of the event list.
    pub(crate) fn events(&self, owner: u32, query: &[(&str, &str)]) -> Vec<Value> {
        let query = EventQuery::parse(query.iter().copied(), self.now).unwrap();
        let page = self
            .store
            .read(|snapshot| events(snapshot, &user(owner), &query))
            .unwrap();
        page.map_or_else(Vec::new, |page| {
            let body: Value = serde_json::from_slice(&page.body).unwrap();
            let lines = body["events"].as_array().unwrap().clone();
            assert_eq!(page.last + 1 - page.first, lines.len());
            lines
        })
    }

    /// The whole invitation list in its wire form.
    pub(crate) fn listed(&self, owner: u32, query: &InvitationQuery) -> Option<Vec<u8>> {
        let list = self
            .store
            .read(|snapshot| invitations(snapshot, &user(owner), query, usize::MAX));
        match list.unwrap() {
            Invitations::List(body) => body,
            Invitations::Many => panic!("all were to be looked at"),
        }
    }

    /// The lines of the invitation list.
    pub(crate) fn invitations(&self, owner: u32, query: &[(&str, &str)]) -> Vec<Value> {
        let query = InvitationQuery::parse(query.iter().copied()).unwrap();
        self.listed(owner, &query).map_or_else(Vec::new, |body| {
            let body: Value = serde_json::from_slice(&body).unwrap();
            body["notices"].as_array().unwrap().clone()
        })
    }

    /// The notice identifiers of a user, in the order of receipt.
    pub(crate) fn notice_ids(&self, owner: u32) -> Vec<String> {
        self.invitations(owner, &[])
            .iter()
            .map(|line| last_segment(line["href"].as_str().unwrap()))
            .collect()
    }

    pub(crate) fn event(&self, owner: u32, uid: &str) -> Result<Value, CalendarError> {
        Ok(self.document(owner, uid)?["events"][0].clone())
    }

    pub(crate) fn document(&self, owner: u32, uid: &str) -> Result<Value, CalendarError> {
        let (_, body) = self
            .store
            .read(|snapshot| event(snapshot, &user(owner), uid, Format::Json))?;
        Ok(serde_json::from_slice(&body).unwrap())
    }

    pub(crate) fn notice(&self, owner: u32, id: &str) -> Result<Value, CalendarError> {
        let body = self
            .store
            .read(|snapshot| notice(snapshot, &user(owner), id, Format::Json))?;
        Ok(serde_json::from_slice(&body).unwrap())
    }

    /// An attendee's PARTSTAT in the organizer's copy.
    pub(crate) fn status_of(&self, organizer: u32, uid: &str, attendee: u32) -> String {
        let email = format!("{}@localhost", user(attendee));
        let event = self.event(organizer, uid).unwrap();
        let people = event["attendees"].as_array().unwrap();
        let person = people
            .iter()
            .find(|person| person["email"] == email.as_str());
        person.unwrap()["status"].as_str().unwrap().to_owned()
    }
}

/// The text after the last slash.
pub(crate) fn last_segment(path: &str) -> String {
    path.rsplit('/').next().unwrap().to_owned()
}

/// The status and `cserror` of a refusal.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, CalendarError>) -> (u16, Option<u16>) {
    let error = result.unwrap_err();
    (error.status(), error.cserror())
}
