//! The lookup service's routes, in two protocols: read the request, let `groupware-lookup` decide,
//! answer. Knows no rule of registrations.

mod access;
mod rate;
mod reply;
mod sweep;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query as QueryPairs, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use groupware_lookup::xml::{self, Message};
use groupware_lookup::{
    BulkRenewal, Context, Decision, LookupError, NewRecord, Query, Registrant, limits,
};
use http::HeaderMap;
use http::request::Parts;

pub(crate) use access::Access;
pub use access::LookupAccess;
pub(crate) use rate::Rate;
pub(crate) use sweep::Sweeper;

use self::reply::Failure;
use crate::AppState;
use crate::change::change as change_store;
use crate::error::ApiError;

type Reply = Result<Response, Failure>;

const RECORDS: &str = "/lookup/";
/// Where the XML protocol's clients expect a home lookup service.
const XML: &str = "/perfSONAR_PS/services/hLS";

pub(crate) fn routes(state: &AppState) -> Router<AppState> {
    Router::new()
        .route("/lookup/records", get(query).post(register).put(renew_bulk))
        .route("/lookup/records/bulk", post(register_bulk))
        .route("/lookup/{kind}/{id}", get(read).post(renew).delete(delete))
        .route("/lookup/{kind}/{id}/{key}", get(read_key))
        .route(XML, post(message))
        .layer(middleware::from_fn_with_state(state.clone(), guard))
}

/// Nothing is here where the service is off; and nobody gets more than the rate allows.
async fn guard(State(state): State<AppState>, request: Request, next: Next) -> Response {
    if state.settings.lookup.is_off() {
        let message = "There is no lookup service here.";
        return reply::text(http::StatusCode::NOT_FOUND, message);
    }
    match state
        .lookup_rate
        .admit(request.headers(), 1, state.clock.now())
    {
        Ok(()) => next.run(request).await,
        Err(seconds) => Failure::TooOften(seconds).into_response(),
    }
}

/// The largest body of a request to the lookup service; `None` if it isn't one. Whoever may not
/// change anything needs to send no large body.
///
/// # Errors
/// 401 for nobody where that is asked for, and for wrong credentials.
pub(crate) async fn body_limit(state: &AppState, parts: &Parts) -> Result<Option<usize>, ApiError> {
    let path = parts.uri.path();
    if state.settings.lookup.is_off() || !(path.starts_with(RECORDS) || path == XML) {
        return Ok(None);
    }
    access::registrant(state, &parts.headers).await?;
    Ok(Some(limits::BODY_BYTES))
}

async fn register(State(state): State<AppState>, headers: HeaderMap, body: Bytes) -> Reply {
    let who = access::changer(&state, &headers, access::JSON).await?;
    let new = NewRecord::parse(&body)?;
    let made = change(&state, &who, |context| {
        groupware_lookup::register(context, new.clone())
    });
    Ok(reply::json(made.await?))
}

async fn register_bulk(State(state): State<AppState>, headers: HeaderMap, body: Bytes) -> Reply {
    let who = access::changer(&state, &headers, access::JSON).await?;
    let all = NewRecord::parse_bulk(&body)?;
    admit_more(&state, &headers, all.len())?;
    let made = change(&state, &who, |context| {
        // What could not be read is told again in each round: it is read again.
        let all = NewRecord::parse_bulk(&body)?;
        groupware_lookup::register_bulk(context, all)
    });
    Ok(reply::json(made.await?))
}

async fn renew_bulk(State(state): State<AppState>, headers: HeaderMap, body: Bytes) -> Reply {
    let who = access::changer(&state, &headers, access::JSON).await?;
    let renewal = BulkRenewal::parse(&body)?;
    let renewed = change(&state, &who, |context| {
        groupware_lookup::renew_bulk(context, &renewal)
    });
    Ok(reply::json(renewed.await?))
}

async fn query(
    State(state): State<AppState>,
    pairs: Result<QueryPairs<Vec<(String, String)>>, axum::extract::rejection::QueryRejection>,
) -> Reply {
    let QueryPairs(pairs) = pairs.map_err(|_| Failure::unreadable("The query can't be read."))?;
    let pairs = pairs
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    let query = Query::parse(pairs)?;
    let layout = state.settings.lookup_layout;
    let found = state
        .store()
        .read(|snapshot| groupware_lookup::query(snapshot, layout, &query, state.now_s()))?;
    Ok(reply::results(found))
}

