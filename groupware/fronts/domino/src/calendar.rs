//! The calendar's routes, in the shape of Domino's calendar service: parse the request, let
//! `groupware-calendar` decide, answer. Knows no rule of the calendar.

mod reply;
mod request;

use axum::{
    Router,
    extract::State,
    response::Response,
    routing::{get, put},
};
use groupware_calendar::{
    self as calendar, Action, CalendarError, EventQuery, Format, InvitationQuery, Invitations,
    Reason, Target, UpdateOptions, limits,
};
use groupware_http::reply::nothing;
use groupware_http::{Fault, Gate, Owner};
use groupware_service::Service;
use groupware_service::calendar::{change, read};
use groupware_store::Snapshot;

use self::reply::CalendarFailure;
use self::request::{Body, CalendarQuery, MediaType, Recurrence, Resource, Seen};
use crate::front::Domino;

type Reply = Result<Response, CalendarFailure>;

/// The calendar's routes under `/mail/{mailbox}/api/calendar`. Not nested: that would rewrite
/// the URI of each request.
pub(crate) fn routes(domino: &Domino, gate: &Gate) -> Router {
    let at = |rest: &str| format!("/mail/{{mailbox}}/api/calendar{rest}");
    Router::new()
        .route(&at(""), get(no_database_context))
        .route(&at("/events"), get(list_events).post(create_event))
        .route(
            &at("/events/{id}"),
            get(read_event).put(update_event).delete(delete_event),
        )
        .route(&at("/events/{id}/action"), put(act_on_event))
        .route(&at("/events/{id}/instances"), get(list_instances))
        .route(&at("/events/{id}/notices"), get(list_notices))
        .route(
            &at("/events/{id}/{recurrence}"),
            get(read_instance)
                .put(refuse_instance)
                .delete(refuse_instance),
        )
        .route(&at("/invitations"), get(list_invitations))
        .route(&at("/notices/{id}"), get(read_notice))
        .route(&at("/notices/{id}/action"), put(act_on_notice))
        .layer(gate.usual())
        .with_state(domino.service.clone())
}

/// The list of calendars belongs to the server, not to a database.
async fn no_database_context(_owner: Owner) -> Reply {
    let error = CalendarError::refused(Reason::NoResource, "Database context not allowed.");
    Err(error.into())
}

async fn list_events(State(service): State<Service>, owner: Owner, query: CalendarQuery) -> Reply {
    let query = EventQuery::parse(query.pairs(), service.now_s())?;
    let (caller, format) = (owner.caller().clone(), query.format());
    let is_long = query.is_long();
    let look = move |snapshot: &dyn Snapshot| calendar::events(snapshot, owner.mailbox(), &query);
    let page = match is_long {
        true => service.read(&caller, true, look).await?,
        false => read(&service, look)?,
    };
    Ok(match page {
        None => nothing(),
        Some(page) => {
            let range = format!("items {}-{}", page.first, page.last);
            reply::page(format, page.body, &range)
        }
    })
}

async fn create_event(
    State(service): State<Service>,
    owner: Owner,
    query: CalendarQuery,
    media: MediaType,
    Body(body): Body,
) -> Reply {
    let (format, new) = media.one_event(&body)?;
    let workflow = query.flag("workflow", true)?;
    let entry = change(&service, &owner, |context| {
        calendar::create(context, new.clone(), workflow)
    })
    .await?
    .ok_or_else(|| CalendarFailure::Internal(Fault::with_message("the change gave no entry")))?;
    let location = calendar::event_path(owner.mailbox(), &entry.event.uid);
    Ok(reply::created(
        format,
        reply::event_body(format, owner.mailbox(), &entry),
        &location,
    ))
}

async fn read_event(
    State(service): State<Service>,
    owner: Owner,
    Resource(uid): Resource,
    query: CalendarQuery,
    seen: Seen,
) -> Reply {
    read_entry(&service, &owner, &uid, (query, seen))
}

/// Reads an event, or one instance of it; 304 if the client has this version.
fn read_entry(
    service: &Service,
    owner: &Owner,
    name: &str,
    (query, seen): (CalendarQuery, Seen),
) -> Reply {
    let format = Format::parse(query.pairs())?;
    let (version, body) = read(service, |snapshot| {
        calendar::event(snapshot, owner.mailbox(), name, format)
    })?;
    Ok(match seen.has(version, format) {
        true => reply::not_modified(version, format),
        false => reply::version(reply::document(format, body), version, format),
    })
}

