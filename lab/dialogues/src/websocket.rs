//! WebSocket (RFC 6455): a request sends a message and receives its responses, with the time of each. `tungstenite`
//! processes frames, masks, pings, and the server's close, over a pipe in memory. No extension is offered, so nothing
//! is compressed.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};

use lab_workload::{Events, ProtocolRequest, Speech, Template, UserScope, Workload};
use tungstenite::handshake::client::generate_key;
use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::frame::FrameHeader;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, WebSocketContext};
use tungstenite::{Error, Message};

use lab_client::dialogue::{Dialogue, Out, Reply, Turn};
use lab_client::{RequestId, Side, Unmade};

/// Maximum bytes of the handshake's response, and its maximum number of headers.
const MAX_HEAD: usize = 64 << 10;
const MAX_HEADERS: usize = 64;
/// Longest message, and longest frame of one.
const MAX_MESSAGE: usize = 16 << 20;
/// Maximum bytes of responses that are kept for expectations and captures.
const MAX_TEXT: usize = 4 << 20;
/// Maximum bytes of unsolicited messages that are kept for the next requests, and the same for unparsed bytes and for
/// an incomplete message: further data waits in the kernel.
const MOST_UNASKED: usize = 64 << 10;
/// Header of a server's ping, which is short and has no mask.
const CONTROL_HEAD: usize = 2;
/// Read size from memory.
const READ: usize = 4 << 10;

/// The WebSocket dialogue.
pub struct WebSocket {
    /// `Host` of the handshake.
    host: String,
    path: Template,
    headers: Vec<(String, Template)>,
    subprotocol: Option<String>,
    /// By the request's index.
    asked: Vec<PreparedMessage>,
}

/// A request's message, and the responses that it waits for.
struct PreparedMessage {
    /// Rendered for the request's `set`.
    sets: Template,
    text: Option<Template>,
    binary: bool,
    /// Close code, sent instead of a message.
    close: Option<u16>,
    events: Option<Events>,
}

/// State of a connection: its frames.
#[derive(Default)]
pub struct WebSocketLine {
    frames: Option<WebSocketContext>,
    pipe: Pipe,
    /// Messages received between requests, except pings.
    unasked: VecDeque<Result<Message, Error>>,
    unasked_bytes: usize,
    /// Bytes received between requests that complete no message yet, except pings: a complete message received with
    /// them resets the count.
    partial_bytes: usize,
}

/// Reads messages incrementally on a connection after its handshake.
#[derive(Default)]
pub struct WebSocketMessages {
    line: Option<WebSocketLine>,
    talk: WebSocketExchange,
    out: Out,
}

/// A connection in memory: received data that is not read yet, and data to send.
#[derive(Default)]
struct Pipe {
    heard: Vec<u8>,
    read: usize,
    said: Vec<u8>,
}

/// A handshake, or a message and its responses.
#[derive(Default)]
pub struct WebSocketExchange {
    /// Text to send: a head, or a message.
    text: String,
    /// Key of the handshake.
    key: Option<String>,
    message: Option<Kind>,
    is_said: bool,
    until: Option<String>,
    count: Option<u32>,
    at_most: u32,
}

#[derive(Clone, Copy)]
enum Kind {
    Text,
    Binary,
    /// No message: the connection is closed with this code.
    Close(u16),
}

impl WebSocket {
    /// Prepares the requests of a workload for a server with this host in handshakes.
    #[must_use]
    pub fn new(workload: &Workload, host: &str) -> Self {
        let asked = workload.requests().map(|request| {
            let (text, binary, close) = match request.said.as_deref() {
                Some(ProtocolRequest::Message { text, binary }) => (text.clone(), *binary, None),
                Some(ProtocolRequest::Close(code)) => (None, false, Some(*code)),
                _ => (None, false, None),
            };
            PreparedMessage {
                sets: request.target.clone(),
                text,
                binary,
                close,
                events: request.events.clone(),
            }
        });
        let (path, headers, subprotocol) = match &workload.speech {
            Speech::WebSocket {
                path,
                headers,
                subprotocol,
            } => (path.clone(), headers.clone(), subprotocol.clone()),
            _ => (Template::literal("/"), Vec::new(), None),
        };
        Self {
            host: host.to_owned(),
            path,
            headers,
            subprotocol,
            asked: asked.collect(),
        }
    }

