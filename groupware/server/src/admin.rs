//! The admin interface: registers users, gives them ways to sign in, removes them or their data.
//!
//! Every change runs as a task of its own, so that a caller who hangs up does not leave the
//! store and the directory in memory apart.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post, put};
use axum::{Json, Router};
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::accounts::{AccountError, MAX_PASSWORD_BYTES, MIN_PASSWORD_BYTES, NewUser, UserName};
use crate::credentials::{self, Authorization};
use crate::error::ApiError;
use crate::{AppState, padding, random, turn};

/// Most users in one call.
const USERS_AT_ONCE: usize = 20_000;
/// Longest label of an application password.
const LABEL_BYTES: usize = 100;
/// The label of application passwords made in bulk: another bulk call replaces them.
const BULK_LABEL: &str = "bulk";

pub(crate) fn routes() -> Router<AppState> {
    let routes = Router::new()
        .route("/users", post(register))
        .route("/users/{name}", put(set_password).delete(remove))
        .route("/users/{name}/reset", post(reset))
        .route("/users/{name}/app-passwords", post(add_app_password))
        .route(
            "/users/{name}/app-passwords/{id}",
            delete(remove_app_password),
        )
        .route("/reset", post(reset_all));
    Router::new().nest("/admin", routes)
}

/// Proof that the request bears the admin token.
pub(crate) struct Admin;

impl Admin {
    pub(crate) fn check(state: &AppState, headers: &HeaderMap) -> Result<Self, ApiError> {
        let header = headers.get(AUTHORIZATION).map(|header| header.as_bytes());
        if let Some(Authorization::Bearer(token)) = header.and_then(credentials::authorization) {
            let right = random::hash(&token).ct_eq(&state.settings.admin_token);
            if right.into() {
                return Ok(Self);
            }
        }
        let error = ApiError::unauthenticated("This needs the admin token.");
        Err(error.challenge(Some("Bearer")))
    }
}

impl FromRequestParts<AppState> for Admin {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        Self::check(state, &parts.headers)
    }
}

