//! Registers users, manages their credentials, removes them.

use std::collections::HashSet;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::response::IntoResponse;
use axum::routing::{delete, post, put};
use axum::{Json, Router};
use groupware_auth::{Ends, MAX_PASSWORD_BYTES, MIN_PASSWORD_BYTES};
use groupware_fixtures::padding;
use groupware_http::{Admin, ApiError};
use groupware_people::NewUser;
use groupware_runtime::Caller;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::failure::{AdminFailure, Reply};
use crate::front::AdminFront;
use crate::request::{json, to_the_end, user_name};

/// Most users in one call.
const USERS_AT_ONCE: usize = 20_000;
/// Longest label of an application password.
const LABEL_BYTES: usize = 100;
/// The label of application passwords created in bulk: another bulk call replaces them.
const BULK_LABEL: &str = "bulk";

pub(crate) fn routes() -> Router<AdminFront> {
    let at = |rest: &str| format!("/admin{rest}");
    Router::new()
        .route(&at("/users"), post(register))
        .route(&at("/users/{name}"), put(set_password).delete(remove))
        .route(&at("/users/{name}/reset"), post(reset))
        .route(&at("/users/{name}/app-passwords"), post(add_app_password))
        .route(
            &at("/users/{name}/app-passwords/{id}"),
            delete(remove_app_password),
        )
        .route(&at("/reset"), post(reset_all))
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
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    body: Bytes,
) -> Reply {
    let registration: Registration = json(&body)?;
    let pad_bytes = registration
        .mailbox_pad_bytes
        .unwrap_or(front.mailbox_pad_bytes);
    if pad_bytes > padding::MAX_BYTES {
        let message = "mailbox_pad_bytes is at most 1073741824.";
        return Err(ApiError::bad_request(message).into());
    }
    let users = new_users(&registration, pad_bytes)?;
    to_the_end(&caller, async move {
        let registered = front
            .service
            .auth
            .accounts
            .register(users, front.service.now_s())
            .await?;
        let mut users = Vec::with_capacity(registered.len());
        for user in registered {
            let name = &user.account.name;
            padding::fill(front.service.store(), name.key(), user.account.pad_bytes).await?;
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

fn new_users(registration: &Registration, pad_bytes: u64) -> Result<Vec<NewUser>, AdminFailure> {
    if registration.users.len() > USERS_AT_ONCE {
        let message = format!("Register at most {USERS_AT_ONCE} users in one call.");
        return Err(ApiError::bad_request(message).into());
    }
    let app_password = registration.app_passwords.then_some(BULK_LABEL);
    let mut names = HashSet::with_capacity(registration.users.len());
    let mut users = Vec::with_capacity(registration.users.len());
    for RegisteredName { name } in &registration.users {
        let name = user_name(name)?;
        if !names.insert(Arc::clone(name.key())) {
            let message = format!("The user {} is named twice.", name.spelling());
            return Err(ApiError::bad_request(message).into());
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

/// Sets the password of a user, whom it registers if necessary, and ends the user's sessions.
async fn set_password(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
    body: Bytes,
) -> Reply {
    let name = user_name(&name)?;
    let NewPassword { password } = json(&body)?;
    if !(MIN_PASSWORD_BYTES..=MAX_PASSWORD_BYTES).contains(&password.len()) {
        let message = format!("A password has {MIN_PASSWORD_BYTES} to {MAX_PASSWORD_BYTES} bytes.");
        return Err(ApiError::bad_request(message).into());
    }
    let busy = "Too many passwords are set at once: try again later.";
    let hash = front.service.auth.passwords.hash(&caller, password).await;
    let hash = hash.map_err(|_| ApiError::later(StatusCode::SERVICE_UNAVAILABLE, busy, 1))?;
    to_the_end(&caller, async move {
        let registered = front
            .service
            .auth
            .accounts
            .set_password(name, hash, front.mailbox_pad_bytes, front.service.now_s())
            .await?;
        let account = &registered.account;
        padding::fill(front.service.store(), account.name.key(), account.pad_bytes).await?;
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
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    to_the_end(&caller, async move {
        front.service.auth.accounts.delete(&name).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}

#[derive(Serialize)]
struct ResetReply {
    users: usize,
}

async fn reset(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
) -> Reply {
    to_the_end(&caller, async move {
        front.service.auth.accounts.reset(&name).await?;
        Ok(Json(ResetReply { users: 1 }).into_response())
    })
    .await
}

async fn reset_all(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
) -> Reply {
    to_the_end(&caller, async move {
        let users = front.service.auth.accounts.reset_all().await?;
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
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path(name): Path<String>,
    body: Bytes,
) -> Reply {
    let NewAppPassword { label } = if body.is_empty() {
        NewAppPassword::default()
    } else {
        json(&body)?
    };
    if label.len() > LABEL_BYTES {
        let message = format!("A label has at most {LABEL_BYTES} bytes.");
        return Err(ApiError::bad_request(message).into());
    }
    to_the_end(&caller, async move {
        let made = front
            .service
            .auth
            .accounts
            .add_app_password(&name, &label, front.service.now_s())
            .await?;
        let reply = AppPasswordReply {
            id: made.0,
            app_password: made.1,
        };
        Ok((StatusCode::CREATED, Json(reply)).into_response())
    })
    .await
}

/// Removes an application password. Sessions that began with it can't be distinguished from others,
/// so all end.
async fn remove_app_password(
    State(front): State<AdminFront>,
    Extension(caller): Extension<Caller>,
    _: Admin,
    Path((name, id)): Path<(String, String)>,
) -> Reply {
    to_the_end(&caller, async move {
        let accounts = &front.service.auth.accounts;
        accounts.remove_app_password(&name, &id, Ends::All).await?;
        Ok(StatusCode::NO_CONTENT.into_response())
    })
    .await
}
