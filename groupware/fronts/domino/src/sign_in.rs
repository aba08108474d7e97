//! The routes for programs to sign in and out.

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use groupware_http::{ApiError, Gate, media_type};
use groupware_proto_http::login_form;
use groupware_runtime::Caller;
use http::header::SET_COOKIE;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};

use crate::front::Domino;

pub(crate) fn routes(domino: &Domino, gate: &Gate) -> Router {
    let log_in = Router::new().route("/login", post(log_in));
    let log_out = Router::new().route("/logout", post(log_out));
    log_in
        .layer(gate.small())
        .merge(log_out.layer(gate.usual()))
        .with_state(domino.clone())
}

#[derive(Deserialize)]
struct LogIn {
    username: String,
    password: String,
}

#[derive(Serialize)]
struct SignedIn<'a> {
    user: &'a str,
}

async fn log_in(
    State(domino): State<Domino>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ApiError> {
    let LogIn { username, password } = read_log_in(&headers, &body)?;
    let (account, cookie) = domino
        .cookies
        .sign_in(&domino.service, &caller, &headers, (&username, &password))
        .await?;
    let body = Json(SignedIn {
        user: account.name.spelling(),
    });
    Ok(([(SET_COOKIE, cookie)], body).into_response())
}

fn read_log_in(headers: &HeaderMap, body: &[u8]) -> Result<LogIn, ApiError> {
    let media_type = media_type(headers);
    if media_type.eq_ignore_ascii_case("application/json") {
        return serde_json::from_slice(body)
            .map_err(|_| ApiError::bad_request("The body must be {\"username\", \"password\"}."));
    }
    if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let (username, password) = login_form(body)
            .ok_or_else(|| ApiError::bad_request("The form needs username and password."))?;
        return Ok(LogIn { username, password });
    }
    Err(ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "Send a form or application/json.",
    ))
}

/// Ends the session, if any.
async fn log_out(State(domino): State<Domino>, headers: HeaderMap) -> Result<Response, ApiError> {
    let gone = domino.cookies.sign_out(&domino.service, &headers).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, gone)]).into_response())
}
