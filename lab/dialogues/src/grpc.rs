//! gRPC: a request calls a method, or sends more on an open call, and receives the response messages with the time of
//! each. [`line`] runs HTTP/2 by `h2`; `prost-reflect` codes messages by the workload's descriptors. Nothing is
//! compressed.

mod line;
mod messages;
mod status;
mod streams;

use std::collections::VecDeque;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, TE};
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{HeaderMap, Method as HttpMethod, Request, Version};
use lab_workload::{Call, Events, Method, ProtocolRequest, Speech, Template, UserScope, Workload};

use lab_client::dialogue::{Dialogue, Out, Reply, Streams, Turn};
use lab_client::{BaseUrl, RequestId, Side, Unmade};

use line::{Begun, Broken, Http, Stream, context};
pub use messages::GrpcMessages;
use messages::framed;
use status::{Status, UNAVAILABLE};

/// Maximum bytes of responses that are kept for expectations and captures.
const MAX_TEXT: usize = 4 << 20;
/// Maximum bytes read between calls: further data waits in the kernel, and pings behind it.
const MOST_UNASKED: usize = 64 << 10;
/// Length of a frame's length, kind, and flags in HTTP/2; the first frame is one of settings.
const FRAME_HEAD: usize = 9;
const SETTINGS: u8 = 4;

/// The gRPC dialogue.
pub struct Grpc {
    scheme: Scheme,
    authority: String,
    /// Metadata that starts every call, in the order of the file.
    metadata: Vec<(String, Template)>,
    /// By the request's index.
    asked: Vec<PreparedCall>,
}

/// A request's call, and the responses that it waits for.
struct PreparedCall {
    /// Rendered for the request's `set`.
    sets: Template,
    call: Call,
    method: Option<Method>,
    /// Identifies the open call that it continues: the method's number.
    whose: RequestId,
    /// The messages to send, if they are constant.
    fixed: Option<Bytes>,
    events: Option<Events>,
    /// Whether the response is captured or checked.
    is_read: bool,
}

/// State of a connection: HTTP/2 on it, the running call, and open calls for later requests. For a user on shared
/// connections, only those calls.
#[derive(Default)]
pub struct GrpcLine {
    http: Option<Http>,
    now: Option<Box<Stream>>,
    open: Vec<(RequestId, Box<Stream>)>,
    /// Bytes received since the last call.
    unasked: usize,
}

/// The opening of a connection, or a call and its responses.
#[derive(Default)]
pub struct GrpcExchange {
    /// The request; `None` for the opening of a connection.
    request: Option<RequestId>,
    head: Option<Request<()>>,
    said: VecDeque<Bytes>,
    is_said: bool,
    /// Whether it starts a call instead of continuing one.
    is_new: bool,
    until: Option<String>,
    count: Option<u32>,
    at_most: u32,
}

impl Grpc {
    /// Prepares the requests of a workload for a server at this address.
    #[must_use]
    pub fn new(workload: &Workload, server: &BaseUrl) -> Self {
        let (methods, metadata) = match &workload.speech {
            Speech::Grpc {
                descriptors,
                metadata,
            } => (Some(descriptors), metadata.clone()),
            _ => (None, Vec::new()),
        };
        let mut known: Vec<String> = Vec::new();
        let asked = workload.requests().map(|request| {
            let call = match request.said.as_deref() {
                Some(ProtocolRequest::Call(call)) => call.clone(),
                _ => Call::of(""),
            };
            let method = methods.and_then(|methods| methods.method(&call.method));
            let before = known.iter().position(|one| *one == call.method);
            let whose = before.unwrap_or(known.len()) as RequestId;
            known.extend(before.is_none().then(|| call.method.clone()));
            PreparedCall {
                whose,
                sets: request.target.clone(),
                fixed: method.as_ref().and_then(|method| fixed(&call, method)),
                method,
                call,
                events: request.events.clone(),
                is_read: !(request.captures.is_empty() && request.answer.is_empty()),
            }
        });
        Self {
            scheme: match server.secure {
                true => Scheme::HTTPS,
                false => Scheme::HTTP,
            },
            authority: server.authority(),
            metadata,
            asked: asked.collect(),
        }
    }

