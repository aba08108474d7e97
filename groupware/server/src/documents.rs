//! The routes of documents, in the shape of Domino's data service: read the request, let
//! `groupware-documents` decide, answer. Knows no rule of documents.

mod access;
mod attachments;
mod check;
mod params;
mod reply;
mod sweep;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use groupware_documents::{
    self as documents, Context, DatabaseName, Decision, DocumentError, Fields, ListQuery, Unid, Who,
};
use groupware_store::Snapshot;
use http::header::{CONTENT_TYPE, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE};
use http::{HeaderMap, Method, StatusCode};

pub(crate) use self::check::check;
pub use self::check::{CheckError, Checked};
pub(crate) use self::params::{MethodOverride, Params, Query};
pub(crate) use self::sweep::Sweeper as ContentSweeper;
use crate::change::{self, ChangeError};
use crate::error::ApiError;
use crate::owner::Visitor;
use crate::{AppState, Owner};

pub(crate) type Reply = Result<Response, ApiError>;

/// The routes under `/docs/{mailbox}`, which is the owner of the databases below. Whoever is signed in
/// may ask; what the owner has not granted is refused where it is decided.
pub(crate) fn routes() -> Router<AppState> {
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
        .merge(attachments::routes())
}

/// Whether the body of a request is handed on as it comes in, not read first: it may be larger than
/// what is ever held.
pub(crate) fn is_streamed(method: &Method, path: &str) -> bool {
    let is_attachment = || {
        let of_document = path.split_once("/documents/unid/").map(|(_, rest)| rest);
        path.starts_with("/docs/") && of_document.is_some_and(|rest| rest.contains('/'))
    };
    let has_content = matches!(*method, Method::POST | Method::PUT | Method::PATCH);
    has_content && (path.starts_with("/tus/") || is_attachment())
}

