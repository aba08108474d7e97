//! WebSocket: the handshake of a workload, and the messages of its requests.

use lab_workload::template::Escape;
use lab_workload::{Body, ProtocolRequest, Request, Speech, Template};

use super::events::Listening;
use super::foreign::part_of_web;
use super::header::header_problem;
use super::request::Compiler;
use crate::file::{RequestFile, SpeakingFile};
use crate::text_error::TextError;
use lab_units::parts::{At, Scalar};

/// Describes the forms of a message.
const PARTS: &str = "a message is a text (`request`), `json`, or `bytes`";

impl Compiler<'_> {
    /// Returns true if a request without a line sends or awaits messages.
    pub(super) fn has_messages_without_line(&self, file: &RequestFile) -> bool {
        let says = file.json.is_some() || file.bytes.is_some() || file.events.is_some();
        let says = says || file.call.close.is_some();
        matches!(self.speech, Speech::WebSocket { .. }) && says
    }

    /// Reports handshake settings in a workload without WebSocket.
    pub(super) fn refuse_handshake(&mut self, file: Option<&SpeakingFile>) -> Option<()> {
        let Some(file) = file else { return Some(()) };
        let path = file.path.as_ref().map(|at| &at.span);
        let header = file.headers.iter().next().map(|(name, _)| &name.span);
        let subprotocol = file.subprotocol.as_ref().map(|at| &at.span);
        match path.or(header).or(subprotocol) {
            Some(span) => self.refuse(span, "only WebSocket has a handshake"),
            None => Some(()),
        }
    }

    /// Reads the handshake.
    pub(super) fn websocket(&mut self, file: Option<&SpeakingFile>) -> Option<Speech> {
        let Some(file) = file else {
            return Some(Speech::WebSocket {
                path: Template::literal("/"),
                headers: Vec::new(),
                subprotocol: None,
            });
        };
        let signs_in = [
            &file.username,
            &file.password,
            &file.database,
            &file.starttls,
        ];
        if let Some(at) = signs_in.into_iter().flatten().next() {
            let help = "write a header: `headers: { Authorization: \"Bearer {{ token }}\" }`";
            return self.refuse_here(&at.span, "a handshake signs nobody in by itself", help);
        }
        let path = match &file.path {
            Some(at) => self.template("path", at, Escape::None)?,
            None => Template::literal("/"),
        };
        let mut headers = Vec::new();
        for (name, value) in file.headers.iter() {
            let lower = name.value.to_ascii_lowercase();
            let is_own = ["connection", "host", "upgrade"].contains(&lower.as_str());
            let is_own = is_own || lower.starts_with("sec-websocket-");
            let problem = header_problem(&name.value, &value.text()).filter(|_| !is_own);
            if let Some((message, help)) = problem {
                return self.refuse_here(&name.span, &message, help);
            }
            if is_own {
                let message = format!("`{}` is written by the driver itself", name.value);
                return self.refuse(&name.span, &message);
            }
            headers.push((
                name.value.clone(),
                self.template("header", value, Escape::None)?,
            ));
        }
        let subprotocol = file.subprotocol.as_ref();
        if let Some(at) = subprotocol.filter(|at| !super::capture::is_token(&at.text())) {
            let help = "write a word, such as `graphql-transport-ws`";
            return self.refuse_here(&at.span, "this is no name of a subprotocol", help);
        }
        Some(Speech::WebSocket {
            path,
            headers,
            subprotocol: subprotocol.map(|at| at.text()),
        })
    }

    /// Compiles a message and the responses that it awaits.
    pub(super) fn message(
        &mut self,
        line: Option<&At<Scalar>>,
        file: &RequestFile,
    ) -> Option<Request> {
        let fits = match part_of_web(file, &["json", "bytes", "events"]) {
            Some((_, place)) => self.refuse_here(place, "this belongs to requests of HTTP", PARTS),
            None => Some(()),
        };
        self.refuse_foreign(file)?;
        let said = self.message_content(line, file);
        let answered = self.answered(file);
        let events = self.listening(file.events.as_ref(), Listening::Messages);
        fits?;
        let (answer, captures) = answered?;
        Some(Request {
            answer,
            captures,
            events: events?,
            ..Request::of_protocol(said?)
        })
    }

    /// Compiles the content of a message: a text, JSON, or bytes.
    fn message_content(
        &mut self,
        line: Option<&At<Scalar>>,
        file: &RequestFile,
    ) -> Option<ProtocolRequest> {
        let beside = [
            file.call.close.as_ref().map(|at| &at.span),
            file.json.as_ref().map(|at| &at.span),
            file.bytes.as_ref().map(|at| &at.span),
        ];
        let mut given = line
            .map(|at| &at.span)
            .into_iter()
            .chain(beside.into_iter().flatten());
        if let Some(second) = given.nth(1) {
            return self.refuse_here(second, "a request says one message", PARTS);
        }
        if let Some(at) = &file.call.close {
            if let Some(events) = &file.events {
                let help = "listen in a request before it";
                return self.refuse_here(&events.span, "what closes hears nothing more", help);
            }
            return self
                .setting("close", at, close_code)
                .map(ProtocolRequest::Close);
        }
        if let Some(line) = line {
            let text = self.template("request", line, Escape::None)?;
            return Some(ProtocolRequest::Message {
                text: Some(text),
                binary: false,
            });
        }
        let binary = file.bytes.is_some();
        let text = match self.text_body(file)? {
            Body::Json(text) | Body::Text(text) => Some(text),
            _ => None,
        };
        Some(ProtocolRequest::Message { text, binary })
    }
}

/// Parses a close code (RFC 6455, section 7.4): only those that an endpoint may send.
fn close_code(text: &str) -> Result<u16, TextError> {
    if text.trim() == "true" {
        return Ok(1000);
    }
    let code = text.trim().parse::<u16>().ok();
    let said = |code: &u16| matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
    code.filter(said).ok_or_else(|| {
        let message = format!("`{}` is no code to close with", text.trim());
        TextError::new(message, 0..text.len())
            .help("write `true`, or a code: 1000 to 1003, 1007 to 1014, 3000 to 4999")
    })
}
