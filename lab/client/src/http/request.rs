//! A request of the workload, prepared once and rendered for a user into a reused buffer.
//!
//! It knows neither connections nor time.

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use lab_workload::{Attached, Body, Capture, CaptureSource, Events, Expectation, Piece, Request};
use lab_workload::{
    Credentials, OwnCookie, RenderError, Signer, Template, TraceContext, UserScope,
};

use super::cookie::{Jar, RenderedCookie, write_to_other};
use super::message::Message;
use super::redirect::is_redirect;
use crate::exchange::Unmade;
use crate::parts::Parts;
use crate::reading::{Wanted, looks_into};
use crate::time::{Nanos, nanos};
use lab_filters::coding::ACCEPTED;
use lab_units::BaseUrl;

/// Headers that only the client sets: it frames messages and keeps cookies.
pub(super) const OURS: [&str; 3] = ["content-length", "transfer-encoding", "cookie"];

/// Methods that may be sent a second time if the first may not have arrived, by IANA's registry of HTTP methods.
/// Unknown methods are not among them.
const IDEMPOTENT: [&str; 17] = [
    "GET",
    "HEAD",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "REPORT",
    "SEARCH",
    "QUERY",
    "COPY",
    "MOVE",
    "MKCOL",
    "MKCALENDAR",
    "ACL",
    "UNLOCK",
];
/// Returns true if a request of this method may be sent a second time (RFC 9110, section 9.2.2).
#[must_use]
pub fn is_idempotent(method: &str) -> bool {
    IDEMPOTENT.contains(&method)
}

/// Methods that usually carry no body, and so don't state that they have none (RFC 9110, section 8.6).
const BODILESS: [&str; 5] = ["GET", "HEAD", "DELETE", "OPTIONS", "TRACE"];

/// The header `User-Agent`, unless the request has its own.
const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// The maximum total size of a worker's spare buffers, and their maximum number.
const SPARE_BYTES: usize = 64 << 20;
const SPARE: usize = 16;

/// A prepared request.
#[derive(Debug)]
pub(crate) struct Prepared {
    method: Box<str>,
    /// Sending it twice has the same effect as sending it once (RFC 9110, 9.2.2).
    pub(crate) idempotent: bool,
    target: Template,
    /// ` HTTP/1.1`, and the headers that are the same in each rendering but for `Host`.
    fixed: Box<str>,
    varying: Vec<(Box<str>, Template)>,
    host: Host,
    cookies: Box<[OwnCookie]>,
    /// No other request uses its connection.
    pub(crate) closes: bool,
    basic: Option<(Template, Template)>,
    body: Body,
    /// The content of the workload's files, if the request carries any.
    files: Vec<Bytes>,
    /// The whole message without its final empty line, if nothing varies but cookies.
    constant: Option<Box<str>>,
    pub(crate) expect: Vec<RangeInclusive<u16>>,
    pub(crate) answer: Vec<Expectation>,
    pub(crate) captures: Vec<Capture>,
    pub(crate) keeps_body: bool,
    pub(crate) reads_headers: bool,
    /// The request sets the accepted content codings, so that its response is decoded even if nothing reads it.
    pub(crate) decodes: bool,
    /// The maximum number of redirects to follow.
    pub(crate) follow: u32,
    /// The time limit of a response; `None` applies the limit of the load.
    pub(crate) timeout: Option<Nanos>,
    /// The events that the request receives.
    pub(crate) events: Option<Events>,
    /// The request may begin a trace: no header of its own sets one.
    pub(crate) traces: bool,
    /// The signer of the request.
    pub(super) signer: Option<Box<Signer>>,
    /// Its credentials.
    pub(super) credentials: Option<Box<Credentials>>,
    /// The response holds secrets and is never shown.
    pub(super) hides_answer: bool,
    /// The request doesn't expect a redirect.
    pub(crate) reads_location: bool,
    /// The rules that a program gave with its request. It receives the whole response.
    given: Option<Box<ProgramRules>>,
}