/// Decides on a fresh snapshot and commits, until nobody else was faster.
pub(crate) async fn change<T>(
    state: &AppState,
    who: Who<'_>,
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, ApiError> {
    let bits = state.random_bits();
    change_with(state, who, bits, decide).await
}

/// As [`change`], with these random bits.
pub(crate) async fn change_with<T>(
    state: &AppState,
    who: Who<'_>,
    bits: u128,
    decide: impl Fn(&Context<'_>) -> Result<Decision<T>, DocumentError>,
) -> Result<T, ApiError> {
    let now = state.now_s();
    let changed = change::change(state, |snapshot| {
        let decision = decide(&Context {
            snapshot,
            who,
            now,
            bits,
            quota_bytes: state.settings.quota_bytes,
        })?;
        Ok::<_, DocumentError>((decision.batch, decision.outcome))
    });
    changed.await.map_err(|error| match error {
        ChangeError::Decided(error) => ApiError::from(error),
        ChangeError::Contended => ApiError::new(
            StatusCode::CONFLICT,
            "The document is being changed by others: try again.",
        ),
        ChangeError::Commit(error) => ApiError::from(error),
    })
}

async fn list_databases(State(state): State<AppState>, owner: Owner) -> Reply {
    let body = state
        .store()
        .read(|snapshot| documents::databases(snapshot, owner.mailbox()))?;
    Ok(reply::json(body))
}

async fn list(
    State(state): State<AppState>,
    visitor: Visitor,
    params: Params,
    query: Query,
) -> Reply {
    let query = ListQuery::parse(query.pairs())?;
    let database = params.database()?;
    let page = state
        .store()
        .read(|snapshot| documents::list(snapshot, visitor.who(), &database, &query))?;
    Ok(reply::page(page))
}

async fn create(
    State(state): State<AppState>,
    visitor: Visitor,
    params: Params,
    query: Query,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    let database = params.database()?;
    may_write(&state, &visitor, &database)?;
    let mut fields = fields(&headers, &body)?;
    if let Some(form) = query.last("form") {
        fields.set_form(form)?;
    }
    let unid = change(&state, visitor.who(), |context| {
        documents::create(context, &database, fields.clone())
    })
    .await?;
    let path = documents::document_path(visitor.mailbox(), &database, &unid);
    Ok(reply::created_document(&path, &unid))
}

async fn read(
    State(state): State<AppState>,
    visitor: Visitor,
    params: Params,
    query: Query,
    headers: HeaderMap,
) -> Reply {
    let (database, unid) = (params.database()?, params.unid()?);
    let only = query.last("fields").map(|list| -> Vec<String> {
        list.split(',').map(|name| name.trim().to_owned()).collect()
    });
    let (body, modified) = state.store().read(|snapshot| {
        let place = (&database, &unid);
        documents::document(snapshot, visitor.who(), place, only.as_deref())
    })?;
    let since = params::date(&headers, IF_MODIFIED_SINCE);
    if since.is_some_and(|since| modified <= since) {
        return Ok(reply::not_modified(modified));
    }
    Ok(reply::modified(reply::json(body), modified))
}

async fn replace(
    State(state): State<AppState>,
    visitor: Visitor,
    params: Params,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    write(
        (state, visitor, params),
        (headers, body),
        documents::replace,
    )
    .await
}

async fn patch(
    State(state): State<AppState>,
    visitor: Visitor,
    params: Params,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    write((state, visitor, params), (headers, body), documents::patch).await
}

/// A rule by which fields that are sent change a document.
type Rule = fn(
    &Context<'_>,
    (&DatabaseName, &Unid),
    &Fields,
    Option<i64>,
) -> Result<Decision<()>, DocumentError>;

async fn write(
    (state, visitor, params): (AppState, Visitor, Params),
    (headers, body): (HeaderMap, Bytes),
    rule: Rule,
) -> Reply {
    let (database, unid) = (params.database()?, params.unid()?);
    may_write(&state, &visitor, &database)?;
    let (fields, since) = (fields(&headers, &body)?, unmodified_since(&headers)?);
    change(&state, visitor.who(), |context| {
        rule(context, (&database, &unid), &fields, since)
    })
    .await?;
    Ok(reply::nothing())
}

async fn delete(
    State(state): State<AppState>,
    visitor: Visitor,
    params: Params,
    headers: HeaderMap,
) -> Reply {
    let (database, unid) = (params.database()?, params.unid()?);
    let since = unmodified_since(&headers)?;
    change(&state, visitor.who(), |context| {
        documents::delete(context, (&database, &unid), since)
    })
    .await?;
    Ok(reply::nothing())
}

/// For clients, or proxies, that know no other methods than GET and POST.
async fn overridden(
    state: State<AppState>,
    visitor: Visitor,
    params: Params,
    MethodOverride(method): MethodOverride,
    headers: HeaderMap,
    body: Bytes,
) -> Reply {
    match method {
        Some(Method::PATCH) => patch(state, visitor, params, headers, body).await,
        Some(Method::PUT) => replace(state, visitor, params, headers, body).await,
        Some(Method::DELETE) => delete(state, visitor, params, headers).await,
        _ => Err(ApiError::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "X-HTTP-Method-Override is PATCH, PUT, or DELETE here.",
        )),
    }
}

/// Who may not write to a database is told so before anything about the body.
fn may_write(state: &AppState, visitor: &Visitor, database: &DatabaseName) -> Result<(), ApiError> {
    if visitor.who().is_owner() {
        return Ok(());
    }
    let allowed = |snapshot: &dyn Snapshot| documents::may_add(snapshot, visitor.who(), database);
    Ok(state.store().read(allowed)?)
}

fn fields(headers: &HeaderMap, body: &[u8]) -> Result<Fields, ApiError> {
    let media_type = headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = media_type.unwrap_or_default();
    let essence = essence.split(';').next().unwrap_or_default().trim();
    let known = ["application/json", "application/merge-patch+json"];
    if !known.iter().any(|it| essence.eq_ignore_ascii_case(it)) {
        return Err(ApiError::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "A document is application/json.",
        ));
    }
    Ok(Fields::parse(body)?)
}

/// A date that can't be read is no permission to overwrite.
fn unmodified_since(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    match params::date(headers, IF_UNMODIFIED_SINCE) {
        None if headers.contains_key(IF_UNMODIFIED_SINCE) => {
            Err(ApiError::bad_request("If-Unmodified-Since can't be read."))
        }
        date => Ok(date),
    }
}

impl From<DocumentError> for ApiError {
    fn from(error: DocumentError) -> Self {
        let status = StatusCode::from_u16(error.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self::new(status, error.message())
    }
}

impl From<groupware_content::ContentError> for ApiError {
    fn from(error: groupware_content::ContentError) -> Self {
        use groupware_content::ContentError;
        match error {
            ContentError::Full => Self::new(StatusCode::INSUFFICIENT_STORAGE, "The disk is full."),
            ContentError::TooLong => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "These are more bytes than were announced.",
            ),
            _ => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The content can't be read or written.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_content_is_streamed() {
        let check = |method, path: &str, expected| {
            assert_eq!(is_streamed(&method, path), expected, "{method} {path}");
        };
        let unid = "/docs/ada/notes/api/data/documents/unid/0123";
        check(Method::PUT, unid, false);
        check(Method::POST, unid, false);
        check(Method::POST, &format!("{unid}/Body"), true);
        check(Method::PUT, &format!("{unid}/Body/a.txt"), true);
        check(Method::GET, &format!("{unid}/Body/a.txt"), false);
        check(Method::POST, "/docs/ada/notes/api/data/documents", false);
        check(Method::PATCH, "/tus/ada/0123", true);
        check(Method::POST, "/mail/ada/documents/unid/1/2", false);
        check(Method::POST, "/login", false);
    }
}
