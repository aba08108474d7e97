//! Turns a panic during a request into an answer.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use http::StatusCode;

use crate::error::ApiError;
use crate::fault::Fault;

/// Returns the result of the work, or 500 if it panics. Unwinding releases what the work held;
/// unfinished changes of the store are not stored, and nothing else outlives a request.
pub(crate) async fn caught<T>(
    work: impl Future<Output = Result<T, ApiError>>,
) -> Result<T, ApiError> {
    match AssertUnwindSafe(work).catch_unwind().await {
        Ok(done) => done,
        Err(panic) => {
            let fault = Fault::with_message(format!("panicked: {}", words(&*panic)));
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Err(ApiError::new(status, "Something failed on the server.").because(fault))
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no words")
}
