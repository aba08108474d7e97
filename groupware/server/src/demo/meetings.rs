//! The meetings of a server to look at.

use groupware_calendar::{self as calendar, Action, ActionBody, Target, parse_json_events};
use jiff::Timestamp;
use jiff::tz::Offset;
use serde_json::json;

use super::DemoError;
use crate::calendar::{Failure, change, read};
use crate::{AppState, Owner};

/// A meeting or an appointment.
struct Meeting {
    organizer: &'static str,
    people: &'static [&'static str],
    /// Days from today, then the time in UTC; none for the whole day.
    day: i32,
    time: Option<(i8, i8)>,
    minutes: i64,
    title: &'static str,
    place: &'static str,
    about: &'static str,
    /// Who has answered, and what.
    answers: &'static [(&'static str, Action)],
}

const YES: Action = Action::Accept;

const MEETINGS: [Meeting; 11] = [
    Meeting {
        organizer: "ada",
        people: &["ben", "carla"],
        day: 0,
        time: Some((9, 0)),
        minutes: 60,
        title: "Weekly planning",
        place: "Room Tern",
        about: "Bring the figures of the last run.",
        answers: &[("ben", YES), ("carla", Action::Tentative)],
    },
    Meeting {
        organizer: "ada",
        people: &[],
        day: 0,
        time: Some((13, 0)),
        minutes: 45,
        title: "Dentist",
        place: "Harbour Street 4",
        about: "",
        answers: &[],
    },
    Meeting {
        organizer: "ben",
        people: &["ada", "dmitri"],
        day: 1,
        time: Some((10, 0)),
        minutes: 90,
        title: "Review of the storage study",
        place: "Room Gannet",
        about: "",
        answers: &[("ada", YES), ("dmitri", YES)],
    },
    Meeting {
        organizer: "ada",
        people: &[],
        day: 1,
        time: Some((11, 0)),
        minutes: 60,
        title: "Write the report",
        place: "",
        about: "",
        answers: &[],
    },
    Meeting {
        organizer: "ben",
        people: &["ada", "carla"],
        day: 2,
        time: Some((12, 30)),
        minutes: 60,
        title: "Load test of the new machine",
        place: "Room Puffin",
        about: "200 users for two hours. Please keep the staging machines quiet.",
        answers: &[],
    },
    Meeting {
        organizer: "carla",
        people: &["ada", "ben", "dmitri"],
        day: 4,
        time: Some((11, 30)),
        minutes: 60,
        title: "Lunch: plans for the winter party",
        place: "Canteen",
        about: "",
        answers: &[("ben", YES)],
    },
    Meeting {
        organizer: "dmitri",
        people: &["ada"],
        day: -1,
        time: Some((16, 0)),
        minutes: 30,
        title: "Handover of the on-call phone",
        place: "Lobby",
        about: "",
        answers: &[("ada", Action::Tentative)],
    },
    Meeting {
        organizer: "ada",
        people: &[],
        day: 7,
        time: None,
        minutes: 3 * 24 * 60,
        title: "Conference: Systems at Sea",
        place: "Gothenburg",
        about: "",
        answers: &[],
    },
    Meeting {
        organizer: "carla",
        people: &["ada"],
        day: -3,
        time: Some((8, 30)),
        minutes: 30,
        title: "Breakfast",
        place: "Pier 3",
        about: "",
        answers: &[("ada", YES)],
    },
    Meeting {
        organizer: "dmitri",
        people: &["ada", "ben"],
        day: -6,
        time: Some((14, 0)),
        minutes: 60,
        title: "Build in the disks",
        place: "Machine room",
        about: "",
        answers: &[("ada", YES)],
    },
    Meeting {
        organizer: "ben",
        people: &["ada"],
        day: 9,
        time: Some((9, 30)),
        minutes: 30,
        title: "Coffee",
        place: "",
        about: "",
        answers: &[("ada", YES)],
    },
];

/// Puts all of them into the calendars.
///
/// # Errors
/// When the store fails, or refuses one.
pub(super) async fn arrange(state: &AppState) -> Result<(), DemoError> {
    for meeting in &MEETINGS {
        meeting.create(state).await?;
        for (user, action) in meeting.answers {
            meeting.answer(state, user, *action).await?;
        }
    }
    Ok(())
}

impl Meeting {
    fn json(&self, today_s: i64) -> serde_json::Value {
        const DAY_S: i64 = 86_400;
        let midnight = today_s - today_s.rem_euclid(DAY_S) + i64::from(self.day) * DAY_S;
        let (hour, minute) = self.time.unwrap_or_default();
        let start = midnight + i64::from(hour) * 3600 + i64::from(minute) * 60;
        let moment = |second: i64| {
            let clock = Offset::UTC.to_datetime(Timestamp::from_second(second).unwrap_or_default());
            match self.time {
                None => json!({ "date": clock.date().to_string() }),
                Some(_) => json!({
                    "date": clock.date().to_string(),
                    "time": clock.time().strftime("%H:%M:%S").to_string(),
                    "utc": true,
                }),
            }
        };
        let people: Vec<_> = self
            .people
            .iter()
            .map(|name| json!({ "email": name, "rsvp": true }))
            .collect();
        json!({
            "summary": self.title,
            "location": Some(self.place).filter(|place| !place.is_empty()),
            "description": Some(self.about).filter(|about| !about.is_empty()),
            "start": moment(start),
            "end": moment(start + self.minutes * 60),
            "attendees": people,
        })
    }

    async fn create(&self, state: &AppState) -> Result<(), DemoError> {
        let json = self.json(state.now_s()).to_string();
        let new = parse_json_events(json.as_bytes())
            .map_err(|error| DemoError::Meeting(error.to_string()))?
            .pop()
            .ok_or_else(|| DemoError::Meeting("there is none".to_owned()))?;
        let owner = owner(state, self.organizer)?;
        let made = change(state, &owner, |context| {
            calendar::create(context, new.clone(), true)
        });
        made.await.map(drop).map_err(refused)
    }

    async fn answer(&self, state: &AppState, user: &str, action: Action) -> Result<(), DemoError> {
        let owner = owner(state, user)?;
        let open = read(state, |snapshot| calendar::open_invitations(snapshot, user));
        let open = open.map_err(refused)?;
        let named =
            |entry: &&calendar::Entry| entry.event.details.summary.as_deref() == Some(self.title);
        let Some(notice) = open.iter().find(named).and_then(calendar::Entry::notice) else {
            return Err(DemoError::Meeting(format!(
                "{user} is not invited to {}",
                self.title
            )));
        };
        let body = ActionBody::default();
        let done = change(state, &owner, |context| {
            calendar::answer(context, Target::Notice(notice), action, &body)
        });
        done.await.map(drop).map_err(refused)
    }
}

fn owner(state: &AppState, user: &str) -> Result<Owner, DemoError> {
    let account = state.directory().find(user).ok_or(DemoError::User)?;
    Ok(Owner::of(&account))
}

fn refused(failure: Failure) -> DemoError {
    DemoError::Meeting(failure.told().1.into_owned())
}