type RecordPath = Result<Path<(String, String)>, axum::extract::rejection::PathRejection>;

fn record_path(path: RecordPath) -> Result<(String, String), Failure> {
    path.map(|Path(path)| path)
        .map_err(|_| Failure::unreadable("The path can't be read."))
}

async fn read(State(state): State<AppState>, path: RecordPath) -> Reply {
    let (kind, id) = record_path(path)?;
    let found = look(&state, |context| groupware_lookup::get(context, &kind, &id));
    Ok(reply::json(found?))
}

async fn read_key(
    State(state): State<AppState>,
    path: Result<Path<(String, String, String)>, axum::extract::rejection::PathRejection>,
) -> Reply {
    let Path((kind, id, key)) = path.map_err(|_| Failure::unreadable("The path can't be read."))?;
    let found = look(&state, |context| {
        groupware_lookup::get_key(context, (&kind, &id, &key))
    });
    Ok(reply::json(found?))
}

async fn renew(
    State(state): State<AppState>,
    path: RecordPath,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let (kind, id) = record_path(path)?;
    let who = access::registrant(&state, &headers).await?;
    let asked = groupware_lookup::parse_renewal(&body)?;
    let renewed = change(&state, &who, |context| {
        groupware_lookup::renew(context, (&kind, &id), asked)
    });
    Ok(reply::json(renewed.await?))
}

async fn delete(State(state): State<AppState>, path: RecordPath, headers: HeaderMap) -> Reply {
    let (kind, id) = record_path(path)?;
    let who = access::registrant(&state, &headers).await?;
    let gone = change(&state, &who, |context| {
        groupware_lookup::delete(context, &kind, &id)
    });
    Ok(reply::json(gone.await?))
}

/// A message of the XML protocol. What it asks wrongly is told in an answer of its own; what is no
/// message gets a SOAP fault.
async fn message(State(state): State<AppState>, headers: HeaderMap, body: Bytes) -> Response {
    if let Err(failure) = access::check_type(&headers, access::XML) {
        return failure.into_response();
    }
    let message = match Message::parse(&body) {
        Ok(message) => message,
        Err(error) => return reply::fault(xml::fault(&error)),
    };
    let who = match message.is_change() {
        true => match access::registrant(&state, &headers).await {
            Ok(who) => who,
            Err(error) => return error.into_response(),
        },
        false => Registrant::Anybody,
    };
    let decided = change(&state, &who, |context| xml::decide(context, &message));
    match decided.await {
        Ok(answer) => reply::xml(answer),
        Err(Failure::Lookup(error)) => reply::fault(xml::failure(&error)),
        Err(failure) => failure.into_response(),
    }
}

/// Takes what a request of several records costs beyond one.
fn admit_more(state: &AppState, headers: &HeaderMap, records: usize) -> Result<(), Failure> {
    let more = u32::try_from(records).unwrap_or(u32::MAX).saturating_sub(1);
    state
        .lookup_rate
        .admit(headers, more, state.clock.now())
        .map_err(Failure::TooOften)
}

/// Reads from one snapshot.
fn look<T>(
    state: &AppState,
    look: impl Fn(&Context<'_>) -> Result<T, LookupError>,
) -> Result<T, LookupError> {
    state.store().read(|snapshot| {
        look(&Context {
            snapshot,
            layout: state.settings.lookup_layout,
            now: state.now_s(),
            random: 0,
            who: &Registrant::Anybody,
        })
    })
}

/// Decides on a fresh snapshot and commits, until nobody else was faster.
async fn change<T>(
    state: &AppState,
    who: &Registrant,
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, LookupError>,
) -> Result<T, Failure> {
    let (now, random) = (state.now_s(), state.random_bits());
    let changed = change_store(state, |snapshot| {
        let decision = decide(&Context {
            snapshot,
            layout: state.settings.lookup_layout,
            now,
            random,
            who,
        })?;
        Ok((decision.batch, decision.reply))
    });
    Ok(changed.await?)
}