    /// Returns the call of a talk.
    fn asked(&self, talk: &GrpcExchange) -> Option<&PreparedCall> {
        self.asked.get(talk.request? as usize)
    }

    /// Returns the head of a call.
    fn head(
        &self,
        asked: &PreparedCall,
        path: &str,
        scope: &mut UserScope,
    ) -> Result<Request<()>, Unmade> {
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(TE, HeaderValue::from_static("trailers"));
        if let Some(deadline) = asked.call.deadline {
            headers.insert("grpc-timeout", timeout(deadline));
        }
        for (name, template) in self.metadata.iter().chain(&asked.call.metadata) {
            let mut value = String::new();
            template.render(scope, &mut value)?;
            let name = HeaderName::from_bytes(name.as_bytes());
            let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) else {
                let text = "metadata has a line end or another character that can't be sent";
                return Err(Unmade::Failed(text.into()));
            };
            headers.append(name, value);
        }
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(self.scheme.clone());
        uri.authority = self.authority.parse().ok();
        uri.path_and_query = path.parse::<PathAndQuery>().ok();
        let uri = Uri::from_parts(uri).map_err(|error| Unmade::Failed(error.to_string().into()))?;
        let mut head = Request::new(());
        *head.method_mut() = HttpMethod::POST;
        *head.uri_mut() = uri;
        *head.version_mut() = Version::HTTP_2;
        *head.headers_mut() = headers;
        Ok(head)
    }

    /// Opens a connection, and checks that HTTP/2 answers.
    fn opening(
        &self,
        line: &mut GrpcLine,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        let http = match &mut line.http {
            Some(http) => http,
            none => none.insert(Http::begin()?),
        };
        let greeted = heard.len() >= FRAME_HEAD;
        if greeted {
            if heard[3] != SETTINGS {
                let text = String::from_utf8_lossy(&heard[..FRAME_HEAD]);
                let text = text.escape_debug();
                return Err(format!(
                    "the server speaks no HTTP/2: it begins with “{text}”"
                ));
            }
            http.hear(std::mem::take(heard));
            http.turn()?;
        }
        http.say(&mut out.say);
        Ok(match greeted {
            true => Turn::Done(Reply::default()),
            false => Turn::Listen,
        })
    }

    /// Starts the call, or continues an open one. Returns false if the server allows no new call now.
    fn begin(
        &self,
        line: &mut GrpcLine,
        talk: &mut GrpcExchange,
        request: RequestId,
    ) -> Result<Begins, String> {
        let asked = &self.asked[request as usize];
        let open = line.take_open(asked);
        let http = line.http.as_mut().ok_or("the connection isn't open")?;
        let mut stream = match open {
            Some(open) => open,
            None => match http.call(&mut talk.head)? {
                Begun::Yes(stream) => stream,
                Begun::NotYet => return Ok(Begins::Later),
                Begun::No => return Ok(Begins::Never),
            },
        };
        stream.say(&mut talk.said, !asked.call.stays_open);
        line.now = Some(stream);
        Ok(Begins::Now)
    }

    /// Advances the call: returns the result once the last message was received, or the call ended.
    fn go_on(
        &self,
        line: &mut GrpcLine,
        (talk, asked): (&mut GrpcExchange, &PreparedCall),
        out: &mut Out,
    ) -> Result<Option<Reply>, String> {
        let http = line.http.as_mut().ok_or("the connection isn't open")?;
        let stream = line.now.as_mut().ok_or("there is no call")?;
        loop {
            http.turn()?;
            match asked.step(&mut context(), stream, talk, out) {
                Ok(Step::On) => {}
                Ok(Step::Waits) => break,
                Ok(Step::Over(reply)) => {
                    http.turn()?;
                    let ends = http.has_ended;
                    return Ok(Some(Reply { ends, ..reply }));
                }
                Err(Broken::Ended(end)) => {
                    return Ok(Some(Reply::status(end.status, end.leaves)));
                }
                Err(Broken::Connection(what) | Broken::Fault(what)) => return Err(what),
            }
        }
        http.turn()?;
        Ok(None)
    }

    /// Records the call and its messages for a trace; on an open call only the messages are sent.
    fn tell(&self, line: &GrpcLine, (talk, asked): (&GrpcExchange, &PreparedCall), out: &mut Out) {
        let mut lines = vec![asked.call.method.clone()];
        let is_open = line.has_open(asked);
        if is_open {
            lines[0].push_str(" (on the open call)");
        }
        let head = talk.head.as_ref().filter(|_| !is_open);
        for (name, value) in head.iter().flat_map(|head| head.headers()) {
            let value = match name.as_str() {
                // Identical for all calls.
                "content-type" | "te" => continue,
                "authorization" | "cookie" => lab_workload::MASK.into(),
                _ => String::from_utf8_lossy(value.as_bytes()),
            };
            lines.push(format!("{name}: {value}"));
        }
        let mut messages = GrpcMessages::default();
        talk.said.iter().for_each(|piece| messages.hear(piece));
        while let (Some(method), Ok(Some(message))) = (&asked.method, messages.take()) {
            lines.push(method.says.shown(message));
        }
        out.told.push((Side::User, lines.join("\n")));
    }

    /// Records the result, and keeps an open call for the next request.
    fn close(&self, line: &mut GrpcLine, asked: &PreparedCall, reply: &Reply, out: &mut Out) {
        let stream = line.now.take().filter(|stream| stream.status().is_none());
        let goes_well = reply.status == Some(status::OK);
        let told = match (&stream, goes_well) {
            (Some(_), true) if asked.call.stays_open => "(the call stays open)",
            (Some(_), true) => "(the rest of the call is cancelled)",
            _ => reply.refused.as_deref().unwrap_or_default(),
        };
        if out.looked_at {
            out.told.push((Side::Server, told.to_owned()));
        }
        if let Some(stream) = stream.filter(|_| goes_well && asked.call.stays_open) {
            line.open.push((asked.whose, stream));
        }
        let hears_many = asked
            .method
            .as_ref()
            .is_some_and(|method| method.hears_many);
        if hears_many && asked.is_read {
            let is_empty = out.body.is_empty();
            out.body
                .extend_from_slice(if is_empty { b"[]" } else { b"]" });
        }
    }
}