    /// Reads the server's response to the handshake; `None` until its head is complete.
    fn shaken(
        &self,
        key: &str,
        line: &mut WebSocketLine,
        heard: &mut &[u8],
    ) -> Result<Option<Reply>, String> {
        let refused = loop {
            let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
            let mut head = httparse::Response::new(&mut headers);
            let all = *heard;
            let length = match head.parse(all) {
                Ok(httparse::Status::Complete(length)) => length,
                Ok(httparse::Status::Partial) if all.len() <= MAX_HEAD => return Ok(None),
                Ok(httparse::Status::Partial) => {
                    return Err("the answer to the handshake is too long".to_owned());
                }
                Err(error) => {
                    return Err(format!("the answer to the handshake is no HTTP: {error}"));
                }
            };
            *heard = &all[length..];
            match head.code.unwrap_or_default() {
                101 => break self.missing(key, head.headers),
                // Interim responses, such as early hints (RFC 9110, section 15.2).
                100..=199 => {}
                code => break Some(format!("the handshake is answered with status {code}")),
            }
        };
        *line = WebSocketLine::open();
        Ok(Some(Reply {
            refused: refused.map(String::into_boxed_str),
            ..Reply::default()
        }))
    }

    /// Describes what the server's acceptance lacks.
    fn missing(&self, key: &str, headers: &[httparse::Header<'_>]) -> Option<String> {
        let value = |name: &str| {
            let mut found = headers
                .iter()
                .filter(|one| one.name.eq_ignore_ascii_case(name));
            found.next().map(|one| String::from_utf8_lossy(one.value))
        };
        let is_accepted = value("Sec-WebSocket-Accept")
            .is_some_and(|accept| accept.trim() == derive_accept_key(key.as_bytes()));
        if !is_accepted {
            return Some("the handshake's key is not accepted: no WebSocket there?".to_owned());
        }
        if let Some(extension) = value("Sec-WebSocket-Extensions") {
            return Some(format!(
                "the server uses `{extension}`, which nobody offered"
            ));
        }
        let spoken = value("Sec-WebSocket-Protocol");
        match (&self.subprotocol, spoken) {
            (Some(asked), Some(spoken)) if spoken.trim() == asked => None,
            (None, None) => None,
            (Some(asked), _) => Some(format!("the server doesn't speak `{asked}`")),
            (None, Some(spoken)) => Some(format!("the server speaks `{spoken}`, unasked")),
        }
    }
}

impl WebSocketLine {
    /// Creates a connection after its handshake.
    fn open() -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            .write_buffer_size(0)
            .max_message_size(Some(MAX_MESSAGE))
            .max_frame_size(Some(MAX_MESSAGE));
        Self {
            frames: Some(WebSocketContext::new(Role::Client, Some(config))),
            ..Self::default()
        }
    }

    /// Reads the next complete frame.
    fn read(&mut self) -> Result<Message, Error> {
        if let Some(first) = self.unasked.pop_front() {
            self.unasked_bytes -= taken_by(&first);
            return first;
        }
        match &mut self.frames {
            Some(frames) => frames.read(&mut self.pipe),
            None => Err(Error::AlreadyClosed),
        }
    }

    /// Writes pending control replies to the pipe.
    fn flush(&mut self) {
        if let Some(frames) = &mut self.frames {
            let _said = frames.flush(&mut self.pipe);
        }
    }

    /// Reads received messages for the next request. Pings are answered.
    fn read_unasked(&mut self) {
        while !self.is_over()
            && self.unasked_bytes < MOST_UNASKED
            && let Some(frames) = &mut self.frames
        {
            match frames.read(&mut self.pipe) {
                Ok(Message::Ping(said) | Message::Pong(said)) => {
                    // They may be inside a fragmented message.
                    let all = CONTROL_HEAD + said.len();
                    self.partial_bytes = self.partial_bytes.saturating_sub(all);
                }
                Ok(Message::Frame(_)) => {}
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                read => {
                    self.partial_bytes = 0;
                    self.unasked_bytes += taken_by(&read);
                    self.unasked.push_back(read);
                }
            }
        }
        self.flush();
    }

