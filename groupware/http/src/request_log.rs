//! The request log: every request if configured, and always those that failed by a fault of the
//! server or were slow. It contains users and paths, never queries, headers, or bodies, which may
//! hold secrets.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::extract::MatchedPath;
use axum::response::Response;
use groupware_runtime::Caller;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};

use crate::fault::Fault;

/// Identifies a request, so that an answer can be found in the log.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest path that is written in full, in bytes.
const PATH_BYTES: usize = 512;

/// The log of requests. Its settings can be changed while the server runs.
#[derive(Debug)]
pub struct RequestLog {
    says_all: AtomicBool,
    slow_us: AtomicU64,
    /// Distinguishes the requests of this server process from those of others.
    start: u32,
    next: AtomicU64,
}

/// The parts of a request that the log needs after the answer.
#[derive(Debug)]
pub(crate) struct LoggedRequest {
    pub(crate) caller: Caller,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) route: Option<MatchedPath>,
}

impl RequestLog {
    /// Logs every request, if `says_all`; in any case each one that takes `slow` or longer. `start`
    /// is a random number.
    pub fn new(says_all: bool, slow: Duration, start: u32) -> Self {
        let log = Self {
            says_all: AtomicBool::default(),
            slow_us: AtomicU64::default(),
            start,
            next: AtomicU64::new(1),
        };
        log.set(says_all, slow);
        log
    }

    /// Changes the settings.
    pub fn set(&self, says_all: bool, slow: Duration) {
        let slow_us = u64::try_from(slow.as_micros()).unwrap_or(u64::MAX);
        self.slow_us.store(slow_us, Relaxed);
        self.says_all.store(says_all, Relaxed);
    }

    /// Writes the line of an answered request, if any, and adds the request's id to the response.
    pub(crate) fn answered(&self, asked: &LoggedRequest, response: &mut Response, took: Duration) {
        let fault = response.extensions_mut().remove::<Fault>();
        let is_slow = took.as_micros() >= u128::from(self.slow_us.load(Relaxed));
        if fault.is_none() && !is_slow && !self.says_all.load(Relaxed) {
            return;
        }
        let id = format!("{:08x}-{:x}", self.start, self.next.fetch_add(1, Relaxed));
        write(
            asked,
            &id,
            (response.status(), took, is_slow),
            fault.as_ref(),
        );
        if let Ok(id) = HeaderValue::try_from(id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
    }
}

fn write(
    asked: &LoggedRequest,
    id: &str,
    (status, took, is_slow): (StatusCode, Duration, bool),
    fault: Option<&Fault>,
) {
    let client = tracing::field::display(asked.caller.peer());
    let user = asked.caller.user();
    let (method, path) = (asked.method.as_str(), shortened(asked.uri.path()));
    let route = asked.route.as_ref().map(MatchedPath::as_str);
    let (status, ms) = (status.as_u16(), took.as_micros() as f64 / 1000.0);
    match fault {
        Some(fault) => {
            let (cause, at) = (fault.causes(), tracing::field::display(fault.at()));
            tracing::error!(
                id,
                client,
                user,
                method,
                path,
                route,
                status,
                ms,
                cause,
                at,
                "request failed"
            );
        }
        None if is_slow => {
            tracing::warn!(
                id,
                client,
                user,
                method,
                path,
                route,
                status,
                ms,
                "slow request"
            );
        }
        None => tracing::info!(id, client, user, method, path, route, status, ms, "request"),
    }
}

fn shortened(path: &str) -> &str {
    match path.char_indices().find(|(at, _)| *at >= PATH_BYTES) {
        Some((end, _)) => &path[..end],
        None => path,
    }
}
