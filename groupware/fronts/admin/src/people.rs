//! Manages users and sessions for an administrator: lists them, shows their use, disables and ends them.

use std::sync::Arc;

use axum::extract::{Extension, Path, State};
use axum::response::IntoResponse;
use axum::routing::{delete, get, post, put};
use axum::{Json, Router};
use groupware_auth::{AccountsError, Ends};
use groupware_http::{Admin, ApiError, Query};
use groupware_people::{Account, AccountError};
use groupware_runtime::Caller;
use http::StatusCode;
use serde::Serialize;

use crate::failure::{AdminFailure, Reply};
use crate::front::AdminFront;
use crate::request::to_the_end;

/// Most users in one answer.
const USERS: usize = 1000;

pub(crate) fn routes() -> Router<AdminFront> {
    let at = |rest: &str| format!("/admin/users{rest}");
    Router::new()
        .route(&at(""), get(list))
        .route(&at("/{name}"), get(show))
        .route(&at("/{name}/disable"), post(disable))
        .route(&at("/{name}/enable"), post(enable))
        .route(&at("/{name}/admin"), put(make_admin).delete(make_no_admin))
        .route(&at("/{name}/sessions"), delete(end_sessions))
        .route(&at("/{name}/sessions/{id}"), delete(end_session))
}

#[derive(Serialize)]
struct UserList {
    users: Vec<UserLine>,
    /// The start of the next page, for `after`.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Arc<str>>,
}

#[derive(Serialize)]
struct UserLine {
    name: Arc<str>,
    /// Seconds since 1970.
    created: i64,
    disabled: bool,
    /// Whether the user may manage users.
    admin: bool,
    /// Whether the user has chosen a password.
    password: bool,
    app_passwords: usize,
    sessions: usize,
}

#[derive(Serialize)]
struct UserView {
    name: Arc<str>,
    created: i64,
    disabled: bool,
    admin: bool,
    password: bool,
    app_passwords: Vec<AppPasswordLine>,
    sessions: Vec<SessionView>,
    usage: UsageView,
}

#[derive(Serialize)]
struct AppPasswordLine {
    id: String,
    label: String,
    created: i64,
    /// Absent if this server has recorded no use since its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<i64>,
}

#[derive(Serialize)]
struct SessionView {
    id: String,
    started: i64,
    used: i64,
}

#[derive(Serialize)]
struct UsageView {
    mail_bytes: u64,
    document_bytes: u64,
}

async fn list(State(front): State<AdminFront>, _: Admin, query: Query) -> Reply {
    let after = query.last("after").unwrap_or_default().to_ascii_lowercase();
    let count = match query.last("count") {
        None => USERS,
        Some(text) => text
            .parse()
            .ok()
            .filter(|count| (1..=USERS).contains(count))
            .ok_or_else(|| ApiError::bad_request(format!("count is 1 to {USERS}.")))?,
    };
    front.service.auth.keep_up()?;
    let users = front.service.auth.directory().after(&after, count);
    let next = users.last().filter(|_| users.len() == count);
    let next = next.map(|account| Arc::clone(account.name.key()));
    let users: Result<_, AdminFailure> =
        users.iter().map(|account| line(&front, account)).collect();
    Ok(Json(UserList {
        users: users?,
        next,
    })
    .into_response())
}

fn line(front: &AdminFront, account: &Account) -> Result<UserLine, AdminFailure> {
    let credentials = account.credentials();
    let service = &front.service;
    let sessions = service.auth.sessions.of(account, None, service.now_s())?;
    Ok(UserLine {
        name: Arc::clone(account.name.spelling()),
        created: account.created,
        disabled: credentials.disabled,
        admin: credentials.admin,
        password: credentials.password.is_some(),
        app_passwords: credentials.app_passwords.len(),
        sessions: sessions.len(),
    })
}

pub(crate) fn find(front: &AdminFront, name: &str) -> Result<Arc<Account>, AdminFailure> {
    let found = front.service.auth.find(name)?;
    found.ok_or_else(|| AccountsError::from(AccountError::Unknown(name.to_owned())).into())
}

async fn show(State(front): State<AdminFront>, _: Admin, Path(name): Path<String>) -> Reply {
    let account = find(&front, &name)?;
    let (service, credentials) = (&front.service, account.credentials());
    let sessions = service.auth.sessions.of(&account, None, service.now_s())?;
    let usage = service.usage(account.name.key())?;
    let view = UserView {
        name: Arc::clone(account.name.spelling()),
        created: account.created,
        disabled: credentials.disabled,
        admin: credentials.admin,
        password: credentials.password.is_some(),
        app_passwords: credentials
            .app_passwords
            .iter()
            .map(|password| AppPasswordLine {
                id: password.id.clone(),
                label: password.label.clone(),
                created: password.created,
                used: password.used.get(),
            })
            .collect(),
        sessions: sessions
            .into_iter()
            .map(|session| SessionView {
                started: session.started,
                used: session.used,
                id: session.id,
            })
            .collect(),
        usage: UsageView {
            mail_bytes: usage.mail_bytes,
            document_bytes: usage.document_bytes,
        },
    };
    Ok(Json(view).into_response())
}

async fn disable(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    set_disabled(front, caller, name, true).await
}

async fn enable(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    set_disabled(front, caller, name, false).await
}

/// Disables or enables a user. Disabling ends all sessions of the user.
async fn set_disabled(front: AdminFront, caller: Caller, name: String, disabled: bool) -> Reply {
    to_the_end(&caller, async move {
        let accounts = &front.service.auth.accounts;
        let account = accounts.set_disabled(&name, disabled).await?;
        Ok(Json(line(&front, &account)?).into_response())
    })
    .await
}

async fn make_admin(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    set_admin(front, caller, name, true).await
}

async fn make_no_admin(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    set_admin(front, caller, name, false).await
}

async fn set_admin(front: AdminFront, caller: Caller, name: String, admin: bool) -> Reply {
    to_the_end(&caller, async move {
        let accounts = &front.service.auth.accounts;
        let account = accounts.set_admin(&name, admin).await?;
        Ok(Json(line(&front, &account)?).into_response())
    })
    .await
}

async fn end_sessions(
    State(front): State<AdminFront>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    let accounts = &front.service.auth.accounts;
    accounts.end_sessions(&name, Ends::All).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn end_session(
    State(front): State<AdminFront>,
    _: Admin,
    Path((name, id)): Path<(String, String)>,
) -> Reply {
    let account = find(&front, &name)?;
    match front.service.auth.sessions.end_one(&account, &id).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(ApiError::with_status(404, "The user has no such session.").into()),
    }
}