    /// Returns true after a close or an error in the unsolicited messages: nothing follows.
    fn is_over(&self) -> bool {
        matches!(self.unasked.back(), Some(Ok(Message::Close(_)) | Err(_)))
    }
}

fn no_websocket(fault: &Error) -> String {
    format!("what came is no WebSocket: {fault}")
}

/// Returns the memory of a kept message, also of an empty one.
fn taken_by(read: &Result<Message, Error>) -> usize {
    size_of::<Message>() + read.as_ref().map_or(0, Message::len)
}

impl WebSocketMessages {
    /// Reads received data. Returns the number of messages so far; `None` once the server has closed.
    ///
    /// # Errors
    /// Describes data that is no WebSocket.
    pub fn read(&mut self, heard: &[u8]) -> Result<Option<u32>, String> {
        let line = self.line.get_or_insert_with(WebSocketLine::open);
        self.talk.at_most = u32::MAX;
        line.pipe.hear(heard);
        let over = self.talk.listen(line, &mut self.out)?;
        line.pipe.said.clear();
        Ok(over.is_none().then_some(self.out.messages))
    }

    /// Returns the texts of all messages, one per line.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.out.body
    }
}

impl WebSocketExchange {
    fn begin(&mut self) {
        self.text.clear();
        self.key = None;
        self.message = None;
        self.is_said = false;
        self.until = None;
        self.count = None;
        self.at_most = u32::MAX;
    }

    /// Processes a received message. Returns true if it is the last one required.
    fn heard(&self, message: &[u8], out: &mut Out) -> Result<bool, String> {
        out.messages += 1;
        if out.messages > 1 {
            out.body.push(b'\n');
        }
        let room = MAX_TEXT.saturating_sub(out.body.len());
        out.body
            .extend_from_slice(&message[..message.len().min(room)]);
        let holds = |text: &String| memchr::memmem::find(message, text.as_bytes()).is_some();
        let enough = self.count.is_some_and(|count| out.messages >= count);
        if enough || self.until.as_ref().is_some_and(holds) {
            return Ok(true);
        }
        match out.messages >= self.at_most {
            true => Err(format!(
                "{} messages came, and none was the last: say `at_most` if that is meant",
                out.messages
            )),
            false => Ok(false),
        }
    }

    /// Reads all received frames. Returns the result once the last required message was received.
    fn listen(&self, line: &mut WebSocketLine, out: &mut Out) -> Result<Option<Reply>, String> {
        if line.frames.is_none() {
            return Err("there was no handshake".to_owned());
        }
        loop {
            let over = match line.read() {
                // A closing request ignores messages in flight.
                Ok(Message::Text(_) | Message::Binary(_)) if self.closes() => false,
                Ok(Message::Text(text)) => self.heard(text.as_bytes(), out)?,
                Ok(Message::Binary(bytes)) => self.heard(&bytes, out)?,
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => false,
                Ok(Message::Close(why)) => {
                    line.flush();
                    let why = why.map_or_else(String::new, |why| format!(": {why}"));
                    return Ok(Some(self.closed(out.messages, &why)));
                }
                Err(Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(None);
                }
                Err(Error::ConnectionClosed | Error::AlreadyClosed) => {
                    return Ok(Some(self.closed(out.messages, "")));
                }
                Err(error) => return Err(no_websocket(&error)),
            };
            if over {
                return Ok(Some(Reply::default()));
            }
        }
    }

    /// Handles a regular close by the server: the request is refused, unless it accepts all messages up to the close.
    fn closed(&self, messages: u32, why: &str) -> Reply {
        if self.closes() {
            return Reply {
                ends: true,
                ..Reply::default()
            };
        }
        let takes_all = self.until.is_none() && self.count.is_none();
        let refused = !(takes_all && messages > 0);
        let text = || format!("the server closed after {messages} messages{why}");
        Reply {
            refused: refused.then(|| text().into()),
            ends: true,
            ..Reply::default()
        }
    }

    /// Returns true if the request ends the connection.
    fn closes(&self) -> bool {
        matches!(self.message, Some(Kind::Close(_)))
    }

