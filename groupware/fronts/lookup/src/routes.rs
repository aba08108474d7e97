//! The routes of both protocols.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use groupware_http::{ApiError, Gate, Guard, caller_of};
use groupware_lookup::xml::{self, Message, ScanBudget};
use groupware_lookup::{
    BulkRenewal, Context, Decision, LookupError, LookupQuery, NewRecord, Reason, Registrant, limits,
};
use groupware_runtime::Caller;
use groupware_service::{change as change_store, change_aside};
use groupware_store::Snapshot;
use http::HeaderMap;
use http::request::Parts;

use crate::front::Lookup;
use crate::media::{self, check_type};
use crate::registrant::{changer, registrant};
use crate::reply::{self, LookupFailure, Refused};

type Reply = Result<Response, LookupFailure>;

/// The path of a home lookup service that the XML protocol's clients expect.
const XML: &str = "/perfSONAR_PS/services/hLS";

/// All these routes, behind the gate. Clients that may not change registrations can send small bodies only.
pub fn routes(lookup: &Lookup, gate: &Gate) -> Router {
    let routes = Router::new()
        .route("/lookup/records", get(query).post(register).put(renew_bulk))
        .route("/lookup/records/bulk", post(register_bulk))
        .route("/lookup/{kind}/{id}", get(read).post(renew).delete(delete))
        .route("/lookup/{kind}/{id}/{key}", get(read_key))
        .route(XML, post(message))
        .layer(middleware::from_fn_with_state(lookup.clone(), guard));
    let routes = match lookup.access.is_off() {
        true => routes.layer(gate.usual()),
        false => {
            let rules = gate.rules().with_largest_body(limits::BODY_BYTES);
            routes.layer(gate.layer(rules, Registrants(lookup.clone())))
        }
    };
    routes.with_state(lookup.clone())
}

/// Clients that may change registrations may send larger bodies.
#[derive(Debug, Clone)]
struct Registrants(Lookup);

impl Guard for Registrants {
    async fn admit(&self, parts: &Parts) -> Result<(), ApiError> {
        let caller = caller_of(&parts.extensions);
        registrant(&self.0, &caller, &parts.headers).await.map(drop)
    }
}

/// Answers 404 if the service is disabled, and enforces the rate limit.
async fn guard(State(lookup): State<Lookup>, request: Request, next: Next) -> Response {
    if lookup.access.is_off() {
        let message = "There is no lookup service here.";
        return reply::text(http::StatusCode::NOT_FOUND, message);
    }
    let caller = caller_of(request.extensions());
    match lookup.admit(&caller, 1) {
        Ok(()) => next.run(request).await,
        Err(seconds) => LookupFailure::TooOften(seconds).into_response(),
    }
}

async fn register(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let who = changer(&lookup, &caller, &headers, media::JSON).await?;
    let is_long = is_long(&body);
    let parse = move || NewRecord::parse(&body);
    let new = lookup.service.work(&caller, is_long, parse).await?;
    let made = change(&lookup, (&caller, who), is_long, move |context| {
        groupware_lookup::register(context, new.clone())
    });
    Ok(reply::json(made.await?))
}

async fn register_bulk(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let who = changer(&lookup, &caller, &headers, media::JSON).await?;
    let (is_long, text) = (is_long(&body), body.clone());
    let parse = move || NewRecord::parse_bulk(&text).map(|all| all.len());
    let records = lookup.service.work(&caller, is_long, parse).await?;
    admit_more(&lookup, &caller, records)?;
    let made = change(&lookup, (&caller, who), is_long, move |context| {
        // Errors must be reported in each attempt, so the body is parsed again.
        let all = NewRecord::parse_bulk(&body)?;
        groupware_lookup::register_bulk(context, all)
    });
    Ok(reply::json(made.await?))
}

async fn renew_bulk(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let who = changer(&lookup, &caller, &headers, media::JSON).await?;
    let is_long = is_long(&body);
    let parse = move || BulkRenewal::parse(&body);
    let renewal = lookup.service.work(&caller, is_long, parse).await?;
    let renewed = change(&lookup, (&caller, who), is_long, move |context| {
        groupware_lookup::renew_bulk(context, &renewal)
    });
    Ok(reply::json(renewed.await?))
}

async fn query(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    pairs: Result<groupware_http::Query, ApiError>,
) -> Reply {
    let pairs = pairs.map_err(|_| LookupFailure::unreadable("The query can't be read."))?;
    let query = LookupQuery::parse(pairs.pairs())?;
    let (layout, now) = (lookup.layout, lookup.service.now_s());
    let quick = query.clone().looking_at(limits::VISITS_AT_ONCE);
    let store = lookup.service.store();
    let found = store.read(|snapshot| groupware_lookup::query(snapshot, layout, &quick, now));
    let found = match found {
        // Restarted on the blocking pool: repeating the work of the quick look is cheap.
        Err(error) if error.reason() == Some(Reason::TooWide) => {
            let look = move |snapshot: &dyn Snapshot| {
                groupware_lookup::query(snapshot, layout, &query, now)
            };
            read_much(&lookup, &caller, look).await
        }
        found => found,
    };
    Ok(reply::results(found?))
}