/// Progress of a call after a step.
enum Step {
    /// The request's part of the call is complete.
    Over(Reply),
    /// More may be possible at once.
    On,
    /// Waits for data.
    Waits,
}

impl PreparedCall {
    /// Sends what a call can send, and processes received data.
    fn step(
        &self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        talk: &mut GrpcExchange,
        out: &mut Out,
    ) -> Result<Step, Broken> {
        let fault = |what: &str| Broken::Fault(what.to_owned());
        let method = self.method.as_ref();
        let method = method.ok_or_else(|| fault("there is no such method"))?;
        stream.send(cx);
        while !talk.has_enough(out)
            && let Some(message) = stream.messages.take().map_err(Broken::Fault)?
        {
            heard(message, self, method, talk, out).map_err(Broken::Fault)?;
        }
        if talk.has_enough(out) && stream.has_said() {
            return Ok(Step::Over(Reply::status(
                Status::new(status::OK, ""),
                false,
            )));
        }
        if let Some(status) = stream.status() {
            if stream.messages.is_within() {
                return Err(fault("the call ended within a message"));
            }
            let reply = ended(method, talk, out, status.clone());
            return reply.map(Step::Over).map_err(Broken::Fault);
        }
        Ok(match stream.hear(cx)? {
            true => Step::On,
            false => Step::Waits,
        })
    }

    /// Runs all steps of a call that are possible now.
    fn poll(
        &self,
        cx: &mut Context<'_>,
        stream: &mut Stream,
        talk: &mut GrpcExchange,
        out: &mut Out,
    ) -> Poll<Result<Reply, Broken>> {
        loop {
            let step = self.step(cx, stream, talk, out);
            out.came = stream.came;
            match step {
                Ok(Step::On) => {}
                Ok(Step::Waits) => return Poll::Pending,
                Ok(Step::Over(reply)) => return Poll::Ready(Ok(reply)),
                Err(broken) => return Poll::Ready(Err(broken)),
            }
        }
    }
}

impl GrpcLine {
    /// Returns true if the request continues an open call.
    fn has_open(&self, asked: &PreparedCall) -> bool {
        self.open.iter().any(|(of, _)| *of == asked.whose)
    }