    /// Writes the request's message to the connection.
    fn say(&self, kind: Kind, line: &mut WebSocketLine) -> Result<(), String> {
        let WebSocketLine { frames, pipe, .. } = line;
        let frames = frames.as_mut().ok_or("there was no handshake")?;
        let message = match kind {
            Kind::Text => Message::text(self.text.as_str()),
            Kind::Binary => Message::binary(self.text.as_bytes().to_vec()),
            Kind::Close(code) => Message::Close(Some(CloseFrame {
                code: code.into(),
                reason: "".into(),
            })),
        };
        let written = frames
            .write(pipe, message)
            .and_then(|()| frames.flush(pipe));
        written.map_err(|error| format!("the message can't be said: {error}"))
    }
}

impl Dialogue for WebSocket {
    type Line = WebSocketLine;
    type ExchangeState = WebSocketExchange;

    const SAYS_MESSAGES: bool = true;

    fn open(&self, scope: &mut UserScope, talk: &mut WebSocketExchange) -> Result<(), Unmade> {
        talk.begin();
        let key = generate_key();
        let mut path = String::new();
        self.path.render(scope, &mut path)?;
        let bad = |c: char| c.is_control() || c == ' ';
        if !path.starts_with('/') || path.contains(bad) {
            let text = format!("`{}` is no path of a handshake", path.escape_debug());
            return Err(Unmade::Failed(text.into()));
        }
        talk.text = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n",
            self.host
        );
        if let Some(subprotocol) = &self.subprotocol {
            talk.text
                .push_str(&format!("Sec-WebSocket-Protocol: {subprotocol}\r\n"));
        }
        for (name, template) in &self.headers {
            let mut value = String::new();
            template.render(scope, &mut value)?;
            if value.contains(char::is_control) {
                let text = format!("header `{name}` has a line end or another control character");
                return Err(Unmade::Failed(text.into()));
            }
            talk.text.push_str(&format!("{name}: {value}\r\n"));
        }
        talk.text.push_str("\r\n");
        talk.key = Some(key);
        Ok(())
    }

    fn ask(
        &self,
        request: RequestId,
        scope: &mut UserScope,
        talk: &mut WebSocketExchange,
    ) -> Result<(), Unmade> {
        talk.begin();
        let asked = &self.asked[request as usize];
        asked.sets.render(scope, &mut talk.text)?;
        talk.text.clear();
        if let Some(text) = &asked.text {
            text.render(scope, &mut talk.text)?;
            talk.message = Some(if asked.binary {
                Kind::Binary
            } else {
                Kind::Text
            });
        }
        if let Some(code) = asked.close {
            talk.message = Some(Kind::Close(code));
            return Ok(());
        }
        let Some(events) = &asked.events else {
            // One message is the answer.
            talk.count = Some(1);
            return Ok(());
        };
        talk.count = events.count;
        talk.at_most = events.at_most;
        if let Some(until) = &events.until {
            let mut text = String::new();
            until.render(scope, &mut text)?;
            talk.until = Some(text);
        }
        Ok(())
    }

    fn turn(
        &self,
        line: &mut WebSocketLine,
        talk: &mut WebSocketExchange,
        heard: &mut &[u8],
        out: &mut Out,
    ) -> Result<Turn, String> {
        if let Some(key) = &talk.key {
            if !talk.is_said {
                out.say.extend_from_slice(talk.text.as_bytes());
                talk.is_said = true;
                return Ok(Turn::Listen);
            }
            let shaken = self.shaken(key, line, heard)?;
            return Ok(shaken.map_or(Turn::Listen, Turn::Done));
        }
        if !std::mem::replace(&mut talk.is_said, true) {
            out.messages = 0;
            line.partial_bytes = 0;
            if let Some(kind) = talk.message {
                if let Some(Err(fault)) = line.unasked.back() {
                    return Err(no_websocket(fault));
                }
                talk.say(kind, line)?;
            }
        }
        let mut listened = match talk.count {
            Some(0) => Some(Reply::default()),
            // Kept messages are read first: no more is read than requested.
            _ => talk.listen(line, out)?,
        };
        if listened.is_none() && !heard.is_empty() {
            line.pipe.hear(std::mem::take(heard));
            listened = talk.listen(line, out)?;
        }
        // Sends the message, and replies to pings.
        out.say.append(&mut line.pipe.said);
        Ok(listened.map_or(Turn::Listen, Turn::Done))
    }

    fn overhear(
        &self,
        line: &mut WebSocketLine,
        heard: &mut &[u8],
        say: &mut Vec<u8>,
    ) -> Result<(), String> {
        if line.pipe.is_read() && line.partial_bytes < MOST_UNASKED {
            line.partial_bytes += heard.len();
            line.pipe.hear(std::mem::take(heard));
        }
        line.read_unasked();
        say.append(&mut line.pipe.said);
        match line.unasked.back() {
            Some(Ok(Message::Close(_))) => Err("the server closes the connection".to_owned()),
            _ => Ok(()),
        }
    }

    fn keeps(&self, line: &WebSocketLine) -> bool {
        match line.unasked.front() {
            // A lone close means that the connection was idle for too long.
            Some(Ok(Message::Close(_))) => false,
            Some(_) => true,
            // The rest of a large message may be in flight.
            None => line.partial_bytes > 0,
        }
    }

    fn only_listens(&self, talk: &WebSocketExchange) -> bool {
        talk.message.is_none()
    }

    fn spell(&self, side: Side, bytes: &[u8]) -> String {
        if bytes.starts_with(b"GET ") || bytes.starts_with(b"HTTP/") {
            return head(bytes);
        }
        let mut rest = bytes;
        let mut lines = Vec::new();
        while !rest.is_empty() {
            let mut cursor = io::Cursor::new(rest);
            let Ok(Some((header, length))) = FrameHeader::parse(&mut cursor) else {
                lines.push(format!("… {} bytes of a frame", rest.len()));
                break;
            };
            let begin = usize::try_from(cursor.position()).unwrap_or(rest.len());
            let after = &rest[begin.min(rest.len())..];
            let length = usize::try_from(length)
                .unwrap_or(usize::MAX)
                .min(after.len());
            lines.push(frame(side, &header, &after[..length]));
            rest = &after[length..];
        }
        lines.join("\n")
    }
}