/// The rules that a program gave with its request.
#[derive(Debug)]
struct ProgramRules {
    timeout: Option<Duration>,
    expect: Vec<RangeInclusive<u16>>,
}

/// The value of the `Host` header.
#[derive(Debug)]
enum Host {
    /// The server of the request.
    Server,
    /// This value, whatever the server.
    Said(Box<str>),
    /// A template; it is among the headers that vary.
    Varies,
}

/// Buffers for rendering, reused for request after request.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    value: String,
    /// For bodies, and for messages that are too large to keep by the hundred. A fresh buffer costs a page fault for
    /// each 4 KiB: 8 ms for a mail of 10 MB, and ten times that if a host provides the machine's memory.
    spare: Vec<String>,
}

impl Scratch {
    /// Keeps a buffer, up to the limits.
    pub(crate) fn keep(&mut self, mut buffer: String) {
        let kept: usize = self.spare.iter().map(String::capacity).sum();
        if kept + buffer.capacity() <= SPARE_BYTES && self.spare.len() < SPARE {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Returns the largest spare buffer, empty.
    fn take(&mut self) -> String {
        let largest = (0..self.spare.len()).max_by_key(|place| self.spare[*place].capacity());
        largest.map_or_else(String::new, |place| self.spare.swap_remove(place))
    }
}

/// Returns true if the capture needs the head.
fn from_headers(capture: &Capture) -> bool {
    matches!(
        capture.source,
        CaptureSource::Header(_) | CaptureSource::Cookie(_)
    )
}

impl Prepared {
    pub(crate) fn new(
        request: &Request,
        files: &[Attached],
        variables: &[String],
        base: &BaseUrl,
    ) -> Self {
        let mut fixed = String::from(" HTTP/1.1\r\n");
        let mut varying = Vec::new();
        let has = |(n, _): &(String, _), name: &str| n.eq_ignore_ascii_case(name);
        let given = |name: &str| request.headers.iter().any(|one| has(one, name));
        push_own_headers(&mut fixed, request, given);
        let decodes = request.compressed || given("accept-encoding");
        let mut host = Host::Server;
        for (name, value) in &request.headers {
            if OURS.iter().any(|ours| name.eq_ignore_ascii_case(ours)) {
                continue;
            }
            let is_host = name.eq_ignore_ascii_case("host");
            match value.as_literal() {
                Some(text) if sound_value(text) && is_host => host = Host::Said(text.trim().into()),
                Some(text) if sound_value(text) => push_header(&mut fixed, name, text.trim()),
                _ => {
                    if is_host {
                        host = Host::Varies;
                    }
                    varying.push((name.as_str().into(), value.clone()));
                }
            }
        }
        let in_headers = |e: &Expectation| matches!(e, Expectation::Header { .. });
        let mut prepared = Self {
            idempotent: is_idempotent(&request.method),
            method: request.method.as_str().into(),
            target: request.target.clone(),
            fixed: fixed.into(),
            varying,
            host,
            cookies: request.cookies.as_slice().into(),
            closes: request.headers.iter().any(|(name, value)| {
                let value = value.as_literal().unwrap_or_default().trim();
                name.eq_ignore_ascii_case("connection") && value.eq_ignore_ascii_case("close")
            }),
            basic: request.basic_auth.clone(),
            body: request.body.clone(),
            files: contents(&request.body, files),
            constant: None,
            expect: request.expect.clone(),
            keeps_body: looks_into(&request.captures, &request.answer),
            reads_headers: request.captures.iter().any(from_headers)
                || request.answer.iter().any(in_headers),
            decodes,
            follow: request.follow,
            timeout: request.timeout.map(nanos),
            events: request.events.clone(),
            traces: !given("traceparent"),
            signer: Signer::new(request, files, variables),
            credentials: request.credentials.clone(),
            hides_answer: request.hides_answer,
            reads_location: true,
            given: None,
            answer: request.answer.clone(),
            captures: request.captures.clone(),
        };
        prepared.reads_location = (301..=308).any(|s| is_redirect(s) && !prepared.expects(s));
        prepared.constant = prepared.constant(base);
        prepared
    }

    /// Returns the rules for the response to a request that a program made in place of `site`.
    pub(crate) fn of_parts(site: &Self, parts: &Parts) -> Self {
        let given = |name: &str| parts.header(name);
        let mut fixed = String::from(" HTTP/1.1\r\n");
        if given("user-agent").is_none() {
            push_header(&mut fixed, "User-Agent", USER_AGENT);
        }
        Self {
            method: parts.method.as_str().into(),
            idempotent: is_idempotent(&parts.method),
            target: site.target.clone(),
            fixed: fixed.into(),
            varying: Vec::new(),
            host: host_of(parts).map_or(Host::Server, |host| Host::Said(host.into())),
            cookies: Box::default(),
            closes: parts.closes(),
            basic: None,
            body: Body::Empty,
            files: Vec::new(),
            constant: None,
            expect: match parts.expect.is_empty() {
                true => site.expect.clone(),
                false => parts.expect.clone(),
            },
            answer: Vec::new(),
            captures: Vec::new(),
            keeps_body: parts.keeps_body,
            reads_headers: false,
            decodes: true,
            follow: parts.follow,
            timeout: parts.timeout.map(nanos).or(site.timeout),
            events: None,
            traces: false,
            signer: None,
            credentials: None,
            hides_answer: site.hides_answer,
            reads_location: true,
            given: Some(Box::new(ProgramRules {
                timeout: parts.timeout,
                expect: parts.expect.clone(),
            })),
        }
    }

    /// Returns true if these are the rules for the response to such a request.
    pub(crate) fn fits(&self, parts: &Parts) -> bool {
        let host = match &self.host {
            Host::Said(host) => Some(&**host),
            Host::Server | Host::Varies => None,
        };
        *self.method == *parts.method
            && self.keeps_body == parts.keeps_body
            && self.follow == parts.follow
            && self
                .given
                .as_ref()
                .is_some_and(|given| given.timeout == parts.timeout && given.expect == parts.expect)
            && host_of(parts) == host
            && parts.closes() == self.closes
            && parts.header("user-agent").is_some() != self.fixed.contains("User-Agent")
    }

    /// Returns the captures and expectations of the request besides a status.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            captures: &self.captures,
            answer: &self.answer,
        }
    }

