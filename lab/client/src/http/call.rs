//! One request in progress, and its outcome. It knows neither connections nor the reading of responses.

use std::io;

use lab_filters::reading::json;
use lab_filters::{JsonPath, mask_forms, written};
use lab_workload::{Credentials, HeldChallenge, MASK, UserScope};

use super::events::Listening;
use super::message::Message;
use super::request::{Prepared, path_of};
use crate::exchange::{ErrorClass, FailedRequest, Phases, Sizes};
use crate::parts::WholeAnswer;
use crate::reading::HeaderFinds;
use crate::time::Nanos;
use crate::tls;
use lab_filters::coding::Codings;

/// How many bytes of an unexpected response are kept for the report.
pub(super) const EXAMPLE_BYTES: usize = 200;
/// The same for an encoded response.
pub(super) const ENCODED_EXAMPLE_BYTES: usize = 16 << 10;

/// The maximum number of challenges that a request answers: a server may declare a nonce stale more than once.
const MOST_CHALLENGES: u8 = 3;

/// One request in progress.
pub(super) struct Call<'a, T> {
    pub(super) prepared: &'a Prepared,
    pub(super) message: &'a Message,
    pub(super) scope: &'a mut UserScope,
    pub(super) deadline: &'a T,
    /// When the request times out.
    pub(super) ends: Nanos,
    pub(super) finds: HeaderFinds,
    /// The content codings of the response's body.
    pub(super) codings: Codings,
    pub(super) sent: Nanos,
    /// When sending of the message began, on an open connection.
    pub(super) began: Nanos,
    /// When the last byte of the response was received, once it was.
    pub(super) ended: Nanos,
    /// When the first byte of the response was received, if the last one wasn't yet.
    pub(super) first: Option<Nanos>,
    pub(super) phases: Phases,
    /// The request goes to another server than the base server.
    pub(super) other: bool,
    /// The events that the request receives, once its response has an expected status.
    pub(super) listening: Option<Box<Listening<'a>>>,
    /// How many redirects the request may still follow.
    pub(super) left: u32,
    /// The `Location` of the response.
    pub(super) location: Option<Box<str>>,
    /// The delay in seconds before the request is sent again, if the response has one.
    pub(super) retry_after: Option<u32>,
    /// The status and location of a redirect to follow.
    pub(super) redirect: Option<(u16, Box<str>)>,
    /// The challenges in the response to a request with credentials.
    pub(super) challenges: String,
    /// Whether the server refused its credentials.
    pub(super) is_refused: bool,
    /// The challenge to answer when the request is sent again.
    pub(super) challenge: Option<Box<HeldChallenge>>,
    /// Why none of the challenges can be answered.
    pub(super) unanswerable: Option<String>,
    /// Whether the connection may be used again.
    pub(super) reusable: bool,
    /// The response, if a program receives it.
    pub(super) whole: Option<Box<WholeAnswer>>,
}

impl<'a, T> Call<'a, T> {
    /// Returns a request with this message, to the base server or another one, with a maximum number of redirects.
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
            challenges: String::new(),
            is_refused: false,
            challenge: None,
            unanswerable: None,
            reusable: false,
            whole: prepared.is_whole().then(Box::default),
        }
    }

    /// Returns the bearer token of the request.
    pub(super) fn token(&self) -> Option<String> {
        match self.prepared.credentials.as_deref() {
            Some(Credentials::Bearer(slot)) => self.scope.text(*slot),
            _ => None,
        }
    }

    /// Masks the request's token in a text.
    pub(super) fn masked(&self, text: String) -> String {
        without(self.token(), text)
    }

    /// Describes a response with an unexpected status, without secrets; of a token request only the error's name.
    pub(super) fn unexpected(&self, status: u16, body: &[u8], token: Option<String>) -> String {
        if !self.prepared.hides_answer {
            let text = without(token, status_text(status, body));
            return match &self.unanswerable {
                Some(why) => format!("{text}; the challenge can't be answered: {why}"),
                None => text,
            };
        }
        match error_name(body) {
            Some(name) => format!("status {status}: {name}"),
            None => format!("status {status}; the answer is hidden, since it may hold secrets"),
        }
    }

    /// Records that the server refused the credentials. True if the request is sent again to answer a challenge.
    pub(super) fn refuse(&mut self) -> bool {
        let Some(credentials) = self.prepared.credentials.as_ref() else {
            return false;
        };
        let message = self.message;
        if self.other || message.is_foreign || message.challenges == MOST_CHALLENGES {
            return false;
        }
        self.is_refused = true;
        // Preemptive credentials may belong to the challenge of another protection space.
        let is_answer = message.is_answer && message.challenges > 0;
        match credentials.refused(&self.challenges, is_answer, self.scope) {
            Ok(challenge) => self.challenge = challenge,
            Err(why) => self.unanswerable = Some(why),
        }
        self.challenge.is_some()
    }
}

/// Masks a token in a text, in every form in which requests write it.
fn without(token: Option<String>, text: String) -> String {
    match token.filter(|token| !token.is_empty()) {
        Some(token) => mask_forms(&text, written(&token), MASK),
        None => text,
    }
}

/// The outcome of reading a response.
pub(super) enum Answer {
    /// The response is whole, and judged.
    Whole {
        at: Nanos,
        sizes: Sizes,
        result: Result<(), FailedRequest>,
    },
    /// The connection ended before its first byte.
    Nothing(io::Error),
    /// Anything else.
    Failed(ErrorClass, String),
}

/// Returns how many bytes of a response's body are kept.
#[inline]
pub(super) fn keeps(prepared: &Prepared, status: u16, codings: Codings) -> usize {
    let (expected, encoded) = (prepared.expects(status), codings.decodes());
    match () {
        () if prepared.is_whole() && prepared.keeps_body => usize::MAX,
        () if !expected && encoded => ENCODED_EXAMPLE_BYTES,
        () if !expected => EXAMPLE_BYTES,
        // Events are processed as they arrive.
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

/// Returns the message for a connection that ended before the first byte of the response.
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

/// Returns the name of the error in a response to a token request (RFC 6749, section 5.2).
fn error_name(body: &[u8]) -> Option<String> {
    const LONGEST: usize = 60;
    let path = JsonPath::parse("$.error").ok()?;
    let name = json::values(body, &[path]).ok()?.pop()?.pop()?;
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    (name.len() <= LONGEST && name.chars().all(is_name)).then_some(name)
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