/// Returns a head without credentials.
fn head(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let told = text.lines().map(|line| {
        let (name, _) = line.split_once(':').unwrap_or((line, ""));
        let signs_in = ["authorization", "cookie", "set-cookie"]
            .iter()
            .any(|one| name.eq_ignore_ascii_case(one));
        match signs_in {
            true => format!("{name}: {}", lab_workload::MASK),
            false => line.to_owned(),
        }
    });
    told.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

/// Formats a frame for people.
fn frame(side: Side, header: &FrameHeader, payload: &[u8]) -> String {
    let mut payload = payload.to_vec();
    if let (Side::User, Some(mask)) = (side, header.mask) {
        let masks = mask.iter().cycle();
        payload
            .iter_mut()
            .zip(masks)
            .for_each(|(byte, mask)| *byte ^= mask);
    }
    match header.opcode {
        OpCode::Data(Data::Binary) => format!("({} bytes)", payload.len()),
        OpCode::Data(_) => String::from_utf8_lossy(&payload).into_owned(),
        OpCode::Control(Control::Close) => match payload.split_first_chunk() {
            Some((code, why)) => {
                let (code, why) = (u16::from_be_bytes(*code), String::from_utf8_lossy(why));
                format!("({})", format!("close {code} {why}").trim_end())
            }
            None => "(close)".to_owned(),
        },
        OpCode::Control(control) => format!("({control})"),
    }
}

impl Pipe {
    /// Returns true if all received data was read.
    fn is_read(&self) -> bool {
        self.read == self.heard.len()
    }

    /// Adds received data.
    fn hear(&mut self, bytes: &[u8]) {
        self.heard.drain(..self.read);
        self.read = 0;
        self.heard.extend_from_slice(bytes);
    }
}

impl Read for Pipe {
    fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
        let left = &self.heard[self.read..];
        if left.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = left.len().min(space.len());
        space[..count].copy_from_slice(&left[..count]);
        self.read += count;
        Ok(count)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.said.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
