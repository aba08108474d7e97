//! The contents of administrators' requests, and their execution.

use groupware_http::ApiError;
use groupware_people::UserName;
use groupware_runtime::Caller;
use http::StatusCode;
use serde::Deserialize;

use crate::failure::{AdminFailure, Reply};

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

/// Runs a change to its end, also if the caller disconnects. It delays no other request: only the
/// bearer of the token can start one, and changes queue at the store.
pub(crate) async fn to_the_end(
    caller: &Caller,
    change: impl Future<Output = Reply> + Send + 'static,
) -> Reply {
    let stopping = || {
        let message = "The server is stopping.";
        AdminFailure::from(ApiError::later(StatusCode::SERVICE_UNAVAILABLE, message, 5))
    };
    let done = caller.to_the_end(change).await;
    done.unwrap_or_else(|| Err(stopping()))
}