type RecordPath = Result<Path<(String, String)>, axum::extract::rejection::PathRejection>;

fn record_path(path: RecordPath) -> Result<(String, String), LookupFailure> {
    path.map(|Path(path)| path)
        .map_err(|_| LookupFailure::unreadable("The path can't be read."))
}

async fn read(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    path: RecordPath,
) -> Reply {
    let (kind, id) = record_path(path)?;
    let is_long = make_room(&lookup, &caller, &id).await?;
    let found = look(&lookup, &caller, is_long, move |context| {
        groupware_lookup::get(context, &kind, &id)
    });
    Ok(reply::json(found.await?))
}

async fn read_key(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    path: Result<Path<(String, String, String)>, axum::extract::rejection::PathRejection>,
) -> Reply {
    let Path((kind, id, key)) =
        path.map_err(|_| LookupFailure::unreadable("The path can't be read."))?;
    let is_long = make_room(&lookup, &caller, &id).await?;
    let found = look(&lookup, &caller, is_long, move |context| {
        groupware_lookup::get_key(context, (&kind, &id, &key))
    });
    Ok(reply::json(found.await?))
}

async fn renew(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    path: RecordPath,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let (kind, id) = record_path(path)?;
    let who = registrant(&lookup, &caller, &headers).await?;
    let asked = groupware_lookup::parse_renewal(&body)?;
    let is_long = make_room(&lookup, &caller, &id).await?;
    let renewed = change(&lookup, (&caller, who), is_long, move |context| {
        groupware_lookup::renew(context, (&kind, &id), asked)
    });
    Ok(reply::json(renewed.await?))
}

async fn delete(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    path: RecordPath,
    headers: HeaderMap,
) -> Reply {
    let (kind, id) = record_path(path)?;
    let who = registrant(&lookup, &caller, &headers).await?;
    let is_long = make_room(&lookup, &caller, &id).await?;
    let gone = change(&lookup, (&caller, who), is_long, move |context| {
        groupware_lookup::delete(context, &kind, &id)
    });
    Ok(reply::json(gone.await?))
}

/// Answers a message of the XML protocol. An invalid request gets an error in a message; a body
/// that is no message gets a SOAP fault.
async fn message(
    State(lookup): State<Lookup>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if let Err(failure) = check_type(&headers, media::XML) {
        return failure.into_response();
    }
    let is_long = is_long(&body);
    let parse = move || Message::parse(&body);
    let message = match lookup.service.work(&caller, is_long, parse).await {
        Ok(message) => message,
        Err(error) => return reply::fault(xml::fault(&error)),
    };
    let is_long = match make_room_for(&lookup, &caller, &message).await {
        Ok(is_much) => is_much || is_long,
        Err(error) => return failed(error.into()),
    };
    let decided = match message.is_change() {
        true => match registrant(&lookup, &caller, &headers).await {
            Ok(who) => {
                let decide =
                    move |context: &Context<'_>| xml::decide(context, &message, ScanBudget::WHOLE);
                change(&lookup, (&caller, who), is_long, decide).await
            }
            Err(error) => return error.into_response(),
        },
        false => ask(&lookup, &caller, message, is_long)
            .await
            .map_err(Into::into),
    };
    decided.map_or_else(failed, reply::xml)
}

/// Why a message is not answered, in its protocol where it has an error for it.
fn failed(failure: LookupFailure) -> Response {
    match failure {
        LookupFailure::Lookup(error) => reply::fault(xml::failure(&error)),
        LookupFailure::Unread(error, fault) => fault.on(reply::fault(xml::failure(&error))),
        failure => failure.into_response(),
    }
}

/// Takes the cost of a bulk request, beyond its first record, from the rate limit.
fn admit_more(lookup: &Lookup, caller: &Caller, records: usize) -> Result<(), LookupFailure> {
    let more = u32::try_from(records).unwrap_or(u32::MAX).saturating_sub(1);
    lookup.admit(caller, more).map_err(LookupFailure::TooOften)
}