async fn update_event(
    State(service): State<Service>,
    owner: Owner,
    Resource(uid): Resource,
    query: CalendarQuery,
    (media, seen): (MediaType, Seen),
    Body(body): Body,
) -> Reply {
    let (format, new) = media.one_event(&body)?;
    let options = UpdateOptions {
        workflow: query.flag("workflow", true)?,
        literally: query.flag("literally", false)?,
        strict_sequence: query.flag("strictsequence", false)?,
        ..UpdateOptions::default()
    };
    let entry = change(&service, &owner, |context| {
        seen.check(context, &uid)?;
        calendar::update(context, &uid, new.clone(), options)
    })
    .await?
    .ok_or_else(|| CalendarFailure::Internal(Fault::with_message("the change gave no entry")))?;
    Ok(reply::document(
        format,
        reply::event_body(format, owner.mailbox(), &entry),
    ))
}

async fn delete_event(
    State(service): State<Service>,
    owner: Owner,
    Resource(uid): Resource,
    query: CalendarQuery,
    seen: Seen,
) -> Reply {
    let workflow = query.flag("workflow", true)?;
    change(&service, &owner, |context| {
        seen.check(context, &uid)?;
        calendar::delete(context, &uid, workflow)
    })
    .await?;
    Ok(nothing())
}

/// Lists the instances of an imported event; other events don't recur.
async fn list_instances(
    State(service): State<Service>,
    owner: Owner,
    Resource(uid): Resource,
) -> Reply {
    let body = read(&service, |snapshot| {
        calendar::instances(snapshot, owner.mailbox(), &uid)
    })?;
    Ok(reply::document(Format::Json, body))
}

async fn read_instance(
    State(service): State<Service>,
    owner: Owner,
    Resource(uid): Resource,
    Recurrence(recurrence): Recurrence,
    query: CalendarQuery,
    seen: Seen,
) -> Reply {
    let name = calendar::instance_name(&uid, &recurrence);
    read_entry(&service, &owner, &name, (query, seen))
}

/// Refuses to change one instance: recurring events are imported, and stored as they are.
async fn refuse_instance(
    State(service): State<Service>,
    owner: Owner,
    Resource(uid): Resource,
    Recurrence(recurrence): Recurrence,
) -> Reply {
    let name = calendar::instance_name(&uid, &recurrence);
    change(&service, &owner, |context| {
        calendar::delete(context, &name, true)
    })
    .await?;
    Ok(nothing())
}

async fn list_notices(
    State(service): State<Service>,
    owner: Owner,
    Resource(uid): Resource,
) -> Reply {
    let body = read(&service, |snapshot| {
        calendar::event_notices(snapshot, owner.mailbox(), &uid)
    })?;
    Ok(reply::list(body))
}

async fn list_invitations(
    State(service): State<Service>,
    owner: Owner,
    query: CalendarQuery,
) -> Reply {
    let query = InvitationQuery::parse(query.pairs())?;
    let quick = read(&service, |snapshot| {
        let most = limits::NOTICES_AT_ONCE;
        calendar::invitations(snapshot, owner.mailbox(), &query, most)
    })?;
    if let Invitations::List(body) = quick {
        return Ok(reply::list(body));
    }
    // Restarted on the blocking pool, where it delays no other request.
    let caller = owner.caller().clone();
    let look = move |snapshot: &dyn Snapshot| {
        calendar::invitations(snapshot, owner.mailbox(), &query, usize::MAX)
    };
    let whole: Result<_, CalendarError> = service.read(&caller, true, look).await;
    Ok(match whole? {
        Invitations::List(body) => reply::list(body),
        Invitations::Many => reply::list(None),
    })
}

async fn read_notice(
    State(service): State<Service>,
    owner: Owner,
    Resource(id): Resource,
    query: CalendarQuery,
) -> Reply {
    let format = Format::parse(query.pairs())?;
    let body = read(&service, |snapshot| {
        calendar::notice(snapshot, owner.mailbox(), &id, format)
    })?;
    Ok(reply::document(format, body))
}

async fn act_on_event(
    State(service): State<Service>,
    owner: Owner,
    Resource(uid): Resource,
    query: CalendarQuery,
    (media, seen): (MediaType, Seen),
    Body(body): Body,
) -> Reply {
    let target = (Target::Event(&uid), Some((&*uid, seen)));
    act(&service, &owner, target, &query, (media, &body)).await
}

async fn act_on_notice(
    State(service): State<Service>,
    owner: Owner,
    Resource(id): Resource,
    query: CalendarQuery,
    media: MediaType,
    Body(body): Body,
) -> Reply {
    let target = (Target::Notice(&id), None);
    act(&service, &owner, target, &query, (media, &body)).await
}

async fn act(
    service: &Service,
    owner: &Owner,
    (target, seen): (Target<'_>, Option<(&str, Seen)>),
    query: &CalendarQuery,
    (media, body): (MediaType, &[u8]),
) -> Reply {
    let action = Action::parse(query.pairs())?;
    let body = media.action(body)?;
    change(service, owner, |context| {
        if let Some((uid, seen)) = &seen {
            seen.check(context, uid)?;
        }
        calendar::answer(context, target, action, &body)
    })
    .await?;
    Ok(nothing())
}
