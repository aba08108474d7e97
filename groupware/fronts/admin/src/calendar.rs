//! Imports and exports the calendar objects of a user, as they are.
//!
//! ```text
//! POST /admin/users/{name}/calendar    objects come in, as calendars in the format iCalendar
//! GET  /admin/users/{name}/calendar    all that is on the calendar, as one file
//! ```
//! The answer to the first lists the outcome of each object, in the order of the body:
//! `{"objects":[{"uid","outcome"}]}`, where `outcome` is `new`, `newer` (replaces an older
//! version), `there` (this version or a newer one was stored), `own` (an event made here stays), or
//! `refused`, with a `message`; for objects other than events, `kind` is `task`, `journal`, or
//! `other`. An object is stored as a whole or not at all; objects before one that finds no room are
//! kept. More than 1,000 objects, or 64 MiB of them, each with its zones, are all rejected: 413.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use groupware_calendar::{self as calendar, CalendarError, Outcome, Ready, limits};
use groupware_http::{Admin, ApiError};
use groupware_proto_ical::{Object, split};
use groupware_runtime::Caller;
use groupware_service::ChangeError;
use groupware_service::calendar::change_aside;
use groupware_takeout::{Source, write_calendar};
use serde::Serialize;

use crate::failure::{AdminFailure, Reply};
use crate::front::AdminFront;
use crate::people::find;
use crate::request::to_the_end;

/// Most objects of one request. The command line sends 200.
const OBJECTS: usize = 1_000;
/// Most bytes of a request's objects, each with the zones that it names: 200 of the largest ones.
const BYTES: usize = 64 << 20;

pub(crate) fn routes() -> Router<AdminFront> {
    Router::new().route("/admin/users/{name}/calendar", get(give).post(take))
}

