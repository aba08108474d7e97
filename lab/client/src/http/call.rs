//! One request under way, and what came of it. It knows neither connections nor how answers are read.

use std::io;

use lab_workload::UserScope;

use super::coding::Codings;
use super::events::Listening;
use super::message::Message;
use super::request::{Prepared, path_of};
use crate::exchange::{ErrorClass, FailedRequest, Phases, Sizes};
use crate::reading::HeaderFinds;
use crate::time::Nanos;
use crate::tls;

/// How much of an unexpected answer is kept for the reader.
pub(super) const EXAMPLE_BYTES: usize = 200;
/// The same of one that came encoded.
pub(super) const ENCODED_EXAMPLE_BYTES: usize = 16 << 10;

/// One request under way.
pub(super) struct Call<'a, T> {
    pub(super) prepared: &'a Prepared,
    pub(super) message: &'a Message,
    pub(super) scope: &'a mut UserScope,
    pub(super) deadline: &'a T,
    /// When it times out.
    pub(super) ends: Nanos,
    pub(super) finds: HeaderFinds,
    /// Of its answer's body.
    pub(super) codings: Codings,
    pub(super) sent: Nanos,
    /// When the message began to go out, on a connection that was there.
    pub(super) began: Nanos,
    /// When the last byte of the answer was there, once it was.
    pub(super) ended: Nanos,
    /// When the first byte of the answer was there, if the last one wasn't yet.
    pub(super) first: Option<Nanos>,
    pub(super) phases: Phases,
    /// It goes to another server than the drive's.
    pub(super) other: bool,
    /// The events that it listens for, once its answer is one that is expected.
    pub(super) listening: Option<Box<Listening<'a>>>,
    /// How many redirects it may still follow.
    pub(super) left: u32,
    /// What its answer says about where to look instead.
    pub(super) location: Option<Box<str>>,
    /// How many seconds later it is to be sent again, where its answer says so.
    pub(super) retry_after: Option<u32>,
    /// The status and place of a redirect that is to be followed.
    pub(super) redirect: Option<(u16, Box<str>)>,
    /// Whether its connection may be used again.
    pub(super) reusable: bool,
}

impl<'a, T> Call<'a, T> {
    /// A request that goes out with this message, to another server than the drive's or not, and may
    /// follow so many redirects.
    #[inline]
    pub(super) fn new(
        prepared: &'a Prepared,
        (message, other, left): (&'a Message, bool, u32),
        scope: &'a mut UserScope,
        (deadline, sent, ends): (&'a T, Nanos, Nanos),
    ) -> Self {
        Self {
            prepared,
            message,
            scope,
            deadline,
            ends,
            finds: HeaderFinds::default(),
            codings: Codings::default(),
            sent,
            began: sent,
            ended: sent,
            first: None,
            phases: Phases::default(),
            other,
            listening: None,
            left,
            location: None,
            retry_after: None,
            redirect: None,
            reusable: false,
        }
    }
}

/// How reading an answer ended.
pub(super) enum Answer {
    /// Whole, and judged.
    Whole {
        at: Nanos,
        sizes: Sizes,
        result: Result<(), FailedRequest>,
    },
    /// The connection ended before one byte of it.
    Nothing(io::Error),
    /// Anything else.
    Failed(ErrorClass, String),
}

/// How many bytes of an answer's body are worth keeping.
#[inline]
pub(super) fn keeps(prepared: &Prepared, status: u16, codings: Codings) -> usize {
    let (expected, encoded) = (prepared.expects(status), codings.decodes());
    match () {
        () if !expected && encoded => ENCODED_EXAMPLE_BYTES,
        () if !expected => EXAMPLE_BYTES,
        // Events are taken as they come.
        () if prepared.events.is_some() && !encoded => usize::MAX,
        () if prepared.keeps_body || (prepared.decodes && encoded) => usize::MAX,
        () => 0,
    }
}

pub(super) fn timeout_text<T>(call: &Call<'_, T>) -> String {
    format!(
        "no whole answer from {} in time",
        path_of(&call.message.text)
    )
}

pub(super) fn broken(error: &io::Error) -> String {
    let error = tls::in_words(error);
    format!("the connection ended before the answer was whole: {error}")
}

/// The message for a connection that ended before the first byte of the response.
pub(super) fn unanswered(error: &io::Error, reused: bool, idempotent: bool) -> String {
    let error = tls::in_words(error);
    match reused && !idempotent {
        true => format!(
            "the server closed a kept connection before any answer to what was sent on it; only an idempotent method \
             is sent again: {error}"
        ),
        false => format!("the connection ended before any answer came: {error}"),
    }
}

pub(super) fn status_text(status: u16, body: &[u8]) -> String {
    let shown = &body[..body.len().min(EXAMPLE_BYTES)];
    let text = String::from_utf8_lossy(shown);
    let text: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("status {status}: {}", text.trim())
}
