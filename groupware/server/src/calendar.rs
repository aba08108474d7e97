//! The calendar's routes, in the shape of Domino's calendar service: read the request, let
//! `groupware-calendar` decide, answer. Knows no rule of the calendar.

mod decide;
mod reply;
mod request;

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    response::Response,
    routing::{get, put},
};
use groupware_calendar::{
    self as calendar, Action, CalendarError, EventQuery, Format, InvitationQuery, Reason, Target,
    UpdateOptions, limits,
};

use self::request::{Body, MediaType, Query, Resource};
pub(crate) use self::{
    decide::{change, read},
    reply::Failure,
};
use crate::{AppState, Owner};

type Reply = Result<Response, Failure>;

/// The calendar's routes under `/mail/{mailbox}/api/calendar`. Not nested: that would rewrite
/// the URI of each request.
pub(crate) fn routes() -> Router<AppState> {
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
        .route(&at("/invitations"), get(list_invitations))
        .route(&at("/notices/{id}"), get(read_notice))
        .route(&at("/notices/{id}/action"), put(act_on_notice))
        .layer(DefaultBodyLimit::max(limits::BODY_BYTES))
}

/// The list of calendars belongs to the server, not to a database.
async fn no_database_context(_owner: Owner) -> Reply {
    let error = CalendarError::refused(Reason::NoResource, "Database context not allowed.");
    Err(error.into())
}

async fn list_events(State(state): State<AppState>, owner: Owner, query: Query) -> Reply {
    let query = EventQuery::parse(query.pairs(), state.now_s())?;
    let page = read(&state, |snapshot| {
        calendar::events(snapshot, owner.mailbox(), &query)
    })?;
    Ok(match page {
        None => reply::nothing(),
        Some(page) => {
            let range = format!("items {}-{}", page.first, page.last);
            reply::page(query.format(), page.body, &range)
        }
    })
}

async fn create_event(
    State(state): State<AppState>,
    owner: Owner,
    query: Query,
    media: MediaType,
    Body(body): Body,
) -> Reply {
    let (format, new) = media.one_event(&body)?;
    let workflow = query.flag("workflow", true)?;
    let entry = change(&state, &owner, |context| {
        calendar::create(context, new.clone(), workflow)
    })
    .await?
    .ok_or(Failure::Internal)?;
    let location = calendar::event_path(owner.mailbox(), &entry.event.uid);
    Ok(reply::created(
        format,
        reply::event_body(format, owner.mailbox(), &entry),
        &location,
    ))
}

async fn read_event(
    State(state): State<AppState>,
    owner: Owner,
    Resource(uid): Resource,
    query: Query,
) -> Reply {
    let format = Format::parse(query.pairs())?;
    let body = read(&state, |snapshot| {
        calendar::event(snapshot, owner.mailbox(), &uid, format)
    })?;
    Ok(reply::document(format, body))
}

async fn update_event(
    State(state): State<AppState>,
    owner: Owner,
    Resource(uid): Resource,
    query: Query,
    media: MediaType,
    Body(body): Body,
) -> Reply {
    let (format, new) = media.one_event(&body)?;
    let options = UpdateOptions {
        workflow: query.flag("workflow", true)?,
        literally: query.flag("literally", false)?,
        strict_sequence: query.flag("strictsequence", false)?,
    };
    let entry = change(&state, &owner, |context| {
        calendar::update(context, &uid, new.clone(), options)
    })
    .await?
    .ok_or(Failure::Internal)?;
    Ok(reply::document(
        format,
        reply::event_body(format, owner.mailbox(), &entry),
    ))
}

async fn delete_event(
    State(state): State<AppState>,
    owner: Owner,
    Resource(uid): Resource,
    query: Query,
) -> Reply {
    let workflow = query.flag("workflow", true)?;
    change(&state, &owner, |context| {
        calendar::delete(context, &uid, workflow)
    })
    .await?;
    Ok(reply::nothing())
}

/// Recurring events are refused at the door, so no event here has instances.
async fn list_instances(
    State(state): State<AppState>,
    owner: Owner,
    Resource(uid): Resource,
) -> Reply {
    read(&state, |snapshot| {
        calendar::event(snapshot, owner.mailbox(), &uid, Format::Json)
    })?;
    Err(CalendarError::bad_request("Event does not recur.").into())
}

async fn list_notices(
    State(state): State<AppState>,
    owner: Owner,
    Resource(uid): Resource,
) -> Reply {
    let body = read(&state, |snapshot| {
        calendar::event_notices(snapshot, owner.mailbox(), &uid)
    })?;
    Ok(reply::list(body))
}

async fn list_invitations(State(state): State<AppState>, owner: Owner, query: Query) -> Reply {
    let query = InvitationQuery::parse(query.pairs())?;
    let body = read(&state, |snapshot| {
        calendar::invitations(snapshot, owner.mailbox(), &query)
    })?;
    Ok(reply::list(body))
}

async fn read_notice(
    State(state): State<AppState>,
    owner: Owner,
    Resource(id): Resource,
    query: Query,
) -> Reply {
    let format = Format::parse(query.pairs())?;
    let body = read(&state, |snapshot| {
        calendar::notice(snapshot, owner.mailbox(), &id, format)
    })?;
    Ok(reply::document(format, body))
}

async fn act_on_event(
    State(state): State<AppState>,
    owner: Owner,
    Resource(uid): Resource,
    query: Query,
    media: MediaType,
    Body(body): Body,
) -> Reply {
    act(&state, &owner, Target::Event(&uid), &query, (media, &body)).await
}

async fn act_on_notice(
    State(state): State<AppState>,
    owner: Owner,
    Resource(id): Resource,
    query: Query,
    media: MediaType,
    Body(body): Body,
) -> Reply {
    act(&state, &owner, Target::Notice(&id), &query, (media, &body)).await
}

async fn act(
    state: &AppState,
    owner: &Owner,
    target: Target<'_>,
    query: &Query,
    (media, body): (MediaType, &[u8]),
) -> Reply {
    let action = Action::parse(query.pairs())?;
    let body = media.action(body)?;
    change(state, owner, |context| {
        calendar::answer(context, target, action, &body)
    })
    .await?;
    Ok(reply::nothing())
}