#[derive(Serialize)]
struct Taken {
    objects: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    uid: String,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

async fn give(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    let mailbox = Arc::clone(find(&front, &name)?.name.key());
    let (store, content) = (front.service.store().clone(), front.content.clone());
    let now_s = front.service.now_s();
    let of = Arc::clone(&mailbox);
    let written = front.streams.written(&caller, &of, move |to| {
        let source = Source {
            store: &store,
            content: &content,
            mailbox: &mailbox,
            now_s,
        };
        Ok(write_calendar(source, to)?)
    });
    Ok(written.await?.into_file("calendar.ics", "text/calendar"))
}

async fn take(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
    body: Bytes,
) -> Reply {
    let mailbox = Arc::clone(find(&front, &name)?.name.key());
    let worker = caller.clone();
    to_the_end(&caller, async move {
        let read = read(&front, &worker, &mailbox, body).await?;
        let ready = Arc::new(read.ready);
        let mut outcomes = Vec::with_capacity(ready.len());
        while outcomes.len() < ready.len() {
            let (objects, from) = (Arc::clone(&ready), outcomes.len());
            let changed = change_aside(&front.service, (&worker, &mailbox), move |context| {
                calendar::import(context, objects.get(from..).unwrap_or_default())
            });
            outcomes.extend(changed.await.map_err(failed)?);
        }
        let mut found = ready.iter().zip(outcomes);
        let objects = read.all.into_iter().map(|(uid, refused)| {
            let found = refused.is_none().then(|| found.next()).flatten();
            let (outcome, message) = found.map_or(("refused", refused), told);
            let kind = found.map(|(ready, _)| ready.kind());
            Line {
                uid,
                outcome,
                kind: kind.filter(|kind| *kind != "event"),
                message,
            }
        });
        let objects = objects.collect();
        Ok(Json(Taken { objects }).into_response())
    })
    .await
}

/// The parsed body of a request.
#[derive(Debug, Default)]
struct Read {
    /// All objects in order, and why one was rejected.
    all: Vec<(String, Option<String>)>,
    /// The accepted objects, in the same order.
    ready: Vec<Ready>,
}

/// Parses the objects on the blocking pool, without delaying other requests.
async fn read(
    front: &AdminFront,
    caller: &Caller,
    mailbox: &Arc<str>,
    body: Bytes,
) -> Result<Read, ApiError> {
    let (service, mailbox) = (front.service.clone(), Arc::clone(mailbox));
    let work = front.service.work(caller, true, move || {
        let owner = service.auth.people().email(&mailbox);
        objects(&body, &owner, service.now_s())
    });
    work.await
}

/// Parses the objects of a body, within the bounds of a request.
fn objects(body: &[u8], owner: &str, now: i64) -> Result<Read, ApiError> {
    let refused = |why: String| Err(ApiError::bad_request(why));
    let (objects, faults) = match split(body) {
        Ok(split) => split,
        Err(damage) => return refused(format!("The calendar can't be read: {damage}.")),
    };
    if let Some(fault) = faults.first() {
        return refused(format!("A component can't be kept: {fault}."));
    }
    if objects.len() > OBJECTS {
        let message = "The calendar has more than 1,000 objects: send fewer at once.";
        return Err(ApiError::with_status(413, message));
    }
    let sizes = objects.iter().map(Object::written_bytes);
    // An object that is too large is rejected on its own.
    let bytes: usize = sizes.filter(|size| *size <= limits::OBJECT_BYTES).sum();
    if bytes > BYTES {
        let message = "The calendar's objects have more than 64 MiB, each with the time zones that it \
                       names: send fewer at once.";
        return Err(ApiError::with_status(413, message));
    }
    let mut read = Read::default();
    for object in &objects {
        let refused = match calendar::ready(object, owner, now) {
            Ok(ready) => {
                read.ready.push(ready);
                None
            }
            Err(why) => Some(why),
        };
        read.all.push((object.uid.clone(), refused));
    }
    Ok(read)
}

fn told((ready, outcome): (&Ready, Outcome)) -> (&'static str, Option<String>) {
    let note = ready.note().map(str::to_owned);
    match outcome {
        Outcome::New => ("new", note),
        Outcome::Newer => ("newer", note),
        Outcome::There => ("there", None),
        Outcome::Own => ("own", None),
        Outcome::Refused(why) => ("refused", Some(why.to_owned())),
    }
}

fn failed(error: ChangeError<CalendarError>) -> AdminFailure {
    match error {
        ChangeError::Decided(error) => error.into(),
        ChangeError::Commit(error) => error.into(),
        ChangeError::Contended => {
            let message = "The calendar is being changed by others: try again.";
            ApiError::with_status(409, message).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(zone_bytes: usize, events: usize) -> String {
        let zone = format!(
            "BEGIN:VTIMEZONE\r\nTZID:Z\r\nX-LIC-LOCATION:Europe/Berlin\r\nX-PAD:{}\r\nEND:VTIMEZONE\r\n",
            "z".repeat(zone_bytes)
        );
        let event = |number| {
            format!(
                "BEGIN:VEVENT\r\nUID:{number}\r\nDTSTART;TZID=Z:20260105T090000\r\nEND:VEVENT\r\n"
            )
        };
        let events: String = (0..events).map(event).collect();
        format!("BEGIN:VCALENDAR\r\n{zone}{events}END:VCALENDAR\r\n")
    }

    fn count(file: &str) -> Result<usize, (u16, String)> {
        let read = objects(file.as_bytes(), "ada@localhost", 1_767_225_600);
        let told = |error: ApiError| (error.status().as_u16(), error.message().to_owned());
        read.map(|read| read.ready.len()).map_err(told)
    }

    #[test]
    fn a_request_has_a_bound_whatever_each_of_its_objects_takes_along() {
        assert_eq!(count(&file(10, OBJECTS)), Ok(OBJECTS));
        // As many as the command line sends at once.
        assert_eq!(count(&file(200 << 10, 200)), Ok(200));
        for (file, expected) in [
            (file(10, OBJECTS + 1), "more than 1,000 objects: send fewer"),
            (file(200 << 10, 400), "more than 64 MiB"),
        ] {
            let (status, message) = count(&file).unwrap_err();
            assert_eq!(status, 413);
            assert!(message.contains(expected), "{message}");
        }
    }
}
