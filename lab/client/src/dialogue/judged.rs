//! What a whole response is checked against. It knows no connection.

use std::ops::RangeInclusive;
use std::time::Duration;

use lab_workload::{Capture, Expectation, Request, UserScope};

use super::Reply;
use crate::exchange::{Details, ErrorClass, FailedRequest};
use crate::reading::{HeaderFinds, Wanted, Whole, read_answer};
use crate::time::Nanos;

/// How many bytes of a response an error shows.
const SHOWN: usize = 200;

/// The checks and captures of a request.
pub(super) struct Judged {
    expect: Vec<RangeInclusive<u16>>,
    answer: Vec<Expectation>,
    captures: Vec<Capture>,
    /// The time limit of a response; `None` applies the limit of the load.
    pub(super) timeout: Option<Duration>,
}

impl Judged {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            expect: request.expect.clone(),
            answer: request.answer.clone(),
            captures: request.captures.clone(),
            timeout: request.timeout,
        }
    }

    /// Returns the reason if the server refuses the request with an unexpected status.
    fn refused<'a>(&self, reply: &'a Reply) -> Option<&'a str> {
        let expected = |status| self.expect.iter().any(|range| range.contains(&status));
        match reply.status {
            Some(status) if expected(status) => None,
            Some(_) => Some(reply.refused.as_deref().unwrap_or_default()),
            None => reply.refused.as_deref(),
        }
    }

    /// Judges a whole response, and keeps its captures.
    pub(super) fn judge(
        &self,
        (reply, body, took): (&Reply, &[u8], Nanos),
        scope: &mut UserScope,
        details: &Details,
    ) -> Result<(), FailedRequest> {
        if let Some(why) = self.refused(reply) {
            let detail = || shown(why.as_bytes());
            return Err(details.failure(ErrorClass::Status, detail));
        }
        if self.captures.is_empty() && self.answer.is_empty() {
            return Ok(());
        }
        let wanted = Wanted {
            captures: &self.captures,
            answer: &self.answer,
        };
        let whole = Whole {
            status: reply.status.unwrap_or_default(),
            body,
            size: body.len() as u64,
            took,
        };
        let read = read_answer(&wanted, whole, &HeaderFinds::default(), "", scope);
        read.map_err(|cause| {
            details.failure(ErrorClass::Check, || {
                format!("{cause}; the answer is {}", shown(body))
            })
        })
    }

    /// Clears the variables that the request would have captured.
    pub(super) fn forget(&self, scope: &mut UserScope) {
        for capture in &self.captures {
            scope.clear(capture.slot);
        }
    }
}

/// Returns the beginning of a response on one line.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let text: String = text.chars().map(plain).collect();
    match text.trim() {
        "" => "empty".to_owned(),
        text => text.to_owned(),
    }
}