impl From<AccountError> for ApiError {
    fn from(error: AccountError) -> Self {
        let status = match error {
            AccountError::Unknown(_) | AccountError::UnknownAppPassword(_) => StatusCode::NOT_FOUND,
            AccountError::TooManyAppPasswords => StatusCode::CONFLICT,
            AccountError::TooManyUsers => StatusCode::INSUFFICIENT_STORAGE,
            AccountError::Damaged(_) | AccountError::Mailbox(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            AccountError::Commit(error) => return error.into(),
            AccountError::Store(error) => return error.into(),
        };
        let message = error.to_string();
        let mut letters = message.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        let sentence: String = first.into_iter().chain(letters).chain(['.']).collect();
        Self::new(status, sentence)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Registration {
    users: Vec<RegisteredName>,
    #[serde(default)]
    app_passwords: bool,
    mailbox_pad_bytes: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisteredName {
    name: String,
}

#[derive(Serialize)]
struct RegistrationReply {
    users: Vec<UserReply>,
}

#[derive(Serialize)]
struct UserReply {
    name: Arc<str>,
    created: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_password: Option<String>,
}

async fn register(
    State(state): State<AppState>,
    _: Admin,
    body: Bytes,
) -> Result<Response, ApiError> {
    let registration: Registration = json(&body)?;
    let pad_bytes = registration
        .mailbox_pad_bytes
        .unwrap_or(state.settings.mailbox_pad_bytes);
    if pad_bytes > padding::MAX_BYTES {
        return Err(ApiError::bad_request(
            "mailbox_pad_bytes is at most 1073741824.",
        ));
    }
    let users = new_users(&registration, pad_bytes)?;
    to_the_end(async move {
        let registered = state.accounts.register(users, state.now_s()).await?;
        let mut users = Vec::with_capacity(registered.len());
        for user in registered {
            let name = &user.account.name;
            padding::fill(state.store(), name.key(), user.account.pad_bytes).await?;
            users.push(UserReply {
                name: Arc::clone(name.spelling()),
                created: user.created,
                app_password: user.app_password,
            });
        }
        Ok(Json(RegistrationReply { users }).into_response())
    })
    .await
}

fn new_users(registration: &Registration, pad_bytes: u64) -> Result<Vec<NewUser>, ApiError> {
    if registration.users.len() > USERS_AT_ONCE {
        let message = format!("Register at most {USERS_AT_ONCE} users in one call.");
        return Err(ApiError::bad_request(message));
    }
    let app_password = registration.app_passwords.then_some(BULK_LABEL);
    let mut names = HashSet::with_capacity(registration.users.len());
    let mut users = Vec::with_capacity(registration.users.len());
    for RegisteredName { name } in &registration.users {
        let name = user_name(name)?;
        if !names.insert(Arc::clone(name.key())) {
            let message = format!("The user {} is named twice.", name.spelling());
            return Err(ApiError::bad_request(message));
        }
        users.push(NewUser {
            name,
            app_password,
            pad_bytes,
        });
    }
    Ok(users)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPassword {
    password: String,
}

/// Sets the password of a user, who is registered if need be, and ends the user's sessions.
async fn set_password(
    State(state): State<AppState>,
    _: Admin,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let name = user_name(&name)?;
    let NewPassword { password } = json(&body)?;
    if !(MIN_PASSWORD_BYTES..=MAX_PASSWORD_BYTES).contains(&password.len()) {
        let message = format!("A password has {MIN_PASSWORD_BYTES} to {MAX_PASSWORD_BYTES} bytes.");
        return Err(ApiError::bad_request(message));
    }
    let busy = "Too many passwords are set at once: try again later.";
    let hash = state.passwords.hash(password).await;
    let hash = hash.map_err(|_| ApiError::later(StatusCode::SERVICE_UNAVAILABLE, busy, 1))?;
    to_the_end(async move {
        let registered = state
            .accounts
            .set_password(name, hash, state.settings.mailbox_pad_bytes, state.now_s())
            .await?;
        let account = &registered.account;
        state.sessions.end_all(account);
        padding::fill(state.store(), account.name.key(), account.pad_bytes).await?;
        let status = if registered.created {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let (name, created) = (Arc::clone(account.name.spelling()), registered.created);
        Ok((
            status,
            Json(UserReply {
                name,
                created,
                app_password: None,
            }),
        )
            .into_response())
    })
    .await
}

async fn remove(
    State(state): State<AppState>,
    _: Admin,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    to_the_end(async move {
        let account = state.accounts.delete(&name).await?;
        state.sessions.end_all(&account);
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

#[derive(Serialize)]
struct ResetReply {
    users: usize,
}

async fn reset(
    State(state): State<AppState>,
    _: Admin,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    to_the_end(async move {
        state.accounts.reset(&name).await?;
        Ok(Json(ResetReply { users: 1 }).into_response())
    })
    .await
}

async fn reset_all(State(state): State<AppState>, _: Admin) -> Result<Response, ApiError> {
    to_the_end(async move {
        let users = state.accounts.reset_all().await?;
        Ok(Json(ResetReply { users }).into_response())
    })
    .await
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct NewAppPassword {
    #[serde(default)]
    label: String,
}

#[derive(Serialize)]
struct AppPasswordReply {
    id: String,
    app_password: String,
}

async fn add_app_password(
    State(state): State<AppState>,
    _: Admin,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, ApiError> {
    let NewAppPassword { label } = if body.is_empty() {
        NewAppPassword::default()
    } else {
        json(&body)?
    };
    if label.len() > LABEL_BYTES {
        return Err(ApiError::bad_request(format!(
            "A label has at most {LABEL_BYTES} bytes."
        )));
    }
    to_the_end(async move {
        let made = state
            .accounts
            .add_app_password(&name, &label, state.now_s())
            .await?;
        let reply = AppPasswordReply {
            id: made.0,
            app_password: made.1,
        };
        Ok((StatusCode::CREATED, Json(reply)).into_response())
    })
    .await
}

/// Removes an application password. Sessions that began with it can't be told from others, and
/// so end too.
async fn remove_app_password(
    State(state): State<AppState>,
    _: Admin,
    Path((name, id)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    to_the_end(async move {
        let account = state.accounts.remove_app_password(&name, &id).await?;
        state.sessions.end_all(&account);
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

pub(crate) fn user_name(text: &str) -> Result<UserName, ApiError> {
    UserName::parse(text).ok_or_else(|| {
        ApiError::bad_request(
            "A user name has 1 to 64 letters, digits, '.', '_', or '-', does not begin with a \
             dot, and does not end with .nsf.",
        )
    })
}

pub(crate) fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    if body.is_empty() {
        return Err(ApiError::bad_request("Empty request body."));
    }
    serde_json::from_slice(body)
        .map_err(|error| ApiError::bad_request(format!("The body can't be read: {error}.")))
}

/// Runs a change to its end, whether or not the caller waits. Nobody else's request waits for it:
/// only the token's bearer can start one, and they queue at the store.
pub(crate) async fn to_the_end(
    change: impl Future<Output = Result<Response, ApiError>> + Send + 'static,
) -> Result<Response, ApiError> {
    match turn::step_aside(tokio::spawn(change)).await {
        Ok(reply) => reply,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => {
            let stopping = "The server is stopping.";
            Err(ApiError::later(
                StatusCode::SERVICE_UNAVAILABLE,
                stopping,
                5,
            ))
        }
    }
}
