//! The routes of documents, in the shape of Domino's data service: parse the request, let
//! `groupware-documents` decide, answer. Knows no rule of documents.

mod access;
mod attachments;
mod params;
mod reply;
mod user;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::routing::get;
use groupware_documents::{
    self as documents, Context, DatabaseName, Decision, DocumentError, Fields, ListQuery, Seen,
    Unid,
};
use groupware_http::reply::{json, nothing, status};
use groupware_http::{ApiError, Gate, MethodOverride, Owner, Query, media_type};
use groupware_store::Snapshot;
use http::header::IF_MODIFIED_SINCE;
use http::{HeaderMap, Method, StatusCode};

use self::params::DocumentParams;
use self::user::{DatabaseUser, change};
use crate::failure::{DominoFailure, Reply};
use crate::front::Domino;

/// The routes under `/docs/{mailbox}`, which is the owner of the databases below. Any signed-in
/// user may send requests; the domain refuses access that the owner has not granted.
pub(crate) fn routes(domino: &Domino, gate: &Gate) -> Router {
    let at = |rest: &str| format!("/docs/{{mailbox}}/{{database}}/api/data/documents{rest}");
    Router::new()
        .route("/docs/{mailbox}/api/data", get(list_databases))
        .route(&at(""), get(list).post(create))
        .route(
            &at("/unid/{unid}"),
            get(read)
                .put(replace)
                .patch(patch)
                .delete(delete)
                .post(overridden),
        )
        .merge(access::routes())
        .layer(gate.usual())
        .merge(attachments::routes(gate))
        .with_state(domino.clone())
}

async fn list_databases(State(domino): State<Domino>, owner: Owner) -> Reply {
    let body = domino
        .service
        .store()
        .read(|snapshot| documents::databases(snapshot, owner.mailbox()))?;
    Ok(json(body))
}

async fn list(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    query: Query,
) -> Reply {
    let query = ListQuery::parse(query.pairs())?;
    let database = params.database()?;
    let (caller, is_long) = (user.caller().clone(), query.is_long());
    let look =
        move |snapshot: &dyn Snapshot| documents::list(snapshot, user.who(), &database, &query);
    let page = domino.service.read(&caller, is_long, look).await?;
    Ok(reply::page(page))
}

async fn create(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    query: Query,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let database = params.database()?;
    may_write(&domino, &user, &database)?;
    let mut fields = fields(&headers, &body)?;
    if let Some(form) = query.last("form") {
        fields.set_form(form)?;
    }
    let unid = change(&domino, &user, |context| {
        documents::create(context, &database, fields.clone())
    })
    .await?;
    let path = documents::document_path(user.mailbox(), &database, &unid);
    Ok(reply::created_document(&path, &unid))
}

async fn read(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    query: Query,
    headers: HeaderMap,
) -> Reply {
    let (database, unid) = (params.database()?, params.unid()?);
    let only = query.last("fields").map(|list| -> Vec<String> {
        list.split(',').map(|name| name.trim().to_owned()).collect()
    });
    let (body, version) = domino.service.store().read(|snapshot| {
        let place = (&database, &unid);
        documents::document(snapshot, user.who(), place, only.as_deref())
    })?;
    let (tag, seen) = (version.tag(), params::seen(&headers)?);
    // A date is ignored if tags are given (RFC 9110, 13.1.3).
    let since = params::date(&headers, IF_MODIFIED_SINCE).filter(|_| seen.if_none_match.is_none());
    let is_known = seen.has(&tag) || since.is_some_and(|since| version.modified <= since);
    let response = match is_known {
        true => status(StatusCode::NOT_MODIFIED),
        false => json(body),
    };
    Ok(reply::versioned(
        response,
        &tag,
        (version.modified, domino.service.now_s()),
    ))
}

async fn replace(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    write((domino, user, params), (headers, body), documents::replace).await
}

async fn patch(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    write((domino, user, params), (headers, body), documents::patch).await
}

/// A rule by which sent fields change a document.
type Rule =
    fn(&Context<'_>, (&DatabaseName, &Unid), &Fields, &Seen) -> Result<Decision<()>, DocumentError>;

async fn write(
    (domino, user, params): (Domino, DatabaseUser, DocumentParams),
    (headers, body): (HeaderMap, Bytes),
    rule: Rule,
) -> Reply {
    let (database, unid) = (params.database()?, params.unid()?);
    may_write(&domino, &user, &database)?;
    let (fields, seen) = (fields(&headers, &body)?, params::seen(&headers)?);
    change(&domino, &user, |context| {
        rule(context, (&database, &unid), &fields, &seen)
    })
    .await?;
    Ok(nothing())
}

async fn delete(
    State(domino): State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    headers: HeaderMap,
) -> Reply {
    let (database, unid) = (params.database()?, params.unid()?);
    let seen = params::seen(&headers)?;
    change(&domino, &user, |context| {
        documents::delete(context, (&database, &unid), &seen)
    })
    .await?;
    Ok(nothing())
}

/// For clients, or proxies, that only support GET and POST.
async fn overridden(
    domino: State<Domino>,
    user: DatabaseUser,
    params: DocumentParams,
    MethodOverride(method): MethodOverride,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    match method {
        Some(Method::PATCH) => patch(domino, user, params, headers, body).await,
        Some(Method::PUT) => replace(domino, user, params, headers, body).await,
        Some(Method::DELETE) => delete(domino, user, params, headers).await,
        _ => Err(ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "X-HTTP-Method-Override is PATCH, PUT, or DELETE here.",
        )
        .into()),
    }
}

/// Rejects a user without write access before the body is parsed.
fn may_write(
    domino: &Domino,
    user: &DatabaseUser,
    database: &DatabaseName,
) -> Result<(), DominoFailure> {
    if user.who().is_owner() {
        return Ok(());
    }
    let allowed = |snapshot: &dyn Snapshot| documents::may_add(snapshot, user.who(), database);
    Ok(domino.service.store().read(allowed)?)
}

fn fields(headers: &HeaderMap, body: &[u8]) -> Result<Fields, DominoFailure> {
    let essence = media_type(headers);
    let known = ["application/json", "application/merge-patch+json"];
    if !known.iter().any(|it| essence.eq_ignore_ascii_case(it)) {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "A document is application/json.",
        )
        .into());
    }
    Ok(Fields::parse(body)?)
}
