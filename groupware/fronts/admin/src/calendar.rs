//! Calendar objects of a user for whoever brings them or takes them out, as they are.
//!
//! ```text
//! POST /admin/users/{name}/calendar    objects come in, as calendars in the format iCalendar
//! GET  /admin/users/{name}/calendar    all that is on the calendar, as one file
//! ```
//! The answer to the first says of each object what became of it, in the order of the body:
//! `{"objects":[{"uid","outcome"}]}`, where `outcome` is `new`, `newer` (in place of an older version), `there`
//! (this version or a newer one was there), `own` (an event made here stays), or `refused`, with a `message`. An
//! object is taken as a whole or not at all; those before one that finds no room are kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use groupware_calendar::{self as calendar, CalendarError, Outcome, Ready};
use groupware_http::{Admin, ApiError};
use groupware_proto_ical::split;
use groupware_service::calendar::change_aside;
use groupware_service::{Caller, ChangeError};
use groupware_takeout::{Source, write_calendar};
use serde::Serialize;

use crate::failure::{AdminFailure, Reply};
use crate::front::AdminFront;
use crate::people::find;
use crate::request::to_the_end;

/// Most bytes of objects and their lines in one transaction, but for a single object.
const BATCH_BYTES: usize = 1 << 20;
/// Most objects in one transaction.
const BATCH_OBJECTS: usize = 100;

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
        let mut outcomes = BTreeMap::new();
        for batch in batches(read.ready) {
            let uids: Vec<String> = batch.iter().map(|(uid, _)| uid.clone()).collect();
            let (_, objects): (Vec<_>, Vec<Ready>) = batch.into_iter().unzip();
            let cut: Vec<bool> = objects.iter().map(|ready| ready.is_cut).collect();
            let changed = change_aside(&front.service, (&worker, &mailbox), move |context| {
                calendar::import(context, &objects)
            });
            let found = changed.await.map_err(failed)?;
            let found = found.into_iter().zip(cut).map(told);
            outcomes.extend(uids.into_iter().zip(found));
        }
        let objects = read.all.into_iter().map(|(uid, refused)| {
            let (outcome, message) = match refused {
                Some(why) => ("refused", Some(why)),
                None => outcomes.remove(&uid).unwrap_or(("refused", None)),
            };
            Line {
                uid,
                outcome,
                message,
            }
        });
        let objects = objects.collect();
        Ok(Json(Taken { objects }).into_response())
    })
    .await
}

/// What a request's body comes to.
struct Read {
    /// All objects in their order, and why one was refused.
    all: Vec<(String, Option<String>)>,
    ready: Vec<(String, Ready)>,
}

/// Reads the objects, apart from whoever else is served.
async fn read(
    front: &AdminFront,
    caller: &Caller,
    mailbox: &Arc<str>,
    body: Bytes,
) -> Result<Read, AdminFailure> {
    let (service, mailbox) = (front.service.clone(), Arc::clone(mailbox));
    let read = front.service.read(caller, true, move |_| {
        let (owner, now) = (service.people().email(&mailbox), service.now_s());
        let (objects, faults) = match split(&body) {
            Ok(split) => split,
            Err(damage) => return Ok(Err(format!("The calendar can't be read: {damage}."))),
        };
        if let Some(fault) = faults.first() {
            return Ok(Err(format!("A component can't be kept: {fault}.")));
        }
        let (mut all, mut ready) = (Vec::new(), Vec::new());
        for object in &objects {
            match calendar::ready(object, &owner, now) {
                Ok(read) => {
                    ready.push((object.uid.clone(), read));
                    all.push((object.uid.clone(), None));
                }
                Err(why) => all.push((object.uid.clone(), Some(why))),
            }
        }
        Ok::<_, CalendarError>(Ok(Read { all, ready }))
    });
    Ok(read.await?.map_err(ApiError::bad_request)?)
}

/// Batches of a bounded size.
fn batches(ready: Vec<(String, Ready)>) -> Vec<Vec<(String, Ready)>> {
    let (mut batches, mut bytes) = (Vec::<Vec<_>>::new(), 0);
    for object in ready {
        let more = object.1.bytes();
        match batches.last_mut() {
            Some(batch) if bytes + more <= BATCH_BYTES && batch.len() < BATCH_OBJECTS => {
                bytes += more;
                batch.push(object);
            }
            _ => {
                bytes = more;
                batches.push(vec![object]);
            }
        }
    }
    batches
}

fn told((outcome, is_cut): (Outcome, bool)) -> (&'static str, Option<String>) {
    let cut = "it recurs too often, or too finely, for all its instances to be shown";
    let message = is_cut.then(|| cut.to_owned());
    match outcome {
        Outcome::New => ("new", message),
        Outcome::Newer => ("newer", message),
        Outcome::There => ("there", None),
        Outcome::Own => ("own", None),
    }
}

fn failed(error: ChangeError<CalendarError>) -> AdminFailure {
    match error {
        ChangeError::Decided(error) => error.into(),
        ChangeError::Commit(error) => error.into(),
        ChangeError::Contended => {
            let message = "The calendar is being changed by others: try again.";
            ApiError::told(409, message).into()
        }
    }
}