    fn take_open(&mut self, asked: &PreparedCall) -> Option<Box<Stream>> {
        let at = self.open.iter().position(|(of, _)| *of == asked.whose)?;
        Some(self.open.swap_remove(at).1)
    }
}

/// Whether a call can start.
#[derive(PartialEq)]
enum Begins {
    Now,
    Later,
    Never,
}

impl GrpcExchange {
    fn begin(&mut self, request: Option<RequestId>) {
        *self = Self {
            request,
            at_most: u32::MAX,
            ..Self::default()
        };
    }

    /// Sets what to wait for: the request's own condition, or one message of a call that stays open, or all messages.
    fn listen(&mut self, asked: &PreparedCall, scope: &mut UserScope) -> Result<(), Unmade> {
        let Some(events) = &asked.events else {
            let hears_many = asked
                .method
                .as_ref()
                .is_some_and(|method| method.hears_many);
            // A call with one response sends it at its end.
            self.count = asked.call.stays_open.then_some(u32::from(hears_many));
            return Ok(());
        };
        self.count = events.count;
        self.at_most = events.at_most;
        if let Some(until) = &events.until {
            let mut text = String::new();
            until.render(scope, &mut text)?;
            self.until = Some(text);
        }
        Ok(())
    }

    /// Returns true if the last required message was received; a message that matches `until` sets the count.
    fn has_enough(&self, out: &Out) -> bool {
        self.count.is_some_and(|count| out.messages >= count)
    }
}

/// Processes a received message.
fn heard(
    message: &[u8],
    asked: &PreparedCall,
    method: &Method,
    talk: &mut GrpcExchange,
    out: &mut Out,
) -> Result<(), String> {
    out.messages += 1;
    if !(asked.is_read || talk.until.is_some() || out.looked_at) {
        return too_many(talk, out);
    }
    let mut json = Vec::new();
    method.hears.decode(message, &mut json)?;
    if out.looked_at {
        let text = String::from_utf8_lossy(&json).into_owned();
        out.told.push((Side::Server, text));
    }
    if asked.is_read && out.body.len() + json.len() < MAX_TEXT {
        let before: &[u8] = match (method.hears_many, out.body.is_empty()) {
            (true, true) => b"[",
            (true, false) => b",",
            (false, _) => b"",
        };
        out.body.extend_from_slice(before);
        out.body.extend_from_slice(&json);
    }
    let holds = |text: &String| memchr::memmem::find(&json, text.as_bytes()).is_some();
    if talk.until.as_ref().is_some_and(holds) {
        talk.count = Some(out.messages);
    }
    too_many(talk, out)
}

fn too_many(talk: &GrpcExchange, out: &Out) -> Result<(), String> {
    match out.messages >= talk.at_most && !talk.has_enough(out) {
        true => Err(format!(
            "{} messages came, and none was the last: say `at_most` if that is meant",
            out.messages
        )),
        false => Ok(()),
    }
}

/// Processes the end of a call by the server.
fn ended(method: &Method, talk: &GrpcExchange, out: &Out, status: Status) -> Result<Reply, String> {
    if status.code != status::OK {
        return Ok(Reply::status(status, false));
    }
    if talk.until.is_some() || talk.count.is_some() {
        let text = format!("the server ended the call after {} messages", out.messages);
        return Ok(Reply {
            refused: Some(text.into()),
            ..Reply::default()
        });
    }
    if !method.hears_many && out.messages != 1 {
        return Err(format!(
            "one message answers the call, and {} came",
            out.messages
        ));
    }
    Ok(Reply::status(status, false))
}

/// Converts a status to a reply.
trait OfStatus {
    fn status(status: Status, ends: bool) -> Self;
}

impl OfStatus for Reply {
    fn status(status: Status, ends: bool) -> Self {
        Self {
            status: Some(status.code),
            refused: Some(status.told().into()),
            ends,
            ..Self::default()
        }
    }
}

/// Returns all messages of a call if they are the same for all users.
fn fixed(call: &Call, method: &Method) -> Option<Bytes> {
    let mut all = Vec::new();
    for template in &call.messages {
        let text = template.as_literal()?;
        framed(&mut all, |out| method.says.encode(text, out)).ok()?;
    }
    Some(all.into())
}

