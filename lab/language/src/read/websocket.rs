//! WebSocket: the handshake of a workload, and the messages of its requests.

use lab_workload::template::Escape;
use lab_workload::{Body, CaptureSource, Request, Said, Speech, Template};

use super::events::Listening;
use super::protocol::expected_header;
use super::request::{Compiler, header_problem};
use crate::error::Problem;
use crate::file::{At, ExpectFile, RequestFile, Scalar, SpeakingFile};
use crate::source::Span;

impl Compiler<'_> {
    /// Whether a request without a line says something, or listens.
    pub(super) fn says_without_line(&self, file: &RequestFile) -> bool {
        let says = file.json.is_some() || file.bytes.is_some() || file.events.is_some();
        matches!(self.speech, Speech::WebSocket { .. }) && says
    }

    /// Parts of a handshake where there is none.
    pub(super) fn refuse_handshake(&mut self, file: Option<&SpeakingFile>) -> Option<()> {
        let Some(file) = file else { return Some(()) };
        let path = file.path.as_ref().map(|at| &at.span);
        let header = file.headers.iter().next().map(|(name, _)| &name.span);
        let subprotocol = file.subprotocol.as_ref().map(|at| &at.span);
        match path.or(header).or(subprotocol) {
            Some(span) => self.refuse_here(span, "only WebSocket has a handshake", "leave it out"),
            None => Some(()),
        }
    }

    /// The handshake.
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
            let is_own = lower == "host" || lower.starts_with("sec-websocket-");
            if let Some(message) = header_problem(&name.value) {
                return self.refuse_here(&name.span, &message, "leave it out");
            }
            if is_own {
                let message = format!("`{}` is written by the driver itself", name.value);
                return self.refuse_here(&name.span, &message, "leave it out");
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

    /// A message and what is awaited of it.
    pub(super) fn message(
        &mut self,
        line: Option<&At<Scalar>>,
        file: &RequestFile,
    ) -> Option<Request> {
        let fits = self.refuse_parts_of_web(file);
        self.refuse_foreign(file)?;
        let said = self.said(line, file);
        let answer = self.answer(file);
        let captures = self.captures(&file.capture);
        for (capture, (name, _)) in captures.iter().flatten().zip(file.capture.iter()) {
            use CaptureSource::{Cookie, Header, RequestPath, Status};
            if matches!(capture.source, Cookie(_) | Header(_) | RequestPath | Status) {
                let help = "write `body`, a JSON path, or a pattern";
                return self.refuse_here(&name.span, "a message has only its text", help);
            }
        }
        if let Some(place) = expected_header(answer.as_deref(), file) {
            return self.refuse_here(place, "messages have no headers", "leave it out");
        }
        let events = self.listening(file.events.as_ref(), Listening::Messages);
        fits?;
        Some(Request {
            method: String::new(),
            target: Template::literal(""),
            headers: Vec::new(),
            body: Body::Empty,
            basic_auth: None,
            expect: vec![0..=u16::MAX],
            answer: answer?,
            captures: captures?,
            compressed: false,
            follow: 0,
            events: events?,
            said: Some(Box::new(said?)),
        })
    }

    /// What a message has in it: a text, JSON, or bytes.
    fn said(&mut self, line: Option<&At<Scalar>>, file: &RequestFile) -> Option<Said> {
        let beside = [
            file.json.as_ref().map(|at| &at.span),
            file.bytes.as_ref().map(|at| &at.span),
        ];
        let mut given = line
            .map(|at| &at.span)
            .into_iter()
            .chain(beside.into_iter().flatten());
        if let Some(second) = given.nth(1) {
            let help = "a message is a text (`request`), `json`, or `bytes`";
            return self.refuse_here(second, "a request says one message", help);
        }
        if let Some(line) = line {
            let text = self.template("request", line, Escape::None)?;
            return Some(Said::Message {
                text: Some(text),
                binary: false,
            });
        }
        let binary = file.bytes.is_some();
        let text = match self.text_body(file)? {
            Body::Json(text) | Body::Text(text) => Some(text),
            _ => None,
        };
        Some(Said::Message { text, binary })
    }

    /// Parts that only requests of HTTP have.
    fn refuse_parts_of_web(&mut self, file: &RequestFile) -> Option<()> {
        let status = match &file.expect {
            Some(ExpectFile::Status(one)) => one.as_slice().first(),
            Some(ExpectFile::Answer(answer)) => {
                answer.status.iter().flat_map(|one| one.as_slice()).next()
            }
            None => None,
        };
        let given = [
            file.headers.iter().next().map(|(name, _)| &name.span),
            file.form.as_ref().map(|at| &at.span),
            file.xml.as_ref().map(|at| &at.span),
            file.text.as_ref().map(|at| &at.span),
            file.multipart.as_ref().map(|at| &at.span),
            file.body.as_ref().map(|at| &at.span),
            file.basic_auth.as_ref().map(|at| &at.username.span),
            file.compressed.as_ref().map(|at| &at.span),
            file.follow.as_ref().map(|at| &at.span),
            status.map(|at| &at.span),
        ];
        match given.into_iter().flatten().next() {
            Some(span) => {
                let help = "a message is a text (`request`), `json`, or `bytes`";
                self.refuse_here(span, "this belongs to requests of HTTP", help)
            }
            None => Some(()),
        }
    }

    fn refuse_here<T>(&mut self, place: &Span, message: &str, help: &str) -> Option<T> {
        let problem = place.first_line().problem(message, "here");
        self.problems.push(Problem {
            help: Some(help.to_owned()),
            ..problem
        });
        None
    }
}