/// Answers a message that changes nothing; long work runs on the blocking pool.
async fn ask(
    lookup: &Lookup,
    caller: &Caller,
    message: Message,
    is_long: bool,
) -> Result<Vec<u8>, LookupError> {
    let message = Arc::new(message);
    let (layout, now) = (lookup.layout, lookup.service.now_s());
    let random = lookup.service.random_bits();
    let look = |reach| {
        let message = Arc::clone(&message);
        move |snapshot: &dyn Snapshot| {
            let context = Context {
                snapshot,
                layout,
                now,
                random,
                who: &Registrant::Anybody,
            };
            xml::decide(&context, &message, reach).map(|decision| decision.reply)
        }
    };
    if is_long {
        return read_much(lookup, caller, look(ScanBudget::WHOLE)).await;
    }
    match lookup.service.store().read(look(ScanBudget::QUICK)) {
        // Restarted: repeating the work of the quick look is cheap.
        Err(error) if error.reason() == Some(Reason::TooWide) => {
            read_much(lookup, caller, look(ScanBudget::WHOLE)).await
        }
        answered => answered,
    }
}

/// Returns true if parsing a body, and deciding on it, takes so long that it must not delay other requests.
fn is_long(body: &Bytes) -> bool {
    body.len() > limits::LARGE_BYTES
}

/// Acquires memory for a record, and the answer made of it. Returns true if the work takes so long
/// that it must not delay other requests.
async fn make_room(lookup: &Lookup, caller: &Caller, id: &str) -> Result<bool, LookupError> {
    let store = lookup.service.store();
    let bytes = store.read(|snapshot| groupware_lookup::size(snapshot, lookup.layout, id))?;
    Ok(take_room(lookup, caller, bytes, limits::READ_BYTES).await)
}

/// Acquires memory for all records that a message reads. Sent blocks are compared with stored ones,
/// which takes as long as parsing these from a body.
async fn make_room_for(
    lookup: &Lookup,
    caller: &Caller,
    message: &Message,
) -> Result<bool, LookupError> {
    let store = lookup.service.store();
    let bytes = store.read(|snapshot| xml::size(snapshot, lookup.layout, message))?;
    let brings_some = message.data.iter().any(|data| !data.blocks.is_empty());
    let at_once = match brings_some {
        true => limits::LARGE_BYTES,
        false => limits::READ_BYTES,
    };
    Ok(take_room(lookup, caller, bytes, at_once).await)
}

async fn take_room(lookup: &Lookup, caller: &Caller, bytes: u64, at_once: usize) -> bool {
    let is_long = bytes > at_once as u64;
    if is_long {
        let with_answer = bytes.saturating_mul(2);
        lookup.service.make_room(caller, with_answer).await;
    }
    is_long
}

/// Reads up to the largest possible answer, on the blocking pool.
async fn read_much<T: Send + 'static>(
    lookup: &Lookup,
    caller: &Caller,
    read: impl FnOnce(&dyn Snapshot) -> Result<T, LookupError> + Send + 'static,
) -> Result<T, LookupError> {
    let most = limits::RESULT_BYTES as u64;
    lookup.service.make_room(caller, most).await;
    lookup.service.read(caller, true, read).await
}

/// Reads from one snapshot; long work runs on the blocking pool.
async fn look<T: Send + 'static>(
    lookup: &Lookup,
    caller: &Caller,
    is_long: bool,
    look: impl FnOnce(&Context<'_>) -> Result<T, LookupError> + Send + 'static,
) -> Result<T, LookupError> {
    let (layout, now) = (lookup.layout, lookup.service.now_s());
    let read = move |snapshot: &dyn Snapshot| {
        look(&Context {
            snapshot,
            layout,
            now,
            random: 0,
            who: &Registrant::Anybody,
        })
    };
    lookup.service.read(caller, is_long, read).await
}

/// Decides on a fresh snapshot and commits, and repeats on conflicts; long work runs on the
/// blocking pool.
async fn change<T: Send + 'static>(
    lookup: &Lookup,
    (caller, who): (&Caller, Registrant),
    is_long: bool,
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, LookupError> + Send + Sync + 'static,
) -> Result<T, LookupFailure> {
    let (layout, now) = (lookup.layout, lookup.service.now_s());
    let random = lookup.service.random_bits();
    let (service, from) = (lookup.service.clone(), caller.clone());
    let is_counted = AtomicBool::new(false);
    let decide = move |snapshot: &dyn Snapshot| {
        let decision = decide(&Context {
            snapshot,
            layout,
            now,
            random,
            who: &who,
        })?;
        if decision.bytes > 0 && service.store().is_short_of_room() {
            let message = "The server's disk is nearly full.";
            return Err(LookupError::refused(Reason::Full, message).into());
        }
        // Counted once: every repeated decision registers the same.
        if decision.bytes > 0 && !is_counted.load(Relaxed) {
            service
                .put_elsewhere(&from, decision.bytes)
                .map_err(Refused::TooMuch)?;
            is_counted.store(true, Relaxed);
        }
        Ok::<_, Refused>((decision.batch, decision.reply))
    };
    Ok(match is_long {
        true => change_aside(&lookup.service, caller, decide).await?,
        false => change_store(&lookup.service, caller, decide).await?,
    })
}