    /// Returns true if a program receives the whole response.
    pub(crate) fn is_whole(&self) -> bool {
        self.given.is_some()
    }

    pub(crate) fn is_head(&self) -> bool {
        &*self.method == "HEAD"
    }

    /// Returns the host name of the server of `base`, for its cookies.
    pub(crate) fn host_at<'a>(&'a self, base: &'a BaseUrl) -> &'a str {
        let Host::Said(said) = &self.host else {
            return &base.host;
        };
        // Without its port.
        match said.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => said,
        }
    }

    /// Returns true if an encoded response is decoded: it was requested, or something reads it.
    pub(crate) fn decodes_body(&self) -> bool {
        self.decodes || self.keeps_body
    }

    /// Returns true if the workload expects the status.
    pub(crate) fn expects(&self, status: u16) -> bool {
        self.expect.iter().any(|range| range.contains(&status))
    }

    /// Returns the head without its empty line, if there is no body and nothing in the head varies.
    fn constant(&self, base: &BaseUrl) -> Option<Box<str>> {
        let target = self.target.as_literal()?;
        let varies = !self.varying.is_empty() || !self.cookies.is_empty();
        let plain = !varies && self.basic.is_none();
        if !plain || !matches!(self.body, Body::Empty) || !target.starts_with('/') {
            return None;
        }
        let mut out = String::new();
        self.push_line(target, base, &mut out);
        self.push_no_body(&mut out);
        Some(out.into())
    }

    /// Renders the whole message into `out`, which must be empty. Returns the server if it is another than `base`.
    pub(crate) fn render(
        &self,
        base: &BaseUrl,
        scope: &mut UserScope,
        jar: &Jar,
        scratch: &mut Scratch,
        message: &mut Message,
    ) -> Result<Option<Box<BaseUrl>>, Unmade> {
        let trace = message.trace;
        let out = &mut message.text;
        if let Some(constant) = &self.constant {
            out.push_str(constant);
            push_trace(trace, out);
            let target = self.target.as_literal().unwrap_or("/");
            jar.write(base.secure, target, &[], out);
            out.push_str("\r\n");
            return Ok(None);
        }
        scratch.value.clear();
        self.target.render(scope, &mut scratch.value)?;
        let (other, path) = resolve(&scratch.value, base)?;
        self.push_line(path, other.as_deref().unwrap_or(base), out);
        push_trace(trace, out);
        let cookies = self.own_cookies(scope)?;
        match &other {
            None => jar.write(base.secure, path, &cookies, out),
            Some(_) => write_to_other(&cookies, out),
        }
        self.push_varying(scope, scratch, out)?;
        self.push_body(scope, scratch, message)?;
        message.cookies = cookies;
        Ok(other)
    }

    /// Returns the workload's cookies of this request.
    fn own_cookies(&self, scope: &mut UserScope) -> Result<Box<[RenderedCookie]>, Unmade> {
        let mut all = Vec::with_capacity(self.cookies.len());
        for cookie in &self.cookies {
            let mut value = String::new();
            match cookie.value.render(scope, &mut value) {
                Ok(()) => {}
                // The variable has no value yet.
                Err(RenderError::EmptyList { .. } | RenderError::NotGiven { .. })
                    if cookie.is_default =>
                {
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            let is_list = cookie.name.is_empty();
            if !sound_value(&value) || (value.contains(';') && !is_list) {
                let name = match is_list {
                    true => "Cookie",
                    false => cookie.name.as_str(),
                };
                let text = format!(
                    "the value of the cookie `{name}` holds a semicolon or a control character"
                );
                return Err(Unmade::Failed(text.into()));
            }
            let mut add = |pair: String| {
                all.push(RenderedCookie {
                    pair: pair.into(),
                    is_default: cookie.is_default,
                });
            };
            match is_list {
                true => value
                    .split(';')
                    .map(str::trim)
                    .filter(|pair| !pair.is_empty())
                    .for_each(|pair| add(pair.to_owned())),
                false => add(format!("{}={}", cookie.name, value.trim())),
            }
        }
        let (own, defaults): (Vec<_>, Vec<_>) = all.into_iter().partition(|one| !one.is_default);
        let free = |one: &RenderedCookie| own.iter().all(|own| own.name() != one.name());
        let defaults: Vec<_> = defaults.into_iter().filter(free).collect();
        Ok(own.into_iter().chain(defaults).collect())
    }

    pub(super) fn push_line(&self, target: &str, server: &BaseUrl, out: &mut String) {
        out.push_str(&self.method);
        out.push(' ');
        push_target(target, out);
        out.push_str(&self.fixed);
        match &self.host {
            Host::Server => push_header(out, "Host", &server.authority()),
            Host::Said(name) => push_header(out, "Host", name),
            Host::Varies => {}
        }
    }

    fn push_varying(
        &self,
        scope: &mut UserScope,
        scratch: &mut Scratch,
        out: &mut String,
    ) -> Result<(), Unmade> {
        for (name, template) in &self.varying {
            scratch.value.clear();
            template.render(scope, &mut scratch.value)?;
            if !sound_value(&scratch.value) {
                let text = format!("the value of header `{name}` holds a control character");
                return Err(Unmade::Failed(text.into()));
            }
            push_header(out, name, scratch.value.trim());
        }
        if let Some((user, password)) = &self.basic {
            scratch.value.clear();
            user.render(scope, &mut scratch.value)?;
            scratch.value.push(':');
            password.render(scope, &mut scratch.value)?;
            out.push_str("Authorization: Basic ");
            STANDARD.encode_string(&scratch.value, out);
            out.push_str("\r\n");
        }
        Ok(())
    }

    fn push_body(
        &self,
        scope: &mut UserScope,
        scratch: &mut Scratch,
        message: &mut Message,
    ) -> Result<(), Unmade> {
        let out = &mut message.text;
        match &self.body {
            Body::Empty => {
                self.push_no_body(out);
                out.push_str("\r\n");
                return Ok(());
            }
            Body::Pieces(pieces) => return self.push_pieces(pieces, scope, scratch, message),
            _ => {}
        }
        let mut body = scratch.take();
        let rendered = self.render_body(scope, &mut body);
        if let Err(unmade) = rendered {
            scratch.keep(body);
            return Err(unmade);
        }
        // Writing to a string can't fail.
        let _infallible = write!(out, "Content-Length: {}\r\n\r\n", body.len());
        if body.len() > super::POOLED_BYTES {
            // The body moves within its buffer, which is returned when the message is sent.
            body.insert_str(0, out);
            *out = body;
        } else {
            out.push_str(&body);
            scratch.keep(body);
        }
        Ok(())
    }

    fn render_body(&self, scope: &mut UserScope, body: &mut String) -> Result<(), Unmade> {
        match &self.body {
            Body::Empty | Body::Pieces(_) => {}
            Body::Json(template) | Body::Text(template) => template.render(scope, body)?,
            Body::Form(fields) => {
                for (name, value) in fields {
                    if !body.is_empty() {
                        body.push('&');
                    }
                    body.push_str(name);
                    body.push('=');
                    value.render(scope, body)?;
                }
            }
        }
        Ok(())
    }

    /// Appends a body of texts and files.
    fn push_pieces(
        &self,
        pieces: &[Piece],
        scope: &mut UserScope,
        scratch: &mut Scratch,
        message: &mut Message,
    ) -> Result<(), Unmade> {
        let mut body = Message::new(scratch.take());
        for piece in pieces {
            match piece {
                Piece::Text(text) => text.render(scope, &mut body.text)?,
                Piece::File(place) => body.push_file(&self.files[*place]),
            }
        }
        // Writing to a string can't fail.
        let _infallible = write!(message.text, "Content-Length: {}\r\n\r\n", body.len());
        let head = std::mem::take(&mut message.text);
        *message = body.with_head(0, head).of_trace(message.trace);
        scratch.keep(body.text);
        Ok(())
    }

    /// States the length of a body.
    pub(super) fn push_length(&self, length: usize, out: &mut String) {
        if length == 0 {
            return self.push_no_body(out);
        }
        // Writing to a string can't fail.
        let _infallible = write!(out, "Content-Length: {length}\r\n");
    }

    /// States that a method which usually carries a body carries none (RFC 9110, section 8.6).
    fn push_no_body(&self, out: &mut String) {
        if !BODILESS.contains(&&*self.method) {
            push_header(out, "Content-Length", "0");
        }
    }
}

/// Returns the path of a rendered message, without its query.
pub(crate) fn path_of(message: &str) -> &str {
    let target = message.split(' ').nth(1).unwrap_or("/");
    target.split('?').next().unwrap_or(target)
}

/// Returns the content of the workload's files, for a body that carries some.
fn contents(body: &Body, files: &[Attached]) -> Vec<Bytes> {
    match body {
        Body::Pieces(_) => files.iter().map(|file| file.content().clone()).collect(),
        _ => Vec::new(),
    }
}

fn content_type(body: &Body) -> Option<&'static str> {
    match body {
        Body::Empty | Body::Pieces(_) => None,
        Body::Json(_) => Some("application/json"),
        Body::Form(_) => Some("application/x-www-form-urlencoded"),
        Body::Text(_) => Some("text/plain; charset=utf-8"),
    }
}

