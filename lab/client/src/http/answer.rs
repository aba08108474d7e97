//! Responses: read as they arrive, decoded, judged, and captured. It opens no connection and sends nothing.

use std::cell::Cell;
use std::io;
use std::task::{Context, Poll};

use super::call::{Answer, Call, ENCODED_EXAMPLE_BYTES, broken, keeps, status_text};
use super::client::HttpClient;
use super::cookie::{Jar, date};
use super::head::Fault;
use super::redirect::is_redirect;
use super::request::path_of;
use super::response::{Complete, ResponseReader, StoredBody, Terms};
use crate::clock;
use crate::connection::Connection;
use crate::exchange::{ErrorClass, FailedRequest, Phase, Sizes};
use crate::reading::{Whole, read_answer};
use crate::time::Time;
use lab_filters::coding::Codings;

/// The maximum size of a decode buffer that is kept for reuse.
const KEPT_DECODED_BYTES: usize = 1 << 20;

impl<T: Time> HttpClient<T> {
    /// Reads on. `reader` holds the bytes received so far, if the response isn't whole.
    pub(super) fn poll_answer(
        &self,
        cx: &mut Context<'_>,
        connection: &mut Connection,
        jar: &Jar,
        call: &mut Call<'_, T::Timer>,
        reader: &mut Option<Box<ResponseReader>>,
    ) -> Poll<Answer> {
        let space = &mut *self.read.borrow_mut();
        loop {
            let count = match connection.poll_read(cx, space) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(0)) => return Poll::Ready(self.ended(call, reader, None)),
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(self.ended(call, reader, Some(error)));
                }
            };
            let input = &space[..count];
            if let Some(tap) = &self.tap {
                tap.received(self.time.now(), input);
            }
            let mut fresh = None;
            let current = match reader.as_deref_mut() {
                Some(reader) => reader,
                None => fresh.insert(ResponseReader::new(self.terms(call))),
            };
            let fed = self.feed(current, input, jar, call);
            if call.listening.is_some()
                && let Ok(done) = &fed
                && let Some(answer) = self.listen(done.as_ref(), current, input, call)
            {
                return Poll::Ready(answer);
            }
            match fed {
                Ok(Some(complete)) => {
                    let body = match &complete.body {
                        StoredBody::Input(range) => &input[range.clone()],
                        StoredBody::Kept => current.kept(),
                    };
                    return Poll::Ready(self.judge(&complete, body, call));
                }
                Ok(None) => {
                    if call.first.is_none() {
                        call.first = Some(self.time.now());
                    }
                    if let Some(fresh) = fresh {
                        *reader = Some(Box::new(fresh));
                    }
                }
                Err(fault) => {
                    return Poll::Ready(Answer::Failed(ErrorClass::Check, fault.to_string()));
                }
            }
        }
    }

    /// Takes the events of the received bytes. Returns a response when no more are wanted.
    fn listen(
        &self,
        done: Option<&Complete>,
        reader: &mut ResponseReader,
        input: &[u8],
        call: &mut Call<'_, T::Timer>,
    ) -> Option<Answer> {
        let (status, bytes) = reader.so_far()?;
        let listening = call.listening.as_deref_mut()?;
        if !call.prepared.expects(status) {
            return None;
        }
        let taken;
        let came = match done.map(|complete| &complete.body) {
            Some(StoredBody::Input(range)) => &input[range.clone()],
            _ => {
                taken = reader.take_kept();
                &taken
            }
        };
        match listening.take(came, self.time.now()) {
            Err(why) => Some(Answer::Failed(ErrorClass::Check, why)),
            Ok(true) => {
                let complete = Complete {
                    status,
                    body_bytes: bytes,
                    // The rest of the stream would be taken for the next response.
                    reusable: done.is_some_and(|complete| complete.reusable),
                    body: StoredBody::Kept,
                };
                Some(self.judge(&complete, &[], call))
            }
            Ok(false) => None,
        }
    }

    fn feed(
        &self,
        reader: &mut ResponseReader,
        input: &[u8],
        jar: &Jar,
        call: &mut Call<'_, T::Timer>,
    ) -> Result<Option<Complete>, Fault> {
        let prepared = call.prepared;
        let codings = Cell::new(call.codings);
        let keep = |status| keeps(prepared, status, codings.get());
        let fed = reader.feed(input, keep, &mut |name, value| {
            self.take_header((name, value), &codings, jar, call);
        });
        call.codings = codings.get();
        fed
    }

    /// Takes a header of a response.
    #[inline]
    pub(super) fn take_header(
        &self,
        (name, value): (&str, &[u8]),
        codings: &Cell<Codings>,
        jar: &Jar,
        call: &mut Call<'_, T::Timer>,
    ) {
        let prepared = call.prepared;
        if name.len() == 8 && prepared.reads_location && name.eq_ignore_ascii_case("location") {
            call.location = Some(location_text(value).into());
        }
        if name.len() == 11 && name.eq_ignore_ascii_case("retry-after") {
            call.retry_after = retry_after(value);
        }
        if name.len() == 16 && name.eq_ignore_ascii_case("content-encoding") {
            let mut all = codings.get();
            all.add(value);
            codings.set(all);
        }
        if name.len() == 16
            && prepared.credentials.is_some()
            && name.eq_ignore_ascii_case("www-authenticate")
        {
            let all = &mut call.challenges;
            all.push_str(if all.is_empty() { "" } else { ", " });
            all.push_str(&String::from_utf8_lossy(value));
        }
        if name.len() == 12
            && let Some(listening) = &mut call.listening
            && name.eq_ignore_ascii_case("content-type")
        {
            listening.has_type(value);
        }
        call.keep_header(name, value);
        if prepared.reads_headers {
            call.finds.header(&prepared.wanted(), name, value);
        }
        if name.len() == 10 && name.eq_ignore_ascii_case("set-cookie") {
            let Ok(value) = std::str::from_utf8(value) else {
                return;
            };
            // Another server's cookies are read and not kept.
            let passing = Jar::default();
            let jar = if call.other { &passing } else { jar };
            let host = prepared.host_at(&self.base);
            if let Some(set) = jar.store(value, host, path_of(&call.message.text)) {
                call.finds.cookie(&prepared.captures, set.name, set.value);
                if set.has_evicted {
                    self.count(|counts| counts.evicted_cookies += 1);
                }
            }
        }
    }

    /// Decodes and judges a whole response, after its time was taken, and keeps its captures.
    pub(super) fn judge(
        &self,
        complete: &Complete,
        body: &[u8],
        call: &mut Call<'_, T::Timer>,
    ) -> Answer {
        let at = self.time.now();
        call.ended = at;
        let first = call.first.unwrap_or(at);
        call.phases
            .set(Phase::Wait, first.saturating_sub(call.began));
        call.phases.set(Phase::Receive, at.saturating_sub(first));
        call.reusable = complete.reusable && !call.prepared.closes;
        let mut sizes = Sizes::of(complete.body_bytes);
        let encoded = call.codings.decodes() && complete.body_bytes > 0;
        let result = if call.listening.is_some() && call.prepared.expects(complete.status) {
            self.judge_events(complete.status, encoded, call)
        } else if encoded {
            let decoded = &mut *self.decoded.borrow_mut();
            let result = self.judge_encoded(complete, body, call, decoded);
            if call.prepared.decodes_body() && result.is_ok() {
                sizes.plain = decoded.len() as u64;
            }
            if decoded.capacity() > KEPT_DECODED_BYTES {
                *decoded = Vec::new();
            }
            result
        } else {
            self.judge_plain(complete.status, (body, complete.body_bytes), call)
        };
        Answer::Whole { at, sizes, result }
    }

    /// Judges a stream of events that has ended, or of which no more is wanted.
    fn judge_events(
        &self,
        status: u16,
        encoded: bool,
        call: &mut Call<'_, T::Timer>,
    ) -> Result<(), FailedRequest> {
        let Some(listening) = call.listening.take() else {
            return Ok(());
        };
        let ended = match encoded {
            true => Err(format!(
                "the events came as {}, which is not decoded as they come: say `compressed: false`, and where the \
                 server does so unasked, `headers: {{ Accept-Encoding: identity }}`",
                call.codings.names()
            )),
            false => listening.finish(),
        };
        let result = match ended {
            Ok(()) => {
                let text = listening.text().as_bytes();
                self.judge_plain(status, (text, text.len() as u64), call)
            }
            Err(why) => Err(self.failure(ErrorClass::Check, || why)),
        };
        call.listening = Some(listening);
        result
    }

    fn judge_plain(
        &self,
        status: u16,
        (body, size): (&[u8], u64),
        call: &mut Call<'_, T::Timer>,
    ) -> Result<(), FailedRequest> {
        let prepared = call.prepared;
        if prepared.is_whole() && call.keep_whole(status, body) {
            return Ok(());
        }
        if !prepared.expects(status) {
            return self.unexpected(status, body, call);
        }
        if prepared.captures.is_empty() && prepared.answer.is_empty() {
            return Ok(());
        }
        let took = call.ended.saturating_sub(call.sent);
        let read = Whole {
            status,
            body,
            size,
            took,
        };
        let path = path_of(&call.message.text);
        let done = read_answer(&prepared.wanted(), read, &call.finds, path, call.scope);
        done.map_err(|cause| {
            self.failure(ErrorClass::Check, || {
                if prepared.hides_answer {
                    return cause;
                }
                let text = format!("{cause}; {}", status_text(status, body));
                let text = call.masked(text);
                match call.codings.is_unknown() {
                    true => {
                        format!("{text} (read as it came: its content-encoding is not known here)")
                    }
                    false => text,
                }
            })
        })
    }

    /// Handles an unexpected status: prepares the next request if it is a redirect to follow.
    fn unexpected(
        &self,
        status: u16,
        body: &[u8],
        call: &mut Call<'_, T::Timer>,
    ) -> Result<(), FailedRequest> {
        let location = call.location.take().filter(|_| is_redirect(status));
        let Some(location) = location else {
            // `refuse` forgets the token, so it is read first.
            let token = call.token();
            if status == 401 && call.refuse() {
                return Ok(());
            }
            let text = || call.unexpected(status, body, token);
            return Err(FailedRequest {
                status: Some(status),
                ..self.failure(ErrorClass::Status, text)
            });
        };
        if call.left == 0 {
            return Err(
                self.failure(ErrorClass::Status, || match call.prepared.follow {
                    _ if call.prepared.hides_answer => {
                        format!("status {status}, a redirect: token requests follow none")
                    }
                    0 => format!(
                        "status {status}, a redirect to {}: say `follow: 5` to go there, or \
                     `expect: {status}` if that is the answer",
                        call.masked(location.to_string())
                    ),
                    n => format!(
                        "status {status} after {n} redirects, another one to {}",
                        call.masked(location.to_string())
                    ),
                }),
            );
        }
        call.redirect = Some((status, location));
        Ok(())
    }

    fn judge_encoded(
        &self,
        complete: &Complete,
        body: &[u8],
        call: &mut Call<'_, T::Timer>,
        decoded: &mut Vec<u8>,
    ) -> Result<(), FailedRequest> {
        let limit = self.limits.max_response_bytes;
        let (status, sent) = (complete.status, complete.body_bytes);
        if !call.prepared.expects(status) && !call.prepared.is_whole() {
            // The beginning is enough for the error, and only that is kept.
            let shown = ENCODED_EXAMPLE_BYTES as u64;
            let _truncated = call.codings.decode(body, shown, decoded);
            return self.judge_plain(status, (decoded, sent), call);
        }
        if !call.prepared.decodes_body() {
            return self.judge_plain(status, (body, sent), call);
        }
        let done = call.codings.decode(body, limit, decoded);
        done.map_err(|error| self.failure(ErrorClass::Check, || error.to_string()))?;
        let size = decoded.len() as u64;
        self.judge_plain(status, (decoded, size), call)
    }

    /// Handles a connection that ended or broke.
    fn ended(
        &self,
        call: &mut Call<'_, T::Timer>,
        reader: &mut Option<Box<ResponseReader>>,
        error: Option<io::Error>,
    ) -> Answer {
        let clean = error.is_none();
        let error = error.unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into());
        let Some(reader) = reader else {
            return Answer::Nothing(error);
        };
        match reader.end().filter(|_| clean) {
            Some(complete) => self.judge(&complete, reader.kept(), call),
            None if reader.begun() => Answer::Failed(ErrorClass::Reset, broken(&error)),
            None => Answer::Nothing(error),
        }
    }

    fn terms(&self, call: &Call<'_, T::Timer>) -> Terms {
        Terms {
            head_request: call.prepared.is_head(),
            max_header_bytes: self.limits.max_header_bytes,
            max_body_bytes: self.limits.max_response_bytes,
        }
    }
}

/// Returns the delay in seconds before a request is sent again: the value of `Retry-After` (RFC 9110, section 10.2.3).
fn retry_after(value: &[u8]) -> Option<u32> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok();
    }
    u32::try_from(date(text)?.saturating_sub(clock::unix_seconds())).ok()
}

/// Returns the address of a `Location`. Bytes that are no UTF-8 are percent-encoded, as browsers do.
fn location_text(value: &[u8]) -> String {
    match std::str::from_utf8(value) {
        Ok(text) => text.to_owned(),
        Err(_) => value
            .iter()
            .map(|byte| match byte.is_ascii() {
                true => char::from(*byte).to_string(),
                false => format!("%{byte:02X}"),
            })
            .collect(),
    }
}