/// Formats a time for gRPC: at most eight digits, and a unit.
fn timeout(time: Duration) -> HeaderValue {
    let (number, unit) = match time.as_millis() {
        millis if millis < 100_000_000 => (millis, 'm'),
        _ => (u128::from(time.as_secs()).min(99_999_999), 'S'),
    };
    let text = HeaderValue::from_str(&format!("{number}{unit}"));
    text.unwrap_or_else(|_| HeaderValue::from_static("1H"))
}

impl Dialogue for Grpc {
    type Line = GrpcLine;
    type ExchangeState = GrpcExchange;

    const SAYS_MESSAGES: bool = true;

    fn open(&self, _: &mut UserScope, talk: &mut GrpcExchange) -> Result<(), Unmade> {
        talk.begin(None);
        Ok(())
    }

    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut GrpcExchange,
    ) -> Result<(), Unmade> {
        talk.begin(Some(request));
        let asked = &self.asked[request as usize];
        let mut text = String::new();
        asked.sets.render(scope, &mut text)?;
        let Some(method) = &asked.method else {
            let text = format!("there is no method `{}`", asked.call.method);
            return Err(Unmade::Failed(text.into()));
        };
        talk.head = Some(self.head(asked, &method.path, scope)?);
        if let Some(fixed) = &asked.fixed {
            talk.said.extend((!fixed.is_empty()).then(|| fixed.clone()));
            return talk.listen(asked, scope);
        }
        let mut all = Vec::new();
        for template in &asked.call.messages {
            text.clear();
            template.render(scope, &mut text)?;
            framed(&mut all, |out| method.says.encode(&text, out))
                .map_err(|error| Unmade::Failed(error.into()))?;
        }
        talk.said.push_back(all.into());
        talk.listen(asked, scope)
    }

    fn turn(
        &self,
        line: &mut GrpcLine,
        talk: &mut GrpcExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        let Some(request) = talk.request else {
            return self.opening(line, heard, out);
        };
        let asked = &self.asked[request as usize];
        let http = line.http.as_ref().ok_or("the connection isn't open")?;
        http.hear(std::mem::take(heard));
        line.unasked = 0;
        if !talk.is_said {
            if out.looked_at {
                self.tell(line, (talk, asked), out);
            }
            let begins = self.begin(line, talk, request)?;
            talk.is_said = begins == Begins::Now;
            if begins == Begins::Never {
                let words = "the server takes no more calls on this connection";
                return Ok(Turn::Done(Reply::status(
                    Status::new(UNAVAILABLE, words),
                    true,
                )));
            }
        }
        let reply = match talk.is_said {
            true => self.go_on(line, (talk, asked), out)?,
            false => None,
        };
        if let Some(reply) = &reply {
            self.close(line, asked, reply, out);
        }
        if let Some(http) = &mut line.http {
            http.turn()?;
            http.say(&mut out.say);
        }
        Ok(reply.map_or(Turn::Listen, Turn::Done))
    }

    fn patience(&self, request: RequestId) -> Option<Duration> {
        self.asked[request as usize].call.deadline
    }

    fn give_up(&self, line: &mut GrpcLine, say: &mut Vec<u8>) -> bool {
        line.now = None;
        let Some(http) = &mut line.http else {
            return false;
        };
        let goes_on = http.goes_on();
        http.say(say);
        goes_on
    }

    fn overhear(
        &self,
        line: &mut GrpcLine,
        heard: &mut &[u8],
        say: &mut Vec<u8>,
    ) -> Result<(), String> {
        let Some(http) = &mut line.http else {
            return Ok(());
        };
        // Data on open calls is for the next request, and bounded: many users wait in think time.
        if line.unasked < MOST_UNASKED {
            line.unasked += heard.len();
            http.hear(std::mem::take(heard));
        }
        let goes_on = http.goes_on();
        http.say(say);
        match goes_on {
            true => Ok(()),
            false => Err("the server ends the connection".to_owned()),
        }
    }

    fn spell(&self, _: Side, _: &[u8]) -> String {
        // Calls and messages are recorded instead: the bytes are compressed headers.
        String::new()
    }

    fn streams(&self) -> Option<&dyn Streams<GrpcLine, GrpcExchange>> {
        Some(self)
    }
}