/// Adds the client's own headers unless the workload sets them itself.
fn push_own_headers(fixed: &mut String, request: &Request, given: impl Fn(&str) -> bool) {
    if !given("user-agent") {
        push_header(fixed, "User-Agent", USER_AGENT);
    }
    if let (Some(kind), false) = (content_type(&request.body), given("content-type")) {
        push_header(fixed, "Content-Type", kind);
    }
    if request.events.is_some() && !given("accept") {
        push_header(fixed, "Accept", "text/event-stream");
    }
    if request.compressed && !given("accept-encoding") {
        push_header(fixed, "Accept-Encoding", ACCEPTED);
    }
}

fn push_header(out: &mut String, name: &str, value: &str) {
    out.push_str(name);
    out.push_str(": ");
    out.push_str(value);
    out.push_str("\r\n");
}

/// Adds the header of the trace that the request begins.
fn push_trace(trace: Option<TraceContext>, out: &mut String) {
    if let Some(trace) = trace {
        push_header(out, "traceparent", &trace.to_string());
    }
}

/// Returns true if no character of the value ends its line: it could begin another header.
pub(super) fn sound_value(value: &str) -> bool {
    value
        .bytes()
        .all(|b| (b >= 0x20 && b != 0x7f) || b == b'\t')
}

/// Splits a rendered target into another server than `base`, if it names one, and the path.
pub(super) fn resolve<'a>(
    target: &'a str,
    base: &BaseUrl,
) -> Result<(Option<Box<BaseUrl>>, &'a str), Unmade> {
    if target.starts_with('/') {
        return Ok((None, target));
    }
    match BaseUrl::split_http(target) {
        Ok((server, path)) if server == *base => Ok((None, path)),
        Ok((server, path)) => Ok((Some(Box::new(server)), path)),
        Err(_) => {
            let shown: String = target.chars().take(100).collect();
            let text = format!("the target “{shown}” is neither a path from / nor an absolute URL");
            Err(Unmade::Failed(text.into()))
        }
    }
}

/// Appends a path with query. Percent-encodes characters that a request line can't hold.
fn push_target(target: &str, out: &mut String) {
    if !target.starts_with('/') {
        out.push('/');
    }
    let target = target.split('#').next().unwrap_or(target);
    if target.bytes().all(|b| b.is_ascii_graphic()) {
        out.push_str(target);
        return;
    }
    for byte in target.bytes() {
        if byte.is_ascii_graphic() {
            out.push(char::from(byte));
        } else {
            let _infallible = write!(out, "%{byte:02X}");
        }
    }
}

/// Returns the value of `Host` that a program gave.
fn host_of(parts: &Parts) -> Option<&str> {
    let host = parts.header("host").filter(|host| sound_value(host));
    host.map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_come_back_and_small_ones_dont_take_their_place() {
        let mut scratch = Scratch::default();
        for _ in 0..100 {
            let mut message = scratch.take();
            message.push_str(&"x".repeat(100_000));
            scratch.keep(message);
            let small = scratch.take();
            scratch.keep(small);
        }
        assert_eq!(scratch.spare.len(), 1);
        assert!(scratch.spare[0].capacity() >= 100_000 && scratch.spare[0].is_empty());
        // The buffers stay within the limit.
        for _ in 0..3 {
            scratch.keep(String::with_capacity(SPARE_BYTES / 2));
        }
        let kept: usize = scratch.spare.iter().map(String::capacity).sum();
        assert!(kept <= SPARE_BYTES, "{kept}");
    }
}
